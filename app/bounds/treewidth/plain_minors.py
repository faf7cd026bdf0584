"""Contractions without compiled kernels: the same results (app/native/minors.c)."""

import heapq
from collections.abc import Iterator

import numpy as np

from app.bounds.treewidth.plain_orders import neighbours
from app.graphs.graph import Graph


class PlainMinor:
    """A graph on which nodes are contracted; see Contractions in app/bounds/treewidth/minors.py."""

    def __init__(self, graph: Graph, weights: np.ndarray | None, by_degree: bool, tie: list[int]) -> None:
        self.n, self.by_degree, self.tie = graph.n, by_degree, tie
        self.near = neighbours(graph)
        self.weight = [1] * graph.n if weights is None else weights.tolist()
        self.bag = [self.weight[v] + sum(self.weight[u] for u in own) for v, own in enumerate(self.near)]

    def run(self, looks: int, steps: np.ndarray, into: np.ndarray, told: np.ndarray) -> Iterator[None]:
        """All contractions, so many at a time: the arrays hold what has been done at each pause."""
        heap = [(self.bag[v], self.tie[v], v) for v in range(self.n)]
        heapq.heapify(heap)
        done = [False] * self.n
        while heap:
            worth, _, v = heapq.heappop(heap)
            if done[v] or worth != self.bag[v]:
                continue
            if worth > told[1]:
                told[1:] = worth, told[0]
            if told[0] % looks == looks - 1:
                yield
            done[v], u = True, self._chosen(v)
            steps[told[0]], into[v] = v, self.n if u < 0 else u
            told[0] += 1
            for x in self._contract(v, u):
                heapq.heappush(heap, (self.bag[x], self.tie[x], x))

    def _chosen(self, v: int) -> int:
        """The neighbour that a node is contracted into, -1 where it has none."""
        near, own, tie = self.near, self.near[v], self.tie
        if self.by_degree:
            return min(own, key=lambda x: (len(near[x]), tie[x], x), default=-1)
        return min(own, key=lambda x: (len(near[x] & own), len(near[x]), tie[x], x), default=-1)

    def _contract(self, v: int, u: int) -> set[int]:
        """v goes into its neighbour u, -1: it goes. Returns the nodes whose bags may have changed."""
        near, weight, bag, own = self.near, self.weight, self.bag, self.near[v]
        near[v] = set()
        for x in own:
            near[x].discard(v)
            bag[x] -= weight[v]
        if u < 0:
            return set()
        for x in own - near[u] - {u}:
            near[u].add(x)
            near[x].add(u)
            bag[u] += weight[x]
            bag[x] += weight[u]
        if weight[v] >= weight[u]:
            return own
        lost, weight[u] = weight[u] - weight[v], weight[v]
        bag[u] -= lost
        for x in near[u]:
            bag[x] -= lost
        return own | near[u]
