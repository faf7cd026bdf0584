"""The check of fractional colourings: is there an independent set heavier than a limit?

Branch and bound of its own, which has no part in finding bounds. Nodes that are left are put into cliques,
the heaviest node of each first: a set has one node of a clique at most, so that the first nodes of cliques
bound what it weighs. Nodes are tried from the last clique back, until the bound of what is left is within the
limit.

Source   Tomita and Kameda 2007; with weights: Kumlander 2004
"""

import ctypes

import numpy as np

from app.graphs.graph import Graph
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
MOST_WORK = 1 << 36  # words of bit sets, by the kernel some minutes


class TooLong(Exception):
    """The search would take more than the work that is allowed."""


class _Check(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("n", "words", "limit", "work", "most_work")),
        *((name, Pointer) for name in ("near", "weight")),
    )


CHECK = function("lk_check_sets", ctypes.POINTER(_Check), returns=Long)


def exceeds(
    graph: Graph, weights: np.ndarray, limit: int, compiled: bool = True, most: int = MOST_WORK
) -> bool:
    """Whether an independent set of a whole graph weighs more than `limit`.

    weights   [n] int64, not negative     most   words of bit sets
    Raises TooLong, MemoryError
    """
    order = np.argsort(-weights, kind="stable")
    near = np.zeros((graph.n, graph.n), dtype=bool)
    near[graph.row_of(), graph.indices] = True
    near, weights = near[order][:, order], np.ascontiguousarray(weights[order], dtype=np.int64)
    if not (compiled and CHECK):
        return _exceeds(near, weights.tolist(), limit, most)
    words = -(-graph.n // 64)
    sets = np.zeros((graph.n, words * 8), dtype=np.uint8)
    packed = np.packbits(near, axis=1, bitorder="little")
    sets[:, : packed.shape[1]] = packed
    found = CHECK(_Check(graph.n, words, limit, 0, most, address(sets), address(weights)))
    if found == -1:
        raise MemoryError("independent sets")
    if found == -2:
        raise TooLong
    return bool(found)


def _exceeds(near: np.ndarray, weights: list[int], limit: int, most: int) -> bool:
    """The same without the kernel; near [n, n] bool, weights [n] falling."""
    sets = [int.from_bytes(row, "little") for row in np.packbits(near, axis=1, bitorder="little")]
    work, words = 0, -(-len(weights) // 64)
    left = (1 << len(weights)) - 1
    levels = [(0, left, _arranged(sets, weights, left))]
    while levels:
        above, left, tried = levels[-1]
        if not tried or above + tried[-1][1] <= limit:
            levels.pop()
            continue
        node, _ = tried.pop()
        left &= ~(1 << node)
        levels[-1] = above, left, tried
        above += weights[node]
        if above > limit:
            return True
        if work > most:
            raise TooLong
        below = left & ~sets[node]
        levels.append((above, below, _arranged(sets, weights, below)))
        work += words * len(levels[-1][2])
    return False


def _arranged(sets: list[int], weights: list[int], rest: int) -> list[tuple[int, int]]:
    """(node, what no set of the nodes up to it weighs more than), in the order of cliques."""
    found, total = [], 0
    while rest:
        joins, first = rest, True
        while joins:
            node = (joins & -joins).bit_length() - 1
            total += weights[node] * first
            found.append((node, total))
            joins &= sets[node]
            rest &= ~(1 << node)
            first = False
    return found
