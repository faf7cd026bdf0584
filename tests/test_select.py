"""app/rl/select.py: keys in the order of scores, ties, NaN, the rules, and what leaves the device."""

import numpy as np
import pytest
import standin
from helpers import growing_graph, listed, make_block, make_blocks, own_states, random_graph, whole_rows
from hypothesis import example, given
from hypothesis import strategies as st
from standin_device import StandInDevice

from app.case.policy import PolicyCase
from app.comm.group import Group
from app.errors import CaseError, NumericsError
from app.gnn.parameters import Parameters
from app.problems.mvc import MinimumVertexCover
from app.rl.env import GraphEnv, step_together
from app.rl.qnet import QNetwork
from app.rl.rollout import roll_out, rolled_out_one_at_a_time
from app.rl.rules import RULES, find_rule
from app.rl.select import (
    Places,
    Share,
    _first_come,
    best_nodes,
    best_values,
    independent,
    make_keys,
    nodes_of,
    order_bits,
    random_candidates,
    top_nodes,
)
from app.sparse import host_rows
from app.sparse.batch import StateBatch

FLOATS = st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=30)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, 1e-45, -1e-45, 3.4e38, -3.4e38, 1.0, np.nextafter(np.float32(1), 2)]


# ---- keys ---------------------------------------------------------------------------------------------


@given(FLOATS)
@example(SPECIAL)
def test_order_bits_are_monotone(device, values):
    scores = np.array(values, dtype=np.float32)
    bits = device.get(order_bits(device.xp, device.put(scores)))
    assert bits.dtype == np.uint64
    assert bits.max() < 1 << 32
    assert np.array_equal(bits[:, None] < bits, scores[:, None] < scores)
    assert np.array_equal(bits[:, None] == bits, scores[:, None] == scores)  # -0.0 equals 0.0


def test_order_bits_of_nan_are_above_infinity(device):
    scores = np.array([np.inf, np.nan, -np.nan], dtype=np.float32)
    bits = device.get(order_bits(device.xp, device.put(scores))).tolist()
    assert bits[0] < bits[1] == bits[2] == 0xFFFFFFFF


@given(FLOATS)
@example(SPECIAL)
def test_keys_sort_by_score_then_by_lowest_node(device, values):
    scores = np.array(values, dtype=np.float32)
    nodes = np.random.default_rng(len(values)).choice(
        [*range(50), 2**31, 2**32 - 2], len(values), replace=False
    )
    keys = device.get(make_keys(device.xp, device.put(scores), device.put(nodes)))
    expected = sorted(range(len(values)), key=lambda i: (-scores[i], nodes[i]))
    assert np.argsort(keys, kind="stable")[::-1].tolist() == expected
    assert np.array_equal(nodes_of(keys), nodes)
    assert (keys > 0).all()


# ---- the best of every state --------------------------------------------------------------------------

MEMBERS = [(random_graph(37, 0.3, 1), 2), (listed(5, (0, 1)), 1), (random_graph(9, 0.3, 2), 3)]
SIZES = [graph[0] for graph, count in MEMBERS for _ in range(count)]


def make_batch(group):
    blocks = make_blocks(group, [graph for graph, _ in MEMBERS])
    return StateBatch(group, [(block, count) for block, (_, count) in zip(blocks, MEMBERS)])


def columns(group, batch, states):
    """[rows] on the device from one array per state."""
    return own_states(group, batch, [s.astype(np.float32)[:, None] for s in states])[:, 0]


@pytest.mark.parametrize("distinct", [True, False])
def test_best_nodes_and_values_of_a_batch(group, distinct):
    """Against a loop; with few distinct scores most maxima are ties, which go to the lowest node."""
    draws = np.random.default_rng(3)
    batch = make_batch(group)
    for _ in range(5):
        scores = [draws.permutation(n) - 5.0 if distinct else draws.integers(-2, 2, n) for n in SIZES]
        candidates = [draws.random(n) < 0.5 for n in SIZES]
        for candidate in candidates:
            candidate[draws.integers(len(candidate))] = True
        mask = columns(group, batch, candidates) > 0
        best = [max(np.flatnonzero(c), key=lambda v, s=s: (s[v], -v)) for s, c in zip(scores, candidates)]
        scores_own = columns(group, batch, scores)
        assert best_nodes(group, batch, scores_own, mask).tolist() == best
        values = best_values(group, batch, scores_own, mask)
        assert values.dtype == np.float32
        assert values.tolist() == [s[v] for s, v in zip(scores, best)]


def test_value_of_a_state_without_candidates_is_zero(group):
    batch = make_batch(group)
    candidates = [np.arange(n) == n - 1 for n in SIZES]
    candidates[2][:] = candidates[5][:] = False
    scores = columns(group, batch, [np.full(n, -7.0) for n in SIZES])
    values = best_values(group, batch, scores, columns(group, batch, candidates) > 0)
    assert values.tolist() == [-7, -7, 0, -7, -7, 0]


@pytest.mark.parametrize("score", [-np.inf, -3.3e38, np.inf])
def test_diverged_scores_still_choose_a_candidate(group, score):
    """Weights grown without bound must not make a rollout choose a node that is none, for ever."""
    batch = make_batch(group)
    scores = columns(group, batch, [np.full(n, score) for n in SIZES])
    candidates = columns(group, batch, [np.arange(n) >= n - 2 for n in SIZES]) > 0
    assert best_nodes(group, batch, scores, candidates).tolist() == [n - 2 for n in SIZES]


@pytest.mark.parametrize("at", [0, 36])
def test_nan_on_any_rank_is_refused_on_all(group, at):
    batch = make_batch(group)
    states = [np.zeros(n) for n in SIZES]
    states[0][at] = np.nan
    scores, everything = columns(group, batch, states), columns(group, batch, [np.ones(n) for n in SIZES]) > 0
    for refused in (best_nodes, best_values):
        with pytest.raises(NumericsError, match="NaN"):
            refused(group, batch, scores, everything)
    # A NaN of a node that is no candidate does not matter.
    others = columns(group, batch, [np.arange(n) != at for n in SIZES]) > 0
    assert best_nodes(group, batch, scores, others)[0] == (1 if at == 0 else 0)


@pytest.mark.parametrize("at", [0, 36])
@pytest.mark.parametrize("wanted", [1, 3, 100])
def test_top_nodes_refuses_nan_on_all_ranks(group, at, wanted):
    graph = random_graph(37, 1.1, 1)
    env = GraphEnv(group, make_block(group, graph), MinimumVertexCover())
    scores = np.arange(37, dtype=np.float32)
    scores[at] = np.nan
    with pytest.raises(NumericsError, match="NaN"):
        top_nodes(group, group.device, keys_of(group, env, scores), wanted)


# ---- the best of one state ----------------------------------------------------------------------------


def keys_of(group, env, scores):
    """The keys of the padded own rows of a whole score vector, on the device."""
    device, block = group.device, env.block
    own = np.zeros(block.n_own, dtype=np.float32)
    own[: block.n_real] = scores[block.lo : block.lo + block.n_real]
    nodes = device.put(block.lo + np.arange(block.n_own))
    candidate = device.put(env.degree_own) > 0
    return device.xp.where(candidate, make_keys(device.xp, device.put(own), nodes), 0)


@pytest.mark.parametrize("graph", [random_graph(70, 0.05, 4), listed(9, (7, 8)), listed(30, (0, 1), (1, 29))])
def test_top_nodes_are_a_sort(group, graph):
    env = GraphEnv(group, make_block(group, graph), MinimumVertexCover())
    candidates = np.flatnonzero(whole_rows(group, env.block, env.degree_own)).tolist()
    for seed, few in enumerate([False, True]):
        draws = np.random.default_rng(seed)
        scores = (draws.integers(-2, 2, graph[0]) if few else draws.normal(size=graph[0])).astype(np.float32)
        ranked = sorted(candidates, key=lambda v, s=scores: (-s[v], v))
        for wanted in (1, 2, 7, 8, len(candidates), 500):
            found = top_nodes(group, group.device, keys_of(group, env, scores), wanted)
            assert found.tolist() == ranked[:wanted]


@pytest.mark.parametrize("piece", [host_rows.PIECE, 5])
@pytest.mark.parametrize("seed", range(4))
def test_independent_is_the_sequential_greedy(group, monkeypatch, seed, piece):
    """Rows are looked at in pieces, of at least one."""
    monkeypatch.setattr(host_rows, "PIECE", piece)
    n, edges, _ = graph = [
        random_graph(60, 0.1, 1),
        growing_graph(60, 2, 2),
        listed(60),
        random_graph(21, 0.8, 3),
    ][seed]
    near = {v: set() for v in range(n)}
    for u, v in edges.tolist():
        near[u].add(v)
        near[v].add(u)
    block = make_block(group, graph)
    draws = np.random.default_rng(seed)
    for length in (0, 1, 2, n // 2, n):
        ordered = draws.permutation(n)[:length]
        taken = []
        for v in ordered.tolist():
            if not near[v] & set(taken):
                taken.append(v)
        assert independent(group, block, ordered).tolist() == taken


@pytest.mark.mpi_skip
@pytest.mark.parametrize("step", [1, 7, 1 << 12, 1 << 33])
def test_nodes_are_found_among_others(step):
    """Also where the last bits of many are the same."""
    draws = np.random.default_rng(step)
    numbers = np.unique(draws.integers(0, 500, 200)) * step
    near = draws.integers(0, 500, 3000) * step + draws.integers(0, 2, 3000)
    places, at = Places(numbers).find(near)
    assert sorted(places.tolist()) == np.flatnonzero(np.isin(near, numbers)).tolist()
    assert np.array_equal(numbers[at], near[places]) and len(places) > 300


@pytest.mark.mpi_skip
def test_first_come_is_alike_compiled_and_plain():
    draws = np.random.default_rng(1)
    for count in (1, 2, 30, 400):
        ends = np.sort(draws.integers(0, count, (2 * count, 2)), axis=1)
        edges = ends[ends[:, 0] < ends[:, 1]]
        taken = _first_come(count, edges)
        assert np.array_equal(taken, _first_come(count, edges, compiled=False))
        assert taken[0] and not taken[edges].all(axis=1).any()


# ---- rules --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [64, 61])
def test_adaptive_takes_8_4_2_1(group, n):
    """RL4GO section 5.2: |C| > N/2: 8, > N/4: 4, > N/8: 2, else 1; |C| counts candidates."""
    for left in sorted({2, n - 1, n, *(n // part + step for part in (2, 4, 8) for step in (-1, 0, 1))}):
        env = GraphEnv(
            group, make_block(group, listed(n, *[(v, v + 1) for v in range(left - 1)])), MinimumVertexCover()
        )
        assert env.totals.alive == left
        keys = keys_of(group, env, -np.arange(n, dtype=np.float32))
        found = RULES["adaptive"](group, group.device, keys, env, Share(n, 0.5))
        wanted = 8 if left > n / 2 else 4 if left > n / 4 else 2 if left > n / 8 else 1
        assert found.tolist() == list(range(wanted))
        if left in (9, n):  # N of the start of the episode counts, not the rows of a compacted graph
            found = RULES["adaptive"](group, group.device, keys, env, Share(16 * n, 0.5))
            assert found.tolist() == [0]


def test_adaptive_takes_no_more_than_there_are(group):
    env = GraphEnv(group, make_block(group, listed(3, (0, 1), (1, 2))), MinimumVertexCover())
    keys = keys_of(group, env, np.arange(3, dtype=np.float32))
    assert RULES["adaptive"](group, group.device, keys, env, Share(3, 0.5)).tolist() == [2, 1, 0]


def test_single_takes_the_best(group):
    env = GraphEnv(group, make_block(group, listed(30, (3, 29), (4, 5))), MinimumVertexCover())
    keys = keys_of(group, env, np.arange(30, dtype=np.float32) % 29)
    assert RULES["single"](group, group.device, keys, env, Share(30, 0.5)).tolist() == [5]


def test_fraction_skips_neighbours_of_better_nodes(group):
    path = listed(40, *[(v, v + 1) for v in range(39)])
    env = GraphEnv(group, make_block(group, path), MinimumVertexCover())
    keys = keys_of(group, env, np.arange(40, dtype=np.float32))
    for fraction, best in [(0.25, [39, 37, 35, 33, 31]), (0.001, [39]), (1.0, list(range(39, 0, -2)))]:
        found = RULES["fraction"](group, group.device, keys, env, Share(40, fraction))
        assert found.tolist() == best


def test_an_unknown_rule_is_named():
    assert set(RULES) == {"single", "adaptive", "fraction"}
    with pytest.raises(CaseError, match=r"unknown rule 'best'; known: single, adaptive, fraction"):
        find_rule("best")


# ---- random candidates --------------------------------------------------------------------------------


def test_every_candidate_is_one_pick(group):
    """Picks are uniform over 0..|C|-1: one pick for each candidate makes the choice uniform."""
    graphs = [random_graph(61, 0.04, 1), listed(5, (0, 4), (1, 2)), growing_graph(33, 2, 2)]
    envs = [GraphEnv(group, block, MinimumVertexCover()) for block in make_blocks(group, graphs)]
    step_together(group, envs, [np.array([3]), np.array([2]), np.array([0, 1])])
    candidates = [np.flatnonzero(whole_rows(group, e.block, e.degree_own)).tolist() for e in envs]
    assert 0 < len(candidates[0]) < 61
    for pick in range(max(map(len, candidates))):
        picks = [pick % len(c) for c in candidates]
        found = random_candidates(group, envs, picks)
        assert found.tolist() == [c[p] for c, p in zip(candidates, picks)]


# ---- what leaves the device ---------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["scale_free", "paper"])
@pytest.mark.parametrize("exchange", ["halo", "gather"])
def test_one_small_array_leaves_the_device_per_decision(policy, exchange):
    """MPI is handed device memory, as a library with CUDA support would be; then only the winners cross."""
    from mpi4py import MPI

    group = Group(MPI.COMM_WORLD, StandInDevice(direct=True))
    net = QNetwork(PolicyCase(features=policy), MinimumVertexCover())
    params = net.new_parameters(group.device, 1)
    blocks = make_blocks(group, [growing_graph(n, 3, n) for n in (60, 41)], exchange)
    standin.crossings.reset()
    envs = rolled_out_one_at_a_time(group, net, params, blocks)
    decisions = max(env.steps for env in envs)
    assert decisions > 10
    assert standin.crossings.count == decisions
    assert standin.crossings.waits == 0

    for rule in RULES:
        standin.crossings.reset()
        cover = roll_out(group, net, params, blocks[0], rule, 0.05)
        assert standin.crossings.count == cover.evaluations
        assert standin.crossings.waits == 0


def test_weights_that_make_nan_end_a_rollout_on_all_ranks(group):
    net = QNetwork(PolicyCase(), MinimumVertexCover())
    params = Parameters(group.device, net.shapes())
    params.set({name: np.full(shape, 3e38, dtype=np.float32) for name, shape in net.shapes().items()})
    blocks = make_blocks(group, [growing_graph(60, 3, 1)])
    params["head.theta7b"][:8] = -3e38  # infinity minus infinity
    with np.errstate(all="ignore"), pytest.raises(NumericsError, match="NaN"):
        rolled_out_one_at_a_time(group, net, params, blocks)
    with np.errstate(all="ignore"), pytest.raises(NumericsError, match="NaN"):
        roll_out(group, net, params, blocks[0], "adaptive", 0.1)
