"""What reducers share that look at a node again when what is around it has changed."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

LOOK_EVERY = 1000  # steps between two calls of `look`


class Stop(Exception):
    """The time is up."""


class Kernel(NamedTuple):
    """What reductions leave.

    core    as a graph of the problem's kind     nodes   [k] int64, what its nodes are called
    paid    what is taken in any case weighs
    """

    core: Any
    nodes: np.ndarray
    paid: int


class WokenReducer(ABC):
    """Rules on a graph that changes.

    near     of each node that is left its neighbours, and of some problems what leads there
    log      words, see log.py of the problem     counts   what rules have done, by name
    steps    nodes looked at so far               paid     what is taken in any case weighs
    """

    def __init__(self, near: dict[int, Any], rules: tuple[str, ...]) -> None:
        """rules: the names that `counts` has."""
        self.near, self.counts = near, dict.fromkeys(rules, 0)
        self.log: list[int] = []
        self.steps = self.paid = 0
        self._queue: deque[int] = deque()
        self._queued: set[int] = set()

    def reduce(self, look: Callable[[], Any], most: int = 0) -> None:
        """All rules, as long as they gain; look, most as Toolbox.reduce."""
        self._look, self._end = look, most
        self._wake(self.near)
        try:
            self._rules()
        except Stop:
            return

    @abstractmethod
    def _rules(self) -> None:
        """All rules; all nodes are to be looked at."""

    @abstractmethod
    def _look_at(self, v: int) -> None:
        """The rules of one node that is left."""

    def _nodes(self) -> None:
        """What the neighbours of nodes tell, until that is nothing."""
        while self._queue:
            self._step()
            node = self._queue.popleft()
            self._queued.discard(node)
            if node in self.near:
                self._look_at(node)

    def _step(self, count: int = 1) -> None:
        """So many nodes are looked at."""
        before, self.steps = self.steps, self.steps + count
        if self._end and self.steps >= self._end:
            raise Stop
        if before // LOOK_EVERY != self.steps // LOOK_EVERY and self._look():
            raise Stop

    def _wake(self, nodes: Iterable[int]) -> None:
        """Look at nodes again."""
        for node in nodes:
            if node not in self._queued:
                self._queued.add(node)
                self._queue.append(node)

    @property
    def used(self) -> str:
        """What rules have done, for the log."""
        return ", ".join(f"{name} {count}" for name, count in self.counts.items() if count) or "none applies"
