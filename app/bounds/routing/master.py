"""The linear program of vehicle routes over some of the ng-routes, solved by HiGHS.

    minimise sum of c_R z_R, every customer on one route, z >= 0, and
    2 least <= sum over R of z_R times how often R leaves S <= 2 most of sets of customers (sets.py)

A customer's row, and a set's, may be missed at a price that is raised where the optimum pays it: the program
has a point always.

Source   Fukasawa et al. 2006
"""

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from app.bounds.highs import SIMPLEX, ints, new_solver
from app.bounds.routing.edges import Limits, places_for, rounded
from app.bounds.routing.proof import Values
from app.bounds.routing.sets import Sets
from app.graphs.metric import Metric

COST = 100.0  # mean cost of a route to one customer in the program
MISSED, DEARER = 4.0, 10.0  # price of a missed row, in longest such routes; what raises it
MOST_MISSED, UNUSED = 1e-6, 1e-9  # what rows miss, and values of sets, that are none
MOST_COLUMNS = 5  # routes kept for each row, once routes are dropped
DUAL, PRIMAL = 1, 4  # of HiGHS's simplex_strategy


class Master:
    """The program over the routes it knows, and dual values of its optimum.

    rows     numbers of its sets             routes   customers of each, in order
    value    of the last optimum             x        [edges] what its routes make of each edge
    missed   what rows miss in it            pi, y    its duals
    """

    def __init__(self, metric: Metric, sets: Sets, limits: Limits) -> None:
        import highspy  # not needed by those who start the program for something else

        self.metric, self.sets, self.limits, self._highs = metric, sets, limits, highspy
        self.places, self._depot = places_for(metric), sets.deliveries.depot
        self.rows: list[int] = []
        self.routes: list[list[int]] = []
        self._known: set[tuple[int, ...]] = set()
        self._edges = _Edges(metric, self._depot)
        self.value, self.missed, self._z = 0.0, 0.0, np.zeros(0)
        self.pi, self.y = np.zeros(metric.n), np.zeros(0)
        self._customers = np.delete(np.arange(metric.n), self._depot)
        single = 2 * metric.between(self._customers, np.full(len(self._customers), self._depot))
        self._unit = max(float(single.mean()), 1.0) / COST
        self._price = max(MISSED * float(single.max()) / self._unit, 1.0)
        self._artificial: list[int] = []  # columns
        self._artificial_rows = np.zeros(0, dtype=np.int64)
        self._alive: np.ndarray | None = None
        self._width = 0
        self._column: list[int] = []  # of each route
        self.solver = new_solver(**SIMPLEX | {"simplex_strategy": PRIMAL})
        n = len(self._customers)
        self.solver.addRows(n, np.ones(n), np.ones(n), 0, ints(np.zeros(n)), ints([]), np.zeros(0))
        self._add_artificial(np.arange(n), np.ones(n))
        self.add_routes([[customer] for customer in self._customers.tolist()])
        self.add_sets([sets.everyone])

    def add_routes(self, routes: list[list[int]]) -> int:
        """More routes; returns how many were new."""
        new = []
        for route in routes:
            key = min(tuple(route), tuple(route[::-1]))
            if key not in self._known:
                self._known.add(key)
                new.append(route)
        if not new:
            return 0
        uses = self._edges.add(new)  # [new, edges]
        u, v = self._edges.u, self._edges.v
        cost = uses @ self._edges.cost
        place = np.zeros(self.metric.n, dtype=np.int64)
        place[self._customers] = np.arange(len(self._customers))
        at = place[np.concatenate(new)]
        ptr = np.append(0, np.cumsum([len(route) for route in new]))
        visits = sp.csr_array((np.ones(len(at)), at, ptr), shape=(len(new), len(self._customers)))
        visits.sum_duplicates()
        blocks = [visits]
        if self.rows:
            blocks.append(sp.csr_array(uses @ self.sets.crossings(self.rows, u, v).T))
        matrix = sp.csr_array(sp.hstack(blocks)).astype(np.float64)
        m, infinite = len(new), self._highs.kHighsInf
        columns = ints(matrix.indptr[:-1]), ints(matrix.indices), matrix.data
        self.solver.addCols(m, cost / self._unit, np.zeros(m), np.full(m, infinite), matrix.nnz, *columns)
        self.routes += new
        self._column += range(self._width, self._width + m)
        self._width += m
        return m

    def add_sets(self, numbers: list[int]) -> int:
        """More sets, by their numbers; returns how many were not in the program."""
        new = sorted(set(numbers) - set(self.rows))
        if not new:
            return 0
        crossed = self._edges.uses @ self.sets.crossings(new, self._edges.u, self._edges.v).T
        matrix = sp.csr_array(sp.csr_array(crossed).T)  # [new, routes]
        columns = ints(np.array(self._column, dtype=np.int64)[matrix.indices])
        low, high = self.limits.sides(new, self._highs.kHighsInf)
        self.solver.addRows(
            len(new), low, high, matrix.nnz, ints(matrix.indptr[:-1]), columns, matrix.data.astype(float)
        )
        first = len(self._customers) + len(self.rows)
        self.rows += new
        rows = first + np.arange(len(new))
        self._add_artificial(np.tile(rows, 2), np.repeat([1.0, -1.0], len(new)))
        return len(new)

    def take(self, limits: Limits) -> None:
        """Other limits from now on, those of another case: its sets join the program."""
        self.limits = limits
        self.add_sets(limits.named())
        low, high = limits.sides(self.rows, self._highs.kHighsInf)
        first = len(self._customers)
        rows = ints(first + np.arange(len(self.rows)))
        self.solver.changeRowsBounds(len(rows), rows, low, high)
        self.allow()

    def allow(self, keys: np.ndarray | None = None) -> None:
        """Routes with other edges than these (u * n + v), or with such as the limits forbid, are 0."""
        self._alive = self._alive if keys is None else keys
        gone = self._edges.places(self.limits.unused)
        if self._alive is not None:
            gone |= ~np.isin(self._edges.u * self.metric.n + self._edges.v, self._alive)
        high = np.where(self._edges.uses @ gone.astype(np.int64) > 0, 0.0, self._highs.kHighsInf)
        self.solver.changeColsBounds(len(high), ints(self._column), np.zeros(len(high)), high)

    def solve(self) -> bool:
        """Find the optimum; False where HiGHS failed."""
        self.solver.run()
        if self.solver.getModelStatus() != self._highs.HighsModelStatus.kOptimal:
            return False
        found, n = self.solver.getSolution(), len(self._customers)
        values, duals = np.array(found.col_value), np.array(found.row_dual)
        self.pi = np.zeros(self.metric.n)
        self.pi[self._customers] = duals[:n] * self._unit / 2
        self.y = duals[n:] * self._unit
        self._z = values[self._column]
        self._reduced = np.array(found.col_dual)[self._column]
        self.missed = float(values[self._artificial].sum())
        self.value = self.solver.getInfo().objective_function_value * self._unit
        return True

    def tried(self, limits: Limits, steps: int) -> float:
        """What so many steps reach towards the optimum with other limits; `take` has to follow."""
        self.take(limits)
        self.solver.setOptionValue("simplex_iteration_limit", steps)
        self.solver.setOptionValue("simplex_strategy", DUAL)
        self.solver.run()
        self.solver.setOptionValue("simplex_iteration_limit", self._highs.kHighsIInf)
        self.solver.setOptionValue("simplex_strategy", PRIMAL)
        return self.solver.getInfo().objective_function_value * self._unit

    def raise_price(self) -> None:
        """Make it dearer to miss rows."""
        self._price *= DEARER
        columns = ints(self._artificial)
        self.solver.changeColsCost(len(columns), columns, np.full(len(columns), self._price))

    def point(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(u, v, x) of the last optimum."""
        return self._edges.u, self._edges.v, self._edges.uses.T @ self._z

    def chosen(self) -> list[list[int]] | None:
        """The routes of the last optimum, where it is integral."""
        used = np.flatnonzero(self._z > 1e-6)
        if self.missed > MOST_MISSED or (self._z[used] < 1 - 1e-6).any():
            return None
        return [self.routes[place] for place in used.tolist()]

    def values(self, pi: np.ndarray, y: np.ndarray, width: int) -> Values | None:
        """Dual values, rounded."""
        return rounded(self.limits, pi, self.rows, y, self.places, width)

    def drop_routes(self) -> None:
        """Leave out those of largest reduced cost, where there are too many."""
        most = MOST_COLUMNS * (len(self._customers) + len(self.rows)) // 2  # are left
        if len(self.routes) < 2 * most:
            return
        order = np.argsort(self._reduced, kind="stable")
        kept = np.zeros(len(self.routes), dtype=bool)
        kept[order[:most]] = True
        kept |= (self._z > 0) | (np.array([len(route) for route in self.routes]) == 1)
        self._drop(~kept)

    def _drop(self, gone: np.ndarray) -> None:
        columns = np.array(self._column, dtype=np.int64)
        self.solver.deleteCols(int(gone.sum()), ints(columns[gone]))
        alive = np.ones(self._width, dtype=bool)
        alive[columns[gone]] = False
        number = np.cumsum(alive) - 1
        self._column = number[columns[~gone]].tolist()
        self._artificial = number[np.array(self._artificial, dtype=np.int64)].tolist()
        self._width = int(alive.sum())
        for place in np.flatnonzero(gone).tolist():
            route = self.routes[place]
            self._known.discard(min(tuple(route), tuple(route[::-1])))
        self.routes = [self.routes[place] for place in np.flatnonzero(~gone).tolist()]
        self._edges.uses = self._edges.uses[~gone]
        self._z, self._reduced = self._z[~gone], self._reduced[~gone]

    def drop_idle(self, fewest: int) -> None:
        """Leave out the sets that have no value in the last optimum, where they are not few."""
        needed = {self.sets.everyone, *self.limits.named()}
        idle = [
            place for place, row in enumerate(self.rows) if row not in needed and abs(self.y[place]) < UNUSED
        ]
        if len(idle) < fewest:
            return
        gone = np.zeros(self._width, dtype=bool)
        first = len(self._customers)
        artificial = np.array(self._artificial, dtype=np.int64)
        rows = self._artificial_rows
        out = np.isin(rows, first + np.array(idle))
        gone[artificial[out]] = True
        self.solver.deleteCols(int(gone.sum()), ints(np.flatnonzero(gone)))
        self.solver.deleteRows(len(idle), ints(first + np.array(idle)))
        number = np.cumsum(~gone) - 1
        self._column = number[np.array(self._column, dtype=np.int64)].tolist()
        self._artificial = number[artificial[~out]].tolist()
        self._width = int((~gone).sum())
        kept = np.setdiff1d(np.arange(first + len(self.rows)), first + np.array(idle))
        renumbered = np.zeros(first + len(self.rows), dtype=np.int64)
        renumbered[kept] = np.arange(len(kept))
        self._artificial_rows = renumbered[rows[~out]]
        stay = np.setdiff1d(np.arange(len(self.rows)), idle)
        self.rows, self.y = [self.rows[place] for place in stay.tolist()], self.y[stay]

    def _add_artificial(self, rows: np.ndarray, sign: np.ndarray) -> None:
        m, infinite = len(rows), self._highs.kHighsInf
        price, high = np.full(m, self._price), np.full(m, infinite)
        self.solver.addCols(
            m, price, np.zeros(m), high, m, ints(np.arange(m)), ints(rows), sign.astype(float)
        )
        self._artificial += range(self._width, self._width + m)
        self._artificial_rows = np.append(self._artificial_rows, rows)
        self._width += m


class _Edges:
    """Edges of routes, and how often each route uses them: uses [routes, edges]."""

    def __init__(self, metric: Metric, depot: int) -> None:
        self._metric, self._depot = metric, depot
        self._place: dict[int, int] = {}
        self.u = self.v = self.cost = np.zeros(0, dtype=np.int64)
        self.uses = sp.csr_array((0, 0), dtype=np.int64)

    def add(self, routes: list[list[int]]) -> sp.csr_array:
        """Rows of `uses` for more routes."""
        n, places, ptr = self._metric.n, [], [0]
        for route in routes:
            walk = [self._depot, *route, self._depot]
            for a, b in pairwise(walk):
                places.append(self._place.setdefault(min(a, b) * n + max(a, b), len(self._place)))
            ptr.append(len(places))
        keys = np.array(list(self._place)[len(self.u) :], dtype=np.int64)
        self.u, self.v = np.append(self.u, keys // n), np.append(self.v, keys % n)
        self.cost = np.append(self.cost, self._metric.between(keys // n, keys % n))
        shape = len(routes), len(self._place)
        new = sp.csr_array((np.ones(len(places), dtype=np.int64), places, ptr), shape=shape)
        new.sum_duplicates()
        self.uses.resize(self.uses.shape[0], shape[1])
        self.uses = sp.csr_array(sp.vstack([self.uses, new]))
        return new

    def places(self, pairs: set[tuple[int, int]]) -> np.ndarray:
        """[edges] bool, those between the points of a pair."""
        found = np.zeros(len(self.u), dtype=bool)
        for a, b in pairs:
            place = self._place.get(min(a, b) * self._metric.n + max(a, b))
            if place is not None:
                found[place] = True
        return found
