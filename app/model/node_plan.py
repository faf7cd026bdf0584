"""What classifying nodes will take: memory, bytes and seconds of an epoch, from headers alone (--dry-run)."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from app.case.config import Case
from app.case.embed import EmbedCase, reads_clusters
from app.case.gnn import GnnCase
from app.case.graph import PLANTED, WORDS
from app.errors import CaseError
from app.gnn.categories import count_categories
from app.gnn.edges import no_edge_features
from app.gnn.embed.embedder import live_case
from app.gnn.explain.attribution import passes_of
from app.gnn.explain.network import reach_of
from app.gnn.inputs import BY_COLUMN, NOT_DENSE
from app.gnn.missing import STEPS as FILLING
from app.gnn.model import Model, case_reads_edges, edge_reader
from app.gnn.plain import STEPS
from app.gnn.positions import COLUMNS, parse_positions, walk_work, width_of, work_words
from app.gnn.rehearsal import memory_lines
from app.gnn.saved import SavedModel, load_model
from app.gnn.smoothing import TRIED
from app.graphs.formats.source import Limits
from app.graphs.generators.random_nodes import RANDOM_TRAIN
from app.graphs.keys import union
from app.graphs.nodes.data import TRAIN, DenseFeatures, Labels, NodeTable, Splits, no_labels
from app.graphs.nodes.degrees import RANGES
from app.graphs.nodes.files import open_edge_table, open_node_table
from app.graphs.nodes.keyed import Nodes
from app.memory.tiers import TierBudget
from app.model import gnn_memory
from app.model.counts import classified_counts, edge_features_of, graphs_of, streams_of
from app.model.defaults import DEFAULTS
from app.model.gnn import Training, traffic
from app.model.gnn_inputs import Inputs, Ranked
from app.model.layout import estimate
from app.model.memory import Need, size, total, whole_graph, words
from app.model.rates import Rates
from app.model.terms import Term
from app.model.whole import decided_by_case, is_small, said_whole
from app.partition.generators import second_side
from app.partition.stands_for import is_set

UNLABELLED = ("link", "embed")  # values of gnn.level that need no labels
SOME = 16  # categories of a column that is not read through
UNKNOWN = "the memory of the layers, and what moves under memory.fast_mb, is known once the graph is read"
PATTERN_ENTRY = {"core": 8, "triangles": 40, "laplacian": 55}  # bytes of an entry, by tracemalloc


def node_plan_lines(
    case: Case, nodes: int | None, entries: int, ranks: int, device: Any, rates: Rates
) -> Iterator[str]:
    """The buffers of an epoch and, where they pass memory.fast_mb, the plan of what moves; estimates.

    nodes     of the graph, None: not known before it is read
    entries   stored ones of its matrix, 0: not known
    Every rank is taken to own an equal share of the rows, whose neighbours are anywhere.
    """
    if not nodes or not case.gnn.epochs:
        yield UNKNOWN
        return
    training = training_of(case, nodes, entries, ranks, device)
    if entries and learns_whole(case, training):
        training = on_one_rank(case, training)
        yield said_whole(case)
    yield from filled_lines(training)
    yield from position_lines(case, training)
    yield from memory_lines(training.engine, training.limited, training.budget)
    if said := products_words(case, training.inputs.classes):
        yield said
    if entries:
        yield from estimate_lines(training, rates, case.smooth.method != "none")
        yield from ranking_lines(training, rates)
        yield from explained_lines(case, training)
    else:
        yield "its header has no counts of edges: time is known once the graph is read"


def training_of(
    case: Case, nodes: int, entries: int, ranks: int, device: Any, count_classes: bool = True
) -> Training:
    """The counts of a training on a graph of which only sizes are known.

    count_classes   False: labels and features are not read through to see how many classes and categories
                    they have, 2 and SOME are assumed
    Raises CaseError where nodes have no labels to learn.
    """
    saved = load_model(case.gnn.weights) if case.gnn.weights else None
    inputs, gnn = _inputs(case, nodes, count_classes), saved.architecture_of(case.gnn) if saved else case.gnn
    if not (saved or inputs.classes or gnn.level in UNLABELLED):
        raise CaseError(no_labels(gnn.level))
    if gnn.feature_rows in BY_COLUMN and not inputs.dense:
        raise CaseError(NOT_DENSE.format("these are sparse, or there are none", gnn.feature_rows))
    if gnn.feature_rows == "one_hot":
        width = saved.categories if saved else _categories(case, nodes, inputs.features, count_classes)
        inputs = replace(inputs, features=width, stored=nodes * inputs.features)
    given = bool(inputs.features and not own_columns(inputs, nodes))
    inputs = beside(inputs, gnn, nodes, inputs.features if given else 0)
    reads = case_reads_edges(gnn) or (gnn.level == "edge" and edge_features_of(case) is not None)
    given, width = _edge_columns(case, edge_reader(gnn), saved, count_classes) if reads else (0, 0)
    inputs = replace(inputs, edges=given, edge_width=width)
    return training_by(case, case.run.name, nodes, entries, inputs, ranks, device, saved)


def training_by(
    case: Case, name: str, nodes: int, entries: int, inputs: Inputs, ranks: int, device: Any,
    saved: SavedModel | None = None,
) -> Training:  # fmt: skip
    """The counts of a training of a case on a graph of so many nodes and stored entries.

    inputs   features and labels; what a level makes of them is still to be entered
    saved    the weights that it begins with; None: drawn ones
    """
    gnn = case.gnn
    if gnn.level == "link":  # each row has all pairs of its node
        apart = _pairs_apart(case, nodes, entries)
        inputs = replace(
            inputs, classes=case.links.dimension, train=1.0, apart=apart, ranks=_rounds(case, nodes),
            ranked=_ranked(case, nodes, entries),
        )  # fmt: skip
    if gnn.level == "embed":
        inputs, gnn = _of_vectors(inputs, gnn, case.embed), live_case(gnn, case.embed)
    if saved:
        gnn, inputs = saved.architecture_of(gnn), replace(inputs, classes=saved.classes)
    if gnn.level == "edge":  # nodes that a training edge joins are in the loss
        joined = 1 - (1 - inputs.train) ** (entries / max(nodes, 1))
        inputs = replace(inputs, learned=inputs.train, train=joined)
    width = 0 if inputs.edge_width else gnn.hidden  # without stages
    layout = estimate(name, nodes, entries, ranks, case.parallel.exchange, width)
    directed = case.graph.neighbours != "both"
    return Training(device, gnn, inputs, layout, budget=TierBudget.of(case.memory), directed=directed)


def learns_whole(case: Case, training: Training, crowded: bool = False) -> bool:
    """Whether every rank of a training holds the whole graph, and one learns (model/whole.py).

    crowded   some host has fewer cores than ranks, and room for all of it on each of them
    """
    layout, inputs = training.layout, training.inputs
    nbytes = whole_graph(layout.n, layout.entries // 2)
    nbytes += 4 * layout.n * inputs.features if inputs.dense else 8 * inputs.stored
    decided = decided_by_case(case, layout.ranks, nbytes)
    if decided is not None:
        return decided
    alone = on_one_rank(case, training).mean_epoch(0)
    return is_small(alone, training.mean_epoch(layout.heaviest), layout.ranks, crowded)


def on_one_rank(case: Case, training: Training) -> Training:
    """The same training on one rank."""
    if training.layout.ranks == 1:
        return training
    layout, inputs = training.layout, training.inputs
    width = 0 if inputs.edge_width else training.case.hidden
    layout = estimate(layout.name, layout.n, layout.entries, 1, case.parallel.exchange, width)
    return Training(
        training.device, training.case, inputs, layout, budget=training.budget, directed=training.directed
    )


def _of_vectors(inputs: Inputs, gnn: GnnCase, embed: EmbedCase) -> Inputs:
    """What vectors are learned from, all nodes, and what tells how good they are; inputs: with labels."""
    probed = bool(gnn.baselines and embed.probe_epochs and inputs.classes)
    return replace(
        inputs, classes=embed.dimension, train=1.0, several=False, probed=probed,
        dropped=embed.edge_drop if gnn.epochs else 0.0,
        clusters=reads_clusters(embed, 0 if inputs.several else inputs.classes),
    )  # fmt: skip


def _rounds(case: Case, nodes: int) -> int:
    """Of links.loss = "bpr" the pairs apart of a node; 0: of other losses."""
    return min(int(case.links.negatives), max(nodes - 1, 1)) if case.links.loss == "bpr" else 0


def _ranked(case: Case, nodes: int, entries: int) -> Ranked | None:
    """The rankings that links.rank_each asks for, about: of files the two sides are taken to be equal."""
    links, sides = case.links, case.links.between == "sides"
    if not links.rank_each:
        return None
    drawn = case.graph.generator == "bipartite"
    second = second_side(case.graph, nodes) if drawn else nodes // 2
    first, candidates = (nodes - second, second) if sides else (nodes, nodes)
    ends = entries / 2 if sides else entries

    def met(share: float) -> float:
        """Nodes of the first side that some of these edges are of."""
        return first * (1 - math.exp(-share * ends / max(first, 1)))

    both = met(links.validation + links.held_out)
    return Ranked(met(links.validation), both, candidates, links.rank_each, sides)


def _pairs_apart(case: Case, nodes: int, entries: int) -> float:
    """Of links: pairs apart of an epoch for each edge, of which there may be no more."""
    links, entries = case.links, max(entries, 1)
    drawn = links.negatives if links.loss == "logistic" else 2 * links.negatives * nodes / entries
    return min(drawn, nodes * (nodes - 1) / entries)


def needs_of_layers(case: Case, ranks: int, device: object) -> Iterator[Need]:
    """What a rank holds of the graph of a case, where its counts are known before reading."""
    nodes, entries = classified_counts(case)
    if nodes and entries and case.gnn.epochs:
        yield need_of_layers(case, nodes, entries, ranks, device)


def need_of_layers(case: Case, nodes: int, entries: int, ranks: int, device: object) -> Need:
    """Of training a network on all nodes of a graph."""
    training = training_of(case, nodes, entries, ranks, device, count_classes=False)
    return need_of(case, on_one_rank(case, training) if learns_whole(case, training) else training)


def need_of(case: Case, training: Training) -> Need:
    """Of its rank that holds most."""
    rank = training.layout.heaviest
    held = gnn_memory.peak(training, rank, DEFAULTS.base_bytes)
    return Need(case.run.name, held | gnn_memory.afterwards(training, rank, case.smooth.method != "none"))


def estimate_lines(training: Training, rates: Rates, smoothed: bool) -> Iterator[str]:
    """Memory of a rank, and bytes and seconds of an epoch with its evaluations, as lines of text.

    smoothed   whether Correct and Smooth follows the training
    """
    layout, rank = training.layout, training.layout.heaviest
    held = gnn_memory.peak(training, rank, rates.calibration.base_bytes)
    held |= gnn_memory.afterwards(training, rank, smoothed)
    ranks = f"{layout.ranks} rank{'s' * (layout.ranks > 1)}"
    yield f"{size(total(held))} a rank on {ranks} (exchange {layout.mode}): {words(held)}"
    terms = training.mean_epoch(rank)
    yield f"an epoch with its evaluations: {time_words(rates.total(terms))} ({parts_words(rates, terms)})"
    for phase, (sent, received) in traffic(terms).items():
        yield f"an epoch, {phase}: {size(sent)} sent, {size(received)} received by a rank"


def ranking_lines(training: Training, rates: Rates) -> Iterator[str]:
    """Of links with rankings what these take once training has ended."""
    if asked := training.inputs.ranked:
        seconds = time_words(rates.total(training.last(training.layout.heaviest)))
        pairs = f"{round(asked.nodes)} nodes among {asked.candidates} each"
        yield f"once training has ended: partners of {pairs} are ranked, by three plain rules too: {seconds}"


def filled_lines(training: Training) -> Iterator[str]:
    """What filling missing features takes before training begins."""
    way, width = training.case.missing_features, training.inputs.features
    if way == "refuse":
        return
    steps = f", {FILLING} products with the graph of those of {width} columns that lack some, and up to as "
    steps = f"{steps}many to see what is reached" if way == "propagate" else ""
    copy = size(4 * training.layout.n / training.layout.ranks * width)
    yield f"before training: missing features are filled, {copy} a rank for a copy of all{steps}"


def own_columns(inputs: Inputs, nodes: int) -> bool:
    """Whether each node has a feature of its own, for want of others."""
    return inputs.features == inputs.stored == nodes and not inputs.graphs


def beside(inputs: Inputs, gnn: GnnCase, nodes: int, given: int) -> Inputs:
    """The inputs with positions; given: columns of features, 0: positions stand in the place of none."""
    width = width_of(gnn.positions)
    if not width:
        return inputs
    if not given:
        return replace(inputs, features=width, stored=0)
    stored = inputs.stored + nodes * width if inputs.stored else 0
    return replace(inputs, features=inputs.features + width, stored=stored)


def position_lines(case: Case, training: Training) -> Iterator[str]:
    """What positions take before training begins; of sets graphs are taken to be of equal size."""
    gnn, layout, graphs = training.case, training.layout, training.inputs.graphs
    if not gnn.positions:
        return
    most = layout.n // graphs if graphs else layout.n
    rows = layout.n / layout.ranks
    memory = size(4 * rows * (3 * width_of(gnn.positions) + 4 * min(COLUMNS, most)))
    said = work_words(gnn, layout.entries, most)
    if 1e-9 * walk_work(gnn.positions, layout.entries, most) > gnn.position_work:
        said += f", more than gnn.position_work = {gnn.position_work:g}, which refuses them"
    yield f"before training: {said}; up to {memory} a rank beside the features"
    pattern = {"core", "triangles", "laplacian"} & {each.kind for each in parse_positions(gnn.positions)}
    if pattern:
        whole, of = size(16 * layout.entries), " and ".join(sorted(pattern))
        making = size(max(PATTERN_ENTRY[each] for each in pattern) * layout.entries)
        taken = f"{whole} a rank for it, and {making} there to make them"
        yield f"before training: {of} of the whole graph on the first rank, {taken}"


def explained_lines(case: Case, training: Training) -> Iterator[str]:
    """What explanations of predictions take once training has ended: passes of each network over receptive
    fields, whose sizes are those of a tree of the mean degree, of two trees where both ends of an edge or a
    link are read, at most those of the graph; of sets those of a graph. Raises CaseError."""
    asked, (nodes, entries) = case.output.explain, (training.layout.n, training.layout.entries)
    if not asked:
        return
    count = asked if isinstance(asked, int) else len(asked)
    model = Model(training.case, 1, training.inputs.classes)
    if graphs := training.inputs.graphs:
        k, e = nodes / graphs, entries / 2 / graphs
    else:
        reach, degree = reach_of(model), entries / max(nodes, 1)
        trees = 1 + (training.case.level in ("edge", "link"))
        k = min(trees * sum(degree**hop for hop in range(reach.hops + 1)), nodes)
        e = entries / 2 if reach.below else min(k * degree / 2, entries / 2)
        k = nodes if reach.all else k
    fewest, longest = passes_of(2 + (training.inputs.edges > 0))
    several = f", by each of {training.case.members} networks" if training.case.members > 1 else ""
    passes = f"{fewest} to {longest} passes over what it depends on{several}"
    sizes = f"{k:.0f} nodes and {e:.0f} edges where degrees are alike"
    most = f"at most {case.memory.whole_graph_mb:g} MB (memory.whole_graph_mb)"
    yield f"once training has ended: explanations of {count} predictions, each by {passes}, {sizes}, {most}"


def products_words(case: Case, columns: int) -> str:
    """How many products with the graph plain rules, and Correct and Smooth, make once training has ended."""
    gnn, smooth = case.gnn, case.smooth
    if gnn.level == "embed":
        return vectors_words(case)
    if gnn.level != "node":
        return ""
    steps = {"none": 0, "both": 2, "auto": TRIED + 2}.get(smooth.method, 1) * smooth.steps
    parts = [f"{STEPS} of label propagation"] * gnn.baselines
    parts += [f"{'up to ' if smooth.method == 'auto' else ''}{steps} of smoothing"] * bool(steps)
    text = " and ".join(parts)
    return text and f"once training has ended: {text}, products with the graph of {columns} columns"


def vectors_words(case: Case) -> str:
    """What is made of vectors once training has ended."""
    embed, table = case.embed, case.graph
    labelled = bool(table.labels or table.generator or table.path)
    parts = []
    if embed.probe_epochs and labelled:
        tried = len(embed.probe_decays)
        rules = ", of the features, of propagated ones and of eigenvectors" * case.gnn.baselines
        parts.append(
            f"linear classifiers of the vectors{rules}, up to {tried} x {embed.probe_epochs} epochs each"
        )
    if embed.clusters or labelled:
        parts.append(f"{embed.starts} starts of k-means")
    text = "; ".join(parts)
    return text and f"once training has ended, where there are labels: {text}"


def parts_words(rates: Rates, terms: list[Term]) -> str:
    """Seconds by part, the longest first."""
    found = sorted(rates.by_part(terms).items(), key=lambda each: -each[1])
    return ", ".join(f"{part} {time_words(seconds)}" for part, seconds in found if seconds)


def time_words(seconds: float) -> str:
    """In ms or s."""
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _inputs(case: Case, nodes: int, count_classes: bool) -> Inputs:
    """Features, their entries where they are sparse, and classes; without features every node has its own."""
    table, whole = case.graph, is_set(case)
    degrees = table.features == WORDS["features"]
    graphs = graphs_of(case) if whole else 0
    own = RANGES if whole or degrees else nodes  # columns of nodes that have no features
    edges = case.gnn.level == "edge"
    if table.generator:
        features = 0 if degrees else table.random_features
        train = RANDOM_TRAIN if table.random_classes else 1.0
        columns = min(table.random_classes, 1) if case.gnn.goal == "values" else table.random_classes
        columns = min(columns, 2) if edges and table.generator in PLANTED else columns
        return Inputs(features or own, columns, 0 if features else nodes, train=train, graphs=graphs)
    found, classes, more = _table_of(case, nodes), 0, {"graphs": graphs}
    if edges:
        found = replace(found, **_edge_table_of(case))
    if found.labels is not None:
        classes = found.labels.columns or (_count_classes(found.labels) if count_classes else 2)
        more["several"] = found.labels.columns > 0 and not found.labels.values
    random = (table.edge_splits if edges else table.splits) == "random"
    train = RANDOM_TRAIN if random else _share_of_training(found.splits)
    if degrees or found.features is None:
        return Inputs(own, classes, nodes, train=train, **more)
    dense = isinstance(found.features, DenseFeatures)
    stored = 0 if dense else max(int(found.features.indptr[-1]), 1)
    return Inputs(found.features.width, classes, stored, train=train, **more)


def _edge_table_of(case: Case) -> dict[str, Any]:
    """Labels and splits that the files of a case say of its edges, their headers read."""
    table = case.graph
    limits = Limits(int(case.memory.max_decompressed_gb * 1e9))
    by = Nodes() if table.edge_data_by == "ends" else None
    splits = "" if table.edge_splits == WORDS["edge_splits"] else table.edge_splits
    stream = next(iter(streams_of(case)), None)
    count = lambda: sum(len(u) for u, _, _ in stream.chunks())  # noqa: E731
    values = case.gnn.goal == "values"
    labels, found, *_ = open_edge_table(stream, table.edge_labels, splits, limits, values, by, count)
    return {"labels": labels, "splits": found}


def _table_of(case: Case, nodes: int) -> NodeTable:
    """What the files of a case say of its nodes, their headers read."""
    table, whole = case.graph, is_set(case)
    limits = Limits(int(case.memory.max_decompressed_gb * 1e9))
    paths = [table.path] if isinstance(table.path, str) else list(table.path)
    by = Nodes() if table.node_data_by == "id" else None
    features = "" if table.features == WORDS["features"] else table.features
    count, values = graphs_of(case) if whole else nodes, case.gnn.goal == "values"
    files = features, table.labels, table.splits
    return open_node_table(paths, table.format, count, limits, *files, by, values, whole)


def _categories(case: Case, nodes: int, columns: int, count: bool) -> int:
    """How many categories the columns of features have, of all nodes."""
    return count_categories(_table_of(case, nodes).features.parts()) if count else SOME * columns


def _edge_columns(case: Case, kind: str, saved: SavedModel | None, count: bool) -> tuple[int, int]:
    """Columns of the features of edges as given, and as layers of a kind read them. Raises CaseError without
    any."""
    told = edge_features_of(case)
    if told is None:
        raise CaseError(no_edge_features(case.run.name, kind))
    if saved is not None and saved.edges is not None:
        return told.width, saved.edges.width
    if case.gnn.edge_feature_rows != "one_hot":
        return told.width, told.width
    return told.width, count_categories(told.parts()) if count else SOME * told.width


def _share_of_training(splits: Splits | None) -> float:
    """How many of the nodes are trained on, from 0 to 1."""
    if splits is None or not splits.n:
        return 1.0
    return float(np.count_nonzero(splits.flags & TRAIN)) / splits.n


def _count_classes(labels: Labels) -> int:
    """How many different classes occur."""
    seen = np.empty(0, dtype=np.int64)
    for part in labels.parts():
        seen = union(seen, part)
    return int((seen >= 0).sum())
