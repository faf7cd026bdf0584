"""Greedy dominating sets without learning: what a learned policy has to beat.

Each works on the whole graph on the host and returns `(chosen, label)`: chosen [n] bool, and the name to
print beside the result. Ties go to the lowest node number.
"""

import heapq

import numpy as np

from app.graphs.graph import Graph


def most_gain(graph: Graph) -> tuple[np.ndarray, str]:
    """Take the node that dominates most undominated nodes until every node is dominated.

    Source   the greedy algorithm for set cover (Johnson 1974, Chvátal 1979) on closed neighbourhoods
    returns  chosen [n] bool, label; at most H(1 + largest degree) times the optimum
    """
    chosen = np.zeros(graph.n, dtype=bool)
    chosen[greedy_order(graph)] = True
    return chosen, "most gain"


def most_gain_pruned(graph: Graph) -> tuple[np.ndarray, str]:
    """most_gain, then without the nodes that are not needed: the latest chosen first."""
    order = greedy_order(graph)
    chosen = np.zeros(graph.n, dtype=bool)
    chosen[order] = True
    return needed(graph, chosen, order), "most gain, pruned"


def needed(graph: Graph, chosen: np.ndarray, order: list[int]) -> np.ndarray:
    """A dominating set [n] bool without those nodes of `order` that are not needed, the last first."""
    left = chosen.copy()
    times = left.astype(np.int64) + np.bincount(graph.row_of()[left[graph.indices]], minlength=graph.n)
    for v in reversed(order):
        closed = np.append(graph.indices[graph.indptr[v] : graph.indptr[v + 1]], v)
        if (times[closed] > 1).all():
            left[v] = False
            times[closed] -= 1
    return left


def near_any(graph: Graph, marked: np.ndarray) -> np.ndarray:
    """[n] bool, whether a node has a marked neighbour."""
    return np.bincount(graph.row_of()[marked[graph.indices]], minlength=graph.n) > 0


def greedy_order(
    graph: Graph,
    price: np.ndarray | None = None,
    chosen: np.ndarray | None = None,
    barred: np.ndarray | None = None,
) -> list[int]:
    """Nodes that dominate all that `chosen` does not, in the order in which they are taken.

    Each dominates most undominated nodes, for its price.

    price    [n] positive, or None: all one     chosen, barred   [n] bool or None: none
    """
    if not graph.whole:
        raise ValueError(f"{graph.name}: rows {graph.lo}..{graph.hi - 1} held, all {graph.n} are needed")
    indptr, indices, n = graph.indptr.tolist(), graph.indices.tolist(), graph.n
    gain = (graph.degrees() + 1).tolist()
    cost = [1] * n if price is None else price.tolist()
    undominated = [True] * n
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
    return order


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
