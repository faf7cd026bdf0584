"""Cutting planes, then column generation, then cases: bounds of vehicle routes.

The linear program over edges (edges.py) gets sets that its optimum violates, and edges of negative reduced
cost. Once that gains little, edges are left out that no routes shorter than the known ones have, and the
program over ng-routes (generation.py) takes up the sets. What gap it leaves is closed by cases (cases.py).
"""

from collections.abc import Iterator

import numpy as np

from app.bounds.routing.cases import CaseTree
from app.bounds.routing.edges import Limits, RouteProgram, bound_over_all, pairs_below
from app.bounds.routing.generation import SHORT, Generation
from app.bounds.routing.paths import fits_times, whole_loads
from app.bounds.routing.pricing import neighbours
from app.bounds.routing.proof import RoutingBound, Values
from app.bounds.routing.separation import separate
from app.bounds.routing.shared import Shared
from app.bounds.tour.separation import Point
from app.graphs.deliveries import Deliveries
from app.graphs.metric import Metric
from app.graphs.windows import one_after_other

EDGES, ROUTES, CASES = "rounded capacity cuts", "ng-routes and capacity cuts", "branch and cut and price"
MOST_ROUNDS, MOST_SHORT = 300, 25  # the latter with few points for each vehicle: ng-routes soon do better
NEAREST = 6  # edges of a point to its nearest ones, to begin with
SLOW, PATIENCE = (
    0.01,
    8,
)  # rounds that gain less of what is missing, so many one after the other, are the last
MOST_NEW = 2  # edges that join at once, for each point
PRICE_EVERY = 8  # rounds between two looks at all edges
FEWEST_IDLE = 20  # rows without use that are worth dropping
WIDTH = 8  # neighbours that a customer of an ng-route remembers
MOST_LABELS = 3e8  # steps of a pricing: points, loads and edges of each
MOST_TABLE = 1 << 24  # points times loads
MOST_IN_TIME = 8  # rounds where there are windows, of which edges know little
MOST_TIMED = 1000  # points of routes in time
ROUNDS, WAIT = 60, 3  # of sets at the whole, and those of little gain
KEPT = 0.98  # of the edges: if a bound leaves more, it is none for the next


class Cutting:
    """Rounds of the programs, then cases.

    lower    bound for all routes, 0 before the first look at all edges
    done     nothing is left that would help
    """

    def __init__(self, metric: Metric, deliveries: Deliveries, upper: int, compiled: bool) -> None:
        self.metric, self.deliveries, self.done = metric, deliveries, False
        self.shared = Shared(metric, deliveries, upper, compiled)
        self._limits = Limits(self.shared.sets)
        self._edges: tuple[int, Values] | None = None  # the best bound by edges
        self._generation: Generation | None = None
        self._routes: tuple[int, Values] | None = None  # the best bound of the whole by ng-routes
        self._near = np.zeros((metric.n, 0), dtype=np.int64)
        self._left_by: list[Values] = []  # ng-routes' values that left out edges
        self._cases: CaseTree | None = None
        self._best, self._method = 0, ""
        self._course = self._work()

    @property
    def lower(self) -> int:
        """A bound for all routes."""
        return self._best

    @property
    def method(self) -> str:
        """How it was found; "": not yet."""
        return self._method

    @property
    def cases(self) -> int:
        """Number of cases made."""
        return 0 if self._cases is None else self._cases.made

    @property
    def priced(self) -> int:
        """What a pricing of ng-routes looks at, 0 before the first."""
        return 0 if self._generation is None else len(self._generation.u) * self._generation.pricing.capacity

    @property
    def left_out(self) -> int:
        """How often ng-routes' values have left out edges."""
        return len(self._left_by)

    @property
    def labels(self) -> int:
        """Labels of the last pricing of ng-routes, 0 before the first."""
        return 0 if self._generation is None else self._generation.pricing.made

    def know(self, upper: int, routes: list[list[int]] | None) -> None:
        """Routes of this length are known, and maybe routes."""
        self.shared.know(upper, routes)

    def step(self) -> None:
        """A round of a program, or a part of a case."""
        ended = next(self._course, None) is None
        self._tell()
        if ended or (self._edges is not None and self.lower >= self.shared.upper):
            self.done = True

    def certificate(self) -> RoutingBound:
        """The bound with what proves it."""
        shared, members = self.shared, self.shared.sets.members
        given = self.lower, self.method, shared.places, members
        if self.method == EDGES:
            near = np.zeros((self.metric.n, 0), dtype=np.int64)
            return RoutingBound.of(*given, near, None, [self._edges[1]])
        whole = [self._edges[1], *self._left_by]
        if self._cases is not None and self.method == CASES:
            return RoutingBound.of(*given, self._near, shared.upper, whole, *self._cases.tree())
        whole.append(self._routes[1])
        return RoutingBound.of(*given, self._near, shared.upper, whole)

    def _tell(self) -> None:
        """The best bound, and how it was found."""
        shared, found = self.shared, []
        if self._edges is not None:
            found.append((shared.rounded_up(self._edges[0]), EDGES))
        if self._cases is not None:
            found.append((min(self._cases.lower, shared.upper), CASES))
        elif self._generation is not None and self._generation.values is not None:
            self._routes = self._generation.bound, self._generation.values
            found.append((min(shared.rounded_up(self._routes[0]), shared.upper), ROUTES))
        for lower, method in found:
            if lower > self._best or not self._method:
                self._best, self._method = lower, method

    # ---- the work ------------------------------------------------------------------------------------------

    def _work(self) -> Iterator[bool]:
        """Items: True after each step."""
        yield from self._cut()
        if self._edges is None or self.shared.is_closed(self._edges[0]):
            return
        u, v = self._left_by_edges()
        if not self._fits(len(u)):
            return
        self._near = neighbours(self.metric, self.deliveries.depot, WIDTH)
        generation = self._generation = Generation(self.shared, self._near, u, v)
        generation.begin(self._edges[1], self._edges[0])
        if self.shared.known is not None:
            generation.master.add_routes(self.shared.known)
        yield True
        yield from generation.run(ROUNDS, WAIT)
        yield from self._leave_out()
        if generation.exhausted or generation.closed or generation.values is None:
            return
        self._cases = CaseTree(generation, self._limits)
        yield from self._cases.work()

    def _cut(self) -> Iterator[bool]:
        """Rounds of the program over edges."""
        program = RouteProgram(
            self.metric, self.shared.sets, _first_edges(self.metric, self.deliveries), self._limits
        )
        value, idle, rounds = -np.inf, 0, 0
        short = self.metric.n <= SHORT * max(self.deliveries.fewest, 1) and self._fits(0)
        most = MOST_SHORT if short else MOST_ROUNDS
        if self.deliveries.times is not None and self._fits(0):
            most = MOST_IN_TIME
        while program.solve():
            program.drop_idle(FEWEST_IDLE, self.shared.sets.everyone)
            idle = 0 if program.value > value + SLOW * (self.shared.upper - program.value) else idle + 1
            value, rounds = max(value, program.value), rounds + 1
            yield True
            point = Point.of(self.metric.n, program.u, program.v, program.x)
            added = program.add_rows(
                separate(self.shared.sets, point, self.shared.random, self.shared.compiled)
            )
            yield True
            last = not added or idle > PATIENCE or rounds >= most
            if not last and rounds % PRICE_EVERY:
                continue
            if added and not program.solve():
                return
            joined = self._price(program)
            yield True
            if last and (not joined or rounds >= most):
                return
            idle = 0 if joined else idle

    def _price(self, program: RouteProgram) -> int:
        """The bound over all edges; those of negative reduced cost join the program. Returns how many."""
        values = program.values()
        if values is None:
            return 0
        bound, worst = bound_over_all(self.metric, self._limits, values, self.shared.places)
        if self._edges is None or bound > self._edges[0]:
            self._edges = bound, values
        known = np.isin(worst[:, 1] * self.metric.n + worst[:, 2], program.keys)
        edges = worst[~known]
        order = np.argsort(edges[:, 0], kind="stable")[: MOST_NEW * self.metric.n]
        return program.add_edges(edges[order, 1:])

    def _left_by_edges(self) -> tuple[np.ndarray, np.ndarray]:
        """(u, v) of all edges that routes shorter than the known ones may have."""
        bound, values = self._edges
        most = ((self.shared.upper - 1) << self.shared.places) - bound
        pieces = [
            np.column_stack([i, j])
            for i, j, _ in pairs_below(self.metric, self.shared.sets, values, self.shared.places, most)
        ]
        u, v = np.concatenate([np.zeros((0, 2), dtype=np.int64), *pieces]).T
        return u, v

    def _fits(self, edges: int) -> bool:
        """Whether ng-routes over so many edges can be looked at."""
        capacity = whole_loads(self.deliveries)[1]
        if self.deliveries.times is not None:
            return fits_times(self.metric, self.deliveries) and self.metric.n <= MOST_TIMED
        return self.metric.n * (capacity + 1) <= MOST_TABLE and edges * capacity <= MOST_LABELS

    def _leave_out(self) -> Iterator[bool]:
        """Edges that no shorter routes have, by the bound of ng-routes; again while that leaves out many."""
        generation = self._generation
        while not (generation.closed or generation.exhausted or generation.values is None):
            left = generation.left()
            yield True
            if left is None or left.mean() > KEPT:
                return
            self._left_by.append(generation.values)
            generation.keep(generation.u[left], generation.v[left])
            yield from generation.run(ROUNDS, WAIT)


def _first_edges(metric: Metric, deliveries: Deliveries) -> np.ndarray:
    """[k, 2] edges to begin with: to nearest points, and those of the depot."""
    n, depot = metric.n, deliveries.depot
    near = metric.neighbours(NEAREST)
    u, v = np.repeat(np.arange(n), near.shape[1]), near.ravel().astype(np.int64)
    demand = deliveries.demand
    fits = (demand[u] + demand[v] <= deliveries.capacity) & one_after_other(metric, deliveries, u, v)
    customers = np.delete(np.arange(n), depot)
    edges = np.column_stack([np.append(u[fits], np.full(n - 1, depot)), np.append(v[fits], customers)])
    return np.unique(np.sort(edges, axis=1), axis=0)
