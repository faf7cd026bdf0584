"""Walk: tabu search for a colouring without conflicts, with a fixed number of colours.

A state gives every node one of k colours; an edge whose ends have the same one is a conflict. A move gives a
node in conflict another colour: the one that changes the number of conflicts most for the better, or least
for the worse, of equal ones one that is drawn. The colour it had it does not take again for some moves, for
longer where more is in conflict, but where that leaves fewer conflicts than any state of the walk before.

Source   TabuCol: Hertz and de Werra, Computing 1987; tenures of .6 times the conflicting nodes and up to ten
         moves: Galinier and Hao, Journal of Combinatorial Optimization 1999
"""

import ctypes

import numpy as np

from app.graphs.graph import Graph
from app.native.library import function
from app.native.state import KernelState
from app.search.coloring import plain as plain

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ARRAYS = (
    "indptr", "indices", "color", "near", "row", "until", "list", "place", "own", "least", "least_open",
    "best_color", "first", "next", "forbidden",
)  # fmt: skip
NONE = 1 << 29  # native/coloring.c
NUMBERS = ("conflicts", "edges", "best_edges", "moves", "fresh")


class _Walk(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("n", "k", "ring")),
        *((name, Pointer) for name in ARRAYS),
        *((name, Long) for name in NUMBERS),
        ("random", ctypes.c_uint64),
    )


WALK = function("lk_coloring_walk", ctypes.POINTER(_Walk), Long, returns=Long)


def walk_bytes(graph: Graph, colors: int) -> int:
    """Bytes of a walk, and of its beginning, which counts in 64 bits."""
    return 20 * graph.n * colors + 32 * graph.n + 28 * len(graph.indices)


class Walk(KernelState):
    """A walk over colourings of a whole graph; a function of its start, the random state and the moves made.

    color       [n] int32 colours 0..k-1 of the state
    edges       conflicts of the state; conflicts: nodes in conflict
    best_color  [n] int32, the state with the fewest conflicts so far, best_edges
    random      state of the generator (app/rng.py)

    near        [k, n] int32, neighbours of each colour     until  [n, k] int32, see native/coloring.c
    list        [n] int32, the nodes in conflict; place: where each stands in it, -1 for nowhere
    of kernels alone: row [n, k] int32, near by nodes, of those in conflict; own, least, least_open [n] int32
    by places in the list, what their moves change; first, next, forbidden [ring], when colours are free again
    fresh       1 where best_color is still to be written, 0 between calls
    """

    numbers = (*NUMBERS, "random")

    def __init__(self, graph: Graph, compiled: bool = True) -> None:
        self.n, self.compiled = graph.n, compiled and WALK is not None
        self.indptr = np.ascontiguousarray(graph.indptr, dtype=np.int64)
        self.indices = np.ascontiguousarray(graph.indices, dtype=np.int32)
        self.own, self.least, self.least_open = (np.empty(self.n, dtype=np.int32) for _ in range(3))
        self.ring = self.n + 16  # more than the moves for which a colour is not taken
        self.first, self.next = (np.empty(self.ring, dtype=np.int32) for _ in range(2))
        self.forbidden = np.empty(self.ring, dtype=np.int64)
        self._rows = graph.row_of()
        self.near = np.zeros((0, 0), dtype=np.int32)
        self.edges = 0

    def begin(self, colors: int, color: np.ndarray, random: int) -> None:
        """Begin at a state [n] of so many colours."""
        self.k, self.random = colors, random
        self.color, self.best_color = (np.array(color, dtype=np.int32) for _ in range(2))
        if len(self.near) != colors:
            self.near = np.empty((colors, self.n), dtype=np.int32)
            self.row, self.until = (np.empty((self.n, colors), dtype=np.int32) for _ in range(2))
        pairs = self.color[self.indices].astype(np.int64) * self.n + self._rows
        self.near[:] = np.bincount(pairs, minlength=colors * self.n).reshape(colors, self.n)
        self.until[:] = 0
        own = self.near[self.color, np.arange(self.n)]
        nodes = np.flatnonzero(own)
        self.list, self.place = np.zeros(self.n, dtype=np.int32), np.full(self.n, -1, dtype=np.int32)
        self.list[: len(nodes)] = nodes
        self.place[nodes] = np.arange(len(nodes))
        self.conflicts = len(nodes)
        self.edges = self.best_edges = int(own.sum()) // 2
        self.moves = self.fresh = 0
        if self.compiled:
            self._row_conflicts(nodes)
            self._hold(_Walk(self.n, colors, self.ring), ARRAYS)

    def _row_conflicts(self, nodes: np.ndarray) -> None:
        """What the kernel keeps of the nodes in conflict [m], before any colour is forbidden."""
        rows = self.near[:, nodes].T
        self.row[nodes] = rows
        each = np.arange(len(nodes)), self.color[nodes]
        self.own[: len(nodes)] = rows[each]
        rows[each] = NONE
        for least in (self.least, self.least_open):
            least[: len(nodes)] = rows.min(axis=1, initial=NONE)
        self.first[:] = -1

    def run(self, steps: int) -> int:
        """So many moves, fewer where no conflict is left; returns the moves made."""
        return self._call(WALK, steps) if self.compiled else plain.walk(self, steps)
