"""Memory of a rank in full-batch training, term by term; n_p rows, f columns, w parameters, 4 bytes a number.

before training
    graph            rows, columns and what exchanges need (memory.py)
    directions       of a directed graph: 5 for each stored entry, of both directions of arcs, 17 with weights
    features         4 n_p f, twice where rows are scaled; sparse: 8 an entry by rows and 8 by columns, 4 more
                     where rows are scaled, and 8 for both where entries are dropped, or 40 without kernels
                     of the host, which find an entry's node and column as they go. Of dense ones in the
                     slow tier: none where it is a file or memory beside a GPU
    edge features    4 k for each stored entry of k columns as given, of directed graphs for those of both
                     directions; 4 k more where they are scaled, or are categories
    labels           4 n_p: in which splits a node is; and of each node, or of a set of each graph, its weight
                     in the loss (4), its row (of a set, 8), and its class (4), or of several c classes the
                     labels (c) and what scores are compared with (4 c), of c values 8 c and 4 c. Of edges
                     both and 6 for each stored entry, both twice and 5 for each edge, and ENTRY for each
                     entry that a head goes through: those of edges that are learned, and all edges once
in training
    buffers          under a limit that they pass: what is alive at once, as far as the limit; else
                     4 n_p columns of the plan (gnn/buffers.py): L of a layer's width and one of
                     SPREAD_COLUMNS (gnn/products.py); MG-GCN: L + 1 of a layer's width
    on their way     under a limit with a file: pages of what is loaded and of what is stored at once
    exchange         halo: 4 (n_p + ghosts + sent) of the widest operand; gather: 4 n of it; staged: two
                     stages of the largest rank (MG-GCN's broadcast buffers). Where some columns of rows
                     travel at a time (layers/gine.py): of two pieces, and 4 n_p of each
    fewer columns    4 for each entry of the matrices that layers have of their own (gnn/reach.py), 8 with
                     weights, 4 n_p for each of them (staged: 4 P n_p), and 4 n_p for each layer that need not
                     make all rows
    fewer edges      of layers that read features of fewer edges: 4 k and 4 for each entry of A, and of A^T
    tiles            2 for each entry of the matrices, 6 with weights, and about 2 for each row of a tile,
                     where products gain by such copies (native/tiled.py) and memory.fast_mb is not set
    kept features    A X where it is made once; the dropped features where input dropout is on; as features
    factors          4 n_p for each normalisation, and the losses
    pairs            of links: APART (ranked: RANKED) for each stored entry, `apart` times, of pairs that are
                     not joined
    passes           of attention to all nodes of h heads, for a moment: 4 n_p (3 h + 4)
    edge sums        of each row block the gradients of W_e and b_e of the widest layer: 4 (K + 1) f, of K
                     columns; on a GPU the rows that some entries give them, 4 f, and 4 K of categories
    scores of edges  of a head: 12 c and RANKING for each edge of c classes, HEAD_ARRAYS of h columns for some
                     entries, and of each row block the gradients of its weights
    gradients        parameters, gradient, optimiser, copies: 9 w with Adam; addends: R_p w, and on their way
                     2 R_p w + R w / P or, where they are few, R w, R of all ranks
after training
    propagation      of gnn.baselines and [smooth], beside the buffers: ARRAYS of up to COLUMNS columns
                     (gnn/propagation.py), which lie in the buffers under a limit that these pass; on the host
                     4 to 8 rows of classes
    judging          of vectors of d columns, beside the buffers, the most of: 20 d n_p of probes; 8 k + 16 d
                     n_p of k clusters; with plain rules 14 f n_p, of sparse features 24 an entry, and of
                     graphs that are small enough for eigenvectors (gnn/embed/spectral.py), c columns of
                     these, 44 c for each node and 70 for each stored entry of the graph
"""

import numpy as np

from app.gnn.edge_level.entries import LARGE_PIECE, PIECE
from app.gnn.embed import spectral
from app.gnn.embed.views import VIEWS
from app.gnn.layers.table import LAYERS
from app.gnn.model import Model, case_reads_loops, layer_specs
from app.gnn.positions import width_of
from app.gnn.products import KEPT_COLUMNS
from app.gnn.propagation import ARRAYS, COLUMNS
from app.gnn.reach import MOST_ENTRIES, widest_products
from app.memory.operations import Operation
from app.model import memory
from app.model.gnn import Training

HEAD_ARRAYS = 20  # of h columns that a head holds of some entries at a time
MOMENTS = 24  # bytes of a number that several networks say: mean and square, scores and probabilities of one
RANKING = 40  # bytes of an edge in areas under curves
ENTRY = 24  # bytes of an entry that a head of edges goes through
APART, RANKED = 24, 140  # bytes; of links.loss = "bpr" RANKED
VIEW_MATRICES = 12  # of columns with columns, in float64 on the host
OF_HEAD, OF_PASS = 3, 4  # numbers of a row that passes of attention to all nodes make, by tracemalloc
COPIES = {"adam": 9, "sgd": 6}  # of all parameters at once, those of a step among them


def at_rest(training: Training, rank: int) -> dict[str, int]:
    """Bytes that are there before the first epoch, by what they are for."""
    layout, inputs, own = training.layout, training.inputs, int(training.layout.rows[rank])
    if inputs.dense:
        scaled = training.case.feature_rows != "as_given"
        features = 0 if _elsewhere(training) else 4 * own * inputs.features * (2 if scaled else 1)
    else:
        dropped = bool(training.case.input_dropout)
        scaled = training.case.feature_rows != "as_given"
        dropping = (8 + 2 * training.device.place_bytes) * dropped
        features = (16 + 4 * scaled + dropping) * inputs.stored // layout.ranks
    found = {
        "graph": memory.total(memory.at_rest(layout, rank)),
        "features": features,
        "labels": _labels(training, own, int(layout.stored[rank])),
    }
    if width := width_of(training.case.positions):
        found["positions"] = 4 * own * width
    if inputs.edges:
        made = 1 + (training.case.edge_feature_rows != "as_given")
        made += 1.5 * (training.case.level == "edge")  # a head has them of edges too
        found["edge features"] = round(4 * made * inputs.edges * int(layout.stored[rank]))
        if case_reads_loops(training.case):
            found["edge features"] += 4 * own * inputs.edge_width
    if training.directed:
        found["directions"] = (17 if inputs.weighted else 5) * int(layout.stored[rank])
    return found


def _labels(training: Training, own: int, stored: int) -> int:
    """Bytes of what is known of so many own rows, or of their stored entries."""
    inputs, each = training.inputs, 4
    if training.case.goal == "values":
        each = 12 * inputs.classes
    elif inputs.several:
        each = 5 * inputs.classes
    if training.case.level == "edge":
        once = 2 * each + 5  # of each edge besides
        return (
            (each + 6) * stored
            + once * (stored // 2)
            + ENTRY * (round(inputs.learned * stored) + stored // 2)
        )
    if not inputs.graphs:
        return own * (4 + 4 + each)
    return 4 * own + (12 + each) * round(own * inputs.graphs / max(training.layout.total_rows, 1))


def in_training(training: Training, rank: int) -> dict[str, int]:
    """Bytes that training adds, by what they are for."""
    inputs, own = training.inputs, int(training.layout.rows[rank])
    engine = training.engine
    dropped = bool(training.case.input_dropout) and inputs.dense and training.limited is None
    kept = 0 if _elsewhere(training) else 4 * own * inputs.features * (len(engine.kept) + dropped)
    buffers = 4 * own * engine.plan.columns
    limited, on_their_way = training.limited, 0
    if limited is not None:
        buffers = min(training.budget.limit, limited.bounds()[1])
        if training.budget.tier(training.device) == "file":
            on_their_way = 2 * max(max(each.sizes, default=0) for each in limited.epochs().values())
    terms = {
        "buffers": buffers,
        "on their way": on_their_way,
        "exchange": exchange(training, rank),
        "fewer columns": fewer_columns(training, rank),
        "fewer edges": fewer_edges(training, rank),
        "tiles": tiles(training, rank),
        "kept features": kept,
        "factors": 4 * own * (2 + len(engine.kept)),
        "views": views(training, rank),
        "pairs": pairs_apart(training, rank) if training.case.level == "link" else 0,
        "passes": passes_over_all(training, rank),
        "edge sums": edge_sums(training, rank),
        "scores of edges": edge_scores(training, rank),
        "gradients": gradients(training, rank),
    }
    return {name: found for name, found in terms.items() if found}


def passes_over_all(training: Training, rank: int) -> int:
    """Bytes that passes of attention to all nodes make for a moment."""
    specs = layer_specs(training.case, training.inputs.classes)
    heads = [each.heads for each in specs if getattr(LAYERS.get(each.kind), "hears_all", False)]
    return 4 * int(training.layout.rows[rank]) * (OF_HEAD * max(heads) + OF_PASS) if heads else 0


def _elsewhere(training: Training) -> bool:
    """Whether dense features are in a slow tier that is not the memory counted here."""
    device, limited = training.device, training.limited
    if limited is None or not training.inputs.dense:
        return False
    return device.xp is not np or training.budget.tier(device) == "file"


def fewer_columns(training: Training, rank: int) -> int:
    """Bytes of the matrices of layers that read only some columns of A, and of the flags of rows."""
    layout, products = training.layout, training.engine.products
    stored, rows = int(layout.stored[rank]), int(layout.rows[rank])
    index = 4 if max(stored, layout.extended(rank)) < 1 << 31 else 8
    values = 4 if training.inputs.weighted and training.case.edge_weights else 0
    flagged = sum(training.shares[layer] <= MOST_ENTRIES for layer in {layer for layer, _ in products})
    matrices = sum(share > 0 for share in training.copies)
    tiles = layout.ranks if layout.mode == "staged" else 1
    stored = stored // 2 if training.directed else stored
    entries = round((index + values) * sum(training.copies) * stored)
    return entries + index * (rows + 1) * tiles * matrices + 4 * rows * flagged


def fewer_edges(training: Training, rank: int) -> int:
    """Bytes of the features of edges, and of their matrices, that layers have of their own."""
    layout, kept = training.layout, set(training.fewer_edges.values())
    stored, rows = int(layout.stored[rank]) // (1 + training.directed), int(layout.rows[rank])
    index = 4 if max(stored, layout.extended(rank)) < 1 << 31 else 8
    entries = round(sum(training.shares[layer] for layer in kept) * stored)
    return 2 * (entries * (index + 4 * training.inputs.edges) + index * (rows + 1) * len(kept))


def tiles(training: Training, rank: int) -> int:
    """Bytes of the second copies of the matrices that are laid out by tiles."""
    if not training.case.epochs or training.budget.limit or training.inputs.dropped:
        return 0
    layout, copies = training.layout, training.copies
    staged = layout.mode == "staged"
    parts = layout.ranks if staged else 1
    shape = int(layout.rows[rank]), int(layout.rows.max()) if staged else layout.extended(rank)
    weighted = bool(training.inputs.weighted and training.case.edge_weights)
    copied = {layer for layer, share in enumerate(copies) if share > 0}
    total = 0
    stored = int(layout.stored[rank]) / (2 if training.directed else 1)
    widest = widest_products(training.engine.recorded["epoch"], copied, training.directed)
    for matrix, width in widest.items():
        entries = round((copies[matrix] if isinstance(matrix, int) else 1) * stored / parts)
        total += parts * training.device.tiled_bytes(shape, entries, weighted, width)
    return total


def exchange(training: Training, rank: int) -> int:
    """Bytes that hold rows on their way, kept from one exchange to the next."""
    layout, engine = training.layout, training.engine
    if layout.ranks == 1:
        return 0
    recorded = [each for operations in engine.recorded.values() for each in operations]
    turns = {each.exchanges for each in recorded if _in_turns(each)}
    widths = [width for each in recorded if not _in_turns(each) for width in each.exchanges]
    widths += [min(width, KEPT_COLUMNS) for width in engine.kept.values()]
    staged = [each.shape[1] for each in recorded if each.sparse and each.kind == "gram"]
    widest, sent, held = max(widths, default=0), 0, 0
    if layout.mode == "staged":
        staged.append(widest)
    else:
        sent = int(layout.sent[rank]) if layout.mode == "halo" else 0
        held = layout.extended(rank)
    stages = len({turn % 2 for turn in range(layout.ranks) if turn != rank})
    pieces = sum(max((width for each in turns for width in each[turn::2]), default=0) for turn in range(2))
    pieces *= held + sent + int(layout.rows[rank])
    return 4 * (widest * (held + sent) + pieces + stages * int(layout.rows.max()) * max(staged, default=0))


def _in_turns(each: Operation) -> bool:
    """Whether the columns of its rows travel some after the others, the next ones under way meanwhile."""
    return each.name.startswith("messages") and len(each.exchanges) > 1


def views(training: Training, rank: int) -> int:
    """Bytes of the matrices of views, and of matrices of columns with columns."""
    if training.case.level != "embed":
        return 0
    layout, inputs = training.layout, training.inputs
    stored, d = int(layout.stored[rank]), inputs.classes
    index = 4 if max(stored, layout.extended(rank)) < 1 << 31 else 8
    values = 4 if inputs.weighted and training.case.edge_weights else 0
    entries = len(VIEWS) * (index + values) * (1 - inputs.dropped) + 1  # and which are kept
    matrices = len(VIEWS) * index * (int(layout.rows[rank]) + 1) + round(entries * stored)
    columns = 4 * 3 * d * d * (training.roots[rank] + 1) + VIEW_MATRICES * 8 * d * d
    return matrices * bool(inputs.dropped) + columns


def pairs_apart(training: Training, rank: int) -> int:
    """Of links the pairs of an epoch that no edge joins."""
    each = APART if training.inputs.ranks == 0 else RANKED
    return round(each * training.inputs.apart * int(training.layout.stored[rank]))


def edge_sums(training: Training, rank: int) -> int:
    """Bytes of the sums over the entries of each row block that make the gradient of W_e and b_e, and of
    what the device holds of entries meanwhile."""
    recorded = training.engine.recorded["epoch"]
    found = [each.exchanges for each in recorded if each.name == "messages_back"]
    attended = [each.shape[1] for each in recorded if each.name == "attend_back edges, weights"]
    if attended:
        return _attended_sums(training, rank, max(attended))
    if not found:
        return 0
    columns, kinds = training.inputs.edge_width, training.case.edge_feature_rows == "one_hot"
    stored, apart = int(training.layout.stored[rank]) // (1 + training.directed), training.layout.ranks > 1
    held = max(max(each) if apart else sum(each) for each in found)
    widest = max(sum(each) * (2 if apart and len(each) > 1 else 1) for each in found)  # by pieces, and whole
    sums = 4 * int(training.layout.blocks[rank]) * (columns + 1) * widest
    return sums + training.device.edge_bytes(stored, held, columns, kinds)


def _attended_sums(training: Training, rank: int, m: int) -> int:
    """The same of attention that reads E W of m columns: of entries, of loops and both together; of a vector
    of attention as many columns as a layer has, twice; and what the device holds of entries meanwhile."""
    columns, inputs = training.inputs.edge_width, training.inputs
    widest = max(
        shape[1] for name, shape in training.engine.params.shapes.items() if name.endswith(".W_edge")
    )
    sums = 4 * int(training.layout.blocks[rank]) * (3 * columns * m + 2 * (columns + 1) * widest)
    stored, kinds = int(training.layout.stored[rank]), training.case.edge_feature_rows == "one_hot"
    return sums + training.device.attended_bytes(stored, widest, columns, kinds) * bool(inputs.edges)


def edge_scores(training: Training, rank: int) -> int:
    """Bytes of the scores of edges, and of what a head makes of some edges at a time."""
    inputs, layout = training.inputs, training.layout
    if training.case.level != "edge":
        return 0
    stored, h = int(layout.stored[rank]), training.case.hidden
    of_block = stored // max(int(layout.blocks[rank]), 1)
    piece = min(max(PIECE if training.device.xp is np else LARGE_PIECE, of_block), stored)
    sums = 4 * int(layout.blocks[rank]) * (inputs.edges + inputs.classes + 2) * max(h, inputs.classes)
    return (12 * inputs.classes + RANKING) * (stored // 2) + 4 * piece * HEAD_ARRAYS * h + sums


def gradients(training: Training, rank: int) -> int:
    """Bytes of parameters, optimiser and addends."""
    own, all_of = training.roots[rank], sum(training.roots)
    addends = training.parameters - training.engine.direct
    largest = max(training.engine.params.shapes.values(), key=lambda shape: shape[0] * shape[-1])
    found = own * largest[0] * largest[-1]  # of one parameter, before they go to their place
    if training.layout.ranks == 1:
        gathered = 0
    elif training.slices(addends):  # padded, by ranks, and the slice of all ranks' addends
        gathered = 2 * own + all_of / training.layout.ranks
    else:
        gathered = all_of
    copies = COPIES[training.case.optimiser] * training.parameters
    return 4 * round(copies + addends * (own + gathered) + found)


def peak(training: Training, rank: int, base: int = 0) -> dict[str, int]:
    """Bytes of a rank in training, by what they are for."""
    return {"base": base} | at_rest(training, rank) | in_training(training, rank)


def afterwards(training: Training, rank: int, smoothed: bool) -> dict[str, int]:
    """Bytes of what follows once training has ended, see `propagation`, `judging` and `mixing`."""
    return propagation(training, rank, smoothed) | judging(training, rank) | mixing(training, rank)


def mixing(training: Training, rank: int) -> dict[str, int]:
    """Bytes of what several networks say together (gnn/ensemble.py); none of one."""
    case, own, columns = training.case, int(training.layout.rows[rank]), training.inputs.classes
    if case.members == 1:
        return {}
    each = columns if training.inputs.several or case.goal == "values" else 1
    return {"members": own * (MOMENTS * columns + 4 * case.members * each)}


def judging(training: Training, rank: int) -> dict[str, int]:
    """Bytes of what tells how good vectors are; none of other levels."""
    inputs, layout = training.inputs, training.layout
    if training.case.level != "embed":
        return {}
    own, d = int(layout.rows[rank]), inputs.classes
    parts = [20 * d * own, (8 * inputs.clusters + 16 * d) * own if inputs.clusters else 0]
    if inputs.probed:
        parts.append(14 * inputs.features * own if inputs.dense else 24 * inputs.stored // layout.ranks)
        parts.append(_eigenvectors(layout.total_rows, int(layout.stored.sum()), d))
    return {"judging": max(parts)}


def _eigenvectors(n: int, entries: int, d: int) -> int:
    """Bytes of eigenvectors beside vectors of d columns; 0: there are none of so large a graph."""
    small = n <= spectral.MOST_NODES and entries <= spectral.MOST_ENTRIES
    return (44 * min(d, spectral.COLUMNS) * n + 70 * entries) * small


def propagation(training: Training, rank: int, smoothed: bool) -> dict[str, int]:
    """Bytes of what label propagation, and Correct and Smooth, take once training has ended; none of what is
    not of nodes.

    smoothed   whether Correct and Smooth follows
    """
    case, own, columns = training.case, int(training.layout.rows[rank]), training.inputs.classes
    if case.level != "node" or not (case.baselines or smoothed):
        return {}
    alone = training.inputs.several or case.goal == "values"  # of these it is known or not by column, too
    host = max(8 if alone else 4, 7 if smoothed else 0) * columns if training.device.xp is np else 0
    device = 0 if training.limited is not None else ARRAYS * min(columns * (1 + alone), COLUMNS)
    return {"propagation": 4 * own * (host + device)}


def mg_gcn_rule(training: Training, rank: int) -> int:
    """MG-GCN's L+3 buffers of n_p rows of the layers' mean width (section 4.2), bytes."""
    widths = [
        each.f_out for each in Model(training.case, training.inputs.features, training.inputs.classes).blocks
    ]
    mean = sum(widths) / len(widths)
    return round(4 * int(training.layout.rows[rank]) * (len(widths) + 3) * mean)
