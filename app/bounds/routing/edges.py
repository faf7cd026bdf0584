"""The linear program of vehicle routes over some of the edges, solved by HiGHS.

    minimise sum of c_e x_e, degree 2 at customers, 0 <= x <= 1, of edges of the depot 0 <= x <= 2, and
    2 least <= x(delta(S)) <= 2 most of sets of customers (sets.py)

Its duals, rounded to multiples of 2^-places, prove a bound by whole numbers, whatever they are (proof.py).

Sources  Laporte, Nobert and Desrochers 1985; rounded duals: Applegate, Bixby, Chvatal and Cook 2006, 5.4
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from app.bounds import edge_program
from app.bounds.certificate import exact_sum
from app.bounds.edge_program import EdgeProgram, rounded_duals
from app.bounds.routing.proof import Values
from app.bounds.routing.sets import Sets
from app.graphs.metric import Metric
from app.graphs.windows import one_after_other

PLACES, MOST_BITS = 16, 44  # binary ones of duals; of the longest distance in their units
LARGEST_DUAL = 1 << 48


class Limits:
    """How often sets are entered: half of x(delta(S)) is at least `least(S)` and at most `most(S)`.

    A case (cases.py) adds to what holds for all routes.
    """

    def __init__(self, sets: Sets, least: dict[int, int] | None = None, most: dict[int, int] | None = None):
        self.sets, self._least, self._most = sets, least or {}, most or {}
        vehicles, customers = sets.deliveries.vehicles, sets.n - 1
        self._vehicles = min(vehicles, customers) if vehicles else customers
        # customers whose edge is not used, and those whose edge is
        self.unused = {self._pair(number) for number, k in self._least.items() if k > 1} - {None}
        self.used = {self._pair(number) for number, k in self._most.items() if k == 1} - {None}

    def least(self, number: int) -> int:
        """The least."""
        return max(self.sets.fewest[number], self._least.get(number, 0))

    def most(self, number: int) -> int:
        """The most."""
        size = len(self.sets.members[number])
        size = self._vehicles if size == self.sets.n - 1 else size
        return min(size, self._most.get(number, size))

    def bounded(self, number: int) -> bool:
        """Whether the most is less than what degrees say."""
        return self.most(number) < len(self.sets.members[number])

    def sides(self, numbers: list[int], infinite: float) -> tuple[np.ndarray, np.ndarray]:
        """Left and right sides of rows of x(delta(S)), float64."""
        low = np.array([2.0 * self.least(number) for number in numbers])
        high = [2.0 * self.most(number) if self.bounded(number) else infinite for number in numbers]
        return low, np.array(high)

    def divided(self, number: int, k: int) -> tuple["Limits", "Limits"]:
        """The two cases in which x(delta(S)) is at most 2k, and at least 2k + 2."""
        under = {**self._most, number: min(k, self._most.get(number, k))}
        over = {**self._least, number: max(k + 1, self._least.get(number, 0))}
        return Limits(self.sets, self._least, under), Limits(self.sets, over, self._most)

    def named(self) -> list[int]:
        """Sets of which a case knows more."""
        return sorted({*self._least, *self._most})

    @property
    def routes(self) -> tuple[int, int]:
        """Least and most number of routes."""
        everyone = self.sets.everyone
        return self.least(everyone), self.most(everyone)

    def _pair(self, number: int) -> tuple[int, int] | None:
        members = self.sets.members[number]
        return (int(members[0]), int(members[1])) if len(members) == 2 else None


class RouteProgram(EdgeProgram):
    """The program over the edges it knows; its rows are sets of customers, always that of all."""

    def __init__(self, metric: Metric, sets: Sets, edges: np.ndarray, limits: Limits) -> None:
        """edges   [m, 2]"""
        self.sets, self.limits, self.places = sets, limits, places_for(metric)
        super().__init__(metric, edges, sets.deliveries.depot)
        self.add_rows([sets.everyone])

    def left_by(self, rows: list[int], u: np.ndarray, v: np.ndarray) -> sp.csr_array:
        """[rows, edges] 1 where the edge u-v leaves a set."""
        return self.sets.crossings(rows, u, v)

    def sides(self, rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Left and right sides of sets."""
        return self.limits.sides(rows, self.highs.kHighsInf)

    def values(self) -> Values | None:
        """The duals of the last optimum, rounded; None: out of range."""
        pi = self.pi.copy()
        pi[self.sets.deliveries.depot] = 0.0
        return rounded(self.limits, pi, self.rows, self.y, self.places)


def rounded(
    limits: Limits, pi: np.ndarray, rows: list[int], y: np.ndarray, places: int, width: int = 0
) -> Values | None:
    """In multiples of 2^-places, those of sets with a sign that there is a side for; None: too large."""
    found = rounded_duals(pi, y, places, LARGEST_DUAL)
    if found is None:
        return None
    free = np.array([not limits.bounded(number) for number in rows], dtype=bool)
    y = np.where(free, np.maximum(found[1], 0), found[1])
    used = np.flatnonzero(y)
    return Values(found[0], np.array(rows, dtype=np.int64)[used], y[used], width)


def constant(limits: Limits, values: Values) -> int:
    """2 sum pi + sum y x(delta), in multiples of 2^-places."""
    total = 2 * sum(values.pi.tolist())
    for number, y in zip(values.sets.tolist(), values.y.tolist()):
        total += 2 * y * (limits.least(number) if y > 0 else limits.most(number))
    return total


def reduced_costs(
    metric: Metric, sets: Sets, values: Values, places: int, u: np.ndarray, v: np.ndarray
) -> np.ndarray:
    """[edges] int64 of edges u-v, in multiples of 2^-places."""
    around = sets.matrix[values.sets].T.tocsr()  # [n, sets used]
    potential = values.pi + around @ values.y
    both = np.asarray(around[u].multiply(around[v]) @ values.y).ravel()
    return (metric.between(u, v) << places) - potential[u] - potential[v] + 2 * both


def pairs_below(
    metric: Metric, sets: Sets, values: Values, places: int, most: int
) -> Iterator[edge_program.Edges]:
    """All edges i < j that routes can have, of a reduced cost of at most `most`: (i, j, reduced cost)."""
    demand, around = sets.deliveries.demand, sets.matrix[values.sets].T.tocsr()

    def fits(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        light = demand[i] + demand[j] <= sets.deliveries.capacity
        return light & one_after_other(metric, sets.deliveries, i, j)

    return edge_program.pairs_below(metric, places, values.pi, around, values.y, most, fits)


def bound_over_all(metric: Metric, limits: Limits, values: Values, places: int) -> tuple[int, np.ndarray]:
    """The bound over all edges in multiples of 2^-places; [k, 3] (reduced cost, i, j) of negative ones."""
    sets, depot = limits.sets, limits.sets.deliveries.depot
    bound, worst = constant(limits, values), [np.zeros((0, 3), dtype=np.int64)]
    for i, j, reduced in pairs_below(metric, sets, values, places, 0):
        bound += exact_sum(reduced * (1 + ((i == depot) | (j == depot))))
        worst.append(np.column_stack([reduced, i, j]))
    return bound, np.concatenate(worst)


def places_for(metric: Metric) -> int:
    """Binary places of duals: fewer where distances are large."""
    return edge_program.places_for(metric, PLACES, MOST_BITS)
