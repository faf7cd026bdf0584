"""The toolbox of the travelling salesman: closed tours through all nodes of a metric."""

from functools import partial
from typing import Any

import numpy as np

from app.bounds.tour.bounds import TourBounds
from app.bounds.tour.one_tree import OneTree
from app.bounds.tour.proof import CutTree
from app.errors import CaseError
from app.graphs.metric import Metric
from app.search.core_bounds import CoreBounds
from app.search.tour.baselines import (
    GREEDY_SECONDS,
    apart_from_equals,
    baselines,
    seconds_of,
    space_filling_curve,
    too_large,
)
from app.search.tour.search import TourSearch
from app.toolbox import Baseline, Bounds, Instance, Search, Toolbox

GREEDY_SHARE = 0.5  # of a time limit, that a greedy start may take
SEARCH_SECONDS = 5e-6  # of making a search, for each city, about
BOUND_SECONDS, BOUND_SHARE = 3.5e-6, 0.2  # of making bounds, likewise; of a time limit


class _Bounds(CoreBounds):
    """Bounds that look at the tours found."""

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """As CoreBounds."""
        if solution is not None:
            self.inner.know(solution)
        return super().improve(seconds, best)


def refuse_without_distances(name: str, metric: Metric | None) -> None:
    """Raises CaseError."""
    if metric is None:
        right = 'right is a TSPLIB file, or graph.generator = "uniform_points"'
        raise CaseError(f"{name}: has no distances between all nodes; {right}")


class TourTools(Toolbox):
    """Tours of one instance; a solution is the order of the nodes."""

    words, sense = "tour", "minimise"
    bounds_follow = True

    def __init__(self, instance: Instance, problem: Any) -> None:
        refuse_without_distances(instance.graph.name, instance.metric)
        if len(instance.inside) or len(instance.outside):
            raise CaseError("search.inside, search.outside: a tour visits every node; leave them out")
        self.instance, self.graph, self.core = instance, instance.graph, instance.graph
        self.metric, self.unit = instance.metric, instance.metric.unit
        self.left_out, self.baseline_seconds = too_large(self.metric), seconds_of(self.metric)
        self.unready = self._hurried(GREEDY_SECONDS, GREEDY_SHARE) and self.metric.plane is not None

    def value(self, solution: np.ndarray) -> int:
        """The length of the closed tour."""
        return int(self.metric.length(solution))

    def as_solution(self, numbers: np.ndarray) -> np.ndarray:
        """A tour that travelled as integers."""
        return numbers

    def fault(self, solution: np.ndarray) -> str | None:
        """A node that is missing or visited twice."""
        visits = np.bincount(solution, minlength=self.metric.n) if len(solution) else np.zeros(0)
        if len(visits) != self.metric.n:
            return f"a node number is outside 0..{self.metric.n - 1}"
        wrong = np.flatnonzero(visits != 1)
        return f"node {wrong[0]} is visited {visits[wrong[0]]} times" if len(wrong) else None

    def start(self) -> np.ndarray:
        """What the search itself starts from; a curve where a better tour would take too long."""
        if self.unready:
            return apart_from_equals(space_filling_curve, self.metric)[0]
        return self.search(0, None).solution()

    def _hurried(self, each: float, share: float) -> bool:
        """Whether so many seconds for each city are more than a share of the time limit."""
        return each * self.metric.n > share * self.instance.seconds

    @property
    def search_seconds(self) -> float:
        """An estimate of what a search begins with: neighbours, a descent from the start."""
        return SEARCH_SECONDS * self.searched.n

    @property
    def searched(self) -> Metric:
        """Distances of the core's cities."""
        return self.metric

    def search(self, seed: int, start: np.ndarray | None) -> Search | None:
        """Iterated local search."""
        return TourSearch(self.searched, seed, start, compiled=self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Held-Karp's 1-trees, then branch and cut; none where making them ready would take too long."""
        if self._hurried(BOUND_SECONDS, BOUND_SHARE):
            return None
        return _Bounds(TourBounds(self.searched, self.instance.compiled), "lower")

    def prove(self, proof: OneTree | CutTree) -> int:
        """Check the certificate against the distances."""
        proof.check(self.searched)
        return self.value_of_core(proof.lower)

    def baselines(self) -> dict[str, Baseline]:
        """The plain constructions, on one of all equal points; the others follow it."""
        rules = baselines(self.metric)
        return {name: partial(apart_from_equals, function, self.metric) for name, function in rules.items()}
