"""Bounds of vehicle routes: below the best routes of small instances, proved by certificates, the same plainly."""

import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from app.bounds.certificate import BadCertificate
from app.bounds.routing import cutting as routing_cutting
from app.bounds.routing.bounds import METHOD, RoutingBounds, nearest_points
from app.bounds.routing.cutting import CASES, EDGES, ROUTES
from app.bounds.routing.paths import Paths, whole_loads
from app.bounds.routing.pricing import FAR, Pricing, neighbours
from app.bounds.routing.proof import RoutingBound, Values
from app.bounds.routing.separation import plain_grow_sets, separate
from app.bounds.routing.sets import Sets
from app.bounds.tour.lp import available
from app.bounds.tour.separation import Point
from app.graphs.deliveries import Deliveries
from app.graphs.metric import explicit, from_points
from app.native import routing_bounds as native
from app.rng import stream

pytestmark = pytest.mark.mpi_skip
needs_kernels = pytest.mark.skipif(not native.available(), reason="the kernels are not built")
if not available():
    pytest.skip("highspy is not installed", allow_module_level=True)


def random_metric(n, random, largest=100):
    """Distances that need not satisfy the triangle inequality."""
    half = np.triu(random.integers(0, largest, (n, n), endpoint=True), 1)
    return explicit(f"random{n}", half + half.T)


def plane(n, random, side=100):
    return from_points(f"plane{n}", random.integers(0, side, (n, 2), endpoint=True).astype(float))


def best_routes(metric, deliveries):
    """The least length of all routes; None: there are none. By dynamic programs over subsets of customers."""
    customers = [point for point in range(metric.n) if point != deliveries.depot]
    k, depot = len(customers), deliveries.depot
    to = metric.between(np.array(customers)[:, None], np.array(customers)) if k else None
    out = metric.between(np.array(customers), depot) if k else None
    path = np.full((1 << k, max(k, 1)), 1 << 60, dtype=np.int64)
    for i in range(k):
        path[1 << i, i] = out[i]
    for subset in range(1, 1 << k):
        for i in range(k):
            if path[subset, i] < 1 << 60:
                for j in range(k):
                    if not subset >> j & 1:
                        more = subset | 1 << j
                        path[more, j] = min(path[more, j], path[subset, i] + to[i, j])
    route = np.full(1 << k, 1 << 60, dtype=np.int64)
    for subset in range(1, 1 << k):
        inside = [i for i in range(k) if subset >> i & 1]
        if deliveries.demand[[customers[i] for i in inside]].sum() <= deliveries.capacity:
            route[subset] = min(path[subset, i] + out[i] for i in inside)
    best = np.full(1 << k, 1 << 60, dtype=np.int64)
    best[0], found = 0, 0 if k == 0 else 1 << 60
    for _ in range(deliveries.vehicles or k):
        new = best.copy()
        for subset in range(1, 1 << k):
            first = subset & -subset
            part = subset
            while part:
                if part & first and best[subset ^ part] + route[part] < new[subset]:
                    new[subset] = best[subset ^ part] + route[part]
                part = (part - 1) & subset
        best = new
        found = min(found, int(best[-1]))
    return None if found >= 1 << 60 else found


def drawn(seed):
    """A small instance, of odd kinds too."""
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 8))
    kind = seed % 8
    metric = random_metric(n, random) if kind < 3 else plane(n, random, 3 if kind == 3 else 100)
    if kind == 4:
        metric = random_metric(n, random, 2**31 - 1)
    depot, capacity = int(random.integers(0, n)), int(random.integers(3, 12))
    demand = random.integers(0 if kind in (1, 5) else 1, capacity, n, endpoint=True)
    if kind == 6:
        demand[:] = capacity
    if kind == 7:
        demand, capacity = demand * 1_000_003, capacity * 1_000_003 + 5
    if seed % 16 == 5:
        demand[:] = 0
    demand[depot] = 0
    return metric, Deliveries(depot, demand.astype(np.int64), capacity)


@cache
def solved(seed):
    """An instance with the best length; sometimes with as few vehicles as can be."""
    metric, deliveries = drawn(seed)
    if seed % 3 == 0:
        for vehicles in range(1, metric.n):
            fewer = replace(deliveries, vehicles=vehicles)
            if best_routes(metric, fewer) is not None:
                deliveries = fewer
                break
    return metric, deliveries, best_routes(metric, deliveries)


def finished(bounds, upper, steps=400):
    """Steps to the end, the bound never falling; every 7th certificate is checked."""
    before = 0
    for step in range(steps):
        bounds.run(1, upper)
        assert bounds.lower >= before
        before = bounds.lower
        if step % 7 == 0:
            bounds.certificate().check(bounds.metric, bounds.deliveries)
        if bounds.done or bounds.lower >= upper:
            break
    return bounds


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_bounds_are_below_the_best_routes(first):
    met = 0
    for seed in range(first, first + 40):
        metric, deliveries, best = solved(seed)
        for upper in (best, best + 1, 2 * best + 10):
            bounds = finished(RoutingBounds(metric, deliveries), upper)
            assert bounds.lower <= best, seed
            proof = bounds.certificate()
            assert proof.lower == bounds.lower
            proof.check(metric, deliveries)
            met += bounds.lower == best
            if bounds.optimum is not None:
                assert length_of(bounds.optimum, metric, deliveries) < upper
    assert met > 3 * 40 * 0.9


def length_of(after, metric, deliveries):
    """The length of routes [n], which are looked at."""
    depot, seen, total, routes = deliveries.depot, [], 0, 0
    for first in set(range(metric.n)) - {depot, *after.tolist()}:
        route = [first]
        while after[route[-1]] != depot:
            route.append(int(after[route[-1]]))
        assert deliveries.demand[route].sum() <= deliveries.capacity
        walk = np.array([depot, *route, depot])
        total += int(metric.between(walk[:-1], walk[1:]).sum())
        seen += route
        routes += 1
    assert sorted(seen) == [point for point in range(metric.n) if point != depot]
    assert not deliveries.vehicles or routes <= deliveries.vehicles
    return total
