"""Least values of small connected graphs: programs over all subsets, and a search of orders for bandwidths.

The least value of orders that begin with a set S is w(S) and the least of those of S without its last node,
added or whichever is larger, where w(S) is the cut or the front of S (app/graphs/arrangement.py). A bandwidth
is tried: places are filled from the first on; a node at place p says that another at distance d from it
comes at p + d width at the latest; where more nodes are due by a place than there are places, there is none.

Source   Held and Karp 1962; Bodlaender, Fomin, Koster, Kratsch and Thilikos, A note on exact algorithms for
         vertex ordering problems on graphs, Theory of Computing Systems 2012; due places: Saxe 1980
"""

import ctypes

import numpy as np
from scipy.sparse.csgraph import shortest_path

from app.graphs.arrangement import PROFILE, SUMS, WEIGHTED, Arrangement
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
EXACT = function("lk_arrange_exact", Long, Long, Long, *[Pointer] * 5, returns=Long)
FIT = function("lk_arrange_fit", Long, Long, Long, *[Pointer] * 4, returns=Long)
MOST_EXACT, MOST_FIT = 22, 64  # nodes
SET_BYTES = 16  # of a set, with its cut
CUT, FRONT = 0, 1


def least(asked: Arrangement, compiled: bool = True) -> tuple[int, np.ndarray]:
    """The least value of a connected graph of up to MOST_EXACT nodes, no bandwidth, and an order [n]."""
    n, gap = asked.n, CUT if asked.kind in WEIGHTED else FRONT
    table = np.zeros((n, n), dtype=np.int64)
    table[asked.row_of(), asked.indices] = asked.weights
    if compiled and EXACT is not None:
        near = ((table > 0) << np.arange(n)).sum(axis=1).astype(np.uint64)
        found, worth = (np.zeros(1 << n if wanted else 1, dtype=np.int64) for wanted in (True, gap == CUT))
        order = np.zeros(n, dtype=np.int32)
        arrays = map(address, (near, table, found, worth, order))
        value = EXACT(n, gap, int(asked.kind not in SUMS), *arrays)
        order = order.astype(np.int64)
    else:
        value, order = _least(table, gap, asked.kind not in SUMS)
    return value, order if asked.kind == PROFILE else order[::-1].copy()


def _least(table: np.ndarray, gap: int, largest: bool) -> tuple[int, np.ndarray]:
    """The same, set sizes one after the other; the order from last to first."""
    n = len(table)
    sets = np.arange(1 << n)
    worth = np.zeros(1 << n, dtype=np.int64)
    if gap == CUT:
        for v in range(n):  # sets whose highest node is v, from those of lower ones
            half = worth[: 1 << v] + table[v].sum()
            for u in range(v):
                half -= 2 * table[v, u] * (sets[: 1 << v] >> u & 1)
            worth[1 << v : 2 << v] = half
    else:
        for v in range(n):
            near = int((1 << np.flatnonzero(table[v])).sum())
            worth += (sets >> v & 1) & ((near & ~sets) != 0)
    size = np.zeros(1 << n, dtype=np.int8)
    for v in range(n):
        size[1 << v : 2 << v] = size[: 1 << v] + 1
    by_size = np.argsort(size, kind="stable")
    ends = np.cumsum(np.bincount(size, minlength=n + 1))
    far = np.iinfo(np.int64).max
    found = np.zeros(1 << n, dtype=np.int64)
    for k in range(1, n + 1):
        own = by_size[ends[k - 1] : ends[k]]
        best = np.full(len(own), far)
        for v in range(n):
            held = np.flatnonzero(own >> v & 1)
            best[held] = np.minimum(best[held], found[own[held] ^ (1 << v)])
        found[own] = np.maximum(best, worth[own]) if largest else best + worth[own]
    order, some = [], (1 << n) - 1
    while some:
        v = min((v for v in range(n) if some >> v & 1), key=lambda v: (found[some ^ 1 << v], v))
        order.append(v)
        some ^= 1 << v
    return int(found[-1]), np.array(order, dtype=np.int64)


def distances(asked: Arrangement) -> np.ndarray:
    """[n, n] int64, edges between nodes of a connected graph."""
    return shortest_path(asked.matrix(), unweighted=True, directed=False).astype(np.int64)


def fitting(
    asked: Arrangement, width: int, most: int, compiled: bool = True
) -> tuple[np.ndarray | None, bool, int]:
    """(an order of that bandwidth or None, whether that is known, beginnings of orders that were looked at).

    most   beginnings, at most
    """
    n, far = asked.n, distances(asked)
    if compiled and FIT is not None:
        order, used = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.uint8)
        left = np.zeros(1, dtype=np.int64)
        found = FIT(n, width, most, *map(address, (far, order, used, left)))
        return (order.astype(np.int64) if found > 0 else None), found >= 0, most - int(left[0])
    fit = _Fit(far, width, most)
    found = fit.run(0, np.full(n, n - 1, dtype=np.int64))
    return (np.array(fit.order, dtype=np.int64) if found > 0 else None), found >= 0, most - fit.left


class _Fit:
    """The same without kernels."""

    def __init__(self, far: np.ndarray, width: int, most: int) -> None:
        self.far, self.width, self.left = far, width, most
        self.order: list[int] = []
        self.used = np.zeros(len(far), dtype=bool)

    def run(self, p: int, due: np.ndarray) -> int:
        """1: there is an order, 0: there is none, -1: not known."""
        n = len(due)
        if p == n:
            return 1
        within, self.left = self.left > 0, self.left - 1
        if not within:
            return -1
        open_ = np.flatnonzero(~self.used)
        last = due[open_]
        if (last < p).any():
            return 0
        counts = np.cumsum(np.bincount(np.minimum(last, n - 1), minlength=n)[p:])
        if (counts > np.arange(1, n - p + 1)).any():
            return 0
        for v in open_[np.argsort(last, kind="stable")].tolist():
            self.used[v] = True
            self.order.append(v)
            found = self.run(p + 1, np.minimum(due, p + self.width * self.far[v]))
            if found:
                return found
            self.order.pop()
            self.used[v] = False
        return 0
