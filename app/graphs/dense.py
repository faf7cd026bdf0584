"""Dense subgraphs: a graph with whole weights of edges and sizes of nodes, and how dense a set of nodes is.

The density of a set S is W(S) / s(S): the weight of the edges with both ends in S over the sizes of its
nodes. Ratios are compared as fractions. Where one number has to stand for a ratio it is the code floor(ratio
* 2^scale): two ratios of whole numbers whose denominators are at most s differ by at least 1 / s^2, so that
codes of other ratios differ where 2^scale >= s^2; where that has no room in 62 bits, ratios that are nearer
count as equal.
"""

from dataclasses import dataclass

import numpy as np

from app.errors import CaseError
from app.graphs.fixed_point import LARGEST, refuse_vanished, whole_numbers
from app.graphs.graph import Graph
from app.graphs.lists import by_columns, starts

AVERAGE, SIZE = "average", "size"  # problem.dense
ROOM = 61  # bits of codes, and of a load in the unit of a ratio
SIZES = 1 << 30  # of all nodes together, in units, at least, where they are not whole numbers of less


@dataclass(frozen=True, eq=False)
class DenseGraph:
    """A graph whose weights are whole numbers.

    indptr   [n+1] int64, indices [nnz] int32, as Graph has them
    weight   [nnz] int64, of edges        size   [n] int64, of nodes, above 0
    twin     [nnz] int64, the entry of the same edge in the other row

    """

    indptr: np.ndarray
    indices: np.ndarray
    weight: np.ndarray
    size: np.ndarray
    twin: np.ndarray

    @property
    def n(self) -> int:
        """Nodes."""
        return len(self.size)

    def rows(self) -> np.ndarray:
        """[nnz] int64, the row of each entry."""
        return np.repeat(np.arange(self.n), np.diff(self.indptr))

    def degree(self) -> np.ndarray:
        """[n] int64, the weight of the edges at each node."""
        return row_sums(self.weight, self.indptr)

    def part(self, nodes: np.ndarray) -> "DenseGraph":
        """The subgraph of some nodes [k], ascending."""
        place = np.full(self.n, -1, dtype=np.int32)
        place[nodes] = np.arange(len(nodes), dtype=np.int32)
        rows = self.rows()
        kept = (place[rows] >= 0) & (place[self.indices] >= 0)
        return dense_graph(
            starts(place[rows[kept]], len(nodes)), place[self.indices[kept]], self.weight[kept],
            self.size[nodes],
        )  # fmt: skip

    def inside(self, chosen: np.ndarray) -> tuple[int, int]:
        """The weight of the edges in a set [n] bool, and its size."""
        both = chosen[self.indices] & np.repeat(chosen, np.diff(self.indptr))
        return int(self.weight[both].sum()) // 2, int(self.size[chosen].sum())


def dense_graph(indptr: np.ndarray, indices: np.ndarray, weight: np.ndarray, size: np.ndarray) -> DenseGraph:
    """A graph of symmetric rows, whose columns ascend."""
    # Entries by column, then row, are the entries of the transpose in its own order; twins are each other's.
    twin = by_columns(indptr, indices, len(size))
    return DenseGraph(
        indptr.astype(np.int64), indices.astype(np.int32), np.ascontiguousarray(weight),
        np.ascontiguousarray(size), twin,
    )  # fmt: skip


def row_sums(values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """[n] int64, the sums of the entries [nnz] int64 of each row."""
    whole = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=whole[1:])  # wraps where it has to: differences are right modulo 2^64
    return whole[indptr[1:]] - whole[indptr[:-1]]


def sizes_of(graph: Graph) -> tuple[np.ndarray, float]:
    """[n] int64, the sizes of the nodes (their weights), and their unit. Raises CaseError, GraphError."""
    if graph.node_weights is None:
        return np.ones(graph.n, dtype=np.int64), 1.0
    wrong = np.flatnonzero(~(graph.node_weights > 0))
    if len(wrong):
        found = f"the weight of node {graph.called(int(wrong[0]))}, its size, is not above 0"
        raise CaseError(f"{graph.name}: {found}; above 0 would be right")
    what = f"{graph.name}: the weight of a node"
    size, unit = whole_numbers(graph.node_weights, what, max(_room_of_sizes(graph), 4 * graph.n))
    named = f"{graph.name}: the weight of node"
    refuse_vanished(size, graph.node_weights, lambda node: f"{named} {graph.called(node)}")
    return size, unit


def _room_of_sizes(graph: Graph) -> int:
    """What all sizes add up to at most, in units: what weights of edges leave that are whole numbers."""
    weights, total = graph.weights, float(len(graph.indices))
    if weights is not None:
        total = max(float(np.abs(weights.astype(np.float64)).sum()), total)
        if not np.array_equal(np.rint(weights), weights):
            return SIZES
    return min(max(int(2.0**ROOM / (2 * max(total, 1.0))), SIZES), LARGEST)


def weights_of(graph: Graph, largest: int) -> tuple[np.ndarray, float]:
    """[nnz] int64, the weights of the edges, and their unit; each twice they add up to `largest` at most."""
    if graph.weights is None:
        return np.ones(len(graph.indices), dtype=np.int64), 1.0
    return whole_numbers(graph.weights, f"{graph.name}: an edge weight", largest)


def refuse_negative(graph: Graph) -> None:
    """Raises CaseError where an edge weighs less than 0."""
    wrong = np.flatnonzero(graph.weights < 0) if graph.weights is not None else ()
    if len(wrong):
        found = f"edge {graph.called_entry(int(wrong[0]))} weighs less than 0"
        right = '0 or more, or problem.dense = "size", would be right'
        raise CaseError(f"{graph.name}: {found}; {right}")
