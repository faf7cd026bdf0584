"""Lower bounds that improve in slices of time, a step of each part of a core by turns: their sum."""

import time
from abc import abstractmethod
from collections.abc import Callable

import numpy as np

from app.bounds.cycles.part import PACKING, TREE, PartBounds
from app.bounds.cycles.witness import TreeProof
from app.toolbox import Bounds

NEAR = 0.25  # gap from which on a proof gets time
ROW_SECONDS = 2e-5  # of a check, for each node and arc of the core


class BoundsOfParts(Bounds):
    """Bounds of a core: those of its parts together, small ones first.

    first_seconds   of the first steps of all parts, for each node and arc, about
    """

    near = NEAR
    first_seconds: float

    def __init__(self, parts: list[PartBounds], size: int) -> None:
        """size   nodes and arcs of the core"""
        self._parts, self._left, self._size = parts, list(parts), size
        self._turn, self._best = 0, 0
        self._solution: np.ndarray | None = None
        self._pieces: tuple[int, np.ndarray | None] = 0, None
        self.check_seconds = ROW_SECONDS * size

    @abstractmethod
    def _within(self, solution: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Of a solution of the core, what it is within a part of some nodes [k]."""

    @abstractmethod
    def _joined(self) -> np.ndarray:
        """The solution of the core that is the best one known in each part."""

    @property
    def value(self) -> int:
        """The sum over the parts."""
        return sum(part.lower for part in self._parts)

    @property
    def method(self) -> str:
        """How it was found; "": not yet."""
        named = {part.method for part in self._parts}
        if "" in named:
            return ""
        return (
            " + ".join(sorted(named, key=lambda name: (name != TREE, name == PACKING, name))) or "no cycles"
        )

    @property
    def least_seconds(self) -> float:
        """An estimate of the shortest call of `improve`: what the first takes, until it has been made."""
        begun = not self._parts or self._parts[-1].method  # the largest part is the last
        return 0.0 if begun else self.first_seconds * self._size

    @property
    def closing(self) -> bool:
        """Whether a linear program, or branch and bound, is at work."""
        return any(part.searching for part in self._left)

    @property
    def gaining(self) -> bool:
        """Whether it is."""
        return self.closing

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, a step of each part by turns."""
        self._best = best
        if solution is not None and solution is not self._solution:
            self._solution, within = solution, self._within(solution)
            for part in self._parts:
                part.offer(within(part.nodes))
        end = time.perf_counter() + seconds
        while self._left:
            if self.value >= best and self.method:
                return False
            self._turn %= len(self._left)
            part = self._left[self._turn]
            part.step()
            if part.done:
                del self._left[self._turn]
            else:
                self._turn += 1
            if time.perf_counter() >= end:
                return bool(self._left)
        return False

    def until(self, clock: float) -> None:
        """When all has to be over."""
        for part in self._parts:
            part.end = clock

    def _known(self) -> int | None:
        """What the best solutions known of all parts cost."""
        if any(part.solution is None for part in self._parts):
            return None
        return sum(part.best for part in self._parts)

    def optimum(self) -> np.ndarray | None:
        """The best solutions of all parts, where all are proved."""
        return self.pieces() if self._known() == self.value else None

    def pieces(self) -> np.ndarray | None:
        """The best solutions of all parts, where they cost less than the caller's best."""
        cost = self._known()
        if cost is None or cost >= self._best:
            return None
        if self._pieces[0] != cost or self._pieces[1] is None:
            self._pieces = cost, self._joined()
        return self._pieces[1]

    def witness(self) -> tuple[TreeProof, ...]:
        """What proves the bound."""
        return tuple(part.witness() for part in self._parts)
