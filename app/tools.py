"""Tools: the bases of what a toolbox makes for a core: a search, bounds, an exact search, a peeler.

What is abstract a class on one of them writes, everything else has a default that stands for "there is none".
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.graphs.graph import Graph

NEAR = 0.01  # gap of a near bound
ALWAYS = 1 << 62  # steps


class Search(ABC):
    """A local search from one seed: a function of the seed and the number of steps, however they are sliced.

    steps      made so far
    best       value of the best core solution
    found_at   the step at which it was found
    done       nothing better can exist

    even_steps      for how many more steps each costs about what the last ones did
    meeting_steps   the steps between two meetings, for a search that can use what others found; 0: none
    hears           whether it can go on from a solution that bounds have found
    plans           whether it fits its course to a time limit; planned: what it has made of that
    """

    steps: int
    best: int
    found_at: int
    done: bool
    even_steps: int = ALWAYS
    meeting_steps: int = 0
    hears: bool = False
    plans: bool = False
    planned: Sequence[int] = ()

    @abstractmethod
    def run(self, steps: int) -> None:
        """Make so many more steps, fewer only when done."""

    @abstractmethod
    def solution(self) -> np.ndarray:
        """The best core solution, a copy."""

    # ---- where it meets others (meeting_steps) -------------------------------------------------------------

    def join(self, searches: int) -> None:
        """Be one of so many searches, before the first step."""

    def news(self) -> np.ndarray:
        """[k, n] integers, what the others shall know."""
        return np.zeros((0, 0), dtype=np.int64)

    def meet(self, others: list[np.ndarray]) -> None:
        """The news of each of the others."""

    # ---- under a time limit (hears, plans) -----------------------------------------------------------------

    def hear(self, solution: np.ndarray) -> None:
        """A core solution that bounds have found."""

    def plan(self, planned: Sequence[int]) -> None:
        """Do again what another search has `planned`; empty: plan as `expect` leads to."""

    def expect(self, steps: int) -> None:
        """About so many steps are to come; told now and then."""


class Bounds(ABC):
    """Bounds on the value of every core solution, improved while there is time; each of them is valid.

    value           the best so far, rounded to what a solution can attain
    method          how it was found; "": no bound yet
    least_seconds   an estimate of the shortest call of `improve`, where it is long
    check_seconds   an estimate of what `verify` takes, where it is long
    closing         whether the work under way may prove a solution optimal, and gets time to
    near            the gap, over the bound, from which on it does
    gaining         whether the work under way may make the bound much better
    early           gaining bounds get their share at once: the searches plan a course over all of the time
                    that there is, and settle at its end alone
    leads           whether the bounds' work leads to the best solutions, or nearly
    """

    value: int
    method: str
    least_seconds: float = 0.0
    check_seconds: float = 0.0
    closing: bool = False
    near: float = NEAR
    gaining: bool = False
    early: bool = False
    leads: bool = False

    @abstractmethod
    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, knowing that a core solution of value `best` exists, and maybe one.

        solution   of value at best `best`; where None, one given earlier stands
        returns    True while there is more to try
        """

    def expect(self, seconds: float) -> None:
        """Before the first call: the time limit of the run, in which what takes too long is not begun."""

    def until(self, clock: float) -> None:
        """After `expect`: when, by time.perf_counter(), all has to be over."""

    def allow(self, seconds: float) -> None:
        """Before the first call, where steps decide and no time limit: what all calls may take, or more."""

    def optimum(self) -> np.ndarray | None:
        """An optimal core solution, where the bounds' own search has found one."""
        return None

    def pieces(self) -> np.ndarray | None:
        """A core solution better than `best` of the last call of `improve`, put together from the best that
        is known of each part of the core; None: there is none.

        The same array until there is a better one.
        """
        return None

    def close(self) -> None:
        """No more calls of `improve` will come. What is known stays."""

    def proof(self) -> Any:
        """What the toolbox proves the bound from (`Toolbox.prove`), or as much of it as has a witness.

        It says by `checked` whether that is all of it: a finished search leaves nothing to check. None: the
        method leaves no witness at all.
        """
        return None


class Tree(ABC):
    """An exact search of the core that all ranks of a group do together, each its part.

    method             how its bounds are found
    more               whether there is more to search
    value              no core solution is better; the same on all ranks after `take`
    best               value of the best core solution that this rank knows
    left               roots of the tree that are open, and all
    units              what those are, for the log
    begin_seconds      an estimate of what `begin` takes
    forecast_seconds   and of what a call of `left_seconds` takes, about
    least_seconds      an estimate of the shortest call of `run`, where it is long
    closing            whether searches that have settled leave most of the time to it
    """

    method: str
    more: bool
    value: int
    best: int
    left: tuple[int, int]
    units: str = "roots"
    begin_seconds: float = 0.0
    forecast_seconds: float = 0.0
    least_seconds: float = 0.0
    closing: bool = False

    @abstractmethod
    def begin(self, best: int) -> None:
        """Make ready, knowing that a core solution of value `best` exists. Ranks: all, with the same."""

    @abstractmethod
    def run(self, seconds: float) -> None:
        """This rank's part, for about so long."""

    @abstractmethod
    def told(self) -> np.ndarray:
        """[k] int64, as many on all ranks: what `take` wants the element-wise maximum over ranks of."""

    @abstractmethod
    def take(self, words: np.ndarray, best: int) -> None:
        """What all ranks have told, and the value of the best core solution that any of them knows."""

    @abstractmethod
    def solution(self) -> np.ndarray | None:
        """A core solution of value `best` that this rank's part has found; None where it has none."""

    def left_seconds(self) -> float:
        """About how long all ranks together will need; infinite where none can tell. Ranks: all call."""
        return math.inf

    def hurry(self, wanted: bool) -> None:
        """Whether the end is in sight: nothing that is begun is put off then."""


class Peeler(ABC):
    """A core solution in the making: a policy chooses nodes of what is left, reductions do the rest."""

    @property
    @abstractmethod
    def rest(self) -> Graph | None:
        """What is left to decide, renumbered; None when the solution is complete."""

    @abstractmethod
    def take(self, nodes: np.ndarray) -> None:
        """Choose nodes of `rest` [k], best first; what follows from that is decided too."""

    @abstractmethod
    def solution(self) -> np.ndarray:
        """A complete core solution: what is left to decide is decided greedily."""
