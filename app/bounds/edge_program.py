"""Linear programs over some of the edges between n points, solved by HiGHS: what tours and routes share.

    minimise sum of c_e x_e, the edges of each point adding up to 2, 0 <= x <= 1, and rows of sets of points

Duals, rounded to multiples of 2^-places, prove bounds by whole numbers, whatever they are. They give the edge
e = u-v the reduced cost
    r_e = c_e - pi_u - pi_v - sum of y over the sets that e leaves

Source   Applegate, Bixby, Chvatal and Cook 2006, section 5.4 (rounded duals)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.bounds.highs import SIMPLEX, ints, new_solver
from app.graphs.keys import without
from app.graphs.metric import Metric

COST = 100.0  # mean cost of an edge in the program
IDLE = 0.1  # a row with more slack is dropped
PIECE = 1 << 21  # pairs looked at together
Edges = tuple[np.ndarray, np.ndarray, np.ndarray]


class EdgeProgram(ABC):
    """The program over the edges it knows, and dual values of its optimum.

    u, v, cost   [m] the edges, u < v        x, value   the last optimum        rows   numbers of its rows
    """

    def __init__(self, metric: Metric, edges: np.ndarray, free: int | None = None) -> None:
        """edges   [m, 2]        free   a point with any number of edges, each up to twice"""
        import highspy  # not needed by those who start the program for something else

        self.metric, self.free, self.highs = metric, free, highspy
        self.rows: list[int] = []
        self.u = self.v = self.cost = np.zeros(0, dtype=np.int64)
        self.x, self.value, self._idle = np.zeros(0), 0.0, np.zeros(0)
        self.pi, self.y = np.zeros(metric.n), np.zeros(0)
        self.solver = new_solver(**SIMPLEX)
        n = metric.n
        low, high = np.full(n, 2.0), np.full(n, 2.0)
        if free is not None:
            low[free], high[free] = -highspy.kHighsInf, highspy.kHighsInf
        self.solver.addRows(n, low, high, 0, ints(np.zeros(n)), ints([]), np.zeros(0))
        total = float(metric.between(*np.asarray(edges).T).sum())
        self.unit = max(total / max(len(edges), 1), 1e-9) / COST
        self.add_edges(edges)

    @abstractmethod
    def left_by(self, rows: list[int], u: np.ndarray, v: np.ndarray) -> sp.csr_array:
        """[rows, edges] how many sets of a row the edge u-v leaves."""

    @abstractmethod
    def sides(self, rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Left and right sides of rows, float64."""

    @property
    def keys(self) -> np.ndarray:
        """[m] u * n + v"""
        return self.u * self.metric.n + self.v

    def add_edges(self, edges: np.ndarray) -> int:
        """More edges [k, 2]; returns how many were new."""
        n = self.metric.n
        ends = np.sort(np.asarray(edges, dtype=np.int64).reshape(-1, 2), axis=1)
        keys = without(ends[:, 0] * n + ends[:, 1], self.keys)
        if not len(keys):
            return 0
        u, v = keys // n, keys % n
        cost, m = self.metric.between(u, v), len(keys)
        degrees = sp.csr_array((np.ones(2 * m), (np.append(u, v), np.tile(np.arange(m), 2))), shape=(n, m))
        blocks = [degrees] + ([self.left_by(self.rows, u, v)] if self.rows else [])
        matrix = sp.csc_array(sp.vstack(blocks)).astype(np.float64)
        columns = ints(matrix.indptr[:-1]), ints(matrix.indices), matrix.data
        high = np.where((u == self.free) | (v == self.free), 2.0, 1.0)
        self.solver.addCols(m, cost / self.unit, np.zeros(m), high, matrix.nnz, *columns)
        self.u, self.v = np.append(self.u, u), np.append(self.v, v)
        self.cost = np.append(self.cost, cost)
        return m

    def add_rows(self, rows: list[int]) -> int:
        """More rows, by their numbers; returns how many were not in the program."""
        new = sorted(set(rows) - set(self.rows))
        if not new:
            return 0
        matrix = self.left_by(new, self.u, self.v)
        entries = ints(matrix.indptr[:-1]), ints(matrix.indices), matrix.data.astype(np.float64)
        self.solver.addRows(len(new), *self.sides(new), matrix.nnz, *entries)
        self.rows += new
        return len(new)

    def solve(self) -> bool:
        """Find the optimum; False where there is no point at all, or HiGHS failed."""
        self.solver.run()
        if self.solver.getModelStatus() != self.highs.HighsModelStatus.kOptimal:
            return False
        found, n = self.solver.getSolution(), self.metric.n
        self.x, row_dual = np.array(found.col_value), np.array(found.row_dual)
        self.pi, self.y = row_dual[:n] * self.unit, row_dual[n:] * self.unit
        low, high = self.sides(self.rows)
        value = np.array(found.row_value)[n:]
        self._idle = np.minimum(value - low, high - value)
        self.value = self.solver.getInfo().objective_function_value * self.unit
        return True

    def drop_idle(self, fewest: int, needed: int = -1) -> None:
        """Leave out the rows but `needed` with slack in the last optimum, where they are not few."""
        idle = np.flatnonzero((self._idle > IDLE) & (np.array(self.rows) != needed))
        if len(idle) < fewest:
            return
        self.solver.deleteRows(len(idle), ints(self.metric.n + idle))
        kept = without(np.arange(len(self.rows)), idle)
        self.rows = [self.rows[place] for place in kept.tolist()]
        self._idle, self.y = self._idle[kept], self.y[kept]


def places_for(metric: Metric, most: int, most_bits: int) -> int:
    """Binary places of duals, at most so many, fewer where the longest distance would have more bits."""
    longest = int(metric.matrix.max(initial=0)) if metric.matrix is not None else 1 << 31
    return max(0, min(most, most_bits - longest.bit_length()))


def rounded_duals(
    pi: np.ndarray, y: np.ndarray, places: int, largest: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """In multiples of 2^-places, int64; None: too large."""
    pi, y = np.ldexp(pi, places), np.ldexp(y, places)
    if not (np.abs(pi).max(initial=0) < largest and np.abs(y).sum() < largest):
        return None
    return np.rint(pi).astype(np.int64), np.rint(y).astype(np.int64)


def pairs_below(
    metric: Metric, places: int, pi: np.ndarray, around: Any, y: np.ndarray, most: int,
    fits: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> Iterator[Edges]:  # fmt: skip
    """All edges i < j of a reduced cost of at most `most`: arrays (i, j, reduced cost), piece after piece.

    around, y   [n, sets] 1 where a point is in a set; [sets] int64
    fits        whether there are edges between points i and j at all; None: between all

    An edge inside a set leaves it not, whereas pi of its ends together with y of the sets around each would
    count it twice: what that comes to is looked at for those edges alone that may have a cost so low. That of
    sets of negative value, which may lower the cost, is taken off beforehand.
    """
    n, potential = metric.n, pi + around @ y
    lower = 2 * int(np.minimum(y, 0).sum())
    rows = max(1, PIECE // n)
    for first in range(0, n, rows):
        at = np.arange(first, min(first + rows, n))
        cost = (metric.between(at[:, None], np.arange(n)) << places) - potential[at, None] - potential
        i, j = np.nonzero((cost + lower <= most) & (np.arange(n) > at[:, None]))
        reduced, i = cost[i, j], at[i]
        for part in range(0, len(i), PIECE):
            piece = slice(part, part + PIECE)
            a, b, r = i[piece], j[piece], reduced[piece]
            r = r + 2 * np.asarray(around[a].multiply(around[b]) @ y).ravel()
            kept = r <= most
            if fits is not None:
                kept[kept] = fits(a[kept], b[kept])
            yield a[kept], b[kept], r[kept]
