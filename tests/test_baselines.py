"""The greedy covers are feasible, follow their rule to the letter, and keep their guarantees."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.graphs.graph import Graph, from_edges
from app.search.cover.baselines import (
    BASELINES,
    max_degree,
    min_degree,
    one_hop_formula,
    one_hop_rounds,
    one_hop_work,
)  # fmt: skip

pytestmark = pytest.mark.mpi_skip


@st.composite
def graphs(draw, largest=12):
    n = draw(st.integers(1, largest))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=3 * n))
    return from_edges(n, [u for u, _ in edges], [v for _, v in edges])


def random_graph(n, p, seed):
    u, v = np.nonzero(np.triu(np.random.default_rng(seed).random((n, n)) < p, 1))
    return from_edges(n, u, v)


def hub_graph(n, seed):
    """Each node brings up to three edges to earlier ones, low numbers preferred: a few hubs."""
    rng = np.random.default_rng(seed)
    v = np.repeat(np.arange(1, n), 3)
    return from_edges(n, (rng.random(len(v)) ** 2 * v).astype(int), v)


def neighbour_sets(graph):
    return [set(graph.indices[a:b].tolist()) for a, b in zip(graph.indptr[:-1], graph.indptr[1:])]


def covered(graph, in_cover):
    return bool((in_cover[graph.row_of()] | in_cover[graph.indices]).all())


def drop_redundant(graph, in_cover):
    """The cover without the nodes, taken in ascending order, whose neighbours are all in it."""
    kept = in_cover.copy()
    for v, near in enumerate(neighbour_sets(graph)):
        kept[v] &= not all(kept[u] for u in near)
    return kept


def naive(graph, choose):
    """Whole rounds from scratch: `choose(near, live)` names what goes into the cover and what stays out."""
    near = neighbour_sets(graph)
    in_cover = np.zeros(graph.n, dtype=bool)
    live = set(range(graph.n))
    while any(near[v] for v in live):
        taken, out = choose(near, live)
        in_cover[list(taken)] = True
        live -= {*taken, *out}
        near = [s & live for s in near]
    return in_cover


def naive_max_degree(near, live):
    return {max(live, key=lambda v: (len(near[v]), -v))}, ()


def naive_min_degree(near, live):
    v = min(live, key=lambda v: (len(near[v]), v))
    return set(near[v]), {v}


def one_hop_score(near, v):
    score = 0.0
    for u in sorted(near[v]):
        score += 1.0 / (len(near[u]) * len(near[u]))
    return score


def naive_one_hop(near, live):
    return {max(live, key=lambda v: (one_hop_score(near, v), -v))}, ()


def naive_rounds(near, live):
    candidates = sorted((v for v in live if near[v]), key=lambda v: (-one_hop_score(near, v), v))
    taken, apart = set(), 10 * sum(len(near[v]) for v in candidates) <= len(candidates) ** 2
    for v in candidates[: math.ceil(len(candidates) / 100)]:
        if not (apart and near[v] & taken):
            taken.add(v)
    return taken, ()


def by_rounds(graph, compiled=True):
    return one_hop_formula(graph, work_limit=-1, compiled=compiled)


def by_large_rounds(graph, compiled=True):
    return one_hop_rounds(graph, compiled, one_in=5), "one in 5 a round"


RULES = [
    (max_degree, naive_max_degree),
    (min_degree, naive_min_degree),
    (one_hop_formula, naive_one_hop),
    (by_rounds, naive_rounds),
]


@pytest.mark.parametrize(("rule", "choose"), RULES)
@given(graph=graphs())
@settings(max_examples=60, deadline=None)
def test_covers_small_graphs_as_the_naive_rule_does(rule, choose, graph):
    in_cover, _ = rule(graph)
    assert covered(graph, in_cover)
    assert np.array_equal(in_cover, naive(graph, choose))


@pytest.mark.parametrize(("rule", "choose"), RULES)
@pytest.mark.parametrize(
    "graph", [random_graph(60, 0.15, 1), hub_graph(600, 2), hub_graph(1100, 3)], ids=["er", "hubs", "blocks"]
)
def test_covers_larger_graphs_as_the_naive_rule_does(rule, choose, graph):
    in_cover, _ = rule(graph)
    assert covered(graph, in_cover)
    assert np.array_equal(in_cover, naive(graph, choose))


RING = from_edges(900, np.arange(900), np.arange(1, 901) % 900)  # all scores are equal at first


@pytest.mark.parametrize("rule", [*BASELINES.values(), by_rounds, by_large_rounds])
@pytest.mark.parametrize(
    "graph",
    [random_graph(60, 0.3, 1), hub_graph(700, 2), hub_graph(1500, 3), random_graph(400, 0.02, 4), RING],
    ids=["dense", "hubs", "more hubs", "sparse", "ring"],
)
def test_kernels_and_plain_code_cover_alike(rule, graph):
    assert np.array_equal(rule(graph, compiled=True)[0], rule(graph, compiled=False)[0])


@pytest.mark.parametrize("rule", [max_degree, min_degree])
@given(graph=graphs(largest=20))
@settings(max_examples=60, deadline=None)
def test_caro_wei_holds(rule, graph):
    estimate = graph.n - (1 / (1 + graph.degrees())).sum()
    assert rule(graph)[0].sum() <= estimate + 1e-9


@pytest.mark.parametrize("rule", [*BASELINES.values(), by_rounds])
def test_known_graphs(rule):
    none = from_edges(0, [], [])
    assert rule(none)[0].shape == (0,)
    assert not rule(from_edges(5, [], []))[0].any()
    star = from_edges(6, [3] * 5, [0, 1, 2, 4, 5])
    assert np.flatnonzero(rule(star)[0]).tolist() == [3]
    two_stars_and_a_loner = from_edges(9, [0, 0, 0, 8, 8, 8], [1, 2, 3, 4, 5, 6])
    assert np.flatnonzero(rule(two_stars_and_a_loner)[0]).tolist() == [0, 8]
    u, v = np.triu_indices(6, 1)
    assert rule(from_edges(6, u, v))[0].sum() == 5


def test_ties_go_to_the_lowest_number():
    square = from_edges(4, [0, 1, 2, 3], [1, 2, 3, 0])
    assert max_degree(square)[0].tolist() == [True, False, True, False]
    assert min_degree(square)[0].tolist() == [False, True, False, True]
    assert one_hop_formula(square)[0].tolist() == [True, False, True, False]


def test_the_work_limit_changes_the_label():
    graph = hub_graph(300, 4)
    work = one_hop_work(graph)
    assert one_hop_formula(graph, work_limit=work)[1] == "one-hop formula"
    assert one_hop_formula(graph, work_limit=work - 1)[1] == "one-hop formula (1 % a round)"
    assert [rule(graph)[1] for rule in BASELINES.values()] == ["max degree", "min degree", "one-hop formula"]


def test_the_work_is_that_of_all_walks_of_three_steps():
    graph = hub_graph(200, 8)
    near, entries = neighbour_sets(graph), len(graph.indices)
    walks = [sum(len(near[w]) for u in near[v] for w in near[u]) + len(near[v]) for v in range(graph.n)]
    assert one_hop_work(graph) == sum(min(each, entries) for each in walks)


def test_the_formula_beats_the_degree_on_hubs():
    graph = hub_graph(1000, 5)
    sizes = {name: int(drop_redundant(graph, rule(graph)[0]).sum()) for name, rule in BASELINES.items()}
    assert sizes["one_hop"] < sizes["max_degree"]
    assert all(covered(graph, drop_redundant(graph, rule(graph)[0])) for rule in BASELINES.values())


@pytest.mark.parametrize("rule", BASELINES.values())
def test_part_of_a_graph_is_refused(rule):
    whole = random_graph(10, 0.5, 6)
    half = Graph("half", 10, 0, 5, whole.indptr[:6], whole.indices[: whole.indptr[5]], edges=whole.edges)
    with pytest.raises(ValueError, match="need all 10"):
        rule(half)
