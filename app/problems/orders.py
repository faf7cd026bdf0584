"""Problems whose solutions are orders of all nodes."""

import numpy as np

from app.graphs.graph import Graph
from app.problems.unlearned import Unlearned, not_numbers
from app.search.solution_text import order_text, read_ranks


class OrderProblem(Unlearned):
    """A solution is [n] int64, the nodes from first to last, and is worth as little as may be."""

    sense = "minimise"
    text, read = staticmethod(order_text), staticmethod(read_ranks)

    def canonical(self, solution_all: np.ndarray) -> np.ndarray:
        """The order as it is: which ones are the same is the toolbox's to see."""
        return solution_all

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """What is not one number for each node; which ones is the toolbox's to see."""
        return not_numbers(graph_rows, solution_all, "place")
