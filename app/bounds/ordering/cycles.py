"""Cycles that a point of the linear program violates, and packings of cycles of net arcs.

A cycle begins with its smallest node.
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from app.bounds.ordering.program import Cycle
from app.graphs.ordering import NetArcs, starts

LEAST = 1e-4  # a row is violated by more than that
LONG = 1e-5  # what each arc of a cycle weighs beside its y: of equal cycles short ones are taken
# Shortest cycles are looked for through so many nodes at a time, in a table of so many entries.
ROOTS, ENTRIES = 300, 1 << 22
SEEN, WORK = 400, 20_000  # nodes that the search for one cycle of a packing looks at; such ones of a step


def turned(cycle: list[int]) -> Cycle:
    """The same cycle from its smallest node on."""
    first = cycle.index(min(cycle))
    return (*cycle[first:], *cycle[:first])


def triangles(Y: np.ndarray, most: int) -> list[Cycle]:
    """Cycles of three nodes whose sum is below 1, the lowest first; Y [n, n] with Y + Y^T = 1."""
    n, found, sums = len(Y), [], []
    for i in range(n - 2):
        # i -> j -> k -> i, i the smallest
        sum_ = Y[i, i + 1 :, None] + Y[i + 1 :, i + 1 :] + Y[i + 1 :, i][None, :]
        np.fill_diagonal(sum_, 2.0)
        j, k = np.nonzero(sum_ < 1 - LEAST)
        sums.append(sum_[j, k])
        found.append(np.stack([np.full(len(j), i), j + i + 1, k + i + 1], axis=1))
    if not found:
        return []
    rows = np.concatenate(found)[np.argsort(np.concatenate(sums), kind="stable")[:most]]
    return [tuple(row) for row in rows.tolist()]


class Finder:
    """Finds shortest cycles of net arcs."""

    def __init__(self, net: NetArcs) -> None:
        self.net, self._turn = net, 0
        self._back = np.argsort(net.heads, kind="stable")  # arcs by heads
        self._into = starts(net.heads, net.n)
        self._ptr = starts(net.tails, net.n)

    def violated(self, y: np.ndarray, most: int) -> list[Cycle]:
        """Shortest cycles of less than 1 by y [arcs], through some nodes; through all if those have none."""
        n, net = self.net.n, self.net
        length = np.maximum(y, 0) + LONG
        matrix = sp.csr_array((length, net.heads, self._ptr), shape=(n, n))
        count = min(n, ROOTS, max(ENTRIES // max(n, 1), 1))
        found: dict[Cycle, float] = {}
        for _ in range(0, n, count):
            roots = np.unique(np.arange(self._turn, self._turn + count) % n)
            self._turn = (self._turn + count) % n
            self._through(roots, matrix, length, y, found)
            if found:
                break
        return sorted(found, key=lambda cycle: (found[cycle], cycle))[:most]

    def _through(
        self, roots: np.ndarray, matrix: sp.csr_array, length: np.ndarray, y: np.ndarray,
        found: dict[Cycle, float],
    ) -> None:  # fmt: skip
        limit = 1 - LEAST + LONG * self.net.n
        dist, above = dijkstra(matrix, indices=roots, return_predecessors=True, limit=limit)
        for i, v in enumerate(roots.tolist()):
            arcs = self._back[self._into[v] : self._into[v + 1]]
            if not len(arcs):
                continue
            ways = dist[i, self.net.tails[arcs]] + length[arcs]
            last = int(arcs[np.argmin(ways)])
            if not np.isfinite(ways.min()):
                continue
            cycle = [int(self.net.tails[last])]
            while cycle[-1] != v:
                cycle.append(int(above[i, cycle[-1]]))
            value = float(ways.min()) - LONG * len(cycle)
            if value < 1 - LEAST:
                found[turned(cycle[::-1])] = value


def packed(net: NetArcs) -> Iterator[list[tuple[Cycle, int]]]:
    """Cycles of net arcs and whole numbers whose sums are at no arc above its weight; all that there are so
    far, again and again. Short ones first: through each node by turns with a longer reach.
    """
    n, found, work = net.n, [], 0
    out: list[dict[int, int]] = [{} for _ in range(n)]
    into: list[set[int]] = [set() for _ in range(n)]
    for u, v, w in zip(net.tails.tolist(), net.heads.tolist(), net.weights.tolist()):
        out[u][v] = w
        into[v].add(u)
    degree = [len(out[v]) * len(into[v]) for v in range(n)]
    for reach in (3, 5, n):
        for v in sorted(range(n), key=lambda v: (degree[v], v)):
            while out[v] and into[v]:
                cycle, seen = _cycle_at(v, out, into, reach)
                work += seen
                if cycle is None:
                    break
                pairs = list(zip(cycle, (*cycle[1:], cycle[0])))
                value = min(out[a][b] for a, b in pairs)
                found.append((turned(cycle), value))
                for a, b in pairs:
                    out[a][b] -= value
                    if not out[a][b]:
                        del out[a][b]
                        into[b].discard(a)
            if work > WORK:
                work = 0
                yield found
    yield found


def _cycle_at(
    v: int, out: list[dict[int, int]], into: list[set[int]], reach: int
) -> tuple[list[int] | None, int]:
    """A shortest cycle through v of at most `reach` arcs, and how many nodes were looked at; None: none was
    found within SEEN of them.
    """
    ends, above, front, length = into[v], {v: v}, [v], 0
    while front and length + 1 < reach and len(above) < SEEN:
        length += 1
        later: list[int] = []
        for u in front:
            for w in out[u]:
                if w in above:
                    continue
                above[w] = u
                if w in ends:
                    cycle = [w]
                    while cycle[-1] != v:
                        cycle.append(above[cycle[-1]])
                    return cycle[::-1], len(above)
                later.append(w)
        front = later
    return None, len(above)
