"""Minimum directed feedback vertex set: the fewest nodes without which no directed cycle is left."""

from typing import Any, ClassVar

import numpy as np

from app.graphs.graph import Graph
from app.problems.sets import SetProblem
from app.problems.unlearned import Unlearned
from app.search.dfvs.baselines import FEEDBACK_BASELINES
from app.search.dfvs.tools import DirectedFeedbackTools
from app.toolbox import Instance


class DirectedFeedbackVertexSet(Unlearned, SetProblem):
    """A solution is [n] bool, the nodes taken out."""

    name = "dfvs"
    sense = "minimise"
    solution = "feedback vertex set"
    baselines: ClassVar = FEEDBACK_BASELINES

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """What is no mask; whether a directed cycle is left is the toolbox's to see."""
        fits = solution_all.shape == (graph_rows.n,) and solution_all.dtype == bool
        return None if fits else f"is {solution_all.dtype} {solution_all.shape}, not a mask of the nodes"

    def toolbox(self, instance: Instance) -> Any:
        """Reductions, a greedy start, a search and bounds."""
        return DirectedFeedbackTools(instance, self)
