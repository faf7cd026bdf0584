"""What searches share that anneal a set of nodes by what it leaves, in kernels or their plain twins."""

import ctypes
from typing import Any, ClassVar

import numpy as np

from app.native.state import KernelState
from app.search.annealing import set_course
from app.toolbox import ALWAYS, Search

LEAST_MEETING = 1 << 14  # steps between two meetings of several searches, or 4 for each node
HOT = (4.0, 3.0)  # coldness at the start of even cycles, of odd ones
EVEN = 128  # steps
QUENCHED, LAST = 1 << 19, 16  # nodes of which the first cycle is its last, coldest part of so many alone
Long, Pointer = ctypes.c_int64, ctypes.c_void_p


def struct_of(arrays: tuple[str, ...], numbers: tuple[str, ...]) -> type[ctypes.Structure]:
    """The struct that kernels are given: nodes, arrays, numbers, the state of the draws."""
    pointers, longs = [(name, Pointer) for name in arrays], [(name, Long) for name in numbers]
    fields = [("n", Long), *pointers, *longs, ("random", ctypes.c_uint64)]
    return type("State", (ctypes.Structure,), {"_fields_": fields})


class AnnealedSet(KernelState, Search):
    """A search for a set of least weight; a function of core, start, seed, what it hears, and steps made.

    record           the struct that kernels are given; `arrays`, `numbers`, `constants` its fields, which are
                     attributes of the search by the same names
    kernels          that run so many steps, and that go on from the best set
    twin             the module of both in Python: `run(search, steps)` and `go_back(search)`

    steps            32 proposals each                    found_at  the step that found the best set
    best_left        [n] uint8, what the best set leaves  best      what that set weighs
    cost             what the set weighs                  weight    [n] int64 of nodes, None: all one
    order, place     [n] int32, nodes of one side first   moved     [n] int32, see app/search/set_plain.py
    hot, escape, ... the course, see app/search/annealing.py
    """

    hears = True
    record: ClassVar[Any]
    arrays: ClassVar[tuple[str, ...]]
    constants: ClassVar[tuple[str, ...]]
    kernels: ClassVar[tuple[Any, Any]]
    twin: ClassVar[Any]

    def __init__(self, core: Any, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        """start      [n] bool, a set that is feasible      seed   an integer, taken modulo 2^64
        compiled   False: the same without the compiled kernels
        """
        n = self.n = core.n
        self.compiled = compiled and None not in self.kernels
        self.indptr, self.indices = core.indptr, core.indices
        self.weight = None if (core.weights == 1).all() else np.ascontiguousarray(core.weights)
        self.unit = int(np.sort(core.weights)[n // 2])
        set_course(self, HOT)
        if n >= QUENCHED:
            self.at = self.first - self.first // LAST
        self.best_left, self.best = (~start).astype(np.uint8), int(core.weights[start].sum())
        self.order, self.place, self.moved = (np.zeros(n, dtype=np.int32) for _ in range(3))
        self.cost = self.steps = self.found_at = self.moved_size = 0
        self.random = seed & (1 << 64) - 1

    def _begin(self, weights: np.ndarray, least: int) -> None:
        """Give the kernels the addresses of the arrays, and what never changes; go on from the best set.

        weights   [n] int64 of the nodes     least   no set weighs less
        """
        self._weights, self._least = weights, least
        self._hold(self.record(self.n), self.arrays, self.constants)
        if self.compiled:
            self._call(self.kernels[1])
        else:
            self.twin.go_back(self)

    @property
    def even_steps(self) -> int:
        """Steps that cost about what the last ones did: of large sets few, as some proposals search far."""
        return EVEN if self.n >= QUENCHED else ALWAYS

    @property
    def done(self) -> bool:
        """True when no set can weigh less."""
        return self.best <= self._least

    def run(self, steps: int) -> None:
        """So many steps, fewer only when done."""
        if self.done:
            return
        if self.compiled:
            self._call(self.kernels[0], steps)
        else:
            self.twin.run(self, steps)

    def solution(self) -> np.ndarray:
        """[n] bool, the best set, a copy."""
        return self.best_left == 0

    # ---- what others found ---------------------------------------------------------------------------------

    @property
    def meeting_steps(self) -> int:
        """Steps between two meetings of several searches."""
        return max(LEAST_MEETING, 4 * self.n)

    def news(self) -> np.ndarray:
        """[1, n] int64, the best set."""
        return self.solution().astype(np.int64)[None, :]

    def meet(self, others: list[np.ndarray]) -> None:
        """The best sets of the other searches: the best of all is where the next cycle begins."""
        for each in others:
            self.hear(each[0].astype(bool))

    def hear(self, solution: np.ndarray) -> None:
        """A set from elsewhere; where it is better, the next cycle begins there."""
        value = int(self._weights[solution].sum())
        if value < self.best:
            self.best, self.found_at, self.moved_size = value, self.steps, -1
            self.best_left[:] = ~solution
