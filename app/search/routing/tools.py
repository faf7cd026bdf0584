"""The toolbox of vehicle routing: plain constructions, a search, bounds."""

import math
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property, partial
from typing import Any

import numpy as np

from app.bounds.feasible import fault_of_routes
from app.bounds.routing.bounds import RoutingBounds
from app.bounds.routing.proof import RoutingBound
from app.errors import CaseError, GraphError, NoneFound
from app.graphs.deliveries import MOST_TIME, Deliveries
from app.graphs.metric import DIRECTED
from app.graphs.routes import after_of, canonical_routes, legs_of, length_of, routes_of
from app.graphs.windows import in_time, never_in_time
from app.search.core_bounds import CoreBounds
from app.search.routing.baselines import baselines, savings, within_limit
from app.search.routing.search import RoutingSearch
from app.search.routing.text import read_routes, routes_text, told_costs
from app.search.tour.tools import refuse_without_distances
from app.toolbox import Baseline, Bounds, Instance, Search, Toolbox

ERROR = 1e-12  # of sums of lengths, in parts of them
NEAR = 0.03  # gap of bounds that cases may close
STEPS, STEPS_EACH = 100_000, 300  # of a search where a case sets no limit; for each customer
NEAREST_SECONDS = 1.2e-8  # of the nearest neighbour, for each pair of customers, about


class RouteBounds(CoreBounds):
    """Lower bounds of the length of routes."""

    inner: RoutingBounds
    early = True

    def __init__(self, inner: RoutingBounds) -> None:
        super().__init__(inner, "lower")
        self.near = NEAR
        self._told: tuple[np.ndarray | None, np.ndarray | None] = None, None

    @property
    def gaining(self) -> bool:
        """Whether the work under way may make the bound much better: as long as there is some."""
        return self.inner.closing

    def optimum(self) -> np.ndarray | None:
        """Shorter routes than those known, the same array until there are shorter ones."""
        found = self.inner.optimum
        if found is None:
            return None
        if self._told[0] is None or not np.array_equal(self._told[0], found):
            depot = self.inner.deliveries.depot
            parts = np.split(found, np.flatnonzero(found == depot))
            after = after_of(
                [each[1:].tolist() for each in parts if len(each) > 1], self.inner.metric.n, depot
            )
            self._told = found, canonical_routes(after, depot, self.inner.deliveries.both_ways)
        return self._told[1]


class RoutingTools(Toolbox):
    """Routes of one instance; a solution is [n] int64, the stop after each (app/graphs/routes.py)."""

    words, sense = "set of routes", "minimise"
    bounds_follow = True

    def __init__(self, instance: Instance, problem: Any) -> None:
        name = instance.graph.name
        refuse_without_distances(name, instance.metric)
        if instance.metric.kind == DIRECTED:
            right = "distances that are the same both ways would be right"
            raise CaseError(f"{name}: has distances that differ by direction; {right}")
        if len(instance.inside) or len(instance.outside):
            raise CaseError(
                f"search.inside, search.outside: {problem.name} visits every node; leave them out"
            )
        self.instance, self.graph, self.core = instance, instance.graph, instance.graph
        self.metric, self.unit = instance.metric, instance.metric.unit
        self.deliveries: Deliveries = instance.beside.deliveries
        self._refuse_never(name)
        self.read = self._read
        self._rules, self.left_out = baselines(self.metric)

    def _refuse_never(self, name: str) -> None:
        """Refuse a customer whom no route can serve in time. Raises GraphError."""
        late = never_in_time(self.metric, self.deliveries)
        if late >= 0:
            times = self.deliveries.times
            given = times.closes if times.given is None else times.given
            opens, closes = int(times.opens[late]), int(given[late])
            end = f"to {closes * self.unit:.10g}" if closes < MOST_TIME else "on"
            window = f"node {self.graph.called(late)} from {opens * self.unit:.10g} {end}"
            told = f"no route can serve {window} and be back at the depot in time"
            raise GraphError(f"{name}: {told}; another window, or a longer route, would be right")

    @property
    def usual_steps(self) -> int:
        """Of a search where a case sets no limit."""
        return STEPS + STEPS_EACH * self.metric.n

    def value(self, solution: np.ndarray) -> int:
        """The length of all routes."""
        return length_of(self.metric, self.deliveries.depot, solution)

    def as_solution(self, numbers: np.ndarray) -> np.ndarray:
        """Stops as they are."""
        return numbers

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """Routes that keep to the limits: the solution where it does, else what is nearest to it."""
        if self.fault(solution) is None:
            return self._canonical(solution)
        return self._mended(solution)

    def fault(self, solution: np.ndarray) -> str | None:
        """What is missing, twice on routes, too much for a vehicle, or late."""
        return fault_of_routes(self.graph, self.deliveries, solution, self.metric)

    def untrue(self, path: str, solution: np.ndarray) -> str | None:
        """Another cost than that of the routes, as far as its decimals tell.

        One with decimals may also be of distances that are not rounded, as published ones of CVRPLIB are for
        files whose distances TSPLIB rounds.
        """
        told = (self._untrue_cost(solution, line, cost) for line, cost in told_costs(path))
        return next((each for each in told if each), None)

    def _untrue_cost(self, solution: np.ndarray, line: int, cost: Decimal) -> str | None:
        """The same of one that a line of the file tells."""
        length, places = self.value(solution) * self.unit, -int(cost.as_tuple().exponent)
        lengths, more = [length], ""
        legs = self.metric.unrounded(*legs_of(self.deliveries.depot, solution))
        if places > 0 and legs is not None:
            lengths.append(math.fsum(legs.tolist()) * self.unit)
            more = f", or {lengths[1]:.{min(places, 9)}f} by distances that are not rounded"
        if any(abs(float(cost) - each) <= 0.51 * 10.0**-places + ERROR * each for each in lengths):
            return None
        told = f"found Cost {cost} on line {line} of routes that are {length:.12g} long{more}"
        return f"{told}; that would be right"

    def text(self, solution: np.ndarray, cost: float | int) -> str:
        """The lines of its file."""
        return f"{routes_text(solution, self.graph.held_ids())}Cost {cost}\n"

    def _read(self, path: str) -> np.ndarray:
        return read_routes(path, self.graph.held_ids(), self.deliveries.depot)

    def _mended(self, solution: np.ndarray) -> np.ndarray:
        """Routes cut where a vehicle is full, or would be late; the start where these are too many, and none
        are found in time.
        """
        made: list[list[int]] = []
        for route in routes_of(solution, self.deliveries.depot):
            load = self.deliveries.capacity + 1
            for customer in route:
                load += int(self.deliveries.demand[customer])
                full = load > self.deliveries.capacity
                if full or not in_time(self.metric, self.deliveries, [*made[-1], customer]):
                    made.append([])
                    load = int(self.deliveries.demand[customer])
                made[-1].append(customer)
        after = after_of(made, self.metric.n, self.deliveries.depot)
        try:
            return within_limit(self.metric, self.deliveries, after, self.instance.compiled, self.look)
        except NoneFound:
            return self.start()

    def _canonical(self, after: np.ndarray) -> np.ndarray:
        return canonical_routes(after, self.deliveries.depot, self.deliveries.both_ways)

    def start(self) -> np.ndarray:
        """By savings."""
        return self._start.copy()

    @cached_property
    def _start(self) -> np.ndarray:
        return self._canonical(savings(self.metric, self.deliveries, self.instance.compiled, self.look)[0])

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Ruin and recreate, annealed; none without customers."""
        if self.metric.n < 2:
            return None
        return RoutingSearch(self.metric, self.deliveries, start, seed, self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Capacity cuts, ng-routes, cases."""
        return RouteBounds(RoutingBounds(self.metric, self.deliveries, self.instance.compiled))

    def prove(self, proof: RoutingBound) -> int:
        """Check the certificate against distances and demands."""
        proof.check(self.metric, self.deliveries)
        return proof.lower

    @property
    def baseline_seconds(self) -> Mapping[str, float]:
        """An estimate of the one that takes long: each step looks at all customers that are left."""
        return {"nearest_neighbour": NEAREST_SECONDS * self.metric.n**2}

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name."""
        compiled = self.instance.compiled
        return {name: partial(self._made_by, rule, compiled) for name, rule in self._rules.items()}

    def _made_by(self, rule: Any, compiled: bool) -> tuple[np.ndarray, str]:
        made, label = rule(self.metric, self.deliveries, compiled, self.look)
        return self._canonical(made), label
