"""Orders without search: what a search has to beat.

Each works on net arcs and returns `(order, label)`: order [n] int64. Ties go to the lowest node number.
"""

import ctypes
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import depth_first_order

from app.graphs.ordering import NetArcs
from app.native.library import address, function
from app.search.ordering import plain

Rule = Callable[[NetArcs, bool], tuple[np.ndarray, str]]
Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GREEDY = function("lk_order_greedy", Long, *(Pointer,) * 10)
MOST_QUOTIENTS = 4096  # nodes that quotients are made again and again of, or:
MOST_WORK = 1 << 25  # nodes times arcs


def eades_lin_smyth(net: NetArcs, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Nodes without arcs out to the end, those without arcs in to the beginning, else the node whose arcs out
    weigh most over those in to the beginning, again and again.

    Source   Eades, Lin and Smyth, Information Processing Letters 1993, with weights
    """
    ptr, near, pull = net.both_ways
    if not (compiled and GREEDY is not None):
        return plain.greedy(net.n, ptr, near, pull).astype(np.int64), "Eades-Lin-Smyth"
    n = net.n
    outs, ins, order = (np.zeros(n, dtype=np.int32) for _ in range(3))
    heap, waiting = np.zeros(2 * (n + len(near)), dtype=np.int64), np.zeros(3 * n, dtype=np.int32)
    gap, gone = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.uint8)
    GREEDY(n, *map(address, (ptr, near, pull, outs, ins, gap, heap, waiting, gone, order)))
    return order.astype(np.int64), "Eades-Lin-Smyth"


def net_weight(net: NetArcs, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Nodes by the weight of arcs out less that of arcs in, most first: Borda's, or Copeland's, count."""
    gap = np.zeros(net.n, dtype=np.int64)
    np.add.at(gap, net.tails, net.weights)
    np.subtract.at(gap, net.heads, net.weights)
    return np.argsort(-gap, kind="stable"), "net weight"


def depth_first(net: NetArcs, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Nodes in the order in which a depth-first search along arcs leaves them, last first: arcs to nodes that
    the search has not left yet lead backward.
    """
    n = net.n
    # A node with an arc to all others begins one search of everything.
    rows = np.concatenate([net.tails, np.full(n, n)])
    columns = np.concatenate([net.heads, np.arange(n)])
    matrix = sp.csr_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(n + 1, n + 1))
    found, above = depth_first_order(matrix, n, directed=True)
    return _last_left(found[1:], above, n), "depth first"


def _last_left(found: np.ndarray, above: np.ndarray, n: int) -> np.ndarray:
    """[n] int64, nodes by when a search leaves them, last first, of the order [n] in which it finds them."""
    waiting, left = [], []
    for v, parent in zip(found.tolist(), above[found].tolist()):
        while waiting and waiting[-1] != parent:
            left.append(waiting.pop())
        waiting.append(v)
    left += reversed(waiting)
    return np.array(left[::-1], dtype=np.int64)


def quotients(net: NetArcs, compiled: bool = True) -> tuple[np.ndarray, str]:
    """The node of the largest quotient of weights, out over in, comes first, then that of those left, ...

    Source   Becker, Das Helmstaedtersche Reihenfolgeproblem, 1967, with net weights
    """
    n = net.n
    out, into = (np.zeros(n, dtype=np.float64) for _ in range(2))
    np.add.at(out, net.tails, net.weights)
    np.add.at(into, net.heads, net.weights)
    ptr, near, pull = net.both_ways
    left, order = np.ones(n, dtype=bool), np.empty(n, dtype=np.int64)
    for i in range(n):
        worth = np.where(left, (out + 1) / (into + 1), -1.0)
        order[i] = v = int(np.argmax(worth))
        left[v] = False
        cut = slice(ptr[v], ptr[v + 1])
        ends, weights = near[cut], pull[cut]
        np.subtract.at(into, ends[weights < 0], -weights[weights < 0])
        np.subtract.at(out, ends[weights > 0], weights[weights > 0])
    return order, "quotients"


ORDERING_BASELINES: dict[str, Rule] = {
    "eades_lin_smyth": eades_lin_smyth,
    "net_weight": net_weight,
    "depth_first": depth_first,
    "quotients": quotients,
}
SECONDS = {"eades_lin_smyth": 3e-7, "net_weight": 1e-7, "depth_first": 1e-6}  # for each node and arc, about
QUOTIENT_SECONDS = 4e-9  # for each pair of nodes
