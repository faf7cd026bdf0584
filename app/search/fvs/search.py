"""Search for small feedback vertex sets: simulated annealing of the forest that they leave.

The forest is kept as a list in which every node has at most one neighbour before it, so that a cycle cannot
close. A proposal draws a node from outside; it enters behind the first of its neighbours in the list, and
those leave that have two neighbours before them then. It is made if the forest loses no weight by it, else
with probability exp(-coldness loss / median weight). The coldness rises linearly from hot to cold in a cycle
of steps, and a cycle takes twice as many as the one before. Between two cycles the best forest takes all
nodes that close no cycle with it, however they stand in the list, and its trees get new roots.

Source   Qin and Zhou, Simulated annealing approach to the undirected feedback vertex set problem, European
         Physical Journal B 2014; lists: Galinier, Lemamou and Bouzidi, Journal of Heuristics 2013
"""

import ctypes

import numpy as np

from app.graphs.multigraph import Multigraph
from app.native.library import function
from app.numerics.elementary import log
from app.search.annealed_set import AnnealedSet
from app.search.fvs import plain

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ONE = 1 << 16  # of the whole numbers that stand for coldnesses and logarithms
HOT = (4.0, 3.0)  # at the start of even cycles, of odd ones
COLD = 10.0  # at the end of all
LEAST = 64  # steps of the first cycle, or half the nodes; each has 32 proposals
GIVEN = ("indptr", "weight", "indices", "twice", "hot", "escape")
ARRAYS = ("best_left", "order", "place", "moved", "next", "before", "earlier", "part", "seen", "label")
NUMBERS = ("outside", "cost", "best", "steps", "found_at", "moved_size", "cycle", "at")
CONSTANTS = ("unit", "largest", "first", "cold")


class _Search(ctypes.Structure):
    _fields_ = (
        ("n", Long),
        *((name, Pointer) for name in (*GIVEN, *ARRAYS)),
        *((name, Long) for name in (*NUMBERS, *CONSTANTS)),
        ("random", ctypes.c_uint64),
    )


S = ctypes.POINTER(_Search)
RUN = function("lk_feedback_anneal", S, Long)
RETURN = function("lk_feedback_return", S)


def available() -> bool:
    """True where the library was built."""
    return None not in (RUN, RETURN)


class FeedbackSearch(AnnealedSet):
    """A search for a set of least weight; a function of core, start, seed, what it hears, and steps made.

    start      [n] bool, a feedback vertex set      seed  an integer, taken modulo 2^64
    compiled   False: the same without the compiled kernels

    steps      32 proposals each                    best  weight of the best set, found_at the step it was
               found in

    best_left               [n] uint8, what the best set leaves
    order, place            [n] int32, the `outside` nodes that are not in the forest, then those that are
    moved                   [n] int32, the `moved_size` changes since the best set was saved; -1: any
    next, before            [n+1] int32, the list as a ring; n stands before the first
    label                   [n+1] int64, ascending along the list; -1 outside
    earlier                 [n] int32, of a node of the list: neighbours before it, 0 or 1
    part, seen              [n] int32, scratch
    escape                  [DRAWS] int64, -log of the random number that a draw stands for, times ONE
    largest                 no loss above it can pass
    first, cycle, at        steps of the first cycle, cycles that have ended, steps made of this one
    """

    hears = True

    record, arrays, numbers, constants = _Search, (*GIVEN, *ARRAYS), NUMBERS, CONSTANTS
    kernels, twin = (RUN, RETURN), plain

    def __init__(self, core: Multigraph, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        n = self.n = core.n
        self.compiled = compiled and available()
        self.indptr, self.indices = core.indptr, core.indices
        self.twice = core.twice if core.twice.any() else None
        self.weight = None if (core.weights == 1).all() else np.ascontiguousarray(core.weights)
        self.unit = int(np.sort(core.weights)[n // 2])
        self.hot = np.array([int(coldness * ONE) for coldness in HOT])
        self.cold = int(COLD * ONE)
        passing = (np.arange(plain.DRAWS, dtype=np.float64) + 0.5) / plain.DRAWS
        self.escape = (-log(np, passing) * ONE).astype(np.int64)
        self.largest = int(self.escape.max()) * self.unit // int(self.hot.min())
        self.first, self.cycle, self.at = max(LEAST, n // 2), 0, 0
        self.best_left, self.best = (~start).astype(np.uint8), int(core.weights[start].sum())
        self.order, self.place, self.moved, self.earlier, self.part, self.seen = (
            np.zeros(n, dtype=np.int32) for _ in range(6)
        )
        self.next, self.before = (np.zeros(n + 1, dtype=np.int32) for _ in range(2))
        self.label = np.zeros(n + 1, dtype=np.int64)
        self.outside = self.cost = self.steps = self.found_at = self.moved_size = 0
        self.random = seed & (1 << 64) - 1
        self._begin(core.weights, int(core.weights.min()) if core.cycles() else 0)

    @property
    def done(self) -> bool:
        """True when no set can weigh less: one node is no heavier than any, or there is no cycle."""
        return self.best <= self._least
