"""The searches for vertex covers: valid, optimal on tiny graphs, the same compiled, sliced and restored."""

import itertools
from functools import partial

import networkx as nx
import numpy as np
import pytest
from data import data_dir, needs_data
from helpers import crossed, graph_of
from hypothesis import given, settings
from hypothesis import strategies as st

from app.bounds.cover.verify import uncovered_edge
from app.graphs.formats.readers import open_edges
from app.graphs.graph import from_edges
from app.native.library import kernels
from app.search.cover import start as cover_start
from app.search.cover.baselines import max_degree
from app.search.cover.exchange import available
from app.search.cover.search import METHODS, OPENING, TURN, CoverSearch
from app.search.cover.start import greedy_cover, without_redundant

pytestmark = pytest.mark.mpi_skip
needs_kernels = pytest.mark.skipif(kernels() is None, reason="the compiled kernels were not built")
every_method = pytest.mark.parametrize("method", METHODS)
both_weightings = pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])


def random_graph(n, p, seed):
    u, v = np.nonzero(np.triu(np.random.default_rng(seed).random((n, n)) < p, 1))
    return from_edges(n, u, v)


def planted_graph(groups, size, p, seed):
    """Cliques of `size` nodes, and between them random edges that spare one node of each: a hidden set."""
    rng = np.random.default_rng(seed)
    n = groups * size
    u, v = np.triu_indices(n, 1)
    hidden = (u % size == 0) & (v % size == 0)
    keep = (u // size == v // size) | ((rng.random(len(u)) < p) & ~hidden)
    return from_edges(n, u[keep], v[keep])


def node_weights(n, seed, heaviest=20):
    return np.random.default_rng(seed).integers(1, heaviest + 1, n)


def cost(in_cover, weights):
    return int(in_cover.sum() if weights is None else weights[in_cover].sum())


def optimum(graph, weights):
    """The least cost of a cover, by looking at all sets."""
    price = np.ones(graph.n, dtype=np.int64) if weights is None else weights
    sets = np.array(list(itertools.product([False, True], repeat=graph.n)), dtype=bool)
    rows, columns = graph.row_of(), graph.indices
    valid = (sets[:, rows] | sets[:, columns]).all(axis=1)
    return int((sets[valid] @ price).min())


def assert_same_state(one, other):
    assert one.keys() == other.keys()
    for key, value in one.items():
        assert np.array_equal(value, other[key]), key


def check(search, weights=None):
    """The solution is a cover of cost `best`."""
    solution = search.solution()
    assert uncovered_edge(search.graph, solution) is None
    assert search.best == cost(solution, weights)
    assert 0 <= search.found_at <= search.steps


# ---- tiny graphs ---------------------------------------------------------------------------------------


@st.composite
def tiny_graphs(draw):
    n = draw(st.integers(1, 9))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=3 * n))
    weights = draw(st.none() | st.lists(st.integers(1, 9), min_size=n, max_size=n))
    return from_edges(n, [u for u, _ in edges], [v for _, v in edges]), weights


@every_method
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])
@given(case=tiny_graphs(), seed=st.integers(0, 2**64))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_tiny_graphs_are_solved(method, compiled, case, seed):
    graph, weights = case
    weights = None if weights is None else np.array(weights)
    search = CoverSearch(graph, seed, weights=weights, method=method, compiled=compiled)
    least = optimum(graph, weights)
    for _ in range(20):
        if search.best > least:
            search.run(50)
    check(search, weights)
    assert search.best == least


@every_method
@pytest.mark.parametrize(
    ("n", "edges", "least"),
    [
        (0, [], 0),
        (5, [], 0),
        (2, [(0, 1)], 1),
        (6, [(3, v) for v in (0, 1, 2, 4, 5)], 1),
        (7, list(itertools.combinations(range(7), 2)), 6),
        (6, [(0, 1), (2, 3), (4, 5)], 3),
    ],
    ids=["no node", "no edge", "edge", "star", "complete", "matching"],
)
def test_graphs_of_known_covers(method, n, edges, least):
    u, v = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    search = CoverSearch(from_edges(n, u, v), 1, start=np.ones(n, dtype=bool), method=method)
    search.run(200)
    check(search)
    assert search.best == least
    assert search.done == (least <= min(1, len(edges)))
    assert search.steps == (0 if search.done else 200) or least == 1


def test_the_lightest_end_is_found():
    graph = from_edges(3, [0, 1], [1, 2])
    for weights, least in (([1, 5, 2], 3), ([4, 5, 2], 5)):
        search = CoverSearch(graph, 0, start=np.ones(3, dtype=bool), weights=np.array(weights))
        search.run(20)
        assert search.best == least


# ---- the same bits -------------------------------------------------------------------------------------


@needs_kernels
@every_method
@both_weightings
@pytest.mark.parametrize(("start", "p"), crossed([False, True], [0.05, 0.3, 0.6]))
def test_kernels_change_no_bit(method, weighted, start, p):
    graph = random_graph(90, p, 3)
    weights = node_weights(graph.n, 4) if weighted else None
    cover = np.ones(graph.n, dtype=bool) if start else None
    searches = [
        CoverSearch(graph, 5, cover, weights, method, compiled=compiled) for compiled in (True, False)
    ]
    for steps in (1, 30, 300):
        for search in searches:
            search.run(steps)
            check(search, weights)
        assert_same_state(*(search.state() for search in searches))


@needs_kernels
@both_weightings
def test_kernels_forget_alike(weighted):
    """So few nodes that the mean edge weight reaches its ceiling again and again."""
    assert available()
    graph = random_graph(24, 0.3, 8)
    weights = node_weights(graph.n, 9) if weighted else None
    searches = [CoverSearch(graph, 1, None, weights, "numvc", compiled) for compiled in (True, False)]
    before = 0
    forgot = False
    for _ in range(20):
        for search in searches:
            search.run(100)
        assert_same_state(*(search.state() for search in searches))
        total = searches[0].state()["numvc.total_weight"]
        forgot |= total < before
        before = total
    assert forgot


@every_method
@both_weightings
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])
def test_slices_change_nothing(method, weighted, compiled):
    graph = random_graph(70, 0.3, 11)
    weights = node_weights(graph.n, 12) if weighted else None
    one, other = (CoverSearch(graph, 3, None, weights, method, compiled) for _ in range(2))
    one.run(200)
    for steps in (10, 1, 89, 0, 100):
        other.run(steps)
    assert_same_state(one.state(), other.state())


@needs_kernels
@both_weightings
def test_slices_change_nothing_over_many_turns(weighted):
    graph = planted_graph(20, 8, 0.3, 2)
    weights = node_weights(graph.n, 1) if weighted else None
    one, other = (CoverSearch(graph, 3, None, weights) for _ in range(2))
    one.run(30_000)
    for steps in [777] * 30 + [30_000 - 777 * 30]:
        other.run(steps)
    assert len(one.state()) > 40  # two methods took turns
    assert_same_state(one.state(), other.state())
    check(one, weights)


@needs_kernels
def test_the_method_that_is_ahead_has_longer_turns():
    search = CoverSearch(planted_graph(30, 10, 0.3, 4), 2)
    search.run(OPENING)
    longer = set()
    for _ in range(60):
        search.run(TURN)
        (now, left), reached = search.state()["turn"].tolist(), search.state()["reached"].tolist()
        if left > TURN:
            longer.add(now)
            assert reached[now] < min(cost for i, cost in enumerate(reached) if i != now)
    assert longer


@every_method
@both_weightings
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])
def test_a_restored_search_goes_on(method, weighted, compiled):
    graph = random_graph(60, 0.25, 21)
    weights = node_weights(graph.n, 22) if weighted else None
    search = CoverSearch(graph, 7, None, weights, method, compiled)
    search.run(110)
    kept = search.state()
    search.run(90)
    other = CoverSearch(graph, 8, np.ones(graph.n, dtype=bool), weights, method, not compiled)
    other.run(33)
    other.restore(kept)
    other.run(90)
    assert_same_state(search.state(), other.state())


def test_a_state_is_a_copy():
    search = CoverSearch(random_graph(40, 0.2, 1), 1)
    state, solution = search.state(), search.solution()
    solution[:] = False
    search.run(50)
    check(search)
    assert state["steps"] == 0
    assert state["numvc.stamp"].max() == 0


def test_seeds_differ():
    graph = random_graph(80, 0.3, 1)
    states = []
    for seed in (0, 1, -1, 2**40):
        search = CoverSearch(graph, seed, method="numvc")
        search.run(100)
        states.append(search.state()["numvc.in_cover"].tobytes())
    assert len(set(states)) == 4


# ---- starts and offers ---------------------------------------------------------------------------------


@every_method
@both_weightings
def test_the_best_is_never_worse_than_the_start(method, weighted):
    graph = random_graph(100, 0.1, 31)
    weights = node_weights(graph.n, 32) if weighted else None
    rng = np.random.default_rng(33)
    for _ in range(10):
        order = rng.permutation(graph.n)
        start = np.ones(graph.n, dtype=bool)
        for v in order:
            start[v] = not start[graph.indices[graph.indptr[v] : graph.indptr[v + 1]]].all()
        search = CoverSearch(graph, 0, start, weights, method)
        last = search.best
        assert last <= cost(start, weights)
        for _ in range(5):
            search.run(40)
            check(search, weights)
            assert search.best <= last
            last = search.best


@both_weightings
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])
def test_the_greedy_start(weighted, compiled):
    """The plain greedy cover of app/search/cover/baselines.py, and no node of it can leave."""
    for seed in range(20):
        graph = random_graph(40, 0.02 * (seed + 1), seed)
        weights = node_weights(graph.n, seed) if weighted else None
        cover = greedy_cover(graph, weights, compiled)
        assert uncovered_edge(graph, cover) is None
        for v in np.flatnonzero(cover):
            assert not cover[graph.indices[graph.indptr[v] : graph.indptr[v + 1]]].all()
        if not weighted:
            assert np.array_equal(cover, without_redundant(graph, max_degree(graph)[0], None, not compiled))
        assert np.array_equal(cover, greedy_cover(graph, weights, not compiled))


@every_method
@both_weightings
def test_an_offered_cover_is_taken_if_it_is_better(method, weighted):
    graph = planted_graph(12, 6, 0.4, 5)
    weights = node_weights(graph.n, 6, heaviest=3) if weighted else None
    hidden = np.arange(graph.n) % 6 != 0
    search = CoverSearch(graph, 0, None, weights, method)
    before = search.best
    search.offer(search.solution())
    assert search.best == before
    search.run(3)
    before = search.best
    search.offer(hidden)
    assert search.best <= min(before, cost(hidden, weights))
    check(search, weights)
    search.run(100)
    check(search, weights)


def test_what_is_refused():
    graph = from_edges(4, [0, 1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="edge 0-1"):
        CoverSearch(graph, 0, start=np.array([False, False, True, True]))
    with pytest.raises(ValueError, match="method"):
        CoverSearch(graph, 0, method="best")
    for weights in ([1, 2, 3], [1, 2, 3, 0], [1, 2, 3, 2**31], [1.0, 2.0, 3.0, 4.0]):
        with pytest.raises(ValueError, match="weights"):
            CoverSearch(graph, 0, weights=np.array(weights))
    with pytest.raises(ValueError, match="at most 5000"):
        CoverSearch(from_edges(5001, [0], [1]), 0, method="penalty")


# ---- larger graphs -------------------------------------------------------------------------------------


@needs_kernels
@pytest.mark.parametrize("method", ["numvc", "penalty", "auto"])
def test_a_hidden_set_is_found(method):
    graph = planted_graph(15, 10, 0.35, 7)
    search = CoverSearch(graph, 0, method=method)
    search.run(100_000)
    check(search)
    assert search.best == graph.n - 15  # one node of each clique stays out: no cover is smaller


@pytest.mark.parametrize("seed", [1, 2])
def test_swaps_come_to_the_optimum_of_weights_that_differ_little(seed):
    """Losses of parts of a mean weight were all let pass: the search stayed at 13,750 or so."""
    graph = graph_of(nx.barabasi_albert_graph(400, 4, seed=1))
    weights = np.random.default_rng(1).integers(20, 121, 400)
    search = CoverSearch(graph, seed, None, weights, "swap")
    search.run(6000)
    assert weights.sum() - search.best == 13_821  # proved by packings


@needs_kernels
def test_a_large_sparse_graph():
    rng = np.random.default_rng(1)
    v = np.repeat(np.arange(1, 30_000), 3)
    graph = from_edges(30_000, (rng.random(len(v)) ** 2 * v).astype(int), v)
    search = CoverSearch(graph, 0)
    first = search.best
    search.run(100_000)
    check(search)
    assert search.best < first
    assert min(search.state()[f"{name}.steps"] for name in ("swap", "anneal")) > 1000


def complement_of_file(name):
    """The complement of a clique graph of the collection."""
    stream = open_edges(str(data_dir() / "mvc" / name))
    adjacent = np.eye(stream.nodes, dtype=bool)
    for u, v, _ in stream.chunks():
        adjacent[u, v] = adjacent[v, u] = True
    return from_edges(stream.nodes, *np.nonzero(np.triu(~adjacent)))


@needs_kernels
@needs_data
@pytest.mark.parametrize(
    ("name", "least", "steps"),
    [
        ("keller5.clq.gz", 749, 200_000),
        ("MANN_a27.clq.gz", 252, 200_000),
        ("gen400_p0.9_75.clq.gz", 325, 50_000),
        ("hamming8-4.clq.gz", 240, 20_000),
        ("brock400_2.clq.gz", 371, 1_500_000),
    ],
)
def test_clique_benchmarks_reach_the_best_known(name, least, steps):
    search = CoverSearch(complement_of_file(name), 0)
    while search.best > least and search.steps < steps:
        search.run(20_000)
    check(search)
    assert search.best == least


@both_weightings
def test_a_greedy_start_that_is_cut_short_is_a_cover(weighted, monkeypatch):
    """At every look, with the library and without: the same cover, from which no node can leave; the later
    the look the more of it is that of the whole.
    """
    monkeypatch.setattr(cover_start, "PIECE", 40)
    graph = random_graph(60, 0.1, 3)
    weights = node_weights(graph.n, 3) if weighted else None
    whole, asked = greedy_cover(graph, weights, look=lambda: False), []
    assert np.array_equal(whole, greedy_cover(graph, weights))
    for last in range(1, 30):
        found = []
        for compiled in (True, False):
            looks = iter([False] * (last - 1) + [True])
            found.append(greedy_cover(graph, weights, compiled, partial(next, looks)))
            asked.append(last - len(list(looks)))
        assert np.array_equal(*found) and asked[-1] == asked[-2]
        assert uncovered_edge(graph, found[0]) is None
        assert not any(
            found[0][graph.indices[graph.indptr[v] : graph.indptr[v + 1]]].all()
            for v in np.flatnonzero(found[0])
        )
    assert max(asked) > 3 and np.array_equal(found[0], whole)
