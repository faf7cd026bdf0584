"""Elimination orders by sweeps: a front of nodes moves once over the graph.

Nodes are eliminated one by one; those that are not, but have a neighbour that is, are the front. Whatever
edges eliminations make, the bag of a node holds no others but itself and the front that it leaves behind.
Always a node of the front goes that has the fewest neighbours outside it, of equal ones that which has been
in it longest. The first node of a part is the last one of a walk by breadth that begins in the last one of
another: an end of a long and narrow part.

Good for grids, meshes and whatever is long: a grid of n rows has fronts of about n nodes. Orders of least
degree are worse there, as their pieces grow together from all sides.

Source   King, An automatic reordering scheme for simultaneous equations derived from network systems, Int. J.
         Numer. Methods Eng. 1970; George and Liu, Computer Solution of Large Sparse Positive Definite Systems
         1981, section 4.4
"""

import ctypes
import heapq
import itertools

import numpy as np

from app.bounds.treewidth.orders import rows_of
from app.graphs.graph import Graph
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
SWEPT = function("lk_swept", Long, *[Pointer] * 3, returns=Long)
WALKS = 3  # by breadth, to an end
GONE = -1  # neighbours outside the front of a node that is eliminated, or fewer


def swept(graph: Graph, compiled: bool = True) -> np.ndarray:
    """[n] int64, an order of a whole graph. Time about linear."""
    if not (compiled and SWEPT):
        return _swept(graph)
    order = np.empty(graph.n, dtype=np.int32)
    arrays = *rows_of(graph), order
    if SWEPT(graph.n, *map(address, arrays)) < 0:
        raise MemoryError("order of a sweep")
    return order.astype(np.int64)


def _swept(graph: Graph) -> np.ndarray:
    ends = graph.indptr.tolist()
    rows = [graph.indices[a:b].tolist() for a, b in itertools.pairwise(ends)]
    outside = [len(own) for own in rows]  # neighbours that are neither gone nor in the front
    entered = [-1] * graph.n
    order: list[int] = []
    count = 0
    for root in range(graph.n):
        if entered[root] >= 0:
            continue
        heap: list[tuple[int, int, int]] = []
        fresh = [_end_of(rows, root)]
        while True:
            for u in fresh:
                entered[u] = count
                count += 1
            near = [w for u in fresh for w in rows[u]]
            for w in near:
                outside[w] -= 1
            for u in {*fresh, *(w for w in near if entered[w] >= 0 and outside[w] > GONE)}:
                heapq.heappush(heap, (outside[u], entered[u], u))
            v = _popped(heap, outside)
            if v < 0:
                break
            outside[v] = GONE
            order.append(v)
            fresh = [u for u in rows[v] if entered[u] < 0]
    return np.array(order, dtype=np.int64)


def _popped(heap: list[tuple[int, int, int]], outside: list[int]) -> int:
    """The node of the first entry that still holds; -1 where there is none."""
    while heap:
        count, _, v = heapq.heappop(heap)
        if outside[v] == count:
            return v
    return -1


def _end_of(rows: list[list[int]], root: int) -> int:
    """The last node of walks by breadth, each from the end of the one before."""
    for _ in range(WALKS):
        seen, level = {root}, [root]
        while level:
            root = min(level, key=lambda v: (len(rows[v]), v))
            following = dict.fromkeys(u for v in level for u in rows[v] if u not in seen)
            seen.update(following)
            level = list(following)
    return root
