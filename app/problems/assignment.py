"""Quadratic assignment and graph alignment: the nodes of one graph are put on those of another."""

from typing import ClassVar

import numpy as np

from app.graphs.graph import Graph
from app.problems.unlearned import Unlearned, not_numbers
from app.search.assignment.baselines import BASELINES
from app.search.assignment.tools import AssignmentTools
from app.toolbox import Instance


class QuadraticAssignment(Unlearned):
    """Facilities on locations: the sum of flows times distances, and of linear costs, as small as may be.

    A solution is [n] int64, the node of the second graph that each node is put on; -1: none is left.
    """

    name = "qap"
    sense = "minimise"
    solution = "mapping"
    baselines: ClassVar = BASELINES

    def canonical(self, solution: np.ndarray) -> np.ndarray:
        """The mapping as it is."""
        return solution

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """What is not a number for each node; the rest is the toolbox's to see."""
        return not_numbers(graph_rows, solution_all, "place")

    def text(self, solution: np.ndarray, ids: np.ndarray) -> str:
        """The toolbox writes it: it knows the second graph."""
        raise NotImplementedError

    def toolbox(self, instance: Instance) -> AssignmentTools:
        """Plain assignments, searches, bounds."""
        return AssignmentTools(instance, self)


class GraphAlignment(QuadraticAssignment):
    """The same of edges that are to be kept: as many, or as much weight, as may be."""

    name = "alignment"
    sense = "maximise"
