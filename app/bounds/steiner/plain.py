"""What native/ascent.c does, step by step, in Python: slow, and with the same results."""

import heapq
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from app.bounds.steiner.ascent import Ascent
    from app.bounds.steiner.net import Net

GOING, DONE, FULL = 0, 1, 2


class _Cut:
    """As the struct Cut: the nodes of a terminal's cut, `looked_at` of them, and arcs into it."""

    def __init__(self, terminal: int) -> None:
        self.terminal, self.nodes, self.looked_at = terminal, [], 0
        self.inside: set[int] = set()
        self.arcs: list[int] = []
        self.least = 0

    def join(self, u: int) -> None:
        self.nodes.append(u)
        self.inside.add(u)


class PlainAscent:
    """lk_ascent_run on lists of Python's numbers, which `Ascent` gets back."""

    def __init__(self, a: "Ascent") -> None:
        self.indptr, self.indices, self.room = (
            each.tolist() for each in (a.net.indptr, a.net.indices, a.room)
        )
        self.place, self.terminals = a.place.tolist(), a.terminals.tolist()
        self.active, self.total, self.root, self.most = a.active.tolist(), a.total.tolist(), a.root, a.most
        self.lists: list[list[tuple[int, int]]] = [[] for _ in self.terminals]
        self.heap = sorted(a.heap[: a.waiting].tolist())
        self.lower, self.work, self.k = a.lower, 0, len(self.terminals)

    def run(self, until: int) -> int:
        """As lk_ascent_run, for which lists are never full."""
        while self.heap and self.lower < self.most:
            if self.work >= until:
                return GOING
            cut = self._look_at(heapq.heappop(self.heap) % self.k)
            over = self._grow(cut)
            while not over and self.lower < self.most:
                smallest = self.heap[0] // self.k if self.heap else len(cut.arcs)
                if 4 * len(cut.arcs) > 5 * smallest:
                    break
                over = self._rise(cut) or self._grow(cut)
            if over:
                self.active[cut.terminal] = 0
            else:
                heapq.heappush(self.heap, len(cut.arcs) * self.k + cut.terminal)
        return DONE

    def _look_at(self, terminal: int) -> _Cut:
        cut = _Cut(terminal)
        if not self.lists[terminal]:
            self._join(cut, self.terminals[terminal])
        else:
            for u, _ in self.lists[terminal]:
                cut.join(u)
        return cut

    def _join(self, cut: _Cut, u: int) -> None:
        cut.join(u)
        self.lists[cut.terminal].append((u, self.total[cut.terminal]))

    def _ends(self, cut: _Cut, u: int) -> bool:
        other = self.place[u]
        return u == self.root or (other >= 0 and other != cut.terminal and bool(self.active[other]))

    def _grow(self, cut: _Cut) -> bool:
        while cut.looked_at < len(cut.nodes):
            v = cut.nodes[cut.looked_at]
            cut.looked_at += 1
            self.work += self.indptr[v + 1] - self.indptr[v] + 1
            for i in range(self.indptr[v], self.indptr[v + 1]):
                u = self.indices[i]
                if self.room[i] < 0 or u in cut.inside:
                    continue
                if self.room[i] > 0:
                    cut.arcs.append(i)
                elif self._ends(cut, u):
                    return True
                else:
                    self._join(cut, u)
        self.work += len(cut.arcs)
        cut.arcs = [i for i in cut.arcs if self.indices[i] not in cut.inside]
        cut.least = min((self.room[i] for i in cut.arcs), default=self.most)
        return False

    def _rise(self, cut: _Cut) -> bool:
        by = min(cut.least, self.most - self.lower)
        self.total[cut.terminal] += by
        self.lower += by
        self.work += len(cut.arcs)
        for i in cut.arcs:
            self.room[i] -= by
        for i in cut.arcs:
            u = self.indices[i]
            if self.room[i] > 0 or u in cut.inside:
                continue
            if self._ends(cut, u):
                return True
            self._join(cut, u)
        return False


def distances(
    indptr: np.ndarray, indices: np.ndarray, length: np.ndarray, sources: np.ndarray, most: int
) -> np.ndarray:
    """As lk_arc_distances."""
    begin, ends, lengths = indptr.tolist(), indices.tolist(), length.tolist()
    far = [most + 1] * (len(begin) - 1)
    if most < 0:
        return np.array(far, dtype=np.int64)
    for source in sources.tolist():
        far[source] = 0
    heap = [(0, source) for source in sorted(sources.tolist())]
    while heap:
        at, v = heapq.heappop(heap)
        if at > far[v]:
            continue
        for i in range(begin[v], begin[v + 1]):
            if 0 <= lengths[i] <= most - at and at + lengths[i] < far[ends[i]]:
                far[ends[i]] = at + lengths[i]
                heapq.heappush(heap, (at + lengths[i], ends[i]))
    return np.array(far, dtype=np.int64)


def grown(
    indptr: np.ndarray, indices: np.ndarray, length: np.ndarray, wanted: np.ndarray, root: int
) -> tuple[np.ndarray, int]:
    """As lk_tree_along: parent [n], and how many terminals are missing."""
    begin, ends, lengths = indptr.tolist(), indices.tolist(), length.tolist()
    n = len(begin) - 1
    far: list[int | None] = [None] * n
    by, parent = [-1] * n, [-1] * n
    missing = int(wanted.sum()) - int(wanted[root])
    far[root], parent[root] = 0, root
    heap = [(0, root)]
    while heap and missing:
        at, node = heapq.heappop(heap)
        if at > far[node]:
            continue
        if wanted[node] and parent[node] < 0:
            v = node
            while parent[v] < 0:
                parent[v], far[v] = by[v], 0
                missing -= int(wanted[v])
                heapq.heappush(heap, (0, v))
                v = by[v]
            continue
        for i in range(begin[node], begin[node + 1]):
            u = ends[i]
            if lengths[i] < 0 or parent[u] >= 0 or (far[u] is not None and at + lengths[i] >= far[u]):
                continue
            far[u], by[u] = at + lengths[i], node
            heapq.heappush(heap, (far[u], u))
    return np.array(parent, dtype=np.int64), missing


def cuts(
    net: "Net",
    capacity: np.ndarray,
    terminals: list[int],
    one: int,
    each: int,
    most: int,
    space: int,
) -> list[tuple[int, list[int]]]:
    """As lk_directed_cuts: (terminal, nodes) of each, `most` cuts of `space` nodes at most."""
    rows = net.indptr.tolist(), net.indices.tolist(), net.back.tolist()
    begin, ends, _ = rows
    held, found, used = capacity.tolist(), [], 0
    for t in terminals:
        for _ in range(each):
            if len(found) == most or used + len(begin) - 1 > space:
                return found
            flow = _Flow(*rows, held)
            if flow.run(net.root, t, one) >= one:
                break
            found.append((t, flow.list))
            used += len(flow.list)
            out = (i for v in flow.list for i in range(begin[v], begin[v + 1]))
            for i in out:
                held[i] = one if flow.level[ends[i]] < 0 else held[i]
    return found


class _Flow:
    """As the struct Flow."""

    def __init__(self, begin: list[int], ends: list[int], back: list[int], capacity: list[int]) -> None:
        self.begin, self.ends, self.back, self.left = begin, ends, back, capacity.copy()
        self.level: list[int] = []
        self.list: list[int] = []

    def run(self, root: int, t: int, most: int) -> int:
        flow = 0
        while flow < most:
            self._levels(root, t)
            if self.level[root] < 0:
                break
            flow += self._blocking(root, t, most - flow)
        return flow

    def _levels(self, root: int, t: int) -> None:
        self.level, self.list, at = [-1] * (len(self.begin) - 1), [t], 0
        self.level[t] = 0
        while at < len(self.list) and self.level[root] < 0:
            v, at = self.list[at], at + 1
            for i in range(self.begin[v], self.begin[v + 1]):
                u = self.ends[i]
                if self.left[i] > 0 and self.level[u] < 0:
                    self.level[u] = self.level[v] + 1
                    self.list.append(u)

    def _blocking(self, root: int, t: int, most: int) -> int:
        flow, path, v, current = 0, [], root, self.begin[:-1]
        while flow < most:
            if v == t:
                by = min(most - flow, *(self.left[i] for i in path))
                kept = 0
                for j in reversed(range(len(path))):
                    self.left[path[j]] -= by
                    self.left[self.back[path[j]]] += by
                    kept = kept if self.left[path[j]] else j
                flow += by
                del path[kept:]
                v = self.ends[self.back[path[-1]]] if path else root
                continue
            while current[v] < self.begin[v + 1] and not self._leads_on(v, current[v]):
                current[v] += 1
            if current[v] < self.begin[v + 1]:
                path.append(self.back[current[v]])
                v = self.ends[current[v]]
            elif not path:
                break
            else:
                self.level[v] = -1
                v = self.ends[path.pop()]
        return flow

    def _leads_on(self, v: int, entry: int) -> bool:
        u = self.ends[entry]
        return self.left[self.back[entry]] > 0 and self.level[u] >= 0 and self.level[u] == self.level[v] - 1
