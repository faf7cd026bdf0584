"""Small instances of routes in time, and their best routes by trying all."""

import itertools
from dataclasses import replace
from functools import cache

import numpy as np

from app.graphs.deliveries import Deliveries, Times, limited
from app.graphs.metric import explicit, from_points


def drawn_in_time(seed, n=None):
    """A metric and deliveries of up to 7 points: windows, or a limit of length; by turns without the triangle
    inequality, with equal points and services that take no time, with few vehicles.
    """
    draws = np.random.default_rng(seed)
    n = n or int(draws.integers(2, 8))
    metric = from_points(
        "drawn", draws.integers(0, 60, (n, 2)).astype(float), ("EUC_2D", "FLOOR_2D")[seed % 2]
    )
    service = draws.integers(0, 15, n)
    if seed % 5 == 0:
        half = np.triu(draws.integers(0, 60, (n, n)), 1)
        metric = explicit("drawn", half + half.T)
    elif seed % 7 == 0:
        metric = from_points("drawn", draws.integers(0, 3, (n, 2)).astype(float))
        service[draws.random(n) < 0.7] = 0
    demand, depot = draws.integers(0, 10, n), int(draws.integers(n))
    demand[depot] = service[depot] = 0
    if seed % 4 == 3:
        home = metric.between(np.full(n, depot), np.arange(n))
        times = limited(n, depot, int((2 * home + service).max() + draws.integers(0, 80)), service)
    else:
        scale = 3 if metric.matrix.max() < 5 else 100
        opens = draws.integers(0, 3 * scale // 2, n)
        closes = opens + draws.integers(0, scale * 6 // 5, n)
        opens[depot], closes[depot] = draws.integers(0, 10), draws.integers(2 * scale, 4 * scale)
        times = Times(opens, closes, service)
    deliveries = Deliveries(depot, demand, int(draws.integers(10, 30)), 0, times)
    if seed % 3 == 1:
        deliveries = replace(deliveries, vehicles=max(1, deliveries.fewest + seed % 2))
    return metric, deliveries


def route_length(metric, deliveries, route, carried=True):
    """What a route is long, None: it is too late somewhere, or carries too much."""
    times, before, length, ways = deliveries.times, deliveries.depot, 0, metric.matrix.tolist()
    opens, closes, service = (each.tolist() for each in times.arrays)
    at = opens[before]
    if carried and deliveries.demand[list(route)].sum() > deliveries.capacity:
        return None
    for stop in route:
        way = ways[before][stop]
        at, length = max(at + way, opens[stop]), length + way
        if at > closes[stop]:
            return None
        at, before = at + service[stop], stop
    way = ways[before][deliveries.depot]
    return length + way if at + way <= closes[deliveries.depot] else None


@cache
def solved_in_time(seed):
    """An instance and the length of its best routes; None: there are none."""
    metric, deliveries = drawn_in_time(seed)
    customers = [c for c in range(metric.n) if c != deliveries.depot]
    cost = {}
    for k in range(1, len(customers) + 1):
        for chosen in itertools.combinations(customers, k):
            ways = (route_length(metric, deliveries, way) for way in itertools.permutations(chosen))
            if (least := min((way for way in ways if way is not None), default=None)) is not None:
                cost[frozenset(chosen)] = least

    @cache
    def best(rest, left):
        if not rest or not left:
            return 1 << 60 if rest else 0
        first = min(rest)
        fits = (part for part in cost if first in part and part <= rest)
        return min((cost[part] + best(rest - part, left - 1) for part in fits), default=1 << 60)

    found = best(frozenset(customers), deliveries.vehicles or metric.n)
    return metric, deliveries, None if found >= 1 << 60 else found
