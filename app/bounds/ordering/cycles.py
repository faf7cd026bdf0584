"""Cycles that a point of the linear program violates, and packings of cycles of net arcs.

A cycle begins with its smallest node.
"""

import ctypes
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.bounds.cycles.shortest import LEAST, LONG, ShortestCycles
from app.bounds.ordering.program import Cycle
from app.graphs.lists import starts
from app.graphs.ordering import NetArcs
from app.native.library import function
from app.native.state import KernelState

REACHES = 3, 5  # arcs of cycles that are packed first
# Nodes that the search for one cycle of a packing looks at, about; how many times more next; such of a step.
SEEN, GROWTH, WORK = 400, 8, 200_000
ROOM = 1 << 16  # nodes of the cycles of a step
Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GIVEN = ("out_ptr", "in_ptr", "out", "into", "in_arc", "turns")
ARRAYS = (
    "rest", "seen", "goal", "by", "last", "queue", "above", "back", "below", "nodes", "ends", "values",
)  # fmt: skip
NUMBERS = ("room", "at", "stamp", "cycles", "used")


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
        self.net, self._shortest = net, ShortestCycles()
        self._back = np.argsort(net.heads, kind="stable")  # arcs by heads
        self._into = starts(net.heads, net.n)
        self._ptr = starts(net.tails, net.n)

    def violated(self, y: np.ndarray, most: int) -> list[Cycle]:
        """Shortest cycles of less than 1 by y [arcs], through some nodes; through all if those have none."""
        n, net = self.net.n, self.net
        length = np.maximum(y, 0) + LONG
        matrix = sp.csr_array((length, net.heads, self._ptr), shape=(n, n))

        def last(v: int, dist: np.ndarray) -> tuple[int, float] | None:
            arcs = self._back[self._into[v] : self._into[v + 1]]
            if not len(arcs):
                return None
            ways = dist[net.tails[arcs]] + length[arcs]
            best = int(np.argmin(ways))
            return (int(net.tails[arcs[best]]), float(ways[best])) if np.isfinite(ways[best]) else None

        found: dict[Cycle, float] = {}
        for cycles in self._shortest.rounds(np.arange(n), matrix, 1 - LEAST + LONG * n, last):
            for cycle, whole in cycles:
                if (value := whole - LONG * len(cycle)) < 1 - LEAST:
                    found[turned(cycle[::-1])] = value
            if found:
                break
        return sorted(found, key=lambda cycle: (found[cycle], cycle))[:most]


class _Packing(ctypes.Structure):
    _fields_ = (
        ("n", Long),
        *((name, Pointer) for name in (*GIVEN, *ARRAYS)),
        *((name, Long) for name in NUMBERS),
    )


PACK = function("lk_order_pack", ctypes.POINTER(_Packing), Long, Long, Long)


def packed(net: NetArcs, compiled: bool = True) -> Iterator[list[tuple[Cycle, int]]]:
    """Cycles of net arcs and whole numbers whose sums are at no arc above its weight; all that there are so
    far, again and again. Short ones first: through each node by turns with a longer reach, then of more nodes
    that are looked at, until what is left of the weights has no cycle.
    """
    packing, found = Packing(net, compiled and PACK is not None), []
    reaches, most = list(REACHES), SEEN
    while packing.trim():
        reach = reaches.pop(0) if reaches else net.n
        while packing.at < net.n:
            found += packing.more(reach, most, WORK)
            yield found
        packing.at, most = 0, most if reaches else most * GROWTH
    yield found


class Packing(KernelState):
    """Cycles that use up weights, by the compiled kernel or plainly, with the same results.

    at     the node, by its turn, that is asked next
    rest   [m] int64, what is left of the weights
    """

    numbers = NUMBERS

    def __init__(self, net: NetArcs, compiled: bool) -> None:
        n, back = net.n, np.argsort(net.heads, kind="stable")
        self.n, self.compiled = n, compiled
        self.out_ptr, self.out = starts(net.tails, n), net.heads.astype(np.int32)
        self.in_ptr, self.into = starts(net.heads, n), net.tails[back].astype(np.int32)
        self.in_arc, self.rest = back.astype(np.int64), net.weights.copy()
        ways = np.diff(self.out_ptr) * np.diff(self.in_ptr)
        self.turns = np.argsort(ways, kind="stable").astype(np.int32)
        self.seen, self.goal, self.by, self.last = (np.zeros(n, dtype=np.int64) for _ in range(4))
        self.queue, self.above, self.back, self.below = (np.zeros(n, dtype=np.int32) for _ in range(4))
        self.room = ROOM + n
        self.nodes = np.zeros(self.room, dtype=np.int32)
        self.ends, self.values = (np.zeros(self.room, dtype=np.int64) for _ in range(2))
        self.at = self.stamp = self.cycles = self.used = 0
        self._hold(_Packing(n), (*GIVEN, *ARRAYS))

    def trim(self) -> bool:
        """Arcs that are in no cycle of what is left are used up, too; whether any others are."""
        tails = np.repeat(np.arange(self.n), np.diff(self.out_ptr))
        left = self.rest > 0
        arcs = np.ones(int(left.sum()), dtype=np.int8), (tails[left], self.out[left])
        label = connected_components(sp.csr_array(arcs, shape=(self.n, self.n)), connection="strong")[1]
        self.rest[label[tails] != label[self.out]] = 0
        return bool(self.rest.any())

    def more(self, reach: int, most: int, work: int) -> list[tuple[Cycle, int]]:
        """Cycles of at most `reach` arcs that are found next, each by a look at `most` nodes, about, while so
        many nodes are looked at in all.
        """
        self.cycles = self.used = 0
        if self.compiled:
            self._call(PACK, reach, most, work)
        else:
            self._plain(reach, most, work)
        nodes, ends = self.nodes[: self.used].tolist(), [0, *self.ends[: self.cycles].tolist()]
        found = [turned(nodes[first:last]) for first, last in pairwise(ends)]
        return list(zip(found, self.values[: self.cycles].tolist()))

    def _plain(self, reach: int, most: int, work: int) -> None:
        """What the kernel does."""
        while self.at < self.n and work > 0:
            if self.used + self.n > self.room:
                return
            found, count = self._take_cycle(int(self.turns[self.at]), reach, most)
            work -= count
            self.at += not found

    def _take_cycle(self, v: int, reach: int, most: int) -> tuple[bool, int]:
        """Whether a short cycle through v of so many arcs is found, which is taken; nodes looked at.

        From v, and back to it, each side has the nodes that it knows, with the next one towards v and the arc
        between, and those that wait.
        """
        sides = ({v: (v, -1)}, [v]), ({v: (v, -1)}, [v])
        looked, length = 2, 0
        while sides[0][1] and sides[1][1] and length < reach and looked < most:
            length += 1
            # v ends neither side, so that the first step is back: else the last arc of a cycle is not met.
            back = len(sides[1][0]) == 1 or len(sides[1][1]) < len(sides[0][1])
            (known, front), others = sides[back], sides[not back][0]
            later: list[int] = []
            for u in front:
                for w, arc in self._steps(u, back):
                    if not self.rest[arc] or w in known:
                        continue
                    known[w] = u, arc
                    if w in others:
                        self._take(v, w, sides[0][0], sides[1][0])
                        return True, looked
                    later.append(w)
                    looked += 1
            front[:] = later
        return False, looked

    def _steps(self, u: int, back: bool) -> Iterator[tuple[int, int]]:
        """Nodes that arcs of u lead to, or come from, and these arcs."""
        if back:
            cut = slice(int(self.in_ptr[u]), int(self.in_ptr[u + 1]))
            return zip(self.into[cut].tolist(), self.in_arc[cut].tolist())
        first, last = int(self.out_ptr[u]), int(self.out_ptr[u + 1])
        return zip(self.out[first:last].tolist(), range(first, last))

    def _take(
        self, v: int, w: int, above: dict[int, tuple[int, int]], below: dict[int, tuple[int, int]]
    ) -> None:
        """The cycle from v to w and from there back to v."""
        cycle, arcs = [w], []
        while cycle[-1] != v:
            u, arc = above[cycle[-1]]
            cycle.append(u)
            arcs.append(arc)
        cycle.reverse()
        u = w
        while u != v:
            u, arc = below[u]
            cycle.append(u)
            arcs.append(arc)
        cycle.pop()
        value = int(self.rest[arcs].min())
        self.rest[arcs] -= value
        self.nodes[self.used : self.used + len(cycle)] = cycle
        self.used += len(cycle)
        self.ends[self.cycles], self.values[self.cycles] = self.used, value
        self.cycles += 1
