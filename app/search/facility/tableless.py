"""Local search for facilities without a table of all pairs: gains of interchanges are found when asked for.

A customer is served by the nearest open facility, at d1, and would be by the next, at d2. A place is looked
at: what opening it saves of customers to whom it is nearer than d2, and how much less closing a facility
costs then, so that the best facility to close for it is known, as in FacilitySearch, whose sums of all pairs
are never made. The first interchange that gains is made. Where a round of all places finds none, those near
one customer are looked at again after some moves that are drawn there; what ends worse than before is taken
back.

Source   Whitaker 1983; Resende and Werneck 2007 (loss, gain and extra); Hansen and Mladenovic 1997 (shaking):
         see app/search/facility/search.py
"""

from math import gcd
from typing import Any, ClassVar

import numpy as np

from app.native.state import KernelState
from app.rng import SplitMix
from app.search.facility import moves_plain
from app.search.mask_search import MaskSearch

FIXED = ("most", "slots", "counted", "strongest", "radius", "stride", "room", "never")
NUMBERS = (
    "size", "value", "base", "best", "steps", "found_at", "shaking", "shakes", "width", "at", "left", "noted",
)  # fmt: skip
STRONGEST, ROOM = 6, 4096  # moves of a shake, and that can be taken back, at most
LEAST_MEETING = 1 << 14
PATIENCE, ROUNDS = 4000, 8  # places that are looked at; of all places


class TablelessSearch(KernelState, MaskSearch):
    """A search for facilities of least cost; a function of sites, start, seed, what it hears, steps made.

    start      [m] bool, facilities of a feasible solution, at least one
    seed       an integer, taken modulo 2^64
    compiled   False: the same without the compiled kernels

    steps      places looked at, and drawn moves, so far
    best       value of the best solution, found_at the step it was found in
    done       nothing can cost less

    slot, inside   places of open facilities in a list; the list
    first, second, d1, d2   the nearest open facilities, and how far they are
    loss, extra             [slots] int64, see above
    journal                 moves since the local optimum that shakes return to

    A kind has its struct, kernels, arrays, and `plain`, the same moves without the library (moves_plain.py).
    """

    least_meeting = LEAST_MEETING
    arrays: ClassVar[tuple[str, ...]]
    fixed: ClassVar[tuple[str, ...]] = FIXED
    kernels: ClassVar[tuple[Any, Any]]  # those of `run` and `_load`
    plain: ClassVar[Any]

    def _make(self, sites: Any, start: np.ndarray, seed: int, compiled: bool) -> None:
        """What all kinds have; the arrays of a kind stand before this is called."""
        self.sites, self.compiled = sites, compiled and self.available()
        self.m, self.n = sites.m, sites.n
        self.most, self.radius, self.room, self.never = sites.most, sites.radius, ROOM, sites.never
        self.counted = int(not sites.opening.any())
        self.strongest = max(1, min(STRONGEST, self.slots))
        self.stride = _stride(self.m)
        self.journal = np.zeros(2 * ROOM, dtype=np.int32)
        self.size = self.value = self.base = self.steps = self.found_at = self.shakes = 0
        self.width = self.at = self.left = self.noted = self.shaking = self.best = 0
        self.random = SplitMix(seed).state
        self._least = -1
        if self.counted:
            self._least = 0 if self.radius else int(sites.cheapest.sum())

    def _begin(self, record: Any) -> None:
        """Give the kernels what they work on, and begin at the start."""
        self._hold(record, self.arrays, self.fixed)
        self._load()
        self.best = self.value

    @classmethod
    def available(cls) -> bool:
        """True where the library was built."""
        return None not in cls.kernels

    @staticmethod
    def patience(sites: Any) -> int:
        """Steps that may be in vain, in CenterSearch."""
        return min(PATIENCE, ROUNDS * sites.m)

    @property
    def done(self) -> bool:
        """Whether nothing can cost less."""
        return self.best <= self._least

    def run(self, steps: int) -> None:
        """So many steps, fewer only when done."""
        if steps <= 0 or self.done:
            return
        if self.compiled:
            self._call(self.kernels[0], steps)
        else:
            moves_plain.run(self, self.plain, steps)

    def _call(self, kernel: Any, *arguments: int) -> None:
        """Run a kernel on the state. Raises MemoryError."""
        failed = super()._call(kernel, *arguments)
        if failed and failed < 0:
            raise MemoryError

    def _load(self) -> None:
        """Go on from the best solution: a round of all places, but where a radius tells what is missing."""
        self.shaking = self.noted = self.at = 0
        self.width, self.left = self.m, 0 if self.radius else self.m
        if self.compiled:
            self._call(self.kernels[1])
        else:
            self.plain.load(self)
        self.base = self.value

    def solution(self) -> np.ndarray:
        """[m] bool, the best solution, a copy."""
        return self.best_open.astype(bool)

    def _set_best(self, solution: np.ndarray) -> None:
        self.best_open[:] = solution

    def hear(self, solution: np.ndarray) -> None:
        """A solution from elsewhere; where it is better the search goes on from it."""
        value = self.sites.value(solution)
        if value < self.best:
            self.best, self.found_at = value, self.steps
            self._set_best(solution)
            self._load()


def _stride(m: int) -> int:
    """A step by which a walk around m places, far from each other, meets all of them."""
    found = max(int(0.6180339887 * m), 1)
    while gcd(found, m) != 1:
        found += 1
    return found
