"""Bounds of vehicle routes: below the best routes, proved by certificates, the same without kernels."""

import copy
import re
from dataclasses import replace
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from timed import drawn_in_time, solved_in_time

from app.bounds.certificate import BadCertificate
from app.bounds.highs import available
from app.bounds.routing import cutting as routing_cutting
from app.bounds.routing import timed_paths
from app.bounds.routing.bounds import METHOD, RoutingBounds, nearest_points
from app.bounds.routing.cutting import CASES, EDGES, ROUTES
from app.bounds.routing.paths import Paths, coarse_for, positive_times, whole_loads
from app.bounds.routing.pricing import FAR, Pricing, neighbours
from app.bounds.routing.proof import RoutingBound, Values
from app.bounds.routing.separation import plain_grow_sets, separate
from app.bounds.routing.sets import Sets
from app.bounds.routing.timed_paths import TimedPaths
from app.bounds.routing.timed_pricing import TimedPricing
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


@pytest.mark.parametrize("first", range(0, 160, 40))
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


def larger(n, seed, each=4):
    """Customers in the plane, vehicles that serve about so many."""
    random = np.random.default_rng(seed)
    metric, demand = plane(n, random), random.integers(1, 9, n, endpoint=True)
    demand[0] = 0
    return metric, Deliveries(0, demand, max(each * int(demand.sum()) // n, 9))


def test_all_methods_are_used_and_proved():
    metric, deliveries = larger(16, 3)
    bounds, seen = RoutingBounds(metric, deliveries), set()
    upper = int(2 * metric.between(np.zeros(16, dtype=int), np.arange(16)).sum())
    while bounds.improve(0.0, upper):
        seen.add(bounds.method)
        bounds.certificate().check(metric, deliveries)
        if bounds.optimum is not None:
            upper = min(upper, length_of(bounds.optimum, metric, deliveries))
        if bounds.lower >= upper:
            break
    assert {METHOD, EDGES, ROUTES} <= seen
    assert bounds.lower == upper


@needs_kernels
def test_bounds_are_proved_at_every_step_of_cases():
    metric, deliveries = larger(22, 4, 5)
    bounds = RoutingBounds(metric, deliveries)
    upper = length_of(np.zeros(22, dtype=np.int64), metric, deliveries)
    for _ in range(3):  # the last time with the best length
        bounds.run(500, upper)
        upper = upper if bounds.optimum is None else length_of(bounds.optimum, metric, deliveries)
    bounds, cases = RoutingBounds(metric, deliveries), 0
    while not bounds.done and bounds.lower < upper:
        bounds.run(1, upper)
        if bounds.cases > cases or bounds.method == ROUTES:
            cases = bounds.cases
            bounds.certificate().check(metric, deliveries)
    assert cases > 1


@needs_kernels
def test_known_routes_and_their_length():
    metric, deliveries = larger(24, 2)
    one, other = RoutingBounds(metric, deliveries), RoutingBounds(metric, deliveries)
    alone = np.zeros(24, dtype=np.int64)  # a route to each customer
    upper = length_of(alone, metric, deliveries)
    other.know(alone)
    for bounds in (one, other):
        for _ in range(3):
            bounds.run(
                2000, upper if bounds.optimum is None else length_of(bounds.optimum, metric, deliveries)
            )
        assert bounds.done
        assert bounds.optimum is not None
    assert one.lower == other.lower == length_of(one.optimum, metric, deliveries)


@needs_kernels
@pytest.mark.parametrize("seed", range(3))
def test_without_kernels_the_bounds_are_the_same(seed):
    metric, deliveries = larger(12, seed, 3)
    fast, slow = RoutingBounds(metric, deliveries), RoutingBounds(metric, deliveries, compiled=False)
    upper = length_of(np.zeros(12, dtype=np.int64), metric, deliveries)
    for _ in range(150):
        fast.run(1, upper)
        slow.run(1, upper)
        assert (fast.lower, fast.method, fast.cases, fast.done) == (
            slow.lower,
            slow.method,
            slow.cases,
            slow.done,
        )
        if fast.done:
            break
    one, other = fast.certificate(), slow.certificate()
    assert np.array_equal(one.set_nodes, other.set_nodes)
    assert all(
        np.array_equal(a.y, b.y) and np.array_equal(a.pi, b.pi) for a, b in zip(one.whole, other.whole)
    )


@needs_kernels
def test_sets_grow_the_same_without_kernels():
    for seed in range(60):
        random = np.random.default_rng(seed)
        n = int(random.integers(2, 30))
        edges = np.argwhere(np.triu(random.random((n, n)) < 0.4, 1))
        u, v = np.append(edges[:, 0], edges[:, 1]), np.append(edges[:, 1], edges[:, 0])
        x = np.tile(random.random(len(edges)), 2)
        order = np.lexsort((v, u))
        begin = np.searchsorted(u[order], np.arange(n + 1)).astype(np.int64)
        rows = begin, v[order].astype(np.int32), x[order], 2 * random.random(n)
        demand, seeds = random.integers(0, 9, n), np.arange(n, dtype=np.int32)
        for rate, longest in ((0.0, n), (0.1, max(n // 2, 1))):
            given = *rows, demand, 20, rate, seeds, longest
            for one, other in zip(native.grow_sets(*given), plain_grow_sets(*given)):
                if one.ndim == 1:
                    assert np.array_equal(one, other), seed


@needs_kernels
@pytest.mark.parametrize("width", [1, 2, 5, 8])
def test_routes_are_priced_the_same_by_all(width):
    for seed in range(6):
        random = np.random.default_rng(seed)
        metric, deliveries = larger(11, seed)
        load, capacity = whole_loads(deliveries)
        near = neighbours(metric, 0, width)
        u, v = np.triu_indices(11, 1)
        kept = random.random(len(u)) < 0.8
        u, v = u[kept], v[kept]
        worth = random.integers(0, 60, 11)
        cost = metric.between(u, v) - worth[u] - worth[v]
        found = []
        for compiled in (True, False):
            pricing = Pricing(near, load, capacity, 0, compiled)
            pricing.use(u, v)
            each = pricing.find(cost, reach=True)
            found.append((each, pricing.through(each, cost)))
        (one, through), (other, _) = found
        assert one.routes == other.routes
        assert np.array_equal(one.cost, other.cost)
        assert np.array_equal(one.reach, other.reach)
        assert np.array_equal(through, found[1][1])
        paths = Paths(near, load, capacity, 0, u, v, cost)
        assert paths.least == one.least
        assert np.array_equal(np.minimum(paths.reach, FAR), one.reach)
        assert np.array_equal(np.minimum(paths.through(), FAR), through)


def test_with_all_neighbours_routes_visit_nobody_twice():
    """The least ng-route is then the least route of all, by trying every one."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        metric, deliveries = larger(6, seed)
        load, capacity = whole_loads(deliveries)
        u, v = np.triu_indices(6, 1)
        cost = random.integers(-50, 50, len(u))
        table = np.zeros((6, 6), dtype=np.int64)
        table[u, v] = table[v, u] = cost
        best = min(
            sum(int(table[a, b]) for a, b in zip((0, *route), (*route, 0)))
            for k in range(1, 6)
            for route in permutations(range(1, 6), k)
            if deliveries.demand[list(route)].sum() <= deliveries.capacity
        )
        assert Paths(neighbours(metric, 0, 5), load, capacity, 0, u, v, cost).least == best


def test_loads_keep_what_fits_together():
    for seed in range(200):
        _, deliveries = drawn(seed)
        load, capacity = whole_loads(deliveries)
        n, depot = len(load), deliveries.depot
        assert (np.delete(load, depot) >= 1).all()
        for subset in range(1 << n):
            inside = [i for i in range(n) if subset >> i & 1 and i != depot]
            fits = deliveries.demand[inside].sum() <= deliveries.capacity
            assert not fits or load[inside].sum() <= capacity


def test_room_beyond_all_demands_does_not_count():
    """Or ng-routes would have too many loads to look at."""
    metric = random_metric(8, np.random.default_rng(3))
    for demand in (0, 3):
        ample = Deliveries(0, np.array([0, *[demand] * 7]), 10**9)
        assert whole_loads(ample)[1] == 7
        bounds = RoutingBounds(metric, ample)
        best = best_routes(metric, ample)
        bounds.run(500, best)
        assert bounds.lower == best
        bounds.certificate().check(metric, ample)


def test_separated_sets_are_violated():
    for seed in range(30):
        random = np.random.default_rng(seed)
        _, deliveries = larger(20, seed)
        u, v = np.triu_indices(20, 1)
        kept = random.random(len(u)) < 0.2
        point = Point.of(20, u[kept], v[kept], random.random(kept.sum()))
        sets = Sets(20, deliveries)
        for number in separate(sets, point, stream(1, "contractions")):
            members = sets.members[number]
            crossed = np.isin(point.u, members) != np.isin(point.v, members)
            assert point.x[crossed].sum() < 2 * -(-deliveries.demand[members].sum() // deliveries.capacity)


# ---- certificates ------------------------------------------------------------------------------------------


def random_values(random, sets, n, depot, places, width):
    pi = random.integers(-(60 << places), 120 << places, n)
    pi[depot] = 0
    used = np.flatnonzero(random.random(sets) < 0.5)
    return Values(pi, used, random.integers(-(30 << places), 60 << places, len(used)), width)


def test_no_values_prove_more_than_is_true():
    proved = 0
    for seed in range(300):
        metric, deliveries, best = solved(seed % 160)
        if best > 10**6:
            continue
        random, n, depot = np.random.default_rng(seed), metric.n, deliveries.depot
        customers, places = np.delete(np.arange(n), depot), int(random.integers(0, 4))
        sets = [customers, *(customers[random.random(n - 1) < 0.5] for _ in range(4))]
        sets = [each for each in sets if len(each)]
        near = neighbours(metric, depot, 3)

        def values(least=0, random=random, sets=sets, n=n, depot=depot, places=places, near=near):
            width = int(random.integers(least, near.shape[1] + 1))
            return random_values(random, len(sets), n, depot, places, width)

        whole = [replace(values(), width=0), *(values() for _ in range(int(random.integers(0, 3))))]
        left_out_by = int(best + random.integers(-best // 2 - 1, best + 2))
        splits = [((int(random.integers(0, len(sets))), int(random.integers(0, 3))), 1), None, None]
        divided = seed % 2
        given = [splits, [None, values(), values()]] if divided else []
        bound = RoutingBound.of(1, "drawn", places, sets, near, max(left_out_by, 1), whole, *given)
        with pytest.raises(BadCertificate):
            replace(bound, lower=best + 1).check(metric, deliveries)
        try:
            bound.check(metric, deliveries)
            proved += 1
        except BadCertificate:
            pass
    assert proved > 20


@cache
def certificates():
    """Proofs of all kinds, with their questions and the best length."""
    found = []
    for seed in (0, 5, 9, 12, 18, 31):
        metric, deliveries, best = solved(seed)
        bounds = finished(RoutingBounds(metric, deliveries), best)
        found.append((metric, deliveries, best, bounds.certificate()))
    for seed in range(40):
        metric, deliveries = larger(9, seed, 2)
        best = best_routes(metric, deliveries)
        bounds = RoutingBounds(metric, deliveries)
        while bounds.method != CASES and not bounds.done and bounds.lower < best + 1:
            bounds.run(1, best + 1)
            if bounds.method in (EDGES, ROUTES) and seed < 4 and bounds.lower <= best:
                found.append((metric, deliveries, best, bounds.certificate()))
        bounds.run(5, best + 1)
        if bounds.method == CASES:
            found.append((metric, deliveries, best, bounds.certificate()))
    return found[-60:]


FIELDS = ["set_ptr", "set_nodes", "near", "places", "left_out_by", "whole", "values", "splits"]


def damaged(proof, random):
    """A certificate with something changed, made longer or shorter, or left out."""
    proof = copy.deepcopy(proof)
    name = random.choice(
        ["set_ptr", "set_nodes", "near", "places", "left_out_by", "whole", "values", "splits"]
    )
    value = getattr(proof, name)
    if isinstance(value, np.ndarray):
        changed = damaged_array(value, random)
    elif name in ("places", "left_out_by"):
        changed = random.choice([None if name != "places" else 3, 0, 1, -1, 7, 19, 1 << 20, 1 << 40, 1 << 62])
        changed = changed if changed is None else int(changed)
    elif not len(value):
        changed = [proof.whole[0]] if name == "values" else [None]
    else:
        changed, at = list(value), int(random.integers(0, len(value)))
        if random.random() < 0.2:
            del changed[at]
        elif name == "splits":
            numbers = random.integers(-2, len(value) + 2, 3).tolist()
            changed[at] = None if random.random() < 0.2 else ((numbers[0], numbers[1]), numbers[2])
        elif changed[at] is None or random.random() < 0.1:
            changed[at] = proof.whole[0]
        else:
            field = random.choice(["pi", "sets", "y", "width"])
            inner = getattr(changed[at], field)
            new = int(random.integers(-1, 10)) if field == "width" else damaged_array(inner, random)
            changed[at] = replace(changed[at], **{field: new})
    return replace(proof, **{name: changed})


def damaged_array(array, random):
    array = array.copy()
    way = random.integers(0, 4)
    if way == 0 or not array.size:
        return np.append(array.reshape(-1), random.integers(0, 9)).astype(np.int64)
    if way == 1:
        return array[:-1]
    place = random.integers(0, array.size)
    large = int(random.choice([1 << 20, 1 << 45, 1 << 62, -(1 << 62), np.iinfo(np.int64).min]))
    array.reshape(-1)[place] = random.integers(-3, 12) if random.random() < 0.5 else large
    if way == 3:
        array.reshape(-1)[random.integers(0, array.size)] = random.integers(-1 << 20, 1 << 20)
    return array


def test_proofs_of_all_kinds():
    assert {proof.method for *_, proof in certificates()} >= {EDGES, ROUTES, CASES}
    for metric, deliveries, _, proof in certificates():
        proof.check(metric, deliveries)


@pytest.mark.filterwarnings("error")
def test_damaged_certificates_prove_nothing_untrue():
    assert refused_when_damaged(certificates(), 3000) > 1000


def refused_when_damaged(known, times):
    """How many of so many damaged certificates are refused; none proves more than the best routes."""
    refused = 0
    for seed in range(times):
        metric, deliveries, best, proof = known[seed % len(known)]
        proof = damaged(proof, np.random.default_rng(seed))
        with pytest.raises(BadCertificate) as error:
            replace(proof, lower=best + 1).check(metric, deliveries)
        # What the witness proves, if anything, does not depend on what the certificate says of it.
        told = re.search(r"the witness proves (-?\d+)", str(error.value))
        refused += proof.lower > 0 and (told is None or int(told[1]) < proof.lower)
    return refused


def test_more_than_is_proved_is_refused():
    for metric, deliveries, _, proof in certificates():
        with pytest.raises(BadCertificate):
            replace(proof, lower=proof.lower + 10**6).check(metric, deliveries)


# ---- routes in time ----------------------------------------------------------------------------------------


def test_bounds_in_time_are_below_the_best_routes():
    met, tried, methods = 0, 0, set()
    for seed in range(100):
        metric, deliveries, best = solved_in_time(seed)
        if best is None:
            continue
        for upper in (best, best + 1, 2 * best + 10):
            bounds = finished(RoutingBounds(metric, deliveries), upper)
            assert bounds.lower <= best, seed
            bounds.certificate().check(metric, deliveries)
            methods.add(bounds.method)
            tried += 1
            met += bounds.lower == best
    assert met > 0.95 * tried
    assert methods >= {EDGES, ROUTES, CASES}


@needs_kernels
@pytest.mark.parametrize("width", [1, 2, 5])
def test_routes_in_time_are_priced_the_same_by_all(width, monkeypatch):
    found = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        metric, deliveries = drawn_in_time(seed, 9)
        monkeypatch.setattr("app.bounds.routing.paths.TABLE", (1 << 24, 9 << (width + 2))[seed % 2])
        load, capacity = whole_loads(deliveries)
        near = neighbours(metric, deliveries.depot, width)
        u, v = np.triu_indices(9, 1)
        kept = random.random(len(u)) < 0.8
        u, v = u[kept], v[kept]
        worth = random.integers(0, 60, 9)
        cost = metric.between(u, v) - worth[u] - worth[v]
        told = []
        for compiled in (True, False):
            pricing = TimedPricing(near, load, capacity, metric, deliveries, compiled)
            pricing.use(u, v)
            priced = pricing.find(cost)
            told.append((priced, pricing.made, pricing.through(priced, cost)))
        (one, made, through), (other, of_other, of_slow) = told
        assert (one.routes, made) == (other.routes, of_other)
        assert np.array_equal(one.cost, other.cost)
        assert np.array_equal(one.loaded, other.loaded)
        assert np.array_equal(through, of_slow)
        coarse = coarse_for(9, near.shape[1], capacity)
        assert (coarse > 1) == (seed % 2 == 1)
        hours = positive_times(metric, deliveries)
        given = near, load // coarse, capacity // coarse, deliveries.depot
        paths, back = (
            TimedPaths(*given, each, u, v, cost) for each in (hours, hours.backwards(deliveries.depot))
        )
        assert min(paths.least, FAR) == one.least
        assert np.array_equal(np.minimum(paths.through(back), FAR), through)
        found += one.least < FAR
    assert found > 25


def test_with_all_neighbours_routes_in_time_visit_nobody_twice():
    """The least ng-route is then the least route of all that comes in time, by trying every one; what is told
    of the least one with an edge is at most that.
    """
    met = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        metric, deliveries = drawn_in_time(seed, 6)
        load, capacity = whole_loads(deliveries)
        u, v = np.triu_indices(6, 1)
        table = np.zeros((6, 6), dtype=np.int64)
        cost = random.integers(-50, 50, len(u))
        table[u, v] = table[v, u] = cost
        depot, times = deliveries.depot, deliveries.times
        best, with_edge = FAR, np.full((6, 6), FAR)
        for k in range(1, 6):
            for route in permutations(np.delete(np.arange(6), depot).tolist(), k):
                at, fits = (
                    int(times.opens[depot]),
                    deliveries.demand[list(route)].sum() <= deliveries.capacity,
                )
                for a, b in zip((depot, *route), (*route, depot)):
                    at = at + int(metric.matrix[a, b])
                    at = at if b == depot else max(at, int(times.opens[b]))
                    fits &= at <= times.closes[b]
                    at += int(times.service[b])
                if fits:
                    ways = (depot, *route), (*route, depot)
                    length = int(table[ways].sum())
                    best = min(best, length)
                    for a, b in (ways, ways[::-1]):
                        with_edge[a, b] = np.minimum(with_edge[a, b], length)
        near, hours = neighbours(metric, depot, 5), positive_times(metric, deliveries)
        given = near, load, capacity, depot
        paths, back = (TimedPaths(*given, each, u, v, cost) for each in (hours, hours.backwards(depot)))
        found, through = min(paths.least, FAR), np.minimum(paths.through(back), FAR)
        assert found == best or (hours.times > 1 and found <= best)
        assert (through <= with_edge[u, v]).all()
        met += (through == with_edge[u, v]).sum()
    assert met > 500


@needs_kernels
def test_without_kernels_the_bounds_in_time_are_the_same():
    for seed in (1, 3, 10, 13):
        metric, deliveries = drawn_in_time(seed, 9)
        deliveries = replace(deliveries, vehicles=0)
        fast, slow = (RoutingBounds(metric, deliveries, compiled=each) for each in (True, False))
        upper = 3 * int(metric.matrix[deliveries.depot].sum()) + 1
        for _ in range(80):
            fast.run(1, upper)
            slow.run(1, upper)
            assert (fast.lower, fast.method, fast.cases) == (slow.lower, slow.method, slow.cases)
            if fast.done:
                break


def proved_in_time():
    """Proofs of all kinds of routes in time, one by one, with their questions and the best length."""
    for seed in range(100):
        metric, deliveries, best = solved_in_time(seed)
        if best is None:
            continue
        bounds = finished(RoutingBounds(metric, deliveries), best + 1)
        if bounds.method in (ROUTES, CASES):
            yield metric, deliveries, best, bounds.certificate()


@pytest.mark.filterwarnings("error")
def test_damaged_certificates_in_time_prove_nothing_untrue():
    certificates = list(proved_in_time())
    assert {proof.method for *_, proof in certificates} >= {ROUTES, CASES}
    assert refused_when_damaged(certificates, 800) > 250


def test_too_many_paths_in_time_are_refused(monkeypatch):
    metric, deliveries, _, proof = next(each for each in proved_in_time() if each[3].method == ROUTES)
    monkeypatch.setattr(timed_paths, "MOST_LABELS", 0)
    with pytest.raises(BadCertificate, match="too many paths in time"):
        proof.check(metric, deliveries)


# ---- what calls it -----------------------------------------------------------------------------------------


def test_large_instances_have_a_bound_at_once():
    metric, deliveries = larger(7000, 1)
    bounds = RoutingBounds(metric, deliveries)
    assert not bounds.improve(10.0, 10**9)
    assert bounds.method == METHOD
    assert bounds.done
    assert bounds.lower > 0


def test_without_known_routes_it_waits():
    metric, deliveries = larger(30, 1)
    bounds = RoutingBounds(metric, deliveries)
    assert bounds.improve(5.0)
    assert bounds.lower == nearest_points(metric, deliveries).lower


def test_loads_beyond_memory_are_bounded_by_edges(monkeypatch):
    monkeypatch.setattr(routing_cutting, "MOST_TABLE", 100)
    metric, deliveries = larger(20, 1)
    bounds = RoutingBounds(metric, deliveries)
    bounds.run(500, length_of(np.zeros(20, dtype=np.int64), metric, deliveries))
    assert bounds.done
    assert bounds.method == EDGES
    bounds.certificate().check(metric, deliveries)


def test_one_customer_and_none():
    metric = explicit("two", np.array([[0, 7], [7, 0]]))
    bounds = RoutingBounds(metric, Deliveries(1, np.array([3, 0]), 3))
    bounds.improve(1.0, 14)
    assert bounds.lower == 14
    bounds.certificate().check(metric, bounds.deliveries)
    alone = RoutingBounds(explicit("one", np.zeros((1, 1))), Deliveries(0, np.zeros(1, dtype=np.int64), 1))
    assert not alone.improve(1.0, 0)
    assert alone.lower == 0
    alone.certificate().check(alone.metric, alone.deliveries)
