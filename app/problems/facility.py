"""Facility location: nodes that serve all others, at the least cost."""

from typing import Any, ClassVar

import numpy as np

from app.graphs.facility_points import along
from app.graphs.graph import Graph
from app.problems.sets import SetProblem
from app.problems.unlearned import Unlearned
from app.search.facility.baselines import OF_RADII, OF_SUMS
from app.search.facility.tableless_tools import ALONG, tableless
from app.search.facility.tools import FacilityTools
from app.toolbox import Instance


class FacilityLocation(Unlearned, SetProblem):
    """Facilities among the nodes, each other node served by the nearest (problem.facility).

    median: so many, and the sum of demand times distance as small as may be; center: so many, and the largest
    of these; uncapacitated: any number, each at its cost, and the sum of both.
    A solution is [n] bool, the facilities.
    """

    name = "facility"
    sense = "minimise"
    solution = "choice of facilities"
    baselines: ClassVar = OF_SUMS | OF_RADII | {"along": (along, ALONG)}

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """What is no mask; the rest is the toolbox's to see."""
        fits = solution_all.shape == (graph_rows.n,) and solution_all.dtype == bool
        return None if fits else f"is {solution_all.dtype} {solution_all.shape}, not a mask of the nodes"

    def toolbox(self, instance: Instance) -> Any:
        """Plain choices, interchanges, bounds."""
        return (tableless(instance) or FacilityTools)(instance, self)
