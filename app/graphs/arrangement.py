"""Linear arrangements: the nodes of a graph on places 1, ..., n of a line, judged by one of five numbers.

With p(v) the place of a node, a gap g between places g and g + 1, and S_g the nodes before it,

    length       sum over edges of w(uv) |p(u) - p(v)|      = sum over gaps of cut(S_g)
    bandwidth    the largest |p(u) - p(v)| of an edge
    cutwidth     the largest cut(S_g), the weight of the edges across a gap
    separation   the largest front(S_g), the nodes before a gap that have a neighbour behind it
    profile      sum over nodes of p(v) - p(f(v)), where f(v) is the first of v and its neighbours
                 = sum over gaps of the nodes behind it that have a neighbour before it

The profile of an order is the sum of the fronts of its reverse: four of the five are sums, or the largest, of
a number that depends on the set before a gap alone. Length, bandwidth and cutwidth are those of the reverse,
too. The least separation is the pathwidth (Kinnersley 1992), the least profile the fewest edges of an
interval graph that has all the graph's, less its own (Billionnet 1986).

Source   Diaz, Petit and Serna, A survey of graph layout problems, ACM Computing Surveys 2002
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from app.errors import GraphError
from app.graphs.fixed_point import LARGEST, whole_numbers
from app.graphs.graph import Graph
from app.graphs.joined import components
from app.graphs.lists import entries_of, row_counts, rows_ascend
from app.graphs.orders import places_of

LENGTH, BANDWIDTH, CUTWIDTH, SEPARATION, PROFILE = KINDS = (
    "length", "bandwidth", "cutwidth", "separation", "profile",
)  # fmt: skip
SUMS = (LENGTH, PROFILE)  # of parts that are apart they add up; of the others the largest counts
WEIGHTED = (LENGTH, CUTWIDTH)
MIRRORED = (LENGTH, BANDWIDTH, CUTWIDTH)  # those that an order and its reverse have alike
MOST = 1 << 61  # of a length, in units


@dataclass(frozen=True, eq=False)
class Arrangement:
    """A question: an order of these nodes in which `kind` is as small as may be.

    indptr [n+1] int64, indices [nnz] int32   rows, both directions, without loops and edges of weight 0
    weights   [nnz] int64, above 0, in units; all one where weights do not count
    """

    kind: str
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    unit: float = 1.0

    @property
    def n(self) -> int:
        """Nodes."""
        return len(self.indptr) - 1

    def row_of(self) -> np.ndarray:
        """[nnz] int64, the row of each entry."""
        return np.repeat(np.arange(self.n), np.diff(self.indptr))

    def value(self, order: np.ndarray) -> int:
        """What an order [n] is worth, in units."""
        return self.values(order, (self.kind,))[self.kind]

    def values(self, order: np.ndarray, kinds: tuple[str, ...] = KINDS) -> dict[str, int]:
        """What it is worth by each of `kinds`."""
        place = places_of(order)
        narrow = place.astype(np.int32)
        own, other = np.repeat(narrow, np.diff(self.indptr)), narrow[self.indices]
        found: dict[str, int] = {}
        for kind in kinds:
            if kind == BANDWIDTH:
                found[kind] = int((own - other).max(initial=0))
            elif kind == LENGTH:
                found[kind] = int((self.weights * np.abs(own - other)).sum()) // 2
            elif kind == CUTWIDTH:
                found[kind] = int(self._cuts(own, other).max(initial=0))
            elif kind == SEPARATION:
                last = np.zeros(self.n, dtype=np.int64)
                last[place] = self._furthest(np.maximum, place, other)
                ends = np.bincount(last, minlength=self.n)
                found[kind] = int(np.cumsum(1 - ends).max(initial=0))
            else:
                found[kind] = int((place - self._furthest(np.minimum, place, other)).sum())
        return found

    def _cuts(self, own: np.ndarray, other: np.ndarray) -> np.ndarray:
        """[n] int64, the weight across the gap behind each place; own, other [nnz] places of both ends."""
        # Sums of float64 are exact: all weights together are below 2^53 (app/graphs/fixed_point.py).
        signed = np.where(own < other, self.weights, -self.weights).astype(np.float64)
        return np.cumsum(np.bincount(own, signed, self.n).astype(np.int64))

    def _furthest(self, rule: np.ufunc, place: np.ndarray, other: np.ndarray) -> np.ndarray:
        """[n] int64, the last (first) of the places of each node and its neighbours."""
        found = place.copy()
        some = np.flatnonzero(np.diff(self.indptr))
        if len(some):
            found[some] = rule(found[some], rule.reduceat(other, self.indptr[some]))
        return found

    def parts(self, compiled: bool = True) -> np.ndarray:
        """[n] int64, the component of each node, numbered by their lowest nodes."""
        return components(self.indptr, self.indices, compiled=compiled)

    def matrix(self) -> sparse.csr_array:
        """[n, n], where the entries are."""
        ones = np.ones(len(self.indices), dtype=np.int8)
        return sparse.csr_array((ones, self.indices, self.indptr), shape=(self.n, self.n))

    def induced(self, nodes: np.ndarray) -> "Arrangement":
        """That of some nodes [k], in their order."""
        place = np.full(self.n, -1, dtype=np.int32)
        place[nodes] = np.arange(len(nodes))
        ptr = np.append(0, np.cumsum(self.indptr[nodes + 1] - self.indptr[nodes]))
        whole = len(self.indices) == int(ptr[-1])  # only nodes without edges are left out
        if whole and bool((np.diff(nodes) > 0).all()):
            return Arrangement(self.kind, ptr, place[self.indices], self.weights, self.unit)
        entry = entries_of(self.indptr, nodes)
        columns, weights = place[self.indices[entry]], self.weights[entry]
        if not whole:
            kept = columns >= 0
            ptr = np.append(0, np.cumsum(row_counts(kept, ptr)))
            columns, weights = columns[kept], weights[kept]
        if not rows_ascend(columns, ptr):
            # The matrix is its own transpose, which SciPy makes in linear time with columns that ascend.
            found = sparse.csr_array((weights, columns, ptr), shape=(len(nodes),) * 2).tocsc()
            columns, weights = found.indices.astype(np.int32), found.data
        return Arrangement(self.kind, ptr, columns, np.ascontiguousarray(weights), self.unit)

    def pattern(self, name: str) -> Graph:
        """The graph of the edges, without weights."""
        return Graph(name, self.n, 0, self.n, self.indptr, self.indices, len(self.indices) // 2, None)


def arrangement_of(graph: Graph, kind: str) -> Arrangement:
    """What a caller asks of a whole graph. Raises GraphError."""
    weights, unit = _weights(graph, kind)
    indptr, indices = np.asarray(graph.indptr, np.int64), np.asarray(graph.indices, np.int32)
    kept = weights > 0
    if not kept.all():
        indptr = np.append(0, np.cumsum(kept))[indptr]
        indices, weights = indices[kept], weights[kept]
    return Arrangement(kind, *map(np.ascontiguousarray, (indptr, indices, weights)), unit)


def _weights(graph: Graph, kind: str) -> tuple[np.ndarray, float]:
    """[nnz] int64 in units; of a kind that counts nodes all one: it is of where a matrix has entries."""
    given = graph.weights
    if kind not in WEIGHTED or given is None or (given == 1).all():
        return np.ones(len(graph.indices), dtype=np.int64), 1.0
    negative = np.flatnonzero(given < 0)
    if len(negative):
        where = int(negative[0])
        pair = graph.called_entry(where)
        raise GraphError(
            f"{graph.name}: edge {pair} has the weight {given[where]:g} < 0; weights from 0 on would be right"
        )
    largest = max(min(LARGEST, MOST // max(graph.n, 1)), 2 * len(given) + 2)
    return whole_numbers(given, f"{graph.name}: an edge weight", largest)
