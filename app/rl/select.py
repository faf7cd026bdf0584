"""Choosing nodes from scores: the same choice on every rank, ties to the lowest global node.

A choice is made on 64-bit keys: the order-preserving bits of the score above 2^32-1-node. The largest key is
one MAX over ranks; the d largest are each rank's d best, gathered and sorted.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.group import Group
from app.errors import Diverged
from app.graphs.keys import sorted_set
from app.graphs.lists import starts
from app.native.library import address, function
from app.rl.env import Environment
from app.sparse.rowblock import RowBlock

Array = Any
FIRST_COME = function("lk_first_come", ctypes.c_int64, *(ctypes.c_void_p,) * 3)
SLOTS = 16  # of a table of last bits, for each node looked for
NODE_BITS = 32
LOWEST = np.float32(-3.0e38)  # the score of a node that is no candidate
NAN_SCORE = "a score is NaN, so the weights have diverged; a smaller agent.learning_rate would be right"
LEAST = np.float32(-2.9e38)  # the least score of a candidate, whatever diverged weights make of it


def order_bits(xp: Any, scores: Array) -> Array:
    """[k] uint64 in [0, 2^32): integers in the order of float32 scores; -0.0 equals 0.0, NaN is above all."""
    bits = (scores + 0.0).view(np.uint32).astype(np.uint64)
    flipped = xp.where(bits >= 1 << 31, 0xFFFFFFFF - bits, bits + (1 << 31))
    return xp.where(xp.isnan(scores), 0xFFFFFFFF, flipped)


def refuse_nan(keys: np.ndarray) -> None:
    """Raise Diverged when a key holds NaN, which has no place in an order."""
    if (keys >> np.uint64(NODE_BITS) == 0xFFFFFFFF).any():
        raise Diverged(NAN_SCORE)


def make_keys(xp: Any, scores: Array, nodes: Array) -> Array:
    """[k] uint64 keys of scores at global nodes; of equal scores the lowest node has the largest key."""
    return order_bits(xp, scores) * (1 << NODE_BITS) + (0xFFFFFFFF - nodes.astype(np.uint64))


def nodes_of(keys: np.ndarray) -> np.ndarray:
    """[k] int64, the global nodes in keys."""
    return (np.uint64(0xFFFFFFFF) - (keys & np.uint64(0xFFFFFFFF))).astype(np.int64)


def _best_rows(batch: Any, scores_own: Array, candidate_own: Array) -> tuple[np.ndarray, np.ndarray]:
    """The best score of every state on this rank (LOWEST: no candidate here) and its local node."""
    return batch.device.best_rows(batch.members, scores_own, candidate_own, LOWEST, LEAST)


def best_nodes(group: Group, batch: Any, scores_own: Array, candidate_own: Array) -> np.ndarray:
    """The best candidate of every state of a batch.

    scores_own      [rows]     scores      candidate_own [rows] bool
    returns         [states] int64 global nodes, the same on all ranks
    Ranks           all call; one MAX of one key per state. One small array leaves the device.
    """
    scores, local = _best_rows(batch, scores_own, candidate_own)
    lo = np.array([b.lo for b in batch.blocks])[batch.member_of_state]
    keys = group.max_integers(np.where(scores == LOWEST, np.uint64(0), make_keys(np, scores, lo + local)))
    refuse_nan(keys)
    return nodes_of(keys)


def best_values(group: Group, batch: Any, scores_own: Array, candidate_own: Array) -> np.ndarray:
    """[states] float32 host array: the largest candidate score of every state, 0 where there is none.

    Ranks    all call; one MAX
    """
    scores, _ = _best_rows(batch, scores_own, candidate_own)
    bits = group.max_integers(order_bits(np, scores))
    refuse_nan(bits << np.uint64(NODE_BITS))
    values = np.where(bits >= 1 << 31, bits - (1 << 31), 0xFFFFFFFF - bits).astype(np.uint32).view(np.float32)
    return np.where(values == LOWEST, np.float32(0), values)


def best_of(group: Group, key: int) -> int:
    """The node of the largest key over ranks. Ranks: all call, each with its own best; one MAX."""
    keys = group.max_integers(np.array([key], dtype=np.uint64))
    refuse_nan(keys)
    return int(nodes_of(keys)[0])


def top_nodes(group: Group, device: Any, keys_own: Array, wanted: int) -> np.ndarray:
    """The `wanted` best candidates of one state, best first, the same on all ranks.

    keys_own     [n_own] uint64, 0 where a node is no candidate
    wanted       may be 0, where no node may be chosen in this step
    Ranks        all call; each rank's best keys are gathered
    """
    keys = device.top_keys(keys_own, max(wanted, 1))
    keys = keys[keys > 0]
    counts = group.gather_integers(np.array([len(keys)]))[:, 0].tolist()
    keys_all = np.sort(group.gather_host(keys, counts), kind="stable")[::-1]
    refuse_nan(keys_all)
    return nodes_of(keys_all[:wanted])


def independent(group: Group, block: RowBlock, ordered: np.ndarray) -> np.ndarray:
    """Of nodes in order of preference those with no earlier taken neighbour: pairwise non-adjacent.

    ordered   [k] distinct global nodes, the same on all ranks
    Ranks     all call; the edges among the nodes are gathered
    """
    if len(ordered) <= 1:
        return ordered
    by_number = np.argsort(ordered, kind="stable")
    numbers = ordered[by_number]
    own = np.flatnonzero((numbers >= block.lo) & (numbers < block.lo + block.n_real))
    among, links = Places(numbers), [np.zeros((0, 2), dtype=np.int64)]
    for piece in block.pieces(numbers[own] - block.lo):
        lengths, near = block.global_rows(numbers[own[piece]] - block.lo)
        hit, at = among.find(near)
        pairs = np.stack([by_number[np.repeat(own[piece], lengths)[hit]], by_number[at]], axis=1)
        links.append(pairs[pairs[:, 1] > pairs[:, 0]])
    found = np.concatenate(links)
    counts = group.gather_integers(np.array([len(found)]))[:, 0].tolist()
    edges = group.gather_host(found, counts)
    return ordered[_first_come(len(ordered), edges)]


class Places:
    """Finds nodes among `numbers` (distinct, ascending).

    A table by their last bits finds most; those that share a slot are searched for.
    """

    def __init__(self, numbers: np.ndarray) -> None:
        slots = 1 << int(SLOTS * len(numbers)).bit_length()
        self.numbers, self._mask = numbers, slots - 1
        order, slot = np.arange(len(numbers), dtype=np.int32), numbers & self._mask
        self._table, self._crowded = np.full(slots, -1, dtype=np.int32), np.zeros(slots, dtype=bool)
        self._table[slot] = order
        self._crowded[slot[self._table[slot] != order]] = True

    def find(self, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places in `near` of what is among the numbers, and the places that it has there."""
        at = self._table[near & self._mask]
        likely = np.flatnonzero(at >= 0)
        at = at[likely].astype(np.int64)
        same = self.numbers[at] == near[likely]
        other = np.flatnonzero(~same)
        other = other[self._crowded[near[likely[other]] & self._mask]]
        at[other] = np.minimum(np.searchsorted(self.numbers, near[likely[other]]), len(self.numbers) - 1)
        same[other] = self.numbers[at[other]] == near[likely[other]]
        return likely[same], at[same]


def _first_come(count: int, edges: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[count] bool: item i is taken unless an earlier taken item is linked to it.

    edges   [m, 2] items, the earlier one first
    """
    taken = np.ones(count, dtype=bool)
    tails, heads = np.divmod(np.sort(edges[:, 0] * count + edges[:, 1]), count)
    begins = starts(tails, count)
    if compiled and FIRST_COME:
        FIRST_COME(count, address(begins), address(heads), address(taken))
        return taken
    for i in sorted_set(tails).tolist():
        if taken[i]:
            taken[heads[begins[i] : begins[i + 1]]] = False
    return taken


# ---- rules ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """How much a rule may take: nodes of the graph at the start, and a fraction of the candidates."""

    nodes: int
    fraction: float


# (group, device, keys_own [n_own] uint64, env, share) -> global nodes, the same on all ranks
Rule = Callable[[Group, Any, Array, Environment, Share], np.ndarray]


def single(group: Group, device: Any, keys_own: Array, env: Environment, share: Share) -> np.ndarray:
    """One node at a time (RL4GO Alg. 2)."""
    return top_nodes(group, device, keys_own, 1)


def adaptive(group: Group, device: Any, keys_own: Array, env: Environment, share: Share) -> np.ndarray:
    """The 8 / 4 / 2 / 1 best by the share of candidates left (RL4GO section 5.2).

    Where the problem forbids adjacent choices, without those adjacent to a better one.
    """
    left, n = env.totals.candidates, share.nodes
    wanted = 8 if 2 * left > n else 4 if 4 * left > n else 2 if 8 * left > n else 1
    nodes = top_nodes(group, device, keys_own, min(wanted, left))
    return env.apart(nodes if env.problem.adjacent else independent(group, env.block, nodes))


def top_fraction(group: Group, device: Any, keys_own: Array, env: Environment, share: Share) -> np.ndarray:
    """The best fraction of the candidates, skipping any that is adjacent to a better one taken; of sets any
    that shares an element which is left with one.
    """
    wanted = max(1, int(share.fraction * env.totals.candidates))
    return env.apart(independent(group, env.block, top_nodes(group, device, keys_own, wanted)))


def random_candidates(group: Group, envs: list[Environment], picks: list[int]) -> np.ndarray:
    """The picks[i]-th candidate of environment i in node order, the same on all ranks.

    returns   [envs] global nodes
    Ranks     all call
    """
    local = [env.candidates_own() for env in envs]
    if group.size == 1:
        return np.array([each[pick] for each, pick in zip(local, picks)], dtype=np.int64)
    counts = group.gather_integers(np.array([len(c) for c in local]))
    before = counts[: group.rank].sum(axis=0)
    found = np.full(len(envs), -1, dtype=np.int64)
    for i, (env, candidates, pick) in enumerate(zip(envs, local, picks)):
        at = pick - int(before[i])
        if 0 <= at < len(candidates):
            found[i] = candidates[at] + env.block.lo
    return group.max_integers(found)
