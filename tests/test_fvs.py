"""Feedback vertex sets: against all sets of small graphs, without kernels, on any ranks; proofs; refusals."""

import json
import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from helpers import by_one
from jobs import run_job
from mpi4py import MPI
from test_certificates import altered, refused_or_valid

from app import check, solve
from app.bounds.certificate import BadCertificate
from app.bounds.feasible import node_of_cycle
from app.bounds.fvs.apart import degree_bound, packing_bound
from app.bounds.fvs.bounds import FeedbackBounds
from app.errors import CaseError, FixedNodesError, GraphError
from app.graphs.graph import from_edges
from app.graphs.multigraph import from_pairs, multigraph_of
from app.problems.fvs import FeedbackVertexSet
from app.proofs import archive
from app.reductions.fvs.log import CUT, LEAF, PATH, SHIFT, TAKE
from app.reductions.fvs.reducer import FeedbackReducer, bridges
from app.reductions.fvs.verify import verify_log
from app.reductions.replay import BadReduction
from app.search.fvs.baselines import core_hd, greedy_order, local_ratio, pruned
from app.search.fvs.search import ARRAYS, NUMBERS, FeedbackSearch
from app.search.fvs.tools import FeedbackTools
from app.toolbox import Instance

QUICK = {"search.steps": 500, "search.bound_seconds": 3.0}
alone = pytest.mark.mpi_skip


def drawn(seed, n=0, density=2.2):
    """A random multigraph; by turns weights, few and many double edges."""
    draws = np.random.default_rng(seed)
    n = n or int(draws.integers(1, 10))
    u, v = np.triu_indices(n, 1)
    some = np.sort(draws.permutation(len(u))[: int(draws.integers(0, density * n + 1))])
    count = 1 + (draws.random(len(some)) < (0.0, 0.1, 0.3)[seed % 3])
    weights = draws.integers(1, 8, n) if seed % 2 else np.ones(n, dtype=np.int64)
    return from_pairs(u[some].astype(np.int64), v[some].astype(np.int64), count.astype(np.int64), weights)


def weight(core, chosen):
    """Of a set without which there is no cycle, as NetworkX sees it."""
    graph = nx.MultiGraph()
    graph.add_nodes_from(np.flatnonzero(~chosen).tolist())
    for u, v, count in zip(*(each.tolist() for each in core.edges())):
        if not chosen[u] and not chosen[v]:
            graph.add_edges_from([(u, v)] * count)
    assert not len(graph) or nx.is_forest(graph)
    return int(core.weights[chosen].sum())


def lightest(core):
    """The weight of the lightest set."""
    best = int(core.weights.sum())
    for bits in range(1 << core.n):
        chosen = bits >> np.arange(core.n) & 1 == 1
        value = int(core.weights[chosen].sum())
        if value < best and not core.without(chosen)[0].cycles():
            best = value
    return best


def whole(graph):
    edges = np.array(list(graph.edges), dtype=np.int64).reshape(-1, 2)
    return from_edges(graph.number_of_nodes(), *edges.T)


def log_of(*words):
    return np.array(words, dtype=np.int64)


# ---- answers ----------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize(
    ("graph", "objective"),
    [
        (nx.empty_graph(3), 0),
        (nx.path_graph(5), 0),
        (nx.cycle_graph(7), 1),
        (nx.complete_graph(6), 4),
        (nx.complete_bipartite_graph(4, 5), 3),
        (nx.petersen_graph(), 3),
        (nx.disjoint_union(nx.cycle_graph(3), nx.complete_graph(4)), 3),
        (nx.barbell_graph(4, 2), 4),
        (nx.karate_club_graph(), 7),
        (nx.hypercube_graph(4), 6),
    ],
)
@pytest.mark.parametrize("reductions", [True, False])
def test_graphs_whose_number_is_known_are_proved(graph, objective, reductions):
    graph = nx.convert_node_labels_to_integers(graph)
    keys = QUICK | {"search.reductions": reductions, "output.certificates": True}
    answer = solve(graph, "fvs", settings=keys)
    left = graph.subgraph(set(graph) - set(answer.nodes))
    assert nx.is_forest(left) and len(answer.nodes) == answer.objective == objective
    assert answer.optimal and answer.bound_verified
    assert check(graph, answer).optimal


@alone
@pytest.mark.parametrize("seed", range(8))
def test_lightest_sets_of_small_graphs_with_fixed_nodes(seed):
    draws = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(9, 16, seed=seed)
    weights = draws.integers(0, 9, 9)
    inside, outside = (seed % 9,), ((seed + 1) % 9, (seed + 3) % 9)
    core = multigraph_of(whole(graph), weights)
    best = min(
        int(weights[chosen].sum())
        for bits in range(1 << 9)
        if not core.without(chosen := bits >> np.arange(9) & 1 == 1)[0].cycles()
        and chosen[list(inside)].all() and not chosen[list(outside)].any()
    )  # fmt: skip
    more = {"node_weights": weights.tolist(), "inside": inside, "outside": outside}
    answer = solve(graph, "fvs", settings=QUICK, **more)
    assert answer.objective == best and answer.optimal and answer.bound_verified
    assert set(inside) <= set(answer.nodes) and not set(outside) & set(answer.nodes)


@alone
@pytest.mark.parametrize("reductions", [True, False])
def test_a_node_outside_stays_whatever_it_could_break_and_whatever_a_start_says(reductions):
    wheel = nx.wheel_graph(12)
    keys = {"search.steps": 1, "search.reductions": reductions, "search.bounds": False}
    for start in (None, [0], [0, 3]):
        answer = solve(wheel, "fvs", outside=[0], start=start, settings=keys)
        assert 0 not in answer.nodes and answer.objective == 6


@alone
def test_settings_of_kernels_and_bounds_leave_the_same_answers():
    graph = nx.gnm_random_graph(60, 150, seed=3)
    keys = {"search.steps": 200, "search.bound_seconds": 0.1}
    found = [
        solve(graph, "fvs", settings=keys | more)
        for more in ({}, {"run.kernels": "plain"}, {"search.bounds": False})
    ]
    assert len({each.digest for each in found}) == 1
    assert set(found[0].baselines) == {"CoreHD", "local ratio"}
    again = solve(graph, "fvs", start=found[0], settings=keys | {"search.steps": 1})
    assert again.objective <= found[0].objective <= min(found[0].baselines.values())


def test_ranks_agree_with_one_rank():
    graph = nx.gnm_random_graph(200, 600, seed=7)
    keys = {"search.steps": 40_000, "search.starts": 3, "search.bounds": False}
    answer = solve(graph, "fvs", settings=keys)
    one = by_one(lambda: solve(graph, "fvs", settings=keys, comm=MPI.COMM_SELF))
    assert answer.digest == one.digest and answer.nodes == one.nodes


@alone
def test_a_run_writes_ids_that_can_be_checked(tmp_path):
    (tmp_path / "g.txt").write_text("p q\nq r\np r\nr s\ns t\nt r\n")
    keys = [f'graph.path="{tmp_path}/g.txt"', 'graph.ids="names"', 'graph.generator=""', "graph.count=1"]
    case = ["inputs/fvs.toml", *keys, "search.steps=100", "output.certificates=true"]
    code, told = run_job([sys.executable, "run.py", *case, f"--out={tmp_path}/run"], 120)
    assert code == 0, told
    (entry,) = json.loads((tmp_path / "run" / "result.json").read_text())["instances"]
    assert entry["objective"] == 1 == entry["bound"] and entry["bound_verified"]
    assert (tmp_path / "run" / "solution" / "g.txt").read_text() == "r\n"
    again = [sys.executable, "run.py", tmp_path / "run" / "case.toml", "--check", tmp_path / "run"]
    code, told = run_job(again, 120)
    assert code == 0 and "bounds of 1 are proved" in told
    (tmp_path / "run" / "solution" / "g.txt").write_text("p\n")
    code, told = run_job(again, 120)
    assert code == 2 and "leaves a cycle through node" in " ".join(told.split())


def test_what_is_asked_for_wrongly_is_refused():
    graph = nx.cycle_graph(4)
    with pytest.raises(CaseError, match="weight of node 2 is below 0"):
        solve(graph, "fvs", node_weights=[1, 1, -1, 1])
    with pytest.raises(GraphError, match="leaves a cycle through node"):
        check(graph, [], "fvs", settings=QUICK)
    with pytest.raises(FixedNodesError, match="is to be outside the feedback vertex set"):
        FeedbackTools(Instance(whole(graph), outside=np.arange(4)), FeedbackVertexSet())
    assert node_of_cycle(whole(nx.lollipop_graph(3, 5)), np.zeros(8, dtype=bool)) < 3


# ---- heuristics and search --------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(30))
def test_heuristics_and_search_are_the_same_without_kernels_and_right(seed):
    core = drawn(seed)
    best = lightest(core)
    for rule in (core_hd, local_ratio):
        chosen, _ = rule(core)
        np.testing.assert_array_equal(chosen, rule(core, compiled=False)[0])
        assert best <= weight(core, chosen) <= (2 * best if rule is local_ratio else core.weights.sum())
    search = FeedbackSearch(core, chosen, seed)
    search.run(300)
    assert search.best == weight(core, search.solution()) == best


@alone
@pytest.mark.parametrize("seed", range(4))
def test_a_search_is_the_same_without_kernels_and_however_it_is_sliced(seed):
    core = drawn(seed, 120, 6)
    start = pruned(core, greedy_order(core))
    searches = [FeedbackSearch(core, start, 7, compiled) for compiled in (True, False, True)]
    for search in searches[:2]:
        search.run(150)
    for part in (1, 60, 17, 72):
        searches[2].run(part)
    for search in searches[1:]:
        for name in (*ARRAYS[:-3], "label"):  # two are scratch
            np.testing.assert_array_equal(getattr(search, name), getattr(searches[0], name), name)
        for name in (*NUMBERS, "random"):
            assert getattr(search, name) == getattr(searches[0], name), name
    assert searches[0].best == weight(core, searches[0].solution()) <= weight(core, start)


@alone
def test_labels_that_run_out_are_spread_anew_and_weights_may_be_large(monkeypatch):
    core = drawn(1, 40, 8)
    core = core._replace(weights=core.weights << 46)
    searches = [FeedbackSearch(core, core_hd(core)[0], 3, compiled) for compiled in (True, False)]
    for search in searches:  # as close as labels can be
        order, at = [], int(search.next[core.n])
        while at != core.n:
            order.append(at)
            at = int(search.next[at])
        search.label[order] = np.arange(1, len(order) + 1)
        search.run(100)
    assert searches[0].best == searches[1].best == weight(core, searches[0].solution())
    np.testing.assert_array_equal(searches[0].label, searches[1].label)


@alone
def test_a_better_set_from_elsewhere_is_where_the_next_cycle_begins():
    core = drawn(2, 60, 6)
    poor = np.ones(60, dtype=bool)
    good = FeedbackSearch(core, core_hd(core)[0], 1)
    good.run(2000)
    other = FeedbackSearch(core, poor, 2)
    other.meet([good.news()])
    assert other.best == good.best and (other.solution() == good.solution()).all()
    other.run(500)
    assert other.best == weight(core, other.solution()) <= good.best
    other.hear(poor)
    assert other.best <= good.best


# ---- reductions -------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(60))
def test_reductions_keep_a_lightest_set_and_are_proved(seed):
    core = drawn(seed, density=(1.2, 2.2, 3)[seed % 3])
    reducer = FeedbackReducer(core)
    reducer.reduce(lambda: None)
    kernel = reducer.kernel()
    left, paid = verify_log(core, log_of(*reducer.log))
    assert paid == kernel.paid
    for proved, made in zip(left, kernel.core):
        np.testing.assert_array_equal(proved, made)
    assert kernel.paid + lightest(kernel.core) == lightest(core)
    given = core_hd(core)[0]
    moved = reducer.moved(kernel, given)
    lifted = reducer.lift(kernel, moved)
    assert weight(core, lifted) == kernel.paid + weight(kernel.core, moved) <= weight(core, given)


@alone
def test_all_reductions_occur_and_may_end_early():
    triangles = [(3 * i + a, 3 * i + b) for i in range(40) for a, b in ((0, 1), (1, 2), (2, 0))]
    graph = nx.Graph([*triangles, *((3 * i, 3 * i + 3) for i in range(39))])
    graph = nx.disjoint_union(graph, nx.gnm_random_graph(150, 240, seed=1))
    near = {v: dict.fromkeys(graph[v], 1) for v in graph}
    assert {frozenset(edge) for edge in bridges(near)} == {frozenset(edge) for edge in nx.bridges(graph)}
    graph = nx.disjoint_union(graph, nx.barbell_graph(5, 0))
    weights = np.random.default_rng(1).integers(1, 9, len(graph))
    core = multigraph_of(whole(graph), weights)
    reducer = FeedbackReducer(core)
    reducer.reduce(lambda: None)
    assert all(reducer.counts.values()), reducer.counts
    for most in (1, 150, 300):
        some = FeedbackReducer(core)
        some.reduce(lambda: None, most)
        left, paid = verify_log(core, log_of(*some.log))
        assert left.n == some.kernel().core.n and paid == some.paid and some.steps >= most
        assert len(some.log) < len(reducer.log)


@alone
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((9, 0), "no such rule"),
        ((LEAF,), "the log ends"),
        ((LEAF, 0), "more than one edge"),
        ((LEAF, 7), "node 7 is not there"),
        ((PATH, 0), "has not two neighbours"),
        ((PATH, 4), "is lighter than its neighbours"),
        ((TAKE, 0, 3), "no double edge joins"),
        ((TAKE, 1, 0), "lead past"),
        ((TAKE, 0, 1), "is heavier"),
        ((SHIFT, 3), "has other edges"),
        ((CUT, 1, 0, 3), "a cycle has the edge"),
        ((CUT, 1, 0, 1), "no single edge"),
        ((CUT, 2, 0, 3), "the log ends"),
    ],
)
def test_entries_that_prove_nothing_are_refused(words, message):
    u, v, count = (log_of(*each) for each in ((0, 0, 0, 2, 3, 3), (1, 2, 3, 3, 4, 5), (2, 1, 1, 1, 1, 1)))
    u, v, count = np.append(u, 4), np.append(v, 5), np.append(count, 1)
    core = from_pairs(u, v, count, log_of(3, 2, 5, 5, 1, 5))
    with pytest.raises(BadReduction, match=f"word 0: .*{message}"):
        verify_log(core, log_of(*words))


# ---- bounds -----------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(40))
def test_bounds_never_pass_the_lightest_set_and_close_on_it(seed):
    core = drawn(seed, density=4)
    best, nodes = lightest(core), np.arange(core.n)
    for rule in (degree_bound, packing_bound):
        lower, proof = rule(core, nodes)
        assert lower == proof.proved(core) <= best
    bounds = FeedbackBounds(core)
    known = int(core.weights.sum()) + 1
    while bounds.improve(0, known):
        found = bounds.proof()
        found.check(core)
        assert found.lower <= bounds.value <= best
    assert bounds.value == best == weight(core, bounds.optimum())
    found = bounds.proof()
    found.check(core)
    assert found.checked and found.lower == best
    with pytest.raises(BadCertificate, match=f"proves {best}"):
        replace(found, lower=best + 1).check(core)


@alone
def test_cases_are_proved_while_they_are_open_and_when_all_are_closed():
    graph = nx.gnm_random_graph(36, 100, seed=1)
    core = multigraph_of(whole(graph), np.ones(36, dtype=np.int64))
    search = FeedbackSearch(core, core_hd(core)[0], 1)
    search.run(1000)
    bounds, told = FeedbackBounds(core), set()
    while bounds.improve(0, search.best, search.solution()):
        if bounds.value not in told:
            told.add(bounds.value)
            bounds.proof().check(core)
            assert bounds.proof().lower == bounds.value
    found = bounds.proof()
    found.check(core)
    assert found.checked and found.lower == bounds.value == search.best
    assert len(told) > 2 and len(found.parts[0].cases) > 3 and len(found.parts[0].half_rows)


@alone
def test_damaged_certificates_prove_nothing_that_is_not_so():
    graph = nx.gnm_random_graph(30, 80, seed=2)
    answer = solve(graph, "fvs", settings=QUICK | {"output.certificates": True})
    assert answer.optimal
    tools = FeedbackTools(Instance(whole(graph)), FeedbackVertexSet())
    best = tools.prove(archive.from_bytes(answer.certificate))
    assert best == answer.objective
    draws = np.random.default_rng(1)
    refused = [refused_or_valid(tools, altered(answer.certificate, draws), best) for _ in range(150)]
    assert sum(refused) > 50
