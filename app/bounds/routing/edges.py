"""The linear program of vehicle routes over some of the edges, solved by HiGHS.

    minimise sum of c_e x_e, degree 2 at customers, 0 <= x <= 1, of edges of the depot 0 <= x <= 2, and
    2 least <= x(delta(S)) <= 2 most of sets of customers (sets.py)

Its duals, rounded to multiples of 2^-places, prove a bound by whole numbers, whatever they are (proof.py).

Sources  Laporte, Nobert and Desrochers 1985; rounded duals: Applegate, Bixby, Chvatal and Cook 2006, 5.4
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from app.bounds.certificate import exact_sum
from app.bounds.highs import SIMPLEX, ints, new_solver
from app.bounds.routing.proof import Values
from app.bounds.routing.sets import Sets
from app.graphs.metric import Metric
from app.graphs.windows import one_after_other

PLACES, MOST_BITS = 16, 44  # binary ones of duals; of the longest distance in their units
LARGEST_DUAL = 1 << 48
COST = 100.0  # mean cost of an edge in the program
IDLE = 0.1  # a set with more slack is dropped
PIECE = 1 << 21  # pairs looked at together


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


class EdgeProgram:
    """The program over the edges it knows, and dual values of its optimum.

    u, v, cost   [m] the edges, u < v        x, value   the last optimum        rows   numbers of its sets
    """

    def __init__(self, metric: Metric, sets: Sets, edges: np.ndarray, limits: Limits) -> None:
        """edges   [m, 2]"""
        import highspy  # not needed by those who start the program for something else

        self.metric, self.sets, self.limits, self._highs = metric, sets, limits, highspy
        self.rows: list[int] = []
        self.u = self.v = self.cost = np.zeros(0, dtype=np.int64)
        self.x, self.value, self._idle = np.zeros(0), 0.0, np.zeros(0)
        self._pi, self._y = np.zeros(metric.n), np.zeros(0)
        self.solver = new_solver(**SIMPLEX)
        n, infinite = metric.n, highspy.kHighsInf
        low, high = np.full(n, 2.0), np.full(n, 2.0)
        low[sets.deliveries.depot], high[sets.deliveries.depot] = -infinite, infinite
        self.solver.addRows(n, low, high, 0, ints(np.zeros(n)), ints([]), np.zeros(0))
        self.places = places_for(metric)
        total = float(metric.between(*np.asarray(edges).T).sum())
        self._unit = max(total / max(len(edges), 1), 1e-9) / COST
        self.add_edges(edges)
        self.add_sets([sets.everyone])

    @property
    def keys(self) -> np.ndarray:
        """[m] u * n + v"""
        return self.u * self.metric.n + self.v

    def add_edges(self, edges: np.ndarray) -> int:
        """More edges [k, 2]; returns how many were new."""
        n, depot = self.metric.n, self.sets.deliveries.depot
        ends = np.sort(np.asarray(edges, dtype=np.int64).reshape(-1, 2), axis=1)
        keys = np.setdiff1d(ends[:, 0] * n + ends[:, 1], self.keys)
        if not len(keys):
            return 0
        u, v = keys // n, keys % n
        cost, m = self.metric.between(u, v), len(keys)
        degrees = sp.csr_array((np.ones(2 * m), (np.append(u, v), np.tile(np.arange(m), 2))), shape=(n, m))
        blocks = [degrees] + ([self.sets.crossings(self.rows, u, v)] if self.rows else [])
        matrix = sp.csc_array(sp.vstack(blocks)).astype(np.float64)
        columns = ints(matrix.indptr[:-1]), ints(matrix.indices), matrix.data
        high = np.where((u == depot) | (v == depot), 2.0, 1.0)
        self.solver.addCols(m, cost / self._unit, np.zeros(m), high, matrix.nnz, *columns)
        self.u, self.v = np.append(self.u, u), np.append(self.v, v)
        self.cost = np.append(self.cost, cost)
        return m

    def add_sets(self, numbers: list[int]) -> int:
        """More sets, by their numbers; returns how many were not in the program."""
        new = sorted(set(numbers) - set(self.rows))
        if not new:
            return 0
        matrix = self.sets.crossings(new, self.u, self.v)
        rows = ints(matrix.indptr[:-1]), ints(matrix.indices), matrix.data.astype(np.float64)
        self.solver.addRows(len(new), *self._sides(new), matrix.nnz, *rows)
        self.rows += new
        return len(new)

    def _sides(self, numbers: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Left and right sides of rows."""
        limits, infinite = self.limits, self._highs.kHighsInf
        low = np.array([2.0 * limits.least(number) for number in numbers])
        high = [2.0 * limits.most(number) if limits.bounded(number) else infinite for number in numbers]
        return low, np.array(high)

    def solve(self) -> bool:
        """Find the optimum; False where there is no point at all, or HiGHS failed."""
        self.solver.run()
        if self.solver.getModelStatus() != self._highs.HighsModelStatus.kOptimal:
            return False
        found = self.solver.getSolution()
        self.x, row_dual = np.array(found.col_value), np.array(found.row_dual)
        n = self.metric.n
        self._pi, self._y = row_dual[:n] * self._unit, row_dual[n:] * self._unit
        low, high = self._sides(self.rows)
        value = np.array(found.row_value)[n:]
        self._idle = np.minimum(value - low, high - value)
        self.value = self.solver.getInfo().objective_function_value * self._unit
        return True

    def drop_idle(self, fewest: int) -> None:
        """Leave out the sets with slack in the last optimum, where they are not few."""
        kept_always = self.sets.everyone
        idle = np.flatnonzero((self._idle > IDLE) & (np.array(self.rows) != kept_always))
        if len(idle) < fewest:
            return
        self.solver.deleteRows(len(idle), ints(self.metric.n + idle))
        kept = np.setdiff1d(np.arange(len(self.rows)), idle)
        self.rows = [self.rows[place] for place in kept.tolist()]
        self._idle, self._y = self._idle[kept], self._y[kept]

    def values(self) -> Values | None:
        """The duals of the last optimum, rounded; None: out of range."""
        pi = self._pi.copy()
        pi[self.sets.deliveries.depot] = 0.0
        return rounded(self.limits, pi, self.rows, self._y, self.places)


def rounded(
    limits: Limits, pi: np.ndarray, rows: list[int], y: np.ndarray, places: int, width: int = 0
) -> Values | None:
    """In multiples of 2^-places, those of sets with a sign that there is a side for; None: too large."""
    pi, y = np.ldexp(pi, places), np.ldexp(y, places)
    if not (np.abs(pi).max(initial=0) < LARGEST_DUAL and np.abs(y).sum() < LARGEST_DUAL):
        return None
    y = np.rint(y).astype(np.int64)
    free = np.array([not limits.bounded(number) for number in rows], dtype=bool)
    y[free] = np.maximum(y[free], 0)
    used = np.flatnonzero(y)
    return Values(np.rint(pi).astype(np.int64), np.array(rows, dtype=np.int64)[used], y[used], width)


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
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """All edges i < j that routes can have, of a reduced cost of at most `most`: (i, j, reduced cost).

    What sets around both ends count twice is looked at for those edges alone that may have a cost so low:
    that of sets of negative value, which may lower the cost, is taken off beforehand.
    """
    n, demand = metric.n, sets.deliveries.demand
    around = sets.matrix[values.sets].T.tocsr()
    potential = values.pi + around @ values.y
    lower = 2 * int(np.minimum(values.y, 0).sum())
    rows = max(1, PIECE // n)
    for first in range(0, n, rows):
        at = np.arange(first, min(first + rows, n))
        cost = (metric.between(at[:, None], np.arange(n)) << places) - potential[at, None] - potential
        possible = (np.arange(n) > at[:, None]) & (demand[at, None] + demand <= sets.deliveries.capacity)
        i, j = np.nonzero((cost + lower <= most) & possible)
        reduced, i = cost[i, j], at[i]
        if sets.deliveries.times is not None:
            timely = one_after_other(metric, sets.deliveries, i, j)
            i, j, reduced = i[timely], j[timely], reduced[timely]
        for part in range(0, len(i), PIECE):
            piece = slice(part, part + PIECE)
            a, b, r = i[piece], j[piece], reduced[piece]
            r = r + 2 * np.asarray(around[a].multiply(around[b]) @ values.y).ravel()
            kept = r <= most
            yield a[kept], b[kept], r[kept]


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
    longest = int(metric.matrix.max(initial=0)) if metric.matrix is not None else 1 << 31
    return max(0, min(PLACES, MOST_BITS - longest.bit_length()))
