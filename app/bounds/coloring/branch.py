"""Whether a graph has a colouring with so many colours: branch and bound, in slices of work.

Compiled (native/coloring_branch.c) where that was built, else plain.py with the same course. The search is
exact, and a function of the work done.

Source   saturation: Brelaz 1979 (DSATUR); one new colour a node: Brown 1972; failures that guide the choice:
         Boussemart, Hemery, Lecoutre and Sais 2004 (dom/wdeg)
Differs  nodes that have colours enough whatever comes are put off, at every level
"""

import ctypes

import numpy as np

from app.bounds.coloring.plain import OPEN, PUT_OFF, PlainColouring
from app.bounds.cover.kernels import Rows
from app.graphs.graph import Graph
from app.native.library import address, function, give_arrays

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
NUMBERS = ("n", "most", "words", "depth", "used", "fresh", "n_trail", "branches", "work")
ARRAYS = (
    "indptr", "indices", "colour", "seen", "taken", "count", "hard", "failed", "trail", "node", "tried",
    "mark", "above",
)  # fmt: skip


class _State(ctypes.Structure):
    _fields_ = (*((name, Long) for name in NUMBERS), *((name, Pointer) for name in ARRAYS))


BEGIN = function("lk_colouring_begin", ctypes.POINTER(_State), Pointer, Long, returns=Long)
RUN = function("lk_colouring_run", ctypes.POINTER(_State), Long, returns=Long)

METHOD = "branch and bound"
FOUND, NONE = 1, 2  # how it may end
COLOUR_BYTES, NODE_BYTES, ENTRY_BYTES = 5, 64, 12  # of a search: for each node and colour, node, stored entry


def needed_bytes(graph: Graph, most: int) -> int:
    """What a search takes."""
    return graph.n * (COLOUR_BYTES * most + NODE_BYTES) + ENTRY_BYTES * len(graph.indices)


class ColouringSearch:
    """The search for a colouring with at most `most` colours, 1 or more.

    graph     whole; best connected, as failures in one component mean nothing for another
    clique    [k] nodes of a clique, whose colours are fixed
    compiled  False: the same without the kernel

    done      it has ended
    colours   [n] int64, 0..most-1, a colouring, where it has ended with one; else None
    branches  colours given so far        work   nodes and stored entries gone through
    """

    def __init__(self, graph: Graph, most: int, clique: np.ndarray, compiled: bool = True) -> None:
        kind = _CompiledColouring if compiled and None not in (BEGIN, RUN) else PlainColouring
        self.most, self._rows, self.colours = most, Rows(graph), None
        self._inner = kind(self._rows, most)
        self.done = not self._inner.begin(np.ascontiguousarray(clique, dtype=np.int32))

    @property
    def branches(self) -> int:
        """Colours given so far."""
        return self._inner.branches

    @property
    def work(self) -> int:
        """Nodes and stored entries gone through."""
        return self._inner.work

    def run(self, until: int) -> bool:
        """Work until `work` has reached a number; returns `done`."""
        if self.done:
            return True
        status = self._inner.run(until)
        self.done = status in (FOUND, NONE)
        if status == FOUND:
            self.colours = self._whole(*self._inner.found())
        if self.done:
            self._inner.forget()
        return self.done

    def _whole(self, colours: np.ndarray, trail: np.ndarray) -> np.ndarray:
        """The colouring with the nodes that were put off, the last first: each finds a free colour."""
        colours = colours.astype(np.int64)
        for node in trail[colours[trail] == PUT_OFF][::-1].tolist():
            near = self._rows.indices[self._rows.indptr[node] : self._rows.indptr[node + 1]]
            free = np.ones(self.most, dtype=bool)
            free[colours[near][colours[near] >= 0]] = False
            colours[node] = free.argmax()
        return colours


class _CompiledColouring:
    """The search by native/coloring_branch.c; PlainColouring states what it does."""

    def __init__(self, rows: Rows, most: int) -> None:
        n, words = rows.n, -(-most // 64)
        self.indptr, self.indices = rows.indptr, rows.indices
        self.colour, self.seen, self.hard = np.full(n, OPEN, np.int32), *np.zeros((2, n), np.int32)
        self.hard[:] = np.diff(rows.indptr)
        self.taken, self.failed = np.zeros((n, words), np.uint64), np.zeros(n, np.int64)
        self.count, self.trail = np.zeros((n, most), np.int32), np.zeros(n, np.int32)
        self.node, self.tried, self.mark, self.above = np.zeros((4, n + 1), np.int32)
        self._state = _State(n=n, most=most, words=words)
        give_arrays(self, self._state, ARRAYS)

    def begin(self, clique: np.ndarray) -> bool:
        return bool(BEGIN(self._state, address(clique), len(clique)))

    def run(self, until: int) -> int:
        return RUN(self._state, until)

    @property
    def branches(self) -> int:
        return self._state.branches

    @property
    def work(self) -> int:
        return self._state.work

    def found(self) -> tuple[np.ndarray, np.ndarray]:
        return self.colour, self.trail[: self._state.n_trail]

    def forget(self) -> None:
        for name in ARRAYS:
            delattr(self, name)
