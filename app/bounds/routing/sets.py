"""Sets of customers that routes enter and leave, and how often they have to.

With x_e how often the routes use the edge e, x(delta(S)) the sum over edges with one end in the set S:
whatever the routes are, x(delta(S)) is even, for every customer has degree 2, and
    rounded capacity inequality   x(delta(S)) >= 2 ceil(demand of S / capacity)
says how many vehicles S needs. The set of all customers tells the number of routes: x(delta) is twice that.

Source   Laporte and Nobert 1983
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from app.bounds.tour.cuts import rows_of
from app.graphs.deliveries import Deliveries


class Sets:
    """Sets of customers of one problem, each of them once; their numbers are places in `members`.

    members   of each, int32, ascending        fewest   vehicles that each needs: x(delta(S)) >= 2 fewest
    everyone  number of the set of all customers
    """

    def __init__(self, n: int, deliveries: Deliveries) -> None:
        self.n, self.deliveries = n, deliveries
        self.members: list[np.ndarray] = []
        self.fewest: list[int] = []
        self._number: dict[bytes, int] = {}
        self._matrix = sp.csr_array((0, n), dtype=np.int64)
        self.everyone = self.number(np.delete(np.arange(n), deliveries.depot))

    def number(self, members: np.ndarray) -> int:
        """The number of a set of customers."""
        members = np.sort(np.asarray(members)).astype(np.int32)
        number = self._number.setdefault(members.tobytes(), len(self.members))
        if number == len(self.members):
            self.members.append(members)
            self.fewest.append(vehicles_for(self.deliveries, members))
        return number

    @property
    def matrix(self) -> sp.csr_array:
        """[sets, n] int64: 1 where a customer is a member."""
        known = self._matrix.shape[0]
        if known < len(self.members):
            self._matrix = sp.vstack([self._matrix, rows_of(self.members[known:], self.n)], format="csr")
        return self._matrix

    def boundary(self, u: np.ndarray, v: np.ndarray, x: np.ndarray) -> np.ndarray:
        """[sets] x(delta(S)) of a point x on the edges u-v."""
        joins = sp.csr_array((np.tile(x, 2), (np.append(u, v), np.append(v, u))), shape=(self.n, self.n))
        inside = (self.matrix @ joins).multiply(self.matrix).sum(axis=1)
        return self.matrix @ np.asarray(joins.sum(axis=1)).ravel() - inside

    def crossings(self, sets: Sequence[int], u: np.ndarray, v: np.ndarray) -> sp.csr_array:
        """[sets, edges] int64: 1 where the edge u-v leaves a set."""
        rows = self.matrix[list(sets)].tocsc()
        at, to = rows[:, u], rows[:, v]
        crossed = sp.csr_array(at + to - 2 * at.multiply(to))
        crossed.eliminate_zeros()
        return crossed


def vehicles_for(deliveries: Deliveries, members: np.ndarray) -> int:
    """Vehicles that customers need at least: one, and as many as carry their demand."""
    return max(1, -(-int(deliveries.demand[members].sum()) // deliveries.capacity))
