"""Whole lessons, scores and steps in one compiled call: the bits of what makes them product by product."""

from functools import partial

import numpy as np
import pytest
from helpers import growing_graph, listed, make_blocks, random_graph
from hypothesis import given
from hypothesis import strategies as st
from mpi4py import MPI

from app.case.graph import GraphCase
from app.case.policy import AgentCase, PolicyCase
from app.comm.group import Group
from app.device import HostDevice
from app.errors import NumericsError
from app.graphs.metric import Metric
from app.native import residual
from app.numerics.products import Operand
from app.partition.generated import generate_set
from app.problems.table import make_problem
from app.rl import compiled_lesson, stored_tables
from app.rl.agent import Agent
from app.rl.core_env import CoreEnv
from app.rl.dynamics import begin_environment
from app.rl.env import GraphEnv, step_together
from app.rl.learner import score_environments
from app.rl.policy_gradient import Moment, Push
from app.rl.ppo import ProximalPolicy
from app.rl.qnet import QNetwork
from app.rl.reinforce import Reinforce
from app.rl.rollout import _side_by_side
from app.rl.select import best_nodes
from app.rl.sides import SidesEnv
from app.rl.stored_tables import StoredTables
from app.rl.tour_env import CODE_STEPS, _codes_of, seen
from app.rng import stream
from app.search.tour.insertion import InsertionState
from app.sparse.rowblock import RowBlock

pytestmark = pytest.mark.mpi_skip
SMALL = [
    growing_graph(53, 3, 1), growing_graph(40, 4, 2), random_graph(30, 0.15, 3), random_graph(61, 0.05, 4),
    listed(26, (3, 25), (2, 25), (2, 3)),
]  # fmt: skip
WEIGHTED = [random_graph(30, 0.15, 3, weighted=True), SMALL[1], random_graph(40, 0.1, 6, weighted=True)]
PROBLEMS = ("mvc", "mis", "fvs", "mds", "clique", "maxcut", "maxcut_once")


@pytest.fixture(scope="module")
def alone(compiled):
    return Group(MPI.COMM_SELF, compiled)


def distances(points):
    """[n, n] between points."""
    return np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))


def played(group, problem, policy, agent, graphs=SMALL, steps=40, seed=1):
    """An agent with weights that are not Glorot's and a memory of random episodes; the episodes that run."""
    blocks = make_blocks(group, graphs)
    learner = Agent(group, agent, QNetwork(policy, make_problem(problem)), blocks, seed, 0)
    draws = stream(seed, "test/weights")
    for params in (learner.params, learner.target):
        params.flat[:] = draws.normal(0, 0.4, params.size).astype(np.float32)
    running, number = [], 0
    for _ in range(steps):
        running = [each for each in running if not each[2].done]
        while len(running) < 3:
            graph = int(draws.integers(len(blocks)))
            env = begin_environment(group, blocks[graph], learner.net.problem)
            if env.done:
                continue
            learner.begin(number, graph, env)
            running.append((number, graph, env))
            number += 1
        for episode, _, env in running:
            candidates = env.candidates_own()
            node = np.array([int(candidates[int(draws.integers(len(candidates)))])])
            step_together(group, [env], [node])
            learner.remember(episode, int(node[0]), float(draws.normal()), env)
    return learner, [each for each in running if not each[2].done]


def plainly(learner, ask):
    """What a learner answers product by product."""
    whole, learner.whole = learner.whole, None
    try:
        return ask(learner)
    finally:
        learner.whole = whole


def check_alike(learner, running, batch, seeds=range(3)):
    """Losses, gradients, scores and choices: the same bits. Returns whether a gradient is not 0."""
    assert learner.whole is not None
    learned = False
    for seed in seeds:
        sample = learner.replay.sample(stream(seed, "test/sample"), batch)
        mine, theirs = learner.lesson(sample), plainly(learner, partial(Agent.lesson, sample=sample))
        assert mine.loss == theirs.loss
        assert mine.gradient.tobytes() == theirs.gradient.tobytes()
        learned |= bool(np.any(mine.gradient))
    graphs, envs = [each[1] for each in running], [each[2] for each in running]
    layout = learner.layouts.of(graphs, [1] * len(envs))
    scores, candidates = score_environments(learner.net, learner.params, layout, envs)
    states = learner.whole._states(envs, graphs)
    found = learner.whole.kernels.scores(*states, learner.params.flat)  # what best and draw choose by
    assert found[0].tobytes() == scores.tobytes()
    assert found[1].tolist() == candidates.tolist()
    assert learner.best_actions(graphs, envs).tolist() == best_nodes(
        learner.group, layout, scores, candidates
    ).tolist()  # fmt: skip
    return learned


@given(
    problem=st.sampled_from(PROBLEMS),
    layers=st.integers(1, 4),
    dimension=st.sampled_from([5, 8, 16, 24]),
    hidden=st.sampled_from([7, 16, 32, 40]),
    flags=st.tuples(*[st.booleans()] * 7),
    graphs=st.sampled_from([SMALL, WEIGHTED]),
    head=st.sampled_from(["separate", "mixing"]),
    hubs=st.sampled_from([0.0, 1.5]),
    n_step=st.sampled_from([1, 3]),
    batch=st.sampled_from([1, 5, 16, 80]),
)
def test_a_lesson_in_one_call_has_the_bits_of_its_products(
    alone, problem, layers, dimension, hidden, flags, graphs, head, hubs, n_step, batch
):
    shared, self_weight, mean_degree, paper, double, huber, edges = flags
    edges |= problem == "maxcut" and graphs is WEIGHTED  # else nodes have mirror images
    paper = paper and "paper" in make_problem(problem).feature_counts
    hubs = hubs if mean_degree and not paper and problem in ("mvc", "mis", "fvs", "mds", "clique") else 0.0
    policy = PolicyCase(
        layers=layers, dimension=dimension, hidden=hidden, shared_layers=shared, self_weight=self_weight,
        mean_degree=mean_degree, head=head, hub_degree=hubs, features="paper" if paper else "scale_free",
        edge_weights=edges,
    )  # fmt: skip
    agent = AgentCase(double=double, loss="huber" if huber else "squared", n_step=n_step)
    check_alike(*played(alone, problem, policy, agent, graphs), batch)


@pytest.mark.parametrize("problem", ["mvc", "maxcut"])
@pytest.mark.parametrize("graphs", [SMALL, WEIGHTED])
def test_weights_of_edges_are_learned_from(alone, problem, graphs):
    """The paper's recipe of covers, and more rounds of cuts."""
    paper = problem == "mvc"
    policy = PolicyCase(
        features="paper" if paper else "scale_free", layers=2 if paper else 3, shared_layers=paper,
        self_weight=not paper, mean_degree=not paper, edge_weights=True,
    )  # fmt: skip
    learner, running = played(alone, problem, policy, AgentCase(), graphs)
    assert check_alike(learner, running, 16)
    sample = learner.replay.sample(stream(1, "test/sample"), 16)
    assert learner.lesson(sample).gradient[learner.params.slices["embed.theta2"]].any()


@pytest.mark.parametrize("problem", ["mvc", "mis", "fvs"])
def test_many_states_of_one_graph_are_a_lesson(alone, problem):
    """More than a dense product makes the rows of itself."""
    learner, running = played(alone, problem, PolicyCase(), AgentCase(), graphs=SMALL[:1], steps=60)
    assert check_alike(learner, running, 20, range(1))
    assert check_alike(learner, running, 100, range(1))


def test_every_register_width_gives_the_bits_of_the_products(alone, lanes):
    learner, running = played(alone, "mis", PolicyCase(layers=3, dimension=24), AgentCase(double=True))
    check_alike(learner, running, 16, range(1))


def test_a_memory_of_bits_is_learned_from_alike(alone):
    learner, running = played(alone, "mis", PolicyCase(), AgentCase(replay="bits", replay_capacity=64))
    assert check_alike(learner, running, 16)


def test_tables_that_are_thrown_away_are_made_again(alone, monkeypatch):
    monkeypatch.setattr(stored_tables, "MOST_BYTES", 1)
    monkeypatch.setattr(stored_tables, "MOST_TOTALS", 20)
    check_alike(*played(alone, "mds", PolicyCase(), AgentCase()), 16)


def test_stored_tables_are_those_of_the_network(alone):
    for problem, policy in (("mds", PolicyCase(hub_degree=2.0)), ("mvc", PolicyCase(features="paper"))):
        net = QNetwork(policy, make_problem(problem))
        envs = [begin_environment(alone, block, net.problem) for block in make_blocks(alone, SMALL)]
        tables, totals = StoredTables(net, 64), [env.totals for env in envs]
        for some in (totals[:2], totals, totals[::-1]):
            numbers = tables.numbers(some)
            for number, each in zip(numbers, some):
                features, _, factors = net.tables_of(64, [each])
                assert tables.features[number].tobytes() == features.tobytes()
                assert tables.factors[number].tobytes() == factors.tobytes()
        assert tables.numbers(totals) == tables.numbers(totals)


@pytest.mark.parametrize("double", [False, True])
def test_weights_that_diverged_end_both_ways(alone, double):
    learner, running = played(alone, "mvc", PolicyCase(), AgentCase(double=double))
    learner.params.flat[:] = learner.target.flat[:] = np.nan
    sample = learner.replay.sample(stream(1, "test/sample"), 8)
    for ask in (
        lambda each: each.lesson(sample),
        lambda each: each.best_actions([running[0][1]], [running[0][2]]),
    ):
        with pytest.raises(NumericsError, match="NaN"):
            ask(learner)
        with pytest.raises(NumericsError, match="NaN"):
            plainly(learner, ask)


def test_what_is_not_known_is_left_to_the_products(alone):
    blocks = make_blocks(alone, SMALL)
    serves = compiled_lesson.CompiledLessons.serves
    mvc = make_problem("mvc")
    assert serves(alone, QNetwork(PolicyCase(), mvc), blocks)
    assert not serves(alone, QNetwork(PolicyCase(model="gcn"), mvc), blocks)
    signed = make_blocks(alone, [random_graph(20, 0.2, 1, weighted=True)])
    assert not serves(alone, QNetwork(PolicyCase(), make_problem("maxcut")), signed)
    plain = Group(alone.comm, HostDevice(compiled=False))
    assert not serves(plain, QNetwork(PolicyCase(), mvc), make_blocks(plain, SMALL))


def test_larger_minibatches_are_learned_from_in_parts(alone, monkeypatch):
    monkeypatch.setattr("app.rl.agent.PART_ROWS", 100)
    learner, _ = played(alone, "mvc", PolicyCase(), AgentCase())
    monkeypatch.setattr(learner, "_whole_lesson", None)
    sample = learner.replay.sample(stream(1, "test/sample"), 16)
    assert len(list(learner._cut(sample))) > 1
    learner.lesson(sample)


def test_a_policy_that_draws_its_actions_draws_the_same(alone):
    blocks = make_blocks(alone, SMALL)
    net = QNetwork(PolicyCase(head="mixing"), make_problem("mis"))
    learner = Reinforce(alone, AgentCase(), net, blocks, 3, 0)
    envs = [begin_environment(alone, block, learner.net.problem) for block in blocks[:4]]
    for step in range(5):
        mine = learner.act(envs, [0, 1, 2, 3], step)
        theirs = plainly(learner, lambda each, at=step: each.act(envs, [0, 1, 2, 3], at))
        assert mine.tolist() == theirs.tolist()


def drawn(group, kind, problem, policy, blocks):
    """A learner that draws, its weights not Glorot's, and the moments of four episodes that it played."""
    learner = kind(group, AgentCase(), QNetwork(policy, make_problem(problem)), blocks, 3, 0)
    draws = stream(1, "test/weights")
    for params in (learner.params, *([learner.value.params] if learner.value else [])):
        params.flat[:] = draws.normal(0, 0.4, params.size).astype(np.float32)
    moments = []
    for number in range(4):
        graph = number % len(blocks)
        env = begin_environment(group, learner.blocks[graph], learner.net.problem)
        learner.begin(number, graph, env)
        for t in range(8):
            if env.done:
                break
            act = partial(kind.act, envs=[env], graphs=[graph], step=t)
            nodes = act(learner)
            assert nodes.tolist() == plainly(learner, act).tolist()
            step_together(group, [env], [nodes])
            learner.remember(number, int(nodes[0]), 1.0, env)
            moments.append(Moment(number, t))
    return learner, moments


def any_push(played):
    """Derivatives that say nothing."""
    draws, count = stream(5, "test/push", len(played.nodes)), len(played.nodes)
    dlog, dentropy, dvalue = draws.normal(size=(3, count))
    losses = dlog * played.log_probability + dentropy * played.entropy
    if played.value is None:
        return Push(losses, dlog, dentropy)
    return Push(losses + dvalue * played.value, dlog, dentropy, dvalue)


def check_policy_lessons(learner, moments):
    """Losses, entropies and gradients: the same bits. Returns whether the gradient is not 0."""
    assert learner.whole is not None
    mine, entropy = learner.lesson(moments, any_push), learner.entropy
    theirs = plainly(learner, lambda each: each.lesson(moments, any_push))
    assert (mine.loss, entropy) == (theirs.loss, learner.entropy)
    assert mine.gradient.tobytes() == theirs.gradient.tobytes()
    return bool(np.any(mine.gradient))


@given(
    kind=st.sampled_from([Reinforce, ProximalPolicy]),
    problem=st.sampled_from([*PROBLEMS, "dismantle"]),
    layers=st.integers(1, 3),
    dimension=st.sampled_from([5, 16, 24]),
    hidden=st.sampled_from([7, 32]),
    flags=st.tuples(*[st.booleans()] * 5),
    graphs=st.sampled_from([SMALL, WEIGHTED]),
    head=st.sampled_from(["separate", "mixing"]),
)
def test_policies_that_draw_learn_with_the_bits_of_their_products(
    alone, kind, problem, layers, dimension, hidden, flags, graphs, head
):
    shared, self_weight, mean_degree, paper, edges = flags
    edges |= problem == "maxcut" and graphs is WEIGHTED  # else nodes have mirror images
    policy = PolicyCase(
        layers=layers, dimension=dimension, hidden=hidden, shared_layers=shared, self_weight=self_weight,
        mean_degree=mean_degree, head=head, edge_weights=edges,
        features="paper" if paper and "paper" in make_problem(problem).feature_counts else "scale_free",
    )  # fmt: skip
    check_policy_lessons(*drawn(alone, kind, problem, policy, make_blocks(alone, graphs)))


@pytest.mark.parametrize("kind", [Reinforce, ProximalPolicy])
def test_policies_learn_alike_in_parts(alone, monkeypatch, kind):
    """The addends of several calls, and of more states than a call holds."""
    for name in ("PART_ROWS", "MOST_ROWS"):
        monkeypatch.setattr(f"app.rl.agent.{name}", 300)
    learner, moments = drawn(
        alone, kind, "mis", PolicyCase(head="mixing", edge_weights=True), make_blocks(alone, SMALL)
    )
    assert len(list(learner._parts(moments))) > 2
    assert check_policy_lessons(learner, moments)
    monkeypatch.setattr(learner.whole, "_most", 299)
    assert not learner.whole.holds([0] * 6, 1 << 15)
    assert check_policy_lessons(learner, moments)


def test_policies_of_tours_are_told_their_codes(alone):
    case = GraphCase(generator="uniform_points", nodes=(12, 18), count=3)
    blocks = [
        RowBlock(alone, each.graph, each.rows, metric=each.metric)
        for each in generate_set(alone, case, 1, "test")
    ]
    learner, moments = drawn(alone, ProximalPolicy, "tsp", PolicyCase(), blocks)
    assert learner.whole.wants_codes
    assert check_policy_lessons(learner, moments)


def test_only_the_states_played_last_can_be_learned_from(alone):
    learner, moments = drawn(alone, Reinforce, "mvc", PolicyCase(), make_blocks(alone, SMALL))
    (first,) = learner.replay(moments)
    (second,) = learner.replay(moments)
    with pytest.raises(NumericsError, match="not the last that were played"):
        first.back(any_push(first))
    second.back(any_push(second))


def test_policies_that_diverged_end_both_ways(alone):
    learner, moments = drawn(alone, ProximalPolicy, "mvc", PolicyCase(), make_blocks(alone, SMALL))
    learner.params.flat[:] = np.nan
    env = begin_environment(alone, learner.blocks[0], learner.net.problem)
    for ask in (lambda each: each.lesson(moments, any_push), lambda each: each.act([env], [0], 1)):
        with pytest.raises(NumericsError, match="NaN"):
            ask(learner)
        with pytest.raises(NumericsError, match="NaN"):
            plainly(learner, ask)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("returns", np.ones(8)),
        ("discounts", np.ones(7, dtype=np.float32)),
        ("nodes", np.zeros(16, dtype=np.int64)[::2]),
    ],
)
def test_what_does_not_fit_is_refused(alone, name, wrong):
    learner, _ = played(alone, "mvc", PolicyCase(), AgentCase())
    sample = learner.replay.sample(stream(1, "test/sample"), 8)
    setattr(sample, name, wrong)
    with pytest.raises(NumericsError, match="is not 8 contiguous"):
        learner.lesson(sample)


# ---- steps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["mvc", "mis", "clique"])
@pytest.mark.parametrize("together", [1, 3])
def test_compiled_steps_on_residual_graphs_are_those_of_arrays(alone, problem, together):
    """The same totals, degrees, choices and touched rows, also where several nodes are taken at once."""
    assert residual.available()
    game = make_problem(problem)
    for seed, block in enumerate(make_blocks(alone, SMALL)):
        mine, theirs = (GraphEnv(alone, block, game) for _ in range(2))
        theirs._whole = False
        draws = stream(seed, "test/steps")
        while not theirs.done:
            candidates = theirs.candidates_own()
            nodes = draws.choice(candidates, min(together, len(candidates)), replace=False)
            if not game.adjacent:
                nodes = nodes[:1]
            for env in (mine, theirs):
                step_together(alone, [env], [nodes])
            assert mine.totals == theirs.totals
            assert mine.degree_own.tolist() == theirs.degree_own.tolist()
            assert mine.chosen_at.tolist() == theirs.chosen_at.tolist()
            assert sorted(mine.touched.tolist()) == sorted(theirs.touched.tolist())
            assert (mine.gone.tolist(), mine.chosen) == (theirs.gone.tolist(), theirs.chosen)
        assert mine.done


@pytest.mark.parametrize("together", [1, 3])
def test_compiled_steps_on_cores_are_those_of_arrays(alone, together):
    """The same totals, degrees, choices and touched rows after each cascade."""
    game = make_problem("fvs")
    for seed, block in enumerate(make_blocks(alone, SMALL)):
        mine, theirs = (CoreEnv(alone, block, game) for _ in range(2))
        theirs._whole = False
        draws = stream(seed, "test/steps")
        while not theirs.done:
            candidates = theirs.candidates_own()
            nodes = draws.choice(candidates, min(together, len(candidates)), replace=False)
            for env in (mine, theirs):
                step_together(alone, [env], [nodes])
            assert mine.totals == theirs.totals
            assert mine.degree_own.tolist() == theirs.degree_own.tolist()
            assert mine.chosen_at.tolist() == theirs.chosen_at.tolist()
            assert sorted(mine.touched.tolist()) == theirs.touched.tolist()
            assert mine.chosen == theirs.chosen
        assert mine.done


@pytest.mark.parametrize("problem", ["maxcut", "maxcut_once"])
@pytest.mark.parametrize("graphs", [SMALL, WEIGHTED])
@pytest.mark.parametrize("together", [1, 3])
def test_compiled_steps_of_sides_are_those_of_arrays(alone, problem, graphs, together):
    """The same totals, fields, marks, codes and touched rows; a step may move no node at all."""
    game = make_problem(problem)
    for seed, block in enumerate(make_blocks(alone, graphs)):
        mine, theirs = (SidesEnv(alone, block, game) for _ in range(2))
        assert mine._steps is not None
        theirs._steps = theirs._table = None
        draws = stream(seed, "test/steps")
        for _ in range(30):
            if theirs.done:
                break
            candidates = theirs.candidates_own()
            nodes = draws.choice(candidates, min(together, len(candidates)), replace=False)
            for env in (mine, theirs):
                step_together(alone, [env], [nodes.astype(np.int64)])
            assert mine.totals == theirs.totals
            for name in ("field_own", "parts_own", "mark_own", "mark_ext", "moved_at", "chosen_at"):
                assert getattr(mine, name).tolist() == getattr(theirs, name).tolist()
            assert mine.touched.tolist() == theirs.touched.tolist()
            assert mine.codes_own().tolist() == theirs.codes_own().tolist()
            rows = np.arange(0, block.n_own, 3)
            assert mine.codes_own(rows).tolist() == theirs.codes_own(rows).tolist()


def test_tours_told_again_in_one_call_are_those_of_arrays(alone):
    """Also of a table of distances, where no kernel computes them; what cannot be told again is refused."""
    points = np.random.default_rng(1).integers(0, 40, (31, 2)).astype(np.float64)
    euclidean = Metric("points", 31, "EUC_2D", points, None)
    tabled = Metric("table", 31, "EXPLICIT", None, np.rint(distances(points)).astype(np.int32))
    problem, draws = make_problem("tsp"), stream(1, "test/tours")
    for metric in (euclidean, tabled):
        first = InsertionState(metric, np.array([0, 5]))
        replays, before, after, codes = first.replays(), [], [], []
        outside = np.setdiff1d(np.arange(metric.n), first.order)
        for size in (0, 3, 11, len(outside)):
            cities = draws.permutation(outside)[:size]
            before.append(cities[: size // 2])
            after.append(cities)
            tour = InsertionState(metric, np.array([0, 5]), compiled=False)
            for some in (cities[: size // 2], cities[size // 2 :]):
                tour.play(some)
                codes.append(_codes_of(problem, [seen(tour)])[0])
            if size:
                assert replays.codes(CODE_STEPS, before, after).tolist() == [
                    [each.tolist() for each in codes[i::2]] for i in (0, 1)
                ]
        for wrong in ([[0]], [[7, 7]], [[99]]):
            with pytest.raises(ValueError, match="cities"):
                replays.codes(CODE_STEPS, [np.array([], dtype=np.int64)], [np.array(each) for each in wrong])


@pytest.mark.parametrize("problem", ["maxcut", "mds"])
def test_graphs_solved_side_by_side_are_solved_alike_product_by_product(alone, problem, monkeypatch):
    """Also where they take more than one call."""
    learner, _ = played(alone, problem, PolicyCase(), AgentCase())
    found = []
    for most in (1 << 17, 16 * 80, None):
        if most is None:
            monkeypatch.setattr(compiled_lesson.CompiledLessons, "serves", lambda *args: False)
        else:
            monkeypatch.setattr(compiled_lesson, "MOST_NUMBERS", most)
        envs = [begin_environment(alone, block, learner.net.problem) for block in learner.blocks]
        for _ in _side_by_side(alone, learner.net, learner.params, envs):
            pass
        found.append([(env.chosen_at.tolist(), env.totals) for env in envs])
    assert found[0] == found[1] == found[2]


# ---- weight gradients of many small graphs ------------------------------------------------------------


def test_weight_gradients_of_many_small_graphs_are_one_chain(compiled, lanes):
    """Rows of several graphs are taken together; each element is still one chain over them in order."""
    draws = np.random.default_rng(5)
    counts = draws.integers(0, 12, (90, 3)) * (draws.random((90, 3)) < 0.8)
    counts[40] = 300, 0, 161  # more than are taken together
    ends = np.cumsum(counts.reshape(-1)).reshape(counts.shape)
    starts = np.concatenate([(ends - counts)[:, :1], ends], axis=1)
    rows = int(ends[-1, -1])
    X, D = (draws.normal(size=(rows, k)).astype(np.float32) for k in (12, 16))
    table, index = draws.normal(size=(9, 7)).astype(np.float32), draws.integers(0, 9, rows).astype(np.int32)
    live = (draws.random(rows) < 0.6).astype(np.float32)
    scale = live * draws.random(rows).astype(np.float32)
    D *= live[:, None]
    parts = [Operand(table, index), Operand(X, None, scale), Operand(X)]
    plain = HostDevice(compiled=False)
    assert compiled.gram(parts, D, starts, live).tobytes() == plain.gram(parts, D, starts, live).tobytes()
