"""SlicedBounds: the base of bounds that get better in slices of time, each with a certificate."""

import time
from abc import ABC, abstractmethod

import numpy as np

from app.bounds.certificate import Proof

RECENT = 0.5  # of the longest step, that it counts for less after each later one


class SlicedBounds(ABC):
    """A bound of one graph or metric that is improved while there is time.

    The solver has it as Bounds of a core (app/tools.py, app/search/core_bounds.py).

    method          how it was found; "": no bound yet
    optimum         a solution that is as good as the bound, once the bound's own search has found one
    least_seconds   an estimate of the shortest call of `improve`, where it is long
    check_seconds   an estimate of what checking the certificate takes, where it is long
    closing         whether the work under way may end with a proof that the best solution is optimal
    gaining         whether it may make the bound much better
    leads           whether it leads to the best solutions, or nearly
    """

    method: str
    optimum: np.ndarray | None = None
    least_seconds: float = 0.0
    check_seconds: float = 0.0
    closing: bool = False
    gaining: bool = False
    leads: bool = False

    @abstractmethod
    def improve(self, seconds: float, known: int | None = None) -> bool:
        """Work for about so many seconds; True where there is more to try.

        known   the value of the caller's best solution: a bound that meets it ends the work
        """

    @abstractmethod
    def certificate(self) -> Proof:
        """The bound with what proves it."""

    def expect(self, seconds: float) -> None:
        """Before the first call: the time limit of the run, in which what takes too long is not begun."""

    def until(self, clock: float) -> None:
        """After `expect`: when, by time.perf_counter(), all has to be over."""

    def allow(self, seconds: float) -> None:
        """Before the first call, where there is no time limit: what all calls may take, or more."""

    def close(self) -> None:
        """No more calls of `improve` will come. What is known stays."""

    def pieces(self) -> np.ndarray | None:
        """A solution better than the caller's, made of the best of each part; None: there is none."""
        return None


class SteppedBounds(SlicedBounds):
    """One that is made of steps, a function of these and of what it was told: only `improve` sees the clock.

    lower     the best bound so far
    steps     made so far
    done      nothing is left to try
    longest   seconds of the longest step of late
    """

    lower: int
    steps: int
    done: bool
    longest: float = 0.0

    @abstractmethod
    def step(self, upper: int | None) -> None:
        """Make a step, knowing a solution of value `upper`, if any."""

    def waits(self, upper: int | None) -> bool:
        """Whether there is no step to make until a solution is known."""
        return False

    def run(self, steps: int, upper: int | None = None) -> bool:
        """Make up to `steps` steps, until the bound reaches `upper`, a known value; True if it grew."""
        before = self.lower
        for _ in range(steps):
            if self.done or self._reached(upper) or self.waits(upper):
                break
            self.step(upper)
        return self.lower > before

    def improve(self, seconds: float, upper: int | None = None) -> bool:
        """`run` for about so many seconds, at least one step; True where there is more to try."""
        end = time.monotonic() + seconds
        while not (self.done or self._reached(upper)):
            if self.waits(upper):
                return True
            begun = time.monotonic()
            self.step(upper)
            now = time.monotonic()
            self.longest = max(now - begun, RECENT * self.longest)
            if now >= end:
                return not self.done
        return False

    def _reached(self, upper: int | None) -> bool:
        """Whether a bound was found that no other can beat: one of 0 is none before the first step."""
        return upper is not None and self.method != "" and self.lower >= upper
