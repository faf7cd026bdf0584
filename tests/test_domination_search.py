"""Dominating sets by search: feasible, the same with and without kernels, as small as trying all finds."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from helpers import graph_of
from hypothesis import given, settings
from hypothesis import strategies as st

from app.bounds.feasible import undominated_node
from app.errors import CaseError, FixedNodesError
from app.problems.mds import MinimumDominatingSet
from app.search.domination import search as domination_search
from app.search.domination.baselines import (
    greedy_order,
    most_gain,
    most_gain_pruned,
    near_any,
    near_counts,
    needed,
)
from app.search.domination.search import ARRAYS, INSIDE, NUMBERS, OUTSIDE, DominationSearch
from app.toolbox import Instance

pytestmark = pytest.mark.mpi_skip


def tools_of(graph, weights=None, inside=(), outside=(), compiled=True):
    graph = graph if weights is None else replace(graph, node_weights=weights.astype(np.float32))
    fixed = (np.array(each, dtype=np.int64) for each in (inside, outside))
    return MinimumDominatingSet().toolbox(Instance(graph, None, *fixed, compiled))


@st.composite
def instances(draw):
    """A small graph, node weights or none, and who is fixed."""
    n, p, seed = draw(st.integers(1, 10)), draw(st.floats(0, 0.7)), draw(st.integers(0, 999))
    graph = graph_of(nx.gnp_random_graph(n, p, seed=seed))
    random = np.random.default_rng(seed)
    weights = draw(st.sampled_from([None, random.integers(1, 9, n)]))
    fixed = random.choice(3, n, p=draw(st.sampled_from([[1, 0, 0], [0.7, 0.2, 0.1]]))).astype(np.uint8)
    return graph, weights, fixed


def sets_of(graph, fixed):
    """All dominating sets [*, n] that hold to what is fixed."""
    n = graph.n
    masks = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1 == 1
    held = ~((~masks & (fixed == INSIDE)) | (masks & (fixed == OUTSIDE))).any(axis=1)
    closed = np.eye(n, dtype=bool)
    closed[graph.row_of(), graph.indices] = True
    return masks[held & ((masks.astype(int) @ closed) > 0).all(axis=1)]


def checked_value(graph, weights, fixed, chosen):
    """The value of a dominating set, once it is one."""
    assert undominated_node(graph, chosen) is None
    assert chosen[fixed == INSIDE].all()
    assert not chosen[fixed == OUTSIDE].any()
    return int(chosen.sum() if weights is None else weights[chosen].sum())


@settings(max_examples=150, deadline=None)
@given(instances(), st.booleans())
def test_a_short_search_finds_the_best_of_all_sets(instance, compiled):
    graph, weights, fixed = instance
    all_sets = sets_of(graph, fixed)
    if not len(all_sets):
        return
    price = np.ones(graph.n, dtype=np.int64) if weights is None else weights
    start = all_sets[-1]
    search = DominationSearch(graph, start, 5, weights, fixed, compiled)
    search.run(300)
    assert search.best == checked_value(graph, weights, fixed, search.solution())
    assert search.best == (all_sets @ price).min()


@pytest.mark.skipif(not domination_search.available(), reason="the kernels are not built")
@pytest.mark.parametrize("weighted", [0, 20, 1 << 51])
@pytest.mark.parametrize("seed", range(6))
def test_kernels_and_plain_code_take_the_same_course(seed, weighted):
    """Every number of the state, after calls of any length."""
    n = 50
    drawn = nx.gnp_random_graph(n, 0.08, seed=seed) if seed % 2 else nx.barabasi_albert_graph(n, 3, seed=seed)
    graph, random = graph_of(drawn), np.random.default_rng(seed)
    weights = (weighted ** random.random(n)).astype(np.int64) if weighted else None
    fixed = random.choice(3, n, p=[0.9, 0.06, 0.04] if seed > 2 else [1, 0, 0]).astype(np.uint8)
    start = fixed != OUTSIDE
    if undominated_node(graph, start) is not None:
        fixed[:] = 0
        start = ~np.zeros(n, dtype=bool)
    both = [DominationSearch(graph, start, seed, weights, fixed, compiled) for compiled in (True, False)]
    for steps in (0, 1, 2, 90, 150):
        for search in both:
            search.run(steps)
        for name in ARRAYS:
            np.testing.assert_array_equal(*(getattr(search, name) for search in both), err_msg=name)
        assert len({tuple(getattr(search, name) for name in (*NUMBERS, "random")) for search in both}) == 1
    in_one_go = DominationSearch(graph, start, seed, weights, fixed)
    in_one_go.run(243)
    assert (in_one_go.best, in_one_go.random) == (both[0].best, both[0].random)


def test_scores_are_what_a_move_changes():
    """The state after many steps, against sums over all nodes."""
    graph = graph_of(nx.barabasi_albert_graph(200, 4, seed=2))
    search = DominationSearch(graph, most_gain(graph)[0], 3)
    for _ in range(20):
        search.run(37)
        chosen = search.chosen == 1
        closed = [np.append(graph.indices[graph.indptr[v] : graph.indptr[v + 1]], v) for v in range(200)]
        times = np.array([chosen[each].sum() for each in closed])
        np.testing.assert_array_equal(times, search.times)
        for v, each in enumerate(closed):
            lone = times[each] == int(chosen[v])
            assert search.score[v] == (-1 if chosen[v] else 1) * search.weight[each][lone].sum()
        assert set(search.open[: search.open_size]) == set(np.flatnonzero(times == 0))
        if domination_search.available():  # the plain search looks at all chosen nodes
            assert set(search.heap[: search.heap_size]) == set(np.flatnonzero(chosen))
        assert search.cost == chosen.sum()


def test_sets_are_smaller_than_greedy_ones():
    graph = graph_of(nx.barabasi_albert_graph(2000, 4, seed=1))
    greedy = most_gain_pruned(graph)[0].sum()
    search = DominationSearch(graph, most_gain_pruned(graph)[0], 1)
    search.run(20_000)
    assert search.best < 0.95 * greedy
    assert not search.done


def test_nothing_left_to_do():
    """Without nodes, without edges, and where all that is chosen has to be."""
    empty = tools_of(graph_of(nx.empty_graph(0)))
    assert empty.search(1, empty.start()) is None
    tools = tools_of(graph_of(nx.empty_graph(5)))
    search = tools.search(1, tools.start())
    search.run(50)
    assert search.best == 5
    assert tools.fault(tools.lift(search.solution())) is None
    tools = tools_of(graph_of(nx.star_graph(6)), inside=[0], outside=range(1, 7))
    assert tools.search(1, tools.start()) is None
    solution = tools.lift(tools.start())
    assert tools.fault(solution) is None
    assert (tools.value(solution), tools.value_of_core(0)) == (1, 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_starts_hold_to_fixed_nodes(weighted):
    graph = graph_of(nx.barabasi_albert_graph(60, 2, seed=4))
    weights = np.random.default_rng(1).integers(1, 9, 60).astype(np.float64) if weighted else None
    inside, outside = [50, 51], [0, 1]
    tools = tools_of(graph, weights, inside, outside)
    for found in (
        tools.start(),
        tools.restrict(np.zeros(60, dtype=bool)),
        tools.restrict(np.ones(60, dtype=bool)),
    ):
        assert tools.fault(tools.lift(found)) is None
    search = tools.search(2, tools.start())
    search.run(2_000)
    found, start = tools.lift(search.solution()), tools.lift(tools.start())
    assert tools.fault(found) is None
    assert tools.value_of_core(search.best) == tools.value(found) <= tools.value(start)


def test_what_nothing_could_dominate_is_said():
    with pytest.raises(FixedNodesError, match="2 and all neighbours are to be outside the dominating set"):
        tools_of(graph_of(nx.path_graph(6)), outside=[1, 2, 3])
    with pytest.raises(CaseError, match=r"the weight of node \d+ is below 0, .* for dominating sets weights"):
        tools_of(graph_of(nx.path_graph(3)), weights=np.array([1.0, -1.0, 2.0])).start()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_greedy_sets_are_the_same_without_kernels(weighted, seed):
    draws = np.random.default_rng(seed)
    graph = graph_of(nx.gnm_random_graph(60, int(draws.integers(30, 300)), seed=seed))
    price = draws.integers(1, 40, 60) if weighted else None
    chosen, barred = draws.random(60) < 0.1, draws.random(60) < 0.1
    orders = [greedy_order(graph, price, chosen, barred, compiled) for compiled in (True, False)]
    np.testing.assert_array_equal(*orders)
    whole = chosen.copy()
    whole[orders[0]] = True
    np.testing.assert_array_equal(*[needed(graph, whole, orders[0], compiled) for compiled in (True, False)])


def test_a_greedy_order_for_prices():
    """A star whose middle is dear: its leaves are cheaper together."""
    graph = graph_of(nx.star_graph(4))
    assert greedy_order(graph).tolist() == [0]
    assert sorted(greedy_order(graph, np.array([50, 1, 1, 1, 1]))) == [1, 2, 3, 4]
    order = greedy_order(graph, chosen=np.array([0, 1, 0, 0, 0]) == 1, barred=np.arange(5) == 0)
    assert order.tolist() == [2, 3, 4]
    everything = np.ones(5, dtype=bool)
    np.testing.assert_array_equal(needed(graph, everything, np.arange(5)), np.arange(5) == 0)
    assert greedy_order(graph_of(nx.empty_graph(0))).tolist() == []


def test_neighbours_are_counted_by_all_rows_or_by_those_of_few():
    drawn = nx.gnm_random_graph(40, 70, seed=5)
    graph, draws = graph_of(drawn), np.random.default_rng(5)
    for share in (0.0, 0.05, 0.1, 0.5, 1.0):
        marked = draws.random(40) < share
        near = [[marked[u] for u in drawn[v]] for v in range(40)]
        assert near_any(graph, marked).tolist() == list(map(any, near))
        assert near_counts(graph, marked).tolist() == [sum(row) + marked[v] for v, row in enumerate(near)]
