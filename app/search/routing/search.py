"""Search for short routes: annealing by ruin and recreate.

A course cools from a temperature of a part of a leg to a hundredth of that. Under a time limit the first
course takes as long as there is time; else, and afterwards, each takes twice as many steps as the one before,
and begins with the best routes.

Source   see app/search/routing/kernel.py
"""

from collections.abc import Sequence

import numpy as np

from app.graphs.deliveries import Deliveries
from app.graphs.metric import Metric
from app.graphs.routes import canonical_routes, length_of
from app.numerics.elementary import exp
from app.search.routing.kernel import DEGREE, Routing
from app.toolbox import Search

SWEEP = 1000  # steps: the unit of plans
LEVELS = 1024  # temperatures of a course
MARKS = 16  # parts of one, at the ends of which the rest is planned again
HOT, COLD = 0.5, 100.0  # the first temperature, in mean legs of the start; times the last one
FIRST, FIRST_EACH = 50, 0.05  # sweeps of a course that nothing is known of, and for each customer
LONG_EACH = 0.5  # sweeps of a course for each customer: a shorter one begins at less heat,
MILDEST = 0.1  # but not at less than this share
MOST_EACH = 300  # sweeps of a course for each customer, at most
PLAN_SHARE = 0.95  # of the steps expected
PROBE = 1000  # steps before the first plan
LEAST_MEETING = 5000  # steps between two meetings of several searches, or MEETING_EACH for each customer
MEETING_EACH = 10


class RoutingSearch(Search):
    """Routes that get shorter; a function of question, start, seed, what it hears, and steps made.

    start    [n] int64, routes (app/graphs/routes.py) that keep to all limits
    steps    strings taken out and inserted again so far
    best     the length of the best routes, found_at the step it was found in
    planned  sweeps that a course should still have at each of its marks, as a clock led to
    """

    hears = plans = True

    def __init__(
        self, metric: Metric, deliveries: Deliveries, start: np.ndarray, seed: int, compiled: bool = True
    ) -> None:
        self._depot, self._metric, self._both_ways = deliveries.depot, metric, deliveries.both_ways
        self._routing = Routing(metric, deliveries, start, seed, compiled)
        self.done = self._routing.count < 2 or self.best == 0
        routing = self._routing
        legs = routing.count + routing.n - routing.empties
        # Where legs are shorter than a unit of length, on the mean, none could get longer at less heat.
        self._hot = self._hottest = int(HOT * DEGREE * max(routing.length, legs)) // legs
        self.planned: list[int] = []
        self._given: Sequence[int] = ()
        self._expected = 0
        self._course = 0  # how many have ended
        self._begin(FIRST + int(FIRST_EACH * routing.count))

    # ---- steps -----------------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """So far."""
        return self._routing.steps

    @property
    def best(self) -> int:
        """The length of the best routes."""
        return self._routing.best_length

    @property
    def found_at(self) -> int:
        """The step it was found in."""
        return self._routing.found_at

    def run(self, steps: int) -> None:
        """Make so many more steps."""
        while steps > 0 and not self.done:
            if self._at == self._end:
                self._next_level()
            made = min(steps, self._end - self._at)
            self._routing.run(made)
            self._at += made
            steps -= made
            self._expected = max(self._expected - made, 0)

    def solution(self) -> np.ndarray:
        """[n] int64, the best routes."""
        return canonical_routes(self._routing.best_after(), self._depot, self._both_ways)

    # ---- courses ---------------------------------------------------------------------------------------

    def _begin(self, sweeps: int) -> None:
        """A course of so many sweeps; the first has PROBE steps more, before it is planned."""
        self._sweeps = self._left = sweeps
        self._level = -1
        self._part = 0  # steps between the last mark and the next
        self._at, self._end = 0, 0 if self._course else PROBE
        self._routing.temperature = self._hot

    def _next_level(self) -> None:
        """The next temperature, or the next course."""
        self._level += 1
        if self._level == LEVELS:
            self._course += 1
            self._routing.take(self._routing.best_after())
            self._begin(self._sweeps if self._course == 1 else min(2 * self._sweeps, self._most_sweeps))
            self._level = 0
        each = LEVELS // MARKS
        if self._level % each == 0:
            self._mark(self._level // each)
        inner = self._level % each
        self._at, self._end = 0, self._part * (inner + 1) // each - self._part * inner // each
        self._routing.temperature = max(int(self._hot * _cooling(self._level)), 1)
        if not self._end:
            self._next_level()

    def _mark(self, mark: int) -> None:
        """At a mark of a course: the steps until the next."""
        if self._course == 0:
            self._plan(mark)
        self._part = SWEEP * self._left // (MARKS - mark)
        self._left -= self._part // SWEEP

    def _plan(self, mark: int) -> None:
        """The sweeps that the first course shall still have."""
        planned = 0
        if self._given:
            planned = self._given[mark] if mark < len(self._given) else 0
        elif self._expected:
            planned = max(int(PLAN_SHARE * self._expected) // SWEEP, 1)
        if planned:
            self._left = min(planned, self._most_sweeps)
            self.planned.append(self._left)
        if mark == 0:
            share = self._left / (LONG_EACH * self._routing.count)
            self._hot = max(int(self._hottest * min(max(share, MILDEST), 1.0)), 1)

    @property
    def _most_sweeps(self) -> int:
        return FIRST + MOST_EACH * self._routing.count

    # ---- under a time limit ----------------------------------------------------------------------------

    def plan(self, planned: Sequence[int]) -> None:
        """Plan as another search has; empty: as `expect` leads to."""
        self._given = planned

    def expect(self, steps: int) -> None:
        """About so many steps are to come."""
        self._expected = steps

    def hear(self, solution: np.ndarray) -> None:
        """Routes from elsewhere, to go on from where they are better."""
        if length_of(self._metric, self._depot, solution) < self.best:
            self._routing.take(solution)

    # ---- several searches ------------------------------------------------------------------------------

    @property
    def meeting_steps(self) -> int:
        """Steps between two meetings of several searches."""
        return max(LEAST_MEETING, MEETING_EACH * self._routing.count)

    def news(self) -> np.ndarray:
        """[1, n] int32, the routes at hand."""
        return self._routing.after()[None, :].astype(np.int32)

    def meet(self, others: list[np.ndarray]) -> None:
        """The routes of the other searches: to go on from the best of them, where they are better than those
        at hand.
        """
        routing = self._routing
        values = [routing.value_of(each[0].astype(np.int64)) for each in others]
        best = min(values, default=routing.value)
        if best < routing.value:
            routing.take(others[values.index(best)][0].astype(np.int64))


def _cooling(level: int) -> float:
    """The temperature at a level, as a part of the first."""
    falls = np.array([-np.float64(level) / LEVELS * LOG_COLD])
    return float(exp(np, falls)[0])


LOG_COLD = 4.605170185988092  # the natural logarithm of COLD
