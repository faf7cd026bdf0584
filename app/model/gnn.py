"""Full-batch training of a graph network as counts: what each rank computes, sends and receives in an epoch.

MG-GCN (sections 4 and 5.1) counts one exchange of n d numbers a product; here the operations of an epoch are
those that the layers themselves recorded in a dry run (gnn/rehearsal.py), and a Layout tells what each rank
holds and sends. With n_p rows, e_p stored entries and g_p ghost rows of rank p, and R_p subtrees of blocks
that it owns whole (comm/tree.py), the terms (app/model/terms.py states their amounts) are, for f columns:

    product A X        e_p f multiply-adds, or the share of them that the loss depends on (gnn/reach.py);
                       rows travel: halo 4 f (rows sent), 4 f g_p received; gather and
                       staged 4 f n_p (P-1) sent, 4 f (n - n_p) received
    X W, X^T D         n_p k m multiply-adds; of sparse features one for each entry and column of W
    X^T D, sparse X    the rows of D travel staged, then the rows of the gradient are gathered
    attention          what weighs an entry, for each of them and each head
    attention to all   n_p f (f + 1) multiply-adds of sums over all nodes, n_p f (f + h) of products with them
                       for h heads, as often again and once more backward; f (f + 1) and f (f + h) addends
    elementwise        one pass over n_p f numbers for each array beyond the first that is touched
    a head of edges    of each edge from both ends, for h hidden columns: passes over h numbers, and products
                       of h with as many columns as there are classes; calls for each piece of entries, of
                       which a large graph has one for each block of rows
    pairs              of links: those that are not joined are drawn, and looked for among neighbours; of all
                       scores, losses and sums of rows from both ends
    a ranking          of k nodes among c candidates: products of d numbers, passes over the k c scores, and
                       what a list costs; by walks also passes over the entries for each node
    calls              what an operation costs beside work that grows with the graph
    gradients          R_p addends of all parameters, and of the loss, to all ranks; whole, or by slices of
                       the columns (comm/ordered.py)
    evaluation         a forward pass, and integers to add up
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from app.case.gnn import GnnCase
from app.case.rules.networks import OF_RANKINGS
from app.comm.tree import owned_roots
from app.gnn.edge_level.entries import most_entries
from app.gnn.edge_level.head import ROWS as HEAD_ROWS
from app.gnn.embed.views import VIEWS
from app.gnn.engine import KEPT_COLUMNS, Engine, power_of
from app.gnn.model import layer_specs, rows_apart
from app.gnn.pieces import cut_rows
from app.gnn.reach import BACKWARD, copied_shares, expected_shares, fewer_edges, whole_below
from app.gnn.rehearsal import DenseWidth, SparseWidth, rehearse
from app.graphs.nodes.data import SPLITS
from app.memory.operations import Operation
from app.memory.tiers import TierBudget
from app.model.layout import Layout
from app.model.terms import MESSAGES, Term, Terms, by_slices
from app.partition.rows import block_count, block_starts

INTEGER = 8  # bytes of a number of hits
NO_LIMIT = TierBudget(0)
SCORE_CALLS = 12  # operations that counting hits takes
# Numbers that a head passes over for each hidden column of an entry, and calls for each piece of entries.
HEAD_AHEAD, HEAD_BACK, PIECE_AHEAD, PIECE_BACK = 8, 25, 4, 12
# Numbers passed over for each pair that is drawn and looked for among the neighbours; calls of all.
DRAWN, DRAW_CALLS = 280, 25
# Numbers passed over for each stored entry that a view is drawn from (measured: 0.1 us an entry).
VIEW_ENTRY = 250
# Numbers that a ranking passes over: for each pair of a node and a candidate, for each node, for each of its
# K best; by walks for each pair, and for each node and entry in each of STEPS products (without sides, with).
PAIR, NODE, PLACE, WALKED_PAIR, WALKED_ENTRY, WALK_RULES, STEPS = 20, 60_000, 800, 70, 1.4, 2, (2, 3)
AGGREGATE = 8  # numbers passed over for each of an entry that four aggregators hear (measured: 3 ns)
# Passes over rows for each exchange of the sums over graphs, forward and backward (bench/set_attention.py).
PASSES_OF_SUMS = {"weigh_each": 11, "by_each": 16}
ATTEND_BACK = 2.2  # times what attention takes for an entry and a head, backward
OPTIMISER = {"adam": 4, "sgd": 2}  # passes over the parameters: Adam reads four arrays and writes three


@dataclass(frozen=True)
class Ranked:
    """Rankings of the partners of nodes, of links.

    nodes        that have an edge held out for validation, and of either set     candidates   of each
    count        K     sides   nodes are of two
    """

    validated: float
    nodes: float
    candidates: int
    count: int
    sides: bool


@dataclass(frozen=True)
class Inputs:
    """What is learned from: sizes of the features and labels.

    features   columns        stored   entries of sparse features of all nodes; 0: they are dense
    classes    columns of the last layer
    weighted   edges have weights that count
    train      share of the nodes that are in the loss
    several    a node may have several of the classes
    graphs     rows that labels are of, those of the graphs of a set; 0: of all nodes
    edges      columns of the features of edges, where layers read them; of categories edge_width those that
               they become
    apart      of links: pairs that are not joined for each edge
    ranks      of links.loss = "bpr": such pairs of a node, whose scores travel beside rows; else 0
    learned    where edges have the labels, the share of them that is learned from; else 0
    ranked     of links: rankings that are asked for
    dropped    of vectors: the share of the edges that a view leaves out
    clusters   of vectors: how many these are put in
    probed     of vectors: whether plain rules stand beside a linear classifier of them
    """

    features: int
    classes: int
    stored: int = 0
    weighted: bool = False
    train: float = 1.0
    several: bool = False
    graphs: int = 0
    edges: int = 0
    edge_width: int = 1
    apart: float = 1.0
    ranks: int = 0
    learned: float = 0.0
    ranked: Ranked | None = None
    dropped: float = 0.0
    clusters: int = 0
    probed: bool = False

    @property
    def dense(self) -> bool:
        """Whether the features are rows like all others."""
        return self.stored == 0


@dataclass
class Training:
    """Counts of full-batch training on P ranks, of which none needs to run.

    layout   what each rank holds of the graph
    owned    [ranks+1] ranges of sparse features that ranks own; None: equal shares
    shares   by layer, of the stored entries: those of rows that training needs (gnn/reach.py); empty: as of
             training nodes that are drawn
    copies   by layer, of the stored entries: those in a matrix of its own; empty: as the shares say
    budget   of [memory]: the limit of fast memory
    directed the stored entries are those of both directions of arcs; few of them are arcs both ways
    limited  the engine of a rehearsal under that limit, where it is passed
    The sums are those of run.reproducible = true.
    """

    device: Any
    case: GnnCase
    inputs: Inputs
    layout: Layout
    owned: np.ndarray | None = None
    shares: list[float] = field(default_factory=list)
    copies: list[float] = field(default_factory=list)
    budget: TierBudget = NO_LIMIT
    directed: bool = False
    engine: Engine = field(init=False)
    limited: Engine | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        layout, inputs = self.layout, self.inputs
        stored = inputs.stored // max(layout.total_rows, 1)
        sizes = int(layout.rows.max()), inputs.features, inputs.dense, inputs.classes, stored
        columns = inputs.edge_width, inputs.ranks
        self.engine = rehearse(self.device, self.case, *sizes, None, *columns)
        if 0 < self.budget.limit < int(layout.rows.max()) * self._bytes_of_row():
            blocks = block_count(sizes[0])
            cut = cut_rows(block_starts(sizes[0], blocks), 0, blocks)  # as if they were a whole graph
            self.limited = rehearse(self.device, self.case, *sizes, cut, *columns)
        cuts = np.concatenate([[0], np.cumsum(layout.blocks)])
        self.roots = [len(owned_roots(int(cuts[-1]), int(a), int(b))) for a, b in pairwise(cuts)]
        if not self.shares:
            sizes = layout.total_rows, int(layout.stored.sum())
            layers = len(layer_specs(self.case, inputs.classes))
            if self.case.level == "graph":  # what the nodes of a training graph hear is of that graph
                sizes = sizes[0], 0
            shares = expected_shares(*sizes, inputs.train, layers)
            self.shares = whole_below(shares, rows_apart(self.case, inputs.classes))
        if not self.copies:
            self.copies = copied_shares(self.shares, self.engine.products)
        if self.owned is None:
            self.owned = np.arange(layout.ranks + 1) * inputs.features // layout.ranks

    @property
    def fewer_edges(self) -> dict[int, int]:
        """The layers that have features of fewer edges, and whose these are (gnn/reach.py)."""
        reading = {each.layer for each in self.engine.recorded["epoch"] if each.name == "messages"}
        return fewer_edges(self.shares, reading) if self.case.epochs else {}

    def _bytes_of_row(self) -> int:
        inputs = self.inputs
        X = DenseWidth(inputs.features) if inputs.dense else SparseWidth(inputs.features, inputs.stored)
        return self.engine.bytes_of_row(X, bool(self.case.input_dropout and self.case.epochs))

    @property
    def parameters(self) -> int:
        """Numbers that are learned."""
        return self.engine.params.size

    def slices(self, width: int) -> bool:
        """Whether addends [roots, width] travel by slices of their columns (comm/ordered.py)."""
        return by_slices(self.layout.ranks, width, sum(self.roots))

    def epoch(self, rank: int) -> list[Term]:
        """One training epoch: forward, loss, backward, sums, the optimiser; no evaluation."""
        work = Share(self, rank, "epoch")
        work.dropped_features()
        if self.inputs.dropped:
            work.part = "views"
            work.passes("drawn", len(VIEWS) * VIEW_ENTRY * int(self.layout.stored[rank]))
        work.operations(self.engine.recorded["epoch"])
        work.part = "reduce"
        if self.case.level != "embed":  # which has it of the correlations
            work.sum_tree("loss", 1)
        work.part = "optimiser"
        work.passes("update", OPTIMISER[self.case.optimiser] * self.parameters)
        return work.terms

    def evaluation(self, rank: int) -> list[Term]:
        """A forward pass and the scores of all splits."""
        work = Share(self, rank, "evaluation")
        if self.case.level == "embed":  # the views of the epoch have told it
            return work.terms
        work.operations(self.engine.recorded["evaluation"])
        work.part = "scores"
        work.add("operation", "call", SCORE_CALLS)
        rows = int(self.layout.stored[rank]) // 2 if self.case.level == "edge" else work.own
        work.passes("hits", 4 * len(SPLITS) * rows * self.inputs.classes)
        if self.inputs.ranked and self.case.watch in OF_RANKINGS:
            work.part = "ranking"
            work.ranked("ranking", self.inputs.ranked.validated, self.inputs.classes)
            work.part = "scores"
        if self.case.goal == "values":
            work.sum_tree("scores", 2 * len(SPLITS) * self.inputs.classes)
        elif work.P > 1:
            size = INTEGER * len(SPLITS) * (4 * self.inputs.classes + 1)
            work.message("hits", "max", size, size, None)
        return work.terms

    def last(self, rank: int) -> list[Term]:
        """Rankings by the network and by plain rules, once training has ended."""
        work, asked = Share(self, rank, "last"), self.inputs.ranked
        if asked:
            work.part = "ranking"
            for _ in range(2):  # by the network, and by degrees
                work.ranked("ranking", asked.nodes, self.inputs.classes)
            work.walked(asked)
        return work.terms

    def once(self, rank: int) -> list[Term]:
        """What the first epoch does beside: products of the features that are kept, weighted degrees."""
        work = Share(self, rank, "once")
        for kind, width in self.engine.kept.items():
            _, hops = power_of(kind)
            for first in range(0, width, KEPT_COLUMNS):
                for _ in range(hops):
                    work.product("kept", min(KEPT_COLUMNS, width - first))
        if self.inputs.weighted and self.case.edge_weights:
            work.product("degrees", 1)
        return work.terms

    def mean_epoch(self, rank: int) -> list[Term]:
        """An epoch and its share of the evaluations; times of a term need not be whole."""
        share = 1 / self.case.evaluate_every
        return self.epoch(rank) + [t._replace(times=t.times * share) for t in self.evaluation(rank)]


class Share(Terms):
    """Terms of one rank, added one by one."""

    def __init__(self, training: Training, rank: int, program: str) -> None:
        super().__init__(rank, training.layout.ranks)
        self.training, self.layout, self.program = training, training.layout, program
        self.own = int(self.layout.rows[rank])

    # ---- building blocks --------------------------------------------------------------------------------

    def product(self, name: str, width: int, share: float = 1.0) -> None:
        """Y += A X: the rows that travel, and a share of the entries."""
        layout, staged = self.layout, self.layout.mode == "staged"
        self.exchange(name, width)
        held = int(layout.rows.max() if staged else layout.extended(self.rank))
        stages = self.P if staged else 1
        self.passes(f"{name}: own rows", self.own * width)
        self.passes(f"{name}: operand", held * stages * width)
        entries = round(share * int(layout.stored[self.rank]))
        self.add(name, "product", entries, self.own * stages, width, 4 * held * width, width, 0.0)

    def exchange(self, name: str, width: int) -> None:
        """Rows of `width` columns to the ranks that multiply by them (sparse/exchange.py)."""
        layout, size = self.layout, 4 * width
        if self.P == 1:
            return
        if layout.mode == "halo":
            sent, ghosts = int(layout.sent[self.rank]), int(layout.ghosts[self.rank])
            self.passes(f"{name}: packed and placed", (sent + self.own) * width)
            self.message(name, "exchange", sent * size, ghosts * size, int(layout.partners[self.rank]))
        elif layout.mode == "staged":
            self.stage(name, width)
        else:
            self.message(
                name, "gather", self.own * size * (self.P - 1), (layout.total_rows - self.own) * size, None
            )

    def stage(self, name: str, width: int) -> None:
        """All rows to all ranks, one rank's after the other."""
        if self.P > 1:
            others = self.layout.total_rows - self.own
            self.message(name, "stage", 4 * width * self.own * (self.P - 1), 4 * width * others, self.P - 1)

    def sum_tree(self, name: str, width: int) -> None:
        """The roots' addends [width] of all ranks (comm/ordered.py: sum_tree)."""
        if self.P > 1 and width:
            roots = self.training.roots
            self.sum_addends(name, width, roots[self.rank], sum(roots))

    def ranked(self, name: str, nodes: float, width: int) -> None:
        """The best candidates of nodes, of all ranks, by products of rows of `width` (gnn/links/best.py)."""
        asked = self.training.inputs.ranked
        own, candidates = nodes / self.P, asked.candidates
        self.stage(name, width)
        self.add(f"{name}: products", "wide dense", own, width, candidates, 4 * width * candidates)
        self.passes(f"{name}: scores", PAIR * own * candidates)
        self.passes(f"{name}: lists", own * (NODE + PLACE * asked.count))

    def walked(self, asked: Ranked) -> None:
        """The same by walks (gnn/links/ranking.py): all nodes' steps are made by all ranks."""
        entries, own = int(self.layout.stored[self.rank]), asked.candidates / self.P
        walks = WALK_RULES * STEPS[asked.sides] * asked.nodes
        self.passes("walks", WALKED_ENTRY * walks * entries)
        each = WALKED_PAIR * own + NODE + PLACE * asked.count
        self.passes("walks: lists", WALK_RULES * asked.nodes * each)

    # ---- operations -------------------------------------------------------------------------------------

    def dropped_features(self) -> None:
        """Dropout of the features, drawn anew in every epoch (gnn/features.py)."""
        inputs = self.training.inputs
        self.part = "features"
        if self.training.case.input_dropout:
            drawn = self.own * inputs.features if inputs.dense else 2 * self.stored_features()
            self.passes("dropped", drawn, "drop")

    def stored_features(self) -> int:
        """Entries of the rank's rows of sparse features, about."""
        return int(self.training.inputs.stored * self.own / max(self.layout.total_rows, 1))

    def operations(self, recorded: list[Operation]) -> None:
        """Terms of recorded operations, one part for each kind."""
        self.part = "calls"
        self.add("operation", "call", len(recorded))
        kinds = {
            "spmm": self._spmm, "pool": self._pool, "dense": self._dense, "gram": self._gram,
            "reduce": self._reduce, "batch_norm": self._batch_norm, "global": self._global,
        }  # fmt: skip
        for each in recorded:
            self.part = each.kind
            by_name = {
                "pairs": self._pairs,
                "edges": self._edges,
                "edge scores": self._edges,
                "views": self._views,
            }
            work = by_name.get(each.name, kinds.get(each.kind, self._elementwise))
            work(each)

    def _spmm(self, each: Operation) -> None:
        for width in each.exchanges:
            self.product(each.name, width, self._share(each))
        if each.name.startswith("attend"):
            entries = self._share(each) * int(self.layout.stored[self.rank]) + self.own
            back = ATTEND_BACK if each.name.startswith("attend_back") else 1
            self.passes(f"{each.name}: weights", back * entries * self.training.case.heads, "attend")
            if " edges" in each.name:
                k, m = max(self.training.inputs.edges, 1), each.shape[1]
                self.add(f"{each.name}: rows", "wide dense", round(entries), k, m, 4 * k * m)
                if each.name.endswith("weights"):
                    self.add(f"{each.name}: gradient", "wide gram", round(entries), k, m, 4 * k * m)
        if each.name == "aggregate":  # four times what a product does, and whose the largest ones are
            entries = self._share(each) * int(self.layout.stored[self.rank])
            self.passes(f"{each.name}: parts", AGGREGATE * entries * each.exchanges[0])
        if each.name.startswith("messages"):
            entries = round(self._share(each) * int(self.layout.stored[self.rank]))
            k, m = max(self.training.inputs.edges, 1), sum(each.exchanges)
            self.add(f"{each.name}: edges", "wide dense", entries, k, m, 4 * k * m)
            if each.name == "messages_back":
                self.add(f"{each.name}: gradient", "wide gram", entries, k, m, 4 * k * m)

    def _pairs(self, each: Operation) -> None:
        """Pairs of nodes, joined and not: rows travel for either; a score and a loss of each, and sums of
        rows. Of rankings a loss of each edge with the pairs apart of either end."""
        width, ranks = each.exchanges[0], self.training.inputs.ranks
        joined = int(self.layout.stored[self.rank])
        drawn = round(self.training.inputs.apart * joined)
        entries = joined + drawn
        self.passes("drawn", DRAWN * (2 * ranks * self.own if ranks else drawn))
        self.add("operation", "call", DRAW_CALLS)
        self.exchange(each.name, width)
        for more in each.exchanges[1:]:
            self.stage("apart", more)
        nbytes = 4 * self.layout.extended(self.rank) * width
        self.add(each.name, "product", 2 * entries, 2 * self.own, width, nbytes, width, 0.0)
        ends = 2 * ranks * joined
        self.passes(each.name, ends if ranks else entries, "loss")

    def _views(self, each: Operation) -> None:
        """What two views have in common (gnn/embed/objectives.py): three matrices of columns with columns,
        and a product with such a matrix for each view; mean, variance and gradients of columns."""
        d, inner = self.training.inputs.classes, self.own
        for _ in range(3):
            self.add(f"{each.name}: correlations", "wide gram", inner, d, d, 4 * d * d)
        for _ in VIEWS:
            self.add(f"{each.name}: gradient", "wide dense", inner, d, d, 4 * d * d)
            self.sum_tree("columns", d)
            self.sum_tree("columns", d)
            self.sum_tree("columns", 2 * d)
        self.sum_tree("correlations", 3 * d * d)

    def _edges(self, each: Operation) -> None:
        """What a head makes of the rows of both ends (gnn/edge_level/head.py): of the edges that are learned,
        from either end, forward and backward, and the gradients of its weights; or scores of all edges."""
        inputs, width, name = self.training.inputs, each.exchanges[0], each.name
        h, back = width // HEAD_ROWS, name == "edges"
        self.exchange(name, width)
        stored = int(self.layout.stored[self.rank])
        entries = round(inputs.learned * stored) if back else stored // 2
        k, m = h + inputs.edges, inputs.classes
        self.add(f"{name}: head", "wide dense", (1 + back) * entries, k, m, 4 * k * m)
        self.passes(f"{name}: ends", (HEAD_BACK if back else HEAD_AHEAD) * h * entries)
        self.add("operation", "call", (PIECE_BACK if back else PIECE_AHEAD) * self._pieces(entries))
        if back:
            self.add(f"{name}: gradient", "wide gram", entries // 2, k, m, 4 * k * m)
            self.passes(f"{name}: loss", entries * m, "loss")

    def _pieces(self, entries: int) -> int:
        """Pieces of whole row blocks that entries, as many in each block, are worked on in."""
        blocks = max(int(self.layout.blocks[self.rank]), 1)
        together = max(most_entries(self.training.device) * blocks // max(entries, 1), 1)
        return -(-blocks // together)

    def _pool(self, each: Operation) -> None:
        """A readout: every row is read once, or written once; few travel, as graphs lie whole."""
        self.passes(each.name, 2 * self.own * each.shape[1])

    def _share(self, each: Operation) -> float:
        """Of the entries: those that a product reads."""
        training, share = self.training, 1.0
        if each.name.startswith("messages"):
            share = training.shares[each.layer] if each.way and each.layer in training.fewer_edges else 1.0
        elif each.way and training.inputs.dropped:
            share = 1 - training.inputs.dropped
        elif each.way:
            back = each.way == BACKWARD
            share = (training.copies[each.layer] or 1.0) if back else training.shares[each.layer]
        return share / 2 if training.directed else share

    def _dense(self, each: Operation) -> None:
        k, m = each.shape
        if not each.sparse:
            self.add(each.name, "wide dense", self.own, k, m, 4 * k * m)
            return
        self.passes(f"{each.name}: clear", self.own * m)
        nbytes = 4 * self.training.inputs.features * m
        self.add(each.name, "product", self.stored_features(), self.own, m, nbytes, m, 0.0)

    def _gram(self, each: Operation) -> None:
        k, m = each.shape
        if not each.sparse:
            self.add(each.name, "wide gram", self.own, k, m, 4 * k * m)
            return
        owned = np.diff(self.training.owned)
        mine, all_of = int(owned[self.rank]), int(owned.sum())
        self.stage(each.name, m)
        nbytes = 4 * int(self.layout.rows.max()) * m
        self.add(
            each.name, "product", self.training.inputs.stored // self.P, mine * self.P, m, nbytes, m, 0.0
        )
        if self.P > 1:
            self.message(each.name, "addends", 4 * mine * m * (self.P - 1), 4 * (all_of - mine) * m, None)

    def _batch_norm(self, each: Operation) -> None:
        """By kept statistics one pass; by those of the rows passes for sums over them, and these of all
        ranks.
        """
        numbers, width = self.own * each.shape[1], each.shape[1]
        passes, sums = {"batch_norm": (1, ()), "batch_norm_own": (2, (width, width))}.get(
            each.name, (2.5, (2 * width,))
        )
        self.passes(each.name, passes * numbers)
        for columns in sums:
            self.sum_tree(each.name, columns)

    def _global(self, each: Operation) -> None:
        """Attention to all nodes (gnn/layers/all_nodes.py): sums over them, products with these, and passes;
        of sets of graphs passes over wide rows for each exchange with the rows of graphs."""
        k, m = each.shape
        if not k:
            sums = len(each.exchanges) * PASSES_OF_SUMS.get(each.name, 1)
            arrays = max((len(each.reads) + len(each.writes)) / 2, sums)
            self.passes(each.name, self.own * m * arrays)
        elif each.name.startswith("sums"):
            self.add(each.name, "wide gram", self.own, k, m, 4 * k * m)
            self.sum_tree(each.name, k * m)
        else:
            self.add(each.name, "wide dense", self.own, k, m, 4 * k * m)

    def _reduce(self, each: Operation) -> None:
        self.sum_tree(each.name, self.training.parameters - self.training.engine.direct)

    def _elementwise(self, each: Operation) -> None:
        """A pass takes reading one array and writing one; an activation with dropout draws each number."""
        numbers, arrays = self.own * each.shape[1], len(each.reads) + len(each.writes)
        if each.kind == "loss" and each.writes:
            self.passes(each.name, numbers, "loss")
        elif each.name.endswith("drop"):
            self.passes(each.name, numbers, "drop")
        else:
            self.passes(each.name, numbers * max(arrays / 2, 1))


# ---- sums over terms --------------------------------------------------------------------------------------


def traffic(terms: list[Term]) -> dict[str, tuple[int, int]]:
    """Bytes that the rank sends and receives, by phase as Group counts them."""
    out: dict[str, tuple[int, int]] = {}
    for term in terms:
        if term.kind in MESSAGES:
            phase = MESSAGES[term.kind][0]
            sent, received = out.get(phase, (0, 0))
            out[phase] = (
                sent + round(term.amounts[0] * term.times),
                received + round(term.amounts[1] * term.times),
            )
    return out


def flops(terms: list[Term]) -> dict[str, float]:
    """Multiplications and additions, by part."""
    out: dict[str, float] = {}
    for term in terms:
        if term.kind == "product":
            found = 2 * term.amounts[0] * term.amounts[2]
        elif term.kind.startswith("wide"):
            found = 2 * term.amounts[0] * term.amounts[1] * term.amounts[2]
        else:
            continue
        out[term.part] = out.get(term.part, 0.0) + found * term.times
    return out


def gathered(terms: list[Term]) -> float:
    """Bytes of rows that products read, one row for each stored entry."""
    return sum(4 * t.amounts[0] * t.amounts[2] * t.times for t in terms if t.kind == "product")
