"""Dominating sets of what reductions leave: optima, starts, bounds, searches are those of the whole graph."""

from dataclasses import replace
from functools import partial

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import graph_of, seeds
from mpi4py import MPI
from test_domination_search import checked_value, sets_of, tools_of

from app import solve
from app.reductions.domination import table_rows
from app.reductions.domination.check import BadStep, verify_steps
from app.reductions.domination.core import core_of, undominated
from app.reductions.domination.reducer import CHOSEN, COLUMNS, ROWS, Kernel, Step
from app.search.domination.baselines import greedy_order, needed
from app.search.domination.search import ARRAYS, INSIDE, NUMBERS, OUTSIDE, DominationSearch
from app.toolbox import Instance, verified

alone = pytest.mark.mpi_skip
needs_kernels = pytest.mark.skipif(not table_rows.available(), reason="the compiled kernels were not built")


def drawn_tools(seed, most=12, compiled=True):
    """A toolbox of a small graph (in two pieces, now and then), its fixed nodes, and all sets that dominate.

    Weights are missing, or 0 to 6, so that some nodes cost nothing.
    """
    random = np.random.default_rng(seed)
    n = int(random.integers(2, most))
    kinds = (
        nx.gnp_random_graph(n, float(random.uniform(0.05, 0.5)), seed=seed),
        nx.random_labeled_tree(n, seed=seed),
        nx.disjoint_union(nx.path_graph(n // 2), nx.gnp_random_graph(n - n // 2, 0.5, seed=seed)),
    )
    graph = graph_of(kinds[seed % 3])
    fixed = random.choice(3, n, p=[1, 0, 0] if seed % 4 else [0.8, 0.1, 0.1]).astype(np.uint8)
    if not len(sets_of(graph, fixed)):
        fixed[:] = 0
    weights = random.integers(0, 7, n) if seed % 2 else None
    tools = tools_of(
        graph, weights, np.flatnonzero(fixed == INSIDE), np.flatnonzero(fixed == OUTSIDE), compiled
    )
    return tools, weights, fixed, sets_of(graph, fixed)


def core_sets(core):
    """All sets [*, k] of allowed nodes of a core that dominate what is needed."""
    k = core.graph.n
    masks = (np.arange(1 << k)[:, None] >> np.arange(k)) & 1 == 1
    good = [not (mask & ~core.allowed).any() and not undominated(core, mask).any() for mask in masks]
    return masks[np.array(good)]


@alone
@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize(
    "first", [0, 60, *(pytest.param(each, marks=pytest.mark.long) for each in (120, 180))]
)
def test_optima_of_the_core_are_those_of_the_graph(first, reduced):
    """With the offset; what follows a set is feasible and no dearer; bounds are proved for the graph."""
    for seed in range(first, first + 60):
        tools, weights, fixed, all_sets = drawn_tools(seed)
        price = np.ones(tools.graph.n, dtype=np.int64) if weights is None else weights
        wanted = int((all_sets @ price).min())
        if reduced:
            tools.reduce(lambda: None)
        sets = core_sets(tools.question)
        found = [checked_value(tools.graph, weights, fixed, tools.lift(each)) for each in sets]
        assert min(found) == wanted
        own = np.ones(tools.core.n, dtype=np.int64) if tools.price is None else tools.price
        assert [tools.value_of_core(int(own[each].sum())) for each in sets] == found
        given = all_sets[seed % len(all_sets)]
        followed = tools.lift(tools.restrict(given))
        assert checked_value(tools.graph, weights, fixed, followed) <= price[given].sum()
        for rough in (np.zeros(tools.graph.n, dtype=bool), np.ones(tools.graph.n, dtype=bool)):
            checked_value(tools.graph, weights, fixed, tools.lift(tools.restrict(rough)))
        checked_value(tools.graph, weights, fixed, tools.lift(tools.start()))
        bounds = tools.bounds()
        while bounds.improve(0.0, 1 << 60):
            assert tools.value_of_core(bounds.value) <= wanted
        assert tools.value_of_core(bounds.value) <= wanted
        assert verified(tools, bounds)


@alone
@pytest.mark.parametrize("compiled", [True, False])
def test_a_short_search_of_the_core_finds_an_optimum(compiled):
    for seed in range(80):
        tools, weights, fixed, all_sets = drawn_tools(seed, compiled=compiled)
        price = np.ones(tools.graph.n, dtype=np.int64) if weights is None else weights
        if seed % 3:
            tools.reduce(lambda: None)
        search = tools.search(seed, tools.start())
        if search is None:
            best = np.zeros(0, dtype=bool)
        else:
            search.run(300)
            best = search.solution()
            assert tools.value_of_core(search.best) == tools.value(tools.lift(best))
        assert checked_value(tools.graph, weights, fixed, tools.lift(best)) == (all_sets @ price).min()


@alone
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_kernels_and_plain_code_take_the_same_course_on_a_core(seed, weighted):
    random = np.random.default_rng(seed)
    graph = graph_of(nx.gnp_random_graph(60, 0.07, seed=seed))
    left, able = random.random(60) < 0.7, random.random(60) < 0.8
    left &= able | (np.bincount(graph.row_of()[able[graph.indices]], minlength=60) > 0)
    core = core_of(graph, left, able)
    k = core.graph.n
    price = random.integers(1, 30, k) if weighted else None
    none = np.zeros(k, dtype=bool)
    orders = [greedy_order(core.graph, price, none, ~core.allowed, c, ~core.needed) for c in (True, False)]
    np.testing.assert_array_equal(*orders)
    start = none.copy()
    start[orders[0]] = True
    assert not undominated(core, start).any()
    starts = [needed(core.graph, start, orders[0], c, ~core.needed) for c in (True, False)]
    np.testing.assert_array_equal(*starts)
    fixed = np.where(core.allowed, 0, OUTSIDE).astype(np.uint8)
    both = [DominationSearch(core.graph, start, 3, price, fixed, c, ~core.needed) for c in (True, False)]
    for steps in (0, 1, 2, 60, 150):
        for search in both:
            search.run(steps)
        for name in ARRAYS:
            np.testing.assert_array_equal(*(getattr(search, name) for search in both), err_msg=name)
        assert len({tuple(getattr(search, name) for name in (*NUMBERS, "random")) for search in both}) == 1
    best = both[0].solution()
    assert not undominated(core, best).any()
    assert not (best & ~core.allowed).any()
    assert both[0].best == (best.sum() if price is None else price[best].sum())


@alone
@pytest.mark.parametrize("seeds", seeds(400, 120))
def test_what_is_left_is_what_the_steps_leave(seeds):
    """A cheap node that dominates nothing more than what others have to is out of question, too."""
    path = graph_of(nx.path_graph(7))
    tools = tools_of(path, np.array([1, 3, 3, 3, 2, 1, 0]))
    tools.reduce(lambda: None)
    for seed in seeds:
        random = np.random.default_rng(seed)
        n = int(random.integers(5, 40))
        kinds = (
            nx.cycle_graph(n),
            nx.barabasi_albert_graph(n, 2, seed=seed),
            nx.gnp_random_graph(n, 0.2, seed=seed),
        )
        price = random.choice([1, 2, 3, 10, 1000], n)
        none = np.zeros(n, dtype=bool)
        for graph in map(graph_of, kinds):
            kernel = Kernel(graph, price, none, none, lambda: False)
            proved = verify_steps(graph, price, none, none, kernel.steps)
            np.testing.assert_array_equal(kernel.needed, np.flatnonzero(proved.needed))
            np.testing.assert_array_equal(kernel.columns, np.flatnonzero(proved.allowed))
            np.testing.assert_array_equal(kernel.chosen, proved.chosen)


@alone
@pytest.mark.parametrize("weighted", [False, True])
def test_wrong_steps_are_refused(weighted):
    """Each step as it is proves itself; with other nodes, or once more, it does not."""
    graph = graph_of(nx.barabasi_albert_graph(120, 2, seed=3))
    weights = np.random.default_rng(1).integers(1, 9, 120) if weighted else None
    tools = tools_of(graph, weights, inside=[7], outside=[3, 11])
    tools.reduce(lambda: None)
    steps, fixed = tools.kernel.steps, (tools.whole_price(), tools.inside, tools.outside)
    proved = verify_steps(graph, *fixed, steps)
    np.testing.assert_array_equal(proved.chosen, tools.chosen)
    assert {step.rule for step in steps} == {ROWS, COLUMNS, CHOSEN}
    for i, step in enumerate(steps[:6]):
        turned = replace(step, nodes=step.by, by=step.nodes)
        other = replace(step, by=(step.by + 1) % 120)
        for wrong in (turned, other, replace(step, by=step.by[1:]), replace(step, rule=9)):
            with pytest.raises(BadStep, match=rf"step {i}: "):
                verify_steps(graph, *fixed, [*steps[:i], wrong])
        with pytest.raises(BadStep, match=rf"step {i + 1}: "):
            verify_steps(graph, *fixed, [*steps[: i + 1], step])
    twins = graph_of(nx.complete_graph(3))
    both = Step(COLUMNS, np.array([0, 1, 2]), np.array([1, 2, 0]))
    none = np.zeros(3, dtype=bool)
    with pytest.raises(BadStep, match="two nodes may stand for each other"):
        verify_steps(twins, np.ones(3, dtype=np.int64), none, none, [both])
    with pytest.raises(BadStep, match="two nodes may speak for each other"):
        verify_steps(twins, np.ones(3, dtype=np.int64), none, none, [replace(both, rule=ROWS)])


@alone
def test_reductions_want_memory_for_them():
    graph = graph_of(nx.path_graph(50))
    tools = tools_of(graph)
    small = type(tools)(Instance(graph, most_bytes=1000.0), tools.problem)
    assert small.reduce(lambda: None) == ""
    assert small.core is graph
    assert tools.reduce(lambda: None).startswith("reduced to 0 of 50 nodes to dominate, by 0 nodes; 17 are")


@alone
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("calls", [1, 2, 5])
def test_reductions_that_are_cut_short_count(calls, compiled, monkeypatch):
    """What they have done by then can be proved, and the same number of pieces does it again."""
    monkeypatch.setattr(table_rows, "PIECE", 200)
    graph = graph_of(nx.barabasi_albert_graph(200, 2, seed=1))
    tools, again, whole = (tools_of(graph, inside=[4], compiled=compiled) for _ in range(3))
    left = iter([False] * (calls - 1))
    assert "reduced to" in tools.reduce(lambda: next(left, True))
    assert tools.reduction_steps == calls
    again.reduce(lambda: False, calls)
    whole.reduce(lambda: False)
    assert again.reduction_steps == calls < whole.reduction_steps
    for name in ("names", "needed", "allowed"):
        assert np.array_equal(getattr(tools.question, name), getattr(again.question, name))
    assert tools.core.n > whole.core.n
    for each in (tools, again):
        bounds = each.bounds()
        bounds.improve(0.0, 200)
        assert verified(tools, bounds)


@alone
@needs_kernels
@pytest.mark.parametrize("seed", range(8))
def test_rows_are_compared_alike_by_the_kernel(seed, monkeypatch):
    """The same pairs in the same pieces and order, some rows of which leave meanwhile."""
    monkeypatch.setattr(table_rows, "PIECE", 64)
    random = np.random.default_rng(seed)
    dense = random.random((60, 40)) < random.choice([0.05, 0.1, 0.3])
    dense[30:40] = dense[:10]
    dense[40:50] = dense[10:20] | dense[20:30]
    table, turned = (sp.csr_array(each.astype(np.int8)) for each in (dense, dense.T))
    found = {}
    for compiled in (False, True):
        kept, looks = np.ones(60, dtype=bool), iter(range(seed + 3, -1, -1))
        pairs = []
        over = partial(lambda left: not next(left, 0), looks)
        for u, v in table_rows.rows_within(table, turned, kept, over, compiled):
            pairs += zip(u.tolist(), v.tolist())
            kept[v[(u + v) % 3 == 0]] = False
        found[compiled] = pairs, kept.tolist()
    assert found[False] == found[True]
    assert all((dense[u] <= dense[v]).all() and u != v for u, v in found[True][0])
    assert len(found[True][0]) > 5


GRAPHS = {
    "core": lambda: nx.barabasi_albert_graph(400, 3, seed=5),
    "solved": lambda: nx.random_labeled_tree(150, seed=2),
    "pieces": lambda: nx.disjoint_union_all([nx.cycle_graph(9), nx.grid_2d_graph(8, 8), nx.empty_graph(3)]),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_answers_are_the_same_on_any_number_of_ranks(name, weighted):
    """The learned start, search and bound on the core; without reductions the set is no smaller."""
    graph = nx.convert_node_labels_to_integers(GRAPHS[name]())
    if weighted:
        nx.set_node_attributes(graph, {v: v % 6 for v in graph}, "weight")
    settings = {"search.steps": 3000, "search.baselines": False, "run.device": "cpu"}
    found = solve(graph, "mds", settings=settings, outside=[2])
    own = solve(graph, "mds", settings=settings, outside=[2], comm=MPI.COMM_SELF)
    assert (found.nodes, found.objective, found.bound) == (own.nodes, own.objective, own.bound)
    assert found.feasible
    assert 2 not in found.nodes
    assert {*found.nodes, *(u for v in found.nodes for u in graph[v])} == set(graph)
    whole = solve(graph, "mds", settings={**settings, "search.reductions": False}, outside=[2])
    assert found.bound <= found.objective <= whole.objective
    assert whole.bound <= found.objective


@alone
@needs_kernels
def test_the_rarest_columns_are_those_of_the_plain_code():
    """What the kernel is given of them lives until it has read it."""
    for seed in range(5):
        table = sp.random(2000, 2000, 0.005, format="csr", random_state=seed, dtype=np.float64)
        table = sp.csr_array(table)
        table.sort_indices()
        turned = sp.csr_array(table.T)
        turned.sort_indices()
        degree = np.bincount(table.indices, minlength=2000).astype(np.int32)
        compiled, plain = (kind(table, turned, degree) for kind in (table_rows._Compiled, table_rows._Plain))
        rows = np.flatnonzero(np.diff(table.indptr))
        assert np.array_equal(compiled.first[rows], plain.first[rows])
