"""What prizes pay for: nodes from which paths lead to a node without loss, and the best part of a tree."""

import ctypes
import heapq

import numpy as np

from app.graphs.steiner import SteinerCore
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
REACH = function("lk_prize_reach", *[Pointer] * 5, Long, Long, *[Pointer] * 2, returns=Long)
BEST = function("lk_prize_best", Long, *[Pointer] * 5, Long, *[Pointer] * 2, returns=Long)

NO_MEMORY = -(1 << 63)


class Ways:
    """A graph and its prizes [n] int64, for paths from many nodes.

    goal   [n] bool, where a path may end
    """

    def __init__(self, core: SteinerCore, prizes: np.ndarray, compiled: bool = True) -> None:
        self.core, self.compiled = core, compiled and REACH is not None
        self.goal = np.zeros(core.n, dtype=bool)
        self._mark, self._found = np.zeros(core.n, dtype=np.uint8), np.zeros(core.n, dtype=np.int32)
        self._arrays = (
            core.indptr, np.ascontiguousarray(core.indices, np.int32), core.lengths,
            np.ascontiguousarray(prizes, np.int64),
        )  # fmt: skip
        self._given = [address(array) for array in (*self._arrays, self.goal)]

    def reached(self, node: int, most: int = 0) -> np.ndarray:
        """[k] int32, the nodes in the reach of a node, in the order they are met, as far as the first of the
        goal, or so many of them at least (0: all).

        The path that has most left of its prizes goes on first, of equal ones that at the smallest node.
        """
        if not self.compiled:
            return np.array(self._plain(node, most), dtype=np.int32)
        count = REACH(*self._given, node, most, address(self._mark), address(self._found))
        if count < 0:
            raise MemoryError("ways of prizes")
        return self._found[:count].copy()

    def meets(self, node: int, most: int) -> bool:
        """Whether the last of these is of the goal."""
        return bool(self.goal[self.reached(node, most)[-1]])

    def _plain(self, node: int, most: int) -> list[int]:
        """The same without kernels."""
        indptr, indices, lengths, prizes = map(memoryview, self._arrays)
        reached, met, heap = [node], {node}, [(-prizes[node], node)]
        while heap and (not most or len(reached) < most):
            spare, v = heapq.heappop(heap)
            for at in range(indptr[v], indptr[v + 1]):
                length, w = lengths[at], indices[at]
                if length <= -spare and w not in met:
                    met.add(w)
                    reached.append(w)
                    if self.goal[w]:
                        return reached
                    heapq.heappush(heap, (spare + length - prizes[w], w))
        return reached


def best_within(
    core: SteinerCore, prizes: np.ndarray, parent: np.ndarray, compiled: bool = True
) -> tuple[np.ndarray, int]:
    """The best tree within a tree, by its parents [n], as parents [n], and its prizes less its length.

    The gain of a node is its prize and what is left of the gains of those below beside the edges to them,
    where that is above 0 or a terminal is below. The best tree begins at the node of the largest gain, of
    equal ones the first, or at the root, a terminal.

    Source   strong pruning: Johnson, Minkoff and Phillips, The prize collecting Steiner tree problem: theory
             and practice, SODA 2000
    """
    if not compiled or BEST is None:
        return _best_plain(core, prizes, parent)
    held, found = np.zeros(core.n, dtype=np.uint8), np.full(core.n, -1, dtype=np.int64)
    held[core.terminals] = 1
    arrays = core.indptr, np.ascontiguousarray(core.indices, np.int32), core.lengths
    parent = np.ascontiguousarray(parent, np.int64)
    gain = BEST(
        core.n, *map(address, (*arrays, prizes, parent)), len(core.terminals), address(held), address(found)
    )
    if gain == NO_MEMORY:
        raise MemoryError("the best part of a tree")
    return found, gain


def _best_plain(core: SteinerCore, prizes: np.ndarray, parent: np.ndarray) -> tuple[np.ndarray, int]:
    """The same without kernels."""
    children = np.flatnonzero((parent >= 0) & (parent != np.arange(len(parent))))
    length = dict(zip(children.tolist(), core.lengths_of(children, parent[children]).tolist()))
    above, order = parent.tolist(), _from_root(parent)
    gain = dict(zip(order, prizes[order].tolist()))
    held = dict.fromkeys(core.terminals.tolist(), True)
    kept: dict[int, bool] = {}
    for node in reversed(order):
        if node not in length:
            continue
        left = gain[node] - length[node]
        kept[node] = left > 0 or node in held
        if kept[node]:
            gain[above[node]] += left
        if node in held:
            held[above[node]] = True
    root = order[0] if len(core.terminals) else max(order, key=lambda node: (gain[node], -node))
    found = np.full(len(parent), -1, dtype=np.int64)
    found[root] = root
    for node in order:
        if node != root and kept.get(node) and found[above[node]] >= 0:
            found[node] = above[node]
    return found, gain[root]


def _from_root(parent: np.ndarray) -> list[int]:
    """The nodes of a tree, each behind its parent."""
    below: dict[int, list[int]] = {}
    order: list[int] = []
    for node in np.flatnonzero(parent >= 0).tolist():
        above = int(parent[node])
        if above == node:
            order.append(node)
        else:
            below.setdefault(above, []).append(node)
    for node in order:
        order += below.get(node, ())
    return order
