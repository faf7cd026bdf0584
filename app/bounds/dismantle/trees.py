"""Trees that a set of nodes has to break, and cliques, found by lengths of nodes; their inequalities:
witness.py.

The kernel and `grown` find the same tree: one of shortest paths from a root, of its nearest nodes. With
coefficients b_i, the sizes below nodes, the cost of the inequality is the sum of the distances of the nodes,
times their sizes, so that farther nodes are worth taking while they are no farther than cost / right side.
"""

import ctypes
import heapq
from typing import NamedTuple

import numpy as np

from app.graphs.sized import SizedGraph
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
TREE = function(
    "lk_dismantle_tree",
    *(Pointer,) * 4,
    Long,
    Long,
    Long,
    Long,
    ctypes.c_int32,
    *(Pointer,) * 6,
    returns=Long,
)
LONGEST = 1 << 24  # of lengths
WIDE, LEAST_WIDE = 20, 32  # right sides of trees, as a multiple of K, and beside that
WIDEST = 100  # neighbours that a clique is looked for among


class Tree(NamedTuple):
    """nodes   [k] int32, the root first     above  [k] int32, the place of the node above; -1 of the root
    coefficients   [k] int64, and the right side of the inequality        cost  of these, by lengths
    """

    nodes: np.ndarray
    above: np.ndarray
    coefficients: np.ndarray
    right: int
    cost: int


class Grower:
    """Trees of one graph."""

    def __init__(self, core: SizedGraph, compiled: bool = True) -> None:
        n = core.n
        self.core, self.compiled = core, compiled and TREE is not None
        self.widest = WIDE * core.most + LEAST_WIDE
        self.length = np.ones(n, dtype=np.int64)  # from 1 to LONGEST
        self._nodes, self._above, self._parent = (np.empty(n, dtype=np.int32) for _ in range(3))
        self._below, self._dist, self._told = (
            np.empty(n, np.int64),
            np.full(n, -1, np.int64),
            np.empty(2, np.int64),
        )
        self._given = tuple(map(address, (core.indptr, core.indices, core.size, self.length)))
        scratch = self._nodes, self._above, self._below, self._dist, self._parent, self._told
        self._scratch = tuple(map(address, scratch))

    def tree(self, root: int, direct: bool) -> Tree | None:
        """The best tree from a root; None: its component is not too large.

        direct   nodes are as far as they are long: for few nodes
        """
        core = self.core
        if not self.compiled:
            return grown(core, self.length.tolist(), self.widest, root, direct)
        count = TREE(*self._given, core.n, core.most, self.widest, direct, root, *self._scratch)
        if count < 0:
            raise MemoryError
        if not count:
            return None
        right, cost = self._told.tolist()
        kept = (each[:count].copy() for each in (self._nodes, self._above, self._below))
        return Tree(*kept, right, cost)


def grown(core: SizedGraph, length: list[int], widest: int, root: int, direct: bool) -> Tree | None:
    """The tree of lk_dismantle_tree."""
    ptr, columns, size = core.indptr, core.indices, core.size
    dist, parent, heap = {root: length[root]}, {root: -1}, [(length[root], root)]
    nodes: list[int] = []
    above: list[int] = []
    placed: set[int] = set()
    total = cost = best = best_cost = 0
    best_right, following = 1, 1
    ends: list[int] = []
    while heap:
        far, v = heapq.heappop(heap)
        if v in placed or dist[v] != far:
            continue
        if total - core.most >= widest or (best and far * best_right >= best_cost):
            break
        placed.add(v)
        nodes.append(v)
        above.append(parent[v])
        total += int(size[v])
        cost += int(size[v]) * far
        right = total - core.most
        if right > 0 and (not best or cost * best_right < best_cost * right):
            best, best_cost, best_right = len(nodes), cost, right
        if right >= following:
            ends.append(len(nodes))
            while following <= right:
                following *= 2
        for u in columns[ptr[v] : ptr[v + 1]].tolist():
            farther = (0 if direct else far) + length[u]
            if u not in placed and (u not in dist or dist[u] > farther):
                dist[u], parent[u] = farther, len(nodes) - 1
                heapq.heappush(heap, (farther, u))
    if not best:
        return None
    found: Tree | None = None
    for end in [*(each for each in ends if each <= best), best]:
        own = _capped(core, length, nodes[:end], above[:end])
        if found is None or own.cost * found.right < found.cost * own.right:
            found = own
    return found


def _capped(core: SizedGraph, length: list[int], nodes: list[int], above: list[int]) -> Tree:
    below = core.size[nodes].tolist()
    for i in range(len(nodes) - 1, 0, -1):
        below[above[i]] += below[i]
    right = below[0] - core.most
    coefficients = [min(each, right) for each in below]
    cost = sum(each * length[v] for each, v in zip(coefficients, nodes))
    lists = (np.array(each, dtype=np.int32) for each in (nodes, above))
    return Tree(*lists, np.array(coefficients, dtype=np.int64), right, cost)


class Cliques:
    """Cliques of one graph."""

    def __init__(self, core: SizedGraph) -> None:
        ptr, columns = core.indptr.tolist(), core.indices.tolist()
        self.near = [set(columns[ptr[v] : ptr[v + 1]]) for v in range(core.n)]
        self.core, self.size = core, core.size.tolist()

    def around(self, root: int, length: list[int] | list[float]) -> list[int]:
        """A clique of a node and neighbours, short ones first; ascending."""
        found = [root]
        near = sorted(self.near[root], key=lambda u: (length[u], u))[:WIDEST]
        for u in near:
            if all(v in self.near[u] for v in found[1:]):
                found.append(u)
        return sorted(found)

    def right(self, clique: list[int]) -> int:
        """How many of its nodes every set has: all but the most that are not too large together."""
        return clique_right([self.size[v] for v in clique], self.core.most)


def clique_right(sizes: list[int], most: int) -> int:
    """The same, of the sizes of its nodes."""
    kept = total = 0
    for size in sorted(sizes):
        total += size
        if total > most:
            break
        kept += 1
    return len(sizes) - kept
