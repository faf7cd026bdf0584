"""Maximum coverage: the sets of a family that hold most elements, for a budget."""

from typing import Any, ClassVar

import numpy as np

from app.graphs.covering import count_candidates, demand_called
from app.graphs.graph import Graph
from app.problems.sets import SetProblem
from app.problems.unlearned import Unlearned
from app.search.coverage.baselines import COVERAGE_BASELINES
from app.search.coverage.tools import CoverageTools
from app.toolbox import Instance


class Coverage(Unlearned, SetProblem):
    """At most so many sets, or sets that cost at most so much, that hold elements of most weight.

    A solution is [n] bool, a mask of the nodes of the graph that stands for the family
    (app/graphs/covering.py): of its sets, never of an element or of the reference.
    """

    name = "coverage"
    sense = "maximise"
    solution = "choice of sets"
    candidate = "set"
    baselines: ClassVar = COVERAGE_BASELINES

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """What is no mask of the nodes, or holds what is no set; costs are the toolbox's to see."""
        if solution_all.shape != (graph_rows.n,) or solution_all.dtype != bool:
            return f"is {solution_all.dtype} {solution_all.shape}, not a mask of the nodes"
        return "holds what is no set" if solution_all[count_candidates(graph_rows) :].any() else None

    def called(self, graph: Graph, node: int) -> str:
        """A set or an element as its file calls it, for a message."""
        return graph.called(node) if node < count_candidates(graph) else demand_called(graph, node)

    def toolbox(self, instance: Instance) -> Any:
        """Reductions, greedy choices, a search and bounds."""
        return CoverageTools(instance, self)
