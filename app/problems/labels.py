"""NodeLabels: what problems have in common whose solutions put each node in a class."""

import numpy as np

from app.graphs.graph import Graph
from app.problems.unlearned import Unlearned, not_numbers
from app.search.label_tools import in_order
from app.search.solution_text import colors_text


class NodeLabels(Unlearned):
    """A solution is [n] int64, the colour, community or block of each node, from 0 on."""

    text, canonical = staticmethod(colors_text), staticmethod(in_order)

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """What is not a number for each node; whether groups are feasible is the toolbox's to see."""
        return not_numbers(graph_rows, solution_all, "number")
