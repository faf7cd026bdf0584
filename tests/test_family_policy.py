"""The policy of set covers and hitting sets: states with costs, learning, answers by itself, drawn families."""

import json
import sys
from functools import partial

import numpy as np
import pytest
from helpers import whole_rows
from jobs import ROOT, run_job
from mpi4py import MPI

from app import TrainingRun, solve
from app.case.config import Case
from app.case.graph import GraphCase
from app.case.policy import AgentCase, PolicyCase, TrainCase
from app.comm.group import Group
from app.comm.guard import digest
from app.device import HostDevice
from app.graphs.covering import as_covering
from app.graphs.generators.sets import Members, random_sets
from app.graphs.whole import whole_graph
from app.partition.generators import generated, most_elements
from app.partition.load import share_blocks
from app.problems.set_cover import LEVELS, VALUES, SetCover, levels
from app.rl.dynamics import begin_environment
from app.rl.env import objective_of, step_together
from app.rl.family_env import FamilyEnv
from app.rl.incremental import FullScores, LiveScores
from app.rl.qnet import QNetwork
from app.rl.rollout import drop_redundant, roll_out
from app.rl.training import train_policy
from app.search.domination.covering import most_gain_of_family
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock
from app.tasks.train import learn
from app.api.train import TrainedPolicy

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
    cheap = np.where(candidate, np.clip(np.floor(256 * mean / cost), 1, 1 << 16), 0).astype(int)
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
        told = FamilyEnv.replayed(env.problem, batch, [np.array(made, dtype=np.int64)] * 1, [np.array(made, dtype=np.int64)], False)
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


def test_the_ranks_learn_what_one_process_learns(group, single):
    case = Case(
        seed=4, agent=AgentCase(warmup=4, batch=8, target_every=5, epsilon_decay_steps=20),
        policy=PolicyCase(layers=3, hub_degree=4), train=TrainCase(steps=16, evaluate_every=8, judge="ratio"),
    )  # fmt: skip
    found = []
    for ranks in (group, single):
        blocks = blocks_of(ranks, [opened(seed, costs) for seed, costs in enumerate(["one", "whole", "whole"])])
        result = train_policy(ranks, case, SetCover(), blocks[:2], blocks[2:])
        found.append((digest(result.weights), repr(result.records), result.best_total))
    assert found[0] == found[1]


@alone
@pytest.mark.parametrize("problem", ["set_cover", "hitting_set"])
def test_the_weights_that_ship_beat_the_greedy(problem):
    """Alone, one at a time, nothing taken out but what no cover needs; families of all kinds."""
    settings = {"search.solver": "policy", "search.bounds": False}
    learned = plain = 0.0
    for kind in ("even", "skewed", "near"):
        for costs in ("one", "whole"):
            table = {"generator": "sets", "nodes": 90, "elements": 70, "p": 0.07, "members": kind, "costs": costs, "count": 6}
            for answer in solve_all(problem, table, settings):
                learned += answer["objective"] / answer["baselines"]["most gain, pruned"]
                plain += 1
    assert learned < 0.99 * plain


def solve_all(problem, table, settings):
    """Entries of a run on drawn families."""
    from app.main import run_case

    return run_case(problem, table, settings)
