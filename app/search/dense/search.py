"""Searches for the densest set of nodes: rounds of peeling, then flows that end with a proof."""

from collections.abc import Callable

import numpy as np

from app.bounds.dense.balance import Balance
from app.graphs.dense import DenseGraph
from app.toolbox import Search


class DensestSearch(Search):
    """A function of graph, start, seed, and steps made: rounds of Greedy++, then phases of flows.

    Ties go as the seed has it. Flows end, with the densest set (app/bounds/dense/balance.py).

    """

    hears = True

    def __init__(
        self, graph: DenseGraph, code: Callable[[int, int], int], start: np.ndarray, seed: int,
        compiled: bool = True,
    ) -> None:  # fmt: skip
        """code   of a ratio: numerator, denominator     start   [m] bool, a set"""
        self.balance, self._code = Balance(graph, seed % (1 << 63), compiled), code
        self.steps = self.found_at = 0
        self.balance.know(start)
        self.best = self._worth()

    def _worth(self) -> int:
        best = self.balance.best
        return self._code(best.weight, best.size)

    @property
    def done(self) -> bool:
        """Whether the set is proved the densest."""
        return self.balance.done

    def run(self, steps: int) -> None:
        """So many rounds or phases, fewer only when done."""
        for _ in range(steps):
            if self.done:
                return
            self.balance.step()
            self.steps += 1
            if (worth := self._worth()) > self.best:
                self.best, self.found_at = worth, self.steps

    def solution(self) -> np.ndarray:
        """[m] bool, the densest set so far, a copy."""
        return self.balance.chosen.copy()

    def hear(self, solution: np.ndarray) -> None:
        """A set from elsewhere; where it is denser the flows go on from it."""
        if self.balance.know(solution):
            self.best, self.found_at = self._worth(), self.steps
