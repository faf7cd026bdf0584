"""Search for light sets that dismantle a graph: simulated annealing of what they leave.

The components of what is left are kept by number and size. A proposal draws a node that is taken; it is left
instead, and where the components next to it are too large together, it is kept apart from some of them: from
a drawn one, now and then, then from those whose nodes next to it weigh least for their size, these nodes are
taken. It is made if the set becomes no heavier by it, else with probability exp(-coldness loss / median
weight); those of them that fit again go back at once. One proposal in 16 draws a node that is left, and takes
it. The coldness rises linearly from hot to cold in a cycle of steps, and a cycle takes twice as many as the
one before. Between two cycles the best set loses the nodes that it does not need.

Source   of the annealing of sets of nodes: Qin and Zhou, Simulated annealing approach to the undirected
         feedback vertex set problem, European Physical Journal B 2014
"""

import ctypes

import numpy as np

from app.graphs.sized import SizedGraph
from app.native.library import function
from app.numerics.elementary import log
from app.search.annealed_set import AnnealedSet
from app.search.dismantle import plain

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ONE = 1 << 16  # of the whole numbers that stand for coldnesses and logarithms
HOT = (4.0, 3.0)  # at the start of even cycles, of odd ones
COLD = 10.0  # at the end of all
LEAST = 64  # steps of the first cycle, or half the nodes; each has 32 proposals
GIVEN = ("indptr", "size", "weight", "indices", "hot", "escape")
ARRAYS = ("best_left", "order", "place", "moved", "label", "spare", "met", "out", "queue", "total", "contact")
NUMBERS = ("taken", "cost", "best", "steps", "found_at", "moved_size", "cycle", "at", "spares")
CONSTANTS = ("most", "unit", "largest", "first", "cold")


class _Search(ctypes.Structure):
    _fields_ = (
        ("n", Long),
        *((name, Pointer) for name in (*GIVEN, *ARRAYS)),
        *((name, Long) for name in (*NUMBERS, *CONSTANTS)),
        ("random", ctypes.c_uint64),
    )


S = ctypes.POINTER(_Search)
RUN = function("lk_dismantle_anneal", S, Long)
RETURN = function("lk_dismantle_return", S)


def available() -> bool:
    """True where the library was built."""
    return None not in (RUN, RETURN)


class DismantleSearch(AnnealedSet):
    """A search for a set of least weight; a function of core, start, seed, what it hears, and steps made.

    start      [n] bool, a set that leaves no component that is too large
    seed       an integer, taken modulo 2^64
    compiled   False: the same without the compiled kernels

    steps      32 proposals each                    best  weight of the best set, found_at the step it was
               found in

    best_left        [n] uint8, what the best set leaves
    order, place     [n] int32, the `taken` nodes of the set, then those that are left
    moved            [n] int32, the `moved_size` changes since the best set was saved; -1: any
    label            [n] int32, the component of a node that is left; -1 of another
    total            [n] int64, sizes of components           spare  [n] int32, `spares` numbers of none
    met, out, queue, contact   scratch
    escape           [DRAWS] int64, -log of the random number that a draw stands for, times ONE
    largest          no loss above it can pass
    first, cycle, at steps of the first cycle, cycles that have ended, steps made of this one
    """

    hears = True

    record, arrays, numbers, constants = _Search, (*GIVEN, *ARRAYS), NUMBERS, CONSTANTS
    kernels, twin = (RUN, RETURN), plain

    def __init__(self, core: SizedGraph, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        n = self.n = core.n
        self.compiled = compiled and available()
        self.indptr, self.indices, self.most = core.indptr, core.indices, core.most
        self.size, self.weight = (
            None if (given == 1).all() else np.ascontiguousarray(given) for given in (core.size, core.weights)
        )
        self.unit = int(np.sort(core.weights)[n // 2])
        self.hot = np.array([int(coldness * ONE) for coldness in HOT])
        self.cold = int(COLD * ONE)
        passing = (np.arange(plain.DRAWS, dtype=np.float64) + 0.5) / plain.DRAWS
        self.escape = (-log(np, passing) * ONE).astype(np.int64)
        self.largest = int(self.escape.max()) * self.unit // int(self.hot.min())
        self.first, self.cycle, self.at = max(LEAST, n // 2), 0, 0
        self.best_left, self.best = (~start).astype(np.uint8), int(core.weights[start].sum())
        self.order, self.place, self.moved, self.label, self.spare, self.met, self.out, self.queue = (
            np.zeros(n, dtype=np.int32) for _ in range(8)
        )
        self.total, self.contact = (np.zeros(n, dtype=np.int64) for _ in range(2))
        self.taken = self.cost = self.steps = self.found_at = self.moved_size = self.spares = 0
        self.random = seed & (1 << 64) - 1
        self._begin(core.weights, 0 if core.apart() else int(core.weights.min()))

    @property
    def done(self) -> bool:
        """True when no set can weigh less: one node is no heavier than any, or nothing is too large."""
        return self.best <= self._least
