"""What searches share that anneal a set of nodes by what it leaves, in kernels or their plain twins."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from app.native.library import give_arrays, numbers_in
from app.toolbox import Search

LEAST_MEETING = 1 << 14  # steps between two meetings of several searches, or 4 for each node


class AnnealedSet(Search):
    """A search for a set of least weight; a function of core, start, seed, what it hears, and steps made.

    record           the struct that kernels are given; `arrays`, `numbers`, `constants` its fields, which are
                     attributes of the search by the same names
    kernels          that run so many steps, and that go on from the best set
    twin             the module of both in Python: `run(search, steps)` and `go_back(search)`
    best_left        [n] uint8, what the best set leaves     best   what that set weighs
    found_at, steps  when it was found, steps so far         moved_size   -1: the best set came from elsewhere
    """

    record: ClassVar[Any]
    arrays: ClassVar[tuple[str, ...]]
    numbers: ClassVar[tuple[str, ...]]
    constants: ClassVar[tuple[str, ...]]
    kernels: ClassVar[tuple[Any, Any]]
    twin: ClassVar[Any]
    compiled: bool
    best_left: np.ndarray
    moved_size: int
    n: int

    def _begin(self, weights: np.ndarray, least: int) -> None:
        """Give the kernels the addresses of the arrays, and what never changes; go on from the best set.

        weights   [n] int64 of the nodes     least   no set weighs less
        """
        self._weights, self._least = weights, least
        self._record = self.record(self.n)
        for name in self.constants:
            setattr(self._record, name, getattr(self, name))
        give_arrays(self, self._record, self.arrays)
        if self.compiled:
            self._call(self.kernels[1])
        else:
            self.twin.go_back(self)

    def _call(self, kernel: Any, *arguments: int) -> None:
        """Run a kernel on the state."""
        with numbers_in(self, self._record, (*self.numbers, "random")):
            kernel(self._record, *arguments)

    @property
    @abstractmethod
    def done(self) -> bool:
        """True when no set can weigh less."""

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
