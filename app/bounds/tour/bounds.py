"""A bound of a travelling salesman problem that gets better with time: 1-trees, then branch and cut."""

import numpy as np

from app.bounds import highs
from app.bounds.sliced import SteppedBounds
from app.bounds.tour.ascent import SparseAscent
from app.bounds.tour.cutting import Cutting
from app.bounds.tour.near_tree import applies
from app.bounds.tour.one_tree import METHOD, Ascent, OneTree
from app.bounds.tour.proof import CutTree
from app.graphs.metric import Metric
from app.native import tour as native

FEWEST_POINTS, MOST_POINTS = 5, 12_000  # between these the linear program is worth its time
DENSE_POINTS = 1000  # up to here all 1-trees are made of all edges
CUT_AFTER = 150  # 1-trees: two rounds of the ascent
PLAIN_SECONDS, PLAIN_PAIRS = 1.5e-5, 2e-8  # of a 1-tree by NumPy, for each point and each pair of points
KERNEL_PAIRS = 6e-9  # by the kernel, for each pair
# For each point in the plane: of the first 1-tree, of what finds the candidates, and of every later step.
FIRST_SECONDS, BEGIN_SECONDS, NEAR_SECONDS = 1e-5, 2e-5, 3e-6
TREE_SECONDS = 2.5e-5  # for each point, of the check of a tree
CHECK_PAIRS = 3e-7  # for each pair of points, of the check of the root of branch and cut
CHECK_CASE = 2e-6  # for each point, of that of a case


class TourBounds(SteppedBounds):
    """A lower bound on the length of every tour.

    lower    the best bound so far, 0 before the first step        method   how it was found; "": no bound yet
    steps    1-trees of the ascent, rounds of the linear program
    done     nothing is left to try: the bound is best possible, or no cut and no case is worth its time

    The linear program begins where a tour is known (`upper`) and the first rounds of the ascent are made. The
    bound is a function of (metric, steps, the uppers and orders given); only `improve` looks at the clock.
    """

    def __init__(self, metric: Metric, compiled: bool = True) -> None:
        self.metric, self.compiled = metric, compiled
        self._ascent = (Ascent if metric.n <= DENSE_POINTS else SparseAscent)(metric, compiled)
        self._cutting: Cutting | None = None
        self._rounds = 0
        self._order: np.ndarray | None = None
        self._cuts = FEWEST_POINTS <= metric.n <= MOST_POINTS and highs.available()
        self.done = self._ascent.closed

    @property
    def lower(self) -> int:
        """The best bound so far."""
        return max(self._best.lower, 0)

    @property
    def method(self) -> str:
        """How the bound was found."""
        if self._ascent.lower < 0:
            return ""
        return METHOD if self._best is self._ascent else self._cutting.method

    @property
    def steps(self) -> int:
        """1-trees of the ascent, rounds of the linear program."""
        return self._ascent.steps + self._rounds

    @property
    def cases(self) -> int:
        """Cases of branch and cut, 0 before it divides."""
        return 0 if self._cutting is None else self._cutting.cases

    @property
    def _best(self) -> Ascent | SparseAscent | Cutting:
        better = self._cutting is not None and self._cutting.lower > self._ascent.lower
        return self._cutting if better else self._ascent

    @property
    def closing(self) -> bool:
        """Whether the linear program has begun and may reach the optimum."""
        return self._cutting is not None and not self.done

    @property
    def gaining(self) -> bool:
        """Whether the linear program has begun and has proved nothing yet."""
        return self.closing and self._best is self._ascent

    def know(self, order: np.ndarray) -> None:
        """A short tour [n]: it helps to find cuts."""
        self._order = np.asarray(order, dtype=np.int64)

    @property
    def check_seconds(self) -> float:
        """An estimate of what checking the certificate takes."""
        n = self.metric.n
        if self._best is self._cutting:
            return CHECK_PAIRS * n * n + CHECK_CASE * n * self.cases
        return TREE_SECONDS * n if self._near else self._plain_seconds

    @property
    def least_seconds(self) -> float:
        """An estimate of the longest step: a 1-tree, or what finds the candidates; later a round."""
        if self._cutting is not None:
            return self.longest
        if not (self.compiled and native.available()):
            return self._plain_seconds
        if self._near:
            each = (FIRST_SECONDS, BEGIN_SECONDS)[self.steps] if self.steps < 2 else NEAR_SECONDS
            return each * self.metric.n
        return KERNEL_PAIRS * self.metric.n**2

    @property
    def _plain_seconds(self) -> float:
        return (PLAIN_SECONDS + PLAIN_PAIRS * self.metric.n) * self.metric.n

    @property
    def _near(self) -> bool:
        """Whether 1-trees are found and checked without a look at all edges."""
        return self.metric.n > DENSE_POINTS and applies(self.metric)

    @property
    def optimum(self) -> np.ndarray | None:
        """A tour [n] that the linear program came upon, shorter than those known to it, or None."""
        return None if self._cutting is None else self._cutting.tour

    def step(self, upper: int | None) -> None:
        """A 1-tree, a round of the linear program, or a part of a case."""
        if upper is None or not self._cuts or self._ascent.steps < CUT_AFTER:
            self._ascent.step(upper)
            self.done = self._ascent.closed
            return
        if self._cutting is None:
            self._cutting = Cutting(self.metric, self._ascent.pi, upper, self._order)
        self._cutting.know(upper, self._order)
        self._cutting.step()
        self._rounds += 1
        self.done = self._cutting.done

    def certificate(self) -> OneTree | CutTree:
        """The bound with what proves it."""
        return self._best.certificate()
