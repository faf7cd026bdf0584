"""Treewidth: an elimination order, and its tree decomposition, of the least width or fill-in."""

from typing import Any, ClassVar

import numpy as np

from app.graphs.graph import Graph
from app.problems.orders import OrderProblem
from app.search.solution_text import read_order
from app.search.treewidth.baselines import ELIMINATION_BASELINES
from app.search.treewidth.tools import EliminationTools
from app.toolbox import Instance


class Treewidth(OrderProblem):
    """Nodes are eliminated in their order, which is worth what problem.eliminate says."""

    name = "treewidth"
    solution = "elimination order"
    baselines: ClassVar = ELIMINATION_BASELINES
    read = staticmethod(read_order)

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """A node that is not there once."""
        if (wrong := super().violation(graph_rows, solution_all)) is not None:
            return wrong
        if not np.array_equal(np.sort(solution_all), np.arange(graph_rows.n)):
            return "does not have each node once"
        return None

    def toolbox(self, instance: Instance) -> Any:
        """Reductions, greedy starts, a search and bounds."""
        return EliminationTools(instance, self)
