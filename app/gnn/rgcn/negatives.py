"""Learning triples from wrong ones that are drawn: the logistic loss of both."""

from typing import Any

import numpy as np

from app.case.gnn import RgcnCase
from app.comm.group import Group
from app.gnn.rgcn.decoder import Decoder
from app.gnn.rgcn.split import Split
from app.rng import stream

Array = Any


class NegativeSampling(Decoder):
    """Right triples are told apart from wrong ones, drawn anew in each epoch.

    Forward   f(s, r, o) = sum_k S_sk D_rk O_ok, of operands that a scorer makes of E and D (scorers.py)
    Loss      mean over right and wrong triples of log(1 + exp(-+f))     (Schlichtkrull et al. 2018, eq. 7)
    Shapes    g = dloss / df [triples]
    Backward  dD_r = sum_t g_t S_s O_o         over the triples of r in their order
              dS_i = sum_t g_t D_r O_o, dO_i = sum_t g_t D_r S_s     over the triples that i is in, by (i,
              place: first as subject); the scorer leads them to E
    Ranks     a rank scores the triples of its relations and makes the rows of dD of these; g is gathered, 4
              bytes for each triple.
    """

    def __init__(
        self, group: Group, split: Split, nodes: int, relations: int, case: RgcnCase, seed: int
    ) -> None:
        """case   rgcn.negatives are read besides"""
        super().__init__(group, split, nodes, relations, case, seed)
        self._seed, self._negatives = seed, case.negatives
        counts = np.bincount(split.train[:, 1], minlength=relations)
        owner = deal_relations(counts, group.size)
        self._relations = np.bincount(owner, minlength=group.size)
        first, last = np.searchsorted(owner, [group.rank, group.rank + 1])
        self._own, self._starts = slice(first, last), np.concatenate([[0], np.cumsum(counts)])

    def of_triples(self, E: Array, epoch: int, lo: int, hi: int) -> tuple[float, Array, Array]:
        """The loss, dD and dE of the nodes lo..hi-1. Ranks: all call."""
        wrong = draw_wrong(self._seed, epoch, self.train, self.n, self._negatives)
        m, w = wrong.shape[:2]
        group, device, R, scorer, xp = self.group, self.device, self.R, self.scorer, self.device.xp
        starts = self._starts * (w + 1)
        first, last = int(starts[self._own.start]), int(starts[self._own.stop])
        triples = scorer.triples(_columns_of(self.train, wrong), len(E))
        own, nodes, relations = triples[:, first:last], scorer.nodes(xp, E), scorer.relations(xp, self.D)
        Z = device.triple_scores(own, nodes, relations)[:, None]
        right = device.put((np.arange(first, last) % (w + 1) == 0).astype(np.float32)[:, None])
        weight = device.put(np.full(last - first, 1 / (m * (w + 1)), dtype=np.float32))
        losses = device.sigmoid_loss(Z, right, weight)
        own_starts = starts[self._own.start : self._own.stop + 1] - first
        dD = scorer.relations_back(xp, device.triple_relation_sums(own_starts, own, Z[:, 0], nodes))
        both = xp.concatenate([dD, device.fold(own_starts, losses[:, None])], axis=1)
        sums = group.gather_rows(both, self._relations.tolist())
        loss = device.fold(np.array([0, R]), xp.ascontiguousarray(sums[:, -1:]))
        counts = [int(starts[k] - starts[j]) for j, k in _spans(self._relations)]
        g = group.gather_rows(Z, counts)[:, 0]

        def node_sums(lo: int, hi: int) -> Array:
            return device.triple_node_sums(triples, g, nodes, relations, lo, hi)

        dE = scorer.nodes_back(xp, node_sums, lo, hi, len(E))
        return float(device.get(loss)[0, 0]), xp.ascontiguousarray(sums[:, :-1]), dE


def deal_relations(counts: np.ndarray, ranks: int) -> np.ndarray:
    """[R] the rank that scores the triples of each relation, ascending; counts [R]: of its triples."""
    before = np.cumsum(counts) - counts
    return np.minimum(before * ranks // max(int(counts.sum()), 1), ranks - 1)


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


def _spans(sizes: np.ndarray) -> list[tuple[int, int]]:
    """First and last + 1 of consecutive pieces."""
    ends = np.cumsum(sizes)
    return list(zip((ends - sizes).tolist(), ends.tolist()))
