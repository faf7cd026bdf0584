"""Atoms: the parts into which cliques whose removal leaves several components cut a graph.

An order for each atom gives one for the graph: the edges that eliminations make in the atoms, together,
make the graph chordal, for a cycle that leaves an atom goes through a clique twice. So a width is the
largest of the atoms' and a fill-in their sum: both rules are safe for widths, weights and fill-in.

Source   Tarjan, Decomposition by clique separators, Discrete Mathematics 1985; by a minimal elimination order
         (MCS-M): Berry, Pogorelcnik and Simonet, Algorithms 2010
"""

import ctypes
import heapq
from collections.abc import Sequence

import numpy as np

from app.bounds.treewidth.orders import lists_of, rows_of
from app.bounds.treewidth.plain_orders import neighbours
from app.graphs.derived import induced
from app.graphs.graph import Graph, from_edges
from app.native.library import address, function

CARDINALITY = function("lk_cardinality", ctypes.c_int64, *[ctypes.c_void_p] * 3, returns=ctypes.c_int64)
MOST_CUT = 4_000_000  # nodes times stored entries of graphs that are cut


def atoms_of(graph: Graph) -> list[np.ndarray]:
    """Nodes of each atom, ascending; all of them together where the graph is too large to be cut."""
    if graph.n * len(graph.indices) > MOST_CUT:
        return [np.arange(graph.n)]
    near = neighbours(graph)
    order, later = _minimal_order(near)
    left, atoms, parts = [set(each) for each in near], [], set(range(graph.n))
    for v in order:
        separator = later[v]
        if v not in parts or not _is_clique(near, separator):
            continue
        part = _component(left, parts - separator, v)
        if len(part) + len(separator) < len(parts):
            atoms.append(part | separator)
            parts -= part
            for u in separator:
                left[u] -= part
    atoms.append(parts)
    return [np.array(sorted(each), dtype=np.int64) for each in atoms if each]


def _is_clique(near: list[set[int]], nodes: set[int]) -> bool:
    return all(len(near[u] & nodes) == len(nodes) - 1 for u in nodes)


def _component(near: list[set[int]], inside: set[int], v: int) -> set[int]:
    """Nodes that v is joined to inside."""
    found, stack = {v}, [v]
    while stack:
        fresh = (near[stack.pop()] & inside) - found
        found |= fresh
        stack += fresh
    return found


def _minimal_order(near: list[set[int]]) -> tuple[list[int], dict[int, set[int]]]:
    """A minimal elimination order by MCS-M, and of each node those of its bag after it.

    Nodes are numbered from the last one down: next is one of most weight, and the weight grows of all that
    it is joined to by nodes of less weight.
    """
    n = len(near)
    weight, left, order = [0] * n, set(range(n)), []
    later: dict[int, set[int]] = {v: set() for v in range(n)}
    while left:
        v = max(left, key=lambda u: (weight[u], -u))
        left.discard(v)
        order.append(v)
        reached = _reached(near, left, weight, v)
        for u in reached:
            weight[u] += 1
            later[u].add(v)
    return order[::-1], later


def _reached(near: list[set[int]], left: set[int], weight: list[int], v: int) -> list[int]:
    """Nodes that v is joined to by an edge or by way of nodes of less weight than they have."""
    least = dict.fromkeys(near[v] & left, -1)  # the heaviest node on the way there
    heap = [(-1, u) for u in least]
    heapq.heapify(heap)
    while heap:
        way, u = heapq.heappop(heap)
        if way > least[u]:
            continue
        beyond = max(way, weight[u])
        for x in near[u] & left:
            if x not in least or beyond < least[x]:
                least[x] = beyond
                heapq.heappush(heap, (beyond, x))
    return [u for u, way in least.items() if way < weight[u]]


def joined(
    graph: Graph, atoms: Sequence[np.ndarray], orders: Sequence[np.ndarray], compiled: bool = True
) -> np.ndarray:
    """[n] int64, an order of the graph that makes the edges that orders of its atoms make.

    They make it chordal: by maximum cardinality search, from the last node down, none comes beside.
    """
    ends = [[graph.row_of()], [graph.indices]]
    for nodes, order in zip(atoms, orders):
        ptr, lists = lists_of(induced(graph, nodes), order, compiled)
        ends[0].append(nodes[np.repeat(np.arange(len(nodes)), np.diff(ptr))])
        ends[1].append(nodes[lists])
    return cardinality(from_edges(graph.n, *map(np.concatenate, ends)), compiled)


def cardinality(graph: Graph, compiled: bool = True) -> np.ndarray:
    """[n] int64, the reverse of maximum cardinality search (Tarjan and Yannakakis 1984)."""
    if not (compiled and CARDINALITY):
        return plain_cardinality(graph)
    order = np.empty(graph.n, dtype=np.int32)
    arrays = *rows_of(graph), order
    if CARDINALITY(graph.n, *map(address, arrays)) < 0:
        raise MemoryError("maximum cardinality search")
    return order.astype(np.int64)


def plain_cardinality(graph: Graph) -> np.ndarray:
    """cardinality as native/treewidth.c has it."""
    n, near = graph.n, neighbours(graph)
    count, done, order = [0] * n, [False] * n, []
    heap = [(0, v) for v in range(n)]
    while heap:
        held, v = heapq.heappop(heap)
        if done[v] or -held != count[v]:
            continue
        done[v] = True
        order.append(v)
        for u in near[v]:
            if not done[u]:
                count[u] += 1
                heapq.heappush(heap, (-count[u], u))
    return np.array(order[::-1], dtype=np.int64)
