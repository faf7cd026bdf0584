"""The rest of a rollout without the policy: by a plain greedy, on row partitions of any size."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.comm.group import Group
from app.problems.problem import Problem
from app.rl import compact
from app.rl.compact import Residual
from app.rl.env import Environment, step_together
from app.rl.select import independent, make_keys, top_nodes
from app.sparse.rowblock import RowBlock

SHARE = 0.05  # of the candidates, taken at once
PIECES, MIX = 8, np.uint64(0x9E3779B97F4A7C15)  # of an order of preference; 2^64 over the golden ratio


@dataclass(frozen=True)
class Greedy:
    """How a plain greedy takes candidates.

    share   at once
    apart   True: none that have a neighbour in common, unless
    least   of these far fewer could be taken: so large a part of them then are, the best ones first
    """

    share: float = SHARE
    apart: bool = False
    least: float = 0.0


PLAIN = Greedy()


def play_rest(
    group: Group, residual: Residual, chosen_at_own: np.ndarray, look: Callable[[], object],
    enough: Callable[[Environment], bool] = lambda env: False, price_own: np.ndarray | None = None,
    greedy: Greedy = PLAIN,
) -> Residual:  # fmt: skip
    """Take the best candidates of the problem's plain greedy (Problem.plain) until nothing is left.

    chosen_at_own   [n_own of the first graph] int32, where the choices of earlier residuals stand; changes
    look            called before every step
    enough          asked before every step, the same on all ranks; when true it ends there
    price_own       [n_own of the first graph] float32 above 0, what nodes cost, or in problems that maximise
                    are worth, where that counts
    returns         what is left, done where it was not ended
    Ranks           all call; identical on any number of them
    """
    while not (residual.env.done or enough(residual.env)):
        look()
        env = residual.env
        wanted = max(1, int(greedy.share * env.totals.candidates))
        nodes = top_nodes(group, group.device, group.device.put(_keys_own(residual, price_own)), wanted)
        step_together(group, [env], [_taken(group, env, nodes, greedy)])
        if compact.worth_compacting(residual):
            residual.write_back(chosen_at_own)
            residual = compact.compact(group, residual)
    return residual


def _taken(group: Group, env: Environment, ordered: np.ndarray, greedy: Greedy) -> np.ndarray:
    """Of nodes [k], best first, those that are taken at once. Ranks: all call; identical on all."""
    if not greedy.apart:
        return env.apart(independent(group, env.block, ordered))
    taken, least = unmet(group, env.block, ordered), int(greedy.least * len(ordered))
    if len(taken) >= least:
        return taken
    return np.concatenate([taken, ordered[~np.isin(ordered, taken)]])[:least]


def unmet(group: Group, block: RowBlock, ordered: np.ndarray) -> np.ndarray:
    """Of nodes [k] in order of preference those that come first in the closed neighbourhoods of all nodes of
    their own: what they dominate no other one does. Ranks: all call; identical on all.

    The order counts by eighths, within which it is mixed: nodes that are as good come in the order of their
    numbers, and where each of a long row is next to the one before it only the first would be left.
    """
    at = np.arange(len(ordered), dtype=np.uint64)
    ordered = ordered[np.lexsort((at * MIX, at * np.uint64(PIECES) // np.uint64(max(len(at), 1))))]
    rows, place = block.adjacent_own(ordered)
    own = np.flatnonzero((ordered >= block.lo) & (ordered < block.lo + block.n_real))
    rows, place = np.concatenate([rows, ordered[own] - block.lo]), np.concatenate([place, own])
    first = np.full(block.n_own, len(ordered), dtype=np.int64)
    np.minimum.at(first, rows, place)
    lost = np.zeros(len(ordered), dtype=np.int64)
    lost[place[first[rows] < place]] = 1
    return ordered[group.sum_integers(lost) == 0]


def _keys_own(residual: Residual, price_own: np.ndarray | None) -> np.ndarray:
    """[n_own] uint64 keys of own candidates, 0 of other rows."""
    env = residual.env
    keys, rows = np.zeros(env.block.n_own, dtype=np.uint64), env.candidates_own()
    code = env.codes_own(rows)
    wanted = env.problem.plain(code).astype(np.float32)
    if price_own is not None:
        wanted = _by_price(env.problem, code, price_own[residual.original[rows]])
    keys[rows] = make_keys(np, wanted, env.block.lo + rows)
    return keys


def _by_price(problem: Problem, code: np.ndarray, price: np.ndarray) -> np.ndarray:
    """[k] float32, what nodes of codes [k] do for their price; of those that are to be worth much what they
    are worth for each node that goes with them.
    """
    near = (problem.neighbours(code) if problem.degree_codes else problem.plain(code)).astype(np.float32)
    return price / (near + 1) if problem.sense == "maximise" else near / price
