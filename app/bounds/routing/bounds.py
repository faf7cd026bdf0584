"""A bound of vehicle routes that gets better with time: nearest points, cuts, column generation, cases.

How it is used, as bounds of tours are (app/search/tour/tools.py):

    bounds = RoutingBounds(metric, deliveries, compiled)       a toolbox wraps it: CoreBounds(bounds, "lower")
    bounds.know(after)                                         short routes, where at hand
    bounds.improve(seconds, upper)                             in slices; upper: the length of the best routes
    bounds.optimum                                             shorter routes that it came upon, or None
    proof = bounds.certificate()                               a RoutingBound (proof.py)
    proof.check(metric, deliveries)                            proves proof.lower, or raises BadCertificate

For files of certificates app/proofs/archive.py needs, beside the imports of RoutingBound and Values,

    "routes": Kind(RoutingBound, dict.fromkeys(("set_ptr", "set_nodes", "near"), "int64"), tables=("near",)),
    "route values": Kind(Values, dict.fromkeys(("pi", "sets", "y"), "int64")),
"""

import numpy as np

from app.bounds.highs import available
from app.bounds.routing.cutting import CASES, ROUTES, Cutting
from app.bounds.routing.edges import places_for
from app.bounds.routing.proof import RoutingBound, Values
from app.bounds.sliced import SteppedBounds
from app.graphs.deliveries import Deliveries
from app.graphs.metric import Metric

METHOD = "nearest points"
MOST_POINTS = 6000  # up to here the linear program is worth its time
CHECK_PAIRS = 3e-7  # for each pair of points, of the check of values over all edges
CHECK_LABELS = 2e-7  # for each edge and load, of that of ng-routes
CHECK_TIMED = 2e-5  # for each label, of that of ng-routes in time


class RoutingBounds(SteppedBounds):
    """A lower bound on the length of all routes.

    lower    the best bound so far, 0 before the first step        method   how it was found; "": no bound yet
    steps    made so far: the first bound, rounds of the programs, parts of cases
    done     nothing is left to try

    The programs begin where routes are known (`upper`). The bound is a function of (metric, deliveries,
    steps, the uppers and routes given); only `improve` looks at the clock.
    """

    def __init__(self, metric: Metric, deliveries: Deliveries, compiled: bool = True) -> None:
        self.metric, self.deliveries, self.compiled = metric, deliveries, compiled
        self.steps, self.done = 0, False
        self._first: RoutingBound | None = None
        self._cutting: Cutting | None = None
        self._known: list[list[int]] | None = None

    @property
    def lower(self) -> int:
        """The best bound so far."""
        return max((each.lower for each in (self._first, self._cutting) if each is not None), default=0)

    @property
    def method(self) -> str:
        """How the bound was found."""
        if self._first is None:
            return ""
        return self._cutting.method if self._by_cutting else METHOD

    @property
    def cases(self) -> int:
        """Cases made, 0 before it divides."""
        return 0 if self._cutting is None else self._cutting.cases

    @property
    def closing(self) -> bool:
        """Whether the programs have begun and may reach the optimum."""
        return self._cutting is not None and not self.done

    @property
    def gaining(self) -> bool:
        """Whether the programs have begun and have proved nothing yet."""
        return self.closing and not self._by_cutting

    @property
    def least_seconds(self) -> float:
        """An estimate of the longest step."""
        if self._first is None:
            return CHECK_PAIRS * self.metric.n
        return self.longest

    @property
    def check_seconds(self) -> float:
        """An estimate of what checking the certificate takes."""
        cutting, pairs = self._cutting, CHECK_PAIRS * self.metric.n**2
        if not self._by_cutting or cutting.method not in (ROUTES, CASES):
            return pairs
        if self.deliveries.times is not None:
            runs = 2 + 2 * cutting.left_out + cutting.cases // 2
            return pairs + CHECK_TIMED * cutting.labels * runs
        return pairs + CHECK_LABELS * cutting.priced * (2 + cutting.cases)

    @property
    def optimum(self) -> np.ndarray | None:
        """[n] int64 routes shorter than those told, where a program came upon such, else None: see `know`."""
        routes = None if self._cutting is None else self._cutting.shared.routes
        if routes is None:
            return None
        after = np.full(self.metric.n, self.deliveries.depot, dtype=np.int64)
        for route in routes:
            after[route[:-1]] = route[1:]
        return after

    def know(self, after: np.ndarray) -> None:
        """Short routes [n]: the next customer after each, at the end of a route the depot. They help."""
        depot, step = self.deliveries.depot, np.asarray(after).tolist()
        begun = np.ones(self.metric.n, dtype=bool)
        begun[step] = False
        begun[depot] = False
        self._known = []
        for customer in np.flatnonzero(begun).tolist():
            route = []
            while customer != depot:
                route.append(customer)
                customer = step[customer]
            self._known.append(route)

    def waits(self, upper: int | None) -> bool:
        """The programs need to know what is too long."""
        return upper is None and self.steps > 0

    def step(self, upper: int | None) -> None:
        """The first bound, a round of a program, or a part of a case."""
        if self._first is None:
            self.steps = 1
            self._first = nearest_points(self.metric, self.deliveries)
            self.done = self.metric.n < 2 or self.metric.n > MOST_POINTS or not available()
            return
        self.steps += 1
        if self._cutting is None:
            self._cutting = Cutting(self.metric, self.deliveries, upper, self.compiled)
        self._cutting.know(upper, self._known)
        self._cutting.step()
        self.done = self._cutting.done

    def certificate(self) -> RoutingBound:
        """The bound with what proves it."""
        return self._cutting.certificate() if self._by_cutting else self._first

    @property
    def _by_cutting(self) -> bool:
        return self._cutting is not None and self._cutting.lower > self._first.lower


def nearest_points(metric: Metric, deliveries: Deliveries) -> RoutingBound:
    """Every customer has two edges, each of which takes half of its length from it at least half of the way.

    A customer's value is half the distance to its nearest point: no edge then has a negative reduced cost.
    """
    n, places, depot = metric.n, places_for(metric), deliveries.depot
    near = metric.neighbours(1)
    pi = np.zeros(n, dtype=np.int64)
    if near.shape[1]:
        pi = (metric.between(np.arange(n), near[:, 0]) << places) >> 1
    pi[depot] = 0
    nothing = np.zeros(0, dtype=np.int64)
    lower = -(-2 * int(pi.sum()) >> places)
    values = Values(pi, nothing, nothing, 0)
    table = np.zeros((n, 0), dtype=np.int64)
    return RoutingBound.of(lower, METHOD, places, [], table, None, [values])
