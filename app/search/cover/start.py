"""Greedy vertex covers to start a search from: the largest degree first, then redundant nodes leave."""

import ctypes
import heapq

import numpy as np

from app.graphs.graph import Graph
from app.native.library import address, function
from app.toolbox import Look, never

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ENTRY_BYTES = 16  # of the kernel's heap
PIECE = 1 << 18  # entries of rows and of the heap between two looks at the time
GREEDY = function("lk_cover_greedy", Long, *(Pointer,) * 6, Long, Long, returns=Long)
DROP = function("lk_cover_drop", Long, *(Pointer,) * 4)


def available() -> bool:
    """True where the library was built."""
    return None not in (GREEDY, DROP)


def greedy_cover(
    graph: Graph, weights: np.ndarray | None = None, compiled: bool = True, look: Look = never
) -> np.ndarray:
    """[n] bool, a cover from which no node can leave.

    The node of the largest residual degree per unit of node weight enters until no edge is left (Chvátal
    1979; the quotient in units of 2^-32, ties to the lowest number); then `without_redundant`.

    weights   [n] int64, positive, or None: all one
    look      asked every PIECE entries: where it is true all nodes enter that still have an edge, and those
              of the smallest quotients leave first
    """
    in_cover, rest = _taken(graph, weights, compiled, look)
    if rest is None:
        return without_redundant(graph, in_cover, weights, compiled)
    keys = rest if weights is None else (rest.astype(np.int64) << 32) // weights
    return _left(graph, in_cover | (rest > 0), np.argsort(keys, kind="stable"), compiled)


def most_edges(graph: Graph, weights: np.ndarray | None = None, compiled: bool = True) -> np.ndarray:
    """`greedy_cover` with the nodes that are redundant in the end."""
    return _taken(graph, weights, compiled, never)[0]


def _taken(
    graph: Graph, weights: np.ndarray | None, compiled: bool, look: Look
) -> tuple[np.ndarray, np.ndarray | None]:
    """[n] bool, the nodes that enter, and where `look` has ended that the residual degrees [n] int32."""
    in_cover = np.zeros(graph.n, dtype=np.uint8)
    if not (compiled and available()):
        rest = _take(graph, weights, in_cover, look)
        return in_cover.astype(bool), rest
    degree, heap = np.empty(graph.n, dtype=np.int32), np.empty(graph.n * ENTRY_BYTES, dtype=np.uint8)
    arrays = (*rows_of_kernels(graph), weights, degree, heap, in_cover)
    state, left = [address(array) for array in arrays], -1
    while left := GREEDY(graph.n, *state, left, PIECE):
        if look():
            return in_cover.astype(bool), degree
    return in_cover.astype(bool), None


def without_redundant(
    graph: Graph, cover: np.ndarray, weights: np.ndarray | None = None, compiled: bool = True
) -> np.ndarray:
    """[n] bool, the cover without nodes whose neighbours are all in it.

    They leave one after another, the heaviest first and of equals the lowest number.
    """
    # A stable sort leaves equal weights in the order of their numbers.
    order = np.arange(graph.n) if weights is None else np.argsort(-weights, kind="stable")
    return _left(graph, cover, order, compiled)


def _left(graph: Graph, cover: np.ndarray, order: np.ndarray, compiled: bool) -> np.ndarray:
    """[n] bool, the cover without nodes that leave in an order [n] where all their neighbours are in it."""
    in_cover = cover.astype(np.uint8)
    if compiled and available():
        arrays = (*rows_of_kernels(graph), order.astype(np.int32), in_cover)
        DROP(graph.n, *(address(array) for array in arrays))
    else:
        _drop(graph, order, in_cover)
    return in_cover.astype(bool)


def rows_of_kernels(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """indptr and indices in the kernels' types."""
    return np.ascontiguousarray(graph.indptr, np.int64), np.ascontiguousarray(graph.indices, np.int32)


def _take(graph: Graph, weights: np.ndarray | None, in_cover: np.ndarray, look: Look) -> np.ndarray | None:
    """The node of the largest residual degree per weight until no edge is left, or until `look` is true: then
    the residual degrees.
    """
    degree = graph.degrees().tolist()
    price = [1] * graph.n if weights is None else weights.tolist()
    # Degrees only fall, so an entry of the heap is an upper bound until it is brought up to date.
    heap = [(-((d << 32) // price[v]), v) for v, d in enumerate(degree) if d]
    heapq.heapify(heap)
    seen = 0
    while heap:
        if seen >= PIECE:
            seen = 0
            if look():
                return np.array(degree, dtype=np.int32)
        seen += 1
        key, v = heap[0]
        present = -((degree[v] << 32) // price[v])
        if degree[v] > 0 and present != key:
            heapq.heapreplace(heap, (present, v))
            continue
        heapq.heappop(heap)
        if degree[v] > 0:
            in_cover[v], degree[v] = 1, 0
            near = graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist()
            seen += len(near)
            for u in near:
                degree[u] -= 1
    return None


def _drop(graph: Graph, order: np.ndarray, in_cover: np.ndarray) -> None:
    """Nodes leave the cover, in this order, where all neighbours are in it."""
    for v in order.tolist():
        if in_cover[graph.indices[graph.indptr[v] : graph.indptr[v + 1]]].all():
            in_cover[v] = 0
