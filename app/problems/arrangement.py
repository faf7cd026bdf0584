"""Linear arrangements: the nodes of a graph in an order in which edges are short, by one of five measures."""

from typing import Any, ClassVar

from app.problems.orders import OrderProblem
from app.search.arrangement.tools import ArrangementTools
from app.toolbox import Instance


class LinearArrangement(OrderProblem):
    """An order is worth what problem.arrange says (app/graphs/arrangement.py)."""

    name = "arrangement"
    solution = "arrangement"
    baselines: ClassVar = {}

    def toolbox(self, instance: Instance) -> Any:
        """Plain starts, a search and bounds."""
        return ArrangementTools(instance, self)
