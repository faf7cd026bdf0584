"""Branch and reduce finds a cheapest cover: sparse, dense and plain, any limit, slices of any size."""

import networkx as nx
import numpy as np
import pytest
from covers import cheapest, from_networkx, growing, is_cover, random_graph, random_weights

from app.bounds.cover.branch import BranchSearch, DenseSearch, dense_order, search_for
from app.bounds.cover.kernels import Rows
from app.native.library import kernels

pytestmark = pytest.mark.mpi_skip
needs_kernels = pytest.mark.skipif(kernels() is None, reason="no compiled kernels")


def sparse(rows, weights, limit):
    return BranchSearch(rows, weights, limit)


def plain(rows, weights, limit):
    return BranchSearch(rows, weights, limit, compiled=False)


ENGINES = [sparse, pytest.param(DenseSearch, marks=needs_kernels), plain]


def finish(search, slice_nodes=1000):
    while not search.run(slice_nodes):
        assert search.cost is None
        assert search.cover is None
    return search


def unit(graph, weights):
    return np.ones(graph.n, dtype=np.int64) if weights is None else weights


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(3))
def test_the_cost_is_that_of_brute_force(engine, seed):
    draws = np.random.default_rng(seed)
    for _ in range(60):
        graph = random_graph(draws, 10, fewest=1)
        weights = unit(graph, random_weights(draws, graph.n))
        best = cheapest(graph, weights)
        for limit in (1 << 40, best + 1):
            search = finish(engine(Rows(graph), weights, limit), slice_nodes=int(draws.integers(1, 5)))
            assert search.cost == best
            assert is_cover(graph, search.cover)
            assert weights[search.cover].sum() == best
        refused = finish(engine(Rows(graph), weights, best))
        assert (refused.cost, refused.cover) == (None, None)


@needs_kernels
@pytest.mark.parametrize("seed", range(4))
def test_engines_agree_on_larger_graphs(seed):
    draws = np.random.default_rng(100 + seed)
    for _ in range(25):
        graph = random_graph(draws, 45, fewest=20)
        weights = unit(graph, random_weights(draws, graph.n))
        first, second = (finish(e(Rows(graph), weights, 1 << 40)) for e in (sparse, DenseSearch))
        assert first.cost == second.cost
        assert is_cover(graph, first.cover)
        assert is_cover(graph, second.cover)


@needs_kernels
def test_the_plain_search_agrees_on_sparse_graphs():
    for seed in range(6):
        graph = from_networkx(nx.random_regular_graph(3, 24, seed=seed))
        weights = np.ones(24, dtype=np.int64)
        assert finish(sparse(Rows(graph), weights, 99)).cost == finish(plain(Rows(graph), weights, 99)).cost


@needs_kernels
@pytest.mark.parametrize("weighted", [False, True])
def test_slices_change_nothing(weighted):
    graph = from_networkx(nx.gnp_random_graph(70, 0.1, seed=3))
    weights = np.arange(1, 71) % 7 + 1 if weighted else np.ones(70, dtype=np.int64)
    for engine in (sparse, DenseSearch):
        one, many = (
            finish(engine(Rows(graph), weights, 10**6), 1),
            finish(engine(Rows(graph), weights, 10**6)),
        )
        assert (one.cost, one.nodes) == (many.cost, many.nodes)
        assert np.array_equal(one.cover, many.cover)


@pytest.mark.parametrize(
    ("graph", "cost"),
    [
        (nx.empty_graph(3), 0),
        (nx.path_graph(7), 3),
        (nx.cycle_graph(9), 5),
        (nx.star_graph(5), 1),
        (nx.complete_graph(6), 5),
        (nx.petersen_graph(), 6),
        (nx.icosahedral_graph(), 9),
        (nx.disjoint_union(nx.petersen_graph(), nx.cycle_graph(5)), 9),
        (nx.dodecahedral_graph(), 12),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_known_values(engine, graph, cost):
    graph = from_networkx(graph)
    assert finish(engine(Rows(graph), np.ones(graph.n, dtype=np.int64), graph.n + 1)).cost == cost


@needs_kernels
def test_no_nodes():
    graph = from_networkx(nx.empty_graph(0))
    assert finish(sparse(Rows(graph), np.zeros(0, dtype=np.int64), 1)).cost == 0


@needs_kernels
def test_a_growing_graph_of_a_thousand_nodes():
    search = finish(sparse(Rows(growing(1000)), np.ones(1000, dtype=np.int64), 1000))
    assert search.cost == 541
    assert is_cover(growing(1000), search.cover)


@needs_kernels
def test_a_search_may_be_dropped_halfway():
    graph = from_networkx(nx.gnp_random_graph(120, 0.1, seed=1))
    for engine in (sparse, DenseSearch):
        search = engine(Rows(graph), np.ones(120, dtype=np.int64), 120)
        assert not search.run(3)
        del search


@needs_kernels
def test_the_engine_follows_the_density():
    dense, thin = nx.gnp_random_graph(60, 0.5, seed=1), nx.path_graph(60)
    ones = np.ones(60, dtype=np.int64)
    assert isinstance(search_for(Rows(from_networkx(dense)), ones, 60), DenseSearch)
    assert isinstance(search_for(Rows(from_networkx(thin)), ones, 60), BranchSearch)
    assert isinstance(search_for(Rows(from_networkx(dense)), ones, 60, compiled=False), BranchSearch)


def test_the_order_of_a_dense_search():
    rows = Rows(from_networkx(nx.star_graph(3)))
    assert dense_order(rows, np.ones(4, dtype=np.int64)).tolist() == [3, 2, 1, 0]
    assert dense_order(rows, np.array([1, 5, 1, 1])).tolist() == [1, 3, 2, 0]
