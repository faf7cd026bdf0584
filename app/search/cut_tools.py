"""The toolbox of maximum cut: two sides of all nodes, and the weight of the edges between them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.bounds.cut_bounds import CutBounds
from app.graphs.fixed_point import integer_weights
from app.search.core_bounds import CoreBounds
from app.search.cut import CutSearch
from app.search.cut_baselines import greedy_descent
from app.search.toolbox import Baseline, Bounds, Instance, Search, rule_of

LARGE = 1 << 20  # entries


class CutTools:
    """Cuts of one graph with weighted, signed edges; nothing is reduced: the core is the graph."""

    words, sense, core_minimises = "cut", "maximise", False
    metric = None
    peels = False
    hopeless_seconds = 0.0
    usual_steps = 10_000_000  # trials of a flip

    def __init__(self, instance: Instance, problem: Any) -> None:
        self.problem = problem
        self.instance, self.graph, self.core = instance, instance.graph, instance.graph
        self.weights, self.unit = integer_weights(self.graph)
        self.fixed = None
        if len(instance.inside) or len(instance.outside):
            self.fixed = np.full(self.graph.n, -1, dtype=np.int8)
            self.fixed[instance.inside], self.fixed[instance.outside] = 1, 0

    def reduce(self, look: Callable[[], None]) -> str:
        """Nothing: the search starts from the whole graph."""
        return ""

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """The same."""
        return core_solution

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """The same, fixed nodes on their sides."""
        sides = solution.copy()
        if self.fixed is not None:
            sides[self.fixed >= 0] = self.fixed[self.fixed >= 0]
        return sides

    def value_of_core(self, value: int) -> int:
        """The same."""
        return value

    core_value = value_of_core

    def value(self, solution: np.ndarray) -> int:
        """The weight between the sides, in units."""
        crossing = solution[self.graph.row_of()] != solution[self.graph.indices]
        return int(self.weights[crossing].sum()) // 2

    def as_solution(self, numbers: np.ndarray) -> np.ndarray:
        """A solution that travelled as integers."""
        return numbers.astype(bool)

    def fault(self, solution: np.ndarray) -> str | None:
        """Every split is a cut; a fixed node may be on the wrong side."""
        if solution.shape != (self.graph.n,) or solution.dtype != bool:
            return f"{solution.shape} {solution.dtype} is not one side for each of {self.graph.n} nodes"
        wrong = [] if self.fixed is None else np.flatnonzero((self.fixed >= 0) & (self.fixed != solution))
        return f"node {self.graph.called(wrong[0])} is fixed on the other side" if len(wrong) else None

    def start(self) -> np.ndarray:
        """What the search itself starts from; of a large graph a greedy cut, which that is far from."""
        if len(self.graph.indices) >= LARGE:
            return self.restrict(greedy_descent(self.graph, self.instance.compiled))
        return self.search(0, None).solution()

    def search(self, seed: int, start: np.ndarray | None) -> Search | None:
        """Tabu search with perturbation."""
        return CutSearch(self.graph, seed, start, self.fixed, compiled=self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Upper bounds by eigenvalues, semidefinite programming and odd cycles."""
        return CoreBounds(CutBounds(self.graph, self.instance.compiled), self.graph, "upper")

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics of max cut; none where nodes are fixed."""
        if self.fixed is not None:
            return {}
        return {name: rule_of(self.instance, rule) for name, rule in self.problem.baselines.items()}
