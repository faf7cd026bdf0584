"""Upper bounds on maximum coverage that improve in slices of time: prices, and branch and cut."""

import math
import time

import numpy as np

from app.bounds.coverage.exact import ExactCoverage, fits
from app.bounds.coverage.prices import PriceBound, priced, unit_of
from app.bounds.coverage.program import CoverProgram
from app.graphs.family import Family
from app.toolbox import Bounds

PRICES, NOTHING = "prices of elements", "all elements"
STEPS = 20  # of the first-order method, between two looks
FIRST_STEPS = 5  # as many take as long as the first prices, which are no steps of it
CLOSE, GAINS = 1e-5, 0.5  # of the program's optimum: nearer prices are not improved; gap that a restart wants
LONGEST, MOST = 0.36, 20_000  # steps without a restart, as a share of all; and all
FIRST_SHARE, SHARE = 0.15, 0.1  # of a time limit, for prices at first; of all time, for them beside the tree
TURN = 0.05  # s: of branch and cut
ENTRY_SECONDS = 2e-8  # of a look, for each entry and step
NEAR = 0.01


class CoverageBounds(Bounds):
    """Bounds of one family, ever better ones.

    At first prices by a first-order method; in the time that `expect` or `allow` name there is branch and cut
    beside them, whose bound stands where it is lower.

    best   the best PriceBound so far
    """

    near = NEAR

    def __init__(self, family: Family) -> None:
        self.family = family
        self.best: PriceBound | None = None
        self._one, self._fits = unit_of(family), fits(family)
        self._program: CoverProgram | None = None
        self._exact: ExactCoverage | None = None
        self._seconds = 0.0
        self._made, self._gap = 0, math.inf  # steps of all; gap over the optimum at the last restart
        self._converged = False
        self._priced = self._searched = 0.0
        self._known = 0
        self.check_seconds = 5 * ENTRY_SECONDS * family.entries

    @property
    def value(self) -> int:
        """The best bound so far, 0 before the first."""
        if self.best is None:
            return 0
        return self.best.upper if self.checked else self._exact.upper

    @property
    def method(self) -> str:
        """How it was found."""
        if self.best is None:
            return ""
        return self.best.method if self.checked else self._exact.method

    @property
    def checked(self) -> bool:
        """False where the bound rests on branch and cut, which leaves no witness."""
        exact = self._exact
        return exact is None or exact.upper is None or exact.upper >= self.best.upper

    @property
    def least_seconds(self) -> float:
        """An estimate of the shortest call of `improve`."""
        return ENTRY_SECONDS * (STEPS if self.best else FIRST_STEPS) * self.family.entries

    @property
    def closing(self) -> bool:
        """Whether branch and cut is at work."""
        return self._exact is not None and self._exact.upper is not None and not self._exact.done

    @property
    def converging(self) -> bool:
        """Whether prices may still get better."""
        return not self._converged

    def expect(self, seconds: float) -> None:
        """The time limit of the run."""
        self._seconds = seconds

    def allow(self, seconds: float) -> None:
        """What all calls may take."""
        self._seconds = seconds

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, knowing a choice of value `best`; False when nothing better is to come."""
        end, self._known = time.perf_counter() + seconds, best
        if self._exact is not None and solution is not None:
            self._exact.offer(solution.astype(bool))
        while True:
            begun = time.perf_counter()
            if self._prices_turn():
                self._price(best)
                self._priced += time.perf_counter() - begun
            elif self._exact is None and self._seconds and self._fits:
                chosen = np.zeros(self.family.m, dtype=bool) if solution is None else solution.astype(bool)
                self._exact = ExactCoverage(self.family, chosen, self._seconds)
            elif self._exact is not None and not self._exact.done:
                self._exact.run(TURN)
                self._searched += time.perf_counter() - begun
            else:
                return False
            if self.value <= best:
                return False
            if time.perf_counter() >= end:
                return True

    def _prices_turn(self) -> bool:
        """Whether prices have had less than their share of the time."""
        if self._converged:
            return False
        if self.best is None or not self._seconds or not self._fits:
            return True
        if self._exact is None:
            return self._priced < FIRST_SHARE * self._seconds
        return self._exact.done or self._priced < SHARE * (self._priced + self._searched)

    def _price(self, best: int) -> None:
        """More steps, and the bounds that their points prove."""
        family, one = self.family, self._one
        if self.best is None:
            nothing = np.where(np.diff(family.element_ptr) > 0, 0, family.weight * one)
            first = [priced(family, nothing, one, NOTHING), priced(family, family.weight * one, one, PRICES)]
            self.best = min(first, key=lambda each: each.upper)
            self._converged = not family.entries or self.best.upper <= best
            return
        if self._program is None:
            self._program = CoverProgram(family)
        program = self._program
        program.run(STEPS)
        self._made += STEPS
        x, p = program.average()
        for prices in (p, program.p):
            whole = np.floor(prices * (program.mean * one)).astype(np.int64)
            found = priced(family, np.clip(whole, 0, family.weight * one), one, PRICES)
            if found.upper < self.best.upper:
                self.best = found
        gap = program.dual(p) - program.held(x)
        if gap <= GAINS * self._gap or program.steps >= LONGEST * self._made:
            self._gap = gap
            program.restart()
        least = program.held(x) * program.mean  # the program's optimum is no less
        near = self.best.upper <= math.floor(least) or gap <= CLOSE * max(least / program.mean, 1.0)
        self._converged = near or self._made >= MOST

    def optimum(self) -> np.ndarray | None:
        """[m] bool, a choice worth `value`, where branch and cut has found one."""
        exact = self._exact
        return exact.known if exact is not None and exact.solved and exact.value == self.value else None

    def pieces(self) -> np.ndarray | None:
        """[m] bool, a choice of branch and cut that is worth more than the caller's."""
        exact = self._exact
        return exact.known if exact is not None and exact.value > self._known else None

    def close(self) -> None:
        """Work no more; what is known stays."""
        if self._exact is not None:
            self._exact.close()
