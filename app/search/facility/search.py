"""Local search for facilities: interchanges with all gains kept, from solutions that are shaken.

A customer is served by the cheapest open facility, d1, and would be by the next, d2. Closing a facility costs
its `loss`, the sum of d2 - d1 over its customers; opening one saves its `gain`, the sum of max(0, d1 - cost);
both at once save gain - loss + extra, where `extra` corrects for customers of the one that closes to whom the
other is nearer than d2: d2 - max(d1, cost) each. A move changes the sums by those customers alone whose d1 or
d2 it changes, and they are found from the costs sorted for each customer. In a step the best of all moves is
made: an interchange, or where the number of facilities allows it an opening or a closing. Where none gains, a
few moves follow that are drawn, near one customer most times, and the search goes on from where they lead; it
returns to the best solution where that ends worse.

Source   Whitaker, A fast algorithm for the greedy interchange for large-scale clustering and median location
         problems, 1983; Resende and Werneck, A fast swap-based local search procedure for location problems,
         2007 (loss, gain and extra); Hansen and Mladenovic, Variable neighborhood search for the p-median,
         1997 (shaking)
"""

import ctypes
from typing import Any

import numpy as np

from app.graphs.facility import Sites
from app.native.library import address, function
from app.native.state import KernelState
from app.rng import SplitMix
from app.search.facility import plain
from app.search.mask_search import MaskSearch

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ARRAYS = (
    "cost", "opening", "near", "ordered", "forced", "best_open", "slot", "inside", "first", "second",
    "touched", "d1", "d2", "stamp", "gain", "loss", "extra",
)  # fmt: skip
FIXED = ("most", "slots", "far", "counted", "strongest")
NUMBERS = ("size", "value", "best", "steps", "found_at", "shaking", "shakes", "around", "width")
STRONGEST = 6  # moves of a shake, at most
PATIENCE = 100
LEAST_MEETING = 512


class _Search(ctypes.Structure):
    _fields_ = (
        ("m", Long),
        ("n", Long),
        *((name, Pointer) for name in ARRAYS),
        *((name, Long) for name in (*FIXED, *NUMBERS)),
        ("random", ctypes.c_uint64),
    )


S = ctypes.POINTER(_Search)
SEARCH = function("lk_facility_search", S, Long, Pointer)
LOAD = function("lk_facility_load", S)


def available() -> bool:
    """True where the library was built."""
    return None not in (SEARCH, LOAD)


class FacilitySearch(KernelState, MaskSearch):
    """A search for facilities of least cost; a function of sites, start, seed, what it hears, steps made.

    start      [m] bool, facilities of a feasible solution, at least one
    seed       an integer, taken modulo 2^64
    compiled   False: the same without the compiled kernels

    steps      moves made so far
    best       value of the best solution, found_at the step it was found in
    done       nothing can cost less: all customers cost the least they can, and opening costs nothing

    slot, inside   [m], [slots] int32, places of open facilities in a list; the list
    first, second, d1, d2   [n] the cheapest open facilities of a customer, what they cost
    gain, loss, extra       [m], [slots], [m, slots] int64, see above
    best_open   [m] uint8, where shakes return to: the last solution of value `best`; the answer is the
                first one, which does not depend on when the search ends
    """

    least_meeting = LEAST_MEETING
    numbers = (*NUMBERS, "random")

    def __init__(self, sites: Sites, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        m, n = self.m, self.n = sites.m, sites.n
        self.sites, self.compiled = sites, compiled and available()
        self.cost, self.near, self.ordered = sites.cost, sites.near, sites.ordered
        self.opening = np.ascontiguousarray(sites.opening)
        self.forced, self.best_open = sites.forced.astype(np.uint8), start.astype(np.uint8)
        self.most, self.far = sites.most, sites.far
        self.slots = max(sites.most, int(np.count_nonzero(start)), 1)
        self.counted = int(not self.opening.any())
        self.strongest = max(1, min(STRONGEST, self.slots))
        self.slot, self.inside = np.full(m, -1, dtype=np.int32), np.zeros(self.slots, dtype=np.int32)
        self.first, self.second, self.touched = (np.zeros(n, dtype=np.int32) for _ in range(3))
        self.d1, self.d2 = (np.zeros(n, dtype=np.int64) for _ in range(2))
        self.stamp, self.gain = (np.zeros(m, dtype=np.int64) for _ in range(2))
        self.loss, self._net = (np.zeros(self.slots, dtype=np.int64) for _ in range(2))
        self.extra = np.zeros((m, self.slots), dtype=np.int64)
        self.size = self.value = self.steps = self.found_at = self.shaking = self.shakes = self.width = 0
        self.around = -1
        self.random = SplitMix(seed).state
        self._least = int(self.ordered[:, 0].sum()) if self.counted else -1
        self._hold(_Search(m, n), ARRAYS, FIXED)
        self.best, self._found = sites.value(start), start.astype(bool)
        self._load()

    @staticmethod
    def patience(sites: Sites) -> int:
        """Steps that may be in vain, in CenterSearch."""
        return PATIENCE

    @property
    def done(self) -> bool:
        """Whether nothing can cost less."""
        return self.best <= self._least

    def run(self, steps: int) -> None:
        """So many moves, fewer only when done."""
        while steps > 0 and not self.done:
            before = self.best
            if self.compiled:
                self._call(SEARCH, 1, address(self._net))
            else:
                plain.run(self, 1)
            steps -= 1
            if self.best < before:
                self._found = self.best_open.astype(bool)

    def _load(self) -> None:
        """Go on from the best solution."""
        self.shaking = 0
        if self.compiled:
            self._call(LOAD)
        else:
            plain.load(self)

    def solution(self) -> np.ndarray:
        """[m] bool, the best solution, a copy."""
        return self._found.copy()

    # ---- what others found ---------------------------------------------------------------------------------

    def hear(self, solution: np.ndarray) -> None:
        """A solution from elsewhere; where it is better the search goes on from it."""
        value = self.sites.value(solution)
        if value < self.best:
            self.best, self.found_at = value, self.steps
            self.best_open[:] = self._found = solution.astype(bool)
            self._load()


class CenterSearch(MaskSearch):
    """A search for facilities whose farthest customer is near.

    How many customers cost a radius or more is made less, as in FacilitySearch, until none does. The radius
    is halfway between the best solution's and one at which `patience` steps in a row were not enough; once
    these are next to each other it is that of the best solution, for as long as it takes.

    Arguments as FacilitySearch; `made` is the search for fewer customers, FacilitySearch or PointSearch
    """

    least_meeting = LEAST_MEETING

    def __init__(
        self, sites: Any, start: np.ndarray, seed: int, compiled: bool = True, made: Any = FacilitySearch
    ) -> None:
        self.sites, self.compiled, self._made = sites, compiled, made
        self.least_meeting, self._patience = made.least_meeting, made.patience(sites)
        self.best, self.found_at, self.steps = sites.value(start), 0, 0
        self._best_open, self._random = start.copy(), SplitMix(seed).state
        self._least = int(sites.cheapest.max(initial=0))
        self._failed = self._least  # the radius that was not reached
        self._inner: Any = None
        self._radius = 0

    @property
    def done(self) -> bool:
        """Whether no solution can be better: a customer costs as much anywhere."""
        return self.best <= self._least

    def run(self, steps: int) -> None:
        """So many moves, fewer only when done."""
        while steps > 0 and not self.done:
            if self._inner is None:
                self._begin()
            inner = self._inner
            while steps > 0 and inner.best and not self._tired():
                before = inner.steps
                inner.run(min(steps, self._patience - before) if self._radius < self.best else steps)
                steps -= inner.steps - before
                self.steps += inner.steps - before
            self._random = inner.random
            if not inner.best:
                self._take(inner.solution())
            elif self._tired():
                self._failed, self._inner = self._radius, None

    def _begin(self) -> None:
        """The next radius, from the best solution."""
        self._radius = self.best - (self.best - min(self._failed, self.best)) // 2
        part = self.sites.within(self._radius)
        self._inner = self._made(part, self._best_open, self._random, self.compiled)

    def _tired(self) -> bool:
        return self._radius < self.best and self._inner.steps >= self._patience

    def _take(self, chosen: np.ndarray) -> None:
        """A better solution; beyond it a radius as far again is tried."""
        before, self.best = self.best, self.sites.value(chosen)
        self.found_at, self._best_open, self._inner = self.steps, chosen, None
        if self._failed >= self.best - 1:
            self._failed = max(self.best - 2 * (before - self.best), self._least)

    def solution(self) -> np.ndarray:
        """[m] bool, the best solution, a copy."""
        return self._best_open.copy()

    def hear(self, solution: np.ndarray) -> None:
        """A solution from elsewhere; where it is better the search goes on from it."""
        if self.sites.value(solution.astype(bool)) < self.best:
            self._take(solution.astype(bool))
