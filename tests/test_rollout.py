"""Rollouts and compaction: covers are feasible, minimal once pruned, and the same on any ranks."""

from unittest import mock

import numpy as np
import pytest
from helpers import (
    EXCHANGES,
    by_one,
    growing_graph,
    listed,
    make_block,
    make_blocks,
    random_graph,
    whole_rows,
)

from app.case.policy import PolicyCase
from app.problems.mvc import MinimumVertexCover
from app.recipes import PAPER_POLICY
from app.rl import compact, rollout
from app.rl.qnet import QNetwork
from app.rl.rollout import (
    Terms,
    count_chosen,
    drop_redundant,
    finished_rollout,
    roll_out,
    rolled_out_one_at_a_time,
)
from app.rl.rules import RULES

POLICIES = {
    "default": PolicyCase(),
    "paper": PAPER_POLICY,
    "mixing": PolicyCase(head="mixing", edge_weights=True),
}
GRAPHS = {
    "hubs": growing_graph(41, 3, 1),
    "weighted": random_graph(34, 0.12, 2, weighted=True),
    "isolated nodes": listed(45, (0, 44), (1, 44), (20, 21), (30, 31), (31, 32)),
    "fewer nodes than ranks": listed(3, (0, 1), (1, 2)),
    "no edge": listed(12),
}


def network(group, policy):
    net = QNetwork(POLICIES[policy], MinimumVertexCover())
    return net, net.new_parameters(group.device, 5)


def cover_and_check(group, graph, policy, rule, exchange="auto", full=False):
    """A rollout as bytes of every node's transition; checks the cover against the edges."""
    net, params = network(group, policy)
    block = make_block(group, graph, exchange)
    seen = []
    cover = roll_out(
        group, net, params, block, rule, 0.05, Terms(progress=lambda count, env: seen.append(count)), full
    )
    chosen_at = whole_rows(group, block, cover.chosen_at_own)
    inside = whole_rows(group, block, cover.solution_own)
    n, edges, _ = graph
    assert (inside[edges[:, 0]] | inside[edges[:, 1]]).all()
    assert np.array_equal(inside, chosen_at >= 0)
    assert cover.objective == cover.before_dropping == inside.sum() == count_chosen(group, cover.solution_own)
    # One node at a time is reported every `piece_steps`, at compactions, at the end, on any count of ranks.
    assert seen[-1:] == [cover.evaluations] * bool(len(edges))
    if rule == "single":
        assert seen == sorted(set(seen))
        together = group.gather_integers(np.array([len(seen), sum(seen)]))
        assert (together == together[0]).all()
    else:
        assert seen == list(range(1, cover.evaluations + 1))
    # Every transition chose at least one node; one at a time exactly one.
    chosen_in = np.bincount(chosen_at[inside], minlength=cover.evaluations)
    assert len(chosen_in) == cover.evaluations
    assert (chosen_in > 0).all()
    assert chosen_in.max(initial=0) <= {"single": 1, "adaptive": 8}.get(rule, n)
    return chosen_at.tobytes()


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        *[("default", rule) for rule in RULES],
        ("paper", "adaptive"),
        ("mixing", "fraction"),
        ("mixing", "single"),
    ],
)
@pytest.mark.parametrize("name", GRAPHS)
def test_covers_do_not_depend_on_ranks_or_exchange(group, single, name, policy, rule):
    covers = [by_one(lambda: cover_and_check(single, GRAPHS[name], policy, rule, "auto"))]
    covers += [cover_and_check(group, GRAPHS[name], policy, rule, each) for each in EXCHANGES]
    covers.append(cover_and_check(group, GRAPHS[name], policy, rule, full=True))
    assert len(set(covers)) == 1


@pytest.mark.parametrize(
    ("name", "policy", "rule", "exchange"),
    [
        ("hubs", "default", "single", "halo"),
        ("hubs", "default", "fraction", "gather"),
        ("weighted", "paper", "adaptive", "halo"),
        ("weighted", "paper", "single", "gather"),
    ],
)
def test_compaction_changes_nothing(group, monkeypatch, name, policy, rule, exchange):
    monkeypatch.setattr(compact, "SMALLEST", 1 << 30)
    whole = cover_and_check(group, GRAPHS[name], policy, rule, exchange)
    made = []
    monkeypatch.setattr(compact, "SMALLEST", 8)
    monkeypatch.setattr(
        rollout.compact, "compact", lambda *args, do=compact.compact: made.append(1) or do(*args)
    )
    assert cover_and_check(group, GRAPHS[name], policy, rule, exchange) == whole
    assert len(made) > 1


def test_a_graph_that_is_compacted_by_itself(group, single):
    graph = growing_graph(600, 3, 4)
    made = cover_and_check(group, graph, "default", "fraction")
    assert made == cover_and_check(single, graph, "default", "fraction")


@pytest.mark.parametrize(
    ("policy", "exchange"), [("default", "halo"), ("paper", "gather"), ("mixing", "auto")]
)
def test_side_by_side_equals_one_by_one(group, single, monkeypatch, policy, exchange):
    graphs = [
        growing_graph(30, 3, 1),
        *(GRAPHS[name] for name in ("weighted", "no edge", "fewer nodes than ranks")),
    ]

    def covers(ranks, parts):
        blocks = make_blocks(ranks, graphs, exchange)
        net, params = network(ranks, policy)
        envs = [
            env
            for part in parts
            for env in rolled_out_one_at_a_time(ranks, net, params, [blocks[i] for i in part])
        ]
        return [(env.steps, whole_rows(ranks, b, env.chosen_at).tobytes()) for env, b in zip(envs, blocks)]

    together = covers(group, [[0, 1, 2, 3]])
    assert together == covers(group, [[0], [1], [2], [3]])
    assert together == covers(single, [[0, 1, 2, 3]])
    monkeypatch.setattr(rollout, "SIDE_BY_SIDE_ROWS", 45)
    assert together == covers(group, [[0, 1, 2, 3]])
    blocks = make_blocks(group, graphs, exchange)
    for block, (steps, chosen_at) in zip(blocks, together):
        cover = roll_out(group, *network(group, policy), block, "single", 0.1)
        assert cover.evaluations == steps
        assert whole_rows(group, block, cover.chosen_at_own).tobytes() == chosen_at


def test_large_graphs_are_looked_at_more_often(group, monkeypatch):
    """Pieces are the same on any number of ranks, and change no choice."""
    graph = growing_graph(120, 4, 3)
    blocks, (net, params) = make_blocks(group, [graph, graph]), network(group, "default")
    whole = [env.steps for env in rolled_out_one_at_a_time(group, net, params, blocks)]
    entries = 2 * len(graph[1])
    for work, steps in ((0, 1), (entries - 1, 1), (5 * entries, 4), (1 << 40, rollout.MOST_STEPS)):
        monkeypatch.setattr(rollout, "PIECE_WORK", work)
        assert rollout.piece_steps(blocks[:1]) == steps
        told = mock.Mock()
        cover = roll_out(group, net, params, blocks[0], "single", 0.1, Terms(progress=told))
        assert cover.evaluations == whole[0]
        assert told.call_count >= whole[0] // steps
    monkeypatch.setattr(rollout, "PIECE_WORK", 4 * entries)
    envs, pieces = rollout.one_at_a_time(group, net, params, blocks)
    looks = [sum(env.steps for env in envs) for _ in pieces]
    assert [env.steps for env in envs] == whole
    assert len(looks) > sum(whole) // 8
    assert looks == sorted(set(looks))


def test_nothing_to_cover(group):
    assert rolled_out_one_at_a_time(group, *network(group, "default"), []) == []


# ---- dropping redundant nodes -------------------------------------------------------------------------


def neighbours(graph):
    n, edges, _ = graph
    near = [set() for _ in range(n)]
    for u, v in edges.tolist():
        near[u].add(v)
        near[v].add(u)
    return near


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", GRAPHS)
def test_pruned_covers_are_minimal(group, name, rule):
    graph = GRAPHS[name]
    block = make_block(group, graph)
    before = roll_out(group, *network(group, "paper"), block, rule, 0.3)
    cover = drop_redundant(group, before)
    inside = set(np.flatnonzero(whole_rows(group, block, cover.solution_own)).tolist())
    assert inside <= set(np.flatnonzero(whole_rows(group, block, before.solution_own)).tolist())
    assert all(u in inside or v in inside for u, v in graph[1].tolist())
    assert all(near - inside for v, near in enumerate(neighbours(graph)) if v in inside)
    assert (cover.objective, cover.before_dropping) == (len(inside), before.objective)
    assert cover.evaluations == before.evaluations


@pytest.mark.parametrize("seed", range(4))
def test_dropping_is_latest_first_then_lowest_node(group, seed):
    """From a cover with much to drop, against one pass over its nodes."""
    graph = [growing_graph(80, 3, 3), random_graph(41, 0.1, 4), listed(30, (0, 29)), random_graph(9, 0.5, 6)][
        seed
    ]
    n, near = graph[0], neighbours(graph)
    draws = np.random.default_rng(seed)
    chosen_at = draws.integers(0, 6, n).astype(np.int32)
    left_out = draws.permutation(n)[:2].tolist()
    for v in left_out:
        if not near[v] & {u for u in left_out if chosen_at[u] < 0}:
            chosen_at[v] = -1
    block = make_block(group, graph)
    chosen_at_own = np.full(block.n_own, -1, dtype=np.int32)
    chosen_at_own[: block.n_real] = chosen_at[block.lo : block.lo + block.n_real]
    cover = drop_redundant(group, finished_rollout(group, MinimumVertexCover(), block, chosen_at_own, 6))

    inside = set(np.flatnonzero(chosen_at >= 0).tolist())
    for v in sorted(inside, key=lambda v: (-chosen_at[v], v)):
        if near[v] <= inside:
            inside.remove(v)
    assert np.flatnonzero(whole_rows(group, block, cover.solution_own)).tolist() == sorted(inside)
    assert cover.objective == len(inside)
