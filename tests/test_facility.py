"""Facility location: against all choices, kernels against their twins, damaged proofs, what is refused."""

import csv
import itertools
import json
import sys
import tracemalloc
from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from jobs import ROOT, mpirun, run_job
from mpi4py import MPI
from scipy.sparse.csgraph import dijkstra

import app.graphs.facility
import app.graphs.facility_points
from app import check, solve, stopping
from app.bounds.certificate import BadCertificate
from app.bounds.facility.bounds import LateBounds, ListBounds, RadiusBounds, SumBounds
from app.bounds.facility.covering import CoverCases, Pool
from app.bounds.facility.dual import Cases
from app.bounds.facility.lists import ListCases
from app.bounds.facility.packing import CoverPacking
from app.bounds.facility.reach import ListReach
from app.bounds.facility.witness import CenterBound, FacilityBound, reduced_costs, unit_of
from app.errors import CaseError, GraphError
from app.graphs.facility import Demands, Distances, Sites, alike, counted, question_of
from app.graphs.facility_lists import lists_of
from app.graphs.facility_network import _walk, along_walk, by_ring, question_of_network
from app.graphs.facility_points import PointSites, along, along_curve, farthest_points_first
from app.graphs.graph import from_edges
from app.graphs.metric import explicit, from_points
from app.proofs.archive import from_bytes, to_bytes
from app.search.facility import network_plain, points_plain
from app.search.facility.baselines import farthest_first, greedy, random_order
from app.search.facility.network import OWN as NETWORK_NUMBERS
from app.search.facility.network import NetworkSearch, farthest_nodes_first
from app.search.facility.points import OWN as POINT_NUMBERS
from app.search.facility.points import PointSearch
from app.search.facility.search import ARRAYS, NUMBERS, CenterSearch, FacilitySearch, available

MEDIAN, CENTER, FREE = "median", "center", "uncapacitated"
KINDS = (MEDIAN, CENTER, FREE)
QUICK = {"search.steps": 2000, "search.bound_seconds": 2.0, "output.certificates": True}
alone = pytest.mark.mpi_skip


def keys_of(kind, most, **more):
    own = {"problem.facility": kind} | ({} if kind == FREE else {"problem.budget": most})
    return QUICK | own | more


def drawn(seed, source):
    """A small instance: what `solve` takes, and distances [n, n] from the row to the facility, without a path
    infinite; demands and costs, of which some are 0.
    """
    draws = np.random.default_rng(seed)
    n = int(draws.integers(3, 10))
    if source == "graph":  # some lengths are 0, some are decimals, some nodes are apart
        graph = nx.gnp_random_graph(n, 0.5, seed=seed)
        for u, v in graph.edges:
            graph[u][v]["weight"] = float(draws.integers(0, 9)) / (4 if seed % 2 else 1)
        away = np.full((n, n), np.inf)
        for u, lengths in nx.all_pairs_dijkstra_path_length(graph):
            away[u, list(lengths)] = list(lengths.values())
        given = graph
    elif source == "points":
        given = draws.integers(0, 50, (n, 2))
        away = np.rint(np.linalg.norm(given[:, None] - given[None], axis=2))
    else:
        given = draws.integers(1, 40, (n, n))
        given = given if source == "directed" else given + given.T
        np.fill_diagonal(given, 0)
        away = given.astype(float)
    return given, away, draws.integers(0, 6, n), draws.integers(0, 30, n)


def worth(kind, away, demands, fees, chosen):
    """The value of a mask [n] of facilities, by its definition."""
    needed = demands > 0
    if not needed.any():
        return fees[chosen].sum() if kind == FREE else 0
    if not chosen.any():
        return np.inf
    costs = away[needed][:, chosen].min(axis=1) * demands[needed]
    return costs.max() if kind == CENTER else costs.sum() + (fees[chosen].sum() if kind == FREE else 0)


def least(kind, most, *instance, asked=None):
    """The least value of all choices of at most `most` facilities, of those that `asked` has."""
    choices = np.array(list(itertools.product([False, True], repeat=len(instance[0]))), dtype=bool)
    choices = choices if asked is None else choices[asked(choices)]
    return min(worth(kind, *instance, each) for each in choices if kind == FREE or each.sum() <= most)


def answered(kind, most, given, demands, fees, **more):
    fees = {"node_weights": fees.tolist()} if kind == FREE else {}
    return solve(given, "facility", demands=demands.tolist(), settings=keys_of(kind, most), **fees, **more)


def pmed(n, most, seed, kind=MEDIAN):
    """Sites of a random graph as those of OR-Library's p-median files (Beasley 1985)."""
    graph = nx.gnm_random_graph(n, n * n // 50 + n, seed=seed)
    edges, draws = np.array(graph.edges), np.random.default_rng(seed)
    lengths = draws.integers(1, 101, len(edges)).astype(np.float32)
    distances = Distances(from_edges(n, edges[:, 0], edges[:, 1], lengths, "pmed"), None, True)
    fees = Demands(draws.integers(20, 300, n), Fraction(1)) if kind == FREE else None
    none = np.zeros(n, dtype=bool)
    inside = np.arange(seed % 2)
    return question_of(
        "pmed", kind, distances, alike(n), fees, n if kind == FREE else most, inside, none, 1e9
    ).sites  # fmt: skip


# ---- answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["graph", "points", "matrix", "directed"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_of_all_choices(kind, source):
    for seed in range(6):
        given, *instance = drawn(seed, source)
        most = 1 + seed % 3
        best = least(kind, most, *instance)
        if np.isinf(best):
            with pytest.raises(CaseError, match="no path leads from node"):
                answered(kind, most, given, *instance[1:])
            continue
        found = answered(kind, most, given, *instance[1:])
        chosen = np.isin(np.arange(len(instance[0])), found.nodes)
        assert found.objective == found.bound == best == worth(kind, *instance, chosen), (seed, best)
        assert found.bound_verified and found.optimal
        assert all(value >= best for value in found.baselines.values() if value is not None)
        for node, facility in found.assignment.items():
            assert facility is None or instance[0][node, facility] == instance[0][node, chosen].min()


@alone
@pytest.mark.parametrize("kind", KINDS)
def test_nodes_that_must_be_and_may_not_be_facilities(kind):
    for seed in range(4):
        given, *instance = drawn(seed + 40, "matrix")
        found = answered(kind, 2, given, *instance[1:], inside=[1], outside=[0, 2])
        best = least(kind, 2, *instance, asked=lambda c: c[:, 1] & ~c[:, 0] & ~c[:, 2])
        assert 1 in found.nodes and not {0, 2} & set(found.nodes)
        assert found.objective == found.bound == best
        assert found.bound_verified


@alone
def test_decimals_of_lengths_demands_and_costs():
    graph = nx.Graph([("a", "b", {"weight": 0.1}), ("b", "c", {"weight": 2.25}), ("c", "d", {"weight": 0.3})])
    found = solve(
        graph, "facility", demands={"a": 1, "b": 0.5, "c": 3, "d": 1.5}, node_weights=[0.75, 1, 0.8, 9],
        settings=keys_of(FREE, 0),
    )  # fmt: skip
    assert sorted(found.nodes) == ["a", "c"]
    assert found.objective == found.bound == 2.05 and found.assignment["d"] == "c"
    third = np.array([1 / 3, 2 / 3, 0.1234567891], dtype=np.float32)
    numbers, unit = counted(third, "lengths", 1 << 34)
    assert np.allclose(numbers * float(unit), third, rtol=1e-8)


@alone
def test_weights_of_nodes_are_demands_of_medians():
    path = nx.path_graph(5)
    found = solve(path, "facility", node_weights=[9, 1, 1, 1, 1], settings=keys_of(MEDIAN, 1))
    assert found.nodes == [0] and found.objective == found.bound == 10
    with pytest.raises(CaseError, match=r"weights of nodes, which are demands, beside graph\.demands"):
        solve(path, "facility", node_weights=[1] * 5, demands=[1] * 5, settings=keys_of(MEDIAN, 1))


@alone
def test_weights_of_a_networkx_graph():
    path = nx.path_graph(5)
    nx.set_node_attributes(path, {0: 9, 1: 1, 2: 1, 3: 1, 4: 1}, "weight")
    assert solve(path, "facility", settings=keys_of(MEDIAN, 1)).nodes == [0]
    fees = dict.fromkeys(path, 1) | {3: 0}
    assert solve(path, "facility", node_weights=fees, settings=keys_of(FREE, 0)).objective == 4
    twice = nx.MultiGraph([(0, 1, {"weight": 2}), (0, 1, {"weight": 5}), (1, 2, {"weight": 1})])
    with pytest.warns(UserWarning, match="of parallel edges the one of largest weight counts; the shortest"):
        assert solve(twice, "facility", settings=keys_of(MEDIAN, 1)).objective == 6


@alone
def test_lengths_of_many_digits_beside_demands_and_costs():
    """Costs are rounded to the unit of lengths where that is as fine as they are."""
    draws = np.random.default_rng(1)
    graph = nx.random_geometric_graph(20, 0.4, seed=1)
    for u, v in graph.edges:
        graph[u][v]["weight"] = float(np.hypot(*np.subtract(graph.nodes[u]["pos"], graph.nodes[v]["pos"])))
    fees = draws.random(20)
    found = solve(graph, "facility", node_weights=fees.tolist(), settings=keys_of(FREE, 0))
    paths = dict(nx.all_pairs_dijkstra_path_length(graph))
    told = sum(paths[node][at] for node, at in found.assignment.items()) + fees[list(found.nodes)].sum()
    assert found.optimal and found.objective == pytest.approx(told, abs=1e-6)
    for length, fee in ((1e-6, 1e9), (1e-20, 1.0), (1e-3, 1e12)):  # beyond 63 bits
        for u, v in graph.edges:
            graph[u][v]["weight"] = length * draws.random()
        with pytest.raises(GraphError, match="too large to be summed exactly"):
            fees = (fee * draws.random(20)).tolist()
            solve(graph, "facility", node_weights=fees, settings=keys_of(FREE, 0))


@alone
def test_few_nodes_with_demands():
    some = np.isin(np.arange(60), [3, 17])
    cycle = Distances(from_edges(60, np.arange(60), (np.arange(60) + 1) % 60, None, "cycle"), None, True)
    needs = Demands(some.astype(np.int64), Fraction(1))
    asked = question_of(
        "cycle", MEDIAN, cycle, needs, None, 1, np.zeros(0, int), ~some & (np.arange(60) > 9), 1e9
    )
    assert np.array_equal(asked.sites.cost, cycle.rows(asked.places)[:, some])


@alone
def test_graphs_without_nodes_and_nodes_without_demands():
    for kind in KINDS:
        assert solve(nx.Graph(), "facility", settings=keys_of(kind, 1)).objective == 0
        found = solve(nx.path_graph(3), "facility", demands=[0, 0, 0], settings=keys_of(kind, 1))
        assert found.objective == found.bound == 0


# ---- kernels and their twins -------------------------------------------------------------------------------


@alone
@pytest.mark.skipif(not available(), reason="no kernels")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, 2])
def test_searches_and_their_twins(kind, seed):
    sites = pmed(40, 7, seed, kind)
    made = CenterSearch if kind == CENTER else FacilitySearch
    start = random_order(sites)
    compiled, plain = (made(sites, start, seed, each) for each in (True, False))
    for part in (1, 40, 359):
        compiled.run(part)
        plain.run(part)
        assert (compiled.best, compiled.found_at, compiled.steps) == (plain.best, plain.found_at, plain.steps)
        assert (compiled.solution() == plain.solution()).all()
    assert compiled.best == sites.value(compiled.solution()) < sites.value(start)
    whole = made(sites, start, seed)
    whole.run(400)
    assert (whole.solution() == compiled.solution()).all() and whole.best == compiled.best
    if kind != CENTER:
        for name in ARRAYS:
            assert np.array_equal(getattr(compiled, name), getattr(plain, name)) or name == "touched", name
        assert [getattr(compiled, name) for name in NUMBERS] == [getattr(plain, name) for name in NUMBERS]
        here = compiled.slot >= 0
        assert compiled.value == sites.value(here) and compiled.size == here.sum()
        for a in range(compiled.size):  # loss, gain and extra say what every interchange is worth
            for f in np.flatnonzero(~here):
                other = here.copy()
                other[f], other[compiled.inside[a]] = True, False
                gain = compiled.gain[f] - sites.opening[f] + compiled.extra[f, a]
                gain += sites.opening[compiled.inside[a]] - compiled.loss[a]
                assert compiled.value - sites.value(other) == gain


@alone
def test_what_a_search_hears():
    sites = pmed(60, 6, 2)
    start = np.arange(60) < 6
    one, other = (FacilitySearch(sites, start, seed) for seed in (1, 2))
    one.run(300)
    other.meet([one.news()[0][None, :]])
    assert other.best == one.best and (other.solution() == one.solution()).all()
    other.run(50)
    assert other.value == sites.value(other.slot >= 0) and other.best <= one.best


@alone
def test_distances_and_reduced_costs_and_their_twins():
    graph = nx.gnp_random_graph(60, 0.05, seed=3)
    edges, draws = np.array(graph.edges), np.random.default_rng(3)
    made = from_edges(60, edges[:, 0], edges[:, 1], draws.integers(0, 5, len(edges)).astype(np.float32), "g")
    compiled, plain = (Distances(made, None, each) for each in (True, False))
    nodes = np.array([3, 0, 59])
    assert np.array_equal(compiled.rows(nodes), plain.rows(nodes))
    at, away = compiled.nearest(np.isin(np.arange(60), nodes))
    every = np.where(compiled.rows(nodes) < 0, 1 << 40, compiled.rows(nodes))
    assert np.array_equal(away, np.where(every.min(axis=0) == 1 << 40, -1, every.min(axis=0)))
    assert (
        compiled.rows(at[at >= 0])[np.arange((at >= 0).sum()), np.flatnonzero(at >= 0)] == away[at >= 0]
    ).all()
    sites = pmed(50, 5, 4, FREE)
    one = unit_of(sites)
    for _ in range(3):
        v = draws.integers(0, sites.worst * one + 1)
        told = np.minimum(sites.cost * one - v, 0).sum(axis=1)
        assert np.array_equal(reduced_costs(sites, v, one), told)
        cases = [Cases(sites, sites.worst, each) for each in (True, False)]
        assert all(np.array_equal(each._reduced(v), told + one * sites.opening) for each in cases)
        taken = draws.random(50) < 0.3
        assert np.array_equal(cases[0]._served(v, taken), cases[1]._served(v, taken))
    for _ in range(8):
        for each in cases:
            each.improve(10**6)
    assert cases[0].lower == cases[1].lower and (cases[0].root.v == cases[1].root.v).all()


# ---- bounds and their proofs -------------------------------------------------------------------------------


def bounds_of(kind, sites, **more):
    start = farthest_first(sites) if kind == CENTER else greedy(sites)
    search = (CenterSearch if kind == CENTER else FacilitySearch)(sites, start, 1)
    search.run(500)
    return (RadiusBounds if kind == CENTER else SumBounds)(sites, start, **more), search.best


@alone
@pytest.mark.parametrize(
    ("kind", "more"), [(MEDIAN, {}), (FREE, {}), (CENTER, {}), (CENTER, {"covers": False})]
)
def test_cases_prove_optima_and_any_prefix_of_them_a_bound(kind, more):
    sites = pmed(36, 6, 5, kind)
    bounds, best = bounds_of(kind, sites, **more)
    seen = -1
    while bounds.improve(0.0, best):
        assert bounds.value <= best
        if bounds.value > seen:
            bounds.proof().check(sites)
            seen = bounds.value
    assert bounds.value == best
    proof = bounds.proof()
    assert isinstance(proof, CenterBound) == (kind == CENTER and not more)
    proof.check(sites)
    with pytest.raises(BadCertificate, match="does not prove"):
        replace(proof, lower=best + 1).check(sites)


@alone
def test_covers_decide_every_radius():
    divided = 0
    for seed in range(6):
        draws, forced = np.random.default_rng(seed), np.arange(18) < seed % 2
        cost = draws.integers(0, 9, (18, 40))
        sites, pool = Sites(cost, np.zeros(18, np.int64), forced, 4, 9, True), Pool()
        every = np.array(list(itertools.combinations(range(18), 4)))
        every = every[(every == 0).any(axis=1)] if seed % 2 else every
        best = int(sites.cost[every].min(axis=1).max(axis=1).min())
        for radius in sites.radii[1:].tolist():
            cases = CoverCases(sites, radius, pool)
            while cases.improve(1) and not cases.solved:
                assert not cases.lower
            divided += cases.nodes > 1
            assert (cases.lower, cases.solved) == ((1, False) if radius <= best else (0, True))
            if cases.solved:
                assert cases.found[forced].all() and cases.found.sum() <= 4
                assert sites.value(cases.found) == cases.value < radius
                with pytest.raises(BadCertificate, match=r"(does not prove|cases are missing|do not fit)"):
                    cases.certificate(radius).check(sites)
            else:
                proof = cases.certificate(radius)
                proof.check(sites)
    assert divided >= 2


@alone
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_certificates_prove_nothing(kind):
    draws = np.random.default_rng(7)
    points = draws.integers(0, 1000, (40, 2))
    fees = {"node_weights": draws.integers(200, 400, 40).tolist()} if kind == FREE else {}
    keys = keys_of(kind, 8)
    found = solve(points, "facility", settings=keys, **fees)
    assert found.optimal and found.bound_verified
    assert check(points, found, settings=keys, **fees).bound == found.bound
    whole = from_bytes(found.certificate)
    proof = whole.cases if kind == CENTER else whole
    rows = proof.rows.copy()
    rows[:, 0] = -1
    damaged = {
        "raised": (replace(proof, lower=proof.lower + 1), "does not prove|nothing of this question"),
        "beyond all": (replace(proof, lower=1 << 80), "more than any solution|nothing of this question"),
        "negative": (replace(proof, rows=rows), "below 0 or above"),
        "large": (replace(proof, rows=proof.rows + (proof.one << 30)), "below 0 or above"),
        "nothing": (replace(proof, rows=0 * proof.rows), "does not prove"),
        "narrow": (replace(proof, rows=np.ascontiguousarray(proof.rows[:, 1:])), "needs rows of"),
        "fine": (replace(proof, one=1 << 50), "not exact"),
        "rows elsewhere": (replace(proof, ptr=proof.ptr + 1), "do not fit"),
        "no facility": (replace(proof, branch=np.full_like(proof.branch, 99)), "no facility"),
        "a case more": (replace(proof, ptr=np.append(proof.ptr, proof.ptr[-1]),
                                branch=np.append(proof.branch, -1)), "beside its tree"),
        "no cases": (replace(proof, branch=np.zeros_like(proof.branch)), "cases are missing"),
    }  # fmt: skip
    if kind == CENTER:
        damaged = {name: (replace(whole, cases=each), said) for name, (each, said) in damaged.items()}
        damaged |= {
            "a larger radius": (replace(whole, lower=whole.lower + 1), "does not prove"),
            "beyond all radii": (replace(whole, lower=1 << 80), "does not prove|more than any solution"),
            "a customer less": (replace(whole, customers=whole.customers[1:]), "needs rows of"),
            "no customer": (replace(whole, customers=whole.customers + 40), "are not ascending"),
            "one twice": (replace(whole, customers=0 * whole.customers), "are not ascending"),
            "others": (replace(whole, customers=np.arange(len(whole.customers))), "does not prove|above all"),
        }
    for name, (each, said) in damaged.items():
        with pytest.raises(GraphError, match=said):
            check(points, found, certificate=to_bytes(each), settings=keys, **fees)
            pytest.fail(name)
    less = replace(whole, lower=whole.lower - 1)
    if kind != CENTER:
        assert (
            check(points, found, certificate=to_bytes(less), settings=keys, **fees).bound == found.bound - 1
        )
    moved = points.copy()
    moved[: len(points) // 2] //= 50  # another question
    with pytest.raises(GraphError, match=r"(does not prove|below 0 or above)"):
        check(moved, found, certificate=found.certificate, settings=keys, **fees)


@alone
def test_certificates_that_leave_63_bits_prove_nothing():
    cost = np.zeros((12, 12), dtype=np.int64)
    cost[11, :11] = cost[:11, 11] = 1 << 46
    sites = Sites(cost, np.zeros(12, np.int64), np.zeros(12, bool), 6, 1 << 47)  # two are enough
    one = unit_of(sites)
    proof = FacilityBound(1, "duals", one, one * sites.worst[None], np.array([0, 1]), np.array([-1]))
    with pytest.raises(BadCertificate, match="does not prove"):
        proof.check(sites)
    cases = Cases(sites, sites.worst)
    while cases.improve(1 << 46) and cases.nodes < 50:
        assert cases.lower == 0


# ---- many points -------------------------------------------------------------------------------------------


@pytest.fixture
def without_tables(monkeypatch):
    """Points are never given a table for searches, and the nearest are found by trees."""
    monkeypatch.setattr(app.graphs.facility_points, "LISTED", 0)
    monkeypatch.setattr(app.graphs.facility, "PIECE", 16)


def scattered(n, seed, kind="EUC_2D", **more):
    draws = np.random.default_rng(seed)
    points = draws.integers(0, 300, (n, 2)).astype(np.float64)
    points[: n // 4] //= 20  # many are close, some are equal
    points = points[along_curve(points)]
    fees, needs = draws.integers(50, 400, n) * more.get("free", 0), draws.integers(1, 5, n)
    return PointSites(points, points, kind, needs, fees, np.arange(n) < seed % 2, more.get("most", n))


def network(n, seed, **more):
    """A network with lengths 0, equal paths, several parts, and nodes that are no places or need nothing."""
    draws = np.random.default_rng(seed)
    u, v = draws.integers(0, n, (2, 9 * n))
    near = (np.abs(u - v) < n // 6) & (u // (n // 3) == v // (n // 3))
    lengths = draws.integers(0, 12, near.sum()).astype(np.float32)
    distances = Distances(from_edges(n, u[near], v[near], lengths, "net"), None, True)
    fees = Demands(draws.integers(50, 90, n), Fraction(1)) if more.get("free") else None
    needs, barred = Demands(draws.integers(0, 5, n), Fraction(1)), np.arange(n) % 9 == 4
    inside, most = np.flatnonzero(~barred)[: seed % 2], more.get("most", n)
    given = "net", more.get("kind", MEDIAN), distances, needs, fees, most, inside, barred
    return question_of_network(*given), question_of(*given, 1e9)


def follow_both(compiled, plain, numbers, arrays, lists):
    """A search and its twin go the same way, and know what every interchange is worth."""
    start, sites = compiled.solution(), compiled.sites
    for part in (1, 60, 500):
        compiled.run(part)
        plain.run(part)
        for name in numbers:
            assert getattr(compiled, name) == getattr(plain, name), name
        for name in arrays:
            assert np.array_equal(getattr(compiled, name), getattr(plain, name)), name
        for name in lists:
            held = slice(compiled.size)
            assert np.array_equal(getattr(compiled, name)[held], getattr(plain, name)[held]), name
    assert compiled.best == sites.value(compiled.solution()) < sites.value(start)
    whole = type(compiled)(sites, start, 7)
    whole.run(561)
    assert (whole.solution() == compiled.solution()).all()


def check_interchanges(search, plain, places):
    """What every interchange of a search is worth."""
    sites, here = search.sites, search.slot[places] >= 0
    assert search.value == sites.value(here) and search.size == here.sum()
    for k in np.flatnonzero(~here)[:20].tolist():
        gain = plain.saved_by(search, int(places[k]))
        for a in range(search.size):
            other, out = here.copy(), int(search.inside[a])
            other[k], other[np.flatnonzero(places == out)] = True, False
            costs = int(search.opening[out]) - search.loss[a] + search.extra[a]
            assert search.value - sites.value(other) == gain + costs


@alone
@pytest.mark.skipif(not PointSearch.available(), reason="no kernels")
@pytest.mark.parametrize("kind", ["EUC_2D", "CEIL_2D", "FLOOR_2D", "ATT"])
def test_searches_of_points_and_their_twins(kind):
    for sites in (
        scattered(50, 1, kind, most=6), scattered(50, 2, kind, free=1),
        scattered(50, 3, kind, most=6).within(60),
    ):  # fmt: skip
        compiled, plain = (PointSearch(sites, along(sites), 7, each) for each in (True, False))
        arrays = "slot", "first", "second", "d1", "d2", "best_open", "stamp"
        follow_both(compiled, plain, POINT_NUMBERS, arrays, ("inside", "loss", "reach"))
        check_interchanges(plain, points_plain, np.arange(sites.m))


@alone
@pytest.mark.skipif(not NetworkSearch.available(), reason="no kernels")
@pytest.mark.parametrize("seed", range(4))
def test_searches_of_networks_and_their_twins(seed):
    for sites in (
        network(60, seed, most=16)[0].sites, network(60, seed, free=1)[0].sites,
        network(60, seed, most=16, kind=CENTER)[0].sites.within(14),
    ):  # fmt: skip
        start = along_walk(sites)
        compiled, plain = (NetworkSearch(sites, start, 7, each) for each in (True, False))
        arrays = "slot", "first", "second", "d1", "d2", "best_open", "stamp"
        follow_both(compiled, plain, NETWORK_NUMBERS[:-1], arrays, ("inside", "loss"))
        check_interchanges(plain, network_plain, sites.places)


@pytest.mark.parametrize("source", ["points", "graph"])
@pytest.mark.parametrize("kind", KINDS)
def test_answers_without_tables(kind, source, without_tables):
    for seed in range(2 if source == "points" else 6):
        given, *instance = drawn(seed, source)
        best = least(kind, 1 + seed, *instance)
        if not np.isfinite(best):
            with pytest.raises(CaseError, match="no path leads from node"):
                answered(kind, 1 + seed, given, *instance[1:], comm=MPI.COMM_WORLD)
            continue
        found = answered(kind, 1 + seed, given, *instance[1:], comm=MPI.COMM_WORLD)
        chosen = np.isin(np.arange(len(given)), found.nodes)
        assert found.objective == found.bound == best == worth(kind, *instance, chosen)
        assert found.bound_verified and set(found.baselines) & {"along a curve", "along a walk"}
        for node, facility in found.assignment.items():
            if facility is not None:
                assert instance[0][node, facility] == instance[0][node, chosen].min()
    if MPI.COMM_WORLD.size == 1:
        keys, more = keys_of(kind, 1 + seed), {"demands": instance[1].tolist()}
        more |= {"node_weights": instance[2].tolist()} if kind == FREE else {}
        assert check(given, found, settings=keys, **more).bound == best
        with pytest.raises(CaseError, match=r"memory\.whole_graph_mb = 1 would be right"):
            check(given, found, settings=keys | {"memory.whole_graph_mb": 1e-6}, **more)
    given = np.random.default_rng(4).integers(0, 2000, (300, 2))
    if source == "graph":
        given = nx.random_geometric_graph(300, 0.08, seed=3)
    fees = {"node_weights": [300 + 7 * (u % 30) for u in range(300)]} if kind == FREE else {}
    keys = keys_of(kind, 12, **{"search.starts": 3, "search.steps": 3000, "search.bounds": False})
    given = {"graph": given, "settings": keys, "inside": [5], "outside": [1, 2, 3], **fees}
    single = solve(problem="facility", comm=MPI.COMM_SELF, **given)
    together = solve(problem="facility", comm=MPI.COMM_WORLD, **given)
    for name in ("nodes", "digest", "objective", "baselines", "source", "assignment"):
        assert getattr(together, name) == getattr(single, name)
    assert 5 in single.nodes and not {1, 2, 3} & set(single.nodes)


@alone
@pytest.mark.parametrize("seed", range(4))
def test_tables_and_networks_are_the_same_question(seed):
    for kind, most in ((MEDIAN, 18), (CENTER, 18), (FREE, 60)):
        asked, table = network(60, seed, most=most, kind=kind, free=kind == FREE)
        at, to = np.argsort(asked.places), np.argsort(asked.customers)
        made = asked.sites.table()
        costs = made.cost[np.ix_(at, to)]
        assert np.array_equal(np.where(costs >= made.far, table.sites.far, costs), table.sites.cost)
        assert np.array_equal(made.forced[at], table.sites.forced) and made.most == table.sites.most
        farthest = [farthest_nodes_first(asked.sites, each) for each in (True, False)]
        assert np.array_equal(*farthest)
        for chosen in (along_walk(asked.sites), farthest[0]):
            assert asked.sites.value(chosen) == made.value(chosen) < made.far
            assert chosen[asked.sites.forced].all() and chosen.sum() <= most
            part = asked.sites.within(20)
            assert part.value(chosen) == made.within(20).value(chosen)


@alone
def test_tables_and_points_are_the_same_question(without_tables):
    points = np.random.default_rng(5).integers(0, 90, (70, 2)).astype(float)
    metric, needs = from_points("p", points), Demands(np.arange(70) % 3, Fraction(1))
    distances, barred = Distances(None, metric, True), np.arange(70) % 7 == 0
    most, inside = 5, np.array([1, 2])
    asked = app.graphs.facility_points.question_of_points(
        "p", CENTER, distances, needs, None, most, inside, barred
    )
    table = question_of("p", CENTER, distances, needs, None, most, inside, barred, 1e9)
    at, to = np.argsort(asked.places), np.argsort(asked.customers)
    made = asked.sites.table()
    assert np.array_equal(made.cost[np.ix_(at, to)], table.sites.cost)
    assert np.array_equal(made.forced[at], table.sites.forced) and made.most == table.sites.most
    for chosen in (along(asked.sites), farthest_points_first(asked.sites)):
        assert asked.sites.value(chosen) == made.value(chosen) and chosen[asked.sites.forced].all()
        assert chosen.sum() == 5
        nodes = np.zeros(70, dtype=bool)
        nodes[asked.places[chosen]] = True
        near, away = distances.nearest(nodes)
        every = metric.between(np.flatnonzero(nodes)[:, None], np.arange(70)[None])
        assert np.array_equal(away, every.min(axis=0))
        assert np.array_equal(near, np.flatnonzero(nodes)[every.argmin(axis=0)])


@alone
def test_demands_of_points_may_be_large(without_tables):
    points, needs = np.random.default_rng(7).integers(0, 10**4, (60, 2)), [10**8 + 7 * u for u in range(60)]
    keys = keys_of(MEDIAN, 6)
    found = solve(points, "facility", demands=needs, settings=keys)
    assert found.objective == found.bound > 1 << 43
    sites = replace(scattered(50, 2, most=1), never=425)
    single = PointSearch(sites, np.arange(50) == 0, 1)  # no customer has a second facility
    single.run(500)
    costs = sites.table().cost.sum(axis=1)
    assert single.best == costs.min() < costs[0] and single.value == costs[single.inside[0]]


@alone
@pytest.mark.parametrize("longest", (0, 3, 1000))
def test_paths_by_a_ring_are_as_long_as_others(longest, monkeypatch):
    graph = nx.gnm_random_graph(300, 400, seed=longest)  # in several parts
    lengths = sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=np.int64, format="csr"))
    edges = np.random.default_rng(4).integers(longest > 0, longest + 1, (300, 300))
    rows = np.repeat(np.arange(300), np.diff(lengths.indptr))
    lengths.data[:] = np.maximum(edges, edges.T)[rows, lengths.indices]
    near, long = lengths.indices.astype(np.int32), lengths.data.astype(np.int64)
    never, ptr = int(long.sum()) + 1, lengths.indptr.astype(np.int64)
    for chosen in (np.zeros(0, np.int64), np.array([7]), np.arange(0, 300, 40)):
        away, before = by_ring(ptr, near, long, chosen, never)
        if longest:  # of no length there are no entries to SciPy
            wanted = dijkstra(lengths.astype(float), indices=chosen, min_only=True) if len(chosen) else np.inf
            np.testing.assert_array_equal(away, np.where(np.isfinite(wanted), wanted, never))
            for v in np.flatnonzero(before >= 0):
                u = before[v]
                assert away[u] + max(edges[u, v], edges[v, u]) == away[v] < never
                row = near[ptr[v] : ptr[v + 1]]
                assert u == min(w for w in row if away[w] + max(edges[w, v], edges[v, w]) == away[v])
        assert not away[chosen].any() and (away < never).sum() == ((before >= 0).sum() + len(chosen))
    if longest:
        walks = [_walk(lengths, True)]
        monkeypatch.setattr("app.graphs.facility_network.LARGE", 0)
        walks += [_walk(lengths, True), _walk(lengths, False)]
        monkeypatch.setattr("app.graphs.facility_network.LOOKS", 0)  # of lists in a ring
        walks.append(_walk(lengths, True))
        assert by_ring(ptr, near, long, np.array([0]), never) is None
        for walk in walks[1:]:
            assert walk[1:] == walks[0][1:] and sorted(walk[0]) == list(range(300))
            np.testing.assert_array_equal(walk[0], walks[1][0])


@alone
def test_lists_and_tables_of_bounds_end_where_a_run_is_to_stop():
    asked, _ = network(60, 1, most=14)
    sites, kinds = asked.sites, []
    kinds.append(lambda found: ListBounds(sites, along_walk(sites), 9, heard=stopping.asked))
    kinds.append(lambda found: SumBounds(sites.table(heard=stopping.asked), along_walk(sites)))
    for kind in kinds:
        late = LateBounds((kind, 1.0))
        late.expect(10.0)
        stopping.ask("SIGTERM")
        try:
            assert late.improve(0.0, 1 << 40) and not late.method and late.least_seconds == 1.0
        finally:
            stopping.forget()
        assert late.improve(0.0, 1 << 40) and late.method


def listed(seed):
    """Questions without tables, and the same with tables."""
    for free in (0, 1):
        asked, _ = network(60, seed, most=60 if free else 14, free=free)
        yield asked.sites, asked.sites.table()
        points = scattered(60, seed, free=free, most=60 if free else 9)
        yield points, points.table()


@alone
@pytest.mark.parametrize("seed", range(3))
def test_bounds_of_lists(seed):
    for sites, table in listed(seed):
        lists = [lists_of(sites, np.arange(sites.n), 11, each) for each in (True, False)]
        for each in lists:
            costs = np.take_along_axis(table.cost.T, each.near.astype(np.int64), axis=1)
            assert np.array_equal(costs[each.held], (sites.demand[:, None] * each.away)[each.held])
            for u in range(sites.n):  # what is nearer than the limit is there, once
                limit = min(each.limit[u], sites.never)
                near = table.cost[:, u] < sites.demand[u] * limit
                held = each.near[u, : each.counts[u]]
                assert set(np.flatnonzero(near)) <= set(held.tolist()) and len(set(held.tolist())) == len(
                    held
                )
        start = (along_walk if hasattr(sites, "nodes") else along)(sites)
        pair = [ListCases(sites, start, 11, each) for each in (True, False)]
        for cases in pair:
            while cases.improve(sites.value(start)):
                pass
        assert pair[0].lower == pair[1].lower > 0
        exact = Cases(table, np.minimum(table.least(start), table.worst))
        while exact.improve(exact.value):
            pass
        assert pair[0].lower <= exact.value and pair[0].lower > 0.8 * exact.lower
        proof = from_bytes(to_bytes(pair[0].certificate()))
        proof.check(sites)
        for off in (np.roll(proof.rows, 1, axis=1), proof.rows // 2, proof.rows[:, 1:], -proof.rows):
            with pytest.raises(BadCertificate):
                replace(proof, rows=off).check(sites)
        with pytest.raises(BadCertificate, match="does not prove"):
            replace(proof, lower=exact.value + 1).check(sites)


@alone
def test_lists_of_centres_that_have_no_room():
    """Radii at which lists have room are proved; where time is up, or there is no room at all, none is."""
    asked, _ = network(60, 1, most=14, kind=CENTER)
    sites, start = asked.sites, along_walk(asked.sites)
    made = sites.table()
    proved = []
    for entries in (0, 150, 300, 1 << 20):
        bounds = RadiusBounds(sites, start, entries=entries)
        while bounds.improve(0.0, sites.value(start)):
            pass
        bounds.proof().check(sites)
        proved.append(bounds.value)
    exact = RadiusBounds(made, start)
    while exact.improve(0.0, made.value(start)):
        pass
    assert 0 == proved[0] < proved[1] < proved[2] <= proved[3] == exact.value
    late = RadiusBounds(sites, start)
    late.until(0.0)
    assert not late.improve(1.0, sites.value(start)) and not late.value


@alone
def test_packings_prove_radii_up_to_the_best_and_none_beyond():
    asked, _ = network(60, 2, most=14, kind=CENTER)
    sites, start = asked.sites, along_walk(asked.sites)
    exact = RadiusBounds(sites.table(), start)
    while exact.improve(0.0, sites.value(start)):
        pass
    reach, proved, rest = ListReach(sites, sites.value(start)), [], None
    for radius in range(1, sites.value(start), 3):
        packing = CoverPacking(sites, radius, reach.smaller(radius), rest)
        while packing.improve(1):
            pass
        rest = packing.x, packing.y
        if packing.lower:
            proved.append(radius)
            proof = from_bytes(to_bytes(packing.certificate(radius)))
            proof.check(sites)
    assert 0.7 * exact.value < max(proved) <= exact.value
    for off in (proof.cases.rows * 0, proof.cases.rows[:, 1:], -proof.cases.rows):
        with pytest.raises(BadCertificate):
            replace(proof, cases=replace(proof.cases, rows=off)).check(sites)
    with pytest.raises(BadCertificate):
        replace(proof, lower=exact.value + 1).check(sites)


@alone
def test_nothing_is_proved_beyond_what_not_being_reached_costs():
    sites = network(9, 6, most=1, kind=CENTER)[0].sites  # in three parts
    value = sites.value(along_walk(sites))
    bounds = RadiusBounds(sites, along_walk(sites))
    while bounds.improve(0.0, value):
        pass
    proof = bounds.proof()
    proof.check(sites)
    assert proof.lower == value
    with pytest.raises(BadCertificate, match="than any solution"):
        replace(proof, lower=value + 1).check(sites)


@alone
def test_parts_that_each_want_a_facility(without_tables):
    """More than any power of two of facilities; and multipliers of a table, above all paths, are checked."""
    many = nx.disjoint_union(nx.empty_graph(70), nx.path_graph(4))
    found = solve(many, "facility", node_weights=[1] * 74, settings=keys_of(FREE, 0))
    assert found.objective == found.bound == 74 and found.bound_verified


@alone
@pytest.mark.parametrize("points", [False, True])
def test_a_bound_of_nothing_is_no_failure(points, without_tables):
    given = np.ones((40, 2)) if points else nx.empty_graph(40)
    found = solve(given, "facility", settings=keys_of(CENTER, 40) | {"memory.whole_graph_mb": 0.12})
    assert found.objective == found.bound == 0


@alone
def test_an_edge_longer_than_all_paths():
    """Numbers of a path and a node stay below 2^63, though that of the edge and a node would not."""
    n = 40_000
    u, v = np.append(np.arange(n - 1), 0), np.append(np.arange(1, n), 2)
    lengths = np.append(np.ones(n - 1), 2.0**48).astype(np.float32)
    distances, none = Distances(from_edges(n, u, v, lengths, "long"), None, True), np.zeros(n, dtype=bool)
    asked = question_of_network("long", MEDIAN, distances, alike(n), None, 40, np.zeros(0, int), none)
    search = NetworkSearch(asked.sites, along_walk(asked.sites), 1)
    search.run(20)
    assert search.best == asked.sites.value(search.solution())
    lists = lists_of(asked.sites, np.arange(0, n, 5000), 3)
    assert (lists.away <= 2).all() and (lists.counts == 3).all()


@alone
@pytest.mark.parametrize("kind", [RadiusBounds, SumBounds])
def test_a_table_leads_until_it_is_made(kind):
    """Else bounds get too small a share of a time limit to begin with what takes long."""
    sites = scattered(30, 2, most=3)
    bounds = kind(sites.table(), along(sites))
    late = LateBounds((lambda found: bounds, 1.0))
    late.expect(10.0)
    assert late.leads and not late.gaining and late.least_seconds == 1.0
    assert late.improve(0.0, 1 << 40) and not late.least_seconds
    while not bounds.value:
        assert late.leads and late.improve(0.0, 1 << 40)
    assert (late.leads, late.gaining) == (bounds.leads, bounds.gaining)
    late = LateBounds((lambda found: bounds, 1.0))
    late.expect(3.0)
    assert not late.improve(0.0, 1 << 40) and not late.method
    for allowed, begins in ((0.5, False), (1.0, True)):  # runs by steps have no limit, but bounds have
        late = LateBounds((lambda found: kind(sites.table(), along(sites)), 1.0))
        late.allow(allowed)
        assert late.improve(0.0, 1 << 40) == begins == bool(late.method)


@alone
def test_many_points_take_little_memory():
    points = np.random.default_rng(6).integers(0, 10**6, (12_000, 2))
    keys = {"problem.budget": 120, "search.steps": 12_000, "memory.whole_graph_mb": 900}
    tracemalloc.start()
    try:
        found = solve(points, "facility", settings=keys)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12_000**2  # bytes: a table has 28 for each pair
    assert 0.1 * found.objective < found.bound <= found.objective and found.bound_verified
    assert found.objective < 0.9 * found.baselines["along a curve"]


# ---- runs, replays, ranks ----------------------------------------------------------------------------------


@alone
def test_a_run_its_files_its_check_and_its_replay(tmp_path):
    (tmp_path / "g.txt").write_text(
        "".join(f"{u} {v} {1 + (u * v) % 7}\n" for u, v in nx.cycle_graph(90).edges)
    )
    (tmp_path / "d.txt").write_text("".join(f"{u} {1 + u % 4}.5\n" for u in range(90)))
    out, again = tmp_path / "out", tmp_path / "again"
    case = ["run.py", "inputs/facility.toml", f"graph.path={tmp_path / 'g.txt'}"]
    case += [f"graph.demands={tmp_path / 'd.txt'}", "output.plots=false", "output.certificates=true"]
    code, said = run_job([*mpirun(2), sys.executable, *case, "search.seconds=1", "--out", out], cwd=ROOT)
    assert code == 0, said
    entry = json.loads((out / "result.json").read_text())["instances"][0]
    rows = list(csv.DictReader((out / "assignment" / "g.csv").open()))
    chosen = (out / "solution" / "g.txt").read_text().split()
    assert {row["facility"] for row in rows} == set(chosen) and len(chosen) == 10 and len(rows) == 90
    total = sum((1.5 + int(row["node"]) % 4) * float(row["distance"]) for row in rows)
    assert total == entry["objective"] >= entry["bound"]
    code, said = run_job([sys.executable, *case, "--check", out], cwd=ROOT)
    assert code == 0 and "bounds of 1 are proved" in said, said
    if entry["replay"]:
        code, said = run_job([sys.executable, *case, *entry["replay"], "--out", again], cwd=ROOT)
        assert code == 0, said
        replayed = json.loads((again / "result.json").read_text())["instances"][0]
        assert (replayed["digest"], replayed["objective"]) == (entry["digest"], entry["objective"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_on_any_ranks(kind):
    graph = nx.gnm_random_graph(70, 200, seed=4)
    for u, v in graph.edges:
        graph[u][v]["weight"] = 1 + (u * v) % 13
    keys = keys_of(kind, 9, **{"search.starts": 3, "search.steps": 1200})
    single = solve(graph, "facility", settings=keys, comm=MPI.COMM_SELF)
    together = solve(graph, "facility", settings=keys, comm=MPI.COMM_WORLD)
    for name in ("nodes", "digest", "objective", "baselines", "source", "assignment"):
        assert getattr(together, name) == getattr(single, name)


@alone
def test_a_start_is_kept_or_repaired():
    points = np.random.default_rng(3).integers(0, 99, (30, 2))
    keys = keys_of(MEDIAN, 4) | {"search.steps": 0, "search.bounds": False}
    best = solve(points, "facility", settings=keys_of(MEDIAN, 4)).nodes
    found = solve(points, "facility", start=best, settings=keys)
    assert sorted(found.nodes) == sorted(best)
    assert len(solve(points, "facility", start=range(30), settings=keys).nodes) == 4


# ---- what is refused ---------------------------------------------------------------------------------------

WRONG = {
    "half a facility": ({"problem.budget": 2.5}, {}, "a whole number of facilities would be right, got 2.5"),
    "a number of none": ({"problem.facility": FREE, "problem.budget": 2.0}, {}, "leave it out"),
    "too few": ({"problem.budget": 1.0}, {}, "no path leads from node 3 to a facility"),
    "too many inside": ({"problem.budget": 1.0}, {"inside": [0, 3]}, r"2 nodes .* more than problem\.budget"),
    "none left": ({"problem.budget": 2.0}, {"outside": [0, 1, 2, 3, 4]}, "no node may be a facility"),
    "a demand below 0": ({}, {"demands": [1, 1, 1, -1, 1]}, "demands: found -1; a number from 0 on"),
    "too few demands": ({}, {"demands": [1, 1, 1, 1]}, "found 4 numbers; 5 would be right"),
    "a cost below 0": ({"problem.facility": FREE}, {"node_weights": [1, -1, 1, 1, 1]}, "node 1 is below 0"),
    "a policy": ({"search.solver": "policy"}, {}, "no policy answers it"),
}  # fmt: skip


@alone
@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit(case):
    settings, more, said = WRONG[case]
    graph = [(0, 1), (1, 2), (3, 4)]
    with pytest.raises((CaseError, GraphError), match=said):
        solve(graph, "facility", settings=QUICK | settings, **more)


@alone
def test_tables_beyond_the_memory_are_refused():
    keys = QUICK | {"memory.whole_graph_mb": 0.05, "problem.budget": 3}
    right = (
        r"60 places for 60 customers take 0 MB of tables; memory\.whole_graph_mb = 1 would be right, or fewer"
    )
    matrix = np.abs(np.arange(60)[:, None] - np.arange(60))
    with pytest.raises(CaseError, match=right):
        solve(matrix, "facility", settings=keys)
    found = solve(nx.path_graph(60), "facility", settings=keys | {"search.steps": 3000})
    assert found.objective == 300 and found.bound is None


@alone
@pytest.mark.parametrize("key", ["graph.complement=true", 'graph.generator="arcs"'])
def test_graphs_that_have_no_lengths_are_refused(key, tmp_path):
    (tmp_path / "g.txt").write_text("1 2\n2 3\n")
    path = [] if "arcs" in key else [f"graph.path={tmp_path / 'g.txt'}"]
    code, said = run_job(
        [sys.executable, "run.py", "inputs/facility.toml", "--dry-run", key, *path], cwd=ROOT
    )
    told = "facilities are nodes of a graph" if "arcs" in key else "edges that are not there have no lengths"
    assert code == 2 and told in said, said


@alone
def test_tables_in_a_dry_run():
    case = ["run.py", "inputs/facility.toml", "--dry-run", "graph.count=1", "problem.facility=center"]
    points = ['graph.generator="uniform_points"', 'graph.edge_weights="one"']
    for nodes, more, told in (
        (2000, [], "take up to 420.2 MB beside"),
        (9000, [], "lists of all that are near enough; without HiGHS they want a table of 7776 MB"),
        (9000, ["problem.facility=median"], "without a table; bounds have lists of the nearest places"),
        (9000, points, "lists of all that are near enough; without HiGHS they want a table of 7776 MB"),
    ):
        code, said = run_job([sys.executable, *case, f"graph.nodes={nodes}", *more], cwd=ROOT)
        assert code == 0 and told in said, said


@alone
def test_lengths_below_0_and_keys_of_other_problems():
    with pytest.raises(GraphError, match="edge 0-1 has the length -2; 0 or more would be right"):
        solve([(0, 1, -2.0), (1, 2, 1.0)], "facility", settings=QUICK | {"problem.budget": 1})
    with pytest.raises(CaseError, match=r'problem\.facility: only facility has one: "median"'):
        solve([(0, 1)], "mvc", settings={"problem.facility": CENTER})
    with pytest.raises(CaseError, match="demands: mvc has none; cvrp or facility would be right"):
        solve([(0, 1)], "mvc", demands=[1, 1])
    huge = explicit("huge", np.full((3, 3), 2**31 - 1) - np.diag([2**31 - 1] * 3))
    with pytest.raises(GraphError, match="too large to be summed exactly"):
        none = np.zeros(3, dtype=bool)
        needs = Demands(np.full(3, 2**40), Fraction(1))
        question_of("huge", MEDIAN, Distances(None, huge, True), needs, None, 1, np.zeros(0, int), none, 1e9)
