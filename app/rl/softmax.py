"""The softmax over the candidates of a state: draws, log-probabilities, entropies, and their gradients."""

from typing import Any

import numpy as np

from app.comm.group import Group
from app.numerics.elementary import exp, log
from app.numerics.elementwise import splitmix
from app.rl.select import best_nodes, best_values
from app.sparse.batch import StateBatch

Array = Any
GUMBEL_BITS = 52  # of a uniform number


class Softmax:
    """pi(v) = exp z_v / sum_u exp z_u over the candidates u of each state of a batch.

    Forward   m = max z       a_v = z_v - m       S = sum exp a       T = sum a exp a
              log pi(v) = a_v - log S       entropy H = - sum pi log pi = log S - T / S
    Backward  d log pi(c) / dz_v = [v = c] - pi_v
              dH / dz_v = - sum_u (1 + log pi_u) dpi_u / dz_v, dpi_u / dz_v = pi_u ([u = v] - pi_v)
                        = - pi_v (log pi_v + H)
    Shapes    z, a, pi [rows], 0 on rows that are no candidates     m, S, H [states]
    Ranks     rows partitioned. m is one MAX of integer keys, S and T one sum over row blocks in their order;
              exp and log are made of exact operations (numerics/elementary.py): the same bits on any ranks
    """

    def __init__(self, group: Group, batch: StateBatch, scores_own: Array, candidate_own: Array) -> None:
        """From scores [rows] and candidates [rows] bool; every state has one. Ranks: all call."""
        xp = batch.device.xp
        self.group, self.batch = group, batch
        top = batch.device.put(best_values(group, batch, scores_own, candidate_own))
        self.shifted_own = xp.where(candidate_own, scores_own - batch.spread(top), np.float32(0))
        weight_own = xp.where(candidate_own, exp(xp, self.shifted_own), np.float32(0))
        sums = batch.pool(xp.stack([weight_own, weight_own * self.shifted_own], axis=1))
        self.log_total = log(xp, sums[:, 0])
        self.entropy = self.log_total - sums[:, 1] / sums[:, 0]
        self.probability_own = weight_own / batch.spread(sums[:, 0])

    def log_probabilities(self, nodes: np.ndarray) -> np.ndarray:
        """[states] float32 host array, log pi of one candidate (global) of each state. Ranks: all call."""
        device, xp = self.batch.device, self.batch.device.xp
        held, rows_held = self._held(nodes)
        shifted = xp.zeros((self.batch.states, 1), dtype=np.float32)
        shifted[held] = self.shifted_own[rows_held][:, None]
        return device.get(self.group.merge_rows(shifted)[:, 0] - self.log_total)

    def backward(self, nodes: np.ndarray, dlog: np.ndarray, dentropy: np.ndarray) -> Array:
        """dz_own [rows] of a loss by its derivatives by log pi(nodes) and by the entropies, both [states]."""
        device, spread = self.batch.device, self.batch.spread
        dlog, dentropy = (device.put(each.astype(np.float32)) for each in (dlog, dentropy))
        surprise_own = self.shifted_own + spread(self.entropy - self.log_total)  # log pi + H
        dz_own = -self.probability_own * (spread(dlog) + spread(dentropy) * surprise_own)
        held, rows_held = self._held(nodes)
        dz_own[rows_held] = dz_own[rows_held] + dlog[held]
        return dz_own

    def _held(self, nodes: np.ndarray) -> tuple[Array, Array]:
        """The states whose node this rank owns, and the rows of these nodes."""
        row = self.batch.row_of(np.arange(self.batch.states), nodes)
        held = np.flatnonzero(row >= 0)
        return self.batch.device.put(held), self.batch.device.put(row[held])


def draw_nodes(
    group: Group, batch: StateBatch, scores_own: Array, candidate_own: Array, key: int
) -> np.ndarray:
    """A candidate of every state, drawn with its probability: the argmax of z + Gumbel noise.

    Source    Gumbel-max: P(v = argmax z_u + g_u) = softmax(z)_v for independent standard Gumbel g (Maddison,
              Tarlow and Minka 2014)
    key       64 bits; the noise is a function of it, the state and the global node
    returns   [states] int64 global nodes, the same on all ranks
    Ranks     all call; one MAX of one key per state
    """
    return best_nodes(group, batch, scores_own + gumbel(batch, key), candidate_own)


def gumbel(batch: StateBatch, key: int) -> Array:
    """[rows] float32, independent standard Gumbel numbers -log(-log u), u uniform of 52 bits in (0, 1)."""
    xp = batch.device.xp
    state = splitmix(xp, np.uint64(key), batch.state_of_row().astype(np.uint64))
    word = splitmix(xp, state, batch.node_of_row().astype(np.uint64))
    u = ((word >> np.uint64(64 - GUMBEL_BITS)).astype(np.float64) + 0.5) * 2.0**-GUMBEL_BITS
    return (-log(xp, -log(xp, u))).astype(np.float32)
