"""Degeneracy: orders in which every node has few later neighbours, and the bounds on cliques that follow.

Compiled (native/degeneracy.c) where that was built, else plain Python with the same numbers.

Source   cores: Seidman 1983, Matula and Beck 1983; linear time: Batagelj and Zaversnik 2003
"""

import ctypes
from collections import deque
from dataclasses import dataclass

import numpy as np

from app.bounds.certificate import BadCertificate, Bound
from app.bounds.cover.kernels import Rows
from app.bounds.cover.plain import neighbours
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
CORE_ORDER = function("lk_core_order", Long, *[Pointer] * 4, returns=Long)
PEEL = function("lk_peel", Long, *[Pointer] * 3, Long, Pointer, Pointer, returns=Long)
GREEDY_COLOURS = function("lk_greedy_colours", Long, *[Pointer] * 4, returns=Long)

CORES, COLOURING = "core numbers", "colouring"


def core_order(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The node of least degree among those left, again and again.

    graph     whole
    returns   order [n] int32, the nodes in this order; core [n] int32, the core number of each: a node has at
              most so many later neighbours, and every clique that holds it at most so many nodes more
    """
    rows = Rows(graph)
    order, core = np.zeros(graph.n, dtype=np.int32), np.zeros(graph.n, dtype=np.int32)
    if not (compiled and CORE_ORDER):
        order[:], core[:] = _core_order(rows)
    elif CORE_ORDER(graph.n, *map(address, (rows.indptr, rows.indices, order, core))) < 0:
        raise MemoryError("core numbers")
    return order, core


def _core_order(rows: Rows) -> tuple[list[int], list[int]]:
    """core_order as native/degeneracy.c has it: nodes sorted by degree, and moved as it falls."""
    near = neighbours(rows)
    core = [len(row) for row in near]
    order = sorted(range(rows.n), key=core.__getitem__)
    place, first = [0] * rows.n, [0] * (max(core, default=0) + 2)
    for i, v in enumerate(order):
        place[v] = i
        first[core[v] + 1] += 1
    for d in range(1, len(first)):
        first[d] += first[d - 1]
    for v in order:  # grows as it is walked: later entries change places
        for u in near[v]:
            if core[u] > core[v]:
                at = first[core[u]]
                first[core[u]] += 1
                w = order[at]
                order[place[u]], order[at] = w, u
                place[w], place[u] = place[u], at
                core[u] -= 1
    return order, core


def peel(graph: Graph, weights: np.ndarray, least: int, compiled: bool = True) -> np.ndarray:
    """The nodes that no clique heavier than `least` holds, for what they weigh with their neighbours.

    weights   [n] int64, above 0
    returns   [k] int32, in an order in which each weighs, with its neighbours that come later or stay, at
              most `least`
    """
    rows = Rows(graph)
    if not (compiled and PEEL):
        return _peel(rows, weights.tolist(), least)
    order, load = np.empty(graph.n, dtype=np.int32), np.empty(graph.n, dtype=np.int64)
    arrays = map(address, (rows.indptr, rows.indices, weights))
    return order[: PEEL(graph.n, *arrays, least, address(order), address(load))].copy()


def _peel(rows: Rows, weight: list[int], least: int) -> np.ndarray:
    near = neighbours(rows)
    load = [weight[v] + sum(weight[u] for u in near[v]) for v in range(rows.n)]
    order = [v for v in range(rows.n) if load[v] <= least]
    gone, queue = set(order), deque(order)
    while queue:
        v = queue.popleft()
        for u in near[v]:
            if u in gone:
                continue
            load[u] -= weight[v]
            if load[u] <= least:
                gone.add(u)
                order.append(u)
                queue.append(u)
    return np.array(order, dtype=np.int32)


def greedy_colours(graph: Graph, order: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[n] int32, a proper colouring: of each node in the order [n] the least colour that no neighbour has.

    In the reverse of a degeneracy order it takes at most one colour more than the degeneracy.
    """
    rows, colour = Rows(graph), np.full(graph.n, -1, dtype=np.int32)
    order = np.ascontiguousarray(order, dtype=np.int32)
    if compiled and GREEDY_COLOURS:
        arrays = (rows.indptr, rows.indices, order, colour)
        if GREEDY_COLOURS(graph.n, *map(address, arrays)) < 0:
            raise MemoryError("colouring")
        return colour
    near, found = neighbours(rows), [-1] * graph.n
    for v in order.tolist():
        used = {found[u] for u in near[v]}
        found[v] = next(k for k in range(len(near[v]) + 1) if k not in used)
    colour[:] = found
    return colour


@dataclass(frozen=True, eq=False)
class CliqueBound(Bound):
    """No clique weighs more than `upper`: peeled nodes are in none that is heavier than `least`, and of the
    others a clique has at most one of each colour.

    As a bound on vertex covers of the complement: none has less than `lower`, the total weight less `upper`.

    weights   [n] int64, above 0
    peeled    [k] nodes, each of which weighs, with its neighbours that come later or are not peeled, at most
              `least`
    colour    [n] of nodes that are not peeled; adjacent ones have different colours
    """

    lower: int
    method: str
    weights: np.ndarray
    least: int
    peeled: np.ndarray
    colour: np.ndarray

    @property
    def upper(self) -> int:
        """No clique weighs more."""
        return int(self.weights.sum()) - self.lower

    def check(self, graph: Graph) -> None:
        """Prove the bound. Raises BadCertificate."""
        check_peeling(graph, self.weights, self.least, self.peeled)
        rest, rows = np.ones(graph.n, dtype=bool), graph.row_of()
        rest[self.peeled] = False
        inside = rest[rows] & rest[graph.indices]
        if self.colour.shape != (graph.n,) or (self.colour[rest] < 0).any():
            raise BadCertificate(f"{self.method}: not every node that is left has a colour")
        if (self.colour[rest] >= graph.n).any():
            raise BadCertificate(f"{self.method}: a colour beyond the number of nodes")
        if (self.colour[rows[inside]] == self.colour[graph.indices[inside]]).any():
            raise BadCertificate(f"{self.method}: two adjacent nodes of {graph.name} have one colour")
        heaviest = np.zeros(int(self.colour[rest].max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(heaviest, self.colour[rest], self.weights[rest])
        proved = max(int(heaviest.sum()), self.least if len(self.peeled) else 0)
        if proved != self.upper:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.upper}"
            )


def check_peeling(graph: Graph, weights: np.ndarray, least: int, peeled: np.ndarray) -> None:
    """Prove that no clique heavier than `least` holds a node of `peeled` [k]. Raises BadCertificate."""
    if len(peeled) and not 0 <= peeled.min() <= peeled.max() < graph.n:
        raise BadCertificate(f"{graph.name}: a peeled node is not in it")
    if len(sorted_set(peeled)) < len(peeled):
        raise BadCertificate(f"{graph.name}: a node is peeled twice")
    place = np.full(graph.n, graph.n, dtype=np.int64)
    place[peeled] = np.arange(len(peeled))
    rows = graph.row_of()
    later = place[graph.indices] > place[rows]
    total = weights + _sums(rows[later], weights[graph.indices[later]], graph.n)
    heavy = np.flatnonzero((place < graph.n) & (total > least))
    if len(heavy):
        raise BadCertificate(
            f"{graph.name}: node {heavy[0]} weighs {total[heavy[0]]} with its later neighbours, above {least}"
        )


def _sums(rows: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """[n] int64, the sums of values [m] by row, ascending; exact."""
    ends = np.concatenate([[0], np.cumsum(values)])
    return np.diff(ends[np.searchsorted(rows, np.arange(n + 1))])


def coloured(graph: Graph, weights: np.ndarray | None = None, compiled: bool = True) -> CliqueBound:
    """The bound of a greedy colouring, last nodes of a degeneracy order first; heavy ones before them.

    weights   [n] int64, above 0, or None: all one
    """
    order = core_order(graph, compiled)[0][::-1]
    weights = np.ones(graph.n, dtype=np.int64) if weights is None else weights
    order = order[np.argsort(-weights[order], kind="stable")]
    colour = greedy_colours(graph, order, compiled)
    heaviest = np.zeros(int(colour.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(heaviest, colour, weights)
    lower = int(weights.sum() - heaviest.sum())
    return CliqueBound(lower, COLOURING, weights, 0, np.empty(0, dtype=np.int32), colour)


def peeled_off(graph: Graph, weights: np.ndarray | None = None, compiled: bool = True) -> CliqueBound:
    """The bound of core numbers: the least weight such that peeling by it leaves nothing.

    Without weights one more than the degeneracy, which lies at most at the best bound of colours.
    """
    if weights is None:
        weights, (order, core) = np.ones(graph.n, dtype=np.int64), core_order(graph, compiled)
        least = int(core.max(initial=-1)) + 1
    else:
        least = _least_peeling(graph, weights, compiled)
        order = peel(graph, weights, least, compiled)
    lower = int(weights.sum()) - least
    return CliqueBound(lower, CORES, weights, least, order, np.zeros(graph.n, dtype=np.int32))


def _least_peeling(graph: Graph, weights: np.ndarray, compiled: bool) -> int:
    """The least number that peels all nodes off, by halving."""
    low, high = 0, int(weights.sum())
    while low < high:
        middle = (low + high) // 2
        if len(peel(graph, weights, middle, compiled)) == graph.n:
            high = middle
        else:
            low = middle + 1
    return low
