"""Network dismantling: the fewest (lightest) nodes without which no component is large."""

from typing import ClassVar

import numpy as np

from app.graphs.graph import Graph
from app.problems.sets import SetProblem
from app.problems.unlearned import Unlearned
from app.search.dismantle.baselines import DISMANTLE_BASELINES
from app.search.dismantle.tools import DismantleTools
from app.toolbox import Instance


class Dismantling(Unlearned, SetProblem):
    """A solution is [n] bool, the nodes that are taken out (component order connectivity, K-vertex
    separator). How large components may be is the instance's, and so is the check (DismantleTools.fault).
    """

    name = "dismantle"
    sense = "minimise"
    solution = "dismantling set"
    baselines: ClassVar = DISMANTLE_BASELINES

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """Nothing that graph and set alone tell."""
        return None

    def toolbox(self, instance: Instance) -> DismantleTools:
        """Reductions, a greedy start, a search, bounds."""
        return DismantleTools(instance, self)
