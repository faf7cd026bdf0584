"""The linear program of a travelling salesman problem over some of its edges, solved by HiGHS.

    minimise sum of c_e x_e, every city's edges adding up to 2, 0 <= x <= 1, and cuts (cuts.py)

Dual values prove a bound whatever they are, as long as those of cuts are not negative: with the reduced cost
    r_e = c_e - pi_u - pi_v - sum over cuts of y times the number of the cut's sets that e leaves
of the edge e = u-v, a tour is at least as long as
    2 sum pi + sum y least(cut) + sum over edges of min(0, r_e),
for multiplied by x_e and added up over a tour's edges, r_e says so. Duals are rounded to multiples of
2^-places, after which all of this is whole numbers.

Source   Dantzig, Fulkerson and Johnson 1954; exact bounds from rounded duals: Applegate, Bixby, Chvatal and
         Cook 2006, section 5.4
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from app.bounds.highs import SIMPLEX, ints, new_solver
from app.bounds.tour.cuts import Cuts, least
from app.bounds.tour.proof import Duals
from app.graphs.metric import Metric

PLACES, MOST_BITS = 20, 50  # binary ones of duals; of the longest distance in their units
LARGEST_DUAL = 1 << 52
COST = 100.0  # mean cost of an edge in the program
IDLE = 0.1  # a cut with more slack is dropped
PIECE = 1 << 21  # pairs looked at together


class TourProgram:
    """The program over the edges it knows, and dual values of its optimum.

    u, v, cost   [m] the edges, u < v
    x, value     the last optimum; reduced [m] its reduced costs
    rows         numbers of the cuts in the program
    """

    def __init__(self, metric: Metric, cuts: Cuts, edges: np.ndarray) -> None:
        """edges   [m, 2]"""
        import highspy  # not needed by those who start the program for something else

        self.metric, self.cuts, self._highs = metric, cuts, highspy
        self.rows: list[int] = []
        self.u = self.v = self.cost = np.zeros(0, dtype=np.int64)
        self.x, self.value, self._idle = np.zeros(0), 0.0, np.zeros(0)
        self._pi, self._y = np.zeros(metric.n), np.zeros(0)
        self._solver = new_solver(**SIMPLEX)
        n = metric.n
        self._solver.addRows(n, np.full(n, 2.0), np.full(n, 2.0), 0, ints(np.zeros(n)), ints([]), np.zeros(0))
        self._places = places_for(metric)
        total = float(metric.between(*np.asarray(edges).T).sum())
        self._unit = max(total / max(len(edges), 1), 1e-9) / COST
        self.add_edges(edges)

    @property
    def keys(self) -> np.ndarray:
        """[m] u * n + v"""
        return self.u * self.metric.n + self.v

    def add_edges(self, edges: np.ndarray) -> int:
        """More edges [k, 2]; returns how many were new."""
        n = self.metric.n
        ends = np.sort(np.asarray(edges, dtype=np.int64).reshape(-1, 2), axis=1)
        keys = np.setdiff1d(ends[:, 0] * n + ends[:, 1], self.keys)
        if not len(keys):
            return 0
        u, v = keys // n, keys % n
        cost, m = self.metric.between(u, v), len(keys)
        degrees = sp.csr_array((np.ones(2 * m), (np.append(u, v), np.tile(np.arange(m), 2))), shape=(n, m))
        blocks = [degrees] + ([self.cuts.coefficients(self.rows, u, v)] if self.rows else [])
        matrix = sp.csc_array(sp.vstack(blocks)).astype(np.float64)
        columns = ints(matrix.indptr[:-1]), ints(matrix.indices), matrix.data
        self._solver.addCols(m, cost / self._unit, np.zeros(m), np.ones(m), matrix.nnz, *columns)
        self.u, self.v = np.append(self.u, u), np.append(self.v, v)
        self.cost = np.append(self.cost, cost)
        return m

    def add_cuts(self, cuts: list[int]) -> int:
        """More cuts, by their numbers; returns how many were not in the program."""
        new = sorted(set(cuts) - set(self.rows))
        if not new:
            return 0
        matrix = self.cuts.coefficients(new, self.u, self.v)
        right = np.array([least(self.cuts.cuts[cut]) for cut in new], dtype=np.float64)
        free = np.full(len(new), self._highs.kHighsInf)
        rows = ints(matrix.indptr[:-1]), ints(matrix.indices), matrix.data.astype(np.float64)
        self._solver.addRows(len(new), right, free, matrix.nnz, *rows)
        self.rows += new
        return len(new)

    def fix(self, fixed: dict[int, int]) -> None:
        """Columns with a value of their own; the others are free."""
        m = len(self.u)
        low, high = np.zeros(m), np.ones(m)
        for column, value in fixed.items():
            low[column] = high[column] = value
        self._solver.changeColsBounds(m, ints(np.arange(m)), low, high)

    def solve(self) -> bool:
        """Find the optimum; False where there is no point at all, or HiGHS failed."""
        self._solver.run()
        if self._solver.getModelStatus() != self._highs.HighsModelStatus.kOptimal:
            return False
        found = self._solver.getSolution()
        self.x, row_dual = np.array(found.col_value), np.array(found.row_dual)
        n = self.metric.n
        self._pi, self._y = row_dual[:n] * self._unit, np.maximum(row_dual[n:], 0) * self._unit
        right = np.array([least(self.cuts.cuts[cut]) for cut in self.rows])
        self._idle = np.array(found.row_value)[n:] - right
        self.value = self._solver.getInfo().objective_function_value * self._unit
        return True

    def drop_idle(self, fewest: int) -> None:
        """Leave out the cuts with slack in the last optimum, where they are not few."""
        idle = np.flatnonzero(self._idle > IDLE)
        if len(idle) < fewest:
            return
        self._solver.deleteRows(len(idle), ints(self.metric.n + idle))
        kept = np.setdiff1d(np.arange(len(self.rows)), idle)
        self.rows = [self.rows[place] for place in kept.tolist()]
        self._idle, self._y = self._idle[kept], self._y[kept]

    def tried(self, column: int, value: int, steps: int) -> float | None:
        """The optimum, or what so many steps towards it reach, with a column fixed; None: no point is left.

        Leaves the program as it is after the last `solve`, which `remember` has to follow.
        """
        kind, solver = self._highs.HighsModelStatus, self._solver
        solver.setOptionValue("simplex_iteration_limit", steps)
        solver.changeColBounds(column, float(value), float(value))
        solver.run()
        status = solver.getModelStatus()
        reached = solver.getInfo().objective_function_value * self._unit
        solver.changeColBounds(column, 0.0, 1.0)
        solver.setBasis(self._basis)
        solver.setOptionValue("simplex_iteration_limit", self._highs.kHighsIInf)
        return None if status == kind.kInfeasible else reached

    def remember(self) -> None:
        """Keep the basis of the last optimum for `tried`."""
        self._basis = self._solver.getBasis()

    def duals(self) -> Duals | None:
        """Those of the last optimum, rounded; None: out of range."""
        return self._rounded(self._pi, self._y)

    def ray(self, length: float) -> Duals | None:
        """Those of the last optimum, and a direction in which they grow for ever; None: none is known.

        Where a program has no point, such a direction proves it. Its largest entry gets this length.
        """
        _, exists, ray = self._solver.getDualRay()
        ray, n = np.asarray(ray, dtype=np.float64), self.metric.n
        if not exists or len(ray) != n + len(self.rows) or not np.abs(ray).max(initial=0) > 0:
            return None
        ray = ray * (length / np.abs(ray).max())
        y = np.append(self._y, np.zeros(len(self.rows) - len(self._y)))
        return self._rounded(self._pi + ray[:n], np.maximum(y + ray[n:], 0))

    def _rounded(self, pi: np.ndarray, y: np.ndarray) -> Duals | None:
        pi, y = np.ldexp(pi, self._places), np.ldexp(y, self._places)
        if not (np.abs(pi).max(initial=0) < LARGEST_DUAL and y.sum() < LARGEST_DUAL):
            return None
        y = np.rint(y).astype(np.int64)
        used = np.flatnonzero(y)
        return Duals(np.rint(pi).astype(np.int64), np.array(self.rows, dtype=np.int64)[used], y[used])


def places_for(metric: Metric) -> int:
    """Binary places of duals: fewer where distances are large."""
    longest = int(metric.matrix.max(initial=0)) if metric.matrix is not None else 1 << 31
    return max(0, min(PLACES, MOST_BITS - longest.bit_length()))


def constant(cuts: Cuts, duals: Duals) -> int:
    """2 sum pi + sum y least(cut), in multiples of 2^-places."""
    rights = [least(cuts.cuts[cut]) for cut in duals.cuts.tolist()]
    return 2 * sum(duals.pi.tolist()) + sum(y * right for y, right in zip(duals.y.tolist(), rights))


def pairs_below(
    metric: Metric, cuts: Cuts, duals: Duals, most: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """All edges i < j of a reduced cost of at most `most`: arrays (i, j, reduced cost), piece after piece.

    An edge inside a set leaves it not, whereas pi of its ends together with y of the sets around each would
    count it twice: what that comes to is looked at for those edges alone that may have a cost so low.
    """
    n, places = metric.n, places_for(metric)
    weight = np.zeros(len(cuts.sets), dtype=np.int64)
    for cut, y in zip(duals.cuts.tolist(), duals.y.tolist()):
        weight[list(cuts.cuts[cut])] += y
    used = np.flatnonzero(weight)
    around = cuts.matrix[used].T.tocsr()  # [n, sets used]
    weight = weight[used]
    potential = duals.pi + around @ weight
    rows = max(1, PIECE // n)
    for first in range(0, n, rows):
        at = np.arange(first, min(first + rows, n))
        cost = (metric.between(at[:, None], np.arange(n)) << places) - potential[at, None] - potential
        i, j = np.nonzero((cost <= most) & (np.arange(n) > at[:, None]))
        reduced, i = cost[i, j], at[i]
        for part in range(0, len(i), PIECE):
            piece = slice(part, part + PIECE)
            a, b, r = i[piece], j[piece], reduced[piece]
            r = r + 2 * (around[a].multiply(around[b]) @ weight)
            kept = r <= most
            yield a[kept], b[kept], r[kept]
