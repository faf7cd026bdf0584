"""Influence maximisation: the seeds from which news is expected to reach most nodes."""

from typing import Any, ClassVar

import numpy as np

from app.graphs.graph import Graph
from app.problems.sets import SetProblem
from app.problems.unlearned import Unlearned
from app.search.influence.baselines import INFLUENCE_BASELINES
from app.search.influence.tools import InfluenceTools
from app.toolbox import Instance


class Influence(Unlearned, SetProblem):
    """So many seeds, or seeds that cost so much, of the largest expected spread (Kempe et al. 2003).

    A solution is [n] bool, the seeds. What seeds are worth can only be sampled: app/solver/sampled.py.
    """

    name = "influence"
    sense = "maximise"
    solution = "choice of seeds"
    baselines: ClassVar = INFLUENCE_BASELINES

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """What is no mask; costs are the toolbox's to see."""
        fits = solution_all.shape == (graph_rows.n,) and solution_all.dtype == bool
        return None if fits else f"is {solution_all.dtype} {solution_all.shape}, not a mask of the nodes"

    def toolbox(self, instance: Instance) -> Any:
        """Sampling, plain choices, a judgement by cascades."""
        return InfluenceTools(instance, self)
