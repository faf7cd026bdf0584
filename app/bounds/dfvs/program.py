"""The linear program of a part by HiGHS: w x least, 1 at least on cycles, |C| - 1 on cliques, 0 <= x <= 1."""

import numpy as np

from app.bounds.dfvs.rows import Row
from app.bounds.highs import SIMPLEX, ints, new_solver

MOST_STEPS = (1 << 31) - 1
COST = 1.0  # mean cost of a node in the program


class Program:
    """The program of one part; its rows are those of `rows`, from 0 on, as far as they are in force.

    rows    all rows ever added
    x [n], y [rows], value   of the last optimum, in prices
    """

    def __init__(self, price: np.ndarray) -> None:
        """price   [n] int64"""
        import highspy  # not needed by those who start the program for something else

        self._highs, self.rows, self._known = highspy, [], set()
        n = len(price)
        self._unit = float(price.mean()) / COST
        self._solver = solver = new_solver(**SIMPLEX)
        empty = ints(np.zeros(n)), ints([]), np.zeros(0)
        solver.addCols(n, price / self._unit, np.zeros(n), np.ones(n), 0, *empty)
        self._n, self._low, self._high = n, np.zeros(n), np.ones(n)
        self.x, self.y, self.value = np.zeros(n), np.zeros(0), 0.0

    def add(self, rows: list[Row]) -> int:
        """More rows; returns how many are new."""
        new = [row for row in dict.fromkeys(rows) if self._key(row) not in self._known]
        if not new:
            return 0
        self._known.update(map(self._key, new))
        sizes = np.array([len(nodes) for nodes, _ in new])
        start, total = np.append(0, np.cumsum(sizes)[:-1]), int(sizes.sum())
        sides = np.array([len(nodes) - 1 if clique else 1 for nodes, clique in new], dtype=np.float64)
        columns = np.concatenate([np.array(nodes) for nodes, _ in new])
        free = np.full(len(new), self._highs.kHighsInf)
        self._solver.addRows(len(new), sides, free, total, ints(start), ints(columns), np.ones(total))
        self.rows += new
        return len(new)

    @staticmethod
    def _key(row: Row) -> frozenset[int]:
        return frozenset((-1, *row[0])) if row[1] and len(row[0]) > 2 else frozenset(row[0])

    def fix(self, inside: list[int], outside: list[int]) -> None:
        """From now on x is 1 at some nodes, 0 at others."""
        low, high = np.zeros(self._n), np.ones(self._n)
        low[inside], high[outside] = 1, 0
        changed = np.flatnonzero((low != self._low) | (high != self._high))
        if len(changed):
            self._solver.changeColsBounds(len(changed), ints(changed), low[changed], high[changed])
        self._low, self._high = low, high

    def tried(self, steps: int) -> float | None:
        """About the optimum after so many steps of the simplex method, at most; None: there is no point."""
        solver, status = self._solver, self._highs.HighsModelStatus
        solver.setOptionValue("simplex_iteration_limit", steps)
        solver.run()
        solver.setOptionValue("simplex_iteration_limit", MOST_STEPS)
        if solver.getModelStatus() == status.kInfeasible:
            return None
        return solver.getInfo().objective_function_value * self._unit

    def solve(self, seconds: float) -> bool | None:
        """Find the optimum; False: there is no point; None: HiGHS has failed, or not come to it in time."""
        solver, status = self._solver, self._highs.HighsModelStatus
        solver.setOptionValue("time_limit", solver.getRunTime() + seconds)
        solver.run()
        found = solver.getModelStatus()
        if found == status.kInfeasible:
            return False
        if found != status.kOptimal:
            return None
        solution = solver.getSolution()
        self.x = np.clip(np.array(solution.col_value), 0, 1)
        self.y = np.maximum(np.array(solution.row_dual), 0) * self._unit
        self.value = solver.getInfo().objective_function_value * self._unit
        return True
