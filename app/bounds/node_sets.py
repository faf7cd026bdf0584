"""Sets of nodes that tours and routes enter and leave.

x(delta(S)) is the sum of x over the edges with one end in the set S.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp


class NodeSets:
    """Sets of nodes of one problem, each of them once; their numbers are places in `members`.

    members   of each, int32, ascending
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.members: list[np.ndarray] = []
        self._numbers: dict[bytes, int] = {}
        self._matrix = sp.csr_array((0, n), dtype=np.int64)

    def number(self, members: np.ndarray) -> int:
        """The number of a set of nodes."""
        members = np.sort(np.asarray(members)).astype(np.int32)
        number = self._numbers.setdefault(members.tobytes(), len(self.members))
        if number == len(self.members):
            self.members.append(members)
        return number

    @property
    def matrix(self) -> sp.csr_array:
        """[sets, n] int64: 1 where a node is a member."""
        known = self._matrix.shape[0]
        if known < len(self.members):
            self._matrix = sp.vstack([self._matrix, rows_of(self.members[known:], self.n)], format="csr")
        return self._matrix

    def boundary(self, u: np.ndarray, v: np.ndarray, x: np.ndarray) -> np.ndarray:
        """[sets] x(delta(S)) of a point x on the edges u-v."""
        joins = sp.csr_array((np.tile(x, 2), (np.append(u, v), np.append(v, u))), shape=(self.n, self.n))
        inside = (self.matrix @ joins).multiply(self.matrix).sum(axis=1)
        return self.matrix @ np.asarray(joins.sum(axis=1)).ravel() - inside

    def crossings(self, sets: Sequence[int] | np.ndarray, u: np.ndarray, v: np.ndarray) -> sp.csr_array:
        """[sets, edges] int64: 1 where the edge u-v leaves a set."""
        rows = self.matrix[list(sets)].tocsc()
        at, to = rows[:, u], rows[:, v]
        crossed = sp.csr_array(at + to - 2 * at.multiply(to))
        crossed.eliminate_zeros()
        return crossed


def rows_of(sets: Sequence[np.ndarray], n: int) -> sp.csr_array:
    """[sets, n] int64: 1 where a node is a member of a set."""
    ptr = np.append(0, np.cumsum([len(members) for members in sets])).astype(np.int64)
    nodes = np.concatenate([*sets, np.zeros(0, dtype=np.int32)])
    return sp.csr_array((np.ones(len(nodes), dtype=np.int64), nodes, ptr), shape=(len(sets), n))
