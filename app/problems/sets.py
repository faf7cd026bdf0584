"""SetProblem: what problems share whose solution is a set of nodes."""

import numpy as np

from app.problems.problem import NodesCount
from app.search.node_tools import NodeTools
from app.search.solution_text import nodes_text, read_nodes
from app.toolbox import Instance, Toolbox


class SetProblem(NodesCount):
    """The objective counts nodes, files have one id per line, the toolbox no reductions and no search."""

    complemented = False
    compiled_field = ""
    text, read = staticmethod(nodes_text), staticmethod(read_nodes)

    def canonical(self, solution_all: np.ndarray) -> np.ndarray:
        """The solution as it is."""
        return solution_all

    def toolbox(self, instance: Instance) -> Toolbox:
        """Baselines and bounds as the problem names them."""
        return NodeTools(instance, self)
