"""Network dismantling: the fewest (lightest) nodes without which no component is large."""

from typing import ClassVar

import numpy as np

from app.graphs.graph import Graph
from app.problems.sets import SetProblem
from app.search.dismantle.baselines import DISMANTLE_BASELINES
from app.search.dismantle.tools import DismantleTools
from app.toolbox import Instance


class Dismantling(SetProblem):
    """A solution is [n] bool, the nodes that are taken out (component order connectivity, K-vertex
    separator). How large components may be is the instance's, and so is the check (DismantleTools.fault).

    No policy answers it, so that it has no states.
    """

    name = "dismantle"
    sense = "minimise"
    solution = "dismantling set"
    dynamics = ""
    redundancy = ""
    baselines: ClassVar = DISMANTLE_BASELINES
    bounds: ClassVar = {}
    known = False

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """Nothing that graph and set alone tell."""
        return None

    def toolbox(self, instance: Instance) -> DismantleTools:
        """Reductions, a greedy start, a search, bounds."""
        return DismantleTools(instance, self)
