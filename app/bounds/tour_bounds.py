"""A bound of a travelling salesman problem that gets better with time: 1-trees, then branch and bound."""

import time

from app.bounds.near_tree import applies
from app.bounds.one_tree import METHOD, Ascent, OneTree
from app.bounds.tour_ascent import SparseAscent
from app.bounds.tour_tree import METHOD as CASES
from app.bounds.tour_tree import Branching, CaseTree
from app.graphs.metric import Metric
from app.native import tour as native

BRANCH_POINTS = 150  # up to here cases are worth their time
DENSE_POINTS = 1000  # up to here all 1-trees are made of all edges
BRANCH_AFTER = 1550  # 1-trees: five rounds of the ascent
PLAIN_SECONDS, PLAIN_PAIRS = 1.5e-5, 2e-8  # of a 1-tree by NumPy, for each point and each pair of points
KERNEL_PAIRS = 6e-9  # by the kernel, for each pair
NEAR_SECONDS, BEGIN_SECONDS = 3e-6, 3e-5  # for each point in the plane, and to find the candidates
TREE_SECONDS = 4e-5  # for each point, of the check of a tree
MOST_CASES = 8000  # checked in a few seconds


class TourBounds:
    """A lower bound on the length of every tour.

    lower    the best bound so far, 0 before the first step        method   how it was found; "": no bound yet
    steps    1-trees of the ascent and cases divided
    done     nothing is left to try: the bound is best possible or the cases are too many

    Branch and bound begins where a tour is known (`upper`) and the ascent has slowed down. The bound is a
    function of (metric, steps, the uppers given); only `improve` looks at the clock.
    """

    def __init__(self, metric: Metric, compiled: bool = True) -> None:
        self.metric, self.compiled = metric, compiled
        self._ascent = (Ascent if metric.n <= DENSE_POINTS else SparseAscent)(metric, compiled)
        self._branching: Branching | None = None
        self._divided = 0
        self.done = self._ascent.closed

    @property
    def lower(self) -> int:
        """The best bound so far."""
        return max(self._branching.lower if self._branching else self._ascent.lower, 0)

    @property
    def method(self) -> str:
        """How the bound was found."""
        if self._ascent.lower < 0:
            return ""
        return CASES if self._branching else METHOD

    @property
    def steps(self) -> int:
        """1-trees of the ascent and cases divided."""
        return self._ascent.steps + self._divided

    def run(self, steps: int, upper: int | None = None) -> bool:
        """Make up to `steps` steps, until the bound reaches `upper`, a known length; True if it grew."""
        before = self.lower
        for _ in range(steps):
            if self.done or self._reached(upper):
                break
            self._step(upper)
        return self.lower > before

    def improve(self, seconds: float, upper: int | None = None) -> bool:
        """`run` for about so many seconds, at least one step; True where there is more to try."""
        end = time.monotonic() + seconds
        while not (self.done or self._reached(upper)):
            self._step(upper)
            if time.monotonic() >= end:
                return not self.done
        return False

    @property
    def check_seconds(self) -> float:
        """An estimate of what checking the certificate takes: a 1-tree of NumPy calls for each case."""
        if self._near:
            return TREE_SECONDS * self.metric.n
        return self._plain_seconds * (1 + (self._branching.cases if self._branching else 0))

    @property
    def least_seconds(self) -> float:
        """An estimate of the longest step: a 1-tree of all edges, at first also the candidates."""
        if not (self.compiled and native.available()):
            return self._plain_seconds
        if self._near:
            return (NEAR_SECONDS if self.steps else BEGIN_SECONDS) * self.metric.n
        return KERNEL_PAIRS * self.metric.n**2

    @property
    def _plain_seconds(self) -> float:
        return (PLAIN_SECONDS + PLAIN_PAIRS * self.metric.n) * self.metric.n

    @property
    def _near(self) -> bool:
        """Whether 1-trees are found and checked without a look at all edges."""
        return self.metric.n > DENSE_POINTS and applies(self.metric)

    def certificate(self) -> OneTree | CaseTree:
        """The bound with what proves it."""
        return self._branching.certificate() if self._branching else self._ascent.certificate()

    def _reached(self, upper: int | None) -> bool:
        """Whether a bound was found that no other can beat: one of 0 is none before the first step."""
        return upper is not None and self.method != "" and self.lower >= upper

    def _step(self, upper: int | None) -> None:
        if self._branching is None and upper is not None and self._slow():
            self._branching = Branching(
                self.metric, self._ascent.pi, self._ascent.special, upper, self.compiled
            )
        if self._branching is None:
            self._ascent.step(upper)
            self.done = self._ascent.closed
            return
        if upper is not None:
            self._branching.lower_upper(upper)
        self._branching.run(1)
        self._divided += 1
        self.done = self._branching.closed or self._branching.cases >= MOST_CASES

    def _slow(self) -> bool:
        return self.metric.n <= BRANCH_POINTS and self._ascent.steps >= BRANCH_AFTER
