"""Learning triples from wrong ones that are drawn: the logistic loss of both."""

from typing import Any

import numpy as np

from app.case.rgcn import RgcnCase
from app.comm.group import Group
from app.gnn.rgcn.decoder import Decoder
from app.gnn.rgcn.split import Split
from app.gnn.rgcn.triples import SharedTriples
from app.rng import stream

Array = Any


class NegativeSampling(Decoder):
    """Right triples are told apart from wrong ones, drawn anew in each epoch.

    Forward   f(s, r, o) of right and wrong triples (triples.py); z = f, of distances f + rgcn.margin
    Loss      mean over right and wrong triples of log(1 + exp(-+z))     (Schlichtkrull et al. 2018, eq. 7;
              with a margin the two parts of Sun et al. 2019, eq. 5, without weights of wrong triples)
    Backward  g = dloss / df [triples], which leads to dD and dE as SharedTriples says
    Ranks     a rank scores the triples of its relations and makes the rows of dD of these; g is gathered, 4
              bytes for each triple.
    """

    def __init__(
        self, group: Group, split: Split, nodes: int, relations: int, case: RgcnCase, seed: int
    ) -> None:
        """case   rgcn.negatives and margin are read besides"""
        super().__init__(group, split, nodes, relations, case, seed)
        self._seed, self._negatives = seed, case.negatives
        self._margin = np.float32(case.margin) if self.scorer.distance else None
        self._counts = np.bincount(split.train[:, 1], minlength=relations)

    def of_triples(self, E: Array, epoch: int, lo: int, hi: int) -> tuple[float, Array, Array]:
        """The loss, dD and dE of the nodes lo..hi-1. Ranks: all call."""
        wrong = draw_wrong(self._seed, epoch, self.train, self.n, self._negatives)
        m, w = wrong.shape[:2]
        device, xp = self.device, self.device.xp
        triples, counts = _columns_of(self.train, wrong), self._counts * (w + 1)
        shared = SharedTriples(self.group, self.scorer, triples, counts, E, self.rows, self.loops)
        own = np.arange(shared.own.start, shared.own.stop)
        Z = shared.scores()[:, None]
        if self._margin is not None:
            Z += self._margin
        right = device.put((own % (w + 1) == 0).astype(np.float32)[:, None])
        weight = device.put(np.full(len(own), 1 / (m * (w + 1)), dtype=np.float32))
        losses = device.sigmoid_loss(Z, right, weight)
        by_relation = device.fold(shared.own_starts, losses[:, None])
        both = xp.concatenate([shared.relation_sums(Z[:, 0]), by_relation], axis=1)
        sums = shared.gather_relations(both)
        loss = device.fold(np.array([0, self.R]), xp.ascontiguousarray(sums[:, -1:]))
        dE = shared.node_sums(shared.gather_triples(Z)[:, 0], lo, hi)
        return float(device.get(loss)[0, 0]), xp.ascontiguousarray(sums[:, :-1]), dE


def _columns_of(train: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """[3, t] int32: each right triple and then its wrong ones."""
    m, w = wrong.shape[:2]
    columns = np.empty((3, m, w + 1), dtype=np.int32)
    columns[1] = train[:, 1:2]
    for row, end in ((0, 0), (2, 1)):
        columns[row, :, 0], columns[row, :, 1:] = train[:, row], wrong[:, :, end]
    return columns.reshape(3, -1)


def draw_wrong(seed: int, epoch: int, train: np.ndarray, nodes: int, count: int) -> np.ndarray:
    """[m, count, 2]: subjects and objects of right triples, one of them replaced by a random node."""
    draws = stream(seed, "links/wrong", epoch)
    ends = np.repeat(train[:, None, ::2], count, axis=1)
    side = draws.integers(0, 2, ends.shape[:2])
    np.put_along_axis(ends, side[:, :, None], draws.integers(0, nodes, (*side.shape, 1)), axis=2)
    return ends
