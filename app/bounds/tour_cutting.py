"""Branch and cut: cutting planes for the travelling salesman, then cases that use an edge or do not.

The linear program (tour_lp.py) is solved over few edges; cuts that its optimum violates are added
(tour_separation.py), edges of negative reduced cost join it. What its duals prove over all edges is the
bound. Once no cut is found that helps, edges that no tour shorter than the known one has are left out for
good: a tour with an edge of reduced cost r is at least r longer than the bound. The rest is divided: a tour
uses an edge or it does not, and each case is a program of its own.

Sources  Dantzig, Fulkerson and Johnson 1954; Padberg and Rinaldi 1991 (branch and cut);
         Applegate, Bixby, Chvatal and Cook 1995 (strong branching)
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from app.bounds.certificate import exact_sum
from app.bounds.one_tree import SCALE
from app.bounds.tour_cuts import Cuts
from app.bounds.tour_lp import TourProgram, constant, pairs_below, places_for
from app.bounds.tour_proof import CutTree, Duals
from app.bounds.tour_separation import Point, separate
from app.graphs.metric import Metric
from app.rng import stream

METHODS = {False: "cutting planes", True: "branch and cut"}
NEAREST = 5  # edges of a city to its nearest points, and to those nearest in a 1-tree's weights
SLOW = 0.01  # a round that gains less of what is missing gains little
ROOT_PATIENCE, CASE_PATIENCE = 8, 2  # such rounds, one after the other, that end the rounds of a program
CASE_ROUNDS = 15
PRICE_AFTER, PRICE_GROWTH = 15, 1.5  # rounds to the first look at all edges, and from one to the next
MOST_NEW = 2  # edges that join at once, for each city
MOST_ALIVE = 100  # edges that are left for each city: with more, cases are not worth their time
FEWEST_IDLE = 20  # rows without use that are worth dropping
FRACTIONAL = 0.01  # an edge this far from 0 and 1 can tell two cases apart
CANDIDATES, TRIES = 10, 50  # edges tried for that, and steps of the simplex method for each
LEAST_GAIN = 1e-6  # of the known length: the gain of a case counts as much at least
INTEGRAL = 1e-3  # a value above upper - 1 by this much proves that no tour is shorter
RAYS = (0.5, 1.0, 2.0, 8.0, 64.0)  # lengths of a ray, for what is missing
MOST_BYTES = 200_000_000  # of the cases' duals
BACK_TO_ROOT = 3  # rounds at the root without new cuts, each with contractions of its own


@dataclass(order=True)
class _Case:
    """A case not yet divided; bound in multiples of 2^-places. The number makes the order definite."""

    bound: int
    number: int
    fixed: dict[tuple[int, int], int] = field(compare=False)
    duals: Duals = field(compare=False)


class Cutting:
    """Rounds of the program, then cases, the one of the least bound first.

    lower    bound for every tour, 0 before the first look at all edges
    closed   no tour is shorter than `lower`, as none is than the known one
    done     nothing is left that would help
    tour     [n] a tour shorter than those told, where an optimum of the program is one; else None
    """

    def __init__(self, metric: Metric, pi: np.ndarray, upper: int, order: np.ndarray | None) -> None:
        """pi [n]   weights of 1-trees, in multiples of 1/SCALE        order   a tour, where one is at hand"""
        self.metric, self.upper, self.order = metric, upper, order
        self.done, self.tour = False, None
        self._places = places_for(metric)
        self._cuts = Cuts(metric.n)
        self._program = TourProgram(metric, self._cuts, _first_edges(metric, pi, order))
        self._random = stream(metric.n, "contractions")
        self._root: tuple[int, Duals] | None = None  # the best bound over all edges
        self._cases: CaseTree | None = None
        self._course = self._work()

    @property
    def closed(self) -> bool:
        """Whether no tour is shorter than the known one; never before the first look at all edges."""
        return self._root is not None and self.lower >= self.upper

    @property
    def lower(self) -> int:
        """A bound for every tour."""
        if self._cases is not None:
            return self._cases.lower
        return 0 if self._root is None else min(max(_rounded_up(self._root[0], self._places), 0), self.upper)

    @property
    def method(self) -> str:
        """How `lower` was found; "": not yet."""
        return "" if self._root is None else METHODS[self._cases is not None and self._cases.divided]

    @property
    def cases(self) -> int:
        """Number of cases made."""
        return 0 if self._cases is None else self._cases.made

    def know(self, upper: int, order: np.ndarray | None) -> None:
        """A tour of this length is known, and maybe a tour."""
        if order is not None:
            self.order = order
        if upper < self.upper:
            self.upper = upper
            if self._cases is not None:
                self._cases.lower_upper(upper)

    def step(self) -> None:
        """A round of the program, or a part of a case."""
        if next(self._course, None) is None or self.closed:
            self.done = True

    def certificate(self) -> CutTree:
        """The bound with what proves it."""
        if self._cases is not None:
            return self._cases.certificate(self._root, self.method)
        return CutTree.of(self.lower, self.method, self._places, self._cuts, self._root[1])

    # ---- the root

    def _work(self) -> Iterator[bool]:
        """Items: True after each step."""
        yield from self._cut_root()
        if self._root is None or self.closed:
            return
        for _ in range(BACK_TO_ROOT):
            if len(alive := self._alive()) <= MOST_ALIVE * self.metric.n:
                break
            yield True
            yield from self._cut_root()
        else:
            return
        self._cases = CaseTree(self, alive)
        yield from self._cases.work()

    def _cut_root(self) -> Iterator[bool]:
        """Rounds until nothing is gained, edges that were missing included."""
        program, value, idle, rounds, look = self._program, -np.inf, 0, 0, PRICE_AFTER
        while program.solve():
            self.look_at(program)
            program.drop_idle(FEWEST_IDLE)
            idle = 0 if program.value > value + SLOW * (self.upper - program.value) else idle + 1
            value, rounds = max(value, program.value), rounds + 1
            yield True
            cuts, connected = self.separate(program)
            added = program.add_cuts(cuts)
            yield True
            if added and not connected:
                continue
            if added and idle <= ROOT_PATIENCE and rounds < look:
                continue
            if added and not program.solve():
                return
            look = int(PRICE_GROWTH * max(rounds, look))
            joined = self._price()
            yield True
            if not joined and (not added or idle > ROOT_PATIENCE):
                return
            idle = 0 if joined else idle

    def look_at(self, program: TourProgram) -> None:
        """Whether the last optimum is a tour shorter than the known one."""
        chosen = np.flatnonzero(program.x > 1 - FRACTIONAL)
        if len(chosen) != self.metric.n or int(program.cost[chosen].sum()) >= self.upper:
            return
        order = closed_walk(self.metric.n, program.u[chosen], program.v[chosen])
        if order is not None:
            self.tour = order
            self.know(self.metric.length(order), order)

    def separate(self, program: TourProgram) -> tuple[list[int], bool]:
        """Numbers of cuts that the last optimum violates, and whether it is connected."""
        point = Point.of(self.metric.n, program.u, program.v, program.x)
        return separate(self._cuts, point, self.order, self._random)

    def _price(self) -> int:
        """The bound over all edges; those of negative reduced cost join the program. Returns how many."""
        duals = self._program.duals()
        if duals is None:
            return 0
        bound, worst = constant(self._cuts, duals), [np.zeros((0, 3), dtype=np.int64)]
        for i, j, reduced in pairs_below(self.metric, self._cuts, duals, 0):
            bound += exact_sum(reduced)
            worst.append(np.column_stack([reduced, i, j]))
        if self._root is None or bound > self._root[0]:
            self._root = bound, duals
        edges = np.concatenate(worst)
        known = np.isin(edges[:, 1] * self.metric.n + edges[:, 2], self._program.keys)
        edges = edges[~known & (edges[:, 0] < 0)]
        order = np.argsort(edges[:, 0], kind="stable")[: MOST_NEW * self.metric.n]
        return self._program.add_edges(edges[order, 1:])

    def _alive(self) -> np.ndarray:
        """[k, 2] all edges that a tour shorter than the known one may have."""
        bound, duals = self._root
        most = ((self.upper - 1) << self._places) - bound
        pieces = [np.column_stack([i, j]) for i, j, _ in pairs_below(self.metric, self._cuts, duals, most)]
        return np.concatenate([np.zeros((0, 2), dtype=np.int64), *pieces])


class CaseTree:
    """Cases of a problem whose edges are those that may be in a shorter tour.

    lower     the least bound of all cases, at most the length `upper` that was known when edges were left out
    divided   whether there is more than one case        made   number of cases
    """

    def __init__(self, cutting: Cutting, alive: np.ndarray) -> None:
        """alive [k, 2]: edges"""
        self._cutting, self._cuts, self._places = cutting, cutting._cuts, cutting._places
        self._metric, self._left_out_by, self.upper = cutting.metric, cutting.upper, cutting.upper
        self._u, self._v = alive.T
        self._cost = self._metric.between(self._u, self._v) << self._places
        self._edge = {edge: place for place, edge in enumerate(zip(self._u.tolist(), self._v.tolist()))}
        old = cutting._program
        kept = np.isin(old.keys, self._u * self._metric.n + self._v)
        self._program = TourProgram(self._metric, self._cuts, np.column_stack([old.u[kept], old.v[kept]]))
        self._program.add_cuts(old.rows)
        self._entries: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # of each cut: edges, coefficients
        bound, duals = cutting._root
        self._split: dict[
            int, tuple[tuple[int, int], int]
        ] = {}  # of a divided case: edge, number of the first child
        self._leaves: dict[int, Duals] = {0: duals}
        self._bytes = 0
        self._settled = self.upper
        self._open = [_Case(bound, 0, {}, duals)]
        self._case: _Case | None = None  # looked into now
        self.made = 1

    @property
    def divided(self) -> bool:
        """Whether there is more than one case."""
        return self.made > 1

    @property
    def lower(self) -> int:
        """The least bound of all cases."""
        waiting = [case.bound for case in (self._case, *self._open[:1]) if case is not None]
        return min([self._settled, *(max(_rounded_up(bound, self._places), 0) for bound in waiting)])

    def lower_upper(self, upper: int) -> None:
        """A shorter tour is known."""
        self.upper = min(self.upper, upper)
        self._settled = min(self._settled, upper)

    def work(self) -> Iterator[bool]:
        """Divide the case of the least bound until none is left below the others; items: True."""
        while self._open and self.lower < self._settled and self._bytes < MOST_BYTES:
            self._case = heapq.heappop(self._open)
            yield from self._look_into(self._case)
            self._case = None

    def certificate(self, root: tuple[int, Duals], method: str) -> CutTree:
        """The tree of all cases, and what proves each that is not divided."""
        tree = [self._split.get(number) for number in range(self.made)]
        leaves = [self._leaves.get(number) for number in range(self.made)]
        return CutTree.of(
            self.lower, method, self._places, self._cuts, root[1],
            left_out_by=self._left_out_by, splits=tree, values=leaves,
        )  # fmt: skip

    def _look_into(self, case: _Case) -> Iterator[bool]:
        """Tighten a case, and close or divide it."""
        program = self._program
        columns = {edge: column for column, edge in enumerate(zip(program.u.tolist(), program.v.tolist()))}
        program.fix({columns[edge]: value for edge, value in case.fixed.items()})
        case.bound, case.duals, ends = yield from self._tighten(case)
        self._keep(case.number, case.duals)
        edge = None
        if not (ends or self._is_closed(case.bound)):
            edge = yield from self._choose()
        if edge is None:
            self._settled = min(self._settled, _rounded_up(case.bound, self._places))
            return
        self._split[case.number] = edge, self.made
        del self._leaves[case.number]
        for value in (0, 1):
            child = _Case(case.bound, self.made, {**case.fixed, edge: value}, case.duals)
            self._keep(self.made, case.duals)
            self.made += 1
            heapq.heappush(self._open, child)

    def _keep(self, number: int, duals: Duals) -> None:
        self._leaves[number] = duals
        self._bytes += duals.pi.nbytes // 2 + duals.y.nbytes

    def _is_closed(self, bound: int) -> bool:
        return bound > (self.upper - 1) << self._places

    def _tighten(self, case: _Case) -> Iterator[bool]:
        """Rounds of a case's program; returns (bound, its duals, whether no edge can divide the case)."""
        program, value, idle, rounds, cutting = self._program, -np.inf, 0, 0, True
        best = case.bound, case.duals
        while True:
            possible = program.solve()
            yield True
            if possible:
                self._cutting.look_at(program)
                cutting = cutting and program.value <= self.upper - 1 + INTEGRAL
            if possible and cutting:
                program.drop_idle(FEWEST_IDLE)
                idle = 0 if program.value > value + SLOW * (self.upper - program.value) else idle + 1
                value, rounds = max(value, program.value), rounds + 1
                cuts, connected = self._cutting.separate(program)
                cutting = not (connected and (idle > CASE_PATIENCE or rounds > CASE_ROUNDS))
                if cutting and program.add_cuts(cuts):
                    continue
                cutting = False
            best, missing = (self._proved if possible else self._without_point)(case, best)
            if self._is_closed(best[0]) or not program.add_edges(missing):
                return *best, not possible

    def _proved(
        self, case: _Case, best: tuple[int, Duals], length: float | None = None
    ) -> tuple[tuple[int, Duals], np.ndarray]:
        """The better of two bounds and its duals; and edges of the case whose reduced cost is negative.

        length   of a direction in which the duals grow, see TourProgram.ray; None: those of the optimum
        """
        program, nothing = self._program, np.zeros((0, 2), dtype=np.int64)
        duals = program.duals() if length is None else program.ray(length)
        if duals is None:
            return best, nothing
        reduced = self._reduced(duals)
        counted = np.minimum(reduced, 0)
        for edge, value in case.fixed.items():
            place = self._edge[edge]
            counted[place] = reduced[place] if value else 0
        bound = constant(self._cuts, duals) + exact_sum(counted)
        missing = np.flatnonzero(counted < 0)
        missing = missing[~np.isin(self._u[missing] * self._metric.n + self._v[missing], program.keys)]
        missing = missing[np.argsort(counted[missing], kind="stable")[: MOST_NEW * self._metric.n]]
        found = (bound, duals) if bound > best[0] else best
        return found, np.column_stack([self._u[missing], self._v[missing]])

    def _reduced(self, duals: Duals) -> np.ndarray:
        """[alive] reduced costs, in multiples of 2^-places."""
        reduced = self._cost - duals.pi[self._u] - duals.pi[self._v]
        new = [cut for cut in duals.cuts.tolist() if cut not in self._entries]
        if new:
            matrix = self._cuts.coefficients(new, self._u, self._v)
            for row, cut in enumerate(new):
                part = slice(matrix.indptr[row], matrix.indptr[row + 1])
                self._entries[cut] = matrix.indices[part].astype(np.int32), matrix.data[part].astype(np.int8)
        entries = [self._entries[cut] for cut in duals.cuts.tolist()]
        if entries:
            edges = np.concatenate([edges for edges, _ in entries])
            values = np.concatenate([values for _, values in entries])
            np.subtract.at(reduced, edges, values * np.repeat(duals.y, [len(edges) for edges, _ in entries]))
        return reduced

    def _without_point(self, case: _Case, best: tuple[int, Duals]) -> tuple[tuple[int, Duals], np.ndarray]:
        """A bound of a program without a point, whose duals grow for ever, and edges that it may miss."""
        missing = self.upper - (best[0] >> self._places)
        for length in RAYS:
            best, absent = self._proved(case, best, length * missing)
            if self._is_closed(best[0]):
                break
        return best, absent

    def _choose(self) -> Iterator[bool]:
        """The edge whose two cases both raise the program's value most, by tries; None: all are 0 or 1."""
        program, x = self._program, self._program.x
        away = np.minimum(x, 1 - x)
        candidates = np.flatnonzero(away > FRACTIONAL)
        candidates = candidates[np.argsort(-away[candidates], kind="stable")[:CANDIDATES]]
        best, most = None, -1.0
        program.remember()
        for column in candidates.tolist():
            gains = []
            for value in (0, 1):
                reached = program.tried(column, value, TRIES)
                gain = self.upper - program.value if reached is None else reached - program.value
                gains.append(max(min(gain, self.upper - program.value), LEAST_GAIN * self.upper))
            if gains[0] * gains[1] > most:
                best, most = (int(program.u[column]), int(program.v[column])), gains[0] * gains[1]
            yield True
        return best


def _rounded_up(value: int, places: int) -> int:
    """A bound in multiples of 2^-places as a length."""
    return -(-value >> places)


def closed_walk(n: int, u: np.ndarray, v: np.ndarray) -> np.ndarray | None:
    """[n] the cities in the order in which n edges pass through them; None: they form no tour."""
    near: list[list[int]] = [[] for _ in range(n)]
    for a, b in zip(u.tolist(), v.tolist()):
        near[a].append(b)
        near[b].append(a)
    if any(len(ends) != 2 for ends in near):
        return None
    order, before = [0], -1
    while True:
        a, b = near[order[-1]]
        before, at = order[-1], b if a == before else a
        if at == 0:
            return np.array(order) if len(order) == n else None
        order.append(at)


def _first_edges(metric: Metric, pi: np.ndarray, order: np.ndarray | None) -> np.ndarray:
    """[k, 2] edges to begin with: to nearest points, by length and by weights of 1-trees, and a tour's."""
    n = metric.n
    near = metric.neighbours(NEAREST)
    ends = [(np.repeat(np.arange(n), near.shape[1]), near.ravel())]
    for first in range(0, n, rows := max(1, (1 << 21) // n)):
        at = np.arange(first, min(first + rows, n))
        weight = SCALE * metric.between(at[:, None], np.arange(n)) + pi
        weight[np.arange(len(at)), at] = np.iinfo(np.int64).max
        count = min(NEAREST, n - 1)
        nearest = np.argpartition(weight, count - 1, axis=1)[:, :count]
        ends.append((np.repeat(at, count), nearest.ravel()))
    order = np.arange(n) if order is None else order  # the program has a point at least
    ends.append((order, np.roll(order, -1)))
    edges = np.concatenate([np.column_stack(pair) for pair in ends]).astype(np.int64)
    return np.unique(np.sort(edges, axis=1), axis=0)
