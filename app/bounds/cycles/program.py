"""A linear program by HiGHS that grows by rows: w z least, A z >= b for the rows so far, 0 <= z <= 1."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from app.bounds.highs import SIMPLEX, ints, new_solver

MOST_STEPS = (1 << 31) - 1


class GrowingProgram(ABC):
    """A program of c columns.

    rows    all rows ever added
    point [c], duals [rows], value   of the last optimum, in the unit of the costs
    """

    def __init__(self, cost: np.ndarray, unit: float) -> None:
        """cost [c] int64     unit   of costs within HiGHS"""
        import highspy  # not needed by those who start the program for something else

        self._highs, self._unit, count = highspy, unit, len(cost)
        self.rows: list[Any] = []
        self._known: set[Any] = set()
        self._solver = new_solver(**SIMPLEX)
        empty = ints(np.zeros(count)), ints([]), np.zeros(0)
        self._solver.addCols(count, cost / unit, np.zeros(count), np.ones(count), 0, *empty)
        self._low, self._high = np.zeros(count), np.ones(count)
        self.point, self.duals, self.value = np.zeros(count), np.zeros(0), 0.0

    @abstractmethod
    def _as_rows(self, rows: list[Any]) -> tuple[np.ndarray, Any, Any, np.ndarray]:
        """b [k] float64 of rows, where each begins [k], and its columns and coefficients [entries]."""

    @staticmethod
    def _key(row: Any) -> Any:
        """Rows with the same are the same."""
        return row

    def add(self, rows: list[Any]) -> int:
        """More rows; returns how many are new."""
        new = [row for row in dict.fromkeys(rows) if self._key(row) not in self._known]
        if new:
            self._known.update(map(self._key, new))
            sides, start, columns, values = self._as_rows(new)
            free = np.full(len(new), self._highs.kHighsInf)
            self._solver.addRows(len(new), sides, free, len(values), ints(start), ints(columns), values)
            self.rows += new
        return len(new)

    def _confine(self, low: np.ndarray, high: np.ndarray) -> None:
        """From now on low <= z <= high, [c] float64 each."""
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
        self.point = np.clip(np.array(solution.col_value), 0, 1)
        self.duals = np.maximum(np.array(solution.row_dual), 0) * self._unit
        self.value = solver.getInfo().objective_function_value * self._unit
        return True
