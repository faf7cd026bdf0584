"""Plain heuristics for routes: what searches have to beat, and where they begin.

Each returns `(after, name)`: after [n] int64 (app/graphs/routes.py), and the name to print beside the result.
"""

from collections.abc import Iterable

import numpy as np

from app.errors import GraphError
from app.graphs.deliveries import Deliveries
from app.graphs.metric import Metric
from app.graphs.routes import after_of, routes_of
from app.search.routing.kernel import DEGREE, NO_LENGTH, Routing, nearest_customers

PAIRS = 40  # near customers that one may be joined with
MOST_SCANNED = 20_000  # points of a nearest neighbour, which looks at all pairs
LIMITED_STEPS = 200_000  # of the search for routes of so many vehicles, and LIMITED_EACH for each customer
LIMITED_EACH = 200
LABELS = {"savings": "savings", "sweep": "sweep", "nearest_neighbour": "nearest neighbour"}


def savings(metric: Metric, deliveries: Deliveries, compiled: bool = True) -> tuple[np.ndarray, str]:
    """From a route for each customer on, the ends of two are joined where that saves most.

    Source   Clarke and Wright, Scheduling of vehicles from a central depot to a number of delivery points,
             Operations Research 1964
    Differs  pairs of customers that are near each other alone
    """
    n, depot, capacity = metric.n, deliveries.depot, deliveries.capacity
    i, j = _best_pairs(metric, depot)
    routes = {c: [c] for c in range(n) if c != depot}
    of, load = list(range(n)), deliveries.demand.tolist()
    for u, v in zip(i.tolist(), j.tolist()):
        a, b = of[u], of[v]
        if a == b or load[a] + load[b] > capacity:
            continue
        first, other = routes[a], routes[b]
        if u not in (first[0], first[-1]) or v not in (other[0], other[-1]):
            continue
        if first[-1] != u:
            first.reverse()
        if other[0] != v:
            other.reverse()
        if len(first) < len(other):  # the shorter one is appended
            first.reverse()
            other.reverse()
            a, b, first, other = b, a, other, first
        for c in other:
            of[c] = a
        first += other
        load[a] += load[b]
        del routes[b]
    made = after_of(list(routes.values()), n, depot)
    return within_limit(metric, deliveries, made, compiled), LABELS["savings"]


def _best_pairs(metric: Metric, depot: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of near customers whose ways to and from the depot are worth saving, the most first."""
    n = metric.n
    near, far = (each[:, :PAIRS] for each in nearest_customers(metric, depot))
    home = metric.between(np.full(n, depot), np.arange(n))
    u = np.repeat(np.arange(n), near.shape[1])
    v, d = near.ravel().astype(np.int64), far.ravel().astype(np.int64)
    own = u != depot
    u, v, d = u[own], v[own], d[own]
    once = np.unique(np.minimum(u, v) * n + np.maximum(u, v), return_index=True)[1]
    u, v, d = u[once], v[once], d[once]
    saved = home[u] + home[v] - d
    order = np.argsort(-saved, kind="stable")
    order = order[saved[order] > 0]
    return u[order], v[order]


def sweep(metric: Metric, deliveries: Deliveries, compiled: bool = True) -> tuple[np.ndarray, str]:
    """A ray from the depot turns once round: each route takes what comes until it is full.

    Source   Gillett and Miller, A heuristic algorithm for the vehicle-dispatch problem, Operations Research
             1974
    Differs  begins at one angle, and customers are passed in the order of the ray
    """
    at = metric.plane - metric.plane[deliveries.depot]
    # The tangent's half-angle grows with the angle; unlike an arc tangent it rounds alike everywhere.
    reach = np.sqrt(at[:, 0] * at[:, 0] + at[:, 1] * at[:, 1])
    side = reach + at[:, 0]
    half = np.where(side > 0, at[:, 1] / np.where(side > 0, side, 1), np.inf)
    order = np.lexsort((reach, half)).tolist()
    return _filled(metric, deliveries, order, compiled), LABELS["sweep"]


def _filled(metric: Metric, deliveries: Deliveries, order: Iterable[int], compiled: bool) -> np.ndarray:
    """Routes that take customers in an order, each until it is full."""
    demand, routes, room = deliveries.demand.tolist(), [], -1
    for c in order:
        if c == deliveries.depot:
            continue
        if demand[c] > room:
            routes.append([])
            room = deliveries.capacity
        routes[-1].append(c)
        room -= demand[c]
    return within_limit(metric, deliveries, after_of(routes, metric.n, deliveries.depot), compiled)


def nearest_neighbour(
    metric: Metric, deliveries: Deliveries, compiled: bool = True
) -> tuple[np.ndarray, str]:
    """Always to the nearest customer for whose demand there is room; back where there is none."""
    n, depot = metric.n, deliveries.depot
    left = np.delete(np.arange(n), depot)
    routes: list[list[int]] = []
    at, room = depot, 0
    while len(left):
        fits = left[deliveries.demand[left] <= room] if at != depot else left
        if not len(fits):
            at = depot
            continue
        if at == depot:
            routes.append([])
            room = deliveries.capacity
        at = int(fits[np.argmin(metric.between(np.full(len(fits), at), fits))])
        routes[-1].append(at)
        room -= int(deliveries.demand[at])
        left = left[left != at]
    made = after_of(routes, n, depot)
    return within_limit(metric, deliveries, made, compiled), LABELS["nearest_neighbour"]


ROUTING_BASELINES = {"savings": savings, "sweep": sweep, "nearest_neighbour": nearest_neighbour}


def baselines(metric: Metric) -> tuple[dict, str]:
    """Those that fit a metric, and the names of those that it is too large for."""
    rules = dict(ROUTING_BASELINES)
    if metric.plane is None:
        del rules["sweep"]
    if metric.n <= MOST_SCANNED:
        return rules, ""
    del rules["nearest_neighbour"]
    return rules, LABELS["nearest_neighbour"]


def within_limit(
    metric: Metric, deliveries: Deliveries, after: np.ndarray, compiled: bool = True
) -> np.ndarray:
    """[n] int64, the routes where there are vehicles for all, else routes of as many as there are.

    Raises GraphError where none are found.
    """
    limit, routes = deliveries.vehicles, routes_of(after, deliveries.depot)
    if not limit or len(routes) <= limit:
        return after
    packed = _packed(deliveries, limit)
    routing = Routing(metric, deliveries, packed, 0, compiled)
    legs = 2 * routing.count + 1
    routing.temperature = DEGREE * routing.length // (10 * legs)
    left = LIMITED_STEPS + LIMITED_EACH * routing.count
    while routing.best_length == NO_LENGTH and left > 0:
        routing.run(min(left, 1000))
        left -= 1000
    if routing.best_length == NO_LENGTH:
        needed = f"at least {deliveries.fewest} are needed"
        right = f"more vehicles, or a larger capacity, would be right ({needed})"
        raise GraphError(f"{metric.name}: found no routes of {limit} vehicles; {right}")
    return routing.best_after()


def _packed(deliveries: Deliveries, limit: int) -> np.ndarray:
    """Routes of `limit` vehicles: the largest demands first, each where it leaves the least room, or else
    where there is most.
    """
    n, depot = len(deliveries.demand), deliveries.depot
    room = [deliveries.capacity] * limit
    routes: list[list[int]] = [[] for _ in room]
    for c in np.argsort(-deliveries.demand, kind="stable").tolist():
        if c == depot:
            continue
        demand = int(deliveries.demand[c])
        fits = [left for left in room if left >= demand]
        at = room.index(min(fits) if fits else max(room))
        routes[at].append(c)
        room[at] -= demand
    return after_of([each for each in routes if each], n, depot)
