"""Graph colouring: the fewest colours such that adjacent nodes have different ones."""

from typing import ClassVar

import numpy as np

from app.bounds.feasible import edge_of_one_color
from app.graphs.graph import Graph
from app.problems.labels import NodeLabels
from app.search.coloring.baselines import COLORING_BASELINES
from app.search.coloring.tools import ColoringTools
from app.search.solution_text import read_colors
from app.toolbox import Instance


class GraphColoring(NodeLabels):
    """A solution is [n] int64, the colour of each node, from 0 on.

    Classes that the policy of `mis` takes one after the other, each as large as it can be, leave a rest that
    takes many more: 7 or 8 colours where DSATUR takes 5 (Barabási-Albert graphs of 75 to 180 nodes), 9 to 12
    where it takes 8 to 10 (random graphs, p = .15).
    """

    name = "coloring"
    sense = "minimise"
    solution = "coloring"
    baselines: ClassVar = COLORING_BASELINES
    read = staticmethod(read_colors)

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """An edge with both ends of one colour."""
        edge = edge_of_one_color(graph_rows, solution_all)
        return None if edge is None else f"gives both ends of edge {graph_rows.called(*edge)} one colour"

    def toolbox(self, instance: Instance) -> ColoringTools:
        """Reductions, a greedy start, search and bounds."""
        return ColoringTools(instance, self)
