"""Communities: a partition of the nodes whose communities hold more weight than their sizes let expect."""

from functools import partial
from typing import ClassVar

import numpy as np

from app.graphs.contracted import numbered
from app.graphs.graph import Graph
from app.search.communities.baselines import COMMUNITY_BASELINES
from app.search.communities.tools import CommunityTools
from app.search.solution_text import colors_text, read_colors
from app.toolbox import Instance


class Communities:
    """A solution is [n] int64, the community of each node, from 0 on. What it is worth:
    app/graphs/quality.py.

    No policy answers it, so that it has no states.
    """

    name = "communities"
    sense = "maximise"
    solution = "partition"
    dynamics = ""
    redundancy = ""
    baselines: ClassVar = COMMUNITY_BASELINES
    bounds: ClassVar = {}
    complemented = False
    known = False
    text, read = staticmethod(colors_text), staticmethod(partial(read_colors, what="community"))

    @staticmethod
    def canonical(solution: np.ndarray) -> np.ndarray:
        """[n] int64, communities in the order of nodes."""
        return numbered(np.unique(solution, return_inverse=True)[1].reshape(-1)).astype(np.int64)

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """Every partition is feasible; what is none is not."""
        fits = solution_all.shape == (graph_rows.n,) and solution_all.dtype.kind in "iu"
        return None if fits else f"is {solution_all.dtype} {solution_all.shape}, not one number for each node"

    def toolbox(self, instance: Instance) -> CommunityTools:
        """Joins, a quick start, search and bounds."""
        return CommunityTools(instance, self)
