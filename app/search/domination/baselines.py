"""Greedy dominating sets without learning: what a learned policy has to beat.

Each works on the whole graph on the host and returns `(chosen, label)`: chosen [n] bool, and the name to
print beside the result. Ties go to the lowest node number. With `compiled` app/native/greedy.c does the same.
"""

import ctypes
import heapq

import numpy as np

from app.graphs.graph import Graph
from app.graphs.lists import entries_of, row_counts, rows_with
from app.native.library import address, function
from app.search.cover.start import ENTRY_BYTES, rows_of_kernels

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GREEDY = function("lk_dominate_greedy", Long, *(Pointer,) * 9, returns=Long)
NEEDED = function("lk_dominate_needed", Pointer, Pointer, Pointer, Long, Pointer, Pointer)
FEW = 4  # so many times the entries of rows are all entries at least: then these are gone through alone
EXACT = 1 << 53  # whole numbers up to here are float64 numbers


def most_gain(graph: Graph, compiled: bool = True, price: np.ndarray | None = None) -> tuple[np.ndarray, str]:
    """Take the node that dominates most undominated nodes, for its price, until every node is dominated.

    price    [n] positive whole numbers, or None: all one
    Source   the greedy algorithm for set cover (Johnson 1974, Chvátal 1979) on closed neighbourhoods
    returns  chosen [n] bool, label; at most H(1 + largest degree) times the optimum
    """
    chosen = np.zeros(graph.n, dtype=bool)
    chosen[greedy_order(graph, price, compiled=compiled)] = True
    return chosen, "most gain"


def most_gain_pruned(
    graph: Graph, compiled: bool = True, price: np.ndarray | None = None
) -> tuple[np.ndarray, str]:
    """most_gain, then without the nodes that are not needed: the latest chosen first."""
    order = greedy_order(graph, price, compiled=compiled)
    chosen = np.zeros(graph.n, dtype=bool)
    chosen[order] = True
    return needed(graph, chosen, order, compiled), "most gain, pruned"


def needed(
    graph: Graph, chosen: np.ndarray, order: np.ndarray, compiled: bool = True,
    dominated: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """A dominating set [n] bool without those nodes of `order` [k] that are not needed, the last first.

    dominated   [n] bool, nodes that are dominated anyway; None: none
    """
    left = chosen.copy()
    times = near_counts(graph, left)
    if dominated is not None:
        times[dominated] = graph.n + 2  # whoever leaves
    if compiled and NEEDED:
        arrays = *rows_of_kernels(graph), order
        NEEDED(*map(address, arrays), len(order), address(times), address(left))
        return left
    for v in order[::-1].tolist():
        closed = np.append(graph.indices[graph.indptr[v] : graph.indptr[v + 1]], v)
        if (times[closed] > 1).all():
            left[v] = False
            times[closed] -= 1
    return left


def near_any(graph: Graph, marked: np.ndarray) -> np.ndarray:
    """[n] bool, whether a node has a marked neighbour."""
    beside = _beside_few(graph, marked)
    if beside is None:
        return rows_with(marked[graph.indices], graph.indptr)
    found = np.zeros(graph.n, dtype=bool)
    found[beside] = True
    return found


def near_counts(graph: Graph, marked: np.ndarray) -> np.ndarray:
    """[n] int64, how many nodes of each closed neighbourhood are marked [n] bool."""
    beside = _beside_few(graph, marked)
    if beside is None:
        return marked + row_counts(marked[graph.indices], graph.indptr)
    return marked + np.bincount(beside, minlength=graph.n)


def _beside_few(graph: Graph, marked: np.ndarray) -> np.ndarray | None:
    """[k] the neighbours of marked nodes, each as often as it is one; None: their rows are not few."""
    rows = np.flatnonzero(marked)
    if FEW * int((graph.indptr[rows + 1] - graph.indptr[rows]).sum()) > len(graph.indices):
        return None
    return graph.indices[entries_of(graph.indptr, rows)]


def greedy_order(
    graph: Graph,
    price: np.ndarray | None = None,
    chosen: np.ndarray | None = None,
    barred: np.ndarray | None = None,
    compiled: bool = True,
    dominated: np.ndarray | None = None,
) -> np.ndarray:
    """[k] int64, nodes that dominate all that `chosen` does not, in the order in which they are taken.

    Each dominates most undominated nodes, for its price.

    price       [n] positive whole numbers, or None: all one     chosen, barred   [n] bool or None: none
    dominated   [n] bool, nodes that are dominated anyway, or None: none
    """
    if not graph.whole:
        raise ValueError(f"{graph.name}: rows {graph.lo}..{graph.hi - 1} held, all {graph.n} are needed")
    if compiled and GREEDY and (price is None or price.max(initial=1) <= EXACT):
        return _compiled_order(graph, price, chosen, barred, dominated)
    indptr, indices, n = graph.indptr.tolist(), graph.indices.tolist(), graph.n
    open_ = np.ones(n, dtype=bool) if dominated is None else ~dominated
    undominated, gain = open_.tolist(), near_counts(graph, open_).tolist()
    cost = [1] * n if price is None else price.tolist()
    for v in [] if chosen is None else np.flatnonzero(chosen).tolist():
        _dominate(v, indptr, indices, undominated, gain)
    # Gains only fall, so an old entry is an upper bound: it goes back with the present gain when it is met.
    heap = [(-gain[v] / cost[v], v) for v in range(n) if barred is None or not barred[v]]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        old, v = heap[0]
        if gain[v] == 0:
            heapq.heappop(heap)
        elif -old != gain[v] / cost[v]:
            heapq.heapreplace(heap, (-gain[v] / cost[v], v))
        else:
            heapq.heappop(heap)
            order.append(v)
            _dominate(v, indptr, indices, undominated, gain)
    return np.array(order, dtype=np.int64)


def _compiled_order(
    graph: Graph, price: np.ndarray | None, chosen: np.ndarray | None, barred: np.ndarray | None,
    dominated: np.ndarray | None,
) -> np.ndarray:  # fmt: skip
    """greedy_order by the kernel."""
    n, order = graph.n, np.empty(graph.n, dtype=np.int32)
    floats = None if price is None else price.astype(np.float64)
    marks, gain = np.zeros(n, dtype=np.uint8), np.empty(n, dtype=np.int32)
    if dominated is not None:
        marks[dominated] = 1
    heap = np.empty(n * ENTRY_BYTES, dtype=np.uint8)
    arrays = (*rows_of_kernels(graph), floats, chosen, barred, marks, gain, heap, order)
    return order[: GREEDY(n, *(address(array) for array in arrays))].astype(np.int64)


def _dominate(
    v: int, indptr: list[int], indices: list[int], undominated: list[bool], gain: list[int]
) -> None:
    """Take the marks of v and its neighbours; gains around them fall."""
    for u in [v, *indices[indptr[v] : indptr[v + 1]]]:
        if undominated[u]:
            undominated[u] = False
            gain[u] -= 1
            for w in indices[indptr[u] : indptr[u + 1]]:
                gain[w] -= 1
