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
    for v in _greedy_order(graph):
        chosen[v] = True
    return chosen, "most gain"


def most_gain_pruned(graph: Graph) -> tuple[np.ndarray, str]:
    """most_gain, then without the nodes that are not needed: the latest chosen first."""
    order = _greedy_order(graph)
    chosen = np.zeros(graph.n, dtype=bool)
    chosen[order] = True
    times = chosen.astype(np.int64) + np.bincount(graph.row_of()[chosen[graph.indices]], minlength=graph.n)
    for v in reversed(order):
        closed = np.append(graph.indices[graph.indptr[v] : graph.indptr[v + 1]], v)
        if (times[closed] > 1).all():
            chosen[v] = False
            times[closed] -= 1
    return chosen, "most gain, pruned"


def _greedy_order(graph: Graph) -> list[int]:
    """The nodes of most_gain in the order in which they are taken."""
    if not graph.whole:
        raise ValueError(f"{graph.name}: rows {graph.lo}..{graph.hi - 1} held, all {graph.n} are needed")
    indptr, indices, n = graph.indptr.tolist(), graph.indices.tolist(), graph.n
    gain = (graph.degrees() + 1).tolist()
    undominated = [True] * n
    # Gains only fall, so an old entry is an upper bound: it goes back with the present gain when it is met.
    heap = [(-gain[v], v) for v in range(n)]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        old, v = heap[0]
        if gain[v] == 0:
            heapq.heappop(heap)
        elif -old != gain[v]:
            heapq.heapreplace(heap, (-gain[v], v))
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
