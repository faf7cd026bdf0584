"""Ways around edges: a tree needs no edge that is as long as each part, between terminals, of another way.

Without the edge a tree falls into two; one of the parts of the way, whose ends are terminals or those of the
edge, joins them again, and is no longer.

Source   Duin and Volgenant, Reduction tests for the Steiner problem in graphs, Networks 1989 (special
         distance)
Differs  one search from each end, that looks at so many entries, finds the way; a terminal on it begins a
         part
"""

import ctypes
from collections.abc import Iterator

import numpy as np

from app.graphs.steiner import SteinerCore
from app.native.library import address, function, give_arrays
from app.reductions.steiner import plain

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GIVEN = ("indptr", "indices", "row", "lengths", "twin", "terminal")
ARRAYS = ("alive", "distance", "record", "stamp", "node", "before")
WORDS = 1 << 16  # of ways that a call of the kernel has room for, at least


class _Ways(ctypes.Structure):
    _fields_ = (
        ("n", Long),
        *((name, Pointer) for name in (*GIVEN, *ARRAYS)),
        ("room", Long), ("most", Long),
    )  # fmt: skip


DETOURS = function(
    "lk_steiner_detours", ctypes.POINTER(_Ways), Pointer, Long, Long, Pointer, Long, Pointer, returns=Long
)


class Ways:
    """The edges of a core that are alive, and searches for ways around them.

    most   entries that a search from one end of an edge looks at
    """

    def __init__(self, core: SteinerCore, most: int, compiled: bool = True) -> None:
        n, self.compiled, self.most, self.room = core.n, compiled and DETOURS is not None, most, 2 * most + 2
        self.indptr, self.indices, self.lengths = core.indptr, core.indices, core.lengths
        self.row = core.row_of().astype(np.int32)
        self.twin = np.empty(len(self.row), dtype=np.int64)
        self.twin[np.lexsort((self.row, self.indices))] = np.arange(len(self.row))
        self.terminal = np.zeros(n, dtype=np.uint8)
        self.terminal[core.terminals] = 1
        self.alive = np.ones(len(self.row), dtype=np.uint8)
        self.distance, self.record, self.stamp = np.zeros((3, 2 * n), dtype=np.int64)
        self.node, self.before = np.zeros((2, self.room), dtype=np.int64)
        self._struct = _Ways(n)
        give_arrays(self, self._struct, (*GIVEN, *ARRAYS))
        self._struct.room, self._struct.most = self.room, most

    def around(self) -> Iterator[tuple[int, int, list[int]]]:
        """Edges (u, v) that go, and the nodes of a way around each, from u to v; longest edges first."""
        entries = np.flatnonzero(self.row < self.indices)
        order = entries[np.argsort(-self.lengths[entries], kind="stable")]
        return self._compiled(order) if self.compiled else self._plain(order)

    def _plain(self, order: np.ndarray) -> Iterator[tuple[int, int, list[int]]]:
        for edge in order.tolist():
            if (way := plain.detour(self, edge)) is not None:
                self.alive[[edge, int(self.twin[edge])]] = 0
                yield int(self.row[edge]), int(self.indices[edge]), way

    def _compiled(self, order: np.ndarray) -> Iterator[tuple[int, int, list[int]]]:
        out, used, at = np.empty(max(WORDS, self.room + 3), dtype=np.int64), ctypes.c_int64(), 0
        while at < len(order):
            at = DETOURS(
                self._struct, address(order), at, len(order), address(out), len(out), ctypes.addressof(used)
            )
            if at < 0:
                raise MemoryError("ways around edges")
            words, first = out[: used.value].tolist(), 0
            while first < len(words):
                u, v, count = words[first : first + 3]
                yield u, v, words[first + 3 : first + 3 + count]
                first += 3 + count
