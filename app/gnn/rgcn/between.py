"""Learning which relation there is between two nodes: softmax over all relations, beside another loss."""

from typing import Any

import numpy as np

from app.comm.group import Group
from app.gnn.rgcn.scorers import Scorer
from app.gnn.rgcn.softmax import Asked, Queries, fold_by, over_blocks, queries_at_once, softmax_block

Array = Any


def pairs_of(train: np.ndarray, nodes: int, relations: int) -> Queries:
    """The distinct pairs of nodes in distinct triples [m, 3], as queries whose answers are relations.

    In the place of a known end stand subjects, in that of its relation objects.
    """
    key = train[:, 0] * nodes + train[:, 2]
    order = np.lexsort((train[:, 1], key))
    found, counts = np.unique(key, return_counts=True)
    size = queries_at_once(relations)
    blocks = np.array([*range(0, len(found), size), len(found)])
    starts = np.concatenate([[0], np.cumsum(counts)])
    return Queries(found // nodes, found % nodes, train[order, 1], order, starts, blocks, len(blocks))


class Between:
    """The relation of each learned triple is asked among all relations.

    Pair      p = (s, o): its row q_p of e_s and e_o is what a product with a row y of `choices` of D scores
              (scorers.py), less what is the same for all relations; it has k_p right relations
    Forward   f_pr = <q_p, y_r>, with loops (decoder.py) + l_r [s = o]     L_p = log sum_r exp f_pr
    Loss      b / m sum_p (k_p L_p - sum of f_pr over right r)     over m triples
    Shapes    E [n, d]   Y [R, c]   f, G [pairs, R]   q_p [c]
    Backward  G_pr = b (k_p exp(f_pr - L_p) - [r is right]) / m
              dy_r = sum_p G_pr q_p     dq_p = sum_r G_pr y_r     dl_r = sum_p G_pr over p with s = o
              which the scorer leads to w_r, e_s and e_o
    Ranks     own blocks of pairs, as Asking (softmax.py): R c + 1 numbers are added up, dq is gathered, 4 c
              bytes a pair
    Source    Chen, Minervini, Riedel and Stenetorp 2021: relation prediction as an auxiliary objective
    """

    def __init__(
        self, group: Group, scorer: Scorer, train: np.ndarray, nodes: int, relations: int, weight: float
    ) -> None:
        """weight   b"""
        self.group, self.device, self.scorer = group, group.device, scorer
        self.pairs = pairs_of(train, nodes, relations)
        self._unit = np.float32(weight / len(train))

    def add(self, E: Array, rows: Array, loops: Array | None, dE: Array, dD: Array, lo: int) -> float:
        """The loss; its gradients are added to dE, that of the nodes from lo on, and to dD.

        rows, loops   [R, d] and [R] of the relations; None: no loops
        Ranks         all call
        """
        device, xp, pairs, d = self.device, self.device.xp, self.pairs, E.shape[1]
        Y = self.scorer.choices(xp, rows)
        c = Y.shape[1]
        if loops is not None:  # one column more: what pairs of one node twice are multiplied with
            Y = xp.concatenate([Y, loops[:, None]], axis=1)
        Y_t = xp.ascontiguousarray(Y.T)

        def work(block: int) -> tuple[Array, Array]:
            asked = pairs.block(block)
            return softmax_block(device, asked, self._unit, self._queries(E, asked, loops), Y, Y_t)

        every = np.array([0, len(pairs.blocks) - 1])
        (whole,), dQ = over_blocks(self.group, pairs.blocks, work, Y.size + 1, Y.shape[1], every)
        dY = whole[:-1].reshape(Y.shape)
        dD[:, :d] += self.scorer.choices_back(xp, rows, dY[:, :c])
        dD[:, d:] += dY[:, c:]
        subjects, objects = pairs.known, pairs.relation
        both = self._rows(E, subjects), self._rows(E, objects)
        dS, dO = self.scorer.pair_back(xp, *both, dQ[:, :c])
        hi = lo + len(dE)
        dE += fold_by(device, dS, subjects, lo, hi) + fold_by(device, dO, objects, lo, hi)
        return float(device.get(whole[-1:])[0])

    def _queries(self, E: Array, asked: Asked, loops: Array | None) -> Array:
        """[r, c], the rows of a block's pairs, with loops [r, c + 1]."""
        xp, subjects, objects = self.device.xp, asked.known, asked.relation
        Q = self.scorer.pair(xp, self._rows(E, subjects), self._rows(E, objects))
        if loops is None:
            return Q
        same = (subjects == objects).astype(np.float32)[:, None]
        return xp.concatenate([Q, self.device.put(same)], axis=1)

    def _rows(self, E: Array, nodes: np.ndarray) -> Array:
        return self.device.xp.take(E, self.device.put(nodes), axis=0)
