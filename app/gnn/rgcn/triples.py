"""Scores of triples and their gradients, of which ranks share out the relations."""

from typing import Any

import numpy as np

from app.comm.group import Group
from app.gnn.rgcn.scorers import Scorer

Array = Any


def deal_relations(counts: np.ndarray, ranks: int) -> np.ndarray:
    """[R] the rank that scores the triples of each relation, ascending; counts [R]: of its triples."""
    before = np.cumsum(counts) - counts
    return np.minimum(before * ranks // max(int(counts.sum()), 1), ranks - 1)


class SharedTriples:
    """Triples in the order of their relations; a rank scores those of its own, consecutive relations.

    Forward   f_t = sum_k S_sk D_rk O_ok, of operands that a scorer makes of rows E and D (scorers.py), and
              where there are loops l_r [s = o] besides
    Backward  of g = dloss / df: dD_r = sum_t g_t S_s O_o     over the triples of r in their order
              dS_i = sum_t g_t D_r O_o, dO_i = sum_t g_t D_r S_s     over the triples that i is in, by (i,
              place: first as subject); the scorer leads them to E
              dl_r = sum_t g_t over its triples with s = o
    Shapes    E [n, d]   D [R, d]   l [R]   f, g [t]

    own          [k] of all triples, those of this rank, as a slice
    own_starts   [own relations + 1] where the triples of each begin among the own ones
    """

    def __init__(
        self, group: Group, scorer: Scorer, triples: np.ndarray, counts: np.ndarray, E: Array, D: Array,
        loops: Array | None = None,
    ) -> None:  # fmt: skip
        """triples   [3, t] int32 host     counts   [R] of each relation, whose shares decide who scores it"""
        self.group, self.device, self.scorer, self._E, self._D = group, group.device, scorer, E, D
        owner, xp = deal_relations(counts, group.size), group.device.xp
        self._relations = np.bincount(owner, minlength=group.size)
        first, last = np.searchsorted(owner, [group.rank, group.rank + 1])
        self._own_relations, starts = slice(first, last), np.concatenate([[0], np.cumsum(counts)])
        ends = starts[np.concatenate([[0], np.cumsum(self._relations)])]
        self._counts = np.diff(ends).tolist()
        self.own = slice(int(starts[first]), int(starts[last]))
        self.own_starts = starts[first : last + 1] - self.own.start
        self._triples = scorer.triples(triples, len(E))
        self._nodes, self._of_relations = scorer.nodes(xp, E), scorer.relations(xp, D)
        self._loops = loops
        if loops is not None:
            own = triples[:, self.own]
            self._relation_of = group.device.put(own[1].astype(np.int64))
            self._is_loop = group.device.put((own[0] == own[2]).astype(np.float32))

    def scores(self) -> Array:
        """[k], f of the own triples."""
        f = self.device.triple_scores(self._triples[:, self.own], self._nodes, self._of_relations)
        if self._loops is not None:
            f += self._is_loop * self.device.xp.take(self._loops, self._relation_of)
        return f

    def relation_sums(self, g_own: Array) -> Array:
        """[own relations, d], the rows of dD of these; with loops dl is one column more."""
        own, D_own = self._triples[:, self.own], self._D[self._own_relations]
        sums = self.device.triple_relation_sums(self.own_starts, own, g_own, self._nodes)
        dD = self.scorer.relations_back(self.device.xp, D_own, sums)
        if self._loops is None:
            return dD
        of_loops = self.device.fold(self.own_starts, (g_own * self._is_loop)[:, None])
        return self.device.xp.concatenate([dD, of_loops], axis=1)

    def node_sums(self, g: Array, lo: int, hi: int) -> Array:
        """[hi - lo, d], the rows of dE of the nodes lo .. hi-1, from g of all triples."""

        def sums(lo: int, hi: int) -> Array:
            return self.device.triple_node_sums(self._triples, g, self._nodes, self._of_relations, lo, hi)

        return self.scorer.nodes_back(self.device.xp, self._E, sums, lo, hi)

    def gather_triples(self, X_own: Array) -> Array:
        """[t, c] of all triples, from those of this rank [k, c]. Ranks: all call."""
        return self.group.gather_rows(X_own, self._counts)

    def gather_relations(self, X_own: Array) -> Array:
        """[R, c] of all relations, from those of this rank. Ranks: all call."""
        return self.group.gather_rows(X_own, self._relations.tolist())
