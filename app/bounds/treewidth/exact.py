"""Exhaustive search for elimination orders of small graphs: is there one that makes few new edges?

What is left after some nodes are eliminated does not depend on their order, so each set of them is looked
at once, and again where fewer edges were made. A node whose neighbours are adjacent is eliminated at once;
the nodes of a clique come last.

Source   sets once: Bodlaender, Fomin, Koster, Kratsch and Thilikos, On exact algorithms for treewidth, ACM
         Transactions on Algorithms 2012; simplicial nodes: Gogate and Dechter, UAI 2004
"""

import ctypes
from typing import NamedTuple

import numpy as np

from app.bounds.treewidth import plain
from app.graphs.graph import Graph
from app.native.library import address, function

Long, Pointer, Word = ctypes.c_int64, ctypes.c_void_p, ctypes.c_uint64
SEEK = function("lk_order_seek", Long, Pointer, Long, Long, Word, Pointer, Pointer, returns=Long)
MOST_SOUGHT = 64  # nodes


class Found(NamedTuple):
    """What a search says.

    order    [n] int64, worth no more; None: there is none, or it is not known
    known    False: too much would have to be looked at
    states   sets that were looked at, or rows that were held (app/bounds/treewidth/blocks.py)
    """

    order: np.ndarray | None
    known: bool
    states: int


def words_of(graph: Graph) -> list[int]:
    """The neighbours of each node, as the bits of a number."""
    near = [0] * graph.n
    for u, v in zip(graph.row_of().tolist(), graph.indices.tolist()):
        near[u] |= 1 << v
    return near


def clique_of(near: list[int]) -> int:
    """Nodes of a clique, as bits: greedily, those with most neighbours in common with it first."""
    best = 0
    for first in range(len(near)):
        held, left = 1 << first, near[first]
        while left:
            nodes = [v for v in range(len(near)) if left >> v & 1]
            v = max(nodes, key=lambda v: ((near[v] & left).bit_count(), -v))
            held, left = held | 1 << v, left & near[v]
        best = max(best, held, key=lambda each: (each.bit_count(), -each))
    return best


def seek(graph: Graph, most: int, limit: int, compiled: bool = True) -> Found:
    """Whether a graph of up to MOST_SOUGHT nodes has an order that makes no more than `most` new edges.

    limit   sets that may be looked at
    """
    if most < 0:
        return Found(None, True, 0)
    near = words_of(graph)
    last = clique_of(near)
    if not (compiled and SEEK):
        order, known, states = plain.seek(near, most, limit, last)
    else:
        found, told = np.empty(graph.n, dtype=np.int32), np.zeros(1, dtype=np.int64)
        words = np.array(near, dtype=np.uint64)
        end = SEEK(graph.n, address(words), most, limit, last, address(found), address(told))
        if end < -1:
            raise MemoryError("elimination orders")
        order, known, states = found if end == 1 else None, end >= 0, int(told[0])
    return Found(None if order is None else np.asarray(order, dtype=np.int64), known, states)
