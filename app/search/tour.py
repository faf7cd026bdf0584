"""Iterated local search on tours: Lin-Kernighan moves with neighbour lists, kicks that change one stretch.

Sources  Lin and Kernighan 1973 (gain criterion, chains of exchanges); Martin, Otto and Felten 1991 (kicks by
         a double bridge); Johnson and McGeoch 1997 (neighbour lists, don't-look bits, segment lengths)
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.graphs.metric import Metric
from app.native import tour as native
from app.search.tour_baselines import greedy_edge, space_filling_curve
from app.search.tour_plain import PlainSearch

CHAIN = 3  # rounds of a chain, each of up to three exchanges
LONGEST_SEGMENT = 50  # cities in a segment of a kick
ROOM = 1 << 14  # reversals of one repair; a repair that would need more ends early
SLICE = 1000  # kicks, or cities of the first descent, in one call of a kernel
GREEDY_POINTS = 200_000  # above this a search starts from a space-filling curve


class TourSearch:
    """A tour that gets shorter: one step is one kick, its repair, and the return where the tour got longer.

    Step 0, the first descent, comes with the first call of `run`. A result depends on (metric, seed, start,
    steps): how calls of `run` are cut, and whether the kernels are there, changes nothing.

    start       [n] order, or None: a greedy-edge tour
    neighbours  candidates per city
    steps       kicks made        best      length of the tour
    found_at    the step at which the tour got this length
    """

    def __init__(
        self,
        metric: Metric,
        seed: int,
        start: np.ndarray | None = None,
        neighbours: int = 10,
        compiled: bool = True,
    ) -> None:
        self.metric = metric
        given = None if start is None else np.array(start, dtype=np.int32)
        if given is not None and not np.array_equal(np.sort(given), np.arange(metric.n)):
            raise ValueError(f"the start is no tour of {metric.name}: not every city occurs once")
        given = self._distinct(given)
        metric = self.metric
        order = self._fixed = _start(metric) if given is None else given
        self.done = metric.n <= 3
        self._descended = self.done
        if self.done:
            return
        near = np.ascontiguousarray(metric.neighbours(neighbours))
        cost = metric.between(np.arange(metric.n)[:, None], near).astype(np.int32, order="C")
        sizes = CHAIN, min(LONGEST_SEGMENT, (metric.n - 1) // 3), ROOM
        kind = native.NativeSearch if compiled and native.available() else PlainSearch
        self._search = kind(metric, near, cost, order, sizes)
        self._search.struct.random = seed & (1 << 64) - 1

    @property
    def steps(self) -> int:
        """Kicks made."""
        return 0 if self.done else int(self._search.struct.steps)

    @property
    def best(self) -> int:
        """The length of the tour."""
        return self.metric.length(self._fixed) if self.done else int(self._search.struct.length)

    @property
    def found_at(self) -> int:
        """The step at which the tour got its length."""
        return 0 if self.done else int(self._search.struct.found_at)

    def run(self, steps: int) -> None:
        """Make `steps` kicks; the first call descends first, and `run(0)` only does that."""
        if not self._descended:
            self._descended = True
            _repeat(lambda: self._search.descend(SLICE))
        while steps > 0 and not self.done:
            self._search.run(min(steps, SLICE))
            steps -= SLICE

    def solution(self) -> np.ndarray:
        """[n] int32, the tour from city 0 on, in the direction whose second city is the smaller."""
        order = self._fixed if self.done else self._search.order
        order = self._with_equals(order)
        order = np.roll(order, -int(np.argmax(order == 0))).astype(np.int32)
        if len(order) > 2 and order[1] > order[-1]:
            order[1:] = order[:0:-1].copy()
        return order

    def _distinct(self, order: np.ndarray | None) -> np.ndarray | None:
        """The tour through one of all equal points, which the search is about; others stand beside them."""
        self._places = self.metric.places
        if self._places is None:
            return order
        firsts, place = self._places
        self.metric = self.metric.restrict(firsts)
        if order is None:
            return None
        passed = place[order]
        return passed[np.sort(np.unique(passed, return_index=True)[1])].astype(np.int32)

    def _with_equals(self, order: np.ndarray) -> np.ndarray:
        """The tour of all cities: equal points one after the other, which is as long."""
        if self._places is None:
            return order
        place = self._places[1]
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return np.argsort(rank[place], kind="stable").astype(np.int32)

    def state(self) -> dict[str, Any]:
        """All that `restore` needs to go on as if nothing had happened."""
        if self.done:
            return {"order": self._fixed.copy()}
        struct = self._search.struct
        return {
            "order": np.array(self._search.order, dtype=np.int32),
            "descended": self._descended,
            "length": int(struct.length),
            "steps": int(struct.steps),
            "found_at": int(struct.found_at),
            "random": int(struct.random),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned, on the same metric."""
        if self.done:
            return
        self._search.order[:] = state["order"]
        self._search.set_places()
        self._descended = state["descended"]
        for name in ("length", "steps", "found_at", "random"):
            setattr(self._search.struct, name, state[name])
        if self._descended:
            self._search.forget_queue()
        else:
            self._search.fill_queue()


def _start(metric: Metric) -> np.ndarray:
    if metric.n > GREEDY_POINTS and metric.points is not None:
        return space_filling_curve(metric)[0]
    return greedy_edge(metric)[0]


def _repeat(work: Callable[[], bool]) -> None:
    while work():
        pass
