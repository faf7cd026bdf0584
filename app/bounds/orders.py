"""Bounds of orders part by part: the best order known of each part, and the order of all together."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from app.graphs.orders import order_within
from app.toolbox import Bounds


class OrderPart(ABC):
    """A part of a core.

    nodes   [k] ascending, of the core
    order   [k] the best order known, in numbers of the part, worth `upper`; None: none is known
    lower   no order is worth less
    """

    nodes: np.ndarray
    order: np.ndarray | None
    upper: float
    lower: int

    @abstractmethod
    def worth(self, order: np.ndarray) -> int:
        """What an order [k] of the part is worth."""

    def hear(self, order: np.ndarray) -> None:
        """An order, which stands where it is better."""
        if (worth := self.worth(order)) < self.upper:
            self.upper, self.order = worth, order


class OrderBounds(Bounds):
    """Bounds of a core's orders by its parts: clocks, what the caller knows, the parts' orders joined.

    value    in units of the core's values, 0 before the first call
    method   how that was found, "" before the first call
    """

    near = math.inf  # a bound of one less is near, however small they are

    def __init__(self) -> None:
        self.value, self.method = 0, ""
        self._parts: Sequence[OrderPart] = []
        self._known = 1 << 62  # value of the caller's best order
        self._heard: np.ndarray | None = None
        self._end = math.inf
        self._offered: tuple[float, np.ndarray | None] = math.inf, None

    def until(self, clock: float) -> None:
        """When all has to be over."""
        self._end = clock

    def allow(self, seconds: float) -> None:
        """What all calls may take."""
        self._end = time.perf_counter() + seconds

    def pieces(self) -> np.ndarray | None:
        """[n] int64, an order better than the caller's; None: there is none."""
        order = self._together()
        return order if self._offered[0] < self._known else None

    def optimum(self) -> np.ndarray | None:
        """[n] int64, an order that is worth the bound; None while there is none."""
        order = self._together()
        return order if self._offered[0] <= self.value else None

    def _together(self) -> np.ndarray | None:
        """[n] int64, an order made of the best of all parts, and what it is worth in `_offered`."""
        worth = self._upper()
        if worth < min(self._known, self._offered[0]):
            self._offered = worth, self._joined()
        return self._offered[1]

    def _hear(self, best: int, solution: np.ndarray | None) -> None:
        """What the caller knows; an order counts once."""
        self._known = min(self._known, best)
        if solution is None or solution is self._heard:
            return
        self._heard = solution
        for part in self._parts:
            part.hear(order_within(solution, part.nodes))

    @abstractmethod
    def _upper(self) -> float:
        """What the best orders of all parts are worth together; infinite where some part has none."""

    @abstractmethod
    def _joined(self) -> np.ndarray:
        """[n] int64, an order in which all parts stand as in their best ones."""
