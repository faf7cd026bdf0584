"""Quadratic functions of 0-1 variables (QUBO), as small as they get: a maximum cut in disguise."""

import numpy as np

from app.problems.maxcut import CutTotals, MaxCut
from app.search.cut.quadratic import QuadraticTools
from app.search.solution_text import read_sides, sides_text
from app.toolbox import Instance


class Qubo(MaxCut):
    """State: that of the cut which stands for the function (app/graphs/quadratic.py); its last node is no
    variable, but what the others are compared to.

    The objective is that of the function, -1/2 of the cut. Solutions are written without the last node: a
    variable is 1 where its node is on the other side.
    """

    name = "qubo"
    sense = "minimise"
    solution = "assignment"
    unit_share = 0.5
    values_text, read_values = staticmethod(sides_text), staticmethod(read_sides)

    def objective(self, chosen: int, totals: CutTotals) -> int:
        """The least value, in halves of the weights' unit."""
        return -totals.best

    def canonical(self, solution_all: np.ndarray) -> np.ndarray:
        """[n] bool, the same cut with the reference on side 0."""
        return solution_all ^ solution_all[-1:]

    def toolbox(self, instance: Instance) -> QuadraticTools:
        """Those of the cut."""
        return QuadraticTools(instance, self)

    def text(self, solution: np.ndarray, ids: np.ndarray) -> str:
        """Lines `id value` of the variables."""
        return self.values_text(solution[:-1] ^ solution[-1:], ids[:-1])

    def read(self, path: str, ids: np.ndarray) -> np.ndarray:
        """[n] bool: the variables that are 1, from lines `id value`, and the reference."""
        return np.append(self.read_values(path, ids[:-1]), False)
