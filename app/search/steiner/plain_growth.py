"""What app/native/prize_growth.c does, without kernels: the same edges, slowly."""

import heapq

import numpy as np

from app.graphs.steiner import SteinerCore

MOST = 1 << 60  # that a cluster has left: longer than all growth takes, which ends before 2^58


class Clusters:
    """Nodes that have grown together, by the root of each cluster.

    above    of each node one of its cluster            members   of roots the nodes of their clusters
    grown    of roots how far their nodes had grown at `since`; of others beside the node above
    left     of roots what was left then of the prizes    active    whether they grow
    count    active clusters
    """

    def __init__(self, core: SteinerCore, lengths: np.ndarray, prizes: np.ndarray) -> None:
        self.indptr, self.indices = core.indptr.tolist(), core.indices.tolist()
        self.row, self.lengths = core.row_of().tolist(), lengths.tolist()
        self.n, self.left = core.n, prizes.tolist()
        self.above, self.members = list(range(core.n)), [[x] for x in range(core.n)]
        self.grown, self.since = [0] * core.n, [0] * core.n
        self.active = [prize > 0 for prize in self.left]
        self.now, self.count = 0, sum(self.active)
        self.heap: list[tuple[int, int, int]] = []

    def joined(self) -> list[int]:
        """The entries that join clusters, in order, until one cluster at most is active."""
        found = []
        for x in range(self.n):
            if self.active[x]:
                heapq.heappush(self.heap, (self.left[x], self.n + x, 0))
        for entry, row in enumerate(self.row):
            if row < self.indices[entry]:
                self._wait_or_push(entry)
        while self.heap and self.count > 1:
            self.now, x, at = heapq.heappop(self.heap)
            if x >= self.n:
                self._sleep(x - self.n)
            elif self._wait(self.indptr[x] + at):
                found.append(self.indptr[x] + at)
                self._unite(found[-1])
        return found

    def _root(self, x: int) -> tuple[int, int]:
        """The root of a node's cluster, and how far the node has grown."""
        beside = 0
        while self.above[x] != x:
            beside += self.grown[x]
            x = self.above[x]
        return x, beside + self.grown[x] + (self.now - self.since[x] if self.active[x] else 0)

    def _wait(self, entry: int) -> bool:
        """Whether an entry of the graph is full; else it is to be looked at when it may be."""
        u = self.row[entry]
        (a, one), (b, other) = self._root(u), self._root(self.indices[entry])
        rate, room = self.active[a] + self.active[b], self.lengths[entry] - one - other
        if a == b or not rate:
            return False
        if room < rate:
            return True
        heapq.heappush(self.heap, (self.now + room // rate, u, entry - self.indptr[u]))
        return False

    def _wait_or_push(self, entry: int) -> None:
        if self._wait(entry):
            u = self.row[entry]
            heapq.heappush(self.heap, (self.now, u, entry - self.indptr[u]))

    def _settle(self, root: int) -> None:
        if self.active[root]:
            self.grown[root] += self.now - self.since[root]
            self.left[root] -= self.now - self.since[root]
        self.since[root] = self.now

    def _sleep(self, root: int) -> None:
        """A cluster whose prizes are spent."""
        spent = self.now - self.since[root]
        if self.above[root] != root or not self.active[root] or self.left[root] > spent:
            return
        self._settle(root)
        self.active[root] = False
        self.count -= 1

    def _unite(self, entry: int) -> None:
        """The clusters of a full entry become one."""
        a, b = self._root(self.row[entry])[0], self._root(self.indices[entry])[0]
        slept = [root for root in (a, b) if not self.active[root]]
        awake = [x for root in slept[:1] for x in self.members[root]]
        self._settle(a)
        self._settle(b)
        self.count -= self.active[a] and self.active[b]
        a, b = min(a, b), max(a, b)
        self.above[b] = a
        self.grown[b] -= self.grown[a]
        self.left[a] = min(self.left[a] + self.left[b], MOST)
        self.active[a] = True
        self.members[a] += self.members[b]
        heapq.heappush(self.heap, (self.now + self.left[a], self.n + a, 0))
        for x in awake:
            for entry in range(self.indptr[x], self.indptr[x + 1]):
                self._wait_or_push(entry)
