"""Network dismantling: against all sets of small graphs, without kernels, on any ranks; proofs; refusals."""

import csv
import io
import json
import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from helpers import by_one, instance_of
from jobs import run_job
from mpi4py import MPI
from test_certificates import altered, refused_or_valid

from app import check, solve
from app.bounds.certificate import BadCertificate
from app.bounds.dismantle.bounds import DismantleBounds
from app.bounds.dismantle.packing import Packing, degree_bound
from app.bounds.dismantle.sparse import sparse_edges
from app.bounds.dismantle.trees import Grower
from app.bounds.dismantle.witness import no_small_cycle
from app.bounds.feasible import node_of_large_component
from app.errors import CaseError, FixedNodesError, GraphError
from app.graphs.graph import from_edges
from app.graphs.sized import from_ends, largest_component
from app.problems.dismantle import Dismantling
from app.proofs import archive
from app.reductions.dismantle.log import DROP, MERGE, PAIR, TAKE
from app.reductions.dismantle.reducer import DismantleReducer
from app.reductions.dismantle.verify import verify_log
from app.reductions.replay import BadReduction
from app.search.dismantle import baselines
from app.search.dismantle.baselines import DISMANTLE_BASELINES, core_hd, reinserted, reinsertions
from app.search.dismantle.course import largest_components
from app.search.dismantle.search import ARRAYS, NUMBERS, DismantleSearch
from app.search.dismantle.tools import DismantleTools
from app.toolbox import Instance

QUICK = {"search.steps": 300, "search.bound_seconds": 3.0}
alone = pytest.mark.mpi_skip


def drawn(seed, n=0, density=2.0):
    """A random graph; by turns weights, sizes, and limits of components."""
    draws = np.random.default_rng(seed)
    n = n or int(draws.integers(1, 10))
    u, v = np.triu_indices(n, 1)
    some = np.sort(draws.permutation(len(u))[: int(draws.integers(0, density * n + 1))])
    weights = draws.integers(1, 8, n) if seed % 2 else np.ones(n, dtype=np.int64)
    size = draws.integers(1, 4, n) if seed % 3 == 2 else np.ones(n, dtype=np.int64)
    most = int(draws.integers(1, 2 + n // 2))
    return from_ends(u[some].astype(np.int64), v[some].astype(np.int64), size, weights, most)


def components(core, chosen):
    """Sizes of what a set leaves, as NetworkX sees it."""
    graph = nx.Graph()
    graph.add_nodes_from(np.flatnonzero(~chosen).tolist())
    graph.add_edges_from(
        (u, v) for u, v in zip(*(e.tolist() for e in core.edges())) if u in graph and v in graph
    )
    return [int(core.size[list(part)].sum()) for part in nx.connected_components(graph)]


def weight(core, chosen):
    """Of a set that leaves nothing too large."""
    assert max(components(core, chosen), default=0) <= core.most
    return int(core.weights[chosen].sum())


def lightest(core):
    """The weight of the lightest set."""
    best = int(core.weights.sum())
    for bits in range(1 << core.n):
        chosen = bits >> np.arange(core.n) & 1 == 1
        value = int(core.weights[chosen].sum())
        if value < best and core.without(chosen)[0].apart():
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
    ("graph", "most", "objective"),
    [
        (nx.empty_graph(3), 1, 0),
        (nx.path_graph(11), 3, 2),
        (nx.cycle_graph(12), 3, 3),
        (nx.complete_graph(8), 3, 5),
        (nx.complete_bipartite_graph(4, 9), 3, 4),
        (nx.petersen_graph(), 1, 6),
        (nx.star_graph(9), 5, 1),
        (nx.balanced_tree(3, 3), 4, 3),
        (nx.barbell_graph(5, 3), 6, 1),
        (nx.karate_club_graph(), 3, 10),
        (nx.karate_club_graph(), 0.3, 4),
        (nx.grid_2d_graph(5, 5), 5, 8),
    ],
)
@pytest.mark.parametrize("reductions", [True, False])
def test_graphs_whose_number_is_known_are_proved(graph, most, objective, reductions):
    graph = nx.convert_node_labels_to_integers(graph)
    keys = QUICK | {"search.reductions": reductions, "output.certificates": True, "problem.component": most}
    answer = solve(graph, "dismantle", settings=keys)
    left = graph.subgraph(set(graph) - set(answer.nodes))
    limit = most if most >= 1 else int(most * len(graph))
    assert max(map(len, nx.connected_components(left)), default=0) <= limit
    assert len(answer.nodes) == answer.objective == objective
    assert answer.optimal and answer.bound_verified
    assert check(graph, answer, settings={"problem.component": most}).optimal


@alone
@pytest.mark.parametrize("seed", range(5))
def test_lightest_sets_of_small_graphs_with_fixed_nodes(seed):
    draws = np.random.default_rng(seed)
    graph, most = nx.gnm_random_graph(9, 14, seed=seed), 2 + seed % 3
    weights = draws.integers(0, 9, 9)
    inside, outside = (seed % 9,), ((seed + 1) % 9, (seed + 4) % 9)
    u, v = np.array(graph.edges).T
    core = from_ends(u, v, np.ones(9, dtype=np.int64), weights, most)
    best = min(
        int(weights[chosen].sum())
        for bits in range(1 << 9)
        if core.without(chosen := bits >> np.arange(9) & 1 == 1)[0].apart()
        and chosen[list(inside)].all() and not chosen[list(outside)].any()
    )  # fmt: skip
    more = {"node_weights": weights.tolist(), "inside": inside, "outside": outside}
    answer = solve(graph, "dismantle", settings=QUICK | {"problem.component": most}, **more)
    assert answer.objective == best and answer.optimal and answer.bound_verified
    assert set(inside) <= set(answer.nodes) and not set(outside) & set(answer.nodes)


@alone
@pytest.mark.parametrize("reductions", [True, False])
def test_a_node_outside_stays_whatever_it_could_break_and_whatever_a_start_says(reductions):
    wheel = nx.wheel_graph(13)
    keys = {
        "search.steps": 1,
        "search.reductions": reductions,
        "search.bounds": False,
        "problem.component": 4,
    }
    for start in (None, [0], [0, 3]):
        answer = solve(wheel, "dismantle", outside=[0], start=start, settings=keys)
        assert 0 not in answer.nodes and answer.objective == 9


@alone
def test_one_node_a_component_is_a_vertex_cover():
    graph = nx.gnm_random_graph(40, 80, seed=5)
    found = [solve(graph, name, settings=QUICK | more) for name, more in (
        ("mvc", {}), ("dismantle", {"problem.component": 1}), ("dismantle", {"problem.component": 0.01}),
    )]  # fmt: skip
    assert len({answer.objective for answer in found}) == 1 and all(answer.optimal for answer in found)


@alone
def test_settings_of_kernels_and_bounds_leave_the_same_answers():
    graph = nx.gnm_random_graph(60, 120, seed=3)
    keys = {"search.steps": 60, "search.bound_seconds": 0.1, "problem.component": 5}
    found = [
        solve(graph, "dismantle", settings=keys | more)
        for more in ({}, {"run.kernels": "plain"}, {"search.bounds": False})
    ]
    assert len({each.digest for each in found}) == 1
    assert set(found[0].baselines) == {"CoreHD", "high degree", "collective influence"}
    again = solve(graph, "dismantle", start=found[0], settings=keys | {"search.steps": 1})
    assert again.objective <= found[0].objective <= min(found[0].baselines.values())


def test_ranks_agree_with_one_rank():
    graph = nx.gnm_random_graph(200, 400, seed=7)
    keys = {"search.steps": 20_000, "search.starts": 3, "search.bounds": False, "problem.component": 0.05}
    answer = solve(graph, "dismantle", settings=keys)
    one = by_one(lambda: solve(graph, "dismantle", settings=keys, comm=MPI.COMM_SELF))
    assert answer.digest == one.digest and answer.nodes == one.nodes


@alone
def test_a_run_writes_ids_and_a_course_that_can_be_checked(tmp_path):
    (tmp_path / "g.txt").write_text("p q\nq r\np r\nr s\ns t\nt r\nt u\n")
    keys = [f'graph.path="{tmp_path}/g.txt"', 'graph.ids="names"', 'graph.generator=""', "graph.count=1"]
    case = [
        "inputs/dismantle.toml",
        *keys,
        "search.steps=100",
        "output.certificates=true",
        "problem.component=3",
    ]
    code, told = run_job([sys.executable, "run.py", *case, f"--out={tmp_path}/run"], 120)
    assert code == 0, told
    (entry,) = json.loads((tmp_path / "run" / "result.json").read_text())["instances"]
    assert entry["objective"] == 1 == entry["bound"] and entry["bound_verified"]
    assert (tmp_path / "run" / "solution" / "g.txt").read_text() == "r\n"
    with open(tmp_path / "run" / "dismantling" / "g.csv", newline="") as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    assert rows == [("0", "", "0", "6"), ("1", "r", "1", "3")]
    again = [sys.executable, "run.py", tmp_path / "run" / "case.toml", "--check", tmp_path / "run"]
    code, told = run_job(again, 120)
    assert code == 0 and "bounds of 1 are proved" in told
    (tmp_path / "run" / "solution" / "g.txt").write_text("q\n")
    code, told = run_job(again, 120)
    assert code == 2 and "leaves a component of 5 nodes, that of node p" in " ".join(told.split())


@alone
def test_what_is_asked_for_wrongly_is_refused():
    graph = nx.cycle_graph(9)
    keys = QUICK | {"problem.component": 3}
    with pytest.raises(CaseError, match="weight of node 2 is below 0"):
        solve(graph, "dismantle", node_weights=[1, 1, -1, *[1] * 6])
    with pytest.raises(CaseError, match=r"problem\.component: a whole number of nodes, or a share"):
        solve(graph, "dismantle", settings={"problem.component": 2.5})
    with pytest.raises(CaseError, match=r"problem\.component"):
        solve(graph, "dismantle", settings={"problem.component": 0})
    with pytest.raises(CaseError, match=r"problem\.component: only dismantle has one"):
        solve(graph, "mvc", settings={"problem.component": 5})
    with pytest.raises(GraphError, match="leaves a component of 8 nodes, that of node 0; at most 3 would"):
        check(graph, [8], "dismantle", settings=keys)
    with pytest.raises(FixedNodesError, match="a component of 4 nodes with 0 is to be outside"):
        DismantleTools(instance_of(whole(graph), outside=np.arange(4), component=3), Dismantling())
    assert [largest_component(250, each) for each in (0.01, 0.001, 1, 7.0, 0.29)] == [2, 1, 1, 7, 72]
    assert [largest_component(n, 1e300) for n in (0, 1, 250)] == [1, 1, 250]
    assert node_of_large_component(whole(graph), np.arange(9) % 4 == 0, 3) is None


# ---- heuristics, search and course ------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(36))
def test_heuristics_and_search_are_the_same_without_kernels_and_right(seed):
    core = drawn(seed)
    best = lightest(core)
    for rule in DISMANTLE_BASELINES.values():
        chosen, _ = rule(core)
        np.testing.assert_array_equal(chosen, rule(core, compiled=False)[0])
        assert best <= weight(core, chosen)
    if best:
        search = DismantleSearch(core, chosen, seed)
        search.run(300)
        assert search.best == weight(core, search.solution()) == best


@alone
@pytest.mark.parametrize("seed", range(6))
def test_a_search_is_the_same_without_kernels_and_however_it_is_sliced(seed, monkeypatch):
    core = drawn(seed, 120, 3)._replace(most=3 + 4 * seed)
    start = core_hd(core)[0]
    for rule in DISMANTLE_BASELINES.values():
        np.testing.assert_array_equal(rule(core)[0], rule(core, compiled=False)[0])
    if seed % 2:  # as on large graphs: of the first cycle the last part alone
        monkeypatch.setattr("app.search.annealed_set.QUENCHED", 1)
    searches = [DismantleSearch(core, start, 7, compiled) for compiled in (True, False, True)]
    assert (searches[0].at > 0) == (seed % 2 > 0) == (searches[0].even_steps < 1000)
    for search in searches[:2]:
        search.run(100)
    for part in (1, 40, 17, 42):
        searches[2].run(part)
    for search in searches[1:]:
        for name in ("best_left", "order", "place", "label"):
            np.testing.assert_array_equal(getattr(search, name), getattr(searches[0], name), name)
        for name in (*NUMBERS, "random"):
            assert getattr(search, name) == getattr(searches[0], name), name
        assert not search.contact.any() and set(ARRAYS) <= set(vars(search))
    first = searches[0]
    assert first.best == weight(core, first.solution()) <= weight(core, start)
    left = first.label >= 0
    sizes = np.bincount(first.label[left], weights=core.size[left], minlength=core.n)
    spare = first.spare[: first.spares]
    assert sorted([*spare.tolist(), *np.flatnonzero(sizes).tolist()]) == list(range(core.n))
    np.testing.assert_array_equal(sizes[sizes > 0], first.total[sizes > 0])
    assert sizes.max() <= core.most


@alone
def test_a_better_set_from_elsewhere_is_where_the_next_cycle_begins():
    core = drawn(2, 60, 3)._replace(most=6)
    poor = np.ones(60, dtype=bool)
    good = DismantleSearch(core, core_hd(core)[0], 1)
    good.run(1000)
    other = DismantleSearch(core, poor, 2)
    other.meet([good.news()])
    assert other.best == good.best
    other.run(300)
    assert other.best == weight(core, other.solution()) <= good.best
    other.hear(poor)
    assert other.best <= good.best


@alone
def test_weights_may_be_large_and_nodes_go_back_where_they_may():
    core = drawn(1, 60, 3)
    core = core._replace(weights=core.weights << 50, most=5)
    searches = [DismantleSearch(core, core_hd(core)[0], 3, compiled) for compiled in (True, False)]
    for search in searches:
        search.run(50)
    assert searches[0].best == searches[1].best == weight(core, searches[0].solution())
    left = reinserted(core, np.ones(60, dtype=bool))
    for v in np.flatnonzero(left):
        more = left.copy()
        more[v] = False
        assert max(components(core, more)) > core.most


@alone
def test_nodes_that_go_back_are_the_same_without_kernels_where_looks_are_few(monkeypatch):
    core = drawn(2, 60, 3)._replace(most=40)
    chosen = np.arange(60) % 3 > 0
    orders = {}
    for looks in (0, 20, 1 << 40):
        monkeypatch.setattr(baselines, "GROWN_LOOKS", looks)
        both = [reinsertions(core, chosen, compiled).tolist() for compiled in (True, False)]
        assert both[0] == both[1]
        orders[looks] = tuple(both[0])
        left = chosen.copy()
        left[both[0]] = False
        assert weight(core, left) < core.weights[chosen].sum()
    assert len(set(orders.values())) == 3


@alone
def test_the_course_of_a_set_is_that_of_its_components():
    graph = nx.gnm_random_graph(80, 130, seed=4)
    tools = DismantleTools(instance_of(whole(graph), component=4), Dismantling())
    chosen = tools.lift(tools.start())
    order = tools.dismantling_order(chosen)
    assert sorted(order.tolist()) == np.flatnonzero(chosen).tolist()
    left, largest = graph.copy(), []
    for v in (None, *order.tolist()):
        left.remove_nodes_from([v])
        largest.append(max(map(len, nx.connected_components(left))))
    for compiled in (True, False):
        assert largest_components(tools._plain(), order, compiled).tolist() == largest
    assert largest[-1] <= 4
    told = tools.course(chosen, np.arange(80)).splitlines()
    assert told[0] == "removed,node,weight,largest" and told[1] == f"0,,0,{largest[0]}"
    assert told[-1] == f"{len(order)},{order[-1]},1,{largest[-1]}"
    names = np.array([f"{i},\r\n'{chr(34)}" for i in range(80)])
    table = list(csv.reader(io.StringIO(tools.course(chosen, names), newline="")))
    assert [row[1] for row in table[2:]] == names[order].tolist()
    nothing = DismantleTools(Instance(from_edges(0, np.zeros(0), np.zeros(0))), Dismantling())
    assert nothing.course(np.zeros(0, dtype=bool), np.arange(0)).endswith("\n0,,0,0\n")


# ---- reductions -------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(90))
def test_reductions_keep_a_lightest_set_and_are_proved(seed):
    core = drawn(seed, density=(1.2, 1.6, 2.2)[seed % 3])
    reducer = DismantleReducer(core)
    reducer.reduce(lambda: None)
    kernel = reducer.kernel()
    left, paid = verify_log(core, log_of(*reducer.log))
    assert paid == kernel.paid
    for proved, made in zip(left, kernel.core):
        np.testing.assert_array_equal(proved, made)
    assert kernel.paid + lightest(kernel.core) == lightest(core)
    given = core_hd(core)[0]
    moved = reducer.moved(kernel, given)
    assert weight(kernel.core, moved) + kernel.paid <= weight(core, given)
    assert weight(core, reducer.lift(kernel, moved)) == kernel.paid + weight(kernel.core, moved)


@alone
def test_forests_are_solved_and_reductions_may_end_early():
    forest = nx.disjoint_union(nx.random_labeled_tree(70, seed=3), nx.random_labeled_tree(40, seed=4))
    core = from_ends(*np.array(forest.edges).T, *np.ones((2, 110), dtype=np.int64), 6)
    reducer = DismantleReducer(core)
    reducer.reduce(lambda: None)
    assert not reducer.near and reducer.paid == weight(core, core_hd(core)[0])
    graph = nx.disjoint_union(nx.gnm_random_graph(120, 135, seed=1), nx.barbell_graph(6, 4))
    weights = np.random.default_rng(1).integers(1, 3, len(graph))
    core = from_ends(*np.array(graph.edges).T, np.ones(len(graph), dtype=np.int64), weights, 4)
    reducer = DismantleReducer(core)
    reducer.reduce(lambda: None)
    assert reducer.counts["small"] and reducer.counts["merged"] and reducer.counts["taken"]
    for most in (1, 100, 150):
        some = DismantleReducer(core)
        some.reduce(lambda: None, most)
        left, paid = verify_log(core, log_of(*some.log))
        assert left.n == some.kernel().core.n and paid == some.paid and some.steps >= most
        assert len(some.log) < len(reducer.log)


@alone
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((9, 0), "no such rule"),
        ((DROP,), "the log ends"),
        ((DROP, 2, 4), "the log ends"),
        ((DROP, 1, 0), "an edge leads from node 0"),
        ((DROP, 1, 9), "node 9 is not there"),
        ((DROP, 2, 4, 4), "named twice"),
        ((DROP, 3, 4, 5, 6), "too large together"),
        ((MERGE, 2, 1, 3), "an edge leads from node 3"),
        ((MERGE, 0, 1, 0), "merged with itself"),
        ((MERGE, 3, 1, 4), "node 3 is heavier than 4"),
        ((TAKE, 0), "not too large"),
        ((PAIR, 0, 3), "no edge joins"),
        ((PAIR, 0, 1), "not too large together"),
        ((PAIR, 2, 6), "no edge joins"),
        ((PAIR, 6, 5), "node 6 is smaller"),
        ((PAIR, 0, 2), "leads past"),
        ((PAIR, 5, 6), "node 5 is heavier"),
    ],
)
def test_entries_that_prove_nothing_are_refused(words, message):
    u, v = log_of(0, 0, 1, 2, 3, 5), log_of(1, 2, 2, 3, 4, 6)
    core = from_ends(u, v, log_of(1, 1, 3, 1, 1, 2, 1), log_of(1, 1, 1, 5, 2, 9, 2), 2)
    if words[:2] == (DROP, 3):
        core = core._replace(most=3)
    if words[:2] == (PAIR, 6) or words == (PAIR, 5, 6):
        core = core._replace(most=2)
    with pytest.raises(BadReduction, match=f"word 0: .*{message}"):
        verify_log(core, log_of(*words))


# ---- bounds -----------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(30))
def test_bounds_never_pass_the_lightest_set_and_close_on_it(seed):
    core = drawn(seed, density=3)
    best = lightest(core)
    bounds = DismantleBounds(core)
    known = int(core.weights.sum()) + 1
    while bounds.improve(0, known):
        found = bounds.proof()
        found.check(core)
        assert found.lower <= bounds.value <= best
        if len(core.indices) and bounds._longest > 5:
            break
    found = bounds.proof()
    found.check(core)
    assert bounds.value == best and found.checked and found.lower == best
    with pytest.raises(BadCertificate, match=f"proves {best}"):
        replace(found, lower=best + 1).check(core)


@alone
@pytest.mark.parametrize("seed", range(24))
def test_first_bounds_are_proved_and_the_same_without_kernels(seed):
    core = drawn(seed, density=2.5)
    for inner, nodes in core.split():
        best = lightest(inner)
        lower, proof, edges = degree_bound(inner, nodes)
        assert lower == proof.proved(core) <= best
        if edges is not None:
            graph = nx.Graph(list(zip(*(each.tolist() for each in edges))))
            girth = nx.girth(graph)
            assert girth > inner.most and no_small_cycle(*map(list, zip(*graph.edges)), inner.most)
            ends = list(zip(*graph.edges))
            assert girth == np.inf or not no_small_cycle(list(ends[0]), list(ends[1]), girth)
        packing = Packing(inner, nodes)
        for _ in zip(range(20), packing.work()):
            assert packing.lower == packing.proof.proved(core) <= best
        both = [Grower(inner, compiled) for compiled in (True, False)]
        draws = np.random.default_rng(seed)
        for grower in both:
            grower.length[:] = np.random.default_rng(seed).integers(1, 40, inner.n)
        for root in draws.permutation(inner.n)[:4].tolist():
            for direct in (False, True):
                made, plain = (grower.tree(root, direct) for grower in both)
                assert (made.right, made.cost) == (plain.right, plain.cost)
                for each, other in zip(made[:3], plain[:3]):
                    np.testing.assert_array_equal(each, other)
                assert made.cost == int((made.coefficients * both[0].length[made.nodes]).sum())


@alone
def test_no_subgraph_is_made_that_takes_too_long(monkeypatch):
    core = drawn(4, 40, 3)._replace(most=4)
    assert sparse_edges(core) is not None and sparse_edges(core._replace(most=50)) is None
    monkeypatch.setattr("app.bounds.dismantle.sparse.MOST_LOOKED", 20)
    assert sparse_edges(core) is None


@alone
def test_cases_are_proved_while_they_are_open_and_when_all_are_closed():
    graph = nx.gnm_random_graph(40, 70, seed=1)
    ones = np.ones(40, dtype=np.int64)
    core = from_ends(*np.array(graph.edges).T, ones, ones, 5)
    search = DismantleSearch(core, core_hd(core)[0], 1)
    search.run(1000)
    bounds, told = DismantleBounds(core), set()
    bounds.allow(2.0)
    while bounds.improve(0, search.best, search.solution()):
        if bounds.value not in told:
            told.add(bounds.value)
            bounds.proof().check(core)
            assert bounds.proof().lower == bounds.value
    found = bounds.proof()
    found.check(core)
    assert found.checked and found.lower == bounds.value == search.best
    assert len(told) > 2 and bounds.method == "branch and cut"


@alone
def test_damaged_certificates_prove_nothing_that_is_not_so():
    graph = nx.gnm_random_graph(30, 55, seed=2)
    keys = QUICK | {"output.certificates": True, "problem.component": 3}
    answer = solve(graph, "dismantle", settings=keys)
    assert answer.optimal
    tools = DismantleTools(instance_of(whole(graph), component=3), Dismantling())
    best = tools.prove(archive.from_bytes(answer.certificate))
    assert best == answer.objective
    draws = np.random.default_rng(1)
    refused = [refused_or_valid(tools, altered(answer.certificate, draws), best) for _ in range(150)]
    assert sum(refused) > 40


@alone
@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_many_small_graphs_are_solved_and_proved(seed):
    core = drawn(seed, density=(1.5, 2.5, 3.5)[seed % 3])
    best = lightest(core)
    reducer = DismantleReducer(core)
    reducer.reduce(lambda: None)
    kernel = reducer.kernel()
    assert verify_log(core, log_of(*reducer.log))[1] == kernel.paid
    rest = best - kernel.paid
    assert lightest(kernel.core) == rest
    bounds = DismantleBounds(kernel.core)
    while bounds.improve(0, rest + 1):
        bounds.proof().check(kernel.core)
        assert bounds.value <= rest
    assert bounds.value == rest
    if rest:
        search = DismantleSearch(kernel.core, core_hd(kernel.core)[0], seed)
        search.run(3000)
        assert search.best == weight(kernel.core, search.solution()) == rest
