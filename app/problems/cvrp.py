"""Capacitated vehicle routing: routes of least total length that bring all customers what they need."""

from typing import ClassVar

import numpy as np

from app.graphs.graph import Graph
from app.graphs.routes import canonical_routes, depot_of
from app.problems.unlearned import Unlearned, not_numbers
from app.search.routing.baselines import ROUTING_BASELINES
from app.search.routing.text import read_routes, routes_text
from app.search.routing.tools import RoutingTools
from app.toolbox import Instance


class VehicleRouting(Unlearned):
    """A solution is [n] int64, the stop after each customer (app/graphs/routes.py), the depot after the
    last.
    """

    name = "cvrp"
    sense = "minimise"
    solution = "routes"
    baselines: ClassVar = ROUTING_BASELINES
    text, read = staticmethod(routes_text), staticmethod(read_routes)

    def canonical(self, solution: np.ndarray) -> np.ndarray:
        """[n] int64, each route in its canonical direction: of a policy's solution, which no times limit."""
        return canonical_routes(solution, depot_of(solution))

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """What is not a stop for each node; whether these make routes is the toolbox's to see."""
        return not_numbers(graph_rows, solution_all, "stop")

    def toolbox(self, instance: Instance) -> RoutingTools:
        """Plain constructions, a search and bounds."""
        return RoutingTools(instance, self)
