"""Lower bounds on dominating sets that improve in slices of time: packings, and the exact search."""

import math
import time
from collections.abc import Iterator

import numpy as np

from app.bounds.domination.exact import ExactDomination, fits
from app.bounds.domination.packing import (
    LARGEST_PROGRAM,
    Mask,
    Packing,
    improving_packings,
    nothing,
    program_seconds,
    solved_program,
)
from app.graphs.graph import Graph
from app.toolbox import Bounds

CHECK_SECONDS = 1e-7  # of a packing, for each node and entry
FIRST_SECONDS, BEGIN_SECONDS = 1.2e-7, 3e-7  # the same of the first one, and of what later ones begin with
FIRST_SHARE = 0.01  # of a time limit, for packings before the exact search
SHARE = 0.3  # of all time, for packings beside it,
WIDE_SHARE = 0.9  # and where its end cannot be expected
TURN = 0.05  # s: of the exact search
NEAR, FAR = 0.01, 0.1  # gaps from which its end can be expected; where it has little left


class DominationBounds(Bounds):
    """Bounds of one graph, ever better ones.

    A first-order method comes within a few thousandths of the linear program's optimum soon, on graphs of any
    size (3,000 nodes, mean degree 9: in 0.1 s as high as the simplex method in 23 s); small programs are
    solved exactly after it, where there is time, and those of few rows, with prices, before it. In the time
    that `expect` or `allow` name there is an exact search beside them (exact.py), whose bound stands where it
    is higher than that of the packings.

    best   the best Packing so far
    """

    def __init__(
        self, graph: Graph, weights: np.ndarray | None = None, needed: Mask = None, allowed: Mask = None,
        most_bytes: float = math.inf,
    ) -> None:  # fmt: skip
        """weights   [n] int64 prices above 0, or None: all one

        needed, allowed   [n] bool, nodes that have to be dominated, that may be chosen; None: all
        most_bytes        what the exact search may take
        """
        self.graph, self.weights, self.best = graph, weights, nothing(graph)
        self._question = needed, allowed
        self._most_bytes, self._end = most_bytes, math.inf
        self.check_seconds = CHECK_SECONDS * (graph.n + len(graph.indices))
        self._slices = self._work()
        self._exact: ExactDomination | None = None
        self._known = 0  # the price of the caller's best set
        self._made = 0  # packings, good or bad

    @property
    def value(self) -> int:
        """The best bound, 0 before the first."""
        return self.best.lower if self.checked else self._exact.lower

    @property
    def method(self) -> str:
        """How it was found."""
        return self.best.method if self.checked else self._exact.method

    @property
    def least_seconds(self) -> float:
        """An estimate of the shortest call of `improve`, where it is long."""
        if self._made > 1:
            return 0.0
        return (FIRST_SECONDS, BEGIN_SECONDS)[self._made] * (self.graph.n + len(self.graph.indices))

    @property
    def closing(self) -> bool:
        """Whether branch and cut is at work."""
        return self._exact is not None and bool(self._exact.method) and not self._exact.done

    @property
    def near(self) -> float:
        """The gap from which its end can be expected."""
        return NEAR if self._exact is None or self._exact.wide else FAR

    @property
    def checked(self) -> bool:
        """False where the bound rests on the exact search, which leaves no witness."""
        return self._exact is None or self._exact.lower <= self.best.lower

    def expect(self, seconds: float) -> None:
        """The time limit, after which no linear program is begun either."""
        self._end = time.perf_counter() + seconds
        self.allow(seconds)

    def allow(self, seconds: float) -> None:
        """There is an exact search too, where memory and time are enough to begin it."""
        if not fits(self.graph, seconds, self._most_bytes):
            return
        price = np.ones(self.graph.n, dtype=np.int64) if self.weights is None else self.weights
        self._exact = ExactDomination(self.graph, price, *self._question, seconds)
        self._turns = _Turns(self._packings(), FIRST_SHARE * seconds)

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """One slice of the work, and more while there is time; False when nothing better is to come."""
        begun, self._known = time.perf_counter(), best
        for found in self._slices if self._exact is None else self._turns.work(self._exact, solution):
            self._made += found is not None
            if found is not None and (not self.best.method or found.lower > self.best.lower):
                self.best = found
            if self.value >= best:
                return False
            if time.perf_counter() - begun >= seconds:
                return True
        return False

    def optimum(self) -> np.ndarray | None:
        """[n] bool, a set that costs `value`, which the exact search has found; or None."""
        return None if self._exact is None else self._exact.optimum()

    def pieces(self) -> np.ndarray | None:
        """[n] bool, a set cheaper than the caller's: in each part the best that the exact search knows."""
        return None if self._exact is None else self._exact.pieces(self._known)

    def close(self) -> None:
        """Work no more; what is known stays."""
        if self._exact is not None:
            self._exact.close()

    def _work(self) -> Iterator[Packing]:
        for packings in self._packings():
            yield from packings

    def _packings(self) -> list[Iterator[Packing]]:
        question = self.graph, self.weights, *self._question
        work = [improving_packings(*question), solved_program(*question, lambda: self._end)]
        large = self.graph.n + len(self.graph.indices) > LARGEST_PROGRAM
        return work[::-1] if large and math.isfinite(program_seconds(*question)) else work


class _Turns:
    """Packings and the exact search by turns: first packings, for a while, as they can be checked."""

    def __init__(self, packings: list[Iterator[Packing]], first: float) -> None:
        """first   seconds that packings have for themselves"""
        self._left = packings
        self._first, self._packed, self._searched = first, 0.0, 0.0
        self._known: np.ndarray | None = None

    def work(self, exact: ExactDomination, solution: np.ndarray | None) -> Iterator[Packing | None]:
        """Turn after turn, each item a packing or None, until nothing is left."""
        self._known = self._known if solution is None else solution
        while exact.optimum() is None and (self._left or not exact.done):
            begun = time.perf_counter()
            if exact.done or self._packings_turn(WIDE_SHARE if exact.wide else SHARE):
                found = next(self._left[0], None)
                if found is None:
                    del self._left[0]
                self._packed += time.perf_counter() - begun
                yield found
            else:
                exact.run(TURN, self._known)
                self._searched += time.perf_counter() - begun
                yield None

    def _packings_turn(self, share: float) -> bool:
        """Whether packings have had less than a share of the time, or their first seconds."""
        if not self._packed or (len(self._left) > 1 and self._packed < self._first):
            return True
        return bool(self._left) and self._packed < share * (self._packed + self._searched)
