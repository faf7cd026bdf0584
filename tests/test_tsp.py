"""The travelling salesman for the learner: states, rewards, replay, rollouts and training on any ranks."""

import sys
from functools import partial

import numpy as np
import pytest
from helpers import EXCHANGES, make_block, random_graph, whole_rows
from jobs import run_job
from mpi4py import MPI

from app.case.config import Case
from app.case.policy import AgentCase, PolicyCase, TrainCase
from app.comm.group import Group
from app.comm.guard import digest
from app.device import HostDevice
from app.errors import CaseError
from app.graphs.metric import Metric, explicit, from_points, uniform_points
from app.graphs.points import generate_points, stream_of_metric
from app.partition.generated import share_blocks
from app.problems.table import make_problem
from app.problems.tsp import DETOURS, DISTANCES, GAINS, TourTotals
from app.rl import tour_rollout
from app.rl.agent import Agent
from app.rl.dynamics import begin_environment
from app.rl.env import step_together
from app.rl.qnet import QNetwork
from app.rl.rollout import rolled_out_one_at_a_time
from app.rl.tour_env import TourEnv
from app.rl.tour_rollout import FRACTIONS, choose_cities, evaluations_of, insert_tour
from app.rl.training import train_policy
from app.search.tour.baselines import farthest_insertion
from app.search.tour.insertion import InsertionState, cheapest_insertion
from app.solver import learned
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock


def strange(n):
    """Distances that are no metric: even to each other, some zero."""
    draws = np.random.default_rng(n).integers(0, 50, (n, n))
    return explicit("strange", np.triu(draws, 1) + np.triu(draws, 1).T)


METRICS = {
    "uniform": uniform_points(41, 3),
    "one place": from_points("one place", np.zeros((9, 2))),
    "strange": strange(23),
    "two": uniform_points(2, 1),
    "grid": from_points("grid", np.stack(np.divmod(np.arange(36), 6), axis=1)),
}


def blocks_of(group, metrics, exchange="auto"):
    """Row blocks of instances, made as generated graphs are. Ranks: all call."""
    makers = [partial(stream_of_metric, metric, "", "generated", 0) for metric in metrics]
    loaded = share_blocks(group, max(metric.n for metric in metrics), makers)
    return [RowBlock(group, item.graph, item.rows, exchange, metric=item.metric) for item in loaded]


def network(device, **policy):
    net = QNetwork(PolicyCase(**policy), make_problem("tsp"))
    return net, net.new_parameters(device, 5)


# ---- states by their definition ---------------------------------------------------------------------------


def bucket(part, whole, count, per_octave):
    """count - 1 for part = whole, one less for each 1/per_octave octave below, at least 0."""
    part, whole = max(part, 0), max(whole, 1)
    level = count - 1
    while level > 0 and part < whole * 2.0 ** ((level - count) / per_octave):
        level -= 1
    return level


def gain_of(metric, order, near, cost, city):
    """What inserting a city saves itself and its nearest ones, each by the definition."""
    position, _ = cheapest_insertion(metric, order, city)
    a, b = order[position - 1], order[position % len(order)]
    gain = near[city] - cost[city]
    for u in metric.nearest[city].tolist():
        if u not in order:
            ends = np.array([[a, city], [city, b]])
            between = metric.between(ends, u).sum(axis=1) - metric.between(ends[:, 0], ends[:, 1])
            gain += max(0, near[u] - int(metric.between(u, city))) + max(0, cost[u] - int(between.min()))
    return gain


def definition(metric, order):
    """Codes and totals of a tour."""
    order = np.asarray(order)
    outside = [v for v in range(metric.n) if v not in order]
    near = {v: int(metric.between(order, v).min()) for v in outside}
    cost = {v: cheapest_insertion(metric, order, v)[1] for v in outside}
    gain = {v: gain_of(metric, order, near, cost, v) for v in outside}
    codes = np.full(metric.n, 2)
    farthest = max(near.values(), default=0)
    most = max(gain.values(), default=0)
    for v in outside:
        level = bucket(gain[v], most, GAINS, 16)
        distance = bucket(near[v], farthest, DISTANCES, 1)
        detour = min(DETOURS * max(cost[v], 0) // max(2 * near[v], 1), DETOURS - 1)
        codes[v] = 4 + DETOURS * (DISTANCES * level + distance) + detour
    D = metric.between(np.arange(metric.n)[:, None], np.arange(metric.n)) + np.diag([1 << 40] * metric.n)
    spacing = max(1, int(D.min(axis=1).sum()))
    length = metric.length(order)
    sums = sum(cost.values()), sum(near.values())
    return codes, TourTotals(metric.n, len(outside), length, *sums, farthest, spacing)


@pytest.mark.parametrize("several", [1, 3])
@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_environments_are_their_definition(group, metric, several):
    problem, draws = make_problem("tsp"), np.random.default_rng(2)
    (block,) = blocks_of(group, [metric])
    env = begin_environment(group, block, problem)
    first, unshaped, shaped = env.totals, 0.0, 0.0
    order = env.tour.order.tolist()
    farthest = int(metric.between(0, np.arange(metric.n)).argmax())
    assert order == ([0, farthest] if farthest else [0, 1])
    while True:
        codes, totals = definition(metric, order)
        assert whole_rows(group, block, env.codes_own()).tolist() == codes.tolist()
        assert env.totals == totals
        assert all(type(t) is int for t in env.totals)
        assert not env.codes_own()[block.n_real :].any()
        assert codes.max() < problem.entries(block.max_degree)
        outside = np.flatnonzero(codes > 2)
        own = [v - block.lo for v in outside.tolist() if block.owns(v)]
        assert env.candidates_own().tolist() == own
        if env.done:
            break
        cities, before = draws.permutation(outside)[:several], env.totals
        step_together(group, [env], [cities])
        for city in cities.tolist():
            order.insert(cheapest_insertion(metric, order, city)[0], city)
        assert env.tour.order.tolist() == order
        unshaped += problem.reward(before, env.totals, len(cities), "none")
        unit = max(before.farthest, 1) * before.alive / (before.alive - before.outside)
        shaped += problem.reward(before, env.totals, len(cities), "caro_wei") * unit
    assert problem.done(env.totals)
    assert problem.objective(env.chosen, env.totals) == metric.length(order) == env.tour.length
    # Rewards of an episode are what it adds to the tour; shaping adds the change of the potential.
    growth = env.totals.length - first.length
    assert unshaped * first.spacing / metric.n == pytest.approx(-growth, abs=1e-6)
    expected = problem.potential(env.totals) - problem.potential(first) - growth
    assert shaped == pytest.approx(expected, abs=1e-3)


def test_states_told_again_from_their_choices(group):
    """Two lists of choices of several instances in one batch, against environments that played them."""
    problem, draws = make_problem("tsp"), np.random.default_rng(3)
    metrics = [METRICS["uniform"], METRICS["strange"]]
    before, after, early, late = [], [], [], []
    blocks = blocks_of(group, metrics)
    for block, count in zip(blocks, (3, 2)):
        for _ in range(count):
            envs = [begin_environment(group, block, problem) for _ in range(2)]
            cities = np.setdiff1d(np.arange(block.n), envs[0].tour.order)
            choices = draws.permutation(cities)[: draws.integers(2, 12)]
            split = int(draws.integers(0, len(choices)))
            for env, some in zip(envs, (choices[:split], choices)):
                for city in some:
                    step_together(group, [env], [np.array([city])])
            before.append(choices[:split])
            after.append(choices)
            early.append(envs[0].codes_own())
            late.append(envs[1].codes_own())
    batch = StateBatch(group, list(zip(blocks, (3, 2))))
    for codes, expected in zip(TourEnv.replayed(problem, batch, before, after, False), (early, late)):
        codes = group.device.get(codes)
        for g, block in enumerate(blocks):
            rows = codes[batch.at[g] : batch.at[g + 1]].reshape(block.n_own, batch.counts[g])
            for i in range(batch.counts[g]):
                assert rows[:, i].tolist() == expected[batch.first[g] + i].tolist()


@pytest.mark.mpi_skip
@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_gains_and_replays_compiled_and_plain(metric):
    start = [0, 1]
    fast, slow = (InsertionState(metric, start, compiled) for compiled in (True, False))
    left = np.random.default_rng(5).permutation(np.arange(2, metric.n))
    for cities in np.array_split(left, 4):
        assert fast.gains(metric.nearest).tolist() == slow.gains(metric.nearest).tolist()
        for state in (fast, slow):
            state.play(cities)
        assert fast.order.tolist() == slow.order.tolist()
        assert fast.length == slow.length == metric.length(fast.order)
        for state in (fast, slow):
            with pytest.raises(ValueError, match="outside the tour"):
                state.play(np.array([0]))
    assert not fast.gains(metric.nearest).any()
    assert not slow.gains(metric.nearest).any()


# ---- rollouts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_tours_do_not_depend_on_ranks_or_exchange(group, single, exchange):
    found = []
    for ranks, mode in ((single, "auto"), (group, exchange)):
        net, params = network(ranks.device)
        orders = []
        for block in blocks_of(ranks, [METRICS["uniform"], METRICS["grid"], uniform_points(230, 4)], mode):
            order, evaluations, _ = insert_tour(ranks, net, params, block, 0.0, np.inf)
            assert order.dtype == np.int64
            assert sorted(order.tolist()) == list(range(block.n))
            assert evaluations >= evaluations_of(block.n, 0.0 if block.n < 152 else 0.02)
            orders.append((order.tolist(), evaluations))
        found.append(orders)
    assert found[0] == found[1]


def test_side_by_side_equals_one_by_one(group):
    net, params = network(group.device)
    blocks = blocks_of(group, [METRICS["uniform"], METRICS["strange"], METRICS["grid"]])
    for block, env in zip(blocks, rolled_out_one_at_a_time(group, net, params, blocks)):
        order, evaluations, _ = insert_tour(group, net, params, block, 0.0, np.inf)
        assert env.tour.order.tolist() == order.tolist()
        assert evaluations == env.steps == block.n - 2
        assert env.totals.length == block.metric.length(order)


def test_cities_taken_together_keep_their_distances(group):
    net, _ = network(group.device)
    (block,) = blocks_of(group, [uniform_points(120, 8)])
    env = TourEnv(group, block, net.problem)
    env.tour.play(np.setdiff1d(np.arange(20), env.tour.order))
    keys_own = np.zeros(block.n_own, dtype=np.uint64)
    own = block.lo + np.arange(block.n_real)
    keys_own[: block.n_real] = np.where(env.tour.inside[own], 0, (2**40 + 2**32 - 1 - own).astype(np.uint64))
    env.totals = net.problem.totals_of(env.tour)
    near = env.tour.nearest_out.copy()
    cities = choose_cities(group, group.device.put(keys_own), env, 0.2)
    assert len(cities) > 1
    assert sorted(cities.tolist()) == cities.tolist()  # equal scores: the lowest numbers first
    env.tour.play(cities[:-1])
    assert env.tour.nearest_out[cities[-1]] == near[cities[-1]]


def test_no_time_is_no_tour(group):
    net, params = network(group.device)
    (block,) = blocks_of(group, [METRICS["uniform"]])
    inserting = tour_rollout.INSERT_SECONDS * block.n**2
    assert insert_tour(group, net, params, block, 0.0, 0.9 * inserting) == (None, 0, 0.0)
    assert insert_tour(group, net, params, block, 0.0, inserting + 1e-6) == (None, 2, 0.0)
    order, *_ = insert_tour(group, net, params, block, 0.0, 1e6)
    assert len(order) == block.n


def test_a_tour_that_takes_too_long_is_given_up(group, monkeypatch):
    """After the evaluation at which the clock rings; it is asked after each, on all ranks."""
    net, params = network(group.device)
    (block,) = blocks_of(group, [METRICS["uniform"]])
    told, clocks = [], []

    def rings(clock):
        clocks.append(clock.seconds)
        return len(clocks) == 4

    monkeypatch.setattr(learned.StartClock, "rings", rings)
    limits = learned.StartLimits(0.01, 0, 500.0, tell=lambda evaluations, of: told.append((evaluations, of)))
    order, evaluations, _ = learned.insertion(group, net, params, block, limits)
    assert order is None
    assert evaluations == 6  # with the two that tell how long one takes
    assert told == [(k, f"about {block.n}") for k in range(3, 7)]
    assert clocks == [learned.PATIENCE * learned.TIME_SHARE * 500.0] * 4


@pytest.mark.mpi_skip
def test_planned_evaluations():
    assert evaluations_of(2, 0.0) == evaluations_of(1, 0.1) == 0
    assert [evaluations_of(12, f) for f in (0.0, 0.2, 0.3)] == [10, 9, 7]
    planned = [evaluations_of(10**4, f) for f in FRACTIONS]
    assert planned == sorted(set(planned), reverse=True)


def test_a_graph_without_distances_is_refused(group):
    block = make_block(group, random_graph(12, 0.4, 1))
    with pytest.raises(CaseError, match="has no distances between all nodes"):
        begin_environment(group, block, make_problem("tsp"))
    (block,) = blocks_of(group, [METRICS["two"]])
    with pytest.raises(CaseError, match=r"train\.environment"):
        begin_environment(group, block, make_problem("tsp"), scan=True)
    with pytest.raises(CaseError, match=r"agent\.replay"):
        Agent(group, AgentCase(replay="bits"), network(group.device)[0], [], 0, 0)


@pytest.mark.mpi_skip
def test_what_no_tour_can_be_on_is_refused_before_any_is_sought(tmp_path):
    """Of several graphs the second: nothing is left in the folder."""
    points = tmp_path / "points.tsp"
    text = "\n".join(f"{i + 1} {i % 3} {i // 3}" for i in range(9))
    head = "NAME: points\nTYPE: TSP\nDIMENSION: 9\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
    points.write_text(f"{head}{text}\nEOF\n")
    (tmp_path / "edges.txt").write_text("1 2\n2 3\n")
    command = [sys.executable, "run.py", "inputs/tsp.toml", "output.plots=false", "--out", tmp_path / "out"]
    both = f'graph.path=["{points}", "{tmp_path / "edges.txt"}"]'
    code, printed = run_job([*command, both])
    assert code == 2 and "edges: has no distances between all nodes" in printed
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())
    code, printed = run_job([*command, f"graph.path={points}", "graph.complement=true"])
    assert code == 2 and "graph.complement" in printed


# ---- learning ---------------------------------------------------------------------------------------------


def test_the_ranks_train_what_one_process_trains(group, single):
    metrics = [uniform_points(n, n) for n in (12, 17, 23)]
    case = Case(
        seed=4,
        agent=AgentCase(warmup=4, batch=8, target_every=5, epsilon_decay_steps=20, n_step=2, double=True),
        train=TrainCase(steps=20, evaluate_every=10, environments=2),
    )
    digests = []
    for ranks in (group, single):
        blocks, held = blocks_of(ranks, metrics), blocks_of(ranks, [METRICS["strange"]])
        result = train_policy(ranks, case, make_problem("tsp"), blocks, held)
        digests.append((digest(result.weights), repr(result.records), result.best_total))
    assert digests[0] == digests[1]


@pytest.mark.long
@pytest.mark.mpi_skip
def test_a_thousand_steps_are_better_than_none_and_than_farthest_insertion():
    group = Group(MPI.COMM_SELF, HostDevice())
    metrics: list[list[Metric]] = [
        [generate_points(40, 100 * k + i).metric for i in range(12)] for k in (1, 2)
    ]
    case = Case(
        seed=0, agent=AgentCase(epsilon_decay_steps=500, target_every=50),
        train=TrainCase(steps=1000, evaluate_every=250),
    )  # fmt: skip
    blocks, held = (blocks_of(group, each) for each in metrics)
    result = train_policy(group, case, make_problem("tsp"), blocks, held)
    assert result.best_total < result.records[0]["held_back_nodes"]
    assert result.best_total < sum(m.length(farthest_insertion(m)[0]) for m in metrics[1])
