"""Sets of customers that a point of the program enters less often than their demand needs.

A point x on edges u-v has degree 2 at every customer. Its support graph has the edges with x > 0. Sets are
components of it without the depot; sets that grow from every customer; both in contracted points, where
customers joined by an edge of value 1 are one; and known sets.

Sources  Augerat et al. 1998; Lysgaard, Letchford and Eglese 2004 (contractions, growing sets)
"""

import numpy as np

from app.bounds.routing.sets import Sets
from app.bounds.tour.separation import Point
from app.bounds.tour.separation import _components as components_of
from app.native import routing_bounds as native

ZERO = 1e-6  # smaller values of x are none
VIOLATED = 0.02  # sets that miss less are not worth a row
LONGEST = 400  # customers of a set that grows
MOST_SEEDS = 1000  # customers from which sets grow in a round
RATES = (0.0, 1.0)  # what demand counts for the growth, see growth
MOST_NEW = 100  # sets of a round, those that miss most


def separate(sets: Sets, point: Point, random: np.random.Generator, compiled: bool = True) -> list[int]:
    """Numbers of violated sets, those that miss most first."""
    customers = _without_depot(point, sets.deliveries.depot)
    label = np.arange(point.n)
    found = _of_components(sets, customers)
    found += grown(sets, point, label, random, compiled)
    found += grown(sets, point, contracted(customers), random, compiled)
    numbers = {sets.number(members) for members in found}
    excess = 2.0 * np.array(sets.fewest) - sets.boundary(point.u, point.v, point.x)
    numbers.update(np.flatnonzero(excess > VIOLATED).tolist())
    chosen = np.array(sorted(number for number in numbers if excess[number] > VIOLATED), dtype=np.int64)
    return chosen[np.argsort(-excess[chosen], kind="stable")[:MOST_NEW]].tolist()


def contracted(customers: Point) -> np.ndarray:
    """[n] labels: customers joined by edges of value 1 are one; the depot is one alone."""
    whole = customers.x > 1 - ZERO
    return components_of(customers.n, customers.u[whole], customers.v[whole])[1]


def grown(
    sets: Sets, point: Point, label: np.ndarray, random: np.random.Generator, compiled: bool
) -> list[np.ndarray]:
    """Violated sets of customers that grow in the contracted point."""
    depot, demand = sets.deliveries.depot, sets.deliveries.demand
    small = point.contracted(label)
    load = np.zeros(small.n, dtype=np.int64)
    np.add.at(load, label, demand)
    at = label[depot]  # the depot's label, its own alone
    degree = small.degrees()
    inner = _without_depot(small, at)
    ends, to = np.append(inner.u, inner.v), np.append(inner.v, inner.u)
    order = np.lexsort((to, ends))
    begin = np.searchsorted(ends[order], np.arange(small.n + 1)).astype(np.int64)
    to, x = to[order].astype(np.int32), np.tile(inner.x, 2)[order]
    seeds = np.delete(np.arange(small.n), at)
    if len(seeds) > MOST_SEEDS:
        seeds = np.sort(random.choice(seeds, MOST_SEEDS, replace=False))
    members, found = _groups(label, small.n), []
    grow = native.grow_sets if compiled and native.available() else plain_grow_sets
    capacity, longest = int(sets.deliveries.capacity), min(LONGEST, small.n)
    seeds = seeds.astype(np.int32)
    for rate in RATES:
        rows = begin, to, x, degree, load
        order, size, excess = grow(*rows, capacity, 2.0 * rate / capacity, seeds, longest)
        for seed in np.flatnonzero(excess > VIOLATED).tolist():
            found.append(np.concatenate([members[group] for group in order[seed, : size[seed]]]))
    return found


def plain_grow_sets(
    begin: np.ndarray, to: np.ndarray, x: np.ndarray, degree: np.ndarray, demand: np.ndarray, capacity: int,
    rate: float, seeds: np.ndarray, longest: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """What lk_grow_sets of routing_bounds.c finds."""
    n, count = len(degree), len(seeds)
    order, size = np.zeros((count, longest), dtype=np.int32), np.zeros(count, dtype=np.int32)
    excess = np.full(count, -1e300)
    weight = rate * demand.astype(np.float64)
    for s, v in enumerate(seeds.tolist()):
        joins, inside, near = np.zeros(n), np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        leaving, carried = 0.0, 0
        for place in range(longest):
            leaving = leaving + (degree[v] - 2.0 * joins[v])
            carried += int(demand[v])
            order[s, place], inside[v] = v, True
            missing = 2.0 * max(1, -(-carried // capacity)) - leaving
            if missing > excess[s]:
                excess[s], size[s] = missing, place + 1
            row = slice(begin[v], begin[v + 1])
            joins[to[row]] += x[row]
            near[to[row]] = True
            free = near & ~inside
            if place + 1 == longest or not free.any():
                break
            v = int(np.where(free, 2.0 * joins - degree + weight, -np.inf).argmax())
    return order, size, excess


def _of_components(sets: Sets, customers: Point) -> list[np.ndarray]:
    """The components of the support graph without the depot, and what each leaves of all customers."""
    depot, found = sets.deliveries.depot, []
    count, label = components_of(customers.n, customers.u, customers.v)
    everyone = np.arange(customers.n) != depot
    if count > 2:
        for number in range(count):
            if number != label[depot]:
                inside = label == number
                found += [np.flatnonzero(inside), np.flatnonzero(everyone & ~inside)]
    return found


def _without_depot(point: Point, depot: int) -> Point:
    kept = (point.u != depot) & (point.v != depot)
    return Point(point.n, point.u[kept], point.v[kept], point.x[kept])


def _groups(label: np.ndarray, count: int) -> list[np.ndarray]:
    """The members of each label, ascending."""
    order = np.argsort(label, kind="stable")
    return np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1])
