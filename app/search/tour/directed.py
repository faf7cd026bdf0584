"""Tours where distances differ by direction, as tours of twice as many cities where they do not.

Every tour leaves and enters each city once, so that c(i, j) less r(i) and s(j) changes all lengths alike: r
and s are such that the least way out of and into each city is 0. Of each city i there is then one to leave
it, i, and one to come to it, n + i. They are 0 apart; from i to n + j it is c(i, j) + M, where M is more than
the length of a tour that is known; all others are 2 M apart. A tour of c has then a tour of n M more. Any
other tour of the 2 n cities has a pair that is not next to each other, hence n + 1 roads of M and more, or
two roads between cities of one kind: it is longer than the tour that is known, and no search that begins with
that can end in one.

Source     Jonker and Volgenant 1983; patching: Karp 1979
"""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from app.errors import CaseError
from app.graphs.metric import NEAREST, Metric, explicit
from app.search.tour.baselines import nearest_neighbour
from app.search.tour.tools import TourTools
from app.toolbox import Baseline, Instance

LARGEST = 1 << 30  # of a tour that is known: 2 M is a distance
FORBIDDEN = 1 << 40  # of the way from a city to itself


class DirectedTools(TourTools):
    """Tours of one instance; the core has two cities for each.

    start_tour   [n] the tour that is known     pairs   distances of the core's cities
    """

    unasked = "it knows distances that are the same in both directions"

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        self.left_out, self.unready = "", False
        lengths, base, apart = self._near_enough()
        self.more = self.metric.n * apart - base if self.metric.n > 1 else 0
        self.pairs = paired(self.metric.name, lengths, apart)
        self.core = self.pairs.neighbour_graph(NEAREST)

    def _near_enough(self) -> tuple[np.ndarray, int, int]:
        """What `reduced` says of the distances, and M; decimal ones are counted in a coarser unit where M is
        too large. Raises CaseError.
        """
        decimal = self.unit != 1
        while True:
            self.start_tour = patched(self.metric)
            lengths, base = reduced(self.metric)
            apart = self.value(self.start_tour) - base + 1
            if apart < LARGEST:
                return lengths, base, apart
            if not decimal:
                break
            self.metric = coarser(self.metric)
            self.unit = self.metric.unit
        told = f"{self.graph.name}: tours are {apart} over the least ways out of and into all cities"
        raise CaseError(f"{told}; distances in a coarser unit, less than {LARGEST} then, would be right")

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] the order of the cities, of a tour [2 n] that goes from one of a pair to the other."""
        n, order = self.metric.n, np.asarray(core_solution)
        if n > 1 and order[0] % n != order[1] % n:
            order = np.roll(order, 1)
        cities = order[::2] % n
        return cities if order[0] >= n else cities[::-1].copy()

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """[2 n], to each city in its order, and from it."""
        n = self.metric.n
        return np.stack([solution + n, solution], axis=1).reshape(2 * n).astype(np.int32)

    def value_of_core(self, value: int) -> int:
        """Less what all pairs are apart; no tour is shorter than nothing."""
        return max(value - self.more, 0)

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return value + self.more

    def start(self) -> np.ndarray:
        """The tour that is known."""
        return self.restrict(self.start_tour)

    @property
    def searched(self) -> Metric:
        """Distances of the core's cities."""
        return self.pairs

    def baselines(self) -> dict[str, Baseline]:
        """Plain rules that know directions."""
        return {
            "nearest neighbour": partial(nearest_neighbour, self.metric),
            "patched assignment": lambda: (self.start_tour, "patched assignment"),
        }


def coarser(metric: Metric) -> Metric:
    """The same distances in ten times the unit, rounded."""
    power = round(math.log10(metric.unit))
    unit = 10.0 ** (power + 1) if 10.0**power == metric.unit else 10 * metric.unit
    return replace(metric, matrix=((metric.matrix.astype(np.int64) + 5) // 10).astype(np.int32), unit=unit)


def reduced(metric: Metric) -> tuple[np.ndarray, int]:
    """([n, n] int64 distances less the least way out of each city, then into each, what that is in all)."""
    if metric.n == 1:
        return np.zeros((1, 1), dtype=np.int64), 0
    lengths = metric.matrix.astype(np.int64)
    np.fill_diagonal(lengths, FORBIDDEN)
    out = lengths.min(axis=1)
    lengths -= out[:, None]
    into = lengths.min(axis=0)
    lengths -= into
    return lengths, int(out.sum() + into.sum())


def paired(name: str, lengths: np.ndarray, apart: int) -> Metric:
    """Symmetric distances of 2 n cities, see above, of lengths [n, n]; apart is M."""
    n = len(lengths)
    matrix = np.full((2 * n, 2 * n), 2 * apart, dtype=np.int32)
    # A longer road is in no tour that is shorter than the known one.
    there = (np.minimum(lengths, apart) + apart).astype(np.int32)
    np.fill_diagonal(there, 0)
    matrix[:n, n:], matrix[n:, :n] = there, there.T
    np.fill_diagonal(matrix, 0)
    return explicit(name, matrix)


def patched(metric: Metric) -> np.ndarray:
    """[n] a tour: the cheapest way to give each city another one to go to, its cycles joined two by two, the
    longest first, where that costs least.
    """
    from scipy.optimize import linear_sum_assignment  # a fair share of a program's start, for few runs

    n = metric.n
    if n == 1:
        return np.zeros(1, dtype=np.int64)
    costs = metric.matrix.astype(np.float64)
    np.fill_diagonal(costs, FORBIDDEN)
    _, goes_to = linear_sum_assignment(costs)
    cycles = sorted(_cycles(goes_to), key=len)
    while len(cycles) > 1:
        cycles.append(_joined(metric.matrix, cycles.pop(), cycles.pop()))
    return cycles[0]


def _cycles(goes_to: np.ndarray) -> list[np.ndarray]:
    """The cycles of a permutation [n], each in its order."""
    left, found, follows = np.ones(len(goes_to), dtype=bool), [], goes_to.tolist()
    for first in range(len(goes_to)):
        if not left[first]:
            continue
        cycle, city = [first], follows[first]
        while city != first:
            cycle.append(city)
            city = follows[city]
        left[cycle] = False
        found.append(np.array(cycle, dtype=np.int64))
    return found


def _joined(matrix: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """One cycle of two: a road of each is left out, and two between them close it."""
    after_one, after_other = np.roll(one, -1), np.roll(other, -1)
    costs = matrix[one[:, None], after_other].astype(np.int64) + matrix[other[:, None], after_one].T
    costs -= matrix[one, after_one][:, None]
    costs -= matrix[other, after_other]
    i, j = np.unravel_index(int(costs.argmin()), costs.shape)
    return np.concatenate([one[: i + 1], np.roll(other, -(j + 1)), one[i + 1 :]])
