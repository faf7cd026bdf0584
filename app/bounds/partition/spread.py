"""Trees: shortest paths from a root to the nodes around it, with kernels or without, the same in whole
numbers.
"""

import ctypes
import heapq

import numpy as np

from app.bounds.partition.part import Part
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p

TREE = function("lk_spread_tree", *[Long] * 3, *[Pointer] * 9, returns=Long)
LOAD = function("lk_spread_load", *[Long] * 2, *[Pointer] * 7)
LEVELS = 256
SHORTEST, GROWTH = 16, (267, 256)  # the length of an edge of level 0; of the next, as a fraction of the last
MOST_NODES = 1 << 20


def lengths() -> np.ndarray:
    """[LEVELS] int64, of edges by their levels: ever longer, by a twentieth or so."""
    found = [SHORTEST]
    for _ in range(LEVELS - 1):
        found.append(found[-1] * GROWTH[0] // GROWTH[1] + 1)
    return np.array(found, dtype=np.int64)


def edge_of(part: Part) -> np.ndarray:
    """[nnz] int64, the edge of each entry: edges are numbered by their entries above the diagonal."""
    row, column = part.rows.row_of(), part.rows.indices.astype(np.int64)
    key = np.minimum(row, column) * part.rows.n + np.maximum(row, column)
    return np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)


class Trees:
    """Trees of one part, one at a time.

    edge     [nnz] edge_of
    order    [n] nodes of the last tree     parent, entry   [n] where each hangs: a place in `order`, an entry
    below    [n] what hangs on each, itself too, after `load`
    """

    def __init__(self, part: Part, compiled: bool = True) -> None:
        n = part.rows.n
        self._part, self._compiled = part, compiled and TREE is not None
        self.edge = edge_of(part)
        self._length = np.ones(len(self.edge), dtype=np.int64)
        self._distance = np.full(n, -1, dtype=np.int64)
        self._place, self.order, self.parent, self.entry, self.below = np.zeros((5, n), dtype=np.int64)

    @property
    def fits(self) -> bool:
        """Whether distances times weights are whole numbers of 63 bits."""
        n, total = self._part.rows.n, self._part.total
        return n <= MOST_NODES and n * int(lengths()[-1]) * max(total, n, 1) < 1 << 62

    def measure(self, level: np.ndarray) -> None:
        """Edges [edges] have lengths by these levels from now on."""
        self._length = lengths()[level][self.edge]

    def grow(self, root: int) -> int:
        """The tree of a root: how many nodes it has; 0: all that is connected weighs no more than a block."""
        part, rows = self._part, self._part.rows
        if not self._compiled:
            return self._grow(root)
        arrays = (
            rows.indptr, rows.indices, self._length, part.sizes, self._distance, self._place, self.order,
            self.parent, self.entry,
        )  # fmt: skip
        count = TREE(rows.n, root, part.most, *map(address, arrays))
        if count < 0:
            raise MemoryError("no memory for a tree")
        return count

    def load(self, count: int, much: int, load: np.ndarray) -> None:
        """load [edges] grows by `much` times what hangs on each edge of the last tree, of so many nodes."""
        if self._compiled:
            arrays = (self.order, self.parent, self.entry, self._part.sizes, self.edge, self.below, load)
            LOAD(count, much, *map(address, arrays))
            return
        below = self.below[:count]
        below[:] = self._part.sizes[self.order[:count]]
        for i in range(count - 1, 0, -1):
            below[self.parent[i]] += below[i]
            load[self.edge[self.entry[i]]] += much * below[i]

    def _grow(self, root: int) -> int:
        """`grow` without kernels, as native/spread.c has it."""
        rows, most, sizes = self._part.rows, self._part.most, self._part.sizes
        heap, nearest, at = [(0, root)], {root: 0}, {root: (-1, -1)}
        place: dict[int, int] = {}
        weighs = total = 0
        while heap:
            far, v = heapq.heappop(heap)
            if v in place:
                continue
            if weighs > most and far * (weighs - most) >= total:
                break
            i = place[v] = len(place)
            self.order[i] = v
            self.parent[i], self.entry[i] = at[v]
            weighs += int(sizes[v])
            total += far * int(sizes[v])
            for e in range(int(rows.indptr[v]), int(rows.indptr[v + 1])):
                u, there = int(rows.indices[e]), far + int(self._length[e])
                if u not in nearest or there < nearest[u]:
                    nearest[u], at[u] = there, (i, e)
                    heapq.heappush(heap, (there, u))
        return len(place) if weighs > most else 0
