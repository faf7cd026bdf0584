"""The toolbox of connected subgraphs of largest weight: trees with prizes, told by what their nodes weigh.

Nodes have weights of any sign, edges cost nothing. How that is a question of prizes: app/graphs/prizes.py.
"""

from typing import Any

import numpy as np

from app.graphs.prizes import Prized, prized_of
from app.proofs.kinds import PrizedProof
from app.search.steiner.prized import PrizedTools
from app.toolbox import Instance


class HeaviestTools(PrizedTools):
    """Connected subgraphs of one graph, as heavy as may be; a solution is a tree of their nodes, one or more.

    What a tree costs with prizes is less the heavier its nodes are, so that core values and bounds are those
    of prizes; only what is said of them is not.
    """

    sense, words = "maximise", "connected subgraph"

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        prizes = np.asarray(instance.beside.prizes, dtype=np.float64)
        self.weights = np.rint(prizes / self.unit).astype(np.int64)

    def _asked_of(self, instance: Instance) -> Prized:
        return prized_of(
            self.graph, instance.beside.terminals, instance.beside.prizes, instance.compiled, heaviest=True
        )

    @property
    def core_minimises(self) -> bool:
        """A core solution is a tree, which is to be short."""
        return True

    def value(self, solution: np.ndarray) -> int:
        """What its nodes weigh, in units."""
        return self.question.worth - self._cost(solution)

    def value_of_core(self, value: int) -> int:
        """The weight (bound) that a core value (bound) stands for."""
        return self.question.worth - super().value_of_core(value)

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return self._core_cost(self.question.worth - value)

    def _core_cost(self, cost: int) -> int:
        return cost - super().value_of_core(0)

    def fault(self, solution: np.ndarray) -> str | None:
        """What makes it no tree of one node or more that holds all terminals."""
        if solution.shape == (self.graph.n,) and bool((solution == -1).all()):
            return f"the {self.words} has no node; one or more would be right"
        return super().fault(solution)

    def split(self, solution: np.ndarray) -> dict[str, int]:
        """Nothing: edges cost nothing."""
        return {}

    def prove(self, proof: PrizedProof) -> int:
        """As of trees with prizes."""
        return self.question.worth - super().prove(proof)
