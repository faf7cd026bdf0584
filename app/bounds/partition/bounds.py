"""Lower bounds on what balanced partitions cut that improve in slices of time, part by part."""

import time

import numpy as np

from app.bounds.partition.diagonal import DiagonalWork, order_seconds
from app.bounds.partition.spreading import TreeWork, first_seconds
from app.bounds.partition.witness import PartBound, components, of_trees
from app.bounds.partition.work import PairWork, step_seconds
from app.graphs.balance import Balance
from app.toolbox import Bounds

CONNECTED = "connected parts"
PAIR_BYTES = 150.0  # of the work on a part, for each pair, about
MOST_PAIRS = 1200  # nodes of a part whose pairs are looked at
FEW = 200  # nodes of a part that is not asked for vectors, as pairs are quick
SHARE = 0.25  # of a time limit, that a proof by vectors, first trees, or STEPS steps with pairs may take
FIRST_SHARE = 0.2  # the same for what comes before all sweeps
STEPS = 30
HUB = 8.0  # edges at a node, in units of the mean
ENTRY_SECONDS = 7e-8  # of the first call, and of a check of it, for each node and entry
NEAR = 0.05
SLICE, LONGER = 0.2, 0.5  # s that a work has before the other one; in units of what it has had
Work = DiagonalWork | TreeWork | PairWork


class PartitionBounds(Bounds):
    """No partition cuts less than `value`.

    Parts are what edges connect. At first it is counted how many blocks each must have; then the largest part
    is worked on, and so on: by vectors where it is not small and by trees, in turns, at last by pairs where
    it is not large.

    parts   the proofs of those that were worked on
    """

    near = NEAR

    def __init__(self, balance: Balance, most_bytes: float = np.inf, compiled: bool = True) -> None:
        """most_bytes: what the work on one part may take, about"""
        self._balance, self._most, self._compiled = balance, most_bytes, compiled
        self.value, self.method = 0, ""
        self._limit = self._end = np.inf
        self._works: dict[int, list[Work]] = {}  # at hand, of a part
        self._spent: dict[Work, float] = {}
        self._proofs: dict[int, tuple[PartBound, float]] = {}  # and what a check takes, about
        self._left: dict[int, list[type]] = {}  # works to come, of a part
        self._block: np.ndarray | None = None
        self._best: int | None = None  # what the best blocks known cut

    @property
    def least_seconds(self) -> float:
        """An estimate of the first call, and of the next step."""
        if not self.method:
            return self._first_seconds
        works = self._works.get(self._next(), ())
        return self._turn_of(works).seconds if works else 0.0

    @property
    def check_seconds(self) -> float:
        """An estimate of what a check of all proofs takes."""
        return self._first_seconds + sum(seconds for _, seconds in self._proofs.values())

    @property
    def _first_seconds(self) -> float:
        return ENTRY_SECONDS * (self._balance.rows.n + len(self._balance.rows.indices))

    @property
    def gaining(self) -> bool:
        """Whether parts are open that are not too large for the time limit: their bounds may become much
        better.
        """
        part = self._next() if self.method else None
        return part is not None and order_seconds(self._entries[part]) <= FIRST_SHARE * self._limit

    @property
    def closing(self) -> bool:
        """Whether the bound is near."""
        if not self.method or self._best is None or self._next() is None:
            return False
        return self._best - self.value <= NEAR * self._best + 1

    @property
    def parts(self) -> tuple[PartBound, ...]:
        """What proves the bound, besides what parts need elsewhere."""
        return tuple(self._proofs[i][0] for i in sorted(self._proofs))

    def expect(self, seconds: float) -> None:
        """The time limit of the run: what takes too long for it is left out."""
        self._limit, self._end = seconds, time.perf_counter() + seconds

    def until(self, clock: float) -> None:
        """What would not be over then is not begun."""
        self._end = clock

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, knowing blocks [n] that cut `best`; True while there is more to try."""
        end = time.perf_counter() + seconds
        self._best = best
        if solution is not None:
            self._block = solution
        if not self.method:
            self._begin()
        while self.value < best and (part := self._next()) is not None:
            self._work_on(part, end, best)
            if time.perf_counter() >= end:
                return self.value < best and self._next() is not None
        return False

    # ---- parts ---------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        rows, self.method = self._balance.rows, CONNECTED
        label = components(rows, self._compiled)
        self._lowers = of_trees(self._balance, np.arange(rows.n), label)
        self.value = int(self._lowers.sum())
        open_parts = np.flatnonzero(self._lowers)
        order = np.argsort(label, kind="stable")
        ends = np.cumsum(np.bincount(label, minlength=len(self._lowers)))
        self._nodes = {i: order[(ends[i - 1] if i else 0) : ends[i]] for i in open_parts.tolist()}
        degrees = np.diff(rows.indptr)
        self._entries = {i: len(each) + int(degrees[each].sum()) for i, each in self._nodes.items()}
        self._left = {i: kinds_for(degrees[each]) for i, each in self._nodes.items()}
        self._turn = sorted(self._nodes, key=lambda i: (-len(self._nodes[i]), i))

    def _next(self) -> int | None:
        """The part to work on."""
        return next((i for i in self._turn if self._works.get(i) or self._left[i]), None)

    def _work_on(self, part: int, end: float, best: int) -> None:
        """One work on a part, for its turn; or the next ones are made."""
        works = self._works.setdefault(part, [])
        if self._left[part] and self._is_time(part, works):
            work = self._open(part, self._left[part].pop(0))
            works += [] if work is None else [work]
            return
        work, begun = self._turn_of(works), time.perf_counter()
        others = len(works) > 1
        turn = begun + max(SLICE, LONGER * self._spent.get(work, 0.0)) if others else end
        work.run(min(turn, end), best - self.value + int(self._lowers[part]))
        self._spent[work] = self._spent.get(work, 0.0) + time.perf_counter() - begun
        self._keep(part, work)
        self._works[part] = [each for each in works if not each.done and not self._hopeless(each, part)]

    def _is_time(self, part: int, works: list[Work]) -> bool:
        """Whether the next work on a part is made: of vectors once trees have had as long as that takes."""
        spent = sum(self._spent.get(work, 0.0) for work in works)
        vectors = self._left[part][0] is DiagonalWork
        return not works or (vectors and spent >= order_seconds(self._entries[part]))

    def _turn_of(self, works: list[Work]) -> Work:
        """The one that has had least time."""
        return min(works, key=lambda work: self._spent.get(work, 0.0))

    def _keep(self, part: int, work: Work) -> None:
        """What a work has proved, where it is better."""
        gained = work.bound.lower - int(self._lowers[part])
        if gained > 0:
            self._proofs[part] = work.bound, work.check_seconds
            self.value += gained
            self._lowers[part] += gained
            self.method = work.method

    def _hopeless(self, work: Work, part: int) -> bool:
        """Whether a work will hardly come to what is known."""
        return work.promise <= self._lowers[part]

    def _open(self, part: int, kind: type) -> Work | None:
        """The next work on a part, or None where that is too much."""
        nodes = self._nodes[part]
        if kind is TreeWork:
            seconds = first_seconds(len(nodes), self._entries[part], self._balance.parts)
            fits = seconds <= SHARE * self._limit
            return TreeWork(self._balance, nodes, self._compiled) if fits else None
        if kind is DiagonalWork:
            return self._vectors(part)
        block = np.arange(len(nodes)) if self._block is None else self._block[nodes]
        needed = PAIR_BYTES * float(len(nodes)) ** 2
        if STEPS * step_seconds(len(nodes)) > SHARE * self._limit or needed > self._most:
            return None
        return PairWork(self._balance, nodes, block)

    def _vectors(self, part: int) -> DiagonalWork | None:
        """Work by vectors, if one proof fits in time and memory."""
        seconds = min(FIRST_SHARE * self._limit, SHARE * (self._end - time.perf_counter()))
        if not DiagonalWork.can_begin(self._entries[part], seconds, self._most):
            return None
        work = DiagonalWork(self._balance, self._nodes[part], seconds)
        work.last = self._end
        fits = work.proof_seconds <= SHARE * self._limit and work.needed_bytes <= self._most
        return work if fits else None


def kinds_for(degrees: np.ndarray) -> list[type]:
    """The works on a part, by the numbers of edges at its nodes [k]; networks with hubs are no meshes, on
    which trees are good.
    """
    nodes = len(degrees)
    first: list[type] = [TreeWork] + [DiagonalWork] * (nodes > FEW)
    hubs = degrees.max() * nodes > HUB * degrees.sum()
    return (first[::-1] if hubs else first) + [PairWork] * (nodes <= MOST_PAIRS)
