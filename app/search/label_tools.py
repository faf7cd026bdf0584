"""LabelTools: the toolbox of any problem whose solution puts every node in one class."""

from typing import Any

import numpy as np

from app.graphs.contracted import numbered
from app.toolbox import Instance, Toolbox


def in_order(label: np.ndarray) -> np.ndarray:
    """[n] int64, the same classes of any numbers, numbered from 0 on as nodes come to them."""
    return numbered(np.unique(label, return_inverse=True)[1].reshape(-1)).astype(np.int64)


class LabelTools(Toolbox):
    """Classes of the nodes of one graph.

    A solution is [n] int64, the class of each node, from 0 on; of the core as well.

    every   why no node is inside or outside: what all have
    """

    every: str
    bounds_follow = True

    def __init__(self, instance: Instance, problem: Any) -> None:
        instance.refuse_sides(problem, self.every)
        self.instance, self.problem, self.graph = instance, problem, instance.graph

    def as_solution(self, numbers: np.ndarray) -> np.ndarray:
        """Classes as they are."""
        return numbers

    def fault(self, solution: np.ndarray) -> str | None:
        """What the problem finds wrong."""
        wrong = self.problem.violation(self.graph, solution)
        return None if wrong is None else f"the {self.words} {wrong}"
