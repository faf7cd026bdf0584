"""app/rl/env.py and app/problems: the residual graph against networkx, and its exact totals."""

import networkx as nx
import numpy as np
import pytest
from helpers import growing_graph, listed, make_block, make_blocks, random_graph, totals_of, whole_rows
from mpi4py import MPI

from app.comm.group import Group
from app.device import HostDevice
from app.native import residual
from app.problems.mvc import MinimumVertexCover
from app.problems.problem import Totals
from app.problems.table import make_problem
from app.rl.env import GraphEnv, codes_of, step_together
from app.rl.fleet import Fleet

GRAPHS = {
    "random": random_graph(37, 0.15, 1),
    "hubs": growing_graph(43, 3, 2),
    "isolated nodes": listed(40, *[(2 * i, 2 * i + 3) for i in range(12)]),
    "fewer nodes than ranks": listed(3, (0, 1), (1, 2)),
    "one octet": random_graph(8, 0.5, 3),
    "one edge": listed(70, (5, 66)),
    "no edge": listed(20),
    "one node": listed(1),
    "complete": random_graph(17, 1.1, 4),
}


def to_networkx(graph):
    n, edges, _ = graph
    G = nx.empty_graph(n)
    G.add_edges_from(edges.tolist())
    return G


def check(group, env, G, removed, n):
    """Degrees, removals and totals are those of the networkx graph that is left."""
    expected = np.array([G.degree(v) if v in G else 0 for v in range(n)])
    columns = np.stack([env.degree_own, env.marks_own(), env.chosen_at], axis=1)
    assert not columns[env.block.n_real :, :2].any()
    degree, alive, chosen = whole_rows(group, env.block, columns).astype(int).T
    assert np.array_equal(degree, expected)
    assert np.array_equal(alive, [v in G for v in range(n)])
    assert chosen.tolist() == [removed.get(v, -1) for v in range(n)]
    solution_own = env.problem.solution_of(env.chosen_at[: env.block.n_real])
    assert np.array_equal(solution_own, chosen[env.block.lo :][: env.block.n_real] >= 0)
    A = np.zeros((n, n))
    for u, v in G.edges:
        A[u, v] = A[v, u] = 1
    assert env.totals == totals_of(A)
    assert all(type(t) is int for t in env.totals)
    assert (env.candidates_own() + env.block.lo).tolist() == [
        v for v in np.flatnonzero(expected).tolist() if env.block.owns(v)
    ]


@pytest.mark.parametrize("device", ["host"], indirect=True)  # an environment lives on the host
@pytest.mark.parametrize("exchange", ["halo", "gather"])
@pytest.mark.parametrize("several", [1, 4])
@pytest.mark.parametrize("name", GRAPHS)
def test_random_removals(group, name, several, exchange):
    """Candidates one at a time, or up to four at once, adjacent ones too, until no edge is left."""
    graph = GRAPHS[name]
    n = graph[0]
    draws = np.random.default_rng(7)
    block = make_block(group, graph, exchange)
    envs = [
        GraphEnv(group, block, MinimumVertexCover()),
        GraphEnv(group, block, MinimumVertexCover(), scan=True),
    ]
    G, removed, adjacent = to_networkx(graph), {}, 0
    for env in envs:
        check(group, env, G, removed, n)
    while G.number_of_edges():
        candidates = [v for v in G if G.degree(v)]
        nodes = draws.permutation(candidates)[:several]
        adjacent += G.subgraph(nodes.tolist()).number_of_edges()
        step = envs[0].steps
        step_together(group, envs, [nodes] * 2)
        G.remove_nodes_from(nodes.tolist())
        removed |= dict.fromkeys(nodes.tolist(), step)
        for env in envs:
            check(group, env, G, removed, n)
            assert env.steps == step + 1
    assert MinimumVertexCover().done(envs[0].totals)
    assert adjacent or several == 1 or name in ("no edge", "one node")


def test_isolated_nodes_may_be_removed_with_others(group):
    """A node of a set may have lost its last edge to another of the set; it counts nothing then."""
    graph = listed(30, (0, 1), (1, 2), (28, 29), (10, 20))
    env = GraphEnv(group, make_block(group, graph), MinimumVertexCover())
    step_together(group, [env], [np.array([1, 5, 29, 28, 2])])
    G = to_networkx(graph)
    G.remove_nodes_from([1, 5, 29, 28, 2])
    check(group, env, G, dict.fromkeys([1, 5, 29, 28, 2], 0), 30)


def test_environments_side_by_side(group):
    """Several graphs with one sum over ranks, and one column of degrees for all."""
    graphs = [GRAPHS["random"], GRAPHS["one octet"], GRAPHS["one edge"]]
    blocks = make_blocks(group, graphs)
    envs = [GraphEnv(group, block, MinimumVertexCover()) for block in blocks]
    choices = [[3, 4], [0], [66]]
    step_together(group, envs, [np.array(c) for c in choices])
    for env, graph, nodes in zip(envs, graphs, choices):
        G = to_networkx(graph)
        G.remove_nodes_from(nodes)
        check(group, env, G, dict.fromkeys(nodes, 0), graph[0])
    degree = np.concatenate([e.degree_own for e in envs])
    assert codes_of(envs).shape == (sum(b.n_own for b in blocks),)
    assert codes_of(envs).dtype == np.int32
    assert np.array_equal(codes_of(envs), np.where(degree > 0, degree + 2, 0))


def test_totals_do_not_depend_on_ranks(group, solo):
    paths = []
    for ranks in (group, solo):
        env = GraphEnv(ranks, make_block(ranks, GRAPHS["hubs"]), MinimumVertexCover())
        paths.append([env.totals])
        for v in (0, 40, 7, 42, 1):
            step_together(ranks, [env], [np.array([v])])
            paths[-1].append(env.totals)
    assert paths[0] == paths[1]


# ---- the problem --------------------------------------------------------------------------------------


def test_rewards_of_an_episode_sum_to_its_cover(group):
    """Unshaped: minus the nodes chosen. Shaped: less the first state's potential, no more."""
    problem = MinimumVertexCover()
    env = GraphEnv(group, make_block(group, GRAPHS["hubs"]), MinimumVertexCover())
    first, plain, shaped, chosen = env.totals, 0.0, 0.0, 0
    draws = np.random.default_rng(1)
    while not problem.done(env.totals):
        degree = whole_rows(group, env.block, env.degree_own)
        nodes = draws.permutation(np.flatnonzero(degree))[:2]
        before = env.totals
        step_together(group, [env], [nodes])
        plain += problem.reward(before, env.totals, len(nodes), "none")
        shaped += problem.reward(before, env.totals, len(nodes), "caro_wei")
        chosen += len(nodes)
    assert plain == -chosen
    assert problem.potential(env.totals) == 0
    assert shaped == pytest.approx(-chosen - problem.potential(first), abs=1e-9)


def test_potential_is_the_caro_wei_estimate():
    # A star of four leaves: 5 - (1/5 + 4/2) is to pay; the cover needs one node.
    share = 2**30 // 5 + 4 * (2**30 // 2)
    assert MinimumVertexCover().potential(Totals(5, 8, share)) == pytest.approx(-(5 - 0.2 - 2), abs=1e-8)


def test_features_of_nodes_without_edges_are_zero(device):
    problem = MinimumVertexCover()
    code = device.put(np.array([[2], [3], [4], [42]], dtype=np.float32))
    mean = device.put(np.array([[4]], dtype=np.float32))
    x = device.get(problem.features("scale_free", device.xp, code, mean))
    expected = [
        [0] * 7,
        [1, np.log(1.25), 4, 4, 1, 0, 0.25],
        [1, np.log(1.5), 2, 1, 0, 1, 0.25],
        [1, np.log(11), 0.1, 0.0025, 0, 0, 0.25],
    ]
    assert np.allclose(x, expected, rtol=1e-6, atol=0)
    mean = device.put(np.array([[100]], dtype=np.float32))
    assert device.get(problem.features("scale_free", device.xp, code, mean))[1, 2] == 8  # the cap
    code = device.put(np.array([[1], [2], [9]], dtype=np.float32))
    assert device.get(problem.features("paper", device.xp, code, mean)).tolist() == [[1], [0], [0]]


# ---- many at once -----------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
@pytest.mark.parametrize("problem", ["mvc", "mis"])
@pytest.mark.parametrize("native", [True, False])
def test_a_fleet_steps_as_each_environment_would(problem, native, monkeypatch):
    """Random choices in seven places, four graphs; places are taken again by other graphs."""
    if not native:
        monkeypatch.setattr(residual, "STEP", None)
    group, rules = Group(MPI.COMM_SELF, HostDevice()), make_problem(problem)
    graphs = [growing_graph(31, 2, 1), random_graph(26, 0.2, 3), growing_graph(40, 3, 4), listed(9, (1, 2))]
    blocks, draws = make_blocks(group, graphs), np.random.default_rng(5)
    assert Fleet.serves(group, blocks, rules, False)
    fleet, pairs, ended = Fleet(blocks, rules, 7), {}, 0
    for _ in range(120):
        for place in range(7):
            if place not in pairs:
                graph = int(draws.integers(4))
                pairs[place] = [GraphEnv(group, blocks[graph], rules) for _ in range(2)]
                fleet.seat(place, graph, pairs[place][0])
        moving = sorted(draws.choice(7, 5, replace=False).tolist())
        nodes = np.array([draws.choice(pairs[place][0].candidates_own()) for place in moving])
        fleet.step(moving, nodes)
        alone = [pairs[place][1] for place in moving]
        step_together(group, alone, [nodes[i : i + 1] for i in range(5)])
        for place in moving:
            ours, theirs = pairs[place]
            assert (ours.totals, ours.steps, ours.chosen) == (theirs.totals, theirs.steps, theirs.chosen)
            assert ours.degree_own.tolist() == theirs.degree_own.tolist()
            assert ours.chosen_at.tolist() == theirs.chosen_at.tolist()
            if ours.done:
                del pairs[place]
                ended += 1
    assert ended > 10


@pytest.mark.mpi_skip
def test_a_fleet_is_for_whole_graphs_that_counters_follow(monkeypatch):
    group = Group(MPI.COMM_SELF, HostDevice())
    blocks = make_blocks(group, [growing_graph(31, 2, 1)])
    assert not Fleet.serves(group, blocks, make_problem("mvc"), True)
    assert not Fleet.serves(group, blocks, make_problem("mds"), False)
    monkeypatch.setattr("app.rl.fleet.MOST_ENTRIES", 10)
    assert not Fleet.serves(group, blocks, make_problem("mvc"), False)
