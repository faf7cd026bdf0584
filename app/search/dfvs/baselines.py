"""Directed feedback vertex sets without search: what a search has to beat.

Each works on a whole digraph without loops and returns `(chosen, label)`: chosen [n] bool. Ties go to the
lowest node number.
"""

import heapq
from collections.abc import Callable

import numpy as np

from app.graphs.digraph import Digraph
from app.search.dfvs.search import order_without

MOST_WAYS = "most ways through"
Rule = Callable[[Digraph, np.ndarray, bool], tuple[np.ndarray, str]]


def most_ways(digraph: Digraph, price: np.ndarray, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Take the node with most ways through it, arcs in times arcs out, for its price, until no cycle is left;
    nodes without arcs in, or out, go as they come.

    Source   the greedy of Festa, Pardalos and Resende, Algorithm 815, ACM TOMS 2001
    """
    chosen = greedy(digraph, price, np.zeros(digraph.n, dtype=bool))
    return needed(digraph, price, chosen, compiled), MOST_WAYS


def least_backward(digraph: Digraph, price: np.ndarray, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Order the nodes by arcs in less arcs out, and cover the backward arcs by taking their ends of most such
    arcs for the price first.

    Source   the order of Eades, Lin and Smyth, Information Processing Letters 1993, without its updates
    """
    n, tails, heads = digraph.n, digraph.tails(), digraph.out.astype(np.int64)
    gap = np.diff(digraph.in_ptr) - np.diff(digraph.out_ptr)
    place = np.empty(n, dtype=np.int64)
    place[np.argsort(gap, kind="stable")] = np.arange(n)
    back = place[tails] > place[heads]
    tails, heads = tails[back], heads[back]
    count = np.bincount(np.concatenate([tails, heads]), minlength=n)
    chosen = np.zeros(n, dtype=bool)
    rank = np.empty(n, dtype=np.int64)
    rank[np.lexsort((np.arange(n), -count / price))] = np.arange(n)
    for u, v in zip(tails.tolist(), heads.tolist()):
        if not (chosen[u] or chosen[v]):
            chosen[u if rank[u] < rank[v] else v] = True
    return needed(digraph, price, chosen, compiled), "backward arcs"


FEEDBACK_BASELINES: dict[str, Rule] = {"most_ways": most_ways, "least_backward": least_backward}


def greedy(digraph: Digraph, price: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """[n] bool, a set with more nodes until no directed cycle is left."""
    n, chosen = digraph.n, chosen.copy()
    out, into = digraph.out.tolist(), digraph.into.tolist()
    ptr, back = digraph.out_ptr.tolist(), digraph.in_ptr.tolist()
    alive = (~chosen).tolist()
    inside = ~chosen[digraph.tails()] & ~chosen[digraph.out]
    heads = np.bincount(digraph.tails()[inside], minlength=n).tolist()
    tails = np.bincount(digraph.out[inside], minlength=n).tolist()
    cost = price.tolist()
    heap = [(-heads[v] * tails[v] / cost[v], v) for v in range(n) if alive[v]]
    heapq.heapify(heap)
    waiting = [v for v in range(n) if alive[v] and not (heads[v] and tails[v])]

    def remove(v: int) -> None:
        alive[v] = False
        for u in out[ptr[v] : ptr[v + 1]]:
            if alive[u]:
                tails[u] -= 1
                changed(u, tails[u])
        for u in into[back[v] : back[v + 1]]:
            if alive[u]:
                heads[u] -= 1
                changed(u, heads[u])

    def changed(u: int, left: int) -> None:
        if not left:
            waiting.append(u)

    while True:
        while waiting:
            if alive[v := waiting.pop()]:
                remove(v)
        while heap:
            worth, v = heapq.heappop(heap)
            now = -heads[v] * tails[v] / cost[v]
            if not alive[v]:
                continue
            if now == worth:
                break
            heapq.heappush(heap, (now, v))  # it has become less
        else:
            return chosen
        chosen[v] = True
        remove(v)


def needed(digraph: Digraph, price: np.ndarray, chosen: np.ndarray, compiled: bool = True) -> np.ndarray:
    """A set [n] bool without those nodes that fit into an order of the others, dear ones first."""
    order = order_without(digraph, chosen, compiled)
    label = np.full(digraph.n, -1.0)
    label[order] = np.arange(len(order)) + 1
    chosen, ends = chosen.copy(), (0.0, digraph.n + 1.0)
    nodes = np.flatnonzero(chosen)
    for v in nodes[np.argsort(-price[nodes], kind="stable")].tolist():
        before = label[digraph.into[digraph.in_ptr[v] : digraph.in_ptr[v + 1]]]
        after = label[digraph.out[digraph.out_ptr[v] : digraph.out_ptr[v + 1]]]
        low, high = before.max(initial=ends[0]), after[after >= 0].min(initial=ends[1])
        place = (low + high) / 2
        if low < place < high:
            label[v], chosen[v] = place, False
    return chosen
