"""The policy of set covers and hitting sets: states with costs, learning, answers alone, drawn families."""

from functools import partial

import numpy as np
import pytest
from helpers import whole_rows
from mpi4py import MPI

from app import TrainingRun, solve
from app.case.config import Case
from app.case.graph import GraphCase
from app.case.policy import AgentCase, PolicyCase, TrainCase
from app.comm.group import Group
from app.comm.guard import digest
from app.device import HostDevice
from app.errors import CaseError
from app.graphs.covering import as_covering
from app.graphs.generators.sets import Members, random_sets
from app.graphs.whole import whole_graph
from app.partition.generated import share_blocks
from app.partition.generators import generated, most_elements
from app.problems.set_cover import LEVELS, VALUES, SetCover, levels
from app.rl.dynamics import begin_environment
from app.rl.env import objective_of, step_together
from app.rl.family_env import FamilyEnv
from app.rl.incremental import FullScores, LiveScores
from app.rl.qnet import QNetwork
from app.rl.rollout import drop_redundant, roll_out
from app.rl.training import train_policy
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

QUICK = {"search.steps": 200, "search.bounds": False}
alone = pytest.mark.mpi_skip


def opened(seed, costs="whole", kind="even", problem="set_cover"):
    """A drawn family as the stream of the graph that stands for it."""
    return as_covering(random_sets(14, 11, 0.2, seed, members=Members(kind, costs)), problem)


def blocks_of(group, streams, exchange="auto"):
    """Row blocks of families that share their cuts. Ranks: all call."""
    loaded = share_blocks(group, 26, [partial(lambda stream: stream, each) for each in streams])
    return [RowBlock(group, item.graph, item.rows, exchange) for item in loaded]


def definition(graph, chosen):
    """Codes and totals by the docstring of SetCover, set by set; chosen [n] bool."""
    A = np.zeros((graph.n, graph.n), dtype=int)
    A[graph.row_of(), graph.indices] = 1
    candidate = A[-1] > 0
    cost = np.ones(graph.n) if graph.node_weights is None else graph.node_weights.astype(float)
    inverse = np.floor((1 << 20) / cost[candidate])
    mean = (1 << 20) * candidate.sum() / inverse.sum()
    cheap = np.where(
        candidate, np.clip(np.floor(256 * mean / np.where(candidate, cost, 1)), 1, 1 << 16), 0
    ).astype(int)
    near, demand = A @ cheap, ~candidate & (np.arange(graph.n) < graph.n - 1)
    left = demand & (A @ chosen.astype(int) == 0)
    gain = (A @ left.astype(int)) * candidate
    code = np.where(left, 2 + levels(np, near), np.where(gain > 0, 2 + LEVELS + levels(np, gain * cheap), 0))
    at = near[demand].sum() / demand.sum(), near[demand].sum() / (256 * candidate.sum())
    price = sum(int(np.floor((1 << 30) * np.sqrt(at[0] / d) / at[1])) for d in near[left])
    spent = int(np.rint(cost * ((1 << 20) / mean))[chosen].sum())
    alive = int(left.sum() + (gain > 0).sum())
    return code, (alive, int(near[left].sum()), int(left.sum()), price, spent), cost[chosen].sum()


@pytest.mark.parametrize("device", ["host"], indirect=True)
@pytest.mark.parametrize("problem", ["set_cover", "hitting_set"])
@pytest.mark.parametrize("seed", range(3))
def test_states_with_costs_are_their_definition(group, problem, seed):
    """One state after the other, what is told of them again, and what they cost."""
    stream = opened(seed, problem=problem)
    graph, (block,) = whole_graph(opened(seed, problem=problem))[0], blocks_of(group, [stream])
    env, made = begin_environment(group, block, SetCover()), []
    chosen, draws = np.zeros(graph.n, dtype=bool), np.random.default_rng(seed)
    while True:
        codes, totals, cost = definition(graph, chosen)
        assert whole_rows(group, block, env.codes_own()).tolist() == codes.tolist()
        assert tuple(env.totals) == totals
        assert objective_of(env) == pytest.approx(cost, rel=1e-5)
        batch = StateBatch(group, [(block, 1)])
        told = FamilyEnv.replayed(env.problem, batch, *[[np.array(made, dtype=np.int64)]] * 2, False)
        assert whole_rows(group, block, group.device.get(told[0])).tolist() == codes.tolist()
        if env.done:
            break
        node = int(draws.choice(np.flatnonzero(codes >= env.problem.first_candidate)))
        step_together(group, [env], [np.array([node])])
        chosen[node] = True
        made.append(node)


@alone
def test_levels_keep_six_digits():
    numbers = np.unique(np.concatenate([np.arange(5000), (1.07 ** np.arange(400)).astype(np.int64)]))
    found = levels(np, numbers)
    assert found[:64].tolist() == list(range(64)) and (np.diff(found) >= 0).all()
    small = numbers < 1 << 28
    value = VALUES[found[small]] * 256
    assert (value <= numbers[small]).all() and (value * 33 / 32 >= numbers[small]).all()
    assert (found[~small] == LEVELS - 1).all()


@pytest.mark.parametrize("kind", ["compiled", "plain"])
def test_scores_that_follow_and_what_is_not_needed(kind):
    """On any ranks the bits of full evaluations, with costs; the dearest sets that are not needed go."""
    group = Group(MPI.COMM_WORLD, HostDevice(compiled=kind == "compiled"))
    net = QNetwork(PolicyCase(layers=3, hub_degree=4), SetCover())
    params = net.new_parameters(group.device, 3)
    for seed in range(2):
        (block,), graph = blocks_of(group, [opened(seed)], "halo"), whole_graph(opened(seed))[0]
        env = begin_environment(group, block, net.problem)
        live, full = LiveScores(group, net, params, env), FullScores(group, net, params, env)
        while not env.done:
            np.testing.assert_array_equal(live.keys_own(), full.keys_own())
            live.remove(np.array([live.best()]))
        made = roll_out(group, net, params, block, "fraction", 0.5)
        kept = drop_redundant(group, made)
        inside, cost = whole_rows(group, block, kept.solution_own), graph.node_weights
        left = whole_rows(group, block, made.solution_own)
        assert net.problem.violation(graph, inside) is None
        for v in sorted(np.flatnonzero(left), key=lambda v: -cost[v]):
            without = left.copy()
            without[v] = False
            if net.problem.violation(graph, without) is None:
                left = without
        assert cost[left].sum() == cost[inside].sum()


@pytest.mark.parametrize("device", ["host"], indirect=True)
def test_sets_of_one_step_have_no_element_in_common(group):
    """In any order of preference those that one after the other could be taken, after some choices, too."""
    graph, (block,) = whole_graph(opened(1))[0], blocks_of(group, [opened(1)])
    env, draws = begin_environment(group, block, SetCover()), np.random.default_rng(3)
    near = [set(graph.indices[lo:hi].tolist()) for lo, hi in zip(graph.indptr, graph.indptr[1:])]
    while not env.done:
        left = set(np.flatnonzero(whole_rows(group, block, env.mark_own)).tolist())
        ordered = draws.permutation([v for v in near[-1] if near[v] & left])
        expected, met = [], set()
        for v in ordered.tolist():
            if not met & near[v]:
                expected.append(v)
                met |= near[v] & left
        assert env.apart(ordered).tolist() == expected
        step_together(group, [env], [ordered[:1]])


@alone
@pytest.mark.parametrize("factor", [2.0**-40, 2.0**20, 1e-5, 3e7])
def test_the_unit_of_costs_makes_no_difference(factor):
    """A power of two none at all; nor do sets that are next to free, or far too dear."""
    sets, paid = drawn_sets(2, "skewed", "whole")
    asked = {"search.solver": "policy", "search.bounds": False, "search.baselines": False}
    plain = solve(sets, "set_cover", node_weights=paid, settings=asked)
    scaled = [factor * cost for cost in paid]
    if np.frexp(factor)[0] == 0.5:
        assert solve(sets, "set_cover", node_weights=scaled, settings=asked).nodes == plain.nodes
    for odd in (0.0, 1e6):
        found = solve([*sets, sets[0]], "set_cover", node_weights=[*scaled, factor * odd], settings=asked)
        assert found.objective / factor <= 1.05 * plain.objective


@alone
def test_several_sets_by_an_evaluation_are_as_good():
    asked = {"search.solver": "policy", "search.bounds": False, "search.baselines": False}
    several = {"select.rule": "fraction", "select.fraction": 0.1}
    totals = np.zeros((2, 2))
    for kind in ("even", "skewed", "near"):
        sets, paid = drawn_sets(7, kind, "whole")
        for costs in (None, paid):
            one = solve(sets, "set_cover", node_weights=costs, settings=asked)
            found = solve(sets, "set_cover", node_weights=costs, settings=asked | several)
            totals[0] += 1, found.objective / one.objective
            totals[1] += one.policy_evaluations, found.policy_evaluations
    assert totals[0, 1] <= 1.03 * totals[0, 0] and 3 * totals[1, 1] < 2 * totals[1, 0]


def test_the_ranks_learn_what_one_process_learns(group, single):
    case = Case(
        seed=4, agent=AgentCase(warmup=4, batch=8, target_every=5, epsilon_decay_steps=20),
        policy=PolicyCase(layers=3, hub_degree=4), train=TrainCase(steps=16, evaluate_every=8, judge="ratio"),
    )  # fmt: skip
    found = []
    for ranks in (group, single):
        blocks = blocks_of(
            ranks, [opened(seed, costs) for seed, costs in enumerate(["one", "whole", "whole"])]
        )
        result = train_policy(ranks, case, SetCover(), blocks[:2], blocks[2:])
        found.append((digest(result.weights), repr(result.records), result.best_total))
    assert found[0] == found[1]


def drawn_sets(seed, kind, costs):
    """Sets of numbers, and what they cost or None."""
    stream = random_sets(90, 70, 0.07, seed, members=Members(kind, costs))
    pairs = np.concatenate([np.stack([u, v - 90]) for u, v, _ in stream.chunks()], axis=1)
    paid = None if stream.node_weights is None else stream.node_weights[:90].astype(int).tolist()
    return [np.unique(pairs[1, pairs[0] == i]).tolist() for i in range(90)], paid


@alone
def test_the_weights_that_ship_beat_the_greedy():
    """Alone, one at a time, without what no cover needs, as the greedy that it is compared with."""
    ratios = []
    for kind in ("even", "skewed", "near"):
        for problem, costs in (("set_cover", "one"), ("hitting_set", "one"), ("set_cover", "whole")):
            for seed in range(4):
                sets, paid = drawn_sets(seed, kind, costs)
                asked = {"search.solver": "policy", "search.bounds": False, "select.rule": "single"}
                found = solve(sets, problem, node_weights=paid, settings=asked)
                ratios.append(found.objective / found.baselines["most gain, pruned"])
    assert np.mean(ratios) < 0.99


def test_the_policy_alone_on_any_ranks(tmp_path, group):
    """Families split over the ranks: the answers of one process, checked, with costs."""
    sets, paid = drawn_sets(5, "skewed", "whole")
    asked = {
        "search.solver": "policy", "search.bounds": False, "search.baselines": False,
        "select.rule": "fraction",
        "parallel.spatial": max(MPI.COMM_WORLD.size, 1),
    }  # fmt: skip
    split = solve(sets, "set_cover", node_weights=paid, settings=asked, comm=MPI.COMM_WORLD)
    whole = solve(
        sets, "set_cover", node_weights=paid, settings=asked | {"parallel.spatial": 1}, comm=MPI.COMM_SELF
    )
    assert split.nodes == whole.nodes and split.objective == whole.objective == sum(
        paid[v] for v in whole.nodes
    )
    assert set().union(*(sets[v] for v in whole.nodes)) == set().union(*map(set, sets))


@alone
def test_learning_on_families_that_are_given():
    """By their costs, too, and on both sides."""
    families = [drawn_sets(seed, "even", "one")[0] for seed in range(3)]
    for problem in ("set_cover", "hitting_set"):
        run = TrainingRun(
            problem, families, train={"steps": 60, "evaluate_every": 30, "evaluate_graphs": 1},
            agent={"warmup": 8, "batch": 8},
        )  # fmt: skip
        policy = run.run()
        found = solve(families[0], problem, weights=policy, settings=QUICK)
        assert found.objective <= found.baselines["most gain, pruned"]


@alone
@pytest.mark.parametrize("kind", ["even", "skewed", "near"])
def test_drawn_families(kind):
    """As many pairs as asked for, about; costs of 1 to 100; functions of their arguments."""
    streams = [random_sets(300, 200, 0.05, 7, members=Members(kind, "whole")) for _ in range(2)]
    pairs = [np.concatenate([np.stack([u, v]) for u, v, _ in each.chunks()], axis=1) for each in streams]
    assert np.array_equal(*pairs)
    u, v = np.unique(pairs[0], axis=1)
    assert (np.bincount(u, minlength=300) > 0).all() and (np.bincount(v)[300:] > 0).all() and v.min() >= 300
    assert 0.6 * 3000 < len(u) < 1.25 * 3000 + 500
    costs = streams[0].node_weights
    assert costs.min() >= 1 and 90 < costs[:300].max() <= 100 and (costs[300:] == 1).all()


@alone
def test_families_by_turns():
    table = GraphCase(generator="sets", nodes=60, members="mixed", costs="mixed", count=72)
    streams = [generated(table, number, 60, number) for number in range(72)]
    elements = [stream.nodes - stream.sets for stream in streams]
    assert set(elements) == {60, 30, 120} and most_elements(table, 60) == 120
    assert sum(stream.node_weights is None for stream in streams) == 36
    assert {sum(len(u) for u, _, _ in stream.chunks()) > 1000 for stream in streams} == {True, False}


@alone
def test_what_mixed_families_do_not_read_is_refused():
    for key, value in (("elements", 9), ("p", 0.5)):
        graphs = {"generator": "sets", "nodes": 9, "members": "mixed", key: value}
        with pytest.raises(CaseError, match=f'{key}.*members = "mixed" has its own, by turns'):
            TrainingRun("set_cover", graphs)
