"""A trained network on the receptive field of one score: the score, and gradients by edges and by features.

Every message of the field is multiplied by a mask m_ij, one number for an edge in all layers, while the
factors by which messages are normalised stay those of the graph: what is taken away is what a node hears, not
what it knows of how many neighbours it has. A product with A is Y = (m * A) X, and the gradient by the mask

    dm_ij = sum over products of A_ij <dY_i, X_j>

is made of the rows X that a product reads forward and dY that its transpose reads backward, which come in the
opposite order: a stack has them. Attention, aggregators, and layers that read features of edges, have their
own mask (masked.py). Attention to all nodes goes by no edges, and has none: it is part of the network that is
explained, on fields of all nodes (field.py). What is explained is read from the scores of a node, or from the
rows of both ends of an edge or of a pair (ends.py), and gradients go back to these rows.
"""

from typing import Any

import numpy as np
from msgspec.structs import replace

from app.comm.group import Group
from app.comm.turns import only_this_rank
from app.gnn.classifier import Classifier
from app.gnn.edges import EdgeInputs, mean_rows
from app.gnn.engine import Engine
from app.gnn.explain.ends import reader_of
from app.gnn.explain.field import PLAIN_ENTRY, Field, Reach
from app.gnn.explain.masked import FieldEdges, MaskedEntries
from app.gnn.goals import Goal
from app.gnn.layers.gat import GAT
from app.gnn.layers.pna import PNA
from app.gnn.layers.table import LAYERS
from app.gnn.model import Draws, Model
from app.gnn.neighbours import both_ways, scale_of
from app.gnn.parameters import Parameters
from app.gnn.programs import Rows
from app.graphs.members import Members, readout_rows
from app.numerics.aggregation import row_names
from app.numerics.elementary import log
from app.partition.rows import RowPartition, partition_rows
from app.sparse.rowblock import RowBlock

PIECE = 1 << 15  # entries whose products are made at a time


class _Rows:
    """What an engine asks of a row block: the rows of a field, padded."""

    def __init__(self, rows: RowPartition, nodes: int) -> None:
        self.n_own, self.lo, self.block_starts = int(rows.offsets[-1]), 0, rows.starts
        self.n = self.n_real = nodes


class Side:
    """The masked matrix of a field, A or A^T, as an engine's Neighbours.

    ends      [2, e] places of rows and columns, rows ascending
    order     [e] which entry of the field each is
    """

    def __init__(
        self, group: Group, block: _Rows, ends: np.ndarray, order: np.ndarray, weights: np.ndarray,
        degrees: np.ndarray,
    ) -> None:  # fmt: skip
        self.group, self.device, self.block = group, group.device, block
        self._weights, self._degrees, self._order = weights[order], degrees, order
        n = block.n_own
        rows, columns = ends[:, order]
        self.entries = MaskedEntries(rows, columns, n, np.ones(len(order), np.float32))
        self.own = MaskedEntries(np.arange(n), np.arange(n), n)
        starts = np.searchsorted(rows, np.arange(n + 1)).astype(np.int32)
        self._values = self._weights.copy()
        self._matrix = self.device.csr(starts, columns.astype(np.int32), self._values, (n, n))

    def put_mask(self, mask: np.ndarray) -> None:
        """Multiply messages by a mask [e] of the field's entries."""
        self.entries.mask[:] = mask[self._order]
        np.multiply(self._weights, self.entries.mask, out=self._matrix.data)

    def accumulate(self, X: np.ndarray, Y: np.ndarray, rows: None = None, matrix: None = None) -> None:
        """Y += (m * A) X."""
        self.device.spmm_add(self._matrix, X, Y)

    def visit(self, X: np.ndarray, own: bool, work: Any, kind: str = "") -> None:
        """Go through the entries (Neighbours.visit), those of nodes by themselves first where asked for."""
        if own:
            work(self.own, X)
        work(self.entries, X)

    def names(self) -> np.ndarray:
        """[n_own] float32, what rows are called (Neighbours.names)."""
        return row_names(0, self.block.n_own)

    def columns(self, X: np.ndarray, widths: tuple[int, ...], work: Any) -> None:
        """Some columns of X after the others (Neighbours.columns)."""
        ends = np.cumsum(widths)
        for lo, hi in zip(ends - widths, ends):
            work(np.ascontiguousarray(X[:, lo:hi]), int(lo))

    def scale(self, kind: str) -> np.ndarray:
        """[n_own] factors of rows by the degrees of the whole graph (Neighbours.scale), 0 on padding."""
        n, factors = len(self._degrees), np.zeros(self.block.n_own, dtype=np.float32)
        if kind == "log_degree":  # of neighbours, whatever their weights; fields have those of inner nodes
            factors[:n] = log(np, (1 + self.entries.counts[:n]).astype(np.float32))
        else:
            factors[:n] = scale_of(kind, self._degrees)
        return factors


class TracedEngine(Engine):
    """An engine whose backward pass finds gradients by the entries of A, and none of parameters.

    found   [e] float64, the gradient by the mask, of the field's entries
    """

    traces = True

    def __init__(
        self, sides: tuple[Side, Side], rows: RowPartition, params: Parameters, field: Field
    ) -> None:
        super().__init__(sides[0], rows, params, params.size, sides[1])
        self._ends, self._weights = field.ends, field.weights
        self._stack: list[np.ndarray] = []
        self.found = np.zeros(len(field.weights))

    def _product(
        self, name: str, reads: list[Any], writes: list[Rows], work: Any, widths: tuple[int, ...]
    ) -> None:
        """See Engine: a product with A, of whose rows a backward pass makes gradients."""
        X = reads[-1]

        def traced() -> None:
            if self.way == "forward":
                self._stack.append(X.array.copy())
            elif self.way == "backward":
                self._learn(X.array, self._stack.pop())
            work()

        super()._product(name, reads, writes, traced, widths)

    def _learn(self, D: np.ndarray, X: np.ndarray) -> None:
        """Add A_ij <D_i, X_j>, some entries at a time."""
        for lo in range(0, len(self._weights), PIECE):
            some = slice(lo, lo + PIECE)
            i, j = self._ends[:, some]
            dots = np.einsum("ec,ec->e", D[i], X[j], dtype=np.float64)
            self.found[some] += self._weights[some] * dots

    def gram(self, *unread: Any, **options: Any) -> None:
        """Nothing: no gradient by a parameter is asked for, here and below."""

    def column_sums(self, *unread: Any) -> None:
        """Nothing."""

    def dot(self, *unread: Any) -> None:
        """Nothing."""

    def give_addends(self, *unread: Any) -> None:
        """Nothing."""


class FieldNetwork:
    """The network of a classifier on a field.

    Ranks   none: one rank works alone
    """

    def __init__(self, trained: "Trained", field: Field) -> None:
        self.field, self.goal = field, trained.goal
        device = trained.masked
        group, n = only_this_rank(device), len(field.nodes)
        rows = partition_rows(n, 1)
        block = _Rows(rows, n)
        turned = np.lexsort(field.ends)  # by columns, then by rows
        forward = np.arange(len(field.weights))
        self._sides = (
            Side(group, block, field.ends, forward, field.weights, field.degrees[0]),
            Side(group, block, field.ends[::-1], turned, field.weights, field.degrees[1]),
        )
        self._turned = turned
        self.model = Model(trained.case, field.X.shape[1], trained.classes, trained.edge_width)
        params = Parameters(device, self.model.shapes())
        params.set(trained.weights_of(field.used, self.model.blocks[0].meets_input))
        self._reader = reader_of(self.model.head, params, self.goal, field)
        self.engine = TracedEngine(self._sides, rows, params, field)
        self._edges: list[FieldEdges] = []
        if field.E is not None:
            self._read_edges(field.E)
        if field.whole:
            self._pool(group, rows, trained.case.readout == "max")
        self._X = np.zeros((block.n_own, field.X.shape[1]), dtype=np.float32)
        self._draws = Draws(trained.case, 0, 0)
        self.column = -1
        with self.engine.dry():
            self._forward()
            self._both_ways()
        self.engine.allocate()

    def _read_edges(self, E: np.ndarray) -> None:
        """Let layers read the features of edges, and of loops their means (EdgeInputs)."""
        heard, hearing = self._sides
        n, counts = heard.block.n_own, np.bincount(self.field.ends[0], minlength=heard.block.n_own)
        loops = mean_rows(counts, E, E.shape[1])
        self._edges = [
            FieldEdges(heard.entries, E), FieldEdges(hearing.entries, E[self._turned]),
            FieldEdges(heard.own, loops.reshape(n, -1)),
        ]  # fmt: skip
        both, back, own = self._edges
        self.engine.edges = EdgeInputs(both, back, np.zeros(0, dtype=np.int64), own)

    def _pool(self, group: Group, rows: RowPartition, places: bool) -> None:
        """The readout of the field's one graph."""
        n = len(self.field.nodes)
        R = readout_rows(Members(np.array([0, n])), "", 0, n)
        self.engine.pooling = both_ways(group, RowBlock(group, R, rows), False)
        if places:
            own = np.full(self.engine.n_own, -1, dtype=np.float32)
            own[: n - 1] = np.arange(n - 1)
            self.engine.places = own

    # ---- passes -----------------------------------------------------------------------------------------

    def scores(self, mask: np.ndarray | None = None, share: float = 1.0, of_edges: float = 1.0) -> np.ndarray:
        """[columns] float64, the network's scores of what is explained.

        mask    [e] of the field's entries; None: all ones
        share, of_edges   of the features of nodes, and of edges
        """
        self._put(mask, share, of_edges)
        return self._forward()

    def score(self, mask: np.ndarray | None = None, share: float = 1.0, of_edges: float = 1.0) -> float:
        """What is explained: see `score_of`, of the column that is set."""
        return self.told(self.scores(mask, share, of_edges))

    def told(self, Z: np.ndarray) -> float:
        """What is explained of scores Z [columns]."""
        return score_of(self.goal, Z, self.column)[0]

    def choose(self, Z: np.ndarray) -> None:
        """Explain the column that the largest score [columns] is of."""
        self.column = column_of(self.goal, Z)

    def gradients(
        self, mask: np.ndarray | None = None, share: float = 1.0, of_edges: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """[e] float64 and [k, f] float32, the gradients of the score by the mask and by the features.

        Those by the features of edges are told by `by_edge_features`.
        """
        self._put(mask, share, of_edges)
        engine, (heard, hearing) = self.engine, (side.entries for side in self._sides)
        engine.found[:] = 0
        heard.found, hearing.found = np.zeros((2, len(self.field.weights)))
        for each in self._edges:
            each.found[:] = 0
        dX = self._both_ways()
        found = engine.found + heard.found
        found[self._turned] += hearing.found
        return found, dX[: len(self.field.nodes)]

    @property
    def edge_columns(self) -> int:
        """Columns of the features of edges that are read, by layers or of the edge that is explained."""
        field = self.field
        return next((each.shape[-1] for each in (field.E, field.of_edge) if each is not None), 0)

    def by_edge_features(self) -> np.ndarray:
        """[c] float64, by column the features of all edges times the gradients by them, of the last pass."""
        total = np.zeros(self.edge_columns)
        for each in self._edges:
            total += each.contributions()
        return total + self._reader.contributions() if self.field.of_edge is not None else total

    def _put(self, mask: np.ndarray | None, share: float, of_edges: float) -> None:
        every = np.ones(len(self.field.weights), dtype=np.float32)
        for side in self._sides:
            side.put_mask(every if mask is None else mask.astype(np.float32))
        for each in (*self._edges, self._reader):
            each.put_share(of_edges)
        np.multiply(self.field.X, np.float32(share), out=self._X[: len(self.field.nodes)])

    def _forward(self) -> Any:
        engine, places = self.engine, self.field.places
        with engine.program("evaluation"):
            Z = self.model.forward(engine, self._load(), None)
            work = lambda: self._reader.scores(Z.array[places].astype(np.float64))  # noqa: E731
            found = engine.apply("loss", "scores", [Z], [], work)
            engine.free(Z)
        return found

    def _both_ways(self) -> Any:
        engine = self.engine
        with engine.program("epoch"):
            X = self._load()
            Z = self.model.forward(engine, X, self._draws)
            engine.apply("loss", "score", [Z], [Z], lambda: self._begin_back(Z.array))
            D = self.model.backward(engine, Z)
            found = engine.apply("loss", "gradient", [D], [], lambda: D.array.copy())
            engine.free(D, X)
        return found

    def _load(self) -> Rows:
        X = self.engine.take("X", self._X.shape[1])

        def work() -> None:
            X.array[...] = self._X

        self.engine.apply("load", "X", [], [X], work)
        return X

    def _begin_back(self, Z: np.ndarray) -> None:
        """The gradient of the score in the place of the scores."""
        rows = Z[self.field.places].astype(np.float64)
        D = score_of(self.goal, self._reader.scores(rows), self.column)[1]
        Z[...] = 0
        Z[self.field.places] = self._reader.back(rows, D)


def column_of(goal: Goal, Z: np.ndarray) -> int:
    """The column whose score is explained: of scores Z [columns], or of what is largest where they are."""
    return int(Z.argmax()) if len(Z) > 1 and goal.kind != "values" else 0


def score_of(goal: Goal, z: np.ndarray, column: int) -> tuple[float, np.ndarray]:
    """What is explained of scores z [columns], and its gradient by them.

    Of one class of several the score of that class less the mean of all: a softmax does not see what is added
    to all scores alike. Of several labels the score of one, whose sigmoid is its probability; of numbers one
    of them, in units of the data; of a pair its score.
    """
    D = np.zeros(len(z))
    D[column] = 1
    if goal.kind == "classes":
        D -= 1 / len(z)
        return float(z @ D), D
    if goal.kind == "values":
        factor = float(goal.scale.deviation[column])
        return float(goal.scale.large(z[None])[0, column]), D * factor
    return float(z[column]), D


class Trained:
    """What fields' networks share: the case without dropout, the weights on the host.

    masked   a host device with MaskedAttention, MaskedAggregation and MaskedEdgeSums
    """

    def __init__(
        self, classifier: Classifier, masked: Any, weights: dict[str, np.ndarray] | None = None
    ) -> None:
        """weights   of a member; None: those of the classifier."""
        self.case = replace(classifier.case, dropout=0.0, input_dropout=0.0)
        self.goal, self.classes = classifier.goal, classifier.classes
        columns = classifier.edge_columns
        self.edge_width = columns.width if columns else 0
        self.masked = masked
        self._weights = classifier.params.host() if weights is None else weights

    def weights_of(self, used: np.ndarray, names: tuple[str, ...]) -> dict[str, np.ndarray]:
        """The weights, those that meet the features for some columns of these alone."""
        return {name: each[used] if name in names else each for name, each in self._weights.items()}


def entry_bytes(model: Model, columns: int) -> int:
    """About the bytes that an entry of a field takes: of attention rows of heads, too, several of them at a
    time; so of aggregators, and where messages read features of edges. columns   of all that a pass holds of
    a node"""
    attends = any(
        isinstance(block.convolution, (GAT, PNA)) or getattr(block.convolution, "reads_edges", False)
        for block in model.blocks
    )
    return 300 + 2 * columns if attends else PLAIN_ENTRY


def reach_of(model: Model) -> Reach:
    """That of a model's layers, from the last one down."""
    hops, all_nodes = 0, False
    for block in reversed(model.blocks):
        if block.spec.kind not in LAYERS:  # a readout
            continue
        own = getattr(block.convolution, "hops", int(block.spec.kind != "dense"))
        if all_nodes and own:
            return Reach(hops, True, True)
        hops += own
        all_nodes = all_nodes or getattr(block.convolution, "hears_all", False)
    return Reach(hops, all_nodes)
