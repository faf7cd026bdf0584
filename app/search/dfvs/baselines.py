"""Directed feedback vertex sets without search: what a search has to beat.

Each works on a whole digraph without loops and returns `(chosen, label)`: chosen [n] bool. Ties go to the
lowest node number.
"""

import ctypes
import heapq
from collections.abc import Callable

import numpy as np

from app.graphs.digraph import Digraph
from app.native.library import address, function, give_arrays
from app.search.dfvs.search import order_without
from app.toolbox import Look, never

MOST_WAYS = "most ways through"
BETWEEN = 1000  # nodes between two looks at the time
WAYS_SECONDS, BACKWARD_SECONDS = 5e-7, 2e-6  # of the two, about, for each node and arc
EXACT = 1 << 53  # whole numbers below it are exact as floating-point numbers
Rule = Callable[[Digraph, np.ndarray, bool], tuple[np.ndarray, str]]

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GIVEN = ("out_ptr", "in_ptr", "out", "into", "price")
ARRAYS = ("alive", "chosen", "heads", "tails", "waiting", "heap")


class _Ways(ctypes.Structure):
    _fields_ = (
        ("n", Long),
        *((name, Pointer) for name in (*GIVEN, *ARRAYS)),
        *((name, Long) for name in ("size", "waits")),
    )


W = ctypes.POINTER(_Ways)
BEGIN, TAKE = function("lk_dfvs_ways_begin", W), function("lk_dfvs_ways", W, Long, returns=Long)
NEEDED = function("lk_dfvs_needed", Long, *(Pointer,) * 5, Long, Pointer, Pointer)


def most_ways(
    digraph: Digraph, price: np.ndarray, compiled: bool = True, look: Look = never
) -> tuple[np.ndarray, str]:
    """Take the node with most ways through it, arcs in times arcs out, for its price, until no cycle is left;
    nodes without arcs in, or out, go as they come. Where `look` ends it an order decides the rest.

    Source   the greedy of Festa, Pardalos and Resende, Algorithm 815, ACM TOMS 2001
    """
    chosen = greedy(digraph, price, np.zeros(digraph.n, dtype=bool), look, compiled)
    return needed(digraph, price, chosen, compiled, look), MOST_WAYS


def least_backward(digraph: Digraph, price: np.ndarray, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Order the nodes by arcs in less arcs out, and cover the backward arcs by taking their ends of most such
    arcs for the price first.

    Source   the order of Eades, Lin and Smyth, Information Processing Letters 1993, without its updates
    """
    tails, heads, rank = _backward(digraph, price, digraph.tails(), digraph.out.astype(np.int64))
    chosen = np.zeros(digraph.n, dtype=bool)
    for u, v in zip(tails.tolist(), heads.tolist()):
        if not (chosen[u] or chosen[v]):
            chosen[u if rank[u] < rank[v] else v] = True
    return needed(digraph, price, chosen, compiled), "backward arcs"


def _backward(
    digraph: Digraph, price: np.ndarray, tails: np.ndarray, heads: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of arcs [m] those that lead backward in the order of arcs in less arcs out: tails and heads [b] each;
    and [n] int64, places of nodes by how many of these they end, for the price, most first.
    """
    n = digraph.n
    gap = np.bincount(heads, minlength=n) - np.bincount(tails, minlength=n)
    place, rank = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    place[np.argsort(gap, kind="stable")] = np.arange(n)
    back = place[tails] > place[heads]
    tails, heads = tails[back], heads[back]
    count = np.bincount(np.concatenate([tails, heads]), minlength=n)
    rank[np.lexsort((np.arange(n), -count / price))] = np.arange(n)
    return tails, heads, rank


def _backward_ends(digraph: Digraph, price: np.ndarray, left: np.ndarray) -> np.ndarray:
    """[n] bool, of nodes left [n] bool one end of each arc that leads backward in such an order of them: no
    cycle is left without these.
    """
    tails, heads = digraph.tails(), digraph.out.astype(np.int64)
    inside = left[tails] & left[heads]
    tails, heads, rank = _backward(digraph, price, tails[inside], heads[inside])
    chosen = np.zeros(digraph.n, dtype=bool)
    chosen[np.where(rank[tails] < rank[heads], tails, heads)] = True
    return chosen


FEEDBACK_BASELINES: dict[str, Rule] = {"most_ways": most_ways, "least_backward": least_backward}


def greedy(
    digraph: Digraph, price: np.ndarray, chosen: np.ndarray, look: Look = never, compiled: bool = True
) -> np.ndarray:
    """[n] bool, a set with more nodes until no directed cycle is left.

    look   asked now and then; where it is true an order of the nodes that are left decides them
    """
    if compiled and TAKE is not None and price.max(initial=0) < EXACT:
        return _Compiled(digraph, price, chosen).greedy(look)
    return _greedy(digraph, price, chosen, look)


class _Compiled:
    """What `_greedy` does, by the compiled kernel.

    alive    [n] uint8, what is left          chosen   [n] uint8, the set
    heads, tails, waiting, heap   scratch
    """

    def __init__(self, digraph: Digraph, price: np.ndarray, chosen: np.ndarray) -> None:
        self.digraph, n = digraph, digraph.n
        for name in GIVEN[:-1]:
            setattr(self, name, np.ascontiguousarray(getattr(digraph, name)))
        self.price = np.ascontiguousarray(price, dtype=np.int64)
        self.chosen, self.alive = chosen.astype(np.uint8), (~chosen).astype(np.uint8)
        self.heads, self.tails = (np.zeros(n, dtype=np.int32) for _ in range(2))
        self.waiting, self.heap = np.zeros(2 * n, dtype=np.int32), np.zeros(2 * n, dtype=np.float64)
        self._ways = _Ways(n)
        give_arrays(self, self._ways, (*GIVEN, *ARRAYS))

    def greedy(self, look: Look) -> np.ndarray:
        """[n] bool, the set, BETWEEN nodes between two looks."""
        BEGIN(self._ways)
        while TAKE(self._ways, BETWEEN) == BETWEEN:
            if look():
                rest = _backward_ends(self.digraph, self.price, self.alive.astype(bool))
                return self.chosen.astype(bool) | rest
        return self.chosen.astype(bool)


def _greedy(digraph: Digraph, price: np.ndarray, chosen: np.ndarray, look: Look) -> np.ndarray:
    """What `greedy` does, plainly."""
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

    taken = 0
    while True:
        while waiting:
            if alive[v := waiting.pop()]:
                remove(v)
        if taken and taken % BETWEEN == 0 and look():
            return chosen | _backward_ends(digraph, price, np.array(alive, dtype=bool))
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
        taken += 1
        remove(v)


def needed(
    digraph: Digraph, price: np.ndarray, chosen: np.ndarray, compiled: bool = True, look: Look = never
) -> np.ndarray:
    """A set [n] bool without those nodes that fit into an order of the others, dear ones first.

    look   asked now and then; where it is true the other nodes stay
    """
    order = order_without(digraph, chosen, compiled)
    label = np.full(digraph.n, -1.0)
    label[order] = np.arange(len(order)) + 1
    chosen, ends = chosen.copy(), (0.0, digraph.n + 1.0)
    nodes = np.flatnonzero(chosen)
    nodes = nodes[np.argsort(-price[nodes], kind="stable")]
    if compiled and NEEDED is not None:
        return _needed(digraph, nodes, label, chosen, look)
    for count, v in enumerate(nodes.tolist()):
        if count and count % BETWEEN == 0 and look():
            break
        before = label[digraph.into[digraph.in_ptr[v] : digraph.in_ptr[v + 1]]]
        after = label[digraph.out[digraph.out_ptr[v] : digraph.out_ptr[v + 1]]]
        low, high = before.max(initial=ends[0]), after[after >= 0].min(initial=ends[1])
        place = (low + high) / 2
        if low < place < high:
            label[v], chosen[v] = place, False
    return chosen


def _needed(
    digraph: Digraph, nodes: np.ndarray, label: np.ndarray, chosen: np.ndarray, look: Look
) -> np.ndarray:
    """The same by the compiled kernel, which changes labels [n]; nodes [k] of the set in order."""
    held, given = chosen.astype(np.uint8), (digraph.out_ptr, digraph.out, digraph.in_ptr, digraph.into)
    for first in range(0, len(nodes), BETWEEN):
        if first and look():
            break
        part = np.ascontiguousarray(nodes[first : first + BETWEEN])
        NEEDED(digraph.n, *map(address, given), address(part), len(part), address(label), address(held))
    return held.astype(bool)
