"""Linear ordering: an order of the nodes of a digraph with as little weight backward as may be."""

from typing import Any, ClassVar

from app.problems.orders import OrderProblem
from app.search.ordering.baselines import ORDERING_BASELINES
from app.search.ordering.tools import OrderingTools
from app.toolbox import Instance


class LinearOrdering(OrderProblem):
    """The arcs that lead backward in an order are a feedback arc set, of least weight: without them there is
    no directed cycle. What is saved, the weight of those that lead forward, is as large as may be.
    """

    name = "ordering"
    solution = "order"
    baselines: ClassVar = ORDERING_BASELINES

    def toolbox(self, instance: Instance) -> Any:
        """Reductions, a greedy start, a search and bounds."""
        return OrderingTools(instance, self)
