"""Cases of a travelling salesman problem, told apart by edges that a tour uses or does not.

The second half of branch and cut (cutting.py). Each case is a program of its own, over the edges that a
shorter tour may have; the least bound of all cases holds for every tour.

Sources  Padberg and Rinaldi 1991 (branch and cut); Applegate, Bixby, Chvatal and Cook 1995 (strong branching)
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from app.bounds.certificate import exact_sum
from app.bounds.tour.cuts import Cuts
from app.bounds.tour.lp import TourProgram, constant, places_for
from app.bounds.tour.proof import CutTree, Duals
from app.bounds.tour.separation import Point, separate
from app.graphs.metric import Metric
from app.rng import stream

SLOW = 0.01  # a round that gains less of what is missing gains little
PATIENCE, ROUNDS = 2, 15  # such rounds, one after the other, or rounds, end those of a case
MOST_NEW = 2  # edges that join at once, for each city
FEWEST_IDLE = 20  # rows without use that are worth dropping
FRACTIONAL = 0.01  # an edge this far from 0 and 1 can tell two cases apart
CANDIDATES, TRIES = 10, 50  # edges tried for that, and steps of the simplex method for each
LEAST_GAIN = 1e-6  # of the known length: the gain of a case counts as much at least
INTEGRAL = 1e-3  # a value above upper - 1 by this much proves that no tour is shorter
RAYS = (0.5, 1.0, 2.0, 8.0, 64.0)  # lengths of a ray, for what is missing
MOST_BYTES = 200_000_000  # of the cases' duals


class Shared:
    """What the root and its cases share: the cuts, and the tour that is known.

    upper   the length of a known tour      order   [n] a short tour, or None
    tour    [n] a tour shorter than those told, where an optimum of a program was one; else None
    """

    def __init__(self, metric: Metric, upper: int, order: np.ndarray | None) -> None:
        self.metric, self.upper, self.order, self.tour = metric, upper, order, None
        self.places, self.cuts = places_for(metric), Cuts(metric.n)
        self._random = stream(metric.n, "contractions")

    def know(self, upper: int, order: np.ndarray | None) -> None:
        """A tour of this length is known, and maybe a tour."""
        self.upper = min(self.upper, upper)
        self.order = self.order if order is None else order

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
        return separate(self.cuts, point, self.order, self._random)

    def rounded_up(self, bound: int) -> int:
        """A bound in multiples of 2^-places as a length, at least 0."""
        return max(-(-bound >> self.places), 0)


@dataclass(order=True)
class _Case:
    """A case not yet divided; bound in multiples of 2^-places. The number makes the order definite."""

    bound: int
    number: int
    fixed: dict[tuple[int, int], int] = field(compare=False)
    duals: Duals = field(compare=False)


class CaseTree:
    """Cases of a problem whose edges are those that may be in a shorter tour.

    lower     the least bound of all cases, at most the length `upper` that was known when edges were left out
    divided   whether there is more than one case        made   number of cases
    """

    def __init__(
        self, shared: Shared, alive: np.ndarray, root: tuple[int, Duals], program: TourProgram
    ) -> None:
        """alive [k, 2]: edges that the root's bound and duals leave; program: the root's"""
        self._shared, self._cuts, self._metric = shared, shared.cuts, shared.metric
        self._root, self._left_out_by = root, shared.upper
        self._u, self._v = alive.T
        self._keys = self._u * self._metric.n + self._v
        self._cost = self._metric.between(self._u, self._v) << shared.places
        self._edge = {edge: place for place, edge in enumerate(zip(self._u.tolist(), self._v.tolist()))}
        kept = np.isin(program.keys, self._keys)
        edges = np.column_stack([program.u[kept], program.v[kept]])
        self._program = TourProgram(self._metric, self._cuts, edges)
        self._program.add_rows(program.rows)
        self._entries: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # of each cut: edges, coefficients
        bound, duals = root
        self._split: dict[int, tuple[tuple[int, int], int]] = {}  # of a divided case: edge, first child
        self._leaves: dict[int, Duals] = {0: duals}
        self._bytes = 0
        self._settled = shared.upper
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
        bounds = [self._shared.rounded_up(bound) for bound in waiting]
        return min([self._settled, self._shared.upper, *bounds])

    def work(self) -> Iterator[bool]:
        """Divide the case of the least bound until none is left below the others; items: True."""
        while self._open and self.lower < min(self._settled, self._shared.upper) and self._bytes < MOST_BYTES:
            self._case = heapq.heappop(self._open)
            yield from self._look_into(self._case)
            self._case = None

    def certificate(self, method: str) -> CutTree:
        """The tree of all cases, and what proves each that is not divided."""
        tree = [self._split.get(number) for number in range(self.made)]
        leaves = [self._leaves.get(number) for number in range(self.made)]
        return CutTree.of(
            self.lower, method, self._shared.places, self._cuts, self._root[1],
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
            self._settled = min(self._settled, self._shared.rounded_up(case.bound))
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
        return bound > (self._shared.upper - 1) << self._shared.places

    def _tighten(self, case: _Case) -> Iterator[bool]:
        """Rounds of a case's program; returns (bound, its duals, whether no edge can divide the case)."""
        program, value, idle, rounds, cutting = self._program, -np.inf, 0, 0, True
        best = case.bound, case.duals
        while True:
            possible = program.solve()
            yield True
            if possible:
                self._shared.look_at(program)
                cutting = cutting and program.value <= self._shared.upper - 1 + INTEGRAL
            if possible and cutting:
                program.drop_idle(FEWEST_IDLE)
                idle = 0 if program.value > value + SLOW * (self._shared.upper - program.value) else idle + 1
                value, rounds = max(value, program.value), rounds + 1
                cuts, connected = self._shared.separate(program)
                cutting = not (connected and (idle > PATIENCE or rounds > ROUNDS))
                if cutting and program.add_rows(cuts):
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
        missing = missing[~np.isin(self._keys[missing], program.keys)]
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
        missing = self._shared.upper - (best[0] >> self._shared.places)
        for length in RAYS:
            best, absent = self._proved(case, best, length * missing)
            if self._is_closed(best[0]):
                break
        return best, absent

    def _choose(self) -> Iterator[bool]:
        """The edge whose two cases both raise the program's value most, by tries; None: all are 0 or 1."""
        program, x, upper = self._program, self._program.x, self._shared.upper
        away = np.minimum(x, 1 - x)
        candidates = np.flatnonzero(away > FRACTIONAL)
        candidates = candidates[np.argsort(-away[candidates], kind="stable")[:CANDIDATES]]
        best, most = None, -1.0
        program.remember()
        for column in candidates.tolist():
            gains = []
            for value in (0, 1):
                reached = program.tried(column, value, TRIES)
                gain = upper - program.value if reached is None else reached - program.value
                gains.append(max(min(gain, upper - program.value), LEAST_GAIN * upper))
            if gains[0] * gains[1] > most:
                best, most = (int(program.u[column]), int(program.v[column])), gains[0] * gains[1]
            yield True
        return best


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
