"""Rollouts: a policy covers graphs (RL4GO Alg. 2), many side by side, or one by a selection rule."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.comm.group import Group
from app.rl import compact
from app.rl.agent import score_environments
from app.rl.env import GraphEnv, step_together
from app.rl.incremental import FullScores, LiveScores, Scores, can_follow
from app.rl.qnet import QNetwork
from app.rl.select import Share, best_nodes, find_rule, independent
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

RUN_STEPS = 256  # selections between looks at the clock, on one rank
SIDE_BY_SIDE_ROWS = 1 << 18  # rows of one batch of graphs that are covered together


def cover_one_at_a_time(group: Group, net: QNetwork, params: Any, blocks: list[RowBlock]) -> list[GraphEnv]:
    """Cover graphs one node at a time.

    On one rank graph by graph with scores that follow the selections; on more all of them side by side, so
    that they share their messages. The choices are the same.

    blocks    rows of graphs that share their row blocks (partition/load.py)
    returns   the finished environments, in order
    Ranks     all call; identical choices on all
    """
    envs = [GraphEnv(group, block) for block in blocks]
    if group.size == 1 and all(can_follow(group, net, env) for env in envs):
        for env in envs:
            LiveScores(group, net, params, env).run(env.block.n, 0)
        return envs
    for part in _parts(blocks):
        active = [i for i in part if envs[i].totals.degree_sum]
        batch = StateBatch(group, [(blocks[i], 1) for i in active])
        while active:
            live = [envs[i] for i in active]
            nodes = best_nodes(group, batch, *score_environments(net, params, batch, live))
            step_together(group, live, [nodes[k : k + 1] for k in range(len(live))])
            left = [i for i in active if envs[i].totals.degree_sum]
            if len(left) < len(active):
                active = left
                batch = StateBatch(group, [(blocks[i], 1) for i in active])
    return envs


def _parts(blocks: list[RowBlock]) -> list[list[int]]:
    """Graph numbers in order, cut so that one part has at most SIDE_BY_SIDE_ROWS rows."""
    parts: list[list[int]] = [[]]
    rows = 0
    for i, block in enumerate(blocks):
        if parts[-1] and rows + block.n > SIDE_BY_SIDE_ROWS:
            parts.append([])
            rows = 0
        parts[-1].append(i)
        rows += block.n
    return parts


@dataclass
class Cover:
    """A finished rollout on one graph.

    chosen_at_own    [n_own] int32   the transition at which a node was chosen, -1: not
    cover_own        [n_real] bool   the cover on this rank's rows
    objective        nodes in the cover of the whole graph; before_dropping: with redundant ones
    """

    block: RowBlock
    chosen_at_own: np.ndarray
    cover_own: np.ndarray
    evaluations: int
    objective: int
    before_dropping: int


def finished_cover(group: Group, block: RowBlock, chosen_at_own: np.ndarray, evaluations: int) -> Cover:
    """The cover of a rollout whose choices are known. Ranks: all call."""
    cover_own = chosen_at_own[: block.n_real] >= 0
    size = count_cover(group, cover_own)
    return Cover(block, chosen_at_own, cover_own, evaluations, size, size)


def cover_graph(
    group: Group,
    net: QNetwork,
    params: Any,
    block: RowBlock,
    rule: str,
    fraction: float,
    progress: Callable[[int, GraphEnv], None] = lambda evaluations, env: None,
    full: bool = False,
) -> Cover:
    """Cover one graph: score, select by a rule, update, until no edge is left.

    Scores follow the selections where they can (rl/incremental.py), and the residual graph is compacted as it
    shrinks (rl/compact.py); neither changes a bit.

    progress   called with the number of selections: after each, or every RUN_STEPS of one node
    full       True: evaluate every state from the first row to the last, without compaction
    Ranks      all call; identical choices on all
    """
    choose = find_rule(rule)
    residual = compact.begin(group, block)
    scores = make_scores(group, net, params, residual.env, full)
    chosen_at_own = np.full(block.n_own, -1, dtype=np.int32)
    while residual.env.totals.degree_sum:
        env = residual.env
        if rule == "single" and group.size == 1 and isinstance(scores, LiveScores):
            scores.run(RUN_STEPS, compact.least_alive(residual))
        elif rule == "single":
            scores.remove(np.array([scores.best()]))
        else:
            scores.remove(choose(group, group.device, scores.keys_own(), env, Share(block.n, fraction)))
        # The sums of a mixing head are cut in the row blocks of the whole graph.
        smaller = not full and not net.pools_to_choose and compact.worth_compacting(residual)
        # At the same selections on any number of ranks.
        if rule != "single" or smaller or not env.steps % RUN_STEPS or not env.totals.degree_sum:
            progress(residual.first_step + env.steps, env)
        if smaller:
            residual.write_back(chosen_at_own)
            residual = compact.compact(group, residual)
            scores = make_scores(group, net, params, residual.env, full)
    residual.write_back(chosen_at_own)
    return finished_cover(group, block, chosen_at_own, residual.first_step + residual.env.steps)


def make_scores(group: Group, net: QNetwork, params: Any, env: GraphEnv, full: bool = False) -> Scores:
    """Scores that follow the selections where that gives the same bits. Ranks: all call."""
    kind = FullScores if full or not can_follow(group, net, env) else LiveScores
    return kind(group, net, params, env)


def count_cover(group: Group, cover_own: np.ndarray) -> int:
    """Nodes in the cover over all ranks. Ranks: all call."""
    return int(group.sum_integers(np.array([np.count_nonzero(cover_own)]))[0])


def drop_redundant(group: Group, cover: Cover) -> Cover:
    """Take out nodes whose neighbours are all in the cover: the latest chosen first, no two of them adjacent.

    What is left is minimal: a redundant node that stays has a neighbour that was taken out.
    Ranks   all call; identical on all
    """
    block = cover.block
    batch = StateBatch(group, [(block, 1)])
    outside = np.ones((block.n_own, 1), dtype=np.float32)
    outside[: block.n_real, 0] = ~cover.cover_own
    outside[block.n_real :] = 0
    exposed = group.device.get(batch.times(group.device.put(outside)))[: block.n_real, 0] > 0
    redundant = np.flatnonzero(cover.cover_own & ~exposed)
    # Latest choice first; of one transition the lowest node first.
    when = cover.chosen_at_own[redundant].astype(np.int64)
    keyed = np.stack([-when, redundant + block.lo], axis=1)
    counts = group.gather_integers(np.array([len(keyed)]))[:, 0].tolist()
    keyed = group.gather_host(keyed, counts)
    ordered = keyed[np.lexsort((keyed[:, 1], keyed[:, 0])), 1]
    dropped = independent(group, block, ordered)
    cover_own = cover.cover_own.copy()
    own = dropped[(dropped >= block.lo) & (dropped < block.lo + block.n_real)] - block.lo
    cover_own[own] = False
    return replace(cover, cover_own=cover_own, objective=cover.before_dropping - len(dropped))
