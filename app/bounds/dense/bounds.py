"""Upper bounds on the density of all sets of nodes, from balanced loads, in slices of time."""

import time
from collections.abc import Callable

import numpy as np

from app.bounds.dense.balance import Balance
from app.bounds.dense.witness import LoadBound
from app.graphs.dense import DenseGraph
from app.toolbox import Bounds

CHECK_SECONDS = 2e-7  # of a check, for each entry
ROUND_SECONDS = 1.6e-7  # of a round of peeling, for each node and entry, about


def round_seconds(graph: DenseGraph) -> float:
    """An estimate of what a round of peeling takes."""
    return ROUND_SECONDS * (graph.n + len(graph.indices))


class LoadBounds(Bounds):
    """The largest load for its size of the best sharing so far.

    code   of a ratio: numerator, denominator
    whole  shares of all edges, of what the rows of the core hold, and the units

    """

    closing, near, leads = True, 1.0, True

    def __init__(
        self, graph: DenseGraph, code: Callable[[int, int], int],
        whole: Callable[[np.ndarray, int], np.ndarray], compiled: bool = True,
    ) -> None:  # fmt: skip
        self.balance = Balance(graph, None, compiled)
        self._code, self._whole = code, whole
        self.value, self.method = 0, ""
        self._held, self._one, self._known = np.zeros(0, dtype=np.int64), 0, -1

    @property
    def least_seconds(self) -> float:
        """An estimate of a round; phases of flows may be shorter."""
        return 0.0 if self.balance.flows else round_seconds(self.balance.graph)

    @property
    def check_seconds(self) -> float:
        """An estimate of what a check takes."""
        return CHECK_SECONDS * len(self.balance.graph.indices)

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long; False: nothing better is to come."""
        end, self._known, balance = time.perf_counter() + seconds, best, self.balance
        if solution is not None:
            balance.know(solution)
        while not balance.done:
            balance.step()
            self._take()
            if time.perf_counter() >= end:
                break
        return not balance.done

    def _take(self) -> None:
        """The bound of the loads as they are, where it is better."""
        balance, largest = self.balance, self.balance.largest()
        value = self._code(largest.numerator, largest.denominator)
        if not self.method or value < self.value:
            self.value, self._held, self._one = value, balance.held.copy(), balance.one
            self.method = "a flow" if balance.flows else "loads of peeling"

    def optimum(self) -> np.ndarray | None:
        """[m] bool, the densest set, once it is proved."""
        return self.balance.chosen if self.balance.done else None

    def pieces(self) -> np.ndarray | None:
        """[m] bool, a set that is denser than the caller's."""
        best = self.balance.best
        return self.balance.chosen if self._code(best.weight, best.size) > self._known else None

    def proof(self) -> LoadBound:
        """What proves the bound."""
        return LoadBound(self.value, self.method, self._one, self._whole(self._held, self._one))
