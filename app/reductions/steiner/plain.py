"""What app/native/steiner_reduce.c does, without kernels: the same ways around edges, slowly."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.reductions.steiner.detours import Ways

Found = dict[int, tuple[int, int]]  # by node: the distance since the last terminal, and the record


class _Records:
    """How nodes were reached: each a node, and the record before."""

    def __init__(self) -> None:
        self.node: list[int] = []
        self.before: list[int] = []

    def add(self, node: int, before: int) -> int:
        """A new one."""
        self.node.append(node)
        self.before.append(before)
        return len(self.node) - 1

    def back(self, record: int) -> list[int]:
        """The nodes from a record back to the start."""
        found = []
        while record >= 0:
            found.append(self.node[record])
            record = self.before[record]
        return found


def detour(w: Ways, edge: int) -> list[int] | None:
    """The nodes of a way from one end of an entry to the other, along other edges, whose parts between
    terminals are no longer than its edge; None: none is found.
    """
    u, v, records = int(w.row[edge]), int(w.indices[edge]), _Records()
    near: Found = {}
    ended, _ = _look(w, u, v, edge, near, None, records)
    if ended >= 0:
        return records.back(ended)[::-1]
    ended, met = _look(w, v, u, edge, {}, near, records)
    return None if ended < 0 else records.back(met)[::-1] + records.back(ended)[1:]


def _look(
    w: Ways, start: int, goal: int, edge: int, found: Found, other: Found | None, records: _Records
) -> tuple[int, int]:
    """One search; the record in which it ended, -1 elsewhere, and that of the other side there."""
    length, twin, looked = int(w.lengths[edge]), int(w.twin[edge]), 0
    found[start] = 0, records.add(start, -1)
    heap = [(0, found[start][1])]
    while heap and looked < w.most:
        cost, record = heapq.heappop(heap)
        x = records.node[record]
        if found[x][1] != record:
            continue
        for e in range(int(w.indptr[x]), int(w.indptr[x + 1])):
            if looked >= w.most or len(records.node) >= w.room:
                break
            if not w.alive[e] or e in (edge, twin):
                continue
            looked += 1
            y, beyond = int(w.indices[e]), cost + int(w.lengths[e])
            if beyond > length:
                continue
            d = 0 if w.terminal[y] else beyond
            if y in found and found[y][0] <= d:
                continue
            new = records.add(y, record)
            found[y] = d, new
            if other is None:
                if y == goal:
                    return new, -1
            elif y in other and other[y][0] + beyond <= length:
                return new, other[y][1]
            heapq.heappush(heap, (d, new))
    return -1, -1
