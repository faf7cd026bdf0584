"""Share: what one rank does in an epoch, as terms: one for each operation that a dry run has recorded."""

from typing import TYPE_CHECKING

import numpy as np

from app.gnn.edge_level.entries import most_entries
from app.gnn.edge_level.head import ROWS as HEAD_ROWS
from app.gnn.embed.views import VIEWS
from app.gnn.reach import BACKWARD
from app.memory.operations import Operation
from app.model.gnn_inputs import Ranked
from app.model.terms import Terms

if TYPE_CHECKING:
    from app.model.gnn import Training

# Numbers that a head passes over for each hidden column of an entry, and calls for each piece of entries.
HEAD_AHEAD, HEAD_BACK, PIECE_AHEAD, PIECE_BACK = 8, 25, 4, 12
# Numbers passed over for each pair that is drawn and looked for among the neighbours; calls of all.
DRAWN, DRAW_CALLS = 280, 25
# Numbers that a ranking passes over: for each pair of a node and a candidate, for each node, for each of its
# K best; by walks for each pair, and for each node and entry in each of STEPS products (without sides, with).
PAIR, NODE, PLACE, WALKED_PAIR, WALKED_ENTRY, WALK_RULES, STEPS = 20, 60_000, 800, 70, 1.4, 2, (2, 3)
AGGREGATE = 8  # numbers passed over for each of an entry that four aggregators hear (measured: 3 ns)
# Passes over rows for each exchange of the sums over graphs, forward and backward (bench/set_attention.py).
PASSES_OF_SUMS = {"weigh_each": 11, "by_each": 16}
ATTEND_BACK = 2.2  # times what attention takes for an entry and a head, backward


class Share(Terms):
    """Terms of one rank, added one by one (app/model/terms.py).

    training   the counts of all ranks    rank      whose terms these are
    program    "epoch", "evaluation", "last" or "once", as the methods of Training are called
    """

    def __init__(self, training: "Training", rank: int, program: str) -> None:
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
        """A product with the adjacency matrix; with what attention, aggregators and features of edges add."""
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
        """A gradient of weights; of sparse features a product with their transpose, of the rows it owns."""
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
