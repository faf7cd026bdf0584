"""NodeLabels: what problems have in common whose solutions number the nodes and that no policy answers."""

from typing import ClassVar

import numpy as np

from app.graphs.contracted import numbered
from app.graphs.graph import Graph
from app.search.solution_text import colors_text


class NodeLabels:
    """A solution is [n] int64, the community or block of each node, from 0 on.

    No policy answers such a problem, so that it has no states.
    """

    dynamics = ""
    redundancy = ""
    bounds: ClassVar = {}
    complemented = False
    known = False
    text = staticmethod(colors_text)

    @staticmethod
    def canonical(solution: np.ndarray) -> np.ndarray:
        """[n] int64, the same groups in the order of nodes."""
        return numbered(np.unique(solution, return_inverse=True)[1].reshape(-1)).astype(np.int64)

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """What is not a number for each node; whether groups are feasible is the toolbox's to see."""
        fits = solution_all.shape == (graph_rows.n,) and solution_all.dtype.kind in "iu"
        return None if fits else f"is {solution_all.dtype} {solution_all.shape}, not one number for each node"
