"""OrderTools: the toolbox of any problem whose solution is an order of all nodes, whatever that is worth."""

from typing import Any

import numpy as np

from app.bounds.feasible import fault_of_order
from app.graphs.orders import order_within
from app.toolbox import Instance, Toolbox


class OrderTools(Toolbox):
    """Orders of the nodes of one graph, worth as little as may be.

    A solution is [n] int64, the nodes from first to last; of the core [k] its nodes, by their numbers there.

    nodes   [k] int64, the core's nodes by their numbers in the graph
    every   why no node is inside or outside
    """

    every = "all nodes are in an order, none inside or outside"
    sense = "minimise"
    bounds_follow = True
    nodes: np.ndarray

    def __init__(self, instance: Instance, problem: Any) -> None:
        instance.refuse_sides(problem, self.every)
        self.instance, self.problem, self.graph = instance, problem, instance.graph
        self.words = problem.solution

    def as_solution(self, numbers: np.ndarray) -> np.ndarray:
        """An order as it is."""
        return numbers.astype(np.int64)

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """The core's nodes as they stand in an order of all."""
        return order_within(solution, self.nodes)

    def fault(self, solution: np.ndarray) -> str | None:
        """A node that has no place, or two."""
        return fault_of_order(self.graph, solution, self.words)
