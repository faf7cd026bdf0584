"""Plain heuristics for the maximum cut: what a search or a learned policy has to beat.

Each works on the whole graph on the host and returns `(sides, label)`: sides [n] bool, and the name to print
beside the result. Ties go to the lowest node number, seeds are constants: all are deterministic. With
`compiled` app/native/greedy.c does the same.
"""

import ctypes
import heapq
import itertools
from collections.abc import Callable
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from app.graphs.fixed_point import integer_weights
from app.graphs.graph import Graph
from app.native.library import address, function
from app.rng import SplitMix, stream
from app.search.cover.start import rows_of_kernels
from app.toolbox import Look, never

RESTARTS = 100
WORK = 4_000_000  # edges read by all restarts together: fewer restarts on larger graphs
PIECE = 1 << 20  # entries that a greedy construction looks at between two looks at the time
TABU_FLIPS, TABU_WORK = 20_000, 10**9  # at most, and 20 for every node; nodes that all flips together look at

CutBaseline = Callable[..., tuple[np.ndarray, str]]
Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GREEDY = function("lk_cut_greedy", Long, *(Pointer,) * 7, Long, Long, returns=Long)
GREEDY_REST = function("lk_cut_greedy_rest", Long, *(Pointer,) * 6)
DESCEND = function("lk_cut_descend", Long, *(Pointer,) * 6)
TABU = function("lk_cut_tabu", Long, *(Pointer,) * 8, Long, Long)


class _Rows:
    """A whole graph with its weights in units."""

    def __init__(self, graph: Graph, compiled: bool) -> None:
        if not graph.whole:
            raise ValueError(f"{graph.name}: rows {graph.lo}..{graph.hi - 1} held of {graph.n}, needs all")
        self.graph, self.weights = graph, integer_weights(graph)[0]
        self.compiled = compiled and None not in (GREEDY, GREEDY_REST, DESCEND, TABU)

    @cached_property
    def lists(self) -> list[list[tuple[int, int]]]:
        """Rows as lists, three times faster than arrays in loops over single entries."""
        starts, near = self.graph.indptr.tolist(), self.graph.indices.tolist()
        weights = self.weights.tolist()
        return [list(zip(near[a:b], weights[a:b])) for a, b in itertools.pairwise(starts)]

    @cached_property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """indptr, indices and weights as the kernels take them."""
        return (*rows_of_kernels(self.graph), np.ascontiguousarray(self.weights, dtype=np.int64))

    @cached_property
    def matrix(self) -> sp.csr_array:
        """The weights as a matrix."""
        n = self.graph.n
        return sp.csr_array((self.weights, self.graph.indices, self.graph.indptr), shape=(n, n))

    def gains(self, sides: np.ndarray) -> np.ndarray:
        """[n] int64, what flipping each node adds to the cut."""
        marks = np.where(sides, np.int64(1), np.int64(-1))
        return marks * (self.matrix @ marks)

    def value(self, sides: np.ndarray) -> int:
        """The cut in units."""
        cut = sides[self.graph.row_of()] != sides[self.graph.indices]
        return int(self.weights[cut].sum()) // 2


def descent(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """From all nodes on one side, flip the node that gains most until none gains."""
    return _descend(_Rows(graph, compiled), np.zeros(graph.n, dtype=bool)), "one-flip descent"


def restarts(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """The best of up to 100 descents from random sides; fewer on graphs of more than 20,000 edges."""
    rows = _Rows(graph, compiled)
    count = int(np.clip(WORK // (2 * graph.edges + graph.n + 1), 1, RESTARTS))
    best, value = np.zeros(graph.n, dtype=bool), 0
    for number in range(count):
        sides = _descend(rows, stream(0, "cut restarts", number).integers(0, 2, graph.n).astype(bool))
        if rows.value(sides) > value:
            best, value = sides, rows.value(sides)
    return best, f"one-flip descent, best of {count}"


def greedy(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Place nodes one by one: next the one whose better side gains most over the other one.

    Source   the greedy construction of Sahni and Gonzalez 1976, the largest difference first as in SG3 of
             Kahruman, Kolotoglu, Butenko and Hicks 2007
    returns  sides [n] bool, label; with positive weights at least half of the total weight is cut
    """
    return _construct(_Rows(graph, compiled))[0], "greedy construction"


def greedy_descent(graph: Graph, compiled: bool = True, look: Look = never) -> np.ndarray:
    """[n] bool, the greedy construction, then steepest descent: some seconds for ten million edges.

    look   asked every PIECE entries: where it is true the nodes that have no side yet get one in the order of
           their numbers, and nothing descends
    """
    rows = _Rows(graph, compiled)
    sides, whole = _construct(rows, look)
    return _descend(rows, sides) if whole and not look() else sides


def _construct(rows: _Rows, look: Look = never) -> tuple[np.ndarray, bool]:
    """[n] bool, see greedy, and whether `look` has let it go to its end."""
    return _construct_compiled(rows, look) if rows.compiled else _construct_plainly(rows, look)


def _construct_compiled(rows: _Rows, look: Look) -> tuple[np.ndarray, bool]:
    n = rows.graph.n
    ints, longs = np.empty(2 * n, dtype=np.int32), np.empty(2 * n, dtype=np.int64)
    placed, sides = np.zeros((2, n), dtype=np.uint8)
    state, left = [address(array) for array in (*rows.arrays, ints, longs, placed, sides)], -1
    while left := GREEDY(n, *state, left, PIECE):
        if look():
            GREEDY_REST(n, *(address(array) for array in (*rows.arrays, longs, placed, sides)))
            return sides.astype(bool), False
    return sides.astype(bool), True


def _construct_plainly(rows: _Rows, look: Look) -> tuple[np.ndarray, bool]:
    n, lists = rows.graph.n, rows.lists
    pull = [0] * n  # weight towards placed nodes of side 0 less that towards side 1
    placed, sides = [False] * n, np.zeros(n, dtype=bool)
    heap, left, seen, heeding = [(0, v) for v in range(n)], n, 0, True
    while left:
        key, v = heapq.heappop(heap)
        if placed[v] or (heeding and key != -abs(pull[v])):
            continue
        placed[v], sides[v] = True, pull[v] > 0
        left, seen = left - 1, seen + len(lists[v])
        for u, weight in lists[v]:
            if not placed[u]:
                pull[u] += -weight if sides[v] else weight
                if heeding:
                    heapq.heappush(heap, (-abs(pull[u]), u))
        if heeding and left and seen >= PIECE:
            seen, heeding = 0, not look()
            heap = heap if heeding else [(0, v) for v in range(n)]
    return sides, heeding


def tabu(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Tabu search with single flips from the greedy cut: 20 flips a node, at most 20,000 or 10^9 / n.

    A flipped node rests for n/20 to n/10 flips (Glover 1989; a short fixed time cycles on graphs with hubs)
    unless its flip gives a new best cut.
    """
    rows, n = _Rows(graph, compiled), graph.n
    flips = min(20 * n, TABU_FLIPS, TABU_WORK // max(n, 1))
    return _tabu(rows, _construct(rows)[0], flips), f"tabu search, {flips} flips"


def _tabu(rows: _Rows, sides: np.ndarray, flips: int) -> np.ndarray:
    """[n] bool, the best of so many flips from `sides` [n] bool, which it changes."""
    graph, n = rows.graph, len(sides)
    gains, free_at = rows.gains(sides), np.zeros(n, dtype=np.int64)
    cut = value = rows.value(sides)
    best, random = sides.copy(), SplitMix(0)
    if rows.compiled:
        scratch = free_at, np.zeros((n // 64 + 1, 3), dtype=np.int64)
        TABU(n, *(address(array) for array in (*rows.arrays, gains, *scratch, sides, best)), value, flips)
        return best
    for step in range(flips):
        allowed = (free_at <= step) | (cut + gains > value)
        v = int(np.where(allowed, gains, np.iinfo(np.int64).min).argmax())
        cut += int(gains[v])
        _flip(graph, rows.weights, sides, gains, v)
        free_at[v] = step + 1 + n // 20 + random.below(n // 20 + 1)
        if cut > value:
            value, best = cut, sides.copy()
    return best


def _flip(graph: Graph, weights: np.ndarray, sides: np.ndarray, gains: np.ndarray, v: int) -> None:
    row = slice(graph.indptr[v], graph.indptr[v + 1])
    near = graph.indices[row]
    sides[v] ^= True
    gains[v] = -gains[v]
    gains[near] += np.where(sides[near] == sides[v], 2, -2) * weights[row]


def _descend(rows: _Rows, sides: np.ndarray) -> np.ndarray:
    """The end of the steepest descent from `sides` [n] bool, which it changes."""
    if rows.compiled:
        ints, gains = np.empty(2 * len(sides), dtype=np.int32), rows.gains(sides)
        DESCEND(len(sides), *(address(array) for array in (*rows.arrays, ints, gains, sides)))
        return sides
    gain, side = rows.gains(sides).tolist(), sides.tolist()
    heap = [(-g, v) for v, g in enumerate(gain) if g > 0]
    heapq.heapify(heap)
    while heap:
        key, v = heapq.heappop(heap)
        if -key != gain[v]:  # an entry of an older gain
            continue
        side[v] = not side[v]
        gain[v] = key
        for u, weight in rows.lists[v]:
            gain[u] += 2 * weight if side[u] == side[v] else -2 * weight
            if gain[u] > 0:
                heapq.heappush(heap, (-gain[u], u))
    sides[:] = side
    return sides


CUT_BASELINES: dict[str, CutBaseline] = {
    "descent": descent,
    "restarts": restarts,
    "greedy": greedy,
    "tabu": tabu,
}
