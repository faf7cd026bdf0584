"""Lower bounds on Steiner trees that improve in slices of time: dual ascent, directed cuts, cases."""

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from app.bounds import highs
from app.bounds.steiner.case import ASCENT, CaseWork, Clock, Effort
from app.bounds.steiner.cases import METHOD, CaseTree
from app.bounds.steiner.net import Net
from app.bounds.steiner.trees import Best
from app.bounds.steiner.witness import Case, SteinerBound
from app.graphs.steiner import SteinerCore
from app.toolbox import Bounds

ENTRY_SECONDS = 1e-7  # of the first call, and of its check, for each node and entry
CHECK_SECONDS = 5e-8  # for each byte of heights, and
CASE_SECONDS = 2e-7  # for each entry and heights
ROOTS, CASE_ROOTS = 20, 2  # of ascents on the whole; of a case
ROUNDS = 400  # of the program
FEWER = 0.9  # of the arcs: if it leaves so few, cases begin anew
CASE_ARCS = 100_000  # of a net that is divided
NEAR = 0.05
RECENT = 0.8  # of the longest step, that it counts for less after each later one


class SteinerBounds(Bounds):
    """No tree of a core that holds its terminals is shorter than `value`.

    First dual ascents from several roots, which leave out what no shorter tree than the best known has. What
    is left is by turns bounded by a program of directed cuts and divided into cases, which go on when the
    program has come to its end; where that leaves out much, they begin anew. Trees that the work comes upon
    are told by `pieces`.
    """

    near = NEAR
    leads = False

    def __init__(self, core: SteinerCore, compiled: bool = True) -> None:
        self._core, self._compiled = core, compiled
        self._whole: CaseWork | None = None
        self._tree: CaseTree | None = None
        self._longest = 0.0  # s, of the steps of late
        self._best = Best(core, int(core.lengths.sum()) + 1)
        self._known = self._best.upper  # of the caller's best tree
        self._clock = Clock()
        self._steps = self._work()
        self._value, self._method, self.done = 0, "", False
        self._left_behind: SteinerBound | None = None  # of work that has been given up

    @property
    def value(self) -> int:
        """The best bound so far, 0 before the first call."""
        return self._value

    @property
    def method(self) -> str:
        """How it was found; "": no bound yet."""
        return self._method

    @property
    def cases(self) -> int:
        """That were made, 0 before it divides."""
        return 0 if self._tree is None else self._tree.made

    @property
    def least_seconds(self) -> float:
        """An estimate of the first call, and of the next step."""
        if not self._method:
            return ENTRY_SECONDS * (self._core.n + len(self._core.indices))
        return self._longest

    @property
    def check_seconds(self) -> float:
        """An estimate of what a check of the proof takes."""
        heights, size = (0, 0) if self._whole is None else self._whole.told_size
        if self._tree is not None:
            heights, size = heights + self._tree.count, size + self._tree.nbytes
        return (1 + heights) * CASE_SECONDS * len(self._core.indices) + CHECK_SECONDS * size

    @property
    def closing(self) -> bool:
        """Whether the bound is near."""
        return bool(self._method) and not self.done and self._known - self._value <= NEAR * self._known + 1

    @property
    def gaining(self) -> bool:
        """Whether there is more to try."""
        return bool(self._method) and not self.done

    def expect(self, seconds: float) -> None:
        """The time limit of the run."""
        self._clock.end = time.perf_counter() + seconds

    def until(self, clock: float) -> None:
        """When all has to be over."""
        self._clock.end = clock

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, knowing a tree of length `best`; True while there is more to try."""
        end = min(time.perf_counter() + seconds, self._clock.end)
        self._known = min(self._known, best)
        self._best.know(best)
        while not self.done and self._value < self._best.upper:
            begun = time.perf_counter()
            self.done = next(self._steps, True) is True
            self._tell()
            now = time.perf_counter()
            self._longest = max(now - begun, RECENT * self._longest)
            if now >= end:
                return not self.done and self._value < self._best.upper
        return False

    def optimum(self) -> np.ndarray | None:
        """[n] int64, the parents of a tree as long as `value`, where one was found here."""
        return self._best.parent if self._value == self._best.upper else None

    def pieces(self) -> np.ndarray | None:
        """[n] int64, the parents of a shorter tree than the caller's; None: there is none."""
        return self._best.parent if self._best.upper < self._known else None

    def proof(self) -> SteinerBound:
        """What proves `value`, or as much of it as has been kept."""
        found = self._provable()
        return found if found.lower == self._value else replace(found, checked=False)

    # ---- the work ------------------------------------------------------------------------------------------

    def _provable(self) -> SteinerBound:
        """The best bound that there is a proof of."""
        whole, tree = self._whole, self._tree
        if whole is None:
            return SteinerBound(0, self._method, [Case([])])
        best = self._left_behind
        if best is None or best.lower < whole.lower:
            best = SteinerBound(whole.lower, whole.method, [Case(whole.told())])
        if tree is not None and tree.kept and tree.lower > best.lower:
            best = SteinerBound(tree.lower, METHOD, tree.cases())
        return best

    def _tell(self) -> None:
        """The bound, and how it was found."""
        whole, tree = self._whole, self._tree
        if whole is None:
            return
        self._method = self._method or ASCENT
        if whole.lower > self._value:
            self._value, self._method = whole.lower, whole.method
        if tree is not None and tree.lower > self._value:
            self._value, self._method = tree.lower, METHOD

    def _work(self) -> Iterator[None]:
        core = self._core
        root = int(core.terminals[np.diff(core.indptr)[core.terminals].argmax()])
        net = Net.of(*core, root=root, compiled=self._compiled)
        whole = self._whole = CaseWork(net, self._best)
        if len(core.terminals) < 2:
            self._best.offer_nodes(core.terminals)
            return
        yield from whole.run(Effort(ROOTS, False, 0), self._clock)
        if whole.closed:
            return
        arcs, tree = int(whole.net.alive.sum()), self._divided()
        if highs.available() and self._clock.fits(whole.net):
            yield from _by_turns(whole.cut(ROUNDS, self._clock), tree)
            if whole.closed or not self._open():
                return
            if whole.net.alive.sum() <= FEWER * arcs:
                self._left_behind, tree = self._provable(), self._divided()
        yield from tree

    def _open(self) -> bool:
        return self._value < self._best.upper

    def _divided(self) -> Iterator[None]:
        """The work on cases, none where there is too much left."""
        if self._whole.net.alive.sum() > CASE_ARCS:
            return iter(())
        self._tree = CaseTree(self._whole, self._best, Effort(CASE_ROOTS, False, 0), self._clock)
        return self._tree.run()


def _by_turns(first: Iterator[None], second: Iterator[None]) -> Iterator[None]:
    """Two works with as much time each, till the first has come to its end."""
    works, spent = [first, second], [0.0, 0.0]
    while True:
        turn = int(spent[1] < spent[0] and works[1] is not None)
        begun = time.perf_counter()
        if next(works[turn], True) is True:
            if not turn:
                return
            works[1] = None
        spent[turn] += time.perf_counter() - begun
        yield
