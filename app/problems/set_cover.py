"""Minimum set cover and minimum hitting set: dominating sets in disguise (app/graphs/covering.py)."""

import numpy as np

from app.graphs.covering import demand_called
from app.graphs.graph import Graph
from app.problems.mds import MinimumDominatingSet
from app.search.domination.covering import CoveringTools, unmet_demand
from app.toolbox import Instance


class SetCover(MinimumDominatingSet):
    """The fewest sets (or the cheapest) such that every element is in one of them.

    Solutions are masks of the nodes of the graph that stands for the family: of its sets, never of an
    element or of the reference.
    """

    name = "set_cover"
    solution = "set cover"
    candidate, demand, met = "set", "element", "element {} uncovered"

    def toolbox(self, instance: Instance) -> CoveringTools:
        """Those of dominating sets that hold the reference and no demand."""
        return CoveringTools(instance, self)

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """A demand of a whole graph that meets no chosen candidate."""
        demand = unmet_demand(graph_rows, solution_all)
        return None if demand is None else f"leaves {self.met.format(demand_called(graph_rows, demand))}"


class HittingSet(SetCover):
    """The fewest elements (or the cheapest) such that every set has one of them."""

    name = "hitting_set"
    solution = "hitting set"
    candidate, demand, met = "element", "set", "set {} without one of its elements"
