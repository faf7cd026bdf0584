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

from app.bounds import edge_program
from app.bounds.edge_program import EdgeProgram, rounded_duals
from app.bounds.highs import ints
from app.bounds.tour.cuts import Cuts, least
from app.bounds.tour.proof import Duals
from app.graphs.metric import Metric

PLACES, MOST_BITS = 20, 50  # binary ones of duals; of the longest distance in their units
LARGEST_DUAL = 1 << 52


class TourProgram(EdgeProgram):
    """The program over the edges it knows; its rows are cuts, whose duals are not negative."""

    def __init__(self, metric: Metric, cuts: Cuts, edges: np.ndarray) -> None:
        """edges   [m, 2]"""
        self.cuts = cuts
        super().__init__(metric, edges)

    def left_by(self, rows: list[int], u: np.ndarray, v: np.ndarray) -> sp.csr_array:
        """[rows, edges] how many sets of a cut the edge u-v leaves."""
        return self.cuts.coefficients(rows, u, v)

    def sides(self, rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Left and right sides of cuts."""
        low = np.array([least(self.cuts.cuts[cut]) for cut in rows], dtype=np.float64)
        return low, np.full(len(rows), self.highs.kHighsInf)

    def fix(self, fixed: dict[int, int]) -> None:
        """Columns with a value of their own; the others are free."""
        m = len(self.u)
        low, high = np.zeros(m), np.ones(m)
        for column, value in fixed.items():
            low[column] = high[column] = value
        self.solver.changeColsBounds(m, ints(np.arange(m)), low, high)

    def solve(self) -> bool:
        """Find the optimum; False where there is no point at all, or HiGHS failed."""
        found = super().solve()
        self.y = np.maximum(self.y, 0)
        return found

    def tried(self, column: int, value: int, steps: int) -> float | None:
        """The optimum, or what so many steps towards it reach, with a column fixed; None: no point is left.

        Leaves the program as it is after the last `solve`, which `remember` has to follow.
        """
        kind, solver = self.highs.HighsModelStatus, self.solver
        solver.setOptionValue("simplex_iteration_limit", steps)
        solver.changeColBounds(column, float(value), float(value))
        solver.run()
        status = solver.getModelStatus()
        reached = solver.getInfo().objective_function_value * self.unit
        solver.changeColBounds(column, 0.0, 1.0)
        solver.setBasis(self._basis)
        solver.setOptionValue("simplex_iteration_limit", self.highs.kHighsIInf)
        return None if status == kind.kInfeasible else reached

    def remember(self) -> None:
        """Keep the basis of the last optimum for `tried`."""
        self._basis = self.solver.getBasis()

    def duals(self) -> Duals | None:
        """Those of the last optimum, rounded; None: out of range."""
        return self._rounded(self.pi, self.y)

    def ray(self, length: float) -> Duals | None:
        """Those of the last optimum, and a direction in which they grow for ever; None: none is known.

        Where a program has no point, such a direction proves it. Its largest entry gets this length.
        """
        _, exists, ray = self.solver.getDualRay()
        ray, n = np.asarray(ray, dtype=np.float64), self.metric.n
        if not exists or len(ray) != n + len(self.rows) or not np.abs(ray).max(initial=0) > 0:
            return None
        ray = ray * (length / np.abs(ray).max())
        y = np.append(self.y, np.zeros(len(self.rows) - len(self.y)))
        return self._rounded(self.pi + ray[:n], np.maximum(y + ray[n:], 0))

    def _rounded(self, pi: np.ndarray, y: np.ndarray) -> Duals | None:
        found = rounded_duals(pi, y, places_for(self.metric), LARGEST_DUAL)
        if found is None:
            return None
        used = np.flatnonzero(found[1])
        return Duals(found[0], np.array(self.rows, dtype=np.int64)[used], found[1][used])


def places_for(metric: Metric) -> int:
    """Binary places of duals: fewer where distances are large."""
    return edge_program.places_for(metric, PLACES, MOST_BITS)


def constant(cuts: Cuts, duals: Duals) -> int:
    """2 sum pi + sum y least(cut), in multiples of 2^-places."""
    rights = [least(cuts.cuts[cut]) for cut in duals.cuts.tolist()]
    return 2 * sum(duals.pi.tolist()) + sum(y * right for y, right in zip(duals.y.tolist(), rights))


def pairs_below(metric: Metric, cuts: Cuts, duals: Duals, most: int) -> Iterator[edge_program.Edges]:
    """All edges i < j of a reduced cost of at most `most`: arrays (i, j, reduced cost), piece after piece."""
    weight = np.zeros(len(cuts.members), dtype=np.int64)
    for cut, y in zip(duals.cuts.tolist(), duals.y.tolist()):
        weight[list(cuts.cuts[cut])] += y
    used = np.flatnonzero(weight)
    around = cuts.matrix[used].T.tocsr()  # [n, sets used]
    return edge_program.pairs_below(metric, places_for(metric), duals.pi, around, weight[used], most)
