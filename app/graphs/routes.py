"""Routes of vehicles, told by `after` [n] int64: the next stop after each customer, the depot's number at the
end of a route. The depot's own entry is its number.

Of the two directions of a route the canonical one begins with the smaller of its ends.
"""

import numpy as np

from app.graphs.metric import Metric


def depot_of(after: np.ndarray) -> int:
    """The depot of routes [n]: what is after itself."""
    return int((after == np.arange(len(after))).argmax())


def routes_of(after: np.ndarray, depot: int) -> list[list[int]]:
    """The customers of each route in their order; routes by their first customers, ascending.

    after   [n], in which every customer has one place
    """
    first = np.ones(len(after), dtype=bool)
    first[after] = False
    first[depot] = False
    step, routes = after.tolist(), []
    for customer in np.flatnonzero(first).tolist():
        route = []
        while customer != depot:
            route.append(customer)
            customer = step[customer]
        routes.append(route)
    return routes


def after_of(routes: list[list[int]], n: int, depot: int) -> np.ndarray:
    """[n] int64 of routes, lists of customers, each of which is on one of them."""
    after = np.full(n, depot, dtype=np.int64)
    for route in routes:
        after[route[:-1]] = route[1:]
    return after


def canonical_routes(after: np.ndarray, depot: int, both_ways: bool = True) -> np.ndarray:
    """[n] int64, the same routes, each in its canonical direction; both_ways: whether they have two."""
    if not both_ways:
        return np.array(after, dtype=np.int64)
    routes = [each if each[0] <= each[-1] else each[::-1] for each in routes_of(after, depot)]
    return after_of(routes, len(after), depot)


def legs_of(depot: int, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where all ways of all routes begin and end, those from the depot and back to it included."""
    customers = np.flatnonzero(np.arange(len(after)) != depot)
    begun = np.ones(len(after), dtype=bool)
    begun[after] = False
    begun[depot] = False
    first = np.flatnonzero(begun)
    return np.append(customers, np.full(len(first), depot)), np.append(after[customers], first)


def length_of(metric: Metric, depot: int, after: np.ndarray) -> int:
    """What all routes are long together."""
    return int(metric.between(*legs_of(depot, after)).sum())
