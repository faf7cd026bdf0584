"""What the programs of vehicle routes share: the sets, and the routes that are known."""

import numpy as np

from app.bounds.routing.edges import places_for
from app.bounds.routing.sets import Sets
from app.graphs.deliveries import Deliveries
from app.graphs.metric import Metric
from app.graphs.windows import in_time
from app.rng import stream


class Shared:
    """Sets of customers, and the length of known routes.

    upper    the length of known routes
    known    short routes, or None
    routes   customers of each, shorter than those told, where an optimum of a program was such; else None
    """

    def __init__(self, metric: Metric, deliveries: Deliveries, upper: int, compiled: bool) -> None:
        self.metric, self.deliveries, self.upper, self.compiled = metric, deliveries, upper, compiled
        self.sets, self.places = Sets(metric.n, deliveries), places_for(metric)
        self.routes: list[list[int]] | None = None
        self.known: list[list[int]] | None = None
        self.random = stream(metric.n, "contractions")

    def know(self, upper: int, routes: list[list[int]] | None) -> None:
        """Routes of this length are known, and maybe routes: customers of each."""
        self.upper = min(self.upper, upper)
        self.known = self.known if routes is None else routes

    def offer(self, routes: list[list[int]]) -> None:
        """Routes that a program came upon."""
        demand, deliveries = self.deliveries.demand, self.deliveries
        visits = np.bincount(np.concatenate(routes), minlength=self.metric.n)
        visits[deliveries.depot] += 1
        fits = all(int(demand[route].sum()) <= deliveries.capacity for route in routes)
        few = not deliveries.vehicles or len(routes) <= deliveries.vehicles
        length = self.length(routes)
        if not ((visits == 1).all() and fits and few and length < self.upper):
            return
        if all(in_time(self.metric, deliveries, route) for route in routes):
            self.routes, self.upper = routes, length

    def length(self, routes: list[list[int]]) -> int:
        """All routes together."""
        depot = self.deliveries.depot
        walk = np.concatenate([[depot], *(np.append(route, depot) for route in routes)]).astype(np.int64)
        return int(self.metric.between(walk[:-1], walk[1:]).sum())

    def is_closed(self, bound: int) -> bool:
        """Whether a bound in multiples of 2^-places says that no routes are shorter than the known ones."""
        return bound > (self.upper - 1) << self.places

    def rounded_up(self, bound: int) -> int:
        """A bound in multiples of 2^-places as a length, at least 0."""
        return max(-(-bound >> self.places), 0)
