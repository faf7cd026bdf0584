"""Maximum cut: sides and gains by their definition, replay, rewards, ranks, rollouts, a short training."""

import itertools
import math
import time
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import WORLD
from helpers import EXCHANGES, dense, growing_graph, listed, make_block, make_blocks, random_graph, whole_rows

from app.case.config import Case
from app.case.policy import AgentCase, PolicyCase, TrainCase
from app.comm.group import Group
from app.comm.guard import digest
from app.device import HostDevice
from app.graphs.fixed_point import integer_weights
from app.graphs.graph import from_edges
from app.problems.maxcut import AGES, FIRST, GAINS, LEVELS, RESTS, SINGLE, _gain_of, age_of, level_of
from app.problems.problem import GRAIN_PARTS
from app.problems.table import make_problem
from app.rl.dynamics import DYNAMICS, begin_environment
from app.rl.env import step_together
from app.rl.incremental import FullScores, LiveScores, can_follow
from app.rl.qnet import QNetwork
from app.rl.rollout import roll_out, rolled_out_one_at_a_time
from app.rl.rules import find_rule
from app.rl.select import Share
from app.rl.training import train_policy
from app.rl.weights import default_weights, load_weights
from app.search.cut.baselines import descent, greedy
from app.solver import learned
from app.solver.learned import StartLimits, rollout
from app.sparse.batch import StateBatch
from app.sparse.whole_weights import whole_weights
from app.toolbox import Instance

NAMES = ("maxcut", "maxcut_once")


def with_weights(graph, draw, seed=5):
    n, edges, _ = graph
    return n, edges, draw(np.random.default_rng(seed), len(edges)).astype(np.float32)


PLAIN = random_graph(37, 0.15, 1)
GRAPHS = {
    "plain": PLAIN,
    "hubs": growing_graph(43, 3, 2),
    "signs": with_weights(PLAIN, lambda draws, k: draws.choice([-1, 1], k)),
    "quarters": random_graph(37, 0.15, 1, weighted=True),
    "positive": with_weights(PLAIN, lambda draws, k: draws.integers(1, 90, k)),
    "fine": with_weights(PLAIN, lambda draws, k: draws.normal(size=k) * 2.0 ** draws.integers(-9, 9, k)),
    "isolated nodes": listed(40, *[(2 * i, 2 * i + 3) for i in range(12)]),
    "fewer nodes than ranks": listed(3, (0, 1), (1, 2)),
    "no edge": listed(9),
}


def whole_graph(graph):
    n, edges, weights = graph
    return from_edges(n, *edges.T, weights)


def dense_weights(graph):
    """Integer weights [n, n], and their unit."""
    whole = whole_graph(graph)
    weights, unit = integer_weights(whole)
    M = np.zeros((graph[0], graph[0]), dtype=np.int64)
    M[whole.row_of(), whole.indices] = weights
    return M, unit


def cut_of(M, sides):
    return int(M[np.ix_(sides, ~sides)].sum())


def gains_of(M, sides):
    """What moving each node adds to the cut, by making every cut."""
    out = np.zeros(len(M), dtype=np.int64)
    for v in range(len(M)):
        moved = sides.copy()
        moved[v] ^= True
        out[v] = cut_of(M, moved) - cut_of(M, sides)
    return out


def level_by_definition(gain, grain):
    size = -(-abs(int(gain)) * GRAIN_PARTS // grain)
    return int(np.sign(gain)) * sum(size >= least for least in LEVELS)


def codes_by_definition(problem, M, sides, ages, grain):
    """Codes of all nodes, one at a time."""
    codes = []
    for v, gain in enumerate(gains_of(M, sides).tolist()):
        level = level_by_definition(gain, grain) + len(LEVELS)
        if problem.name == "maxcut":
            rests = None if ages[v] is None else ages[v] // max(len(M) // RESTS, 1)
            age = AGES - 1 if rests is None else min(int(math.log2(1 + rests)), AGES - 1)
            codes.append(FIRST + (age * GAINS + level) * 2 + int(sides[v]))
        else:
            codes.append(FIRST + (0 if sides[v] else 2 * len(LEVELS) + 1) + level)
    return codes


def play(group, env, seed, steps, several=1):
    """Random candidates, several at once; yields the choices made after each step."""
    draws, made = np.random.default_rng(seed), []
    while not env.done and len(made) < steps:
        codes = whole_rows(group, env.block, env.codes_own())
        candidates = np.flatnonzero(codes >= env.problem.first_candidate)
        nodes = draws.choice(candidates, min(several, len(candidates)), replace=False)
        step_together(group, [env], [nodes])
        made.append(nodes)
        yield nodes


# ---- states -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["host"], indirect=True)  # an environment lives on the host
@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("several", [1, 4])
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("name", NAMES)
def test_states_are_their_definition(group, name, graph, several, exchange):
    problem, (M, unit), n = make_problem(name), dense_weights(graph), graph[0]
    env = begin_environment(group, make_block(group, graph, exchange), problem)
    assert env.weights.unit == unit
    sides, ages = problem.start_marks(n) < 0, [None] * n
    best, best_sides = cut_of(M, sides), sides.copy()
    first, rewards, shaped, before = best, 0.0, 0.0, env.totals
    grain = max(1, int(np.abs(M).sum()) // (2 * max(len(graph[1]), 1)))

    def check():
        gains = gains_of(M, sides)
        assert whole_rows(group, env.block, env.field_own).tolist() == gains.tolist()
        codes = codes_by_definition(problem, M, sides, ages, grain)
        assert whole_rows(group, env.block, env.codes_own()).tolist() == codes
        assert not env.codes_own()[env.block.n_real :].any()
        assert max(codes) < problem.entries(env.block.max_degree)
        rested = np.array([a is None or a >= max(n // RESTS, 1) for a in ages])
        may = (gains > 0) & ~sides if name == "maxcut_once" else rested
        assert (np.array(codes) >= problem.first_candidate).tolist() == may.tolist()
        assert env.totals.candidates == may.sum()
        assert (env.totals.cut, env.totals.best) == (cut_of(M, sides), best)
        assert (env.totals.improving, env.totals.alive) == ((gains > 0).sum(), n)
        assert all(type(t) is int for t in env.totals)
        found = problem.solution_of(env.chosen_at[: env.block.n_real])
        assert whole_rows(group, env.block, found).tolist() == best_sides.tolist()

    check()
    for nodes in play(group, env, 7, 14, several):
        sides[nodes] ^= True
        ages = [None if a is None else a + max(len(nodes), 1) for a in ages]
        for v in nodes.tolist():
            ages[v] = 0
        if cut_of(M, sides) > best:
            best, best_sides = cut_of(M, sides), sides.copy()
        rewards += problem.reward(before, env.totals, len(nodes), "none")
        shaped += problem.reward(before, env.totals, len(nodes), "caro_wei")
        before = env.totals
        check()
    assert env.value == best * unit
    # The rewards of an episode are what the best cut has gained.
    scale = grain * before.mean_degree**0.5
    assert rewards == pytest.approx((best - first) / scale, abs=1e-9)
    # With shaping also what the cut has.
    more = 0 if name == "maxcut_once" else cut_of(M, sides) - first
    assert shaped == pytest.approx((best - first + more) / scale, abs=1e-9)


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize(
    "graphs",
    [("plain", "hubs"), ("signs", "plain"), ("positive", "quarters"), ("fine",), ("plain", "fine", "hubs")],
)
@pytest.mark.parametrize("name", NAMES)
def test_states_told_again_from_their_choices(group, name, graphs, exchange):
    """Choices of several graphs in one batch, against environments that played them."""
    problem = make_problem(name)
    blocks = make_blocks(group, [GRAPHS[g] for g in graphs], exchange)
    before, after, early, late, members = [], [], [], [], []
    draws = np.random.default_rng(3)
    for block, count in zip(blocks, (3, 2)):
        members.append((block, count))
        for seed in range(count):
            env = begin_environment(group, block, problem)
            codes, actions = [env.codes_own()], []
            for nodes in play(group, env, seed, 30):
                actions += nodes.tolist()
                codes.append(env.codes_own())
            t = int(draws.integers(len(actions)))
            end = min(t + int(draws.integers(1, 4)), len(actions))
            before.append(np.array(actions[:t], dtype=np.int64))
            after.append(np.array(actions[:end], dtype=np.int64))
            early.append(codes[t])
            late.append(codes[end])
    batch = StateBatch(group, members)
    found = DYNAMICS[problem.dynamics].replayed(problem, batch, before, after, False)
    for codes, states in zip(found, (early, late)):
        codes = group.device.get(codes)
        assert codes.dtype == np.int32
        for s, expected in enumerate(states):
            g = batch.member_of_state[s]
            first = batch.at[g] + s - batch.first[g]
            assert codes[first : batch.at[g + 1] : batch.counts[g]].tolist() == expected.tolist()


@pytest.mark.parametrize("device", ["host"], indirect=True)
def test_units_are_those_of_whole_graphs(group):
    exact = set()
    for name, graph in GRAPHS.items():
        M, unit = dense_weights(graph)
        held = whole_weights(group, make_block(group, graph))
        assert (held.unit, held.total, held.signed) == (unit, int(np.abs(M).sum()), int(M.sum())), name
        assert held.exact == (np.abs(M).sum(axis=1).max() < 2**23)
        exact.add(held.exact)
    assert exact == {True, False}


@pytest.mark.mpi_skip
def test_levels_and_ages_grow_with_what_they_stand_for():
    parts = np.arange(-200, 201)
    levels = level_of(np, parts)
    assert levels.tolist() == [level_by_definition(int(p), GRAIN_PARTS) for p in parts]
    assert (np.diff(levels) >= 0).all()
    assert (np.sign(levels) == np.sign(parts)).all()
    # What the features take a level for: its least gain, exact up to six grains.
    assert (_gain_of(np, np.arange(1, len(LEVELS) + 1)) * GRAIN_PARTS == LEVELS).all()
    near = np.abs(parts) <= SINGLE * GRAIN_PARTS
    assert (_gain_of(np, levels)[near] * GRAIN_PARTS == parts[near]).all()
    ages = np.arange(1000)
    assert age_of(np, ages).tolist() == [min(int(math.log2(1 + a)), AGES - 1) for a in ages]


@pytest.mark.parametrize("name", NAMES)
def test_features_tell_codes_apart(device, name):
    problem = make_problem(name)
    code = np.arange(problem.entries(9), dtype=np.float32)[:, None]
    width = 4 if name == "maxcut" else 1
    state = np.tile(np.array([[8.0, 0.2, 0.1, 0.5]], dtype=np.float32)[:, :width], (len(code), 1))
    x = device.get(problem.features("scale_free", device.xp, device.put(code), device.put(state)))
    assert x.shape == (len(code), problem.feature_counts["scale_free"])
    assert np.isfinite(x).all()
    assert len(np.unique(x[FIRST:], axis=0)) == len(code) - FIRST
    assert not x[:FIRST].any()


# ---- policies ---------------------------------------------------------------------------------------------


def network(name, device, seed=3, **policy):
    net = QNetwork(PolicyCase(**policy), make_problem(name))
    return net, net.new_parameters(device, seed)


@pytest.mark.parametrize("name", NAMES)
def test_rollouts_do_not_depend_on_ranks(group, single, name):
    """One by one, side by side, and on one rank: the same choices, and the value of the sides."""
    graphs = [GRAPHS["plain"], GRAPHS["hubs"], GRAPHS["quarters"]]
    results = []
    for ranks in (group, single):
        net, params = network(name, ranks.device)
        blocks = make_blocks(ranks, graphs)
        found = []
        for graph, block, env in zip(graphs, blocks, rolled_out_one_at_a_time(ranks, net, params, blocks)):
            cover = roll_out(ranks, net, params, block, "single", 1.0)
            assert np.array_equal(cover.chosen_at_own, env.chosen_at)
            assert not cover.counted
            sides = whole_rows(ranks, block, cover.solution_own)
            M, unit = dense_weights(graph)
            assert cover.objective == cut_of(M, sides) * unit
            assert env.steps == cover.evaluations
            found.append((sides.tolist(), cover.evaluations))
        results.append(found)
    assert results[0] == results[1]
    if name == "maxcut":
        assert [steps for _, steps in results[0]] == [2 * n for n, _, _ in graphs]


# Devices give the same bits, as other tests say: what takes long without kernels needs one of them.
FAST_DEVICES = pytest.mark.parametrize(
    "device",
    ["host", "gpu", *(pytest.param(slow, marks=pytest.mark.long) for slow in ("plain", "stand-in"))],
    indirect=True,
)


def shipped(device):
    """The network and the weights that a user gets."""
    saved = load_weights(default_weights("maxcut"))
    net = QNetwork(saved.policy, make_problem("maxcut"))
    params = net.new_parameters(device, 1)
    params.set(saved.arrays)
    return net, params


@pytest.mark.mpi_skip
@pytest.mark.timeout(1200)
@FAST_DEVICES
def test_the_weights_that_ship_carry_over_to_graphs_twenty_times_as_large(solo):
    """A policy that moves a few hubs to and fro, or whose scores grow with degrees, ends far below."""
    net, params = shipped(solo.device)
    graph = growing_graph(2000, 4, 1)
    whole, M = whole_graph(graph), dense_weights(graph)[0]
    (env,) = rolled_out_one_at_a_time(solo, net, params, [make_block(solo, graph)])
    plain = [cut_of(M, rule(whole)[0]) for rule in (descent, greedy)]
    assert env.value > max(plain)


@pytest.mark.mpi_skip
@FAST_DEVICES
@pytest.mark.parametrize("kind", ["torus", "hubs"])
def test_the_weights_that_ship_know_what_to_do_with_signs(solo, kind):
    """Messages that do not see the signs of edges end below the greedy construction."""
    n, edges, _ = growing_graph(400, 4, 1)
    if kind == "torus":
        edges = np.concatenate([np.stack([np.arange(n), (np.arange(n) + k) % n], axis=1) for k in (1, 20)])
    graph = with_weights((n, edges, None), lambda draws, k: draws.choice([-1, 1], k))
    net, params = shipped(solo.device)
    (env,) = rolled_out_one_at_a_time(solo, net, params, [make_block(solo, graph)])
    whole, M = whole_graph(graph), dense_weights(graph)[0]
    assert env.value > max(cut_of(M, rule(whole)[0]) for rule in (descent, greedy))


@pytest.mark.parametrize("device", ["host"], indirect=True)
@pytest.mark.parametrize("rule", ["single", "adaptive", "fraction"])
def test_a_node_rests_after_its_move(group, rule):
    """Whatever the weights, and where a step takes all nodes at once."""
    for graph in (random_graph(45, 0.2, 1), random_graph(8, 0.9, 1), listed(2, (0, 1))):
        net, params = network("maxcut", group.device)
        env = begin_environment(group, make_block(group, graph), net.problem)
        scores = FullScores(group, net, params, env)
        n, rest, ready = graph[0], max(graph[0] // RESTS, 1), np.zeros(graph[0], dtype=np.int64)
        clock = 0
        while not env.done:
            nodes = find_rule(rule)(group, group.device, scores.keys_own(), env, Share(n, 0.5))
            assert (ready[nodes] <= clock).all()
            clock += max(len(nodes), 1)  # a step in which all rest is one, too
            ready[nodes] = clock + rest
            scores.remove(nodes)
            may = np.flatnonzero(ready <= clock)
            assert env.totals.candidates == len(may)
            own = (may >= env.block.lo) & (may < env.block.lo + env.block.n_real)
            assert (env.candidates_own() + env.block.lo).tolist() == may[own].tolist()
        assert env.totals.steps == clock >= 2 * n
        assert rule != "single" or env.steps == 2 * n


def test_sums_over_neighbours_are_means(group):
    """Hubs do not see more than other nodes, however large the graph."""
    net, _ = network("maxcut", group.device)
    graphs = [GRAPHS["hubs"], GRAPHS["isolated nodes"]]
    blocks = make_blocks(group, graphs)
    batch = StateBatch(group, [(blocks[0], 2), (blocks[1], 1)])
    envs = [begin_environment(group, block, net.problem) for block in blocks]
    code = np.concatenate([np.repeat(envs[0].codes_own(), 2), envs[1].codes_own()])
    totals = [envs[0].totals] * 2 + [envs[1].totals]
    inputs = net.inputs(batch, group.device.put(code), totals)
    scale = group.device.get(inputs.scale_own)
    for g, (block, graph) in enumerate(zip(blocks, graphs)):
        degree = np.maximum(dense(graph)[0].sum(axis=1), 1).astype(np.float32)
        mine = scale[batch.at[g] : batch.at[g + 1] : batch.counts[g]]
        expected = np.zeros(block.n_own, dtype=np.float32)
        expected[: block.n_real] = 1 / degree[block.lo : block.lo + block.n_real]
        assert np.array_equal(mine, expected)


def scores_of(group, net, params, block, marks):
    """Scores of all nodes where no node has moved and marks [n] are the sides."""
    env = begin_environment(group, block, net.problem)
    step_together(group, [env], [np.flatnonzero(marks != net.problem.start_marks(block.n))])
    env.moved_at[:] = -1
    totals = [env.totals._replace(best=env.totals.cut, steps=1)]
    batch = StateBatch(group, [(block, 1)])
    inputs = net.inputs(batch, group.device.put(env.codes_own()), totals, every=True)
    e = net.evaluate(params, batch, inputs, totals, pool=False)
    return whole_rows(group, block, group.device.get(net.local_scores(params, e)))


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("weights", ["plain", "fine"])
def test_scores_follow_a_graph_whose_signs_are_switched(group, weights, exchange):
    """Nodes turned with the signs of their edges: the same cuts, hence the same scores.

    A node that is not turned sees what it saw; one that is sees the whole graph on the other sides.
    """
    net, params = network("maxcut", group.device)
    n, edges, w = GRAPHS[weights]
    w = np.ones(len(edges), dtype=np.float32) if w is None else w
    draws = np.random.default_rng(5)
    turned, marks = draws.choice([-1, 1], n), draws.choice([-1, 1], n)
    switched = (n, edges, (w * turned[edges[:, 0]] * turned[edges[:, 1]]).astype(np.float32))
    blocks = make_blocks(group, [(n, edges, w), switched], exchange)
    seen, other = (scores_of(group, net, params, blocks[0], sides) for sides in (marks, -marks))
    found = scores_of(group, net, params, blocks[1], marks * turned)
    assert np.abs(seen - other).max() > 1e-3
    assert np.allclose(found, np.where(turned > 0, seen, other), atol=1e-5)


def test_scores_that_follow_have_the_bits_of_full_ones(emulated):
    for device in (HostDevice(), HostDevice(compiled=False), emulated):
        group = Group(WORLD, device)
        net, params = network("maxcut_once", group.device)
        for name in ("hubs", "quarters"):
            env = begin_environment(group, make_block(group, GRAPHS[name], "halo"), net.problem)
            assert can_follow(group, net, env) or device is emulated
            live, full = LiveScores(group, net, params, env), FullScores(group, net, params, env)
            while not env.done:
                keys = [device.get(each.keys_own()) for each in (live, full)]
                np.testing.assert_array_equal(*keys)
                live.remove(np.array([live.best()]))
    group = Group(WORLD, HostDevice())
    net, _ = network("maxcut", group.device)
    env = begin_environment(group, make_block(group, PLAIN), net.problem)
    assert not can_follow(group, net, env)


def rings_after(asked, seconds):
    """A clock's answer: no so many times, then yes; of a clock that has more seconds no."""
    answers = itertools.chain([False] * asked, itertools.repeat(True))

    def rings(clock):
        clock.rang = clock.seconds <= seconds and next(answers)
        return clock.rang

    return rings


@pytest.mark.parametrize("device", ["host"], indirect=True)
def test_a_rollout_stops_when_its_time_is_up(group, monkeypatch):
    """A cut is what it is by then, the rest of a dominating set greedy. Without a limit both are finished."""
    graph = random_graph(90, 0.05, 1)
    for name in ("maxcut", "mds"):
        net, params = network(name, group.device, head="mixing")
        block = make_block(group, graph)
        assert rollout(group, net, params, block, StartLimits(0.01, 0, 0.0))[:2] == (None, 0)
        with monkeypatch.context() as patch:
            patch.setattr(learned.StartClock, "rings", rings_after(7, learned.TIME_SHARE))
            solution, evaluations, _ = rollout(
                group, net, params, block, StartLimits(0.01, 0, 1.0, together=1)
            )
        assert evaluations == 7
        assert solution.shape == (90,)
        if name == "mds":
            assert (dense(graph)[0][:, solution].any(axis=1) | solution).all()
            again = rollout(group, net, params, block, StartLimits(0.01, 7, math.inf, together=1))
            assert np.array_equal(again[0], solution)
        whole, more, _ = rollout(group, net, params, block, StartLimits(0.01, 0, math.inf))
        assert (whole.shape, whole.dtype) == ((90,), bool)
        assert more > evaluations
        assert name == "mds" or more == 180


@pytest.mark.parametrize("device", ["host"], indirect=True)
def test_work_of_moves_on_large_graphs_is_limited(group, monkeypatch):
    """By the graph alone, where no limit is set: then an evaluation moves several nodes."""
    graph, told = random_graph(90, 0.05, 1), []
    net, params = network("maxcut", group.device, head="mixing")
    block = make_block(group, graph)
    endless = StartLimits(0.01, 0, math.inf, tell=lambda evaluations, of: told.append((evaluations, of)))
    assert learned.moves_at_once(group, net, params, block, endless) == 1
    monkeypatch.setattr(learned, "ONE_BY_ONE", 50)
    for work, together in ((1, 9), (20, 9), (45, 4), (180, 1), (1000, 1)):
        monkeypatch.setattr(learned, "MOVE_WORK", work * (block.n + 2 * len(graph[1])))
        assert learned.moves_at_once(group, net, params, block, endless) == together
    monkeypatch.setattr(learned, "MOVE_WORK", 45 * (block.n + 2 * len(graph[1])))
    solution, evaluations, setting = rollout(group, net, params, block, endless)
    assert setting == "search.moves_at_once=4"
    assert 45 <= evaluations <= 75  # of two to four nodes: adjacent ones wait
    assert all(evaluations <= int(of.removeprefix("about ")) <= 75 for evaluations, of in told)
    given = rollout(group, net, params, block, StartLimits(0.01, 30, math.inf, together=4))
    assert given[1] == 30
    same, *_ = rollout(group, net, params, block, StartLimits(0.01, evaluations, math.inf, together=4))
    assert np.array_equal(same, solution)
    monkeypatch.setattr(learned, "MOVE_WORK", 1)
    net, params = network("maxcut_once", group.device, head="mixing")  # comes to an end by itself
    assert rollout(group, net, params, block, StartLimits(0.01, 0, math.inf))[2] == "search.moves_at_once=1"


@pytest.mark.parametrize("device", ["host"], indirect=True)
def test_sets_of_large_graphs_grow_by_parts(group, monkeypatch):
    """By the graph alone, where no limit is set; as fast as one asks for, where there is one."""
    graph = random_graph(90, 0.05, 1)
    net, params = network("mds", group.device)
    block = make_block(group, graph)
    endless = StartLimits(0.01, 0, math.inf)
    one_by_one = rollout(group, net, params, block, endless)
    assert one_by_one[2] == "search.moves_at_once=1"
    monkeypatch.setattr(learned, "SET_ONE_BY_ONE", 50)
    assert learned.nodes_at_once(group, net, params, block, endless) == 1  # 1/500 of 90 nodes
    monkeypatch.setattr(learned, "SET_PART", 0.1)
    solution, evaluations, setting = rollout(group, net, params, block, endless)
    assert setting == "search.moves_at_once=9"
    assert evaluations < one_by_one[1]
    assert (dense(graph)[0][:, solution].any(axis=1) | solution).all()
    same, *_ = rollout(group, net, params, block, StartLimits(0.01, evaluations, math.inf, together=9))
    assert np.array_equal(same, solution)
    ticks = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: next(ticks) * 1e-3, monotonic=time.monotonic)
    monkeypatch.setattr(learned, "time", clock)  # an evaluation: 1 ms
    for seconds, together in ((10.0, 9), (0.02, 91), (0.25, 9)):
        assert learned.nodes_at_once(group, net, params, block, StartLimits(0.01, 0, seconds)) == together
    monkeypatch.setattr(learned, "SET_PART", 0.02)
    assert learned.nodes_at_once(group, net, params, block, StartLimits(0.01, 0, 0.25)) == 2


@pytest.mark.parametrize("device", ["host"], indirect=True)
def test_one_choice_may_be_all_that_the_clock_sees(group, monkeypatch):
    """A star: its middle dominates everything, so there is no second evaluation to take the time of."""
    monkeypatch.setattr(learned, "SET_ONE_BY_ONE", 50)
    net, params = network("mds", group.device)
    block = make_block(group, listed(90, *((0, i) for i in range(1, 90))))
    solution, *_ = rollout(group, net, params, block, StartLimits(0.01, 0, 500.0))
    assert np.flatnonzero(solution).tolist() == [0]


@pytest.mark.parametrize("device", ["host"], indirect=True)
@pytest.mark.parametrize("name", ["maxcut", "maxcut_once", "mds"])
def test_the_smallest_graphs_have_a_rollout_too(group, name):
    """One node of two to five is a good part of all of them."""
    for n in range(2, 6):
        net, params = network(name, group.device, head="mixing")
        block = make_block(group, listed(n, *[(i, i + 1) for i in range(n - 1)]))
        solution, evaluations, _ = rollout(group, net, params, block, StartLimits(0.01, 0, math.inf))
        assert solution.shape == (n,) and evaluations > 0


@pytest.mark.parametrize("device", ["host"], indirect=True)
def test_moves_under_a_time_limit_are_planned(group, monkeypatch):
    """Whole rollouts that fit, or none: half of one leaves a cut that is worse than any rule's."""
    block = make_block(group, random_graph(90, 0.05, 1))
    net, params = network("maxcut", group.device, head="mixing")
    ticks = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: next(ticks) * 1e-3, monotonic=time.monotonic)
    monkeypatch.setattr(learned, "time", clock)  # an evaluation: 1 ms
    for seconds, together in ((10.0, 1), (1.0, 3), (0.25, 9), (0.1, 91)):
        assert learned.moves_at_once(group, net, params, block, StartLimits(0.01, 0, seconds)) == together
    monkeypatch.undo()
    solution, evaluations, _ = rollout(group, net, params, block, StartLimits(0.01, 0, 0.1))
    assert (solution, evaluations) == (None, 0)


def small_training(name, **agent):
    return Case(
        seed=5,
        agent=AgentCase(batch=16, warmup=32, epsilon_decay_steps=300, discount=0.9, target_every=50, **agent),
        train=TrainCase(steps=300, evaluate_every=150),
    )


@pytest.mark.parametrize("device", ["host"], indirect=True)
@pytest.mark.parametrize("name", NAMES)
def test_training_improves_and_does_not_depend_on_ranks(group, single, name):
    graphs = [growing_graph(40, 3, seed) for seed in range(6)]
    graphs[::2] = [with_weights(graph, lambda draws, k: draws.choice([-1, 1], k)) for graph in graphs[::2]]
    held = [growing_graph(40, 3, seed) for seed in (11, 12, 13)]
    found = []
    for ranks in (group, single)[: group.size]:  # one rank trains once
        blocks = make_blocks(ranks, graphs + held)
        trained = train_policy(ranks, small_training(name), make_problem(name), blocks[:6], blocks[6:])
        found.append((digest(trained.weights), trained.best_total, trained.records[0]["held_back_nodes"]))
    assert found[0] == found[-1]
    _, best, first = found[0]
    assert best > first


@pytest.mark.mpi_skip
def test_the_toolbox_knows_the_value_of_the_best_of_all_cuts():
    n, edges, weights = with_weights(random_graph(9, 0.5, 3), lambda draws, k: draws.choice([-1, 1, 2], k))
    problem = make_problem("maxcut")
    whole = whole_graph((n, edges, weights))
    toolbox = problem.toolbox(Instance(whole))
    M, _ = dense_weights((n, edges, weights))
    best = max(cut_of(M, np.array(bits, dtype=bool)) for bits in itertools.product((0, 1), repeat=n))
    search = toolbox.search(1, None)
    search.run(2000)
    assert toolbox.value(search.solution()) == best
    for rule in problem.baselines.values():
        assert toolbox.value(rule(whole)[0]) <= best
    assert problem.violation(whole, search.solution()) is None
    assert dense((n, edges, weights))[0].sum() == 2 * len(edges)
