"""Local search for maximum coverage: exchanges of chosen sets, with the gain of every set kept.

The score of a set outside is what it would add to the value, that of a chosen one what its leaving would
take. In a step one set leaves, now and then two, each the one of least loss for its cost among some that are
drawn (best from multiple selection, Cai 2015), a quarter as many as the start has; then the sets of largest
gain come, as long as the budget has room. What has left may not come back for a drawn number of steps (tabu,
Glover 1989). An element that is newly held, or no longer, changes the scores of its sets; one that a single
chosen set holds is known by the numbers of its sets xored, so that no list of them is kept.

Where costs differ half of the steps go by gains and half by gains for costs. After STALE steps without a
better choice the search goes on from the best. Annealing of random exchanges was no better at equal time.
"""

import ctypes

import numpy as np

from app.graphs.family import Family
from app.native.library import address, function
from app.native.state import KernelState
from app.rng import SplitMix
from app.search.coverage import plain
from app.search.mask_search import MaskSearch

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GIVEN = ("set_ptr", "element_ptr", "elements", "sets", "weight", "cost")
ARRAYS = (
    "chosen", "best_chosen", "times", "who", "score", "free_at", "inside", "place",
)  # fmt: skip
NUMBERS = (
    "budget", "size", "spent", "value", "best", "steps", "found_at", "unsaved", "sample", "tenure",
)  # fmt: skip
SHARE, LEAST_SAMPLE = 4, 8  # of the chosen sets, one in so many is drawn, and the best of these leaves
TENURE = 10  # steps for which one may be kept out, at most
STALE = 20_000
LEAST_MEETING = 4096


class _Search(ctypes.Structure):
    _fields_ = (
        ("m", Long),
        ("n", Long),
        *((name, Pointer) for name in (*GIVEN, *ARRAYS)),
        *((name, Long) for name in NUMBERS),
        ("random", ctypes.c_uint64),
    )


S = ctypes.POINTER(_Search)
EXCHANGE = function("lk_coverage_exchange", S, Long)
LOAD = function("lk_coverage_load", S, Pointer, Long)


def available() -> bool:
    """True where the library was built."""
    return None not in (EXCHANGE, LOAD)


class CoverageSearch(KernelState, MaskSearch):
    """A search for sets of most weight; a function of family, start, seed, what it hears, and steps made.

    start      [m] bool, sets that the budget pays for
    seed       an integer, taken modulo 2^64
    compiled   False: the same without the compiled kernels

    steps      exchanges made so far
    best       value of the best choice, found_at the step it was found in
    done       nothing can be worth more: all elements are held

    times, who   [n] int32, by how many chosen sets an element is held; their numbers xored
    score        [m] int64, see above       free_at   [m] int64, the step from which on a set may come
    inside, place   [m] int32, the chosen sets as a list; places in it
    """

    least_meeting = LEAST_MEETING
    numbers = (*NUMBERS, "random")

    def __init__(self, family: Family, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        m, n = family.m, family.n
        self.family, self.compiled = family, compiled and available()
        for name in ("set_ptr", "element_ptr", "elements", "sets", "weight"):
            setattr(self, name, np.ascontiguousarray(getattr(family, name)))
        self.cost = None if family.uniform else np.ascontiguousarray(family.cost)
        self.chosen, self.best_chosen = (np.zeros(m, dtype=np.uint8) for _ in range(2))
        self.times, self.who = (np.zeros(n, dtype=np.int32) for _ in range(2))
        self.score, self.free_at = (np.zeros(m, dtype=np.int64) for _ in range(2))
        self.inside, self.place = (np.zeros(m, dtype=np.int32) for _ in range(2))
        self.budget, self.tenure = family.budget, TENURE
        self.sample = max(int(np.count_nonzero(start)) // SHARE, LEAST_SAMPLE)
        self.size = self.spent = self.value = self.steps = self.found_at = self.unsaved = 0
        self.random = SplitMix(seed).state
        self._most = int(family.weight[np.diff(family.element_ptr) > 0].sum())
        self._turn = STALE  # the step at which the search looks whether it has stalled
        self.best_chosen[:] = start
        self._hold(_Search(m, n), (*GIVEN, *ARRAYS))
        self.best = family.value(start)
        self._load()

    @property
    def done(self) -> bool:
        """Whether nothing can be worth more."""
        return self.best >= self._most

    def run(self, steps: int) -> None:
        """So many exchanges, fewer only when done."""
        while steps > 0 and not self.done:
            part = min(steps, self._turn - self.steps)
            if self.compiled:
                self._call(EXCHANGE, part)
            else:
                plain.run(self, part)
            steps -= part
            if self.steps == self._turn:
                if self.steps - self.found_at >= STALE:
                    self._load()
                self._turn += STALE

    def _load(self) -> None:
        """Go on from the best choice."""
        chosen = np.flatnonzero(self.best_chosen).astype(np.int32)
        if self.compiled:
            self._call(LOAD, address(chosen), len(chosen))
        else:
            plain.load(self, chosen.tolist())
        self.unsaved = 0

    def solution(self) -> np.ndarray:
        """[m] bool, the best choice, a copy."""
        return self.best_chosen.astype(bool)

    # ---- what others found ---------------------------------------------------------------------------------

    def hear(self, solution: np.ndarray) -> None:
        """A choice from elsewhere; where it is better the search goes on from it."""
        value = self.family.value(solution)
        if value > self.best:
            self.best, self.found_at = value, self.steps
            self.best_chosen[:] = solution
            self._load()
