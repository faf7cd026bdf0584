"""A first packing of odd cycles on a large graph: greedily, triangles and then longer ones.

Every cycle gets the least weight that is left on its edges, so that values add up to at most |w| on each: a
bound that needs no program, in about linear time. packing.py goes on from here.
"""

import ctypes
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.bounds.cover.kernels import Rows
from app.bounds.cut import greedy_plain as plain
from app.graphs.lists import starts
from app.graphs.orders import places_of
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
TRIANGLES = function("lk_cut_triangles", Long, *[Pointer] * 6, Long, *[Pointer] * 3, returns=Long)
SHORT_CYCLES = function(
    "lk_cut_short_cycles", *[Long] * 2, *[Pointer] * 5, *[Long] * 3, *[Pointer] * 4, returns=Long
)
SLOTS, SPACE = 1 << 16, 1 << 20  # cycles of one call, and their nodes
FIRST_REACH, FURTHER, LAST_REACH = 64, 8, 1 << 15  # entries that a search looks at, from pass to pass
WORTH = 0.01  # of the value so far: what a pass gains, if there is to be another one
SLICE_SECONDS = 0.1  # that one slice is to take


@dataclass(frozen=True, eq=False)
class Found:
    """Cycles: path[ptr[k]:ptr[k+1]] are the nodes of one, value [k] int64 what it takes of its edges."""

    ptr: np.ndarray
    path: np.ndarray
    value: np.ndarray


class GreedyPacking:
    """Odd cycles of a graph, each with a value; all values together fit the rooms of the edges.

    room   [m] int64, what is left of |w|
    """

    def __init__(
        self, rows: Rows, edge: np.ndarray, odd: np.ndarray, size: np.ndarray, compiled: bool = True
    ) -> None:
        """edge   [nnz] int64, the edge of each entry     odd [m], of positive weight     size [m], |w|."""
        self._rows, self._edge = rows, np.ascontiguousarray(edge, dtype=np.int64)
        self._odd, self.room = np.ascontiguousarray(odd, dtype=np.uint8), size.astype(np.int64)
        self._compiled = compiled and None not in (TRIANGLES, SHORT_CYCLES)
        self._packed = 0  # the values of all cycles together

    def slices(self) -> Iterator[Found | None]:
        """The work, cut into slices: now and then the cycles found since the last time, else None."""
        yield from self._told(self._triangles())
        reach = FIRST_REACH
        while reach <= LAST_REACH:
            before = self._packed
            yield from self._told(self._short_cycles(reach))
            if reach > FIRST_REACH and self._packed - before <= WORTH * self._packed:
                return
            reach *= FURTHER

    def _told(self, found: Iterator[Found]) -> Iterator[Found | None]:
        """Cycles of several slices together: as many as were told before, so that few are joined often."""
        parts, waiting, told = [], 0, 0
        for part in found:
            parts.append(part)
            waiting += len(part.value)
            self._packed += int(part.value.sum())
            if waiting <= told:
                yield None
                continue
            yield _joined(parts)
            parts, waiting, told = [], 0, told + waiting
        if parts:
            yield _joined(parts)

    def _triangles(self) -> Iterator[Found]:
        """A pass through all nodes."""
        later, seen, at = _later(self._rows, self._edge), np.zeros(self._rows.n, dtype=np.int64), 0
        pace = _Pace(self._rows.n)
        while at < self._rows.n:
            part, at = self._triangles_of(later, seen, at, min(at + pace.count, self._rows.n))
            pace.made()
            yield part

    def _triangles_of(self, later: tuple, seen: np.ndarray, at: int, end: int) -> tuple[Found, int]:
        if not self._compiled:
            return _listed(*plain.triangles(later, self._odd, self.room, SLOTS, at, end))
        nodes, value = np.empty((SLOTS, 3), dtype=np.int32), np.empty(SLOTS, dtype=np.int64)
        done = np.array([at], dtype=np.int64)
        arrays = (*later, self._odd, self.room, seen)
        k = TRIANGLES(end, *map(address, arrays), SLOTS, address(nodes), address(value), address(done))
        return Found(3 * np.arange(k + 1), nodes[:k].ravel(), value[:k].copy()), int(done[0])

    def _short_cycles(self, reach: int) -> Iterator[Found]:
        """A pass through all nodes, by searches that look at `reach` entries."""
        at, pace = 0, _Pace(self._rows.n)
        while at < self._rows.n:
            part, at = self._short_cycles_of(reach, at, min(at + pace.count, self._rows.n))
            pace.made()
            yield part

    def _short_cycles_of(self, reach: int, at: int, end: int) -> tuple[Found, int]:
        rows, space = self._rows, max(SPACE, self._rows.n)
        if not self._compiled:
            return _listed(
                *plain.short_cycles(rows, self._edge, self._odd, self.room, reach, SLOTS, space, at, end)
            )
        ptr, value = np.empty(SLOTS + 1, dtype=np.int64), np.empty(SLOTS, dtype=np.int64)
        path, done = np.empty(space, dtype=np.int32), np.array([at], dtype=np.int64)
        arrays = (rows.indptr, rows.indices, self._edge, self._odd, self.room)
        k = SHORT_CYCLES(
            rows.n, end, *map(address, arrays), reach, SLOTS, space, *map(address, (ptr, path, value, done))
        )
        if k < 0:
            raise MemoryError("short cycles")
        return Found(ptr[: k + 1].copy(), path[: ptr[k]].copy(), value[:k].copy()), int(done[0])


class _Pace:
    """How many nodes a slice has, so that it takes about SLICE_SECONDS."""

    def __init__(self, n: int) -> None:
        self.count, self._begun = max(n // 1000, 1), time.perf_counter()

    def made(self) -> None:
        """A slice has ended."""
        now = time.perf_counter()
        factor = SLICE_SECONDS / max(now - self._begun, 1e-9)
        self.count, self._begun = max(1, int(self.count * min(max(factor, 0.25), 4.0))), now


def _later(rows: Rows, edge: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every row the entries of nodes with more neighbours, or as many and a higher number.

    Rows are short then, hubs' too.
    returns   start [n+1], ends and edge of these entries
    """
    degree = np.diff(rows.indptr)
    rank = places_of(np.lexsort((np.arange(rows.n), degree)))
    row = np.repeat(np.arange(rows.n), degree)
    kept = rank[row] < rank[rows.indices]
    start = starts(row[kept], rows.n)
    return start, np.ascontiguousarray(rows.indices[kept]), np.ascontiguousarray(edge[kept])


def _listed(found: list[tuple[list[int], int]], at: int) -> tuple[Found, int]:
    """Cycles as (nodes, value)."""
    ptr = np.cumsum([0, *(len(nodes) for nodes, _ in found)], dtype=np.int64)
    path = np.array([v for nodes, _ in found for v in nodes], dtype=np.int32)
    return Found(ptr, path, np.array([value for _, value in found], dtype=np.int64)), at


def _joined(parts: list[Found]) -> Found:
    """All of them, one after the other."""
    ends = np.concatenate([np.diff(part.ptr) for part in parts]) if parts else np.zeros(0, dtype=np.int64)
    empty = np.zeros(0, dtype=np.int64)
    return Found(
        np.concatenate([[0], np.cumsum(ends)]).astype(np.int64),
        np.concatenate([empty.astype(np.int32), *(part.path for part in parts)]),
        np.concatenate([empty, *(part.value for part in parts)]),
    )
