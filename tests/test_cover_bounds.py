"""Packings, clique covers, CoverBounds: valid, proved by witnesses, the same with and without kernels."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from covers import cheapest, from_networkx, growing, is_cover, random_graph, random_weights
from data import catalogue, data_dir, needs_data

from app.bounds.certificate import BadCertificate
from app.bounds.cover import cycles as cycle_lp
from app.bounds.cover import kernels
from app.bounds.cover.bounds import CoverBounds
from app.bounds.cover.clique_cover import CliqueSearch, clique_cover
from app.bounds.cover.cycles import CyclePacking
from app.bounds.cover.kernels import Rows
from app.bounds.cover.lp import half_integral, relaxed
from app.bounds.cover.packing import (
    ONE,
    Columns,
    Packing,
    columns_of,
    denominator,
    edge_columns,
    joined,
    keys_of,
    packing,
)
from app.bounds.cover.witness import Claim
from app.graphs.formats.readers import open_edges
from app.graphs.graph import from_edges
from app.native import library
from app.rng import SplitMix

pytestmark = pytest.mark.mpi_skip
needs_kernels = pytest.mark.skipif(library.kernels() is None, reason="no compiled kernels")
BOTH = [pytest.param(True, marks=needs_kernels, id="compiled"), pytest.param(False, id="plain")]


def cases(seed, count, most=9, fewest=0):
    """Small graphs with weights [n] int64 or None."""
    draws = np.random.default_rng(seed)
    for _ in range(count):
        graph = random_graph(draws, most, fewest)
        yield graph, random_weights(draws, graph.n)


def by_cliques(graph, weights, rounds=5):
    """The bound of a clique cover as a packing."""
    weight = np.ones(graph.n, dtype=np.int64) if weights is None else weights
    search = CliqueSearch(Rows(graph), weight)
    for _ in range(3):
        search.run(rounds)
    columns, value = search.columns()
    found = packing(graph.n, columns, value, 1, weights, "clique cover")
    assert value @ columns.need == weight.sum() - search.left_out
    return found


@pytest.mark.parametrize("n", [0, 1, 2, 9, 200])
def test_columns_of_a_clique_cover_are_those_of_its_cliques_one_by_one(n):
    for seed, most in enumerate((1, 2, 4, 50, 1 << 40)):
        draws = np.random.default_rng(seed)
        search = CliqueSearch(Rows(from_edges(n, [], [])), draws.integers(0, most + 1, n))
        search.clique[:] = draws.integers(0, draws.integers(1, n + 2), n)
        weights, lists, value = search._weights, [], []
        for clique in np.unique(search.clique):
            nodes = sorted(np.flatnonzero(search.clique == clique), key=lambda v: (weights[v], v))
            for i, before in enumerate([0, *weights[nodes[:-2]]][: len(nodes) - 1]):
                if weights[nodes[i]] > before:
                    lists.append(np.array(nodes[i:]))
                    value.append(weights[nodes[i]] - before)
        found, values = search.columns()
        assert values.dtype == np.int64 and values.tolist() == value
        for mine, right in zip(vars(found).values(), vars(columns_of(lists, True)).values()):
            assert mine.dtype == right.dtype and np.array_equal(mine, right)


def cycle_packing(graph, weights=None, compiled=True):
    """The packing bound, worked out to the end."""
    search = CyclePacking(graph, weights, compiled)
    for _ in search.slices():
        pass
    return search.best


def by_cycles(graph, weights):
    return cycle_packing(graph, weights)


# ---- bounds are below the optimum and proved by their witnesses -------------------------------------------


@pytest.mark.parametrize("bound", [relaxed, by_cliques, by_cycles])
@pytest.mark.parametrize("seed", range(3))
def test_a_bound_is_proved_and_at_most_the_optimum(bound, seed):
    for graph, weights in cases(seed, 15 if bound is by_cycles else 50, fewest=1):
        found = bound(graph, weights)
        found.check(graph)
        assert 0 <= found.lower <= cheapest(graph, weights)


def test_edges_as_columns_only_when_violated(monkeypatch):
    monkeypatch.setattr(cycle_lp, "MANY", 0)
    for graph, weights in cases(4, 12, fewest=1):
        found = cycle_packing(graph, weights)
        found.check(graph)
        assert found.lower <= cheapest(graph, weights)
    assert cycle_packing(from_networkx(nx.cycle_graph(6))).lower == 3
    assert cycle_packing(from_networkx(nx.complete_graph(9))).lower == 8


@pytest.mark.parametrize("weighted", [False, True])
def test_rounds_of_few_searches_and_little_reach(weighted, monkeypatch):
    """Prices are raised after each search: bounds stay below the optimum, and no column is found twice."""
    for name, value in (("LEAST_ROOTS", 1), ("PARTS", 99), ("REACH", 2), ("MARGIN", ONE // 8)):
        monkeypatch.setattr(cycle_lp, name, value)
    for graph, weights in cases(6, 10, most=11, fewest=3):
        search = CyclePacking(graph, weights if weighted else None)
        for _ in search.slices():
            assert len(np.unique(search._keys)) == len(search._keys) == len(search._columns) - graph.edges
        search.best.check(graph)
        assert search.best.lower <= cheapest(graph, weights if weighted else None)


@pytest.mark.parametrize("compiled", BOTH)
def test_raised_prices_obey_all_columns_and_new_ones_are_others(compiled):
    graph = growing(300)
    search = CyclePacking(graph, None, compiled)
    for _ in search._separate(True):
        pass
    added = len(search._columns) - graph.edges
    left = np.random.default_rng(1).random(graph.n)
    for _ in range(2):
        cycle_lp._obey(left, search._columns)
    columns = search._columns
    out = np.add.reduceat(left[columns.nodes], columns.ptr[:-1])
    assert added > 20 and (left >= 0).all()
    assert (out <= columns.sizes - columns.need + 1e-9).all()
    before, again = len(columns), search._separate(True)
    with pytest.raises(StopIteration) as end:
        while True:
            next(again)
    assert end.value.value == len(search._columns) - before


def test_keys_tell_columns_apart_by_nodes_and_need():
    lists = [
        np.array(nodes) for nodes in ([0, 1, 2, 3, 4], [4, 2, 0, 1, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3, 5])
    ]
    keys = keys_of(columns_of(lists, np.array([False, False, True, False])))
    assert keys[0] == keys[1] and len(np.unique(keys)) == 3
    assert len(keys_of(columns_of([], True))) == 0


def test_the_relaxation_is_that_of_the_matching():
    for graph, _ in cases(5, 60):
        assert relaxed(graph).lower == half_integral(graph).lower
        ones = np.ones(graph.n, dtype=np.int64)
        assert half_integral(graph).halves.sum() == relaxed(graph, ones).value.sum()


def test_a_relaxation_of_weights_beyond_32_bits():
    graph = from_networkx(nx.cycle_graph(6))
    weights = np.array([1, 5, 1, 7, 2, 3], dtype=np.int64) << 40
    found = relaxed(graph, weights)
    found.check(graph)
    assert 0.99 * cheapest(graph, weights) < found.lower <= cheapest(graph, weights)


@pytest.mark.parametrize(
    ("graph", "value"),
    [
        (nx.cycle_graph(7), 4),
        (nx.complete_graph(9), 8),
        (nx.disjoint_union(nx.complete_graph(5), nx.cycle_graph(9)), 9),
        (nx.caveman_graph(4, 5), 16),
        (nx.icosahedral_graph(), 8),  # 20 triangles with the value 1/5 each; the optimum is 9
        (nx.wheel_graph(6), 4),
    ],
)
def test_packings_of_known_value(graph, value):
    graph = from_networkx(graph)
    found = cycle_packing(graph)
    found.check(graph)
    assert found.lower == value


@pytest.mark.parametrize("weighted", [False, True])
def test_the_packing_comes_close_on_a_growing_graph(weighted):
    n = 250 if library.kernels() else 100  # branch and reduce in plain Python takes long
    graph = growing(n)
    weights = np.random.default_rng(1).integers(1, 1000, n) if weighted else None
    found, bounds = cycle_packing(graph, weights), CoverBounds(graph, weights)
    found.check(graph)
    while bounds.improve(1.0):
        pass
    assert bounds.lower * 0.99 < found.lower <= bounds.lower
    assert found.lower >= relaxed(graph, weights).lower + (0 if weighted else n // 50)


@needs_kernels
def test_the_packing_of_a_large_growing_graph_is_within_five_percent():
    search = CyclePacking(growing(14400), None)
    for _, _ in zip(search.slices(), range(150)):
        if 1.05 * search.best.lower >= 7820:  # the best cover known
            break
    search.best.check(growing(14400))
    assert 7821 / 1.05 <= search.best.lower <= 7820


def test_the_units_of_large_weights_are_exact():
    assert denominator(np.ones(100, dtype=np.int64)) == ONE
    assert denominator(np.array([1 << 45])) == 1 << 7
    assert denominator(np.array([1 << 60])) == 1


# ---- CoverBounds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", BOTH)
@pytest.mark.parametrize("seed", range(2))
def test_bounds_end_at_the_optimum(seed, compiled):
    for graph, weights in cases(10 + seed, 40):
        bounds, best = CoverBounds(graph, weights, compiled), cheapest(graph, weights)
        last = 0
        while bounds.improve(0.0005):
            assert last <= bounds.lower <= best
            last = bounds.lower
            bounds.certificate().check(graph)
        certificate = bounds.certificate()
        certificate.check(graph)
        assert certificate.lower == bounds.lower == best
        assert is_cover(graph, bounds.optimum)
        assert (bounds.optimum if weights is None else weights[bounds.optimum]).sum() == best


def union():
    """Nine components of 4 to 12 nodes, one of 250, two single nodes."""
    pieces = [nx.cycle_graph(5), nx.empty_graph(1), nx.barabasi_albert_graph(250, 4, seed=1)]
    pieces += [nx.petersen_graph()] * 2 + [nx.complete_graph(4), nx.empty_graph(1), nx.icosahedral_graph()]
    return from_networkx(nx.disjoint_union_all(pieces))


@pytest.mark.parametrize("compiled", BOTH)
def test_components_add_up(compiled):
    graph, bounds = union(), CoverBounds(union(), compiled=compiled)
    best = 3 + 132 + 2 * 6 + 3 + 9
    bounds.improve(30 if compiled else 2)
    bounds.certificate().check(graph)
    assert bounds.lower <= best
    assert bounds.lower >= best - 2
    if compiled:
        assert bounds.optimum.sum() == bounds.lower == best
        assert not bounds.improve(1)


def test_a_known_cover_ends_the_work():
    graph = from_networkx(nx.complete_graph(30))
    cover = np.arange(30) > 0
    with_value, with_cover = CoverBounds(graph), CoverBounds(graph)
    assert not with_value.improve(60, upper=29)
    assert not with_cover.improve(60, upper_solution=cover)
    assert with_value.lower == with_cover.lower == 29
    assert with_value.method == with_cover.method == "clique cover"
    assert np.array_equal(with_cover.optimum, cover)
    assert with_cover.certificate().checked


@needs_kernels
def test_a_search_takes_over_the_known_cover():
    graph = from_networkx(nx.gnp_random_graph(60, 0.2, seed=2))
    first = CoverBounds(graph)
    while first.improve(1):
        pass
    second = CoverBounds(graph)
    while second.improve(1, int(first.optimum.sum()) + 1, first.optimum):
        pass
    assert second.lower == first.lower
    assert second.optimum.sum() == first.lower


def test_the_best_of_each_component_is_put_together():
    """Of covers that are good in other components, and of what bounds find; nothing that is no better."""
    graph = from_networkx(nx.disjoint_union(nx.complete_graph(30), nx.gnp_random_graph(200, 0.2, seed=2)))
    first, second = (np.arange(230) != v for v in (0, 30))
    bounds = CoverBounds(graph, search=False)
    assert bounds.pieces() is None
    assert bounds.improve(0, 229, first)
    assert bounds.pieces() is None
    assert bounds.improve(0, 229, second)
    both = bounds.pieces()
    assert is_cover(graph, both)
    assert (both.sum(), both[0], both[30]) == (228, False, False)
    assert bounds.pieces() is both
    bounds.improve(0, 228, both)
    assert bounds.pieces() is None


def test_a_worse_known_cover_does_no_harm():
    for graph, weights in cases(20, 30):
        bounds = CoverBounds(graph, weights)
        while bounds.improve(1, upper_solution=np.ones(graph.n, dtype=bool)):
            pass
        assert bounds.lower == cheapest(graph, weights)
        assert is_cover(graph, bounds.optimum)


def test_no_time_no_edges_wrong_weights():
    graph = from_networkx(nx.path_graph(4))
    bounds = CoverBounds(graph)
    assert bounds.improve(0)
    assert (bounds.lower, bounds.optimum) == (0, None)
    bounds.certificate().check(graph)
    empty = CoverBounds(from_edges(3, [], []))
    assert not empty.improve(1)
    assert (empty.lower, empty.optimum.tolist(), empty.method) == (0, [False] * 3, "no edges")
    for weights in (np.ones(3), -np.ones(4), np.ones((4, 1))):
        with pytest.raises(ValueError, match="weights"):
            CoverBounds(graph, weights)


# ---- witnesses -------------------------------------------------------------------------------------------


def witness():
    """An edge 0-1, a pentagon 2-6 and a complete graph 7-10, joined by the edges 1-2 and 6-7."""
    edges = [(0, 1), (1, 2), (6, 7)] + [(2 + i, 2 + (i + 1) % 5) for i in range(5)]
    edges += [(a, b) for a in range(7, 11) for b in range(a + 1, 11)]
    graph = from_edges(11, *np.array(edges).T)
    columns = columns_of([np.array([0, 1]), np.arange(2, 7), np.arange(7, 11)], np.array([True, False, True]))
    return graph, Packing(7, "packing", columns, np.full(3, 4), 4)


def with_columns(found, **changes):
    return replace(found, columns=replace(found.columns, **changes))


def swapped(array, i, j):
    out = array.copy()
    out[[i, j]] = out[[j, i]]
    return out


def put(array, place, value):
    out = array.copy()
    out[place] = value
    return out


@pytest.mark.parametrize(
    ("corrupt", "message"),
    [
        (lambda p: replace(p, lower=8), "proves 7, the certificate says 8"),
        (lambda p: replace(p, lower=6), "proves 7, the certificate says 6"),
        (lambda p: replace(p, one=3), "more than its weight"),
        (lambda p: replace(p, one=0), "negative"),
        (lambda p: replace(p, one=8), "proves"),
        (lambda p: replace(p, value=put(p.value, 1, 5)), "node 2 add up to more"),
        (lambda p: replace(p, value=put(p.value, 1, -4)), "negative"),
        (lambda p: replace(p, value=p.value[:2]), "2 values for 3 columns"),
        (lambda p: replace(p, weights=put(np.ones(11, dtype=np.int64), 8, 0)), "node 8 add up to more"),
        (lambda p: with_columns(p, nodes=put(p.columns.nodes, 0, 3)), "1-3|3-1"),
        (lambda p: with_columns(p, nodes=swapped(p.columns.nodes, 3, 4)), "is not an edge"),
        (lambda p: with_columns(p, nodes=put(p.columns.nodes, 10, 6)), "is not an edge"),
        (lambda p: with_columns(p, nodes=put(p.columns.nodes, 8, 7)), "twice"),
        (lambda p: with_columns(p, nodes=put(p.columns.nodes, 8, 11)), "not in"),
        (lambda p: with_columns(p, nodes=put(p.columns.nodes, 8, -1)), "not in"),
        (lambda p: with_columns(p, clique=np.array([True, True, True])), "is not an edge"),
        (lambda p: with_columns(p, clique=np.array([True, False, False])), "even length"),
        (lambda p: with_columns(p, clique=np.array([False, False, True])), "even length"),
        (lambda p: with_columns(p, ptr=np.array([0, 1, 7, 11])), "fewer than two"),
        (lambda p: with_columns(p, ptr=np.array([0, 2, 7, 10])), "fewer than two"),
    ],
)
def test_a_corrupted_packing_is_rejected(corrupt, message):
    graph, found = witness()
    found.check(graph)
    with pytest.raises(BadCertificate, match=message):
        corrupt(found).check(graph)


def test_a_packing_that_overloads_through_two_columns_is_rejected():
    graph, found = witness()
    twice = joined([found.columns, columns_of([np.array([1, 2])], True)])
    with pytest.raises(BadCertificate, match="node 1 add up to more"):
        replace(found, columns=twice, value=np.array([4, 4, 4, 1])).check(graph)


def test_pieces_are_rounded_up_apart():
    graph = from_networkx(nx.disjoint_union(nx.cycle_graph(5), nx.cycle_graph(5)))
    found = packing(10, edge_columns(graph), np.ones(10, dtype=np.int64), 2, None, "edges")
    assert found.lower == 6
    found.check(graph)
    joined_up = from_edges(10, *np.array([*nx.cycle_graph(10).edges]).T)
    assert packing(10, edge_columns(joined_up), np.ones(10, dtype=np.int64), 2, None, "edges").lower == 5


@needs_kernels
def test_a_claim_is_shown_and_must_stand_apart():
    graph = union()
    bounds = CoverBounds(graph)
    while bounds.improve(1):
        pass
    found = bounds.certificate()
    assert found.claims
    assert not found.checked
    assert "branch and reduce" in found.method
    found.check(graph)
    first = found.claims[0]
    for wrong in (
        replace(found, lower=found.lower + 1),
        replace(found, claims=(*found.claims, first)),
        replace(found, claims=(replace(first, cost=first.cost + 1), *found.claims[1:])),
        replace(found, claims=(*found.claims, Claim(np.array([graph.n]), 0))),
        replace(found, packing=witness()[1], lower=found.lower + 7 - found.packing.lower),
    ):
        with pytest.raises(BadCertificate):
            wrong.check(graph)


# ---- compiled and plain kernels --------------------------------------------------------------------------


@needs_kernels
@pytest.mark.parametrize("seed", range(3))
def test_clique_covers_are_those_of_the_plain_kernel(seed):
    for graph, weights in cases(30 + seed, 15, most=40, fewest=1):
        weight = np.ones(graph.n, dtype=np.int64) if weights is None else weights
        searches = [CliqueSearch(Rows(graph), weight, seed, compiled) for compiled in (True, False)]
        for search in searches:
            for rounds in (0, 0, 7, 7):
                search.run(rounds)
        assert searches[0].left_out == searches[1].left_out
        assert np.array_equal(searches[0].clique, searches[1].clique)


def test_a_round_of_iterated_greedy_is_never_worse():
    graph, weights = growing(120), np.ones(120, dtype=np.int64)
    order, best, random = np.arange(120, dtype=np.int32), np.zeros(120, dtype=np.int32), SplitMix(1)
    value = kernels.iterate_cover(Rows(graph), weights, order, best, -1, 0, random)
    for _ in range(20):
        now = kernels.iterate_cover(Rows(graph), weights, order, best.copy(), -1, 1, random)
        assert now <= value
        value = now


@needs_kernels
@pytest.mark.parametrize("seed", range(3))
def test_separation_is_that_of_the_plain_kernel(seed):
    draws = np.random.default_rng(40 + seed)
    for graph, _ in cases(50 + seed, 15, most=40, fewest=3):
        rows, roots = Rows(graph), np.arange(graph.n, dtype=np.int32)
        price = draws.integers(0, ONE + 1, graph.n) if seed else np.full(graph.n, ONE // 2)
        for search, extra in (
            (kernels.cliques, ()),
            (kernels.odd_cycles, (30,)),
            (kernels.odd_cycles, (9999,)),
        ):
            used = [np.zeros(graph.n, dtype=np.int32) for _ in range(2)]
            found = [
                search(rows, price, ONE, roots, u, 2, ONE // 50, *extra, compiled=compiled)
                for u, compiled in zip(used, (True, False))
            ]
            assert [c.tolist() for c in found[0][0]] == [c.tolist() for c in found[1][0]]
            assert np.array_equal(*used)
            assert found[0][1] == found[1][1] == graph.n


def test_what_separation_finds_is_violated():
    draws = np.random.default_rng(7)
    for graph, _ in cases(60, 60, most=20, fewest=3):
        price = draws.integers(0, ONE + 1, graph.n)
        roots = np.arange(graph.n, dtype=np.int32)
        for search, clique, extra in ((kernels.cliques, True, ()), (kernels.odd_cycles, False, (999,))):
            used = np.zeros(graph.n, dtype=np.int32)
            found, _ = search(Rows(graph), price, ONE, roots, used, 9, ONE // 50, *extra)
            columns = columns_of(found, clique)
            for k, nodes in enumerate(found):
                assert price[nodes].sum() + ONE // 50 < columns.need[k] * ONE
            ones = np.ones(len(found), dtype=np.int64)
            packing(graph.n, columns, ones, graph.n * graph.n + 1, None, "violated").check(graph)


def test_a_shortest_odd_cycle_is_found_at_equal_prices():
    for n in (3, 5, 9, 15):
        graph = from_networkx(nx.cycle_graph(n))
        used = np.zeros(n, dtype=np.int32)
        found, _ = kernels.odd_cycles(
            Rows(graph), np.full(n, ONE // 2), ONE, np.zeros(1, dtype=np.int32), used, 1, 0, 999
        )
        assert [sorted(c.tolist()) for c in found] == [list(range(n))]


@needs_kernels
def test_packings_are_those_of_the_plain_kernels():
    for graph, weights in cases(70, 12, most=30, fewest=3):
        found = [cycle_packing(graph, weights, compiled) for compiled in (True, False)]
        assert found[0].lower == found[1].lower
        assert np.array_equal(found[0].value, found[1].value)
        assert np.array_equal(found[0].columns.nodes, found[1].columns.nodes)


def test_no_columns_at_all():
    none = Columns(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=bool))
    found = packing(3, none, np.zeros(0, dtype=np.int64), 1, None, "nothing")
    assert found.lower == 0
    found.check(from_edges(3, [0], [1]))


# ---- the collection --------------------------------------------------------------------------------------


def of_collection(path):
    """A graph of the collection (of a clique instance the complement), and its smallest known cover."""
    entry = next(e for e in catalogue() if e["path"] == path)
    stream = open_edges(str(data_dir() / path))
    chunks = list(stream.chunks())
    u, v = (np.concatenate([chunk[i] for chunk in chunks]) for i in (0, 1))
    n = stream.nodes
    if ".clq" in path:
        absent = np.ones((n, n), dtype=bool)
        absent[u, v] = absent[v, u] = False
        u, v = np.nonzero(np.triu(absent, 1))
    return from_edges(n, u, v), entry["best_value"]


@needs_data
@needs_kernels
@pytest.mark.parametrize(
    "path",
    [
        "mvc/frb30-15-1.mis", "mvc/frb50-23-1.mis", "mvc/hamming8-4.clq.gz", "mvc/MANN_a27.clq.gz",
        "mvc/gen400_p0.9_75.clq.gz", "mvc/vc-exact_005.gr.gz", "mvc/power.graph.gz",
    ],
)  # fmt: skip
def test_known_optima_are_proved(path):
    graph, value = of_collection(path)
    bounds = CoverBounds(graph)
    while bounds.improve(1, upper=value):
        pass
    bounds.certificate().check(graph)
    assert bounds.lower == value


def test_clique_cover_of_listed_cliques():
    """Cliques of consecutive numbers, many edges between them: found at the first start."""
    draws = np.random.default_rng(3)
    u, v = np.triu_indices(120, 1)
    keep = (u // 8 == v // 8) | (draws.random(len(u)) < 0.2)
    graph = from_edges(120, u[keep], v[keep])
    assert clique_cover(graph).lower == 120 - 15
