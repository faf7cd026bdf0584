"""Linear ordering: an order of the nodes of a digraph with as little weight backward as may be."""

from typing import Any, ClassVar

import numpy as np

from app.graphs.graph import Graph
from app.problems.unlearned import Unlearned, not_numbers
from app.search.ordering.baselines import ORDERING_BASELINES
from app.search.ordering.tools import OrderingTools
from app.search.solution_text import order_text, read_ranks
from app.toolbox import Instance


class LinearOrdering(Unlearned):
    """The arcs that lead backward in an order are a feedback arc set, of least weight: without them there is
    no directed cycle. What is saved, the weight of those that lead forward, is as large as may be.

    A solution is [n] int64, the nodes from first to last.
    """

    name = "ordering"
    sense = "minimise"
    solution = "order"
    baselines: ClassVar = ORDERING_BASELINES
    text, read = staticmethod(order_text), staticmethod(read_ranks)

    def canonical(self, solution_all: np.ndarray) -> np.ndarray:
        """The order as it is: which ones are the same is the toolbox's to see."""
        return solution_all

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """What is not one number for each node; which ones is the toolbox's to see."""
        return not_numbers(graph_rows, solution_all, "place")

    def toolbox(self, instance: Instance) -> Any:
        """Reductions, a greedy start, a search and bounds."""
        return OrderingTools(instance, self)
