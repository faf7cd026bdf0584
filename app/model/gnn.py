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
from app.gnn.embed.views import VIEWS
from app.gnn.engine import Engine
from app.gnn.model import layer_specs, rows_apart
from app.gnn.pieces import cut_rows
from app.gnn.products import KEPT_COLUMNS, power_of
from app.gnn.reach import copied_shares, expected_shares, fewer_edges, whole_below
from app.gnn.rehearsal import DenseWidth, Sizes, SparseWidth, rehearse
from app.graphs.nodes.data import SPLITS
from app.memory.tiers import TierBudget
from app.model.gnn_inputs import Inputs
from app.model.gnn_share import Share
from app.model.layout import Layout
from app.model.terms import MESSAGES, Term, by_slices
from app.partition.rows import block_count, block_starts

INTEGER = 8  # bytes of a number of hits
NO_LIMIT = TierBudget(0)
SCORE_CALLS = 12  # operations that counting hits takes
# Numbers passed over for each stored entry that a view is drawn from (measured: 0.1 us an entry).
VIEW_ENTRY = 250
OPTIMISER = {"adam": 4, "sgd": 2}  # passes over the parameters: Adam reads four arrays and writes three


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
        sizes = Sizes(
            int(layout.rows.max()), inputs.features, inputs.dense, inputs.classes, stored, inputs.edge_width,
            inputs.ranks,
        )  # fmt: skip
        self.engine = rehearse(self.device, self.case, sizes)
        if 0 < self.budget.limit < int(layout.rows.max()) * self._bytes_of_row():
            blocks = block_count(sizes.n_own)
            cut = cut_rows(block_starts(sizes.n_own, blocks), 0, blocks)  # as if they were a whole graph
            self.limited = rehearse(self.device, self.case, sizes, cut)
        cuts = np.concatenate([[0], np.cumsum(layout.blocks)])
        self.roots = [len(owned_roots(int(cuts[-1]), int(a), int(b))) for a, b in pairwise(cuts)]
        if not self.shares:
            # What the nodes of a training graph hear is of that graph
            entries = 0 if self.case.level == "graph" else int(layout.stored.sum())
            layers = len(layer_specs(self.case, inputs.classes))
            shares = expected_shares(layout.total_rows, entries, inputs.train, layers)
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
