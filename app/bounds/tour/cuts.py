"""Inequalities that every tour satisfies: sets of cities that it enters and leaves, and combs of them.

With x_e = 1 on the edges of a tour, 0 on others, x(delta(S)) the sum over edges with one end in the set S:
    subtour elimination   x(delta(S)) >= 2, S neither empty nor all
    comb                  x(delta(H)) + sum over k teeth T of x(delta(T)) >= 3k + 1: k odd, at least 3, the
                          teeth disjoint, each with cities in the handle H and outside it
A tooth that a tour enters once (2) holds an edge of delta(H), one that it enters more often has 4 or more.
With q teeth of the first kind the left side is at least q + 2q + 4(k - q), so 3k + 1 unless q = k; and then
delta(H), of which a tour has an even number of edges, holds k + 1 of them.

Sources  Dantzig, Fulkerson and Johnson 1954; Chvatal 1973; Groetschel and Padberg 1979
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from app.bounds.node_sets import NodeSets, rows_of
from app.graphs.keys import sorted_set

Cut = tuple[int, ...]  # numbers of sets; of a comb the handle first, then the teeth, ascending


def least(cut: Cut) -> int:
    """The right side of a cut's inequality."""
    return 2 if len(cut) == 1 else 3 * (len(cut) - 1) + 1


class Cuts(NodeSets):
    """Cuts of one problem, each of them once, and the sets that they are made of.

    cuts   number of each: its place in the list
    """

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.cuts: list[Cut] = []
        self._cut_numbers: dict[Cut, int] = {}
        self._table = sp.csr_array((0, 0), dtype=np.int64)

    @property
    def table(self) -> sp.csr_array:
        """[cuts, sets] int64: 1 where a set is one of a cut's."""
        known, shape = self._table.shape[0], (len(self.cuts), len(self.members))
        if known < len(self.cuts):
            self._table.resize(known, shape[1])
            new = [np.array(cut, dtype=np.int32) for cut in self.cuts[known:]]
            self._table = sp.vstack([self._table, rows_of(new, shape[1])], format="csr")
        return self._table

    def subtour(self, members: np.ndarray) -> int:
        """The number of the cut that a set makes, by the smaller of its two sides."""
        if 2 * len(members) > self.n:
            members = np.setdiff1d(np.arange(self.n), members)
        return self._numbered((self.number(members),))

    def comb(self, handle: np.ndarray, teeth: Sequence[np.ndarray]) -> int:
        """The number of a comb."""
        return self._numbered((self.number(handle), *sorted(self.number(tooth) for tooth in teeth)))

    def excess(self, boundary: np.ndarray) -> np.ndarray:
        """[cuts] left side less right side at a point whose `boundary` is given, of sets known by then."""
        table = self.table
        if len(boundary) < table.shape[1]:
            raise ValueError(f"boundary of {len(boundary)} sets; {table.shape[1]} would be right")
        sizes = np.diff(table.indptr)
        return table @ boundary - np.where(sizes == 1, 2, 3 * sizes - 2)

    def coefficients(self, cuts: Sequence[int], u: np.ndarray, v: np.ndarray) -> sp.csr_array:
        """[cuts, edges] int64: how many of a cut's sets an edge u-v leaves."""
        table = self.table[list(cuts)]
        used = sorted_set(table.indices)
        return sp.csr_array(table[:, used] @ self.crossings(used, u, v))

    def _numbered(self, cut: Cut) -> int:
        number = self._cut_numbers.setdefault(cut, len(self.cuts))
        if number == len(self.cuts):
            self.cuts.append(cut)
        return number
