"""Every problem behind one interface: states against dense definitions, and the same answers on any ranks.

A new problem adds one line to REFERENCES: its state as a dense function of the set of chosen nodes.
"""

import itertools
import math

import numpy as np
import pytest
from conftest import WORLD
from helpers import (
    EXCHANGES,
    by_one,
    crossed,
    dense,
    growing_graph,
    listed,
    make_block,
    make_blocks,
    posed,
    random_graph,
    whole_rows,
)
from mpi4py import MPI

from app.bounds.feasible import edge_inside, undominated_node
from app.case.config import Case
from app.case.policy import AgentCase, PolicyCase, TrainCase
from app.comm.group import Group
from app.comm.guard import digest
from app.device import HostDevice
from app.errors import CaseError
from app.gnn.parameters import Parameters
from app.graphs.covering import HITTING
from app.graphs.graph import from_edges
from app.problems.dismantle import Dismantling
from app.problems.problem import FIXED_POINT, better, inverse_root
from app.problems.table import PROBLEMS as ALL
from app.problems.table import asks_policy, make_problem
from app.rl import compact, rollout
from app.rl.agent import Agent
from app.rl.dynamics import DYNAMICS, begin_environment
from app.rl.env import codes_of, step_together
from app.rl.incremental import FullScores, LiveScores, can_follow
from app.rl.qnet import QNetwork
from app.rl.replay import BitsReplay, EpisodeReplay
from app.rl.rollout import (
    Ending,
    Terms,
    drop_redundant,
    finished_rollout,
    roll_out,
    rolled_out_one_at_a_time,
)
from app.rl.rules import RULES
from app.rl.select import Share, top_nodes
from app.rl.training import train_policy
from app.rl.weights import default_weights, load_weights
from app.sparse.batch import StateBatch


@pytest.fixture(autouse=True)
def components_of_several_nodes(monkeypatch):
    """Small graphs, too, are dismantled into components of a few nodes."""
    monkeypatch.setattr(Dismantling.__init__, "__defaults__", (0.1,))


GRAPHS = {
    "random": random_graph(37, 0.15, 1),
    "hubs": growing_graph(43, 3, 2),
    "isolated nodes": listed(40, *[(2 * i, 2 * i + 3) for i in range(12)]),
    "fewer nodes than ranks": listed(3, (0, 1), (1, 2)),
    "no edge": listed(9),
    "complete": random_graph(17, 1.1, 4),
}

# ---- states by their definition, dense: chosen [n] bool -> codes [n], totals -----------------------------


def near(A, chosen):
    """Nodes next to a chosen one."""
    return (A @ chosen) > 0


def mvc_state(A, chosen):
    live = ~chosen
    degree = (A @ live).astype(int) * live
    worth = sum(FIXED_POINT // (1 + int(d)) for d in degree if d)
    return np.where(degree > 0, degree + 2, 0), (int((degree > 0).sum()), int(degree.sum()), worth)


def mis_state(A, chosen):
    live = ~chosen & ~near(A, chosen)
    degree = (A @ live).astype(int) * live
    worth = sum(int(inverse_root(np.array([1 + d]))[0]) for d in degree if d)
    free = int((live & (degree == 0)).sum())
    return np.where(degree > 0, degree + 2, 0), (int((degree > 0).sum()), int(degree.sum()), worth, free)


def mds_state(A, chosen):
    bare = ~chosen & ~near(A, chosen)
    field = (A @ bare).astype(int)
    gain = field + bare
    price = sum(int(inverse_root(np.array([g]))[0]) for g in gain[bare])
    code = np.where(gain > 0, 2 + 2 * field + bare, 0)
    return code, (int((gain > 0).sum()), int(gain.sum()), int(bare.sum()), price)


def two_core(A, chosen):
    """The degrees of the 2-core of what is left, one node after the other, by its definition."""
    live = ~chosen
    while True:
        degree = (A @ live).astype(int) * live
        lone = np.flatnonzero(live & (degree < 2))
        if not len(lone):
            return degree
        live[lone[0]] = False


def fvs_state(A, chosen):
    degree = two_core(A, chosen)
    worth = sum(int(math.sqrt(3 * FIXED_POINT**2 // (1 + int(d)))) for d in degree if d)
    return np.where(degree > 0, degree + 2, 0), (int((degree > 0).sum()), int(degree.sum()), worth)


def large_parts(A, chosen):
    """[n] bool, nodes in components that are too large of what is left."""
    live, large = ~chosen, np.zeros(len(A), dtype=bool)
    for v in np.flatnonzero(live):
        part = np.arange(len(A)) == v
        while (more := live & (near(A, part) | part)).sum() > part.sum():
            part = more
        large[v] = part.sum() > make_problem("dismantle").largest(len(A))
    return large


def dismantle_state(A, chosen):
    large = large_parts(A, chosen)
    degree = (A @ large).astype(int) * large
    worth = sum(int(math.sqrt(2 * FIXED_POINT**2 // (1 + int(d)))) for d in degree if d)
    most = make_problem("dismantle").largest(len(A))
    return np.where(degree > 0, degree + 2, 0), (int(large.sum()), int(degree.sum()), worth, most)


def family_of(A):
    """Which nodes are candidates of a graph that stands for a family [n] bool, and which are demands."""
    count, node = int(A[-1].sum()), np.arange(len(A))
    candidate = (node < count) & (node < len(A) - 1)
    return candidate, ~candidate & (node < len(A) - 1) & near(A, candidate)


def level_of(number):
    """Six leading binary digits."""
    shift = max(int(number).bit_length() - 6, 0)
    return min(32 * shift + (int(number) >> shift), 767)


def set_cover_state(A, chosen):
    candidate, demand = family_of(A)
    left = demand & ~near(A, chosen & candidate)
    gain, each = (A @ left).astype(int) * candidate, (A @ candidate).astype(int)
    code = [
        2 + level_of(256 * d) if u else 770 + level_of(256 * g) if g else 0
        for u, d, g in zip(left, each, gain)
    ]
    mean, pairs = each[demand].sum() / max(demand.sum(), 1), each[demand].sum()
    cost = pairs / max(candidate.sum(), 1)
    price = sum(math.floor(FIXED_POINT * math.sqrt(mean / d) / cost) for d in each[left])
    alive = int(left.sum() + (gain > 0).sum())
    return np.array(code), (
        alive,
        int(256 * each[left].sum()),
        int(left.sum()),
        price,
        int(chosen.sum()) << 20,
    )


def is_family_cover(A, inside):
    candidate, demand = family_of(A)
    return not (inside & ~candidate).any() and bool(near(A, inside)[demand].all())


def is_apart(A, inside):
    return not large_parts(A, inside).any()


def is_cover(A, inside):
    return not A[np.ix_(~inside, ~inside)].any()


def is_independent(A, inside):
    return not A[np.ix_(inside, inside)].any()


def is_dominating(A, inside):
    return bool((inside | near(A, inside)).all())


def breaks_cycles(A, inside):
    return not two_core(A, inside).any()


REFERENCES = {
    "mvc": (mvc_state, is_cover), "mis": (mis_state, is_independent), "mds": (mds_state, is_dominating),
    "fvs": (fvs_state, breaks_cycles), "dismantle": (dismantle_state, is_apart),
    "set_cover": (set_cover_state, is_family_cover),
}  # fmt: skip


PROBLEMS = {name: ALL[name] for name in REFERENCES}


def test_every_problem_of_chosen_sets_has_a_reference():
    assert set(REFERENCES) == {
        name
        for name, problem in ALL.items()
        if problem.dynamics in ("residual", "field", "family", "core", "parts")
        and not (problem.complemented or name == HITTING)
    }
    with pytest.raises(CaseError, match="unknown problem 'tour'; known: mvc"):
        make_problem("tour")


# ---- environments and replay ------------------------------------------------------------------------------


def choose_some(draws, candidates, several, A, problem):
    """Up to `several` candidates in random order, no two adjacent where the problem forbids that."""
    taken = []
    for v in draws.permutation(candidates).tolist():
        if len(taken) < several and (problem.adjacent or not A[v, taken].any()):
            taken.append(v)
    return np.array(taken)


@pytest.mark.parametrize("device", ["host"], indirect=True)  # an environment lives on the host
@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("several", [1, 4])
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("name", REFERENCES)
def test_environments_are_their_definition(group, name, graph, several, exchange):
    state, feasible = REFERENCES[name]
    problem, (A, _), n = make_problem(name), dense(graph), graph[0]
    env = begin_environment(group, make_block(group, graph, exchange), problem)
    chosen, draws, first = np.zeros(n, dtype=bool), np.random.default_rng(7), env.totals
    unshaped = shaped = 0.0
    while True:
        codes, totals = state(A, chosen)
        assert whole_rows(group, env.block, env.codes_own()).tolist() == codes.tolist()
        assert tuple(env.totals) == totals
        assert all(type(t) is int for t in env.totals)
        assert not env.codes_own()[env.block.n_real :].any()
        candidates = np.flatnonzero(codes >= problem.first_candidate)
        assert env.totals.candidates == len(candidates)
        own = [v for v in candidates.tolist() if env.block.owns(v)]
        assert (env.candidates_own() + env.block.lo).tolist() == own
        assert env.codes_own().max(initial=0) < problem.entries(env.block.max_degree)
        if env.done:
            break
        nodes, before = choose_some(draws, candidates, several, A, problem), env.totals
        step_together(group, [env], [nodes])
        chosen[nodes] = True
        unshaped += problem.reward(before, env.totals, len(nodes), "none")
        shaped += problem.reward(before, env.totals, len(nodes), "caro_wei")
    assert env.chosen == chosen.sum()
    solution = whole_rows(group, env.block, problem.solution_of(env.chosen_at[: env.block.n_real]))
    assert feasible(A, solution)
    objective = problem.objective(env.chosen, env.totals)
    assert objective == solution.sum()
    # Rewards of an episode are what it adds to the objective; shaping adds the change of the potential.
    sign = 1 if problem.sense == "maximise" else -1
    assert sign * unshaped == objective - problem.objective(0, first)
    assert shaped == pytest.approx(
        sign * env.chosen + problem.potential(env.totals) - problem.potential(first), abs=1e-6
    )


@pytest.mark.parametrize("name", REFERENCES)
def test_states_told_again_from_their_choices(group, name):
    """Two lists of choices of several graphs in one batch, against environments that played them."""
    problem, graphs = make_problem(name), [posed(name, GRAPHS["random"]), GRAPHS["hubs"]]
    blocks, draws = make_blocks(group, graphs), np.random.default_rng(3)
    before, after, early, late, members = [], [], [], [], []
    for block, graph, count in zip(blocks, graphs, (3, 2)):
        members.append((block, count))
        A = dense(graph)[0]
        for _ in range(count):
            env, actions = begin_environment(group, block, problem), []
            envs = {0: (env.codes_own(), env.all_codes_own())}
            while not env.done:
                codes = whole_rows(group, block, env.codes_own())
                nodes = choose_some(draws, np.flatnonzero(codes >= problem.first_candidate), 1, A, problem)
                step_together(group, [env], [nodes])
                actions += nodes.tolist()
                envs[len(actions)] = (env.codes_own(), env.all_codes_own())
            t = int(draws.integers(len(actions)))
            end = min(t + int(draws.integers(1, 4)), len(actions))
            before.append(np.array(actions[:t], dtype=np.int64))
            after.append(np.array(actions[:end], dtype=np.int64))
            early.append(envs[t])
            late.append(envs[end])
    batch = StateBatch(group, members)
    for every in (False, True):
        found = DYNAMICS[problem.dynamics].replayed(problem, batch, before, after, every)
        for codes, states in zip(found, (early, late)):
            own = [batch.at[g] for g in batch.member_of_state]
            codes = group.device.get(codes)
            assert codes.dtype == np.int32
            for s, expected in enumerate(states):
                g = batch.member_of_state[s]
                first = own[s] + s - batch.first[g]
                rows = codes[first : batch.at[g + 1] : batch.counts[g]]
                assert rows.tolist() == expected[int(every)].tolist()


@pytest.mark.parametrize("name", [n for n in REFERENCES if not make_problem(n).ordered])
def test_bits_of_states_tell_the_same_codes(group, name):
    problem, blocks = make_problem(name), make_blocks(group, [GRAPHS["hubs"]])
    lists, bits = EpisodeReplay(50, 2, 0.5), BitsReplay(50, 2, 0.5, blocks)
    env, draws = begin_environment(group, blocks[0], problem), np.random.default_rng(2)
    numbers = [replay.begin(0, env.totals) for replay in (lists, bits)]
    while not env.done:
        codes = whole_rows(group, env.block, env.codes_own())
        node = draws.choice(np.flatnonzero(codes >= problem.first_candidate), 1)
        step_together(group, [env], [node])
        for replay, number in zip((lists, bits), numbers):
            replay.remember(number, int(node[0]), 0.0, env.totals, env.done)
    samples = [replay.sample(np.random.default_rng(1), 9) for replay in (lists, bits)]
    batch = StateBatch(group, [(blocks[0], 9)])
    a, b = (DYNAMICS[problem.dynamics].replayed(problem, batch, s.before, s.after, False) for s in samples)
    for mine, other in zip(a, b):
        assert np.array_equal(group.device.get(mine), group.device.get(other))
    assert samples[0].totals_after == samples[1].totals_after
    assert type(samples[0].totals_after[0]) is problem.totals


@pytest.mark.parametrize("name", REFERENCES)
def test_features_are_finite_and_told_apart(device, name):
    problem = make_problem(name)
    code = np.arange(problem.entries(9), dtype=np.float32)[:, None]
    for state in (0.5, 1.0, 30.0):
        column = np.full(
            (len(code), len(problem.state(problem.totals(*[4] * len(problem.totals._fields))))), state
        )
        x = device.get(
            problem.features("scale_free", device.xp, device.put(code), device.put(column.astype(np.float32)))
        )
        assert x.shape == (len(code), problem.feature_counts["scale_free"])
        assert x.dtype == np.float32
        assert np.isfinite(x).all()
        rows = x[problem.first_candidate :]
        assert len(np.unique(rows, axis=0)) == len(rows)


@pytest.mark.parametrize("name", [name for name in ALL if asks_policy(name)])
def test_tables_of_several_states_are_those_of_each(device, name):
    """Codes and states broadcast against each other: the same bits as code by code, state by state."""
    problem = make_problem(name)
    code = np.arange(problem.entries(9), dtype=np.float32)[:, None]
    width = len(problem.state(problem.totals(*[4] * len(problem.totals._fields))))
    states = np.random.default_rng(3).uniform(0.1, 9, (5, width)).astype(np.float32)
    if name == "maxcut":
        states[2, 1:] = 0  # the best state, and no node gains
    for kind in problem.feature_counts:
        given = device.put(code), device.put(states[:1, None] if kind == "paper" else states[:, None])
        together = device.get(problem.features(kind, device.xp, *given))
        for table, state in zip(together.reshape(-1, len(code), together.shape[-1]), states):
            rows = device.put(np.repeat(state[None], len(code), axis=0))
            apart = device.get(problem.features(kind, device.xp, given[0], rows))
            assert table.tobytes() == apart.tobytes()


# ---- inference --------------------------------------------------------------------------------------------

POLICIES = {
    "default": {},
    "three rounds": {"layers": 3},
    "no self weight": {"self_weight": False, "layers": 3},
    "hubs": {"hub_degree": 1.25},
}


def network(name, device, seed=3, **policy):
    net = QNetwork(PolicyCase(**policy), make_problem(name))
    return net, net.new_parameters(device, seed)


@pytest.mark.parametrize(("name", "policy", "kind"), crossed(REFERENCES, POLICIES, ["compiled", "plain"]))
def test_scores_that_follow_have_the_bits_of_full_ones(name, policy, kind):
    if kind == "compiled" and HostDevice().native is None:
        pytest.skip("the compiled kernels were not built")
    group = Group(WORLD, HostDevice(compiled=kind == "compiled"))
    net, params = network(name, group.device, **POLICIES[policy])
    large, small = (60, 40) if kind == "compiled" else (24, 20)
    for graph in (posed(name, growing_graph(large, 3, 1)), random_graph(small, 0.1, 2)):
        for exchange, rule in zip(("gather", "halo"), ("single", "fraction")):
            block = make_block(group, graph, exchange)
            env = begin_environment(group, block, net.problem)
            assert can_follow(group, net, env)
            live, full = LiveScores(group, net, params, env), FullScores(group, net, params, env)
            while not env.done:
                np.testing.assert_array_equal(live.keys_own(), full.keys_own())
                live.remove(RULES[rule](group, group.device, live.keys_own(), env, Share(block.n, 0.1)))


@pytest.mark.parametrize("name", REFERENCES)
def test_scores_that_follow_on_a_device(name, emulated):
    group = Group(WORLD, emulated)
    net, params = network(name, emulated)
    env = begin_environment(group, make_block(group, posed(name, growing_graph(40, 3, 1))), net.problem)
    live, full = LiveScores(group, net, params, env), FullScores(group, net, params, env)
    while not env.done:
        np.testing.assert_array_equal(*(emulated.get(each.keys_own()) for each in (live, full)))
        for _ in range(3):
            if not env.done:
                live.remove(np.array([live.best()]))


def moving(problem, monkeypatch):
    """The problem, its state going to and fro between two values, and to others, at nearly every step."""
    inner = problem.state

    def state(totals):
        moved = 4.5 if totals.candidates % 11 == 0 else 4.0 + totals.candidates % 2 / 4
        rest = (
            (0.25, 4.0) if problem.name in ("dismantle", "set_cover") else inner(totals)[1:]
        )  # how many are left falls only
        return (moved, *rest)

    monkeypatch.setattr(problem, "state", state)
    return problem


@pytest.mark.parametrize(
    ("name", "kind", "several"), crossed([*REFERENCES, "maxcut_once"], ["compiled", "plain", "gpu"], [1, 2])
)
def test_a_state_that_comes_back(name, kind, several, monkeypatch, request):
    device = request.getfixturevalue("emulated") if kind == "gpu" else HostDevice(compiled=kind == "compiled")
    group = Group(WORLD, device)
    net, params = network(name, device, layers=3)
    moving(net.problem, monkeypatch)
    came_back = []
    catch_up = LiveScores._catch_up
    monkeypatch.setattr(LiveScores, "_catch_up", lambda self: came_back.append(1) or catch_up(self))
    for graph in (growing_graph(60, 2, 1), growing_graph(70, 3, 2)):
        env = begin_environment(group, make_block(group, posed(name, graph), "halo"), net.problem)
        live, full = LiveScores(group, net, params, env), FullScores(group, net, params, env)
        while not env.done:
            np.testing.assert_array_equal(*(device.get(each.keys_own()) for each in (live, full)))
            live.remove(top_nodes(group, device, live.keys_own(), min(several, env.totals.candidates)))
    assert came_back


@pytest.mark.parametrize("name", [*REFERENCES, "maxcut_once"])
@pytest.mark.mpi_skip
def test_runs_of_selections(name):
    """As many at once as there are: the totals, the choices and the keys are those of steps one by one."""
    group = Group(MPI.COMM_SELF, HostDevice())
    net, params = network(name, group.device)
    n, edges, weights = posed(name, growing_graph(900 if name != "set_cover" else 300, 2, 6))
    more = 30 if name != "set_cover" else 0  # nodes without edges
    block = make_block(group, (n + more, edges, weights))
    one, many = (begin_environment(group, block, net.problem) for _ in range(2))
    scores = LiveScores(group, net, params, many)
    steps = FullScores(group, net, params, one)
    while not many.done:
        scores.run(150, 0)
        while one.steps < many.steps:
            steps.remove(np.array([steps.best()]))
        assert one.totals == many.totals
        assert one.chosen == many.chosen
        np.testing.assert_array_equal(one.chosen_at, many.chosen_at)
        np.testing.assert_array_equal(one.codes_own(), many.codes_own())
        np.testing.assert_array_equal(steps.keys_own(), scores.keys_own())
    assert one.done
    assert scores.compiled == (name != "maxcut_once" and group.device.native is not None)


def solve_and_check(group, graph, name, rule, exchange="auto", full=False, policy=None):
    """A rollout as bytes of every node's transition; checks the solution and what is taken out of it."""
    net, params = network(name, group.device, **(policy or {}))
    block = make_block(group, graph, exchange)
    cover = roll_out(group, net, params, block, rule, 0.1, full=full)
    inside = whole_rows(group, block, cover.solution_own)
    A, feasible = dense(graph)[0], REFERENCES[name][1]
    assert feasible(A, inside)
    assert cover.objective == cover.before_dropping == inside.sum()
    pruned = drop_redundant(group, cover)
    kept = whole_rows(group, block, pruned.solution_own)
    assert feasible(A, kept)
    assert pruned.objective == kept.sum() <= cover.objective
    for v in np.flatnonzero(kept) if net.problem.redundancy else ():
        without = kept.copy()
        without[v] = False
        assert not feasible(A, without)
    return whole_rows(group, block, cover.chosen_at_own).tobytes() + kept.tobytes()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("name", REFERENCES)
def test_solutions_do_not_depend_on_ranks_or_exchange(group, single, name, graph, rule):
    found = [by_one(lambda: solve_and_check(single, graph, name, rule))]
    found += [solve_and_check(group, graph, name, rule, each) for each in EXCHANGES]
    found.append(solve_and_check(group, graph, name, rule, full=True))
    assert len(set(found)) == 1


@pytest.mark.parametrize("rule", ["single", "fraction"])
@pytest.mark.parametrize("name", REFERENCES)
def test_compaction_changes_nothing(group, monkeypatch, name, rule):
    graph = posed(name, growing_graph(150, 3, 4))
    monkeypatch.setattr(compact, "SMALLEST", 1 << 30)
    whole = solve_and_check(group, graph, name, rule)
    made = []
    monkeypatch.setattr(compact, "SMALLEST", 8)
    monkeypatch.setattr(
        rollout.compact, "compact", lambda *args, do=compact.compact: made.append(1) or do(*args)
    )
    assert solve_and_check(group, graph, name, rule) == whole
    assert len(made) > 1


def rings_after(asked):
    """Whether a rollout is to stop: no so many times, then yes."""
    answers = itertools.count()
    return lambda: next(answers) >= asked


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("name", REFERENCES)
def test_a_plain_greedy_decides_what_a_limit_leaves(group, single, name, graph, monkeypatch):
    """After as many choices of the policy the same rest, on any ranks, whether clock or count ended them."""
    monkeypatch.setattr(compact, "SMALLEST", 8)
    A, feasible, found = dense(graph)[0], REFERENCES[name][1], []
    for ranks, exchange, limit in [
        (single, "auto", {"most": 3}), (single, "auto", {"stop": rings_after(3)}),
        (group, "halo", {"most": 3}), (group, "gather", {"stop": rings_after(3)}),
    ]:  # fmt: skip
        net, params = network(name, ranks.device)
        block = make_block(ranks, graph, exchange)
        cover = roll_out(
            ranks, net, params, block, "adaptive", 0.1, Terms(ending=Ending(finish=True, **limit))
        )
        inside = whole_rows(ranks, block, cover.solution_own)
        chosen_at = whole_rows(ranks, block, cover.chosen_at_own)
        assert feasible(A, inside) and cover.objective == inside.sum()
        assert cover.evaluations <= 3 and cover.rest == (chosen_at >= cover.evaluations).sum()
        found.append((cover.evaluations, cover.rest, chosen_at.tolist()))
    assert found[1:] == found[:-1]


@pytest.mark.parametrize("policy", [{}, {"head": "mixing", "edge_weights": True}], ids=["default", "mixing"])
@pytest.mark.parametrize("name", REFERENCES)
def test_side_by_side_equals_one_by_one(group, single, name, policy):
    graphs, answers = [GRAPHS[g] for g in ("random", "isolated nodes", "no edge", "hubs")], []
    for ranks in (group, single):
        net, params = network(name, ranks.device, **policy)
        blocks = make_blocks(ranks, graphs)
        envs = rolled_out_one_at_a_time(ranks, net, params, blocks)
        answers.append([whole_rows(ranks, b, e.chosen_at).tolist() for b, e in zip(blocks, envs)])
        assert codes_of(envs).shape == (sum(b.n_own for b in blocks),)
        for block, env in zip(blocks, envs):
            cover = roll_out(ranks, net, params, block, "single", 0.1)
            assert cover.objective == net.problem.objective(env.chosen, env.totals)
    assert answers[0] == answers[1]


# ---- taking out what is not needed ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_dominating_nodes_are_dropped_latest_first(group, seed):
    graph = [growing_graph(60, 3, 3), random_graph(41, 0.1, 4), listed(30, (0, 29)), random_graph(9, 0.5, 6)][
        seed
    ]
    n, A = graph[0], dense(graph)[0]
    chosen_at = np.random.default_rng(seed).integers(0, 6, n).astype(np.int32)
    block = make_block(group, graph)
    chosen_at_own = np.full(block.n_own, -1, dtype=np.int32)
    chosen_at_own[: block.n_real] = chosen_at[block.lo : block.lo + block.n_real]
    cover = drop_redundant(group, finished_rollout(group, make_problem("mds"), block, chosen_at_own, 6))
    inside = np.ones(n, dtype=bool)
    for v in sorted(range(n), key=lambda v: (-chosen_at[v], v)):
        inside[v] = False
        inside[v] = not is_dominating(A, inside)
    assert whole_rows(group, block, cover.solution_own).tolist() == inside.tolist()


# ---- learning ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keys", [{}, {"n_step": 2, "double": True, "replay": "bits"}], ids=["default", "n-step"]
)
@pytest.mark.parametrize("name", REFERENCES)
def test_the_ranks_train_what_one_process_trains(group, single, name, keys):
    graphs = [posed(name, growing_graph(33, 3, 1)), random_graph(40, 0.1, 3), listed(20, (3, 19))]
    case = Case(
        seed=4,
        agent=AgentCase(warmup=4, batch=8, target_every=5, epsilon_decay_steps=20, **keys),
        train=TrainCase(steps=14, evaluate_every=7, environments=2),
    )

    def trained(ranks):
        result = train_policy(
            ranks, case, make_problem(name), make_blocks(ranks, graphs), make_blocks(ranks, [GRAPHS["hubs"]])
        )
        totals = [row["held_back_nodes"] for row in result.records]
        assert result.best_total == (max if make_problem(name).sense == "maximise" else min)(totals)
        return digest(result.weights), repr(result.records), result.best_total

    assert trained(group) == by_one(lambda: trained(single))


def test_what_a_problem_does_not_have_is_refused(solo):
    problem = make_problem("mds")
    with pytest.raises(CaseError, match=r"policy\.features: problem 'mds' has scale_free, not 'paper'"):
        QNetwork(PolicyCase(features="paper"), problem)
    with pytest.raises(CaseError, match=r"train\.environment"):
        begin_environment(solo, make_block(solo, GRAPHS["hubs"]), problem, scan=True)
    problem.ordered = True
    with pytest.raises(CaseError, match=r"agent\.replay"):
        Agent(solo, AgentCase(replay="bits"), QNetwork(PolicyCase(), problem), [], 0, 0)


@pytest.mark.mpi_skip
@pytest.mark.parametrize("name", ["mis", "mds"])
def test_four_hundred_steps_are_better_than_none(name):
    group = Group(MPI.COMM_SELF, HostDevice())
    graphs, held = ([growing_graph(40 + 3 * i, 4, s + i) for i in range(10)] for s in (100, 200))
    case = Case(
        seed=1, agent=AgentCase(epsilon_decay_steps=200, target_every=50),
        train=TrainCase(steps=400, evaluate_every=100),
    )  # fmt: skip
    problem = make_problem(name)
    result = train_policy(group, case, problem, make_blocks(group, graphs), make_blocks(group, held))
    assert better(problem, result.best_total, result.records[0]["held_back_nodes"])
    greedy = next(iter(problem.baselines.values()))
    total = sum(int(greedy(from_edges(n, *edges.T))[0].sum()) for n, edges, _ in held)
    assert abs(result.best_total - total) < 0.1 * total


@pytest.mark.mpi_skip
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_weights_that_ship_beat_the_first_baseline(name, monkeypatch):
    """On unseen graphs of preferential attachment and random ones, one node at a time, nothing taken out."""
    monkeypatch.setattr(Dismantling.__init__, "__defaults__", (0.05,))  # 8 nodes at most: none plays on
    group, problem = Group(MPI.COMM_SELF, HostDevice()), make_problem(name)
    saved = load_weights(default_weights(name))
    assert saved.problem == name
    net = QNetwork(saved.policy, problem)
    params = Parameters(group.device, net.shapes())
    params.set(saved.arrays)
    greedy = next(iter(problem.baselines.values()))
    for graphs in (
        [posed(name, growing_graph(50 + 3 * i, 4, 300 + i)) for i in range(40)],
        [posed(name, random_graph(50 + 3 * i, 0.15, 300 + i)) for i in range(40)],
    ):
        envs = rolled_out_one_at_a_time(group, net, params, make_blocks(group, graphs))
        learned = sum(problem.objective(env.chosen, env.totals) for env in envs)
        plain = sum(int(greedy(from_edges(n, *edges.T))[0].sum()) for n, edges, _ in graphs)
        assert better(problem, learned, plain)


# ---- whole graphs -----------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
@pytest.mark.parametrize("name", [name for name in REFERENCES if name != "set_cover"])  # test_set_cover.py
def test_checks_baselines_and_bounds_against_all_subsets(name):
    problem, feasible = make_problem(name), REFERENCES[name][1]
    draws = np.random.default_rng(8)
    for _ in range(60):
        n = int(draws.integers(1, 9))
        n, edges, _ = graph = random_graph(n, float(draws.uniform(0, 0.8)), int(draws.integers(1 << 30)))
        A, whole = dense(graph)[0], from_edges(n, *edges.T)
        sizes = []
        for bits in itertools.product((False, True), repeat=n):
            inside = np.array(bits)
            valid = feasible(A, inside)
            assert (problem.violation(whole, inside) is None) == valid
            if valid:
                sizes.append(int(inside.sum()))
        best = max(sizes) if problem.sense == "maximise" else min(sizes)
        for baseline in problem.baselines.values():
            solution, label = baseline(whole)
            assert problem.value(whole, solution) == solution.sum()
            assert label
            assert feasible(A, solution)
            assert not better(problem, int(solution.sum()), best)
        for bound in problem.bounds.values():
            certificate = bound(whole)
            certificate.check(whole)
            assert not better(problem, best, problem.bound(n, certificate.lower))


@pytest.mark.mpi_skip
def test_a_greedy_step_takes_the_most_gain():
    """Of equal gains the lowest node; pruning takes out what later choices have made superfluous."""
    most_gain, pruned = make_problem("mds").baselines.values()
    path = from_edges(5, np.arange(4), np.arange(1, 5))
    assert np.flatnonzero(most_gain(path)[0]).tolist() == [1, 3]
    # The centre of three legs of two edges dominates most at first; then each leg needs a node of its own.
    spider = from_edges(7, np.array([0, 0, 0, 1, 2, 3]), np.array([1, 2, 3, 4, 5, 6]))
    assert np.flatnonzero(most_gain(spider)[0]).tolist() == [0, 1, 2, 3]
    assert np.flatnonzero(pruned(spider)[0]).tolist() == [1, 2, 3]


@pytest.mark.mpi_skip
def test_checks_of_some_rows_name_the_first_fault():
    n, edges, _ = GRAPHS["random"]
    whole = from_edges(n, *edges.T)
    chosen = np.zeros(n, dtype=bool)
    assert undominated_node(whole, chosen) == 0
    assert edge_inside(whole, chosen) is None
    chosen[:] = True
    assert undominated_node(whole, chosen) is None
    u, v = edge_inside(whole, chosen)
    assert v in whole.indices[whole.indptr[u] : whole.indptr[u + 1]]
    for refused in (edge_inside, undominated_node):
        with pytest.raises(ValueError, match="chosen_all: needs"):
            refused(whole, chosen[1:])
        with pytest.raises(ValueError, match="chosen_all: needs"):
            refused(whole, chosen.astype(int))


@pytest.mark.mpi_skip
def test_inverse_roots_are_close_and_repeatable():
    numbers = np.array([0, 1, 2, 3, 4, 10, 16, 1000, 10**6, 2**31 - 1])
    found = inverse_root(numbers)
    assert found.dtype == np.int64
    assert found[[0, 1, 4, 6]].tolist() == [0, 1 << 30, 1 << 29, 1 << 28]
    exact = [0, *(math.isqrt((1 << 60) // int(x)) for x in numbers[1:])]
    assert np.abs(found - exact).max() <= 1
