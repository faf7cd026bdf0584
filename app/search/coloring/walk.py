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
BY_PLACES = ("own", "least", "least_open", "times", "times_open")
OF_BLOCKS = ("of_block", "open_of_block", "moves_of_block", "open_moves_of_block", "stale", "is_stale")
MOST_DENSE = 1 << 13  # nodes of a dense graph, at most; native/coloring.c
DENSE = 10  # times the stored entries: at most so many pairs of nodes has a dense graph
LANES, TOGETHER = 16, 64  # colours and nodes of one that are looked at together; native/coloring.c
BLOCK = 128  # places of the list of nodes in conflict; native/coloring.c
ARRAYS = (
    "indptr", "indices", "beside", "short_color", "shut", "color", "near", "row", "until", "list", "place",
    *BY_PLACES, *OF_BLOCKS, "best_color", "journal", "first", "next", "forbidden",
)  # fmt: skip
NUMBERS = ("conflicts", "edges", "best_edges", "moves", "fresh", "stales", "moved")


class _Walk(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("n", "k", "ring", "across", "width")),
        *((name, Pointer) for name in ARRAYS),
        *((name, Long) for name in NUMBERS),
        ("random", ctypes.c_uint64),
    )


BEGIN = function("lk_coloring_begin", ctypes.POINTER(_Walk))
WALK = function("lk_coloring_walk", ctypes.POINTER(_Walk), Long, returns=Long)


def dense(graph: Graph) -> bool:
    """Whether kernels add a whole row of bytes, one for each node, to what nodes have beside them.

    That is quicker than to follow edges where one pair of nodes in ten has one, or more.
    """
    return graph.n <= MOST_DENSE and graph.n * graph.n <= DENSE * len(graph.indices)


def walk_bytes(graph: Graph, colors: int) -> int:
    """Bytes of a walk."""
    n = graph.n
    of_near, more = (2, n * n + 2 * n) if dense(graph) else (4, 0)
    return (8 + of_near) * n * colors + 68 * n + 4 * len(graph.indices) + more


class Walk(KernelState):
    """A walk over colourings of a whole graph; a function of its start, the random state and the moves made.

    color       [n] int32 colours 0..k-1 of the state
    edges       conflicts of the state; conflicts: nodes in conflict
    best_color  [n] int32, the state with the fewest conflicts so far, best_edges
    random      state of the generator (app/rng.py)

    near        [k, n] int32, neighbours of each colour; of dense graphs [k, width] int16, n and more places
    until       [n, k] int32, see native/coloring.c
    list        [n] int32, the nodes in conflict; place: where each stands in it, -1 for nowhere
    of kernels alone: row [n, k] as near, by nodes, of those in conflict; of dense graphs beside [n, width]
    uint8, short_color [width] int16 and shut [n, k and more] int16; BY_PLACES [n] int32, what moves of nodes
    in conflict change, and how many do; OF_BLOCKS, the same of BLOCK places each; journal [n] int32, nodes
    that have moved of late; first, next, forbidden [ring], when colours are free again
    fresh       1 where best_color is still to be written, 0 between calls
    """

    numbers = (*NUMBERS, "random")

    def __init__(self, graph: Graph, compiled: bool = True) -> None:
        n = self.n = graph.n
        self.compiled = compiled and WALK is not None
        self.indptr = np.ascontiguousarray(graph.indptr, dtype=np.int64)
        self.indices = np.ascontiguousarray(graph.indices, dtype=np.int32)
        self.ring = n + 16  # more than the moves for which a colour is not taken
        self.list, self.place = np.zeros(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        if self.compiled:
            lengths = dict.fromkeys((*BY_PLACES, "journal"), n) | dict.fromkeys(OF_BLOCKS, n // BLOCK + 1)
            for name, length in (lengths | {"first": self.ring, "next": self.ring}).items():
                setattr(self, name, np.empty(length, dtype=np.uint8 if name == "is_stale" else np.int32))
            self.forbidden = np.empty(self.ring, dtype=np.int64)
        self.beside = self.short_color = self.shut = None
        self.width = ((n + TOGETHER - 1) // TOGETHER | 1) * TOGETHER if dense(graph) else n
        self.near = np.zeros((0, 0), dtype=np.int16 if dense(graph) else np.int32)
        if self.compiled and dense(graph):
            self.beside = np.zeros((n, self.width), dtype=np.uint8)
            self.short_color = np.full(self.width, -1, dtype=np.int16)
            self.beside[graph.row_of(), self.indices] = 1
        self.edges = self.stales = self.moved = 0

    def begin(self, colors: int, color: np.ndarray, random: int) -> None:
        """Begin at a state [n] of so many colours."""
        self.k, self.random = colors, random
        self.color, self.best_color = (np.array(color, dtype=np.int32) for _ in range(2))
        if len(self.near) != colors:
            kind = self.near.dtype
            self.near = self.row = self.until = self.shut = None  # not beside what takes their place
            self.near = np.empty((colors, self.width), dtype=kind)
            across = -(-colors // LANES) * LANES if self.beside is not None else colors
            self.row, self.until = np.empty((self.n, across), kind), np.empty((self.n, colors), np.int32)
            self.shut = np.empty((self.n, across), kind) if self.beside is not None else None
        self.conflicts = self.edges = self.best_edges = self.moves = self.fresh = 0
        if self.compiled:
            self._hold(_Walk(self.n, colors, self.ring, self.row.shape[1], self.width), ARRAYS)
            self._call(BEGIN)
        else:
            plain.begin(self)

    def run(self, steps: int) -> int:
        """So many moves, fewer where no conflict is left; returns the moves made."""
        return self._call(WALK, steps) if self.compiled else plain.walk(self, steps)
