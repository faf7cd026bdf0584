"""Branch and cut for tours: cuts hold for every tour, bounds below the best one, certificates prove them."""

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from data import catalogue, data_dir, needs_data

from app.bounds import highs
from app.bounds.certificate import BadCertificate
from app.bounds.highs import available
from app.bounds.tour.bounds import TourBounds
from app.bounds.tour.cases import CaseTree
from app.bounds.tour.cuts import Cuts, least
from app.bounds.tour.cutting import Cutting
from app.bounds.tour.lp import TourProgram, constant, pairs_below, places_for
from app.bounds.tour.one_tree import Ascent
from app.bounds.tour.proof import CutTree, Duals
from app.bounds.tour.separation import (
    ONE,
    Point,
    components,
    intervals,
    minimum_cuts,
    plain_cut_phases,
    plain_intervals,
    separate,
)
from app.graphs.formats.source import Limits
from app.graphs.formats.tsplib import read_tsplib
from app.graphs.metric import explicit, from_points, uniform_points
from app.native import tour as native
from app.search.tour.search import TourSearch

pytestmark = pytest.mark.mpi_skip
needs_kernels = pytest.mark.skipif(not native.available(), reason="the kernels are not built")
LARGE = 2**31 - 1
PROVED = ("bayg29", "swiss42", "att48", "eil51", "brazil58", "st70", "kroA100", "lin105", "ch150", "a280")
if not available():
    pytest.skip("highspy is not installed", allow_module_level=True)


@cache
def tours(n):
    """[tours, n] all orders that begin at 0, each way round."""
    return np.array([[0, *order] for order in itertools.permutations(range(1, n))])


def shortest(metric):
    """The length of the best tour, every order tried."""
    every = tours(metric.n)
    return int(metric.between(every, np.roll(every, -1, axis=1)).sum(axis=1).min())


def random_metric(n, seed, largest=100):
    half = np.triu(np.random.default_rng(seed).integers(0, largest, (n, n), endpoint=True), 1)
    return explicit(f"random{n}", half + half.T)


def random_cuts(n, seed, count=20):
    """Subtours and combs of random sets."""
    random, cuts = np.random.default_rng(seed), Cuts(n)
    for _ in range(count):
        cuts.subtour(random.permutation(n)[: random.integers(1, n)])
        order = random.permutation(n)
        teeth = 3
        size = random.integers(teeth, n - teeth + 1)
        handle, rest = order[:size], order[size:]
        inside = np.array_split(random.permutation(handle), teeth)
        outside = np.array_split(random.permutation(rest), teeth)
        cuts.comb(
            handle,
            [np.append(a[: random.integers(1, len(a) + 1)], b[: random.integers(1, len(b) + 1)])
             for a, b in zip(inside, outside)],
        )  # fmt: skip
    return cuts


def random_duals(cuts, places, seed, largest=100):
    random = np.random.default_rng(seed)
    used = np.flatnonzero(random.random(len(cuts.cuts)) < 0.5)
    y = random.integers(1, largest << places, len(used))
    return Duals(random.integers(-largest << places, largest << places, cuts.n), used, y)


def all_edges(n):
    return np.triu_indices(n, 1)


def leaves(cuts, cut, i, j):
    """How many of a cut's sets the edge i-j leaves, set by set."""
    return sum((i in cuts.members[number]) != (j in cuts.members[number]) for number in cuts.cuts[cut])


def cutting_of(metric, upper, order=None, steps=20):
    ascent = Ascent(metric)
    for _ in range(steps):
        ascent.step()
    return Cutting(metric, ascent.pi, upper, order)


# ---- cuts


@pytest.mark.parametrize("n", [6, 7, 8])
def test_every_tour_satisfies_every_cut(n):
    cuts, every = random_cuts(n, n), tours(n)
    met = 0
    for number, cut in enumerate(cuts.cuts):
        inside = np.array([np.isin(every, cuts.members[k]) for k in cut])
        crossed = (inside != np.roll(inside, -1, axis=2)).sum(axis=(0, 2))
        assert crossed.min() >= least(cut), number
        met += crossed.min() == least(cut)
    assert met > len(cuts.cuts) // 2  # and most of them are tight


def test_left_sides():
    n, random = 9, np.random.default_rng(3)
    cuts, (u, v) = random_cuts(n, 1), all_edges(n)
    x = random.random(len(u))
    found = cuts.coefficients(range(len(cuts.cuts)), u, v).toarray()
    excess = cuts.excess(cuts.boundary(u, v, x))
    for cut in range(len(cuts.cuts)):
        naive = np.array([leaves(cuts, cut, i, j) for i, j in zip(u, v)])
        assert np.array_equal(found[cut], naive)
        assert excess[cut] == pytest.approx(naive @ x - least(cuts.cuts[cut]))


def test_cuts_are_kept_once():
    cuts = Cuts(10)
    assert cuts.subtour(np.array([3, 1])) == cuts.subtour(np.array([1, 3]))
    assert cuts.subtour(np.arange(2, 10)) == cuts.subtour(np.array([0, 1]))  # the other side
    teeth = [np.array([0, 5]), np.array([1, 6]), np.array([2, 7])]
    assert cuts.comb(np.arange(3), teeth) == cuts.comb(np.arange(3), teeth[::-1])
    assert len(cuts.cuts) == 3


# ---- bounds of dual values


@pytest.mark.parametrize("seed", range(6))
def test_any_duals_prove_a_bound(seed):
    """Whatever the values are; all reduced costs by definition."""
    n = 7
    metric, cuts = random_metric(n, seed), random_cuts(n, seed)
    places = places_for(metric)
    duals = random_duals(cuts, places, seed, 20)
    reduced, bound = {}, constant(cuts, duals)
    for i, j in zip(*all_edges(n)):
        r = (int(metric.matrix[i, j]) << places) - int(duals.pi[i] + duals.pi[j])
        r -= sum(y * leaves(cuts, cut, i, j) for cut, y in zip(duals.cuts.tolist(), duals.y.tolist()))
        reduced[int(i), int(j)] = r
        bound += min(0, r)
    for most in (0, 30 << places):
        found = {}
        for i, j, r in pairs_below(metric, cuts, duals, most):
            found.update(zip(zip(i.tolist(), j.tolist()), r.tolist()))
        assert found == {edge: r for edge, r in reduced.items() if r <= most}
    length = -(-bound >> places)
    assert length <= shortest(metric)
    certificate = CutTree.of(length, "values", places, cuts, duals)
    certificate.check(metric)
    with pytest.raises(BadCertificate, match="the witness proves"):
        replace(certificate, lower=length + 1).check(metric)


def test_values_of_the_largest_distances():
    metric = random_metric(7, 5, LARGE)
    cutting = cutting_of(metric, shortest(metric))
    while not cutting.done:
        cutting.step()
    assert cutting.lower == shortest(metric)
    cutting.certificate().check(metric)


# ---- separation


def fractional_point(n, seed):
    """The optimum over the degree equations alone, of random distances."""
    metric = random_metric(n, seed)
    program = TourProgram(metric, Cuts(n), np.column_stack(all_edges(n)))
    assert program.solve()
    return Point.of(n, program.u, program.v, program.x)


def entered(point, members):
    inside = np.isin(np.arange(point.n), members)
    return point.x[inside[point.u] != inside[point.v]].sum()


@pytest.mark.parametrize("seed", range(30))
def test_separation_finds_only_what_is_violated(seed):
    n = 10
    point, cuts = fractional_point(n, seed), Cuts(n)
    found, _ = separate(cuts, point, np.random.default_rng(seed).permutation(n), np.random.default_rng(0))
    excess = cuts.excess(cuts.boundary(point.u, point.v, point.x))
    assert (excess[found] < 0).all()
    sets = [
        members for size in range(2, n - 1) for members in itertools.combinations(range(n), size)
        if entered(point, members) < 2 - 0.05
    ]  # fmt: skip
    assert bool(sets) <= bool(found)  # no set is overlooked where one is violated
    assert bool(sets) == bool(components(point) or minimum_cuts(point))


def test_intervals():
    """Two triangles side by side in the order, joined by little."""
    u, v = np.array([0, 0, 1, 3, 3, 4, 2]), np.array([1, 2, 2, 4, 5, 5, 3])
    point = Point(6, u, v, np.array([1.0, 0.9, 0.9, 1, 0.9, 0.9, 0.2]))
    order = np.arange(6)
    assert sorted(min(interval) for interval in intervals(point, order)) == [0, 3]
    assert intervals(point, np.array([0, 3, 1, 4, 2, 5])) == []


@needs_kernels
@pytest.mark.parametrize("n", [3, 4, 5, 17, 64, 65, 200])
def test_separation_with_and_without_kernels(n):
    """Values with many ties, and any."""
    for seed in range(6):
        random = np.random.default_rng(seed)
        u, v = all_edges(n)
        kept = random.random(len(u)) < min(1, 4 / n)
        u, v = u[kept], v[kept]
        x = random.choice([0.5, 1.0, 0.25], len(u)) if seed % 2 else random.random(len(u))
        start = np.searchsorted(u, np.arange(n + 1)).astype(np.int64)
        weight = np.rint(x * ONE).astype(np.int64)
        for a, b in zip(
            *(f(start, v.astype(np.int32), weight, ONE) for f in (native.intervals, plain_intervals))
        ):
            assert np.array_equal(a, b)
        joined = np.zeros((n, n))
        joined[u, v] = joined[v, u] = x
        for a, b in zip(*(f(joined.copy()) for f in (native.cut_phases, plain_cut_phases))):
            assert np.array_equal(a, b)


def test_intervals_are_the_best_ones():
    """Every interval tried."""
    n, random = 9, np.random.default_rng(4)
    u, v = all_edges(n)
    weight = random.integers(0, 5, len(u))
    start = np.searchsorted(u, np.arange(n + 1)).astype(np.int64)
    excess, end = plain_intervals(start, v.astype(np.int32), weight, 4)
    for i in range(n - 1):
        of = {j: weight[(u >= i) & (v <= j)].sum() - 4 * (j - i) for j in range(i + 1, n) if j - i < n - 1}
        assert excess[i] == max(of.values()) == of[int(end[i])]


def test_a_comb_is_found():
    """Two fractional triangles joined by three edges of value 1: no set is entered less than twice."""
    u, v = np.array([0, 0, 1, 3, 3, 4, 0, 1, 2]), np.array([1, 2, 2, 4, 5, 5, 3, 4, 5])
    point, cuts = Point(6, u, v, np.array([0.5] * 6 + [1.0] * 3)), Cuts(6)
    assert not components(point) and not minimum_cuts(point)
    found, _ = separate(cuts, point, None, np.random.default_rng(0))
    assert [len(cuts.cuts[cut]) for cut in found] and all(len(cuts.cuts[cut]) == 4 for cut in found)


def test_a_comb_of_contracted_sets_is_found():
    """As before, each tooth a path of three cities, two of them in fractional triangles of their own."""
    hops = [(0, 1, 0.5), (0, 2, 0.5), (1, 2, 0.5), (3, 4, 0.5), (3, 5, 0.5), (4, 5, 0.5)]
    hops += [(0, 6, 1.0), (6, 3, 1.0), (1, 7, 1.0), (7, 4, 1.0), (2, 8, 1.0), (8, 5, 1.0)]
    u, v, x = (np.array(each) for each in zip(*[(min(a, b), max(a, b), value) for a, b, value in hops]))
    point, cuts = Point(9, u, v, x), Cuts(9)
    found, _ = separate(cuts, point, None, np.random.default_rng(0))
    assert found and (cuts.excess(cuts.boundary(u, v, x))[found] < 0).all()


# ---- the course


@pytest.mark.parametrize("n", [5, 6, 7, 8])
def test_the_optimum_is_proved(n):
    """Whatever tour is known: the bound ends at the optimum or, where that is longer, at the known length."""
    for seed in range(8):
        metric = random_metric(n, seed) if seed % 2 else uniform_points(n, seed)
        optimum = shortest(metric)
        for upper in (optimum, optimum + 7, max(1, optimum - 5)):
            cutting, before = cutting_of(metric, upper), 0
            while not cutting.done:
                cutting.step()
                assert before <= cutting.lower <= min(optimum, upper)
                before = cutting.lower
                if cutting.method:
                    cutting.certificate().check(metric)
            assert cutting.lower == min(upper, optimum)


def any_metric(seed):
    """5 to 8 cities: a table of small or the largest distances, points, points with ties, clusters."""
    random = np.random.default_rng(seed)
    n = int(random.integers(5, 9))
    centres = random.normal(size=(3, 1, 2)) * 1e6
    clusters = (centres + random.normal(size=(3, 3, 2)) * 100).reshape(-1, 2)
    return [
        lambda: random_metric(n, seed, int(random.integers(1, 200))),
        lambda: random_metric(n, seed, LARGE),
        lambda: uniform_points(n, seed),
        lambda: from_points("grid", random.integers(0, 4, (n, 2)).astype(float)),
        lambda: from_points("clusters", np.round(clusters[:n])),
    ][seed % 5]()


def prove(seed):
    """The whole course of a small problem, checked at every step."""
    random, metric, before = np.random.default_rng(seed), any_metric(seed), 0
    optimum = shortest(metric)
    upper = int(max(1, optimum + random.choice([0, 1, 5, optimum // 3, -2])))
    order = random.permutation(metric.n) if random.integers(2) else None
    cutting = cutting_of(metric, upper, order, int(random.integers(1, 60)))
    while not cutting.done:
        cutting.step()
        assert before <= cutting.lower <= min(optimum, upper)
        before = cutting.lower
    assert cutting.lower == min(optimum, upper)
    cutting.certificate().check(metric)
    if cutting.tour is not None:
        assert sorted(cutting.tour.tolist()) == list(range(metric.n))
        assert metric.length(cutting.tour) >= optimum


@pytest.mark.parametrize("first", range(0, 200, 40))
def test_small_problems_of_all_kinds(first):
    for seed in range(first, first + 40):
        prove(seed)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_many_small_problems_of_all_kinds():
    for seed in range(200, 6600):
        prove(seed)


def test_cases_are_divided_and_proved():
    """Points whose programs have gaps, and distances of few values with many best tours."""
    divided = 0
    for seed in range(12):
        metric = random_metric(24, seed, 8) if seed % 2 else uniform_points(60, seed // 2)
        search = TourSearch(metric, 1)
        search.run(4000)
        cutting, before = cutting_of(metric, search.best + seed % 3), 0
        while not cutting.done:
            cutting.step()
            assert before <= cutting.lower <= search.best
            before = cutting.lower
        divided += cutting.cases > 1
        assert cutting.lower == search.best
        cutting.certificate().check(metric)
    assert divided > 2


def test_a_better_tour_turns_up_on_the_way():
    metric = uniform_points(60, 3)
    search = TourSearch(metric, 1)
    search.run(4000)
    cutting = cutting_of(metric, search.best * 11 // 10)
    for step in itertools.count():
        if cutting.done:
            break
        if step > 30:
            cutting.know(search.best, search.solution())
        cutting.step()
    assert cutting.lower == search.best
    cutting.certificate().check(metric)


def test_a_program_without_a_point_proves_as_much_as_is_asked():
    """Three edges at one city, or a subtour of three: the duals grow for ever."""
    metric = uniform_points(12, 1)
    search = TourSearch(metric, 1)
    search.run(2000)
    cutting = cutting_of(metric, search.best)
    while cutting._root is None:
        cutting.step()
    cases = CaseTree(cutting.shared, np.column_stack(all_edges(12)), cutting._root, cutting._program)
    program = cases._program
    program.add_edges(np.column_stack(all_edges(12)))
    program.add_rows([cutting.shared.cuts.subtour(np.arange(3))])
    assert program.solve()
    column = {edge: k for k, edge in enumerate(zip(program.u.tolist(), program.v.tolist()))}
    for fixed in ([(0, 1), (0, 2), (0, 3)], [(0, 1), (0, 2), (1, 2)]):
        program.fix({column[edge]: 1 for edge in fixed})
        assert not program.solve()
        case = replace(cases._open[0], fixed=dict.fromkeys(fixed, 1))
        (bound, duals), _ = cases._without_point(case, (case.bound, case.duals))
        assert cases._is_closed(bound) and (duals.y >= 0).all()


def test_no_edge_is_left():
    """Nothing can be shorter, and the program of the cases has no point."""
    metric = uniform_points(12, 1)
    search = TourSearch(metric, 1)
    search.run(2000)
    cutting = cutting_of(metric, search.best)
    while cutting._root is None:
        cutting.step()
    nothing = np.zeros((0, 2), dtype=np.int64)
    cases = CaseTree(cutting.shared, nothing, cutting._root, cutting._program)
    for _ in cases.work():
        pass
    assert cases.lower == search.best


def test_bounds_take_up_cutting_planes():
    metric = uniform_points(40, 7)
    search = TourSearch(metric, 1)
    search.run(3000)
    bounds = TourBounds(metric)
    bounds.run(500)
    assert bounds.method == "Held-Karp 1-trees" and not bounds.closing
    bounds.know(search.solution())
    bounds.run(1, search.best)
    assert bounds.closing or bounds.lower == search.best
    bounds.run(3000, search.best)
    assert bounds.lower == search.best and bounds.certificate().method == bounds.method
    assert not bounds.closing
    bounds.certificate().check(metric)


def test_slices_decide_nothing():
    metric = uniform_points(50, 4)
    search = TourSearch(metric, 1)
    search.run(3000)
    one, many = TourBounds(metric), TourBounds(metric)
    for bounds in (one, many):
        bounds.know(search.solution())
    one.run(210, search.best)
    for _ in range(70):
        many.run(3, search.best)
    assert (one.lower, one.method, one.steps) == (many.lower, many.method, many.steps)


def test_without_highs_the_bound_is_that_of_one_trees(monkeypatch):
    monkeypatch.setattr(highs, "available", lambda: False)
    metric = uniform_points(40, 7)
    bounds = TourBounds(metric)
    bounds.run(400, 10**9)
    assert bounds.method == "Held-Karp 1-trees" and bounds.lower > 0
    bounds.certificate().check(metric)


def test_a_shorter_tour_is_found_by_the_program():
    """Known is the length of a poor tour alone."""
    for seed in range(3):
        metric = uniform_points(60, seed)
        search = TourSearch(metric, 1)
        search.run(4000)
        bounds = TourBounds(metric)
        upper = metric.length(np.arange(60))
        bounds.run(5000, upper)
        assert bounds.done and bounds.lower == search.best
        assert metric.length(bounds.optimum) == search.best and len(set(bounds.optimum.tolist())) == 60
        bounds.certificate().check(metric)


@pytest.mark.parametrize("n", [5, 8, 60])
def test_equal_points(n):
    """All in one place, or in two."""
    for points in (np.zeros((n, 2)), np.repeat([[0.0, 0.0], [10.0, 0.0]], (n // 2, n - n // 2), axis=0)):
        metric = from_points("same", points)
        length = metric.length(np.arange(n))
        bounds = TourBounds(metric)
        bounds.run(2000, length)
        assert bounds.lower == length
        bounds.certificate().check(metric)


# ---- what proves nothing


@cache
def a_tree():
    """A metric and a certificate with cases, combs and subtours."""
    for seed in itertools.count():
        metric = uniform_points(60, seed)
        search = TourSearch(metric, 1)
        search.run(4000)
        cutting = cutting_of(metric, search.best)
        while not cutting.done:
            cutting.step()
        if cutting.cases > 3 and any(len(cut) > 1 for cut in cutting.shared.cuts.cuts):
            return metric, cutting.certificate()


def with_entry(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def first_leaf(certificate):
    return next(number for number, duals in enumerate(certificate.values) if duals is not None)


def with_leaf(certificate, **change):
    values, number = list(certificate.values), first_leaf(certificate)
    values[number] = replace(values[number], **change) if change else None
    return {"values": values}


def with_split(certificate, split):
    splits = list(certificate.splits)
    splits[0] = split(splits[0])
    return {"splits": splits}


def a_comb(c):
    return int(np.flatnonzero(np.diff(c.cut_ptr) > 1)[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: {"lower": c.lower + 1}, "the witness proves"),
        (lambda c: {"left_out_by": c.left_out_by + 3, "lower": c.lower + 1}, "the witness proves"),
        (lambda c: {"root": replace(c.root, pi=c.root.pi * 0)}, "the witness proves"),
        (lambda c: {"root": replace(c.root, pi=c.root.pi[1:])}, "not every city"),
        (lambda c: {"root": replace(c.root, pi=c.root.pi.astype(float))}, "not every city"),
        (lambda c: {"root": replace(c.root, pi=c.root.pi + (1 << 53))}, "a city's value beyond"),
        (lambda c: {"root": replace(c.root, y=-c.root.y)}, "negative value"),
        (lambda c: {"root": replace(c.root, y=c.root.y << 40)}, "too much"),
        (lambda c: {"root": replace(c.root, cuts=c.root.cuts + 10**6)}, "unknown cut"),
        (lambda c: {"root": replace(c.root, cuts=c.root.cuts - 10**6)}, "unknown cut"),
        (lambda c: {"places": 60}, "multiples"),
        (lambda c: {"places": -1}, "multiples"),
        (lambda c: with_leaf(c, pi=c.root.pi * 0), "the witness proves"),
        (lambda c: with_leaf(c), "without values"),
        (lambda c: with_leaf(c, pi=c.root.pi[2:]), "not every city"),
        (lambda c: with_split(c, lambda split: (split[0], 0)), "no two cases below it"),
        (lambda c: with_split(c, lambda split: (split[0], len(c.splits) - 1)), "no two cases below it"),
        (lambda c: with_split(c, lambda split: ((5, 5), split[1])), "no two cases below it"),
        (lambda c: with_split(c, lambda split: (split[0][::-1], split[1])), "no two cases below it"),
        (lambda c: {"set_nodes": with_entry(c.set_nodes, 0, 60)}, "unknown entries"),
        (lambda c: {"set_nodes": with_entry(c.set_nodes, 0, -1)}, "unknown entries"),
        (lambda c: {"set_nodes": with_entry(c.set_nodes, 1, c.set_nodes[0])}, "a city twice"),
        (lambda c: {"set_ptr": with_entry(c.set_ptr, 1, 0)}, "an empty set"),
        (lambda c: {"cut_ptr": with_entry(c.cut_ptr, 1, 0)}, "an empty cut"),
        (lambda c: {"cut_sets": with_entry(c.cut_sets, 0, 10**6)}, "unknown entries"),
        (
            lambda c: {"cut_sets": with_entry(
                c.cut_sets, c.cut_ptr[a_comb(c)] + 1, c.cut_sets[c.cut_ptr[a_comb(c)] + 2]
            )},
            "is no comb",
        ),
        (
            lambda c: {"cut_sets": with_entry(
                c.cut_sets, c.cut_ptr[a_comb(c)], c.cut_sets[c.cut_ptr[a_comb(c)] + 1]
            )},
            "is no comb",
        ),
    ],
)  # fmt: skip
def test_wrong_claims(change, message):
    metric, certificate = a_tree()
    certificate.check(metric)
    with pytest.raises(BadCertificate, match=message):
        replace(certificate, **change(certificate)).check(metric)


def test_a_claim_about_other_distances():
    metric, certificate = a_tree()
    shorter = explicit("shorter", np.maximum(metric.matrix - 100, 0))
    with pytest.raises(BadCertificate):
        certificate.check(shorter)


def test_changed_distances_never_prove_too_much():
    """A certificate of other distances is refused, or its claim is true of them."""
    optimum = shortest(metric := random_metric(8, 2))
    cutting = cutting_of(metric, optimum)
    while not cutting.done:
        cutting.step()
    certificate, refused = cutting.certificate(), 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        half = np.triu(random.integers(-6, 7, (8, 8)), 1)
        other = explicit("other", np.maximum(metric.matrix + half + half.T, 0))
        try:
            certificate.check(other)
            assert certificate.lower <= shortest(other)
        except BadCertificate:
            refused += 1
    assert refused > 10


# ---- real problems


@needs_data
@pytest.mark.parametrize("name", [*PROVED, pytest.param("lin318", marks=pytest.mark.long)])
def test_proved_optima(name):
    entry = next(entry for entry in catalogue() if entry["path"] == f"tsp/{name}.tsp")
    metric = read_tsplib(str(data_dir() / entry["path"]), Limits())
    search = TourSearch(metric, 1)
    while search.best > entry["best_value"]:
        search.run(2000)
    bounds = TourBounds(metric)
    bounds.know(search.solution())
    bounds.run(5000, entry["best_value"])
    assert bounds.lower == entry["best_value"]
    bounds.certificate().check(metric)
