"""Minimum feedback vertex set: the fewest (lightest) nodes without which a graph is a forest."""

from typing import ClassVar

import numpy as np

from app.bounds.feasible import node_of_cycle
from app.graphs.graph import Graph
from app.problems.sets import SetProblem
from app.search.fvs.baselines import FEEDBACK_BASELINES
from app.search.fvs.tools import FeedbackTools
from app.toolbox import Instance


class FeedbackVertexSet(SetProblem):
    """A solution is [n] bool, the nodes that are taken out; what is left is a largest (heaviest) induced
    forest.

    No policy answers it, so that it has no states.
    """

    name = "fvs"
    sense = "minimise"
    solution = "feedback vertex set"
    dynamics = ""
    redundancy = ""
    baselines: ClassVar = FEEDBACK_BASELINES
    bounds: ClassVar = {}
    known = False

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """A cycle of which no node is taken; of a graph that is held whole."""
        node = node_of_cycle(graph_rows, solution_all)
        return None if node is None else f"leaves a cycle through node {graph_rows.called(node)}"

    def toolbox(self, instance: Instance) -> FeedbackTools:
        """Reductions, a greedy start, a search, bounds."""
        return FeedbackTools(instance, self)
