"""Plain heuristics for routes: what searches have to beat, and where they begin.

Each returns `(after, name)`: after [n] int64 (app/graphs/routes.py), and the name to print beside the result.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import numpy as np

from app.errors import GraphError, NoneFound
from app.graphs.deliveries import Deliveries
from app.graphs.keys import sorted_set
from app.graphs.metric import Metric
from app.graphs.routes import after_of, routes_of
from app.graphs.windows import hours_of, in_time
from app.search.routing.kernel import DEGREE, NO_LENGTH, Routing, nearest_customers
from app.toolbox import Look, never

PAIRS = 40  # near customers that one may be joined with
MOST_SCANNED = 20_000  # points of a nearest neighbour, which looks at all pairs
LIMITED_STEPS = 200_000  # of the search for routes of so many vehicles, and LIMITED_EACH for each customer
LIMITED_EACH = 200
PACK_STEPS, PACK_EACH = 200_000, 2000  # of that in which customers may be on no route
SLICE = 1000  # steps of both between two looks at the clock
BETWEEN = 1 << 10  # pairs, or customers, likewise
LABELS = {"savings": "savings", "sweep": "sweep", "nearest_neighbour": "nearest neighbour"}


def savings(
    metric: Metric, deliveries: Deliveries, compiled: bool = True, look: Look = never
) -> tuple[np.ndarray, str]:
    """From a route for each customer on, the ends of two are joined where that saves most.

    Source   Clarke and Wright, Scheduling of vehicles from a central depot to a number of delivery points,
             Operations Research 1964
    Differs  pairs of customers that are near each other alone; with time windows routes are joined, in their
             direction, where a vehicle comes in time (Solomon 1987)
    """
    pairs = _best_pairs(metric, deliveries.depot)
    join = _joined if deliveries.times is None else _joined_in_time
    made = after_of(join(metric, deliveries, *pairs, look), metric.n, deliveries.depot)
    return within_limit(metric, deliveries, made, compiled, look), LABELS["savings"]


def _joined(
    metric: Metric, deliveries: Deliveries, i: np.ndarray, j: np.ndarray, look: Look
) -> list[list[int]]:
    """Routes of which two are joined where that saves most, by pairs i, j of their ends, best first."""
    routes = {c: [c] for c in range(metric.n) if c != deliveries.depot}
    of, load, inner = list(range(metric.n)), deliveries.demand.tolist(), bytearray(metric.n)
    for u, v in chain.from_iterable(_parts_in_time(zip(i.tolist(), j.tolist()), look)):
        if inner[u] or inner[v]:
            continue
        a, b = of[u], of[v]
        if a == b or load[a] + load[b] > deliveries.capacity:
            continue
        first, other = routes[a], routes[b]
        inner[u], inner[v] = len(first) > 1, len(other) > 1
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
    return list(routes.values())


def _parts_in_time(things: Iterable[Any], look: Look) -> Iterator[list[Any]]:
    """The same things, BETWEEN of them at once, until the time is up."""
    left = iter(things)
    while part := list(islice(left, BETWEEN)):
        yield part
        if look():
            return


def _joined_in_time(
    metric: Metric, deliveries: Deliveries, i: np.ndarray, j: np.ndarray, look: Look
) -> list[list[int]]:
    """The same of routes in time, which have a direction."""
    routes = {c: [c] for c in range(metric.n) if c != deliveries.depot}
    of, load, inner = list(range(metric.n)), deliveries.demand.tolist(), bytearray(metric.n)
    hours = {c: hours_of(metric, deliveries, route) for c, route in routes.items()}
    both_ways = deliveries.both_ways
    pairs = zip(i.tolist(), j.tolist(), metric.between(i, j).tolist())
    for u, v, way in chain.from_iterable(_parts_in_time(pairs, look)):
        if inner[u] or inner[v]:
            continue
        a, b = of[u], of[v]
        if a == b or load[a] + load[b] > deliveries.capacity:
            continue
        for end, x, last in ((a, u, -1), (b, v, 0)) if both_ways else ():
            if routes[end][last] != x:
                routes[end].reverse()
                hours[end] = hours_of(metric, deliveries, routes[end])
        for one, other, x, y in ((a, b, u, v), (b, a, v, u)):
            ends = routes[one][-1] == x and routes[other][0] == y
            if ends and hours[one][1] + way <= hours[other][0]:
                inner[x], inner[y] = len(routes[one]) > 1, len(routes[other]) > 1
                routes[one] += routes[other]
                hours[one] = hours_of(metric, deliveries, routes[one])
                for c in routes.pop(other):
                    of[c] = one
                load[one] += load[other]
                break
    return list(routes.values())


def _best_pairs(metric: Metric, depot: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of near customers whose ways to and from the depot are worth saving, the most first."""
    n, near = metric.n, nearest_customers(metric, depot)[0][:, :PAIRS]
    home = metric.between(np.full(n, depot), np.arange(n))
    u = np.delete(np.arange(n), depot).repeat(near.shape[1])
    v = np.delete(near, depot, axis=0).ravel().astype(np.int64)
    # Of pairs that are near both ways the one that comes first counts, whose first point is the lower one.
    keys = np.sort((np.minimum(u, v) * n + np.maximum(u, v)) * 2 + (u > v))
    keys = keys[np.append(True, np.diff(keys >> 1) > 0)] if len(keys) else keys
    (u, v), turned = divmod(keys >> 1, n), keys & 1 > 0
    u, v = np.where(turned, v, u), np.where(turned, u, v)
    saved = home[u] + home[v] - metric.between(u, v)
    order = np.argsort(-saved, kind="stable")
    order = order[saved[order] > 0]
    return u[order], v[order]


def sweep(
    metric: Metric, deliveries: Deliveries, compiled: bool = True, look: Look = never
) -> tuple[np.ndarray, str]:
    """A ray from the depot turns once round: each route takes what comes until it is full.

    Source   Gillett and Miller, A heuristic algorithm for the vehicle-dispatch problem, Operations Research
             1974
    Differs  begins at one angle, and customers are passed in the order of the ray; with time windows each is
             served where that is the least way more for a vehicle that comes in time to all
    """
    at = metric.plane - metric.plane[deliveries.depot]
    # The tangent's half-angle grows with the angle; unlike an arc tangent it rounds alike everywhere.
    reach = np.sqrt(at[:, 0] * at[:, 0] + at[:, 1] * at[:, 1])
    side = reach + at[:, 0]
    half = np.where(side > 0, at[:, 1] / np.where(side > 0, side, 1), np.inf)
    order = np.lexsort((reach, half)).tolist()
    return _filled(metric, deliveries, order, compiled, look), LABELS["sweep"]


def _filled(
    metric: Metric, deliveries: Deliveries, order: Iterable[int], compiled: bool, look: Look
) -> np.ndarray:
    """Routes that take customers in an order, each until it is full. Raises NoneFound where time is up."""
    demand, routes, room = deliveries.demand.tolist(), [], -1
    for number, c in enumerate(order, 1):
        _end_in_time(metric, number, look)
        if c == deliveries.depot:
            continue
        place = _place_in_time(metric, deliveries, routes[-1], c) if demand[c] <= room else -1
        if place < 0:
            routes.append([])
            room, place = deliveries.capacity, 0
        routes[-1].insert(place, c)
        room -= demand[c]
    return within_limit(metric, deliveries, after_of(routes, metric.n, deliveries.depot), compiled, look)


def _place_in_time(metric: Metric, deliveries: Deliveries, route: list[int], c: int) -> int:
    """Where on a route a customer is served in time with the least way more, -1: nowhere. No times: last."""
    if deliveries.times is None:
        return len(route)
    depot = deliveries.depot
    stops = np.array([depot, *route, depot])
    to = metric.between(np.full(len(stops), c), stops)
    more = to[:-1] + to[1:] - metric.between(stops[:-1], stops[1:])
    for place in np.argsort(more, kind="stable").tolist():
        if in_time(metric, deliveries, [*route[:place], c, *route[place:]]):
            return place
    return -1


def nearest_neighbour(
    metric: Metric, deliveries: Deliveries, compiled: bool = True, look: Look = never
) -> tuple[np.ndarray, str]:
    """Always to the nearest customer for whose demand there is room; back where there is none.

    With times always to the one whose service can begin first, of those who are served in time.
    """
    if deliveries.times is not None:
        made = after_of(_first_served(metric, deliveries, look), metric.n, deliveries.depot)
        return within_limit(metric, deliveries, made, compiled, look), LABELS["nearest_neighbour"]
    n, depot = metric.n, deliveries.depot
    left = np.delete(np.arange(n), depot)
    routes: list[list[int]] = []
    at, room = depot, 0
    while len(left):
        _end_in_time(metric, len(left), look)
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
    return within_limit(metric, deliveries, made, compiled, look), LABELS["nearest_neighbour"]


def _first_served(metric: Metric, deliveries: Deliveries, look: Look) -> list[list[int]]:
    """Routes of the nearest neighbour in time; of a customer whom none can serve alone one that is late.

    Source   Solomon 1987 (3.2, of its criteria the time until service begins)
    """
    depot, times = deliveries.depot, deliveries.times
    home = metric.between(np.full(metric.n, depot), np.arange(metric.n))
    left = np.delete(np.arange(metric.n), depot)
    routes: list[list[int]] = []
    at, room, clock = depot, 0, 0
    while len(left):
        _end_in_time(metric, len(left), look)
        if at == depot:
            routes.append([])
            room, clock = deliveries.capacity, int(times.opens[depot])
        begin = np.maximum(clock + metric.between(np.full(len(left), at), left), times.opens[left])
        ends = begin + times.service[left]
        fits = (begin <= times.closes[left]) & (ends + home[left] <= times.closes[depot])
        fits &= deliveries.demand[left] <= room
        if at != depot and not fits.any():
            at = depot
            continue
        place = int(np.where(fits, begin, np.iinfo(np.int64).max).argmin())
        at, clock = (int(left[place]), int(ends[place])) if fits.any() else (depot, 0)
        routes[-1].append(int(left[place]))
        room -= int(deliveries.demand[left[place]])
        left = np.delete(left, place)
    return routes


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


def _end_in_time(metric: Metric, number: int, look: Look) -> None:
    """Raises NoneFound where the time is up, looked at after BETWEEN customers."""
    if number % BETWEEN == 0 and look():
        raise NoneFound(f"{metric.name}: found no routes in the time that there was")


def within_limit(
    metric: Metric, deliveries: Deliveries, after: np.ndarray, compiled: bool = True, look: Look = never
) -> np.ndarray:
    """[n] int64, the routes where there are vehicles for all, else routes of as many as there are.

    Routes that are not in time are none. Raises GraphError where there are none, or none are found.
    """
    limit, routes = deliveries.vehicles or metric.n, routes_of(after, deliveries.depot)
    timely = [route for route in routes if in_time(metric, deliveries, route)]
    if len(timely) == len(routes) <= limit:
        return after
    if (needed := bins_for(deliveries.demand, deliveries.capacity)) > limit:
        right = f"{needed}, which the demands need at least, or a larger capacity, would be right"
        raise GraphError(f"{metric.name}: there are no routes of {limit} vehicles; {right}")
    watch = _Watch(look)
    made = _repacked(metric, deliveries, compiled, watch) if deliveries.times is None else None
    if made is None:
        made = _with_all(metric, deliveries, timely, compiled, watch)
    if made is None:
        right = "more vehicles, or a larger capacity, would be right"
        if deliveries.times is not None:
            right = "more vehicles, a larger capacity, or wider windows, would be right"
        right = f"more time (search.seconds), {right}" if watch.rang else right
        limited = f" of {deliveries.vehicles} vehicles" if deliveries.vehicles else ""
        limited += " in the time that there was" if watch.rang else ""
        told = f"found no routes{limited}; {right} (at least {deliveries.fewest} are needed)"
        raise NoneFound(f"{metric.name}: {told}")
    return made


class _Watch:
    """Slices of steps between which the time is looked at; rang: it was up."""

    def __init__(self, look: Look) -> None:
        self.look, self.rang = look, False

    def slices(self, steps: int) -> Iterator[int]:
        """Steps, so many in all, until the time is up."""
        for done in range(0, steps, SLICE):
            if self.rang or (done and self.look()):
                self.rang = True
                return
            yield min(SLICE, steps - done)


def _repacked(metric: Metric, deliveries: Deliveries, compiled: bool, watch: _Watch) -> np.ndarray | None:
    """[n] int64, routes of so many vehicles as there are, where too much load is dear; None: none."""
    routing = Routing(metric, deliveries, _packed(deliveries, deliveries.vehicles), 0, compiled)
    routing.temperature = _mild(routing)
    for steps in watch.slices(LIMITED_STEPS + LIMITED_EACH * routing.count):
        if routing.best_length < NO_LENGTH:
            break
        routing.run(steps)
    return None if routing.best_length == NO_LENGTH else routing.best_after()


def _with_all(
    metric: Metric, deliveries: Deliveries, routes: list[list[int]], compiled: bool, watch: _Watch
) -> np.ndarray | None:
    """[n] int64, routes of so many vehicles as there are, from some of these on; None: none were found.

    Customers who are on none are inserted where they can be; others may have to leave a route for them.

    Source   Christiaens and Vanden Berghe 2020 (4.3, fleet minimisation)
    """
    depot = deliveries.depot
    kept = sorted(routes, key=len, reverse=True)[: deliveries.vehicles or metric.n]
    served = {c for route in kept for c in route}
    absent = [c for c in range(metric.n) if c != depot and c not in served]
    routing = Routing(metric, deliveries, after_of(kept, metric.n, depot), 0, compiled, absent)
    routing.temperature = _mild(routing)
    for steps in watch.slices(PACK_STEPS + PACK_EACH * routing.count):
        routing.pack(steps)
        if not routing.absents:
            return routing.best_after()
    return None


def _mild(routing: Routing) -> int:
    """A temperature of a tenth of a leg, of two for each customer."""
    return DEGREE * routing.length // (10 * (2 * routing.count + 1))


def bins_for(size: np.ndarray, room: int) -> int:
    """Bins that things of these sizes need at least: by every threshold what large and middle ones need.

    With a threshold k those of more than room - k are alone in their bins but for what is smaller than k, and
    those of more than half of the room are in bins of their own.

    Source   Martello and Toth, Lower bounds and reduction procedures for the bin packing problem, Discrete
             Applied Mathematics 1990 (L2)
    """
    size = np.sort(size)
    total = np.append(0, np.cumsum(size))
    best = -(-int(total[-1]) // room)
    half = int(np.searchsorted(2 * size, room, side="right"))  # from here on more than half
    for k in sorted_set(size[2 * size <= room]).tolist():
        first, large = (
            int(np.searchsorted(size, each, side=at)) for each, at in ((k, "left"), (room - k, "right"))
        )
        middle = max(large, half) - half  # of more than half, with room for others
        small = int(total[half] - total[first])
        spare = middle * room - int(total[half + middle] - total[half])
        best = max(best, len(size) - half + max(0, -(-(small - spare) // room)))
    return max(best, len(size) - half)


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
