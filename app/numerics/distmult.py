"""DistMult on many triples: their scores, and the sums that its gradients are (Yang et al. 2015).

    f_t = sum_k E_sk D_rk E_ok     of triple t = (s, r, o), rows E of nodes and D of relations

A row of numbers for every triple would be most of the memory of a training, so a piece of the triples is
worked on at a time. Every sum is one chain in the order of the triples however they are cut: the same bits on
every device and in the compiled kernels.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
PIECE_BYTES = {True: 1 << 22, False: 1 << 27}  # of the rows worked on at a time, by: is it a host


class DistMultProducts:
    """Sums over triples, of a device that has `xp`, `put`, `fold` and `row_dots`.

    triples   [3, t] int32 host: their subjects s, relations r and objects o
    E         [n, d] rows of nodes     D [R, d] rows of relations, both on the device
    """

    xp: Any
    put: Callable[[np.ndarray], Array]
    fold: Callable[[np.ndarray, Array], Array]
    row_dots: Callable[[Array, Array], Array]

    def triple_scores(self, triples: np.ndarray, E: Array, D: Array) -> Array:
        """[t], each the chain from 0 over the columns of (E_s D_r) E_o."""
        xp = self.xp
        scores = xp.zeros(triples.shape[1], dtype=np.float32)
        for lo, hi in self._pieces(0, len(scores), E.shape[1]):
            s, r, o = triples[:, lo:hi]
            scores[lo:hi] = self.row_dots(self._take(E, s) * self._take(D, r), self._take(E, o))
        return scores

    def triple_relation_sums(self, starts: np.ndarray, triples: np.ndarray, g: Array, E: Array) -> Array:
        """[k, d], row i the chain from 0 over the triples starts[i] .. starts[i+1]-1 of (g_t E_s) E_o.

        starts   [k+1] host     g [t] device
        """

        def rows(lo: int, hi: int) -> Array:
            s, _, o = triples[:, lo:hi]
            return g[lo:hi, None] * self._take(E, s) * self._take(E, o)

        return self._folded(starts, E.shape[1], rows)

    def triple_node_sums(self, triples: np.ndarray, g: Array, E: Array, D: Array, lo: int, hi: int) -> Array:
        """[hi - lo, d]: for nodes lo .. hi-1 the chain from 0 over their triples of (D_r E_other) g_t.

        First those with the node as subject, in their order, then those with it as object.
        """
        starts, places = self.triples_by_node(triples, lo, hi)
        s, r, o = triples

        def rows(first: int, last: int) -> Array:
            place = places[first:last]
            t = place % len(s)
            other = np.where(place < len(s), o[t], s[t])
            return self._take(D, r[t]) * self._take(E, other) * self.xp.take(g, self.put(t))[:, None]

        return self._folded(starts, E.shape[1], rows)

    def triples_by_node(self, triples: np.ndarray, lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
        """Where the nodes lo .. hi-1 stand among the subjects, then the objects.

        returns   starts [hi - lo + 1], and places: those of a node ascending, t more for an object
        """
        node = np.concatenate([triples[0], triples[2]])
        near = np.flatnonzero((node >= lo) & (node < hi))
        near = near[np.argsort(node[near], kind="stable")]
        return np.searchsorted(node[near], np.arange(lo, hi + 1)), near

    def _take(self, X: Array, index: np.ndarray) -> Array:
        return self.xp.take(X, self.put(np.ascontiguousarray(index)), axis=0)

    def _pieces(self, first: int, last: int, columns: int) -> list[tuple[int, int]]:
        """[first, last) in ranges of rows that are worked on together."""
        most = max(1, PIECE_BYTES[self.xp is np] // (4 * columns))
        return [(lo, min(lo + most, last)) for lo in range(first, last, most)]

    def _folded(self, starts: np.ndarray, columns: int, rows: Callable[[int, int], Array]) -> Array:
        """`fold` of rows that are made a piece at a time: a sum that is cut goes on from what it was."""
        xp, starts = self.xp, np.asarray(starts)
        out = xp.zeros((len(starts) - 1, columns), dtype=np.float32)
        for lo, hi in self._pieces(int(starts[0]), int(starts[-1]), columns):
            first = int(np.searchsorted(starts, lo, side="right")) - 1
            last = int(np.searchsorted(starts, hi, side="left"))
            cuts, X = np.clip(starts[first : last + 1], lo, hi) - lo, rows(lo, hi)
            if starts[first] < lo:
                X, cuts = xp.concatenate([out[first : first + 1], X]), cuts + 1
                cuts[0] = 0
            out[first:last] = self.fold(cuts, X)
        return out
