"""SetProblem: what problems share whose solution is a set of nodes."""

from typing import Any

import numpy as np

from app.problems.problem import NodesCount
from app.search.node_tools import NodeTools
from app.search.solution_text import nodes_text, read_nodes
from app.toolbox import Instance, Toolbox


class SetProblem(NodesCount):
    """The objective counts nodes, files have one id per line, the toolbox no reductions and no search."""

    complemented = False
    compiled_field = ""
    text, read = staticmethod(nodes_text), staticmethod(read_nodes)

    def limits(self, n: int) -> tuple[int, ...]:
        """No numbers."""
        return ()

    def canonical(self, solution_all: np.ndarray) -> np.ndarray:
        """The solution as it is."""
        return solution_all

    def toolbox(self, instance: Instance) -> Toolbox:
        """Baselines and bounds as the problem names them."""
        return NodeTools(instance, self)


class FewestNodes:
    """A policy chooses the nodes of the solution, and each costs one."""

    def reward(self, before: Any, after: Any, chosen: int, shaping: str) -> float:
        """-chosen, plus the gain of potential when shaped."""
        gain = self.potential(after) - self.potential(before) if shaping == "caro_wei" else 0.0
        return gain - chosen

    def objective(self, chosen: int, totals: Any) -> int:
        """The nodes chosen."""
        return chosen

    def solution_of(self, chosen_at: np.ndarray) -> np.ndarray:
        """The chosen nodes."""
        return chosen_at >= 0

    def bound(self, n: int, lower: int) -> int:
        """A lower bound."""
        return lower
