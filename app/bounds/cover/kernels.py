"""The pieces of bounds that are compiled (native/cover_bounds.c) where that was built, else plain Python.

Both give the same integers. Graphs are whole.
"""

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from app.bounds.cover import plain
from app.bounds.cut import triangles_plain as plain_triangles
from app.graphs.graph import Graph
from app.native.library import address, function
from app.rng import SplitMix

if TYPE_CHECKING:
    from app.bounds.cover.packing import Columns

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
CLIQUE_COVER = function("lk_clique_cover", Long, *[Pointer] * 6, Long, Pointer, returns=Long)
ODD_CYCLES = function(
    "lk_odd_cycles",
    Long,
    *[Pointer] * 3,
    *[Long] * 5,
    Pointer,
    Long,
    *[Pointer] * 3,
    Long,
    Pointer,
    returns=Long,
)
CLIQUES = function(
    "lk_cliques",
    Long,
    *[Pointer] * 3,
    *[Long] * 3,
    Pointer,
    Long,
    *[Pointer] * 3,
    Long,
    Pointer,
    returns=Long,
)
CUT_CYCLES = function(
    "lk_cut_cycles",
    Long,
    *[Pointer] * 4,
    *[Long] * 5,
    Pointer,
    Long,
    *[Pointer] * 4,
    Long,
    Pointer,
    returns=Long,
)
TRIANGLES = function("lk_triangles", Long, Pointer, ctypes.c_double, Long, Pointer, returns=Long)
FILL = function("lk_fill_packing", Long, *[Pointer] * 5)


class Rows:
    """The rows of a graph as the kernels read them: indptr [n+1] int64, indices int32."""

    def __init__(self, graph: Graph) -> None:
        self.n = graph.n
        self.indptr = np.ascontiguousarray(graph.indptr, dtype=np.int64)
        self.indices = np.ascontiguousarray(graph.indices, dtype=np.int32)


def iterate_cover(
    rows: Rows,
    weights: np.ndarray,
    order: np.ndarray,
    best: np.ndarray,
    value: int,
    rounds: int,
    random: SplitMix,
    compiled: bool = True,
) -> int:
    """A greedy clique cover in the given order, then rounds of iterated greedy; see cover_bounds.c.

    weights   [n] int64
    order     [n] int32, in and out: the last round's order
    best      [n] int32, in and out: the clique of each node in the best cover
    value     what `best` leaves out at most (sum over cliques of the largest weight), or -1: none yet
    returns   that of `best` now
    """
    if not (compiled and CLIQUE_COVER):
        return plain.iterate_cover(rows, weights, order, best, value, rounds, random)
    found, state = np.array([value], dtype=np.int64), np.array([random.state], dtype=np.uint64)
    arrays = (rows.indptr, rows.indices, weights, order, best, found)
    if CLIQUE_COVER(rows.n, *map(address, arrays), rounds, address(state)) < 0:
        raise MemoryError("clique cover")
    random.state = int(state[0])
    return int(found[0])


def odd_cycles(
    rows: Rows,
    price: np.ndarray,
    one: int,
    roots: np.ndarray,
    used: np.ndarray,
    share: int,
    margin: int,
    most: int,
    compiled: bool = True,
) -> tuple[list[np.ndarray], int]:
    """Odd cycles of length L with a price below (L+1)/2 by more than `margin`, at most one from each root.

    price   [n] int64, in units of 1/one     roots [k] int32     used [n] int32, in and out: cycles by node
    share   a root on so many cycles is passed over     most: states that one search may settle
    returns the cycles, each [L] int32; how many roots were looked at
    """
    hop = max(one >> 8, 1)
    if not (compiled and ODD_CYCLES):
        return plain.odd_cycles(rows, price, one, hop, margin, most, share, roots, used), len(roots)
    ptr, out, done = _output(rows.n, len(roots))
    found = ODD_CYCLES(
        rows.n, address(rows.indptr), address(rows.indices), address(price), one, hop, margin, most, share,
        address(roots), len(roots), address(used), address(ptr), address(out), len(out), address(done),
    )  # fmt: skip
    return _lists(found, ptr, out), int(done[0])


def cliques(
    rows: Rows,
    price: np.ndarray,
    one: int,
    roots: np.ndarray,
    used: np.ndarray,
    share: int,
    margin: int,
    compiled: bool = True,
) -> tuple[list[np.ndarray], int]:
    """Cliques of k >= 3 nodes with a price below k-1 by more than `margin`; as `odd_cycles`."""
    if not (compiled and CLIQUES):
        return plain.cliques(rows, price, one, margin, share, roots, used), len(roots)
    ptr, out, done = _output(rows.n, len(roots))
    found = CLIQUES(
        rows.n, address(rows.indptr), address(rows.indices), address(price), one, margin, share,
        address(roots), len(roots), address(used), address(ptr), address(out), len(out), address(done),
    )  # fmt: skip
    return _lists(found, ptr, out), int(done[0])


def cut_cycles(
    rows: Rows,
    same: np.ndarray,
    other: np.ndarray,
    one: int,
    roots: np.ndarray,
    used: np.ndarray,
    share: int,
    margin: int,
    most: int,
    compiled: bool = True,
) -> tuple[list[tuple[np.ndarray, np.ndarray]], int]:
    """Cycles C with a set F of an odd number of their edges, at most one from each root, for which
    sum over F of `other` + sum over C - F of `same` is below 1 by more than `margin`. With other = 1 - x and
    same = x that is at least 1 for every cut x.

    same, other   [nnz] int64 of the edge of each entry, in units of 1/one; not used where one or more
    roots   [k] int32
    used    [n] int32, in and out: cycles by node     share   a root on so many cycles is passed over
    most    states that one search may settle
    returns the cycles: nodes [L] int32, and [L] uint8 whether the edge to the next node is in F; how many
            roots were looked at
    """
    hop = max(one >> 12, 1)
    if not (compiled and CUT_CYCLES):
        return plain.cut_cycles(rows, (same, other), one, hop, margin, most, share, roots, used), len(roots)
    ptr, nodes, done = _output(rows.n, len(roots))
    over = np.empty(len(nodes), dtype=np.uint8)
    found = CUT_CYCLES(
        rows.n, address(rows.indptr), address(rows.indices), address(same), address(other), one, hop, most,
        margin, share, address(roots), len(roots), address(used), address(ptr), address(nodes), address(over),
        len(nodes), address(done),
    )  # fmt: skip
    return list(zip(_lists(found, ptr, nodes), _lists(found, ptr, over))), int(done[0])


def triangles(X: np.ndarray, margin: float, most: int, compiled: bool = True) -> np.ndarray:
    """Triangles i < j < k of which X violates an inequality by more than `margin`, at most `most`: those that
    it violates most, to about 1/128, in ascending order.

    X        [n, n] float64, symmetric: products of signs, relaxed
    returns  [k, 4] int32: i, j, k and the kind: 0 for X[i,j] + X[i,k] + X[j,k] >= -1; 1, 2, 3: the sign of
             the first, the second, the third stays, those of both others change
    """
    if not (compiled and TRIANGLES):
        return plain_triangles.triangles(X, margin, most)
    X, out = np.ascontiguousarray(X), np.empty((most, 4), dtype=np.int32)
    return out[: TRIANGLES(len(X), address(X), margin, most, address(out))].copy()


def _output(n: int, roots: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Room for what a search of `roots` roots finds; one column of any size always fits."""
    return (
        np.zeros(roots + 1, dtype=np.int64),
        np.empty(n + 64 * roots, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
    )


def _lists(found: int, ptr: np.ndarray, out: np.ndarray) -> list[np.ndarray]:
    if found < 0:
        raise MemoryError("separation of odd cycles and cliques")
    return np.split(out[: ptr[found]].copy(), ptr[1:found]) if found else []


def fill_packing(
    columns: "Columns", order: np.ndarray, slack: np.ndarray, value: np.ndarray, compiled: bool = True
) -> None:
    """Raise the values of the columns, in the given order, as far as the slack of their nodes allows.

    order [k] int64     slack [n] int64, value [k] int64: in and out
    """
    if not (compiled and FILL):
        plain.fill_packing(columns, order, slack, value)
        return
    ptr, nodes = np.ascontiguousarray(columns.ptr), np.ascontiguousarray(columns.nodes, dtype=np.int32)
    order = np.ascontiguousarray(order, dtype=np.int64)
    FILL(len(order), *map(address, (order, ptr, nodes, slack, value)))
