"""The linear program of a part by HiGHS: w y least, 0 <= y <= 1, with a row for each cycle (witness.py)."""

import numpy as np

from app.bounds.highs import SIMPLEX, ints, new_solver
from app.graphs.ordering import NetArcs

MOST_STEPS = (1 << 31) - 1
Cycle = tuple[int, ...]


class Program:
    """The program of one part.

    tails, heads   [c] int64, the ends of y: net arcs, and where there is a y for each pair those without one
    cycles         all rows ever added, the smallest node first
    y [c], g [rows], value   of the last optimum, in weights
    """

    def __init__(self, net: NetArcs, dense: bool) -> None:
        """dense   a y for each pair of nodes"""
        import highspy  # not needed by those who start the program for something else

        self._highs, self.cycles, self._known = highspy, [], set()
        n = self.n = net.n
        self.tails, self.heads, weights = net.tails, net.heads, net.weights
        if dense:
            there = np.eye(n, dtype=bool)
            there[net.tails, net.heads] = there[net.heads, net.tails] = True
            low, high = np.nonzero(np.triu(~there))
            self.tails, self.heads = np.append(self.tails, low), np.append(self.heads, high)
            weights = np.append(weights, np.zeros(len(low), dtype=np.int64))
        self.number = {pair: i for i, pair in enumerate(zip(self.tails.tolist(), self.heads.tolist()))}
        count = len(self.tails)
        self._unit = float(net.weights.mean())
        self._solver = new_solver(**SIMPLEX)
        empty = ints(np.zeros(count)), ints([]), np.zeros(0)
        self._solver.addCols(count, weights / self._unit, np.zeros(count), np.ones(count), 0, *empty)
        self._low, self._high = np.zeros(count), np.ones(count)
        self.y, self.g, self.value = np.zeros(count), np.zeros(0), 0.0

    def add(self, cycles: list[Cycle]) -> int:
        """More rows; returns how many are new."""
        new = [cycle for cycle in dict.fromkeys(cycles) if cycle not in self._known]
        if not new:
            return 0
        self._known.update(new)
        start, columns, values, sides = [], [], [], []
        for cycle in new:
            start.append(len(columns))
            against = 0
            for u, v in zip(cycle, (*cycle[1:], cycle[0])):
                along = self.number.get((u, v))
                columns.append(self.number[v, u] if along is None else along)
                values.append(-1.0 if along is None else 1.0)
                against += along is None
            sides.append(1.0 - against)
        free = np.full(len(new), self._highs.kHighsInf)
        self._solver.addRows(
            len(new), np.array(sides), free, len(columns), ints(start), ints(columns), np.array(values)
        )
        self.cycles += new
        return len(new)

    def fix(self, fixed: list[tuple[int, int]]) -> None:
        """From now on the first of some pairs of nodes stand before the second."""
        low, high = np.zeros(len(self.tails)), np.ones(len(self.tails))
        for u, v in fixed:
            along = self.number.get((u, v))
            if along is None:
                low[self.number[v, u]] = 1
            else:
                high[along] = 0
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
        self.y = np.clip(np.array(solution.col_value), 0, 1)
        self.g = np.maximum(np.array(solution.row_dual), 0) * self._unit
        self.value = solver.getInfo().objective_function_value * self._unit
        return True
