"""Bounds of a core, which improve in slices of time, as the solver wants them."""

from typing import Any

import numpy as np

from app.bounds.sliced import SlicedBounds
from app.toolbox import Bounds


class InnerBounds(Bounds):
    """The bounds of a core as they are; a subclass says what of a whole graph is otherwise.

    inner   of the core
    """

    def __init__(self, inner: Bounds) -> None:
        self.inner, self.near = inner, inner.near

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long."""
        return self.inner.improve(seconds, best, solution)

    def expect(self, seconds: float) -> None:
        """The time limit of the run."""
        self.inner.expect(seconds)

    def until(self, clock: float) -> None:
        """When all has to be over."""
        self.inner.until(clock)

    def allow(self, seconds: float) -> None:
        """What all calls may take, where there is no time limit."""
        self.inner.allow(seconds)

    def close(self) -> None:
        """Work no more; what is known stays."""
        self.inner.close()

    @property
    def value(self) -> int:
        """The best bound so far."""
        return self.inner.value

    @property
    def method(self) -> str:
        """How it was found."""
        return self.inner.method

    @property
    def least_seconds(self) -> float:
        """An estimate of the shortest call of `improve`."""
        return self.inner.least_seconds

    @property
    def check_seconds(self) -> float:
        """An estimate of what a check takes, where it is long."""
        return self.inner.check_seconds

    @property
    def closing(self) -> bool:
        """Whether the work under way may prove the best solution optimal."""
        return self.inner.closing

    @property
    def gaining(self) -> bool:
        """Whether it may make the bound much better."""
        return self.inner.gaining

    def optimum(self) -> np.ndarray | None:
        """A solution of the core that is as good as the bound."""
        return self.inner.optimum()

    def pieces(self) -> np.ndarray | None:
        """A better solution of the core than the best known."""
        return self.inner.pieces()


class LoggedBounds(InnerBounds):
    """Bounds of a core, and the log of the reductions, which prove those of a graph together.

    log       [words] int64, empty: nothing was reduced
    decided   what it is called without reductions where nothing is left to bound; "": there is
    """

    def __init__(self, inner: Bounds, reducer: Any, decided: str) -> None:
        """reducer   has the log; None: there are no reductions"""
        super().__init__(inner)
        self.log = np.array([] if reducer is None else reducer.log, dtype=np.int64)
        self.decided = decided

    @property
    def method(self) -> str:
        """How it was found, reductions included."""
        if self.decided:
            return "reductions" if len(self.log) else self.decided
        reduced = self.inner.method and len(self.log)
        return f"reductions, {self.inner.method}" if reduced else self.inner.method


class CoreBounds(InnerBounds):
    """Around SlicedBounds with their certificate and their value under a side's name.

    inner     CoverBounds, CutBounds, TourBounds
    side      "lower" or "upper"
    """

    def __init__(self, inner: SlicedBounds, side: str) -> None:
        self.inner, self.side = inner, side

    @property
    def value(self) -> int:
        """The best bound so far."""
        return int(getattr(self.inner, self.side))

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so many seconds, knowing a solution's value; True while there is more to try."""
        return self.inner.improve(seconds, best)

    @property
    def leads(self) -> bool:
        """Whether what works on the bound now leads to the best solutions."""
        return self.inner.leads

    def optimum(self) -> np.ndarray | None:
        """An optimal solution, where the bounds' own search has finished with one."""
        return self.inner.optimum

    def proof(self) -> Any:
        """The bound's certificate."""
        return self.inner.certificate()
