"""What decoders of link prediction have in common: rows of relations, and a norm that keeps rows short.

Losses learn from the scores of triples: negatives.py compares right triples with drawn wrong ones,
softmax.py with all nodes in the place of an end, sampled.py with some of them.
"""

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np

from app.case.rgcn import RgcnCase
from app.comm.group import Group
from app.gnn.rgcn.distances import unit_rows
from app.gnn.rgcn.scorers import SCORERS, split_relations
from app.gnn.rgcn.shards import glorot_limit
from app.gnn.rgcn.split import Split
from app.rng import stream

Array = Any


class Term(Protocol):
    """More of a loss."""

    def add(self, E: Array, rows: Array, loops: Array | None, dE: Array, dD: Array, lo: int) -> float:
        """The loss; its gradients are added to dE and dD.

        E       [n, d] rows of nodes     rows, loops   [R, d] and [R] of relations; loops None: there are none
        dE      [own nodes, d] the gradient by the rows of E from lo on
        dD      [R, d], with loops [R, d + 1]
        Ranks   all call
        """


class Decoder(ABC):
    """Scores of triples from rows of nodes and relations, a loss of them, and its gradients.

    Loss      that of the triples + n3 / m sum_t |e_s|^3 + |w_r|^3 + |e_o|^3     over the m learned triples
              t, |x|^3 the sum of the cubes of its numbers' absolute values (ComplEx and RotatE: of its
              complex numbers; RotatE without w_r, whose lengths play no part)
    Loops     with rgcn.loops the score of (s, r, o) is f(s, r, o) + l_r [s = o], l_r learned from 0 on and
              no part of the norm. Backward: dl_r = sum of dloss / df over all that is scored of r with s = o.
              Where a relation leads from each node of a group to all others but not to itself, the others
              have to be near where it leads, and so is the node itself: a distance cannot tell it apart.
    Source    of the norm Lacroix, Usunier and Obozinski 2018, eq. 8 (N3, weighted by use)
    Shapes    E [n, d]   D [R, d], with loops [R, d + 1]: the last column is l
    Ranks     E and D are whole on every rank; a rank makes the rows of dE of the nodes that it owns

    D             of the relations, learned
    also          what is added to the loss of triples; None: nothing
    rows, loops   its parts [R, d] and [R], as of this epoch; None: there are no loops
    """

    def __init__(
        self, group: Group, split: Split, nodes: int, relations: int, case: RgcnCase, seed: int
    ) -> None:
        """case   rgcn.scorer, dimension, loops and n3 are read"""
        self.group, self.device, self.n, self.R = group, group.device, nodes, relations
        self.train, self.scorer = split.train, SCORERS[case.scorer]
        limit = glorot_limit(relations, case.dimension)
        drawn = stream(seed, "initial/links/D").uniform(-limit, limit, (relations, case.dimension))
        drawn = unit_rows(np, drawn) if self.scorer.unit else drawn
        if case.loops:
            drawn = np.concatenate([drawn, np.zeros((relations, 1))], axis=1)
        self.D = group.device.put(drawn.astype(np.float32))
        self.rows, self.loops = split_relations(group.device.xp, self.D, case.dimension)
        self._norms = self._shares(case.n3) if case.n3 else None
        self.also: Term | None = None

    def gradients(self, E: Array, epoch: int, lo: int, hi: int) -> tuple[float, Array, Array]:
        """The loss, dD, and dE of the nodes lo..hi-1.

        E       [n, d] rows of all nodes
        epoch   from 1
        Ranks   all call
        """
        d = E.shape[1]
        self.rows, self.loops = split_relations(self.device.xp, self.D, d)
        loss, dD, dE = self.of_triples(E, epoch, lo, hi)
        if self.also is not None:
            loss += self.also.add(E, self.rows, self.loops, dE, dD, lo)
        if self._norms is not None:
            of_nodes, of_relations = self._norms
            norms = self._shorten(E, of_nodes, dE, lo)
            norms += 0.0 if self.scorer.unit else self._shorten(self.rows, of_relations, dD[:, :d], 0)
            loss += norms
        return loss, dD, dE

    @abstractmethod
    def of_triples(self, E: Array, epoch: int, lo: int, hi: int) -> tuple[float, Array, Array]:
        """The loss of the learned triples without the norms, dD [R, d], with loops [R, d + 1], and dE
        [hi - lo, d] of the nodes lo..hi-1. Ranks: all call.
        """

    def _shares(self, n3: float) -> tuple[Array, Array]:
        """[n] and [R] float32: n3 / m times the places of each node, and of each relation, in triples."""
        ends, factor = np.concatenate([self.train[:, 0], self.train[:, 2]]), n3 / len(self.train)
        both = (np.bincount(ends, minlength=self.n), np.bincount(self.train[:, 1], minlength=self.R))
        return tuple(self.device.put((factor * each).astype(np.float32)) for each in both)

    def _shorten(self, X: Array, shares: Array, dX: Array, lo: int) -> float:
        """sum_i shares_i |x_i|^3 over all rows; its gradient is added to dX, that of the rows from lo on."""
        device = self.device
        cubes, slopes = self.scorer.cubes(device.xp, X)
        hi = lo + len(dX)
        dX += slopes[lo:hi] * shares[lo:hi, None]
        total = device.fold(np.array([0, len(X)]), (cubes * shares)[:, None])
        return float(device.get(total)[0, 0])
