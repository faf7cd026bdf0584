"""Large components on row partitions: their states, what may go back, the learned start, curves."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from conftest import WORLD
from helpers import EXCHANGES, dense, growing_graph, instance_of, listed, make_block, random_graph, whole_rows
from mpi4py import MPI
from test_core_env import LONG, drawn_sets

from app import solve
from app.case.policy import PolicyCase
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError
from app.gnn.parameters import Parameters
from app.graphs.graph import Graph, from_edges
from app.graphs.sized import from_ends
from app.problems.dismantle import FINEST, Dismantling
from app.rl import other_ends, parts_env
from app.rl.dynamics import begin_environment
from app.rl.env import RULED_OUT, step_together
from app.rl.forest import fault_of_parts, tree_breakers
from app.rl.incremental import LiveScores
from app.rl.other_ends import broken_trees
from app.rl.qnet import QNetwork
from app.rl.redundant import parts_redundant
from app.rl.rollout import drop_redundant, finished_rollout, judged, roll_out
from app.rl.weights import default_weights, load_weights
from app.search.dismantle.baselines import DISMANTLE_BASELINES
from app.search.dismantle.course import (
    by_degree,
    curve_of,
    curves_text,
    read_curves,
    removal_order,
    robustness,
)
from app.search.dismantle.tools import DismantleTools

alone = pytest.mark.mpi_skip
GRAPHS = [*LONG.values(), random_graph(60, 0.05, 3), growing_graph(43, 2, 2)]


def as_networkx(graph):
    n, edges, _ = graph
    found = nx.empty_graph(n)
    found.add_edges_from(np.asarray(edges).reshape(-1, 2).tolist())
    return found


def degrees_in_large_parts(graph, chosen, most):
    """Live degrees, 0 of nodes that are chosen or in small components, as NetworkX sees it."""
    left = as_networkx(graph).subgraph(np.flatnonzero(~chosen).tolist())
    degree = np.zeros(graph[0], dtype=np.int64)
    for part in nx.connected_components(left):
        if len(part) > most:
            for v in part:
                degree[v] = left.degree(v)
    return degree


def largest(graph, gone):
    left = as_networkx(graph)
    left.remove_nodes_from(gone)
    return max(map(len, nx.connected_components(left)), default=0)


# ---- states -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize(("looks", "most"), [(1 << 12, 3), (1 << 12, 9), (0, 4)])
def test_states_are_the_large_components(group, exchange, looks, most, monkeypatch):
    """Followed from where nodes were lost, across ranks, and found anew (looks: 0)."""
    monkeypatch.setattr(parts_env, "LOOKS", looks)
    problem, most = Dismantling(float(most)), min(most, FINEST)
    for graph in GRAPHS:
        env = begin_environment(group, make_block(group, graph, exchange), problem)
        chosen, draws = np.zeros(graph[0], dtype=bool), np.random.default_rng(1)
        while True:
            degree = degrees_in_large_parts(graph, chosen, most)
            assert whole_rows(group, env.block, env.degree_own).tolist() == degree.tolist()
            assert env.totals[:2] == (np.count_nonzero(degree), degree.sum()) and env.totals.most == most
            chosen_at = whole_rows(group, env.block, env.chosen_at[: env.block.n_real])
            assert ((chosen_at == RULED_OUT) == (~chosen & (degree == 0))).all()
            if env.done:
                break
            nodes = draws.permutation(np.flatnonzero(degree))[: draws.integers(1, 4)]
            step_together(group, [env], [nodes])
            chosen[nodes] = True
        assert largest(graph, np.flatnonzero(chosen)) <= most


def gone_back(graph, needed, most):
    """What is left of a set, the node that makes the smallest component first, as NetworkX sees it."""
    whole, needed = as_networkx(graph), set(needed)
    while needed:
        left = set(whole) - needed
        made = [(len(nx.node_connected_component(whole.subgraph(left | {v}), v)), v) for v in needed]
        if min(made)[0] > most:
            break
        needed.remove(min(made)[1])
    return needed


def large_parts(graph, gone, most):
    """Components of more than `most` nodes that a set leaves, as graphs."""
    left = as_networkx(graph)
    left.remove_nodes_from(gone)
    return [left.subgraph(part) for part in nx.connected_components(left) if len(part) > most]


def fewest_of_tree(tree, most):
    """How few nodes break a tree, from its leaves up."""
    root = next(iter(tree))
    above, size, count = dict(nx.bfs_predecessors(tree, root)), dict.fromkeys(tree, 1), 0
    for v in [*list(above)[::-1], root]:
        if size[v] > most:
            count += 1
        elif v != root:
            size[above[v]] += size[v]
    return count


@pytest.mark.parametrize("most", [4, 15])
def test_an_episode_plays_on_and_is_worth_the_best_of_its_ends(group, most):
    """What goes back, and where its choices leave trees, is told by NetworkX."""
    better = 0
    for seed, graph in enumerate(
        [random_graph(60, 0.08, 3), growing_graph(43, 2, 2), growing_graph(90, 2, 4)]
    ):
        env = begin_environment(group, make_block(group, graph), Dismantling(float(most)))
        draws, gone = np.random.default_rng(seed), []
        while not env.done:
            assert judged(env) == len(gone)
            parts = large_parts(graph, gone, min(most, FINEST))
            gone.append(draws.choice(sorted(set().union(*parts))))
            step_together(group, [env], [np.array(gone[-1:])])
        found = [len(gone_back(graph, gone, most))]
        asked = [(most, most)] if most <= FINEST else [(most, most), (FINEST, FINEST)]
        asked += [(min(most, FINEST), level) for level in (3, 2, 1)]
        ends = list(broken_trees(group, env.block, env.problem, env.chosen_at))
        assert len(ends) == len(asked)
        for (limit, level), solution_own in zip(asked, ends):
            end = np.flatnonzero(whole_rows(group, env.block, solution_own)).tolist()
            steps = next(
                t for t in range(len(gone) + 1) if all(map(nx.is_tree, large_parts(graph, gone[:t], limit)))
            )
            trees = large_parts(graph, gone[:steps], limit)
            assert set(gone[:steps]) <= set(end) and largest(graph, end) <= limit
            assert len(end) == steps + sum(fewest_of_tree(tree, level) for tree in trees)
            found.append(len(gone_back(graph, end, most)))
        assert judged(env) == min(found) < len(gone)
        better += min(found) < found[0]
    assert better


@pytest.mark.parametrize("most", [1, 2, 4])
def test_trees_are_broken_by_the_fewest_nodes(group, most):
    for seed in range(6):
        forest = nx.disjoint_union(nx.random_labeled_tree(8, seed=seed), nx.path_graph(3))
        graph = listed(len(forest), *forest.edges)
        block = make_block(group, graph)
        nodes = tree_breakers(group, block, np.arange(block.n_own) < block.n_real, most)
        assert largest(graph, nodes.tolist()) <= most
        sets = (each for size in range(12) for each in combinations(range(graph[0]), size))
        assert len(nodes) == len(next(each for each in sets if largest(graph, list(each)) <= most))


def test_of_nodes_with_weights_the_lightest_end_stays(group):
    draws, others = np.random.default_rng(7), 0
    for seed in range(8):
        graph = growing_graph(60, 2, seed)
        block, problem = make_block(group, graph), Dismantling(4.0)
        weights = draws.integers(1, 40, 60).astype(np.float32)
        chosen_at = np.argsort(draws.permutation(60)).astype(np.int32)
        own = np.full(block.n_own, -1, dtype=np.int32)
        own[: block.n_real] = chosen_at[block.lo : block.lo + block.n_real]
        plain = finished_rollout(group, problem, block, own, 60)
        found = []
        for end in (plain.solution_own, *broken_trees(group, block, problem, own)):
            end = end.copy()
            back = parts_redundant(group, block, own, end, 4) - block.lo
            end[back[(back >= 0) & (back < block.n_real)]] = False
            found.append(whole_rows(group, block, end))
        fewest = min(found, key=np.count_nonzero)
        block.node_weights = weights[block.lo : block.lo + block.n_real]
        kept = drop_redundant(group, plain)
        taken = whole_rows(group, block, kept.solution_own)
        assert weights[taken].sum() == min(weights[end].sum() for end in found)
        assert kept.objective == taken.sum()
        others += weights[taken].sum() < weights[fewest].sum()
    assert others


@alone
def test_of_graphs_that_are_too_large_the_own_end_stays(monkeypatch):
    group, graph = Group(MPI.COMM_SELF, HostDevice()), random_graph(60, 0.08, 3)
    block, problem = make_block(group, graph), Dismantling(4.0)
    chosen_at = np.arange(block.n_own, dtype=np.int32)
    assert len(list(broken_trees(group, block, problem, chosen_at))) == 4
    assert not list(broken_trees(group, block, problem, np.full_like(chosen_at, -1)))  # no solution
    monkeypatch.setattr(other_ends, "MOST_ENTRIES", 2 * block.edges - 1)
    assert not list(broken_trees(group, block, problem, chosen_at))


def test_a_choice_in_one_component_touches_no_other(group):
    graph = listed(48, *[(i, i + 1) for i in range(23)], *[(i, i + 1) for i in range(24, 47)])
    env = begin_environment(group, make_block(group, graph), Dismantling(5.0))
    step_together(group, [env], [np.array([3])])
    rows = np.sort(group.gather_host(env.touched + env.block.lo, group.gather_integers(
        np.array([len(env.touched)]))[:, 0].tolist()))  # fmt: skip
    assert rows.tolist() == [0, 1, 2, 3, 4]


def test_the_papers_scan_is_refused(solo):
    with pytest.raises(CaseError, match=r"train\.environment"):
        begin_environment(solo, make_block(solo, GRAPHS[0]), Dismantling(2.0), scan=True)


@alone
@pytest.mark.parametrize("most", [1, 3, 9])
def test_compiled_runs_make_the_choices_of_single_steps(most):
    for graph in GRAPHS:
        found = []
        for compiled in (True, False):
            group = Group(MPI.COMM_SELF, HostDevice(compiled=compiled))
            net = QNetwork(PolicyCase(), Dismantling(float(most)))
            params = net.new_parameters(group.device, 3)
            env = begin_environment(group, make_block(group, graph), net.problem)
            scores = LiveScores(group, net, params, env)
            while not env.done:
                scores.run(3, 0)
            found.append((env.chosen_at.tolist(), env.degree_own.tolist(), tuple(env.totals), env.steps))
        assert found[0] == found[1]


# ---- sets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_faults_are_components_that_are_too_large(group, exchange):
    for graph in GRAPHS:
        n, edges, _ = graph
        block, rows = make_block(group, graph, exchange), from_edges(n, *np.asarray(edges).reshape(-1, 2).T)
        lo = min(block.lo, n)
        indptr = rows.indptr[lo : lo + block.n_real + 1]
        columns = rows.indices[indptr[0] : indptr[-1]]
        part = Graph("g", n, lo, lo + block.n_real, indptr - indptr[0], columns, rows.edges)
        for inside in drawn_sets(graph, 3):
            size = largest(graph, np.flatnonzero(~inside))
            fault = f"leaves a component of {size} nodes; at most {size - 1} may be"
            assert fault_of_parts(group, block, part, ~inside, size) is None
            if size > 1:
                assert fault_of_parts(group, block, part, ~inside, size - 1) == fault
                found = Dismantling(float(size - 1)).violation(rows, ~inside)
                assert found == fault


@pytest.mark.parametrize("most", [1, 3, 8])
def test_the_node_of_the_smallest_component_goes_back_first(group, most):
    for seed, graph in enumerate(GRAPHS):
        n = graph[0]
        whole = as_networkx(graph)
        inside = np.random.default_rng(seed).random(n) < 0.3
        while (size := largest(graph, np.flatnonzero(inside))) > most:
            left = whole.subgraph(np.flatnonzero(~inside).tolist())
            inside[min(next(part for part in nx.connected_components(left) if len(part) == size))] = True
        block = make_block(group, graph)
        chosen_at_own = np.full(block.n_own, -1, dtype=np.int32)
        chosen_at_own[: block.n_real] = inside[block.lo : block.lo + block.n_real] - 1
        solution_own = inside[block.lo : block.lo + block.n_real]
        back = parts_redundant(group, block, chosen_at_own, solution_own, most)
        left = gone_back(graph, np.flatnonzero(inside).tolist(), most)
        assert sorted({*np.flatnonzero(inside).tolist()} - set(back.tolist())) == sorted(left)
        cover = drop_redundant(
            group, finished_rollout(group, Dismantling(float(most)), block, chosen_at_own, 6)
        )
        taken = np.flatnonzero(whole_rows(group, block, cover.solution_own))
        assert cover.objective == len(taken) <= len(left) and largest(graph, taken) <= most


# ---- the learned start ------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(8))
def test_nodes_of_several_are_shown_with_nodes_beside_them(seed):
    """The same sets are feasible, a node beside another one stands for that, and no set gets larger."""
    draws = np.random.default_rng(seed)
    u, v = np.triu_indices(5, 1)
    some = np.sort(draws.permutation(len(u))[:6])
    core = from_ends(u[some], v[some], draws.integers(1, 4, 5), np.ones(5, dtype=np.int64), 1 + seed % 5)
    shown, ends = core.simple("g")
    assert shown.n == core.size.sum() == 5 + len(ends)
    problem = Dismantling(float(core.most))
    tools = DismantleTools(instance_of(from_edges(5, u[some], v[some]), component=core.most), problem)
    tools.asked = core
    for bits in range(1 << shown.n) if shown.n <= 9 else draws.integers(0, 1 << shown.n, 300).tolist():
        solution = bits >> np.arange(shown.n) & 1 == 1
        if problem.violation(shown, solution) is None:
            told = tools.told(solution)
            assert told.sum() <= solution.sum() and core.without(told)[0].apart()
    assert tools.played.largest(10**6) == core.most


@alone
def test_the_policy_is_level_with_core_hd_where_both_put_nodes_back():
    """On unseen graphs of preferential attachment and random ones, one node at a time."""
    group, problem = Group(MPI.COMM_SELF, HostDevice()), Dismantling(0.05)
    saved = load_weights(default_weights("dismantle"))
    net = QNetwork(saved.policy, problem)
    params = Parameters(group.device, net.shapes())
    params.set(saved.arrays)
    learned, plain = 0, dict.fromkeys(problem.baselines, 0)
    for graphs in (
        [growing_graph(50 + 3 * i, 4, 300 + i) for i in range(40)],
        [random_graph(50 + 3 * i, 0.15, 300 + i) for i in range(40)],
    ):
        rollouts = [roll_out(group, net, params, make_block(group, g), "single", 1.0) for g in graphs]
        learned += sum(drop_redundant(group, rollout).objective for rollout in rollouts)
        for name, rule in problem.baselines.items():
            plain[name] += sum(int(rule(from_edges(n, *edges.T))[0].sum()) for n, edges, _ in graphs)
    assert learned < min(plain["high_degree"], plain["influence"], plain["core_hd_bare"])
    assert learned < plain["core_hd"]


@alone
def test_the_policy_is_ahead_of_core_hd_where_larger_components_may_stay():
    """On graphs with triangles, once nodes have gone back."""
    group, problem = Group(MPI.COMM_SELF, HostDevice()), Dismantling(25.0)
    saved = load_weights(default_weights("dismantle"))
    net = QNetwork(saved.policy, problem)
    params = Parameters(group.device, net.shapes())
    params.set(saved.arrays)
    learned = plain = 0
    for seed in range(3):
        for graph in (
            nx.watts_strogatz_graph(500, 6, 0.1, seed=seed),
            nx.random_geometric_graph(500, 0.06, seed=seed),
            nx.powerlaw_cluster_graph(500, 3, 0.8, seed=seed),
        ):
            given = listed(len(graph), *graph.edges)
            rollout = roll_out(group, net, params, make_block(group, given), "single", 1.0)
            learned += drop_redundant(group, rollout).objective
            plain += int(problem.baselines["core_hd"](from_edges(len(graph), *given[1].T))[0].sum())
    assert learned < 0.96 * plain


@pytest.mark.parametrize("most", [6, 22])
def test_large_graphs_are_answered_by_the_policy_alone(most):
    """The same set on any ranks, checked across them."""
    graph, found = growing_graph(220, 2, 5), []
    keys = {"memory.whole_graph_mb": 0.001, "search.bounds": False, "problem.component": most}
    for comm in (WORLD, MPI.COMM_SELF):
        found.append(solve(as_networkx(graph), "dismantle", comm=comm, settings=keys))
    assert found[0].digest == found[1].digest and found[0].source == "policy"
    assert largest(graph, found[0].nodes) <= most and found[0].objective == len(found[0].nodes)
    assert not found[0].curve and not found[0].order


def test_the_policy_is_one_start_on_any_ranks():
    graph = nx.gnm_random_graph(150, 280, seed=3)
    keys = {"search.steps": 500, "search.bounds": False, "problem.component": 0.05}
    answers = [solve(graph, "dismantle", settings=keys, comm=comm) for comm in (WORLD, MPI.COMM_SELF)]
    assert answers[0].digest == answers[1].digest and answers[0].policy_evaluations > 10
    assert answers[0].curves == answers[1].curves and answers[0].robustness == answers[1].robustness
    weighted = {v: 1 + v % 5 for v in graph}
    answer = solve(graph, "dismantle", settings=keys, node_weights=weighted)
    assert answer.policy_evaluations > 10 and answer.objective == sum(weighted[v] for v in answer.nodes)


# ---- curves -----------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(3))
def test_curves_are_those_of_networkx(seed):
    graph = random_graph(50, 0.06, seed)
    n, edges, _ = graph
    tools = DismantleTools(instance_of(from_edges(n, *edges.T), component=3), Dismantling())
    chosen = tools.lift(tools.start())
    curve, order = tools.curve(chosen), tools.dismantling_order(chosen)
    for i in range(len(order) + 1):
        assert curve[i] == largest(graph, order[:i])
    rest = as_networkx(graph)
    rest.remove_nodes_from(order.tolist())
    for i in range(len(order), n + 1):
        assert curve[i] == max(map(len, nx.connected_components(rest)), default=0)
        if len(rest):
            rest.remove_node(max(rest, key=lambda v: (rest.degree(v), -v)))
    assert robustness(curve) == pytest.approx(sum(curve[1:].tolist()) / n / n)
    plain, _ = removal_order(tools._plain(), chosen, compiled=False)
    assert np.array_equal(curve, curve_of(tools._plain(), chosen, plain, compiled=False))
    other = by_degree(tools._plain(), chosen)
    left = as_networkx(graph)
    for v in other.tolist():
        assert v == max(
            (u for u in np.flatnonzero(chosen).tolist() if u in left), key=lambda u: (left.degree(u), -u)
        )
        left.remove_node(v)
    A = dense(graph)[0]
    assert A.sum() == 2 * len(edges)
    told = read_curves(curves_text({"answer": curve, 'a, "b"': curve}))
    assert told["answer"] == told['a, "b"'] == curve[: len(told["answer"])].tolist()
    assert (curve[len(told["answer"]) :] <= 1).all()
    assert curves_text({}) == "" and read_curves("") == {}


@alone
def test_a_star_and_a_path_have_known_areas():
    """Without its centre a star is n - 1 single nodes: R = (n - 1) / n^2; nothing has no area."""
    n = 11
    star = from_edges(n, np.zeros(n - 1, dtype=np.int64), np.arange(1, n))
    tools = DismantleTools(instance_of(star, component=1), Dismantling())
    assert robustness(tools.curve(np.arange(n) == 0)) == pytest.approx((n - 1) / n**2)
    assert robustness(np.zeros(1, dtype=np.int64)) == 0.0


@alone
def test_answers_tell_their_curve_by_the_names_of_nodes():
    graph = nx.relabel_nodes(nx.barabasi_albert_graph(60, 2, seed=1), lambda v: f"v{v}")
    answer = solve(graph, "dismantle", settings={"search.steps": 200, "problem.component": 4})
    assert sorted(answer.order) == sorted(answer.nodes) and len(answer.curve) > len(answer.order)
    left = graph.copy()
    for node, size in zip([None, *answer.order], answer.curve):
        left.remove_nodes_from([node])
        assert size == max(map(len, nx.connected_components(left)))
    assert set(answer.robustness) == set(answer.curves) == {"answer", *answer.baselines}
    assert all(0 < area < 0.5 for area in answer.robustness.values())
    other = solve(graph, "mvc", settings={"search.steps": 10})
    assert not other.order and not other.curve and not other.robustness


@alone
def test_curves_take_no_time_from_the_heuristics(monkeypatch):
    """All of these are made before any curve is."""
    told, graph = [], nx.barabasi_albert_graph(60, 2, seed=1)

    def noted(word, does):
        return lambda *given: told.append(word) or does(*given)

    monkeypatch.setattr(DismantleTools, "_curve", noted("curve", DismantleTools._curve))
    for name, rule in DISMANTLE_BASELINES.items():
        monkeypatch.setitem(DISMANTLE_BASELINES, name, noted(name, rule))
    found = solve(graph, "dismantle", settings={"search.steps": 10, "search.bound_seconds": 0})
    first = told.index("curve")
    assert set(told[:first]) == set(DISMANTLE_BASELINES)
    assert told[first:] == ["curve"] * len(found.curves)
