"""The 1-tree bound: below every tour, alike with and without kernels, proved from its weights alone."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from data import catalogue, data_dir, needs_data

from app.bounds.certificate import BadCertificate
from app.bounds.tour import ascent as tour_ascent
from app.bounds.tour import bounds as tour_bounds
from app.bounds.tour.ascent import (
    CandidateEdges,
    SparseAscent,
    plain_quadrants,
)
from app.bounds.tour.bounds import TourBounds
from app.bounds.tour.near_tree import NearTrees
from app.bounds.tour.one_tree import LARGEST_PI, METHOD, SCALE, OneTree, OneTrees, plain_one_tree, rounded_up
from app.bounds.tour.tree_check import minimum_tree_weight
from app.graphs.formats.source import Limits
from app.graphs.formats.tsplib import read_tsplib
from app.graphs.lengths import PLANE
from app.graphs.metric import Metric, explicit, from_points, uniform_points
from app.native import tour as native
from app.search.tour.search import TourSearch

pytestmark = pytest.mark.mpi_skip
needs_kernels = pytest.mark.skipif(not native.available(), reason="the kernels are not built")
PROBLEMS = [
    entry
    for entry in catalogue()
    if entry["path"].startswith("tsp/") and entry["format"] == "TSPLIB" and entry["nodes"] <= 450
]


def random_metric(n, seed, largest=100):
    half = np.triu(np.random.default_rng(seed).integers(0, largest, (n, n)), 1)
    return explicit(f"random{n}", half + half.T)


def shortest(metric):
    """The length of the best tour, every order tried."""
    cities = range(1, metric.n)
    return min(metric.length(np.array([0, *order])) for order in itertools.permutations(cities))


def lightest_one_tree(metric, pi, special):
    """The weight of a minimum 1-tree, every set of n edges tried."""
    n = metric.n
    edges = list(itertools.combinations(range(n), 2))
    weight = {e: SCALE * int(metric.matrix[e]) + int(pi[e[0]]) + int(pi[e[1]]) for e in edges}
    spokes = sorted(w for e, w in weight.items() if special in e)
    best = None
    for tree in itertools.combinations([e for e in edges if special not in e], n - 2):
        piece = list(range(n))
        for i, j in tree:
            piece = [piece[i] if p == piece[j] else p for p in piece]
        if len({p for i, p in enumerate(piece) if i != special}) == 1:
            total = sum(weight[e] for e in tree)
            best = total if best is None else min(best, total)
    return best + sum(spokes[:2])


@pytest.mark.parametrize("n", [3, 4, 5])
def test_minimum_one_tree(n):
    for seed in range(6):
        metric = random_metric(n, seed)
        pi = np.random.default_rng(seed).integers(-30 * SCALE, 30 * SCALE, n)
        for special in range(n):
            degree, parent = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
            weight = plain_one_tree(metric, pi, SCALE, special, degree, parent)
            assert weight == lightest_one_tree(metric, pi, special)
            assert degree.sum() == 2 * n and degree[special] == 2 and degree.min() >= 1


@needs_kernels
@pytest.mark.parametrize("n", [3, 4, 7, 40, 133])
def test_kernel_equals_plain(n):
    """Weights and degrees, on distances with many ties, from a table and from coordinates."""
    points = np.random.default_rng(n).integers(0, 12, (n, 2)).astype(np.float64)
    for kind in ("EUC_2D", "CEIL_2D", "FLOOR_2D", "ATT"):
        metric = from_points("grid", points, kind)
        for seed, m in enumerate((metric, Metric("bare", n, kind, metric.points, None))):
            pi = np.random.default_rng(seed).integers(-2 * SCALE, 2 * SCALE, n)
            fast, slow = OneTrees(m, seed % n), OneTrees(m, seed % n, compiled=False)
            assert fast.find(pi) == slow.find(pi)
            assert np.array_equal(fast.degree, slow.degree) and np.array_equal(fast.parent, slow.parent)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 7])
def test_below_the_optimum(n):
    closed = 0
    for seed in range(10 if n < 7 else 3):
        for metric in (random_metric(n, seed), uniform_points(n, seed)):
            bounds = TourBounds(metric)
            bounds.run(300)
            optimum = shortest(metric)
            assert bounds.lower <= optimum
            if bounds.done:
                assert bounds.lower == optimum
            closed += bounds.lower == optimum
            bounds.certificate().check(metric)
    assert closed


@needs_kernels
def test_ascent_with_and_without_kernels():
    metric = uniform_points(40, 1)
    fast, slow = TourBounds(metric), TourBounds(metric, compiled=False)
    for steps in (1, 10, 100):
        assert fast.run(steps) == slow.run(steps)
        assert fast.lower == slow.lower
        assert np.array_equal(fast.certificate().pi, slow.certificate().pi)


def test_bound_grows():
    metric = uniform_points(200, 1)
    bounds = TourBounds(metric)
    assert bounds.run(1)
    first = bounds.lower
    assert bounds.run(200) and bounds.lower > 1.1 * first
    assert not bounds.run(100, upper=bounds.lower)
    assert not bounds.improve(10.0, upper=bounds.lower)
    before = bounds.steps
    bounds.improve(0.0)
    assert bounds.steps == before + 1


def clustered(clusters, each, seed=1):
    """Points in clusters that lie a hundred times farther apart than their points."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(clusters, 1, 2)) * 1e5
    points = centres + random.normal(size=(clusters, each, 2)) * 500
    return from_points("clustered", np.round(points.reshape(-1, 2)))


def in_the_plane(n, kind, seed=0):
    """Points in a small square: many equal ones and many ties; then few."""
    largest = (2 + n // 8, 10**6)[seed % 2]
    return from_points(
        "grid", np.random.default_rng(n + seed).integers(0, largest, (n, 2)).astype(float), kind
    )


@needs_kernels
@pytest.mark.parametrize("kind", PLANE)
@pytest.mark.parametrize("n", [3, 4, 7, 20, 60, 133, 700])
def test_trees_of_near_points_are_those_of_all_edges(n, kind):
    """Value, and of equally light trees the same one with kernels and without; proved by independent code."""
    for seed in range(4):
        metric, special = in_the_plane(n, kind, seed), seed % n
        pi = np.random.default_rng(seed).integers(-2 * SCALE, 2 * SCALE, n) * (seed > 0)
        fast, slow = NearTrees(metric, special), NearTrees(metric, special, compiled=False)
        value = fast.find(pi)
        assert value == slow.find(pi) == OneTrees(metric, special).find(pi)
        assert np.array_equal(fast.tree, slow.tree) and np.array_equal(fast.degree, slow.degree)
        assert np.array_equal(fast.edges(pi), slow.edges(pi)) and len(fast.edges(pi)) == n
        assert np.array_equal(np.bincount(fast.edges(pi).ravel(), minlength=n), fast.degree)
        found = OneTree(rounded_up(value), METHOD, pi, special, fast.tree)
        found.check(metric)
        replace(found, tree=None).check(metric)


@needs_kernels
def test_equal_points_and_clusters_take_no_longer_than_others():
    """All pairs would be 4 10^8: a minute in NumPy."""
    n = 20_000
    for metric in (from_points("same", np.zeros((n, 2))), clustered(20, n // 20)):
        pi, trees = np.zeros(n, dtype=np.int64), NearTrees(metric, 0)
        OneTree(rounded_up(trees.find(pi)), METHOD, pi, 0, trees.tree).check(metric)
        assert native.quadrants(metric.points, 2).max() < n


@pytest.mark.parametrize("boxes", [1, 4])
def test_trees_that_are_not_the_lightest_prove_nothing(monkeypatch, boxes):
    """Every tree with one edge exchanged: refused, unless it is as light."""
    monkeypatch.setattr("app.bounds.tour.tree_check.BOX_POINTS", boxes)
    refused = 0
    for n, kind in itertools.product((5, 9, 40), PLANE):
        metric = in_the_plane(n, kind)
        random = np.random.default_rng(n)
        pi = random.integers(-SCALE, SCALE, n)
        trees = NearTrees(metric, 1, compiled=False)
        trees.find(pi)
        weight = minimum_tree_weight(metric, pi, 1, trees.tree, SCALE)
        others = np.delete(np.arange(n), 1)
        for _ in range(30):
            tree = trees.tree.copy()
            tree[random.integers(len(tree))] = random.choice(others, 2, replace=False)
            i, j = tree.T
            found = int((SCALE * metric.between(i, j) + pi[i] + pi[j]).sum())
            try:
                assert minimum_tree_weight(metric, pi, 1, tree, SCALE) == found == weight
            except BadCertificate:
                refused += 1
    assert refused > 100


def test_what_is_no_tree_proves_nothing():
    metric, pi = uniform_points(6, 1), np.zeros(6, dtype=np.int64)
    good = np.array([[1, 2], [2, 3], [3, 4], [4, 5]])
    cycle = np.array([[1, 2], [1, 2], [3, 4], [4, 5]])
    for wrong in (good[:3], good - 1, good + 1, cycle, good + 0.25, good * np.nan):
        with pytest.raises(BadCertificate, match="no spanning tree"):
            minimum_tree_weight(metric, pi, 0, wrong, SCALE)


def test_a_tree_proves_nothing_of_other_distances():
    """Of a table with points for display, the boxes of which are far apart where its distances are short."""
    at, pi = np.arange(64), np.zeros(64, dtype=np.int64)
    table = np.where(abs(at[:, None] - at) < 8, 100, 1)
    np.fill_diagonal(table, 0)
    chain = np.column_stack([at[1:-1], at[2:]])
    metric = explicit("table", table, np.column_stack([1e6 * at, 0 * at]))
    OneTree(64, METHOD, pi, 0).check(metric)
    with pytest.raises(BadCertificate, match="of kind EXPLICIT"):
        OneTree(6202, METHOD, pi, 0, chain).check(metric)


@pytest.mark.parametrize("sign", [-1, 1])
def test_sums_of_many_large_weights_are_exact(sign):
    """Sums that leave 63 bits prove no more than others: all points are equal, and so are their weights."""
    n = (1 << 18) + 9
    metric, pi = from_points("same", np.zeros((n, 2))), np.full(n, sign * LARGEST_PI)
    star = np.column_stack([np.ones(n - 2, dtype=np.int64), np.arange(2, n)])
    OneTree(0, METHOD, pi, 0, star).check(metric)


@pytest.mark.parametrize("n", [3, 40, 1200])
def test_a_tour_of_length_nothing_is_proved_best(n):
    metric = from_points("same", np.ones((n, 2)))
    for way in ("improve", "run"):
        bounds = TourBounds(metric)
        getattr(bounds, way)(1, 0)
        assert bounds.lower == 0 and bounds.method and bounds.steps == 1
        bounds.certificate().check(metric)


def test_what_takes_too_long_is_not_begun():
    """The first 1-tree of many points without kernels, or of a large table."""
    many = Metric("many", 200_000, "EUC_2D", np.zeros((200_000, 2)), None)
    for points, compiled in ((20, True), (2000, True), (2000, False)):
        assert TourBounds(uniform_points(points, 1), compiled).least_seconds < 1
    assert TourBounds(many, compiled=False).least_seconds > 600


@needs_kernels
def test_sparse_kernels_equal_plain():
    """On points with many ties and equal ones, in random weights."""
    for n, grid in ((3, 5), (5, 2), (60, 6), (133, 10**6)):
        points = np.random.default_rng(n).integers(0, grid, (n, 2)).astype(np.float64)
        assert np.array_equal(native.quadrants(points, 2), plain_quadrants(points, 2))
        metric = from_points("grid", points)
        trees = OneTrees(metric, 0)
        trees.find(np.zeros(n, dtype=np.int64))
        edges = trees.edges(np.zeros(n, dtype=np.int64))
        fast, slow = (CandidateEdges(metric, 0, edges, compiled) for compiled in (True, False))
        for seed in range(3):
            pi = np.random.default_rng(seed).integers(-2 * SCALE, 2 * SCALE, n)
            assert fast.find(pi) == slow.find(pi) >= trees.find(pi)
            assert np.array_equal(fast.degree, slow.degree) and np.array_equal(fast.parent, slow.parent)


def test_all_edges_as_candidates():
    metric = random_metric(20, 4)
    i, j = np.triu_indices(20, 1)
    edges = CandidateEdges(metric, 0, np.column_stack([i, j]), False)
    pi = np.random.default_rng(1).integers(-9 * SCALE, 9 * SCALE, 20)
    dense = OneTrees(metric, 0, compiled=False)
    assert edges.find(pi) == dense.find(pi) and np.array_equal(edges.degree, dense.degree)


@needs_kernels
def test_sparse_ascent_with_and_without_kernels():
    for metric in (clustered(8, 5), random_metric(30, 2)):
        fast, slow = SparseAscent(metric), SparseAscent(metric, compiled=False)
        for _ in range(150):
            fast.step(), slow.step()
        assert fast.lower == slow.lower and np.array_equal(fast.pi, slow.pi)
        fast.certificate().check(metric)


@needs_kernels
@pytest.mark.parametrize("kind", PLANE)
def test_points_numbered_along_a_curve(monkeypatch, kind):
    """The bound is about the caller's points, and hardly another one."""
    metric = in_the_plane(300, kind, 1)
    plain = SparseAscent(metric)
    monkeypatch.setattr(tour_ascent, "WORTH_ORDERING", 20)
    ordered = SparseAscent(metric)
    for _ in range(100):
        plain.step(), ordered.step()
    certificate = ordered.certificate()
    certificate.check(metric)
    assert certificate.special != 0 and np.array_equal(certificate.pi, ordered.pi)
    assert abs(ordered.lower - plain.lower) < 0.01 * plain.lower
    with pytest.raises(BadCertificate):  # its weights belong to these points in this order
        certificate.check(metric.restrict(np.arange(300)[::-1]))


@needs_kernels
def test_a_better_bound_is_there_after_few_steps():
    """Where a step takes a second, the first that is worth something cannot wait for a hundred."""
    metric = in_the_plane(2000, "EUC_2D", 1)
    ascent, lower = SparseAscent(metric), []
    for _ in range(60):
        ascent.step(), lower.append(ascent.lower)
    assert lower[14] > 1.03 * lower[0]
    assert lower[40] > lower[14]


@pytest.mark.long
@needs_kernels
def test_bound_of_clusters(monkeypatch):
    """Weights of whole clusters change together."""
    monkeypatch.setattr(tour_bounds, "DENSE_POINTS", 100)
    metric = clustered(30, 20)
    search = TourSearch(metric, 1)
    search.run(20_000)
    bounds = TourBounds(metric)
    bounds.run(1500, search.best)
    assert 0.8 * search.best < bounds.lower <= search.best
    bounds.certificate().check(metric)


@pytest.mark.parametrize("n", [200, 1000])
def test_equal_points(n):
    """All in one place, or in few: bounds are never negative, and soon found."""
    metric = from_points("same", np.zeros((n, 2)))
    bounds = TourBounds(metric)
    assert bounds.lower == 0 and bounds.method == ""
    bounds.run(20, 0)
    assert bounds.lower == 0
    bounds.run(20)
    bounds.certificate().check(metric)


def test_certificate_without_ascent():
    metric = uniform_points(20, 1)
    certificate = TourBounds(metric).certificate()
    assert certificate.lower > 0
    certificate.check(metric)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: {"lower": c.lower + 1}, "the witness proves"),
        (lambda c: {"pi": c.pi + np.arange(len(c.pi)) * 9 * SCALE}, "the witness proves"),
        (lambda c: {"pi": c.pi * 0}, "the witness proves"),
        (lambda c: {"pi": c.pi[:-1]}, "not every node"),
        (lambda c: {"pi": c.pi.astype(np.float64)}, "not every node"),
        (lambda c: {"pi": c.pi + (1 << 45)}, "a node weight beyond"),
        (lambda c: {"special": len(c.pi)}, "not every node"),
        (lambda c: {"special": -1}, "not every node"),
    ],
)
def test_wrong_claims(change, message):
    metric = uniform_points(60, 2)
    bounds = TourBounds(metric)
    bounds.run(100)
    certificate = bounds.certificate()
    certificate.check(metric)
    with pytest.raises(BadCertificate, match=message):
        replace(certificate, **change(certificate)).check(metric)


def test_claim_about_another_problem():
    certificate = TourBounds(uniform_points(60, 2)).certificate()
    with pytest.raises(BadCertificate):
        certificate.check(uniform_points(60, 3))


@needs_data
@pytest.mark.parametrize(
    "entry",
    [pytest.param(e, marks=[pytest.mark.long] * (e["nodes"] > 200)) for e in PROBLEMS],
    ids=lambda entry: entry["path"][4:-4],
)
def test_collection(entry):
    """Within 3 % of the optimum after 300 1-trees, and proved."""
    metric = read_tsplib(str(data_dir() / entry["path"]), Limits())
    bounds = TourBounds(metric)
    bounds.run(300, entry["best_value"])
    assert 0.97 * entry["best_value"] <= bounds.lower <= entry["best_value"]
    bounds.certificate().check(metric)
