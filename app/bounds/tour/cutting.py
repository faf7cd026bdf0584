"""Branch and cut: cutting planes for the travelling salesman, then cases that use an edge or do not.

The linear program (lp.py) is solved over few edges; cuts that its optimum violates are added
(separation.py), edges of negative reduced cost join it. What its duals prove over all edges is the
bound. Once no cut is found that helps, edges that no tour shorter than the known one has are left out for
good: a tour with an edge of reduced cost r is at least r longer than the bound. The rest is divided: a tour
uses an edge or it does not, and each case is a program of its own (cases.py).

Sources  Dantzig, Fulkerson and Johnson 1954; Padberg and Rinaldi 1991 (branch and cut)
"""

from collections.abc import Iterator

import numpy as np

from app.bounds.certificate import exact_sum
from app.bounds.tour.cases import FEWEST_IDLE, MOST_NEW, SLOW, CaseTree, Shared
from app.bounds.tour.lp import TourProgram, constant, pairs_below
from app.bounds.tour.one_tree import SCALE
from app.bounds.tour.proof import CutTree, Duals
from app.graphs.metric import Metric

METHODS = {False: "cutting planes", True: "branch and cut"}
NEAREST = 5  # edges of a city to its nearest points, and to those nearest in a 1-tree's weights
PATIENCE = 8  # rounds of little gain, one after the other, that end those of the root
PRICE_AFTER, PRICE_GROWTH = 15, 1.5  # rounds to the first look at all edges, and from one to the next
MOST_ALIVE = 100  # edges that are left for each city: with more, cases are not worth their time
BACK_TO_ROOT = 3  # rounds at the root without new cuts, each with contractions of its own


class Cutting:
    """Rounds of the program, then cases, the one of the least bound first.

    lower    bound for every tour, 0 before the first look at all edges
    closed   no tour is shorter than `lower`, as none is than the known one
    done     nothing is left that would help
    """

    def __init__(self, metric: Metric, pi: np.ndarray, upper: int, order: np.ndarray | None) -> None:
        """pi [n]   weights of 1-trees, in multiples of 1/SCALE        order   a tour, where one is at hand"""
        self.metric, self.done = metric, False
        self.shared = Shared(metric, upper, order)
        self._program = TourProgram(metric, self.shared.cuts, _first_edges(metric, pi, order))
        self._root: tuple[int, Duals] | None = None  # the best bound over all edges
        self._cases: CaseTree | None = None
        self._course = self._work()

    @property
    def tour(self) -> np.ndarray | None:
        """[n] a tour shorter than those told, where an optimum of the program was one."""
        return self.shared.tour

    @property
    def closed(self) -> bool:
        """Whether no tour is shorter than the known one; never before the first look at all edges."""
        return self._root is not None and self.lower >= self.shared.upper

    @property
    def lower(self) -> int:
        """A bound for every tour."""
        if self._cases is not None:
            return self._cases.lower
        return 0 if self._root is None else min(self.shared.rounded_up(self._root[0]), self.shared.upper)

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
        self.shared.know(upper, order)

    def step(self) -> None:
        """A round of the program, or a part of a case."""
        if next(self._course, None) is None or self.closed:
            self.done = True

    def certificate(self) -> CutTree:
        """The bound with what proves it."""
        if self._cases is not None:
            return self._cases.certificate(self.method)
        shared = self.shared
        return CutTree.of(self.lower, self.method, shared.places, shared.cuts, self._root[1])

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
        self._cases = CaseTree(self.shared, alive, self._root, self._program)
        yield from self._cases.work()

    def _cut_root(self) -> Iterator[bool]:
        """Rounds until nothing is gained, edges that were missing included."""
        program, value, idle, rounds, look = self._program, -np.inf, 0, 0, PRICE_AFTER
        while program.solve():
            self.shared.look_at(program)
            program.drop_idle(FEWEST_IDLE)
            idle = 0 if program.value > value + SLOW * (self.shared.upper - program.value) else idle + 1
            value, rounds = max(value, program.value), rounds + 1
            yield True
            cuts, connected = self.shared.separate(program)
            added = program.add_rows(cuts)
            yield True
            if added and not connected:
                continue
            if added and idle <= PATIENCE and rounds < look:
                continue
            if added and not program.solve():
                return
            look = int(PRICE_GROWTH * max(rounds, look))
            joined = self._price()
            yield True
            if not joined and (not added or idle > PATIENCE):
                return
            idle = 0 if joined else idle

    def _price(self) -> int:
        """The bound over all edges; those of negative reduced cost join the program. Returns how many."""
        duals = self._program.duals()
        if duals is None:
            return 0
        bound, worst = constant(self.shared.cuts, duals), [np.zeros((0, 3), dtype=np.int64)]
        for i, j, reduced in pairs_below(self.metric, self.shared.cuts, duals, 0):
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
        most = ((self.shared.upper - 1) << self.shared.places) - bound
        pieces = [
            np.column_stack([i, j]) for i, j, _ in pairs_below(self.metric, self.shared.cuts, duals, most)
        ]
        return np.concatenate([np.zeros((0, 2), dtype=np.int64), *pieces])


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
