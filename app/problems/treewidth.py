"""Treewidth: an elimination order, and its tree decomposition, of the least width or fill-in."""

from typing import Any, ClassVar

import numpy as np

from app.graphs.graph import Graph
from app.problems.unlearned import Unlearned, not_numbers
from app.search.solution_text import order_text, read_order
from app.search.treewidth.baselines import ELIMINATION_BASELINES
from app.search.treewidth.tools import EliminationTools
from app.toolbox import Instance


class Treewidth(Unlearned):
    """A solution is [n] int64, the nodes in the order of their elimination (problem.eliminate)."""

    name = "treewidth"
    sense = "minimise"
    solution = "elimination order"
    baselines: ClassVar = ELIMINATION_BASELINES
    text, read = staticmethod(order_text), staticmethod(read_order)

    def canonical(self, solution_all: np.ndarray) -> np.ndarray:
        """The order as it is."""
        return solution_all

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """A node that is not there once."""
        if (wrong := not_numbers(graph_rows, solution_all, "place")) is not None:
            return wrong
        if not np.array_equal(np.sort(solution_all), np.arange(graph_rows.n)):
            return "does not have each node once"
        return None

    def toolbox(self, instance: Instance) -> Any:
        """Reductions, greedy starts, a search and bounds."""
        return EliminationTools(instance, self)
