"""Cases of vehicle routes, told apart by how often they enter a set: at most 2k times, or 2k + 2 and more.

Of two customers that says whether the edge between them is used. Each case is bounded by ng-routes
(generation.py); the least bound of all holds for all routes.

Sources  Augerat et al. 1998 (cases by sets); Fukasawa et al. 2006 (branch and cut and price)
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from app.bounds.routing.edges import Limits
from app.bounds.routing.generation import Generation
from app.bounds.routing.proof import Split, Values

ROUNDS, WAIT = 10, 1  # of sets at a case, and those of little gain
FRACTIONAL = 0.05  # half of x(delta) this far from whole numbers can tell two cases apart
PAIRS, SETS = 8, 6  # of customers, and larger ones, that are tried for that
TRIES = 60  # steps of the simplex method for each
LEAST_GAIN = 1e-6  # of the known length: the gain of a case counts as much at least
MOST_BYTES = 200_000_000  # of the cases' values


@dataclass(order=True)
class _Case:
    """A case not yet divided; bound in multiples of 2^-places. The number makes the order definite."""

    bound: int
    number: int
    limits: Limits = field(compare=False)
    values: Values = field(compare=False)


class CaseTree:
    """Cases of the routes that are shorter than the known ones.

    lower     the least bound of all cases        made   number of cases
    """

    def __init__(self, generation: Generation, limits: Limits) -> None:
        """generation   at its end with all routes"""
        self._generation, self._shared = generation, generation.shared
        self._split: dict[int, Split] = {}  # of a divided case
        self._values: dict[int, Values] = {0: generation.values}
        self._open = [_Case(generation.bound, 0, limits, generation.values)]
        self._case: _Case | None = None  # looked into now
        self._settled: int | None = None  # the least bound of cases that cannot be divided
        self._bytes, self.made = 0, 1

    @property
    def lower(self) -> int:
        """The least bound of all cases."""
        waiting = [case.bound for case in (self._case, *self._open[:1]) if case is not None]
        bounds = [self._shared.rounded_up(bound) for bound in waiting]
        settled = [] if self._settled is None else [self._settled]
        return min([self._shared.upper, *settled, *bounds])

    def tree(self) -> tuple[list[Split | None], list[Values | None]]:
        """What tells apart the children of each case, and the values of those that have none."""
        numbers = range(self.made)
        return [self._split.get(each) for each in numbers], [self._values.get(each) for each in numbers]

    def work(self) -> Iterator[bool]:
        """Divide the case of the least bound until none is left; items: True after each step."""
        first = True
        while self._open and not self._generation.exhausted and self._bytes < MOST_BYTES:
            if self._settled is not None and self.lower >= self._settled:
                return
            self._case = heapq.heappop(self._open)
            yield from self._look_into(self._case, first)
            self._case, first = None, False

    def _look_into(self, case: _Case, ready: bool) -> Iterator[bool]:
        """Tighten a case, and close or divide it; ready: the program is at its optimum."""
        generation = self._generation
        split = None
        if not self._shared.is_closed(case.bound):
            if not ready:
                generation.take(case.limits, case.bound, case.values)
                yield from generation.run(ROUNDS, WAIT)
                case.bound, case.values = generation.bound, generation.values
                self._keep(case.number, case.values)
            if not (generation.closed or generation.exhausted):
                split = yield from self._choose(case)
        if split is None:
            bound = self._shared.rounded_up(case.bound)
            self._settled = bound if self._settled is None else min(self._settled, bound)
            return
        self._split[case.number] = split, self.made
        del self._values[case.number]
        for limits in case.limits.divided(*split):
            heapq.heappush(self._open, _Case(case.bound, self.made, limits, case.values))
            self._keep(self.made, case.values)
            self.made += 1

    def _keep(self, number: int, values: Values) -> None:
        self._values[number] = values
        self._bytes += values.pi.nbytes + values.y.nbytes

    def _choose(self, case: _Case) -> Iterator[bool]:
        """The set and k whose two cases both raise the program's value most, by tries; None: none."""
        master, upper = self._generation.master, self._shared.upper
        value, best, most = master.value, None, -1.0
        for number, k in self._candidates(case.limits):
            gains = []
            for limits in case.limits.divided(number, k):
                reached = master.tried(limits, TRIES) - value
                gains.append(max(min(reached, upper - value), LEAST_GAIN * upper))
            if gains[0] * gains[1] > most:
                best, most = (number, k), gains[0] * gains[1]
            yield True
        return best

    def _candidates(self, limits: Limits) -> list[tuple[int, int]]:
        """Sets and k with half of x(delta) between k and k + 1, those nearest to the middle first."""
        sets, (u, v, x) = self._shared.sets, self._generation.master.point()
        depot = self._shared.deliveries.depot
        inner = np.flatnonzero((u != depot) & (v != depot) & (x > FRACTIONAL) & (x < 1 - FRACTIONAL))
        inner = inner[np.argsort(np.abs(x[inner] - 0.5), kind="stable")[:PAIRS]]
        pairs = [sets.number(np.array([u[edge], v[edge]])) for edge in inner.tolist()]
        half = sets.boundary(u, v, x) / 2
        apart = np.abs(half - np.floor(half) - 0.5)
        larger = [
            number
            for number in np.argsort(apart, kind="stable")[: SETS + PAIRS].tolist()
            if number not in pairs
        ]
        chosen = [*pairs, *larger[:SETS]]
        found = [
            (number, int(np.floor(half[number]))) for number in chosen if apart[number] < 0.5 - FRACTIONAL
        ]
        return [(number, k) for number, k in found if limits.least(number) <= k < limits.most(number)]
