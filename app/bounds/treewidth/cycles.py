"""A lower bound of fill-in: chordless cycles no two of which have a missing edge in common.

A chordless cycle of k nodes gets k - 3 chords in every chordal completion, all between nodes that are not
adjacent. Cycles of which no two have a pair of such nodes in common get them apart.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from app.bounds.certificate import BadCertificate
from app.graphs.graph import Graph
from app.toolbox import never

LEAST = 4  # nodes of a chordless cycle
MOST_DEGREE = 64  # of nodes whose pairs of neighbours are looked at
LONGEST = 12


@dataclass(frozen=True, eq=False)
class CycleProof:
    """Chordless cycles of a whole graph, which get ptr[-1] - 3 cycles new edges at least.

    ptr, nodes   [c+1] int64, where each cycle begins in nodes [k] int64
    checked      False where a finished search has found a better bound
    """

    ptr: np.ndarray
    nodes: np.ndarray
    checked: bool

    def lower(self, graph: Graph) -> int:
        """New edges, at least. Raises BadCertificate."""
        ptr, nodes = self.ptr, self.nodes
        if not len(ptr) or ptr[0] or (np.diff(ptr) < LEAST).any() or ptr[-1] != len(nodes):
            raise BadCertificate(
                f"{graph.name}: cycles have {LEAST} nodes or more each, and end where they should"
            )
        if len(nodes) and not 0 <= nodes.min() <= nodes.max() < graph.n:
            raise BadCertificate(f"{graph.name}: a node of a cycle is not in it")
        edges = set((graph.row_of().astype(np.int64) * graph.n + graph.indices).tolist())
        seen: set[int] = set()
        for first, end in zip(ptr[:-1].tolist(), ptr[1:].tolist()):
            cycle = nodes[first:end].tolist()
            if len(set(cycle)) < len(cycle):
                raise BadCertificate(f"{graph.name}: a cycle comes to a node twice")
            for i, j in combinations(range(len(cycle)), 2):
                beside = j - i in (1, len(cycle) - 1)
                if (cycle[i] * graph.n + cycle[j] in edges) != beside:
                    raise BadCertificate(f"{graph.name}: a cycle lacks an edge or has a chord")
                pair = min(cycle[i], cycle[j]) * graph.n + max(cycle[i], cycle[j])
                if not beside and pair in seen:
                    raise BadCertificate(f"{graph.name}: two cycles have a missing edge in common")
                if not beside:
                    seen.add(pair)
        return len(nodes) - 3 * (len(ptr) - 1)


def packed(graph: Graph, late: Callable[[], bool] = never) -> tuple[np.ndarray, np.ndarray]:
    """Cycles (ptr, nodes) packed greedily: those of 4 nodes first, then through each node the shortest.

    late   asked now and then: where it is true there are no more
    """
    near = [set(graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist()) for v in range(graph.n)]
    used: set[tuple[int, int]] = set()
    cycles: list[list[int]] = []
    for find in (_squares, _longer):
        for v in range(graph.n):
            if late():
                break
            if not 2 <= len(near[v]) <= MOST_DEGREE:
                continue
            for cycle in find(near, v, used):
                pairs = set(_pairs(cycle))
                if not pairs & used:
                    used |= pairs
                    cycles.append(cycle)
    ptr = np.concatenate([[0], np.cumsum([len(each) for each in cycles])]).astype(np.int64)
    return ptr, np.array([v for each in cycles for v in each], dtype=np.int64)


def _pairs(cycle: list[int]) -> Iterator[tuple[int, int]]:
    """The pairs of a chordless cycle that are not adjacent."""
    for i, j in combinations(range(len(cycle)), 2):
        if j - i not in (1, len(cycle) - 1):
            yield min(cycle[i], cycle[j]), max(cycle[i], cycle[j])


def _open_pairs(near: list[set[int]], v: int, used: set[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Neighbours of v that are not adjacent, of which no cycle has both yet."""
    for a, b in combinations(sorted(near[v]), 2):
        if b not in near[a] and (a, b) not in used:
            yield a, b


def _squares(near: list[set[int]], v: int, used: set[tuple[int, int]]) -> Iterator[list[int]]:
    """Chordless cycles of 4 nodes of which v is the lowest."""
    for a, b in _open_pairs(near, v, used):
        for w in sorted(near[a] & near[b]):
            if w > v and w not in near[v] and (v, w) not in used:
                yield [v, a, w, b]
                break


def _longer(near: list[set[int]], v: int, used: set[tuple[int, int]]) -> Iterator[list[int]]:
    """For two neighbours of v a shortest way between them that no other neighbour of v is on: no chords."""
    for a, b in _open_pairs(near, v, used):
        shut, before, queue, depth = near[v] | {v}, {a: -1}, deque([a]), {a: 0}
        while queue and b not in before:
            x = queue.popleft()
            if depth[x] > LONGEST - LEAST:
                break
            for y in sorted(near[x]):
                if y not in before and (y not in shut or y == b):
                    before[y], depth[y] = x, depth[x] + 1
                    queue.append(y)
        if b in before:
            cycle, x = [v], b
            while x >= 0:
                cycle.append(x)
                x = before[x]
            yield cycle
