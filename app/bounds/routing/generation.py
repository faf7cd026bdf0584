"""Column generation: the program over ng-routes (master.py) gets those that its duals want (pricing.py).

Duals between those of the optimum and those of the best bound so far are priced: they oscillate less.
Whatever duals are, they bound: with the least cost of an ng-route, taken as often as there are routes; or
once every customer's value is lowered, in the proportion of its load, so far that no route costs less than 0.

Sources  Wentges 1997; Pessoa, Sadykov, Uchoa and Vanderbeck 2018 (smoothing); fixing edges: Baldacci,
         Christofides and Mingozzi 2008
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from app.bounds.routing.edges import LARGEST_DUAL, Limits, bound_over_all, constant, reduced_costs
from app.bounds.routing.master import MOST_MISSED, Master
from app.bounds.routing.paths import fits_times, whole_loads
from app.bounds.routing.pricing import FAR, Found, Pricing
from app.bounds.routing.proof import Values
from app.bounds.routing.separation import separate
from app.bounds.routing.shared import Shared
from app.bounds.routing.timed_pricing import TimedPricing
from app.bounds.tour.separation import Point

LEAST_SMOOTH, MOST_SMOOTH = 0.4, 0.99  # what the duals of the best bound count for: the latter at first
SMOOTHER = 0.7  # the rest is so much less where that leads to no better bound, and more where it does
QUICK, MANY = (
    5,
    1_000_000,
)  # labels of a pricing over all edges: with more, likely ones are looked at before, so often
NEAR = 0.02  # of what is missing to the known length: a bound this near to the program's value is near enough
SLOW = 0.02  # a round of sets that gains less of what is missing gains little
SHORT = 15  # points for each vehicle: routes of more customers begin with few neighbours to remember
FIRST_WIDTH, WIDER = 2, 2  # so many, and more of them each time that the program is at its end
FINE = 10  # binary places of the value of a load


class Generation:
    """The program of some limits at a time, over the edges that are left.

    bound, values   the best bound with these limits in multiples of 2^-places, and what proves it
    width           neighbours that a customer remembers
    exhausted       pricing took too much memory, or HiGHS failed: nothing more is found
    """

    def __init__(self, shared: Shared, near: np.ndarray, u: np.ndarray, v: np.ndarray) -> None:
        self.shared, self.exhausted = shared, False
        self.load, self.capacity = whole_loads(shared.deliveries)
        self._near, self._widest = near, near.shape[1]
        short = shared.metric.n <= SHORT * max(shared.deliveries.fewest, 1)
        self.remember(self._widest if short else min(FIRST_WIDTH, self._widest))
        self._likely = _keys(shared.metric.n, np.repeat(np.arange(len(near)), near.shape[1]), near.ravel())
        self.limits = Limits(shared.sets)
        self.master = Master(shared.metric, shared.sets, self.limits)
        self.bound, self.values = -(1 << 62), None
        self._smooth = 1.0
        self._centre: tuple[np.ndarray, dict[int, float]] = np.zeros(shared.metric.n), {}
        self._centre_bound = self.bound
        self.keep(u, v)

    def begin(self, values: Values, bound: int) -> None:
        """Values by edges, and their sets, which are good ones for routes, too.

        An edge between two customers that has a negative reduced cost counts once by edges, but a route may
        go to and fro on it. Let twice t be what it lacks: with t less for both customers, and t more for the
        set of both, it costs 0, all others what they did, and the bound is the same.
        """
        shared, pi = self.shared, values.pi.copy()
        worst = bound_over_all(shared.metric, self.limits, values, shared.places)[1]
        worst = worst[(worst[:, 1:] != shared.deliveries.depot).all(axis=1)]
        y = dict(zip(values.sets.tolist(), values.y.tolist()))
        for reduced, i, j in worst.tolist():
            number, t = shared.sets.number(np.array([i, j])), (1 - reduced) // 2
            y[number] = y.get(number, 0) + t
            pi[[i, j]] -= t
        self.master.add_sets(sorted(y))
        sets = np.array(sorted(y), dtype=np.int64)
        self._aim(Values(pi, sets, np.array([y[number] for number in sets.tolist()]), self.width), bound)

    def remember(self, width: int) -> None:
        """Customers remember so many neighbours from now on."""
        shared, self.width = self.shared, width
        given = self._near[:, :width], self.load, self.capacity
        if fits_times(shared.metric, shared.deliveries):
            made = partial(TimedPricing, *given, shared.metric, shared.deliveries, shared.compiled)
        else:
            made = partial(Pricing, *given, shared.deliveries.depot, shared.compiled)
        self.pricing, self._quick = made(), made()

    def keep(self, u: np.ndarray, v: np.ndarray) -> None:
        """Only these edges are left."""
        self.u, self.v = u, v
        self.master.allow(np.sort(u * self.shared.metric.n + v))
        self._use()

    def take(self, limits: Limits, bound: int, values: Values) -> None:
        """Those of another case, with a bound that is known of it."""
        self.limits, self.bound, self.values = limits, bound, values
        self._smooth = LEAST_SMOOTH  # duals of the other cases' programs are good ones
        self._aim(values, bound)
        self.master.take(limits)
        self._use()

    def _use(self) -> None:
        unused = [a * self.shared.metric.n + b for a, b in self.limits.unused]
        kept = ~np.isin(self.u * self.shared.metric.n + self.v, unused)
        self._a, self._b = self.u[kept], self.v[kept]
        self.pricing.use(self._a, self._b)
        self._use_likely()

    def _use_likely(self) -> None:
        """Edges that a first look is at: to near customers, those of the depot, and those of routes found."""
        depot = self.shared.deliveries.depot
        keys = _keys(self.shared.metric.n, self._a, self._b)
        self._few = np.isin(keys, self._likely) | (self._a == depot) | (self._b == depot)
        self._quick.use(self._a[self._few], self._b[self._few])

    @property
    def closed(self) -> bool:
        """Whether no routes within the limits are shorter than the known ones."""
        return self.shared.is_closed(self.bound)

    def run(self, rounds: int, patience: int) -> Iterator[bool]:
        """Routes, then sets that their optimum violates, then routes again; items: True after each step."""
        value, idle = -np.inf, 0
        for _ in range(rounds):
            yield from self.generate()
            if self.closed or self.exhausted:
                return
            if self.width < self._widest:
                self.remember(min(self.width + WIDER, self._widest))
                self._use()
                continue
            missing = self.shared.upper - self.master.value
            idle = 0 if self.master.value > value + SLOW * missing else idle + 1
            value = max(value, self.master.value)
            if idle > patience:
                return
            point = Point.of(self.shared.metric.n, *self.master.point())
            found = separate(self.shared.sets, point, self.shared.random, self.shared.compiled)
            yield True
            self.master.drop_idle(30)
            if not self.master.add_sets(found):
                return

    def generate(self) -> Iterator[bool]:
        """Routes until the bound is near the program's value; items: True after each step."""
        smooth, quick = self._smooth, 0
        while not (self.closed or self.exhausted):
            if not self.master.solve():
                self.exhausted = True
                return
            self._look_at()
            self.master.drop_routes()
            yield True
            if self._is_near() and self.master.missed <= MOST_MISSED:
                return
            if quick:
                found = self._look_quickly()
                yield True
                if found is not None and found.routes and self.master.add_routes(self._useful(found)):
                    quick -= 1
                    continue
            found = self._price(smooth)
            yield True
            if found is None and self.width > 1:
                self._widest = max(self.width - WIDER, 1)
                self.remember(self._widest)
                self._use()
                continue
            if found is None:
                self.exhausted = True
                return
            if len(found.routes) and self.master.add_routes(self._useful(found)):
                smooth, quick = self._smooth, QUICK if self.pricing.made > MANY else 0
                self._like(found)
            elif smooth:
                smooth = 0.0
            elif self.master.missed > MOST_MISSED:
                self.master.raise_price()
            else:
                return

    def left(self) -> np.ndarray | None:
        """[edges] bool: those that shorter routes than the known ones may have, by the values."""
        values = self.values
        reduced = self._reduced(values)
        found = self.pricing.find(reduced, reach=True)
        through = None if found is None else self.pricing.through(found, reduced)
        if through is None:
            return None
        few, many = self.limits.routes
        least = found.least
        others = least * ((many if least < 0 else few) - 1)
        short = (self.shared.upper - 1) << self.shared.places
        return through <= short - others - constant(self.limits, values)

    def _look_at(self) -> None:
        routes = self.master.chosen()
        if routes is not None:
            self.shared.offer(routes)

    def _is_near(self) -> bool:
        one = 1 << self.shared.places
        missing = max(self.shared.upper - self.master.value, 1.0)
        return self.bound > -(1 << 61) and self.bound / one >= self.master.value - NEAR * missing

    def _aim(self, values: Values, bound: int) -> None:
        """Duals are smoothed towards these values."""
        one = float(1 << self.shared.places)
        y = dict(zip(values.sets.tolist(), (values.y / one).tolist()))
        self._centre, self._centre_bound = (values.pi / one, y), bound

    def _smoothed(self, smooth: float) -> Values | None:
        """Values between those of the program's optimum and the centre's."""
        master = self.master
        pi, y = master.pi, master.y
        if smooth:
            pi = smooth * self._centre[0] + (1 - smooth) * pi
            y = smooth * np.array([self._centre[1].get(row, 0.0) for row in master.rows]) + (1 - smooth) * y
        return master.values(pi, y, self.width)

    def _look_quickly(self) -> Found | None:
        """Routes over likely edges, which prove nothing."""
        values = self._smoothed(self._smooth)
        return None if values is None else self._quick.find(self._reduced(values)[self._few])

    def _useful(self, found: Found) -> list[list[int]]:
        """Those routes that the duals of the program's optimum want, whatever was priced."""
        values = self._smoothed(0.0)
        if values is None:
            return []
        n, depot = self.shared.metric.n, self.shared.deliveries.depot
        cost = np.zeros((n, n), dtype=np.int64)
        cost[self._a, self._b] = cost[self._b, self._a] = self._reduced(values)
        sizes = np.array([len(route) for route in found.routes])
        stops = np.concatenate([[*route, depot] for route in found.routes]).astype(np.int64)
        before = np.append(depot, stops[:-1])
        ptr = np.append(0, np.cumsum(sizes + 1)[:-1])
        total = np.add.reduceat(cost[before, stops], ptr) if len(ptr) else ptr
        return [route for route, each in zip(found.routes, total.tolist()) if each < 0]

    def _like(self, found: Found) -> None:
        """Edges of routes that would be used are likely from now on."""
        n, depot = self.shared.metric.n, self.shared.deliveries.depot
        walks = [np.array([depot, *route, depot]) for route in found.routes[: self.shared.metric.n]]
        keys = np.concatenate([_keys(n, walk[:-1], walk[1:]) for walk in walks])
        if len(new := np.setdiff1d(keys, self._likely)):
            self._likely = np.append(self._likely, new)
            self._use_likely()

    def _price(self, smooth: float) -> Found | None:
        """The best routes for duals that are smoothed, and the bound that follows; None: too many labels."""
        values = self._smoothed(smooth)
        if values is None:
            return None
        found = self.pricing.find(self._reduced(values), reach=True)
        if found is None:
            return None
        bound, proof = self._proved(values, found)
        if bound > self.bound:
            self.bound, self.values = bound, proof
        if smooth == 1.0:
            self._smooth = MOST_SMOOTH
        if bound > self._centre_bound:
            self._aim(values, bound)
            self._smooth = max(1 - (1 - self._smooth) / SMOOTHER, LEAST_SMOOTH)
        elif smooth:
            self._smooth = min(1 - (1 - self._smooth) * SMOOTHER, MOST_SMOOTH)
        return found

    def _reduced(self, values: Values) -> np.ndarray:
        shared = self.shared
        return reduced_costs(shared.metric, shared.sets, values, shared.places, self._a, self._b)

    def _proved(self, values: Values, found: Found) -> tuple[int, Values]:
        """The better of two bounds, and its values."""
        few, many = self.limits.routes
        least, total = found.least, constant(self.limits, values)
        if least >= FAR:
            return 1 << 61, values  # there is no route
        bound = total + least * (many if least < 0 else few)
        if least >= 0:
            return bound, values
        lowered = self._lowered(values, found)
        other = -FAR if lowered is values else constant(self.limits, lowered)
        return (other, lowered) if other > bound else (bound, values)

    def _lowered(self, values: Values, found: Found) -> Values:
        """Values of customers that are so much less that no route costs less than 0."""
        closed, coarse = found.loaded, self.pricing.coarse
        if closed is None:
            out = self.pricing.out
            closed = np.where(found.reach < FAR // 2, found.reach + np.where(out < FAR, out, FAR), FAR).min(
                axis=1
            )
        loads = np.flatnonzero(closed < 0)
        each = max(-(int(closed[load]) << FINE) // max(coarse * load, 1) + 1 for load in loads.tolist())
        less = [(each * load >> (FINE + 1)) + (load > 0) for load in self.load.tolist()]
        if max(less) > LARGEST_DUAL:
            return values
        return replace(values, pi=values.pi - np.array(less, dtype=np.int64))


def _keys(n: int, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Numbers of edges, whichever end comes first."""
    return np.minimum(u, v) * np.int64(n) + np.maximum(u, v)
