"""The linear program of the inequalities of witness.py, solved by HiGHS; its multipliers are made whole."""

from collections.abc import Sequence

import numpy as np

from app.bounds.case_proof import KEPT, TAKEN, Rows, bound_of, half_row
from app.bounds.fvs.cuts import Cut, Separation
from app.bounds.highs import SIMPLEX, ints, new_solver
from app.graphs.multigraph import Multigraph

COST = 100.0  # mean cost of a node in the program
HALVED = 150  # tight inequalities that are added up in twos and threes, and how far from 1 a sum is to be:
SLIGHT = 0.02
BITS = 44  # of the heaviest weight in units of multipliers


class Pool:
    """Inequalities of one multigraph: each once.

    keys   (0, edges) of subgraphs, (1, nodes) of cliques, (2, numbers) of halves, and their
           numbers, in the order they were found
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.keys: dict[tuple[bool, tuple], int] = {}
        self._right: list[int] = []
        self._kinds: list[int] = []
        self._nodes: list[np.ndarray] = []
        self._coefficients: list[np.ndarray] = []

    def add(self, cut: Cut) -> int | None:
        """The number of a new subgraph; None: it is known."""
        if (0, cut) in self.keys:
            return None
        degree: dict[int, int] = {}
        for u, v in cut:
            degree[u] = degree.get(u, 0) + 1
            degree[v] = degree.get(v, 0) + 1
        nodes = np.array(sorted(degree), dtype=np.int64)
        coefficients = np.array([degree[node] - 1 for node in nodes.tolist()], dtype=np.int64)
        return self._add((0, cut), nodes, coefficients, len(cut) - len(nodes) + 1)

    def add_clique(self, nodes: tuple[int, ...], right: int) -> int | None:
        """The same of a clique."""
        return self._add((1, nodes), np.array(nodes), np.ones(len(nodes), dtype=np.int64), right)

    def add_half(self, numbers: tuple[int, ...]) -> int | None:
        """The same of half the sum of inequalities, rounded up."""
        return self._add((2, numbers), *half_row(self.some(np.array(numbers)), np.arange(len(numbers))))

    def is_half(self, number: int) -> bool:
        """Whether an inequality is made of others."""
        return self._kinds[number] == 2

    def _add(self, key: tuple, nodes: np.ndarray, coefficients: np.ndarray, right: int) -> int | None:
        if key in self.keys:
            return None
        self.keys[key] = len(self._right)
        self._kinds.append(int(key[0]))
        self._nodes.append(nodes)
        self._coefficients.append(coefficients)
        self._right.append(right)
        return len(self._right) - 1

    def row(self, number: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Nodes, coefficients, right side."""
        return self._nodes[number], self._coefficients[number], self._right[number]

    def some(self, which: np.ndarray) -> Rows:
        """Inequalities by their numbers."""
        numbers, none = which.tolist(), np.zeros(0, dtype=np.int64)
        sizes = [len(self._nodes[number]) for number in numbers]
        return Rows(
            np.append(0, np.cumsum(sizes)).astype(np.int64),
            np.concatenate([none, *(self._nodes[number] for number in numbers)]),
            np.concatenate([none, *(self._coefficients[number] for number in numbers)]),
            self.right(numbers),
        )

    def right(self, numbers: list[int]) -> np.ndarray:
        """[k] int64, their right sides."""
        return np.array([self._right[number] for number in numbers], dtype=np.int64)


class FeedbackProgram:
    """The program of one connected multigraph; nodes may be kept or taken.

    x, value     the last optimum            pool    inequalities
    units        [n] int64, weights in units of multipliers, 2^-places
    """

    def __init__(self, core: Multigraph) -> None:
        import highspy  # not needed by those who start the program for something else

        self._highs, self.core = highspy, core
        self.pool, self.separation = self.parts_of(core)
        n = core.n
        self.x, self.value = np.zeros(n), 0.0
        self.places = max(0, BITS - int(core.weights.max(initial=1)).bit_length())
        self.units = core.weights << self.places
        self._unit = max(float(core.weights.mean()), 1e-9) / COST
        self._state = np.zeros(n, dtype=np.uint8)
        self._held: list[int] = []  # the inequalities in the program
        self._solver = solver = new_solver(**SIMPLEX)
        empty = ints(np.zeros(n)), ints([]), np.zeros(0)
        solver.addCols(n, core.weights / self._unit, np.zeros(n), np.ones(n), 0, *empty)

    def parts_of(self, core: Multigraph) -> tuple[Pool, Separation]:
        """Where inequalities are kept, and what finds them."""
        return Pool(core.n), Separation(core)

    def add(
        self,
        cuts: Sequence[Cut],
        cliques: Sequence[tuple[int, ...]] = (),
        halves: Sequence[tuple[int, ...]] = (),
    ) -> int:
        """More inequalities; how many are new to the program."""
        pool = self.pool
        numbers = [self._number((0, cut), pool.add(cut)) for cut in cuts]
        for clique in cliques:
            numbers.append(self._number((1, clique), pool.add_clique(clique, self._clique_right(clique))))
        numbers += [self._number((2, each), pool.add_half(each)) for each in halves]
        known = set(self._held)
        new = [number for number in dict.fromkeys(numbers) if number not in known]
        if not new:
            return 0
        rows = [self.pool.row(number) for number in new]
        sizes = np.array([len(row[0]) for row in rows])
        start, k = np.append(0, np.cumsum(sizes)[:-1]), len(rows)
        nodes, coefficients = (np.concatenate([row[i] for row in rows]) for i in (0, 1))
        sides = np.array([row[2] for row in rows], dtype=float), np.full(k, self._highs.kHighsInf)
        entries = ints(start), ints(nodes), coefficients.astype(float)
        self._solver.addRows(k, *sides, int(sizes.sum()), *entries)
        self._held += new
        return k

    def _number(self, key: tuple, new: int | None) -> int:
        return self.pool.keys[key] if new is None else new

    def _clique_right(self, clique: tuple[int, ...]) -> int:
        """k - 2, or k - 1 where double edges join all."""
        own = np.zeros(self.core.n, dtype=bool)
        own[list(clique)] = True
        inner, _ = self.core.without(~own)
        return len(clique) - (1 if inner.twice.all() else 2)

    @property
    def held(self) -> int:
        """Inequalities in the program."""
        return len(self._held)

    def fix(self, state: np.ndarray) -> None:
        """Keep and take nodes [n] uint8, no others."""
        changed = np.flatnonzero(state != self._state)
        if not len(changed):
            return
        low, high = (state[changed] == TAKEN).astype(float), (state[changed] != KEPT).astype(float)
        self._solver.changeColsBounds(len(changed), ints(changed), low, high)
        self._state = state.copy()

    def solve(self, seconds: float) -> bool:
        """Find the optimum; False where HiGHS has failed, or not come to it in so long."""
        solver = self._solver
        solver.setOptionValue("time_limit", solver.getRunTime() + seconds)
        solver.run()
        if solver.getModelStatus() != self._highs.HighsModelStatus.kOptimal:
            return False
        found = solver.getSolution()
        self.x = np.clip(np.array(found.col_value), 0.0, 1.0)
        self._y = np.maximum(np.array(found.row_dual), 0) * self._unit
        self._idle = np.array(found.row_value) - self.pool.right(self._held)
        self.value = solver.getInfo().objective_function_value * self._unit
        return True

    def halves(self, most: int) -> list[tuple[int, ...]]:
        """Sums of two or three inequalities of which the last optimum violates the rounded half.

        With slack s and odd coefficients of weight p x, that is where right sides add up to an odd number
        and s + p x is below 1.

        Source   zero-half cuts: Caprara and Fischetti, {0,1/2}-Chvátal-Gomory cuts, 1996
        """
        tight = np.flatnonzero(self._idle < 0.5)
        tight = tight[np.argsort(self._idle[tight], kind="stable")][:HALVED]
        held = [self._held[i] for i in tight.tolist()]
        kept = [i for i, number in enumerate(held) if not self.pool.is_half(number)]
        held, slack = [held[i] for i in kept], np.maximum(self._idle[tight][kept], 0)
        if not held:
            return []
        rows = self.pool.some(np.array(held))
        odd = np.zeros((len(held), self.core.n))
        odd[np.repeat(np.arange(len(held)), np.diff(rows.ptr)), rows.nodes] = rows.coefficients % 2
        right, found = rows.right % 2, []
        own = slack + odd @ self.x
        for i in np.flatnonzero((right == 1) & (own < 1 - SLIGHT)).tolist():
            found.append((float(own[i]), (i,)))
        both = own[:, None] + own[None, :] - 2 * (odd * self.x) @ odd.T
        both[np.tril_indices(len(held))] = 1
        first, second = np.nonzero(both < 1 - SLIGHT)
        for i, j in zip(first.tolist(), second.tolist()):
            if right[i] != right[j]:
                found.append((float(both[i, j]), (i, j)))
                continue
            mixed = (odd[i] + odd[j]) % 2
            third = both[i, j] + own - 2 * odd @ (mixed * self.x)
            third[[i, j]] = 1
            third[(right + right[i] + right[j]) % 2 == 0] = 1
            k = int(third.argmin())
            if third[k] < 1 - SLIGHT:
                found.append((float(third[k]), tuple(sorted((i, j, k)))))
        best = sorted(found)[:most]
        return list(dict.fromkeys(tuple(sorted(held[i] for i in each)) for _, each in best))

    def drop_idle(self, fewest: int) -> None:
        """Leave out inequalities with slack in the last optimum, where they are not few."""
        idle = np.flatnonzero((self._idle > 0.1) & (self._y <= 0))
        if len(idle) < fewest:
            return
        self._solver.deleteRows(len(idle), ints(idle))
        gone = set(idle.tolist())
        kept = [i for i in range(len(self._held)) if i not in gone]
        self._held = [self._held[i] for i in kept]
        self._y, self._idle = self._y[kept], self._idle[kept]

    def multipliers(self) -> tuple[np.ndarray, np.ndarray]:
        """(inequalities, values): the last optimum's, as whole numbers of units."""
        y = np.rint(np.ldexp(self._y, self.places)).astype(np.int64)
        used = np.flatnonzero(y > 0)
        return np.array(self._held, dtype=np.int64)[used], y[used]

    def bound(self, which: np.ndarray, y: np.ndarray) -> tuple[int, np.ndarray]:
        """What multipliers prove with the nodes that are fixed, and what is left of weights, in units."""
        found = bound_of(self.pool.some(which), self.units, self._state, np.arange(len(y)), y)
        return (0, self.units) if found is None else found
