"""Lower bounds on what balanced partitions cut that improve in slices of time, part by part."""

import time

import numpy as np

from app.bounds.partition.witness import PartitionBound, components, of_trees
from app.bounds.partition.work import EigenWork, PairWork, step_seconds
from app.graphs.balance import Balance
from app.toolbox import Bounds

TREES = "connected parts"
PAIR_BYTES = 150.0  # of the work on a part, for each pair, about
MOST_PAIRS = 1200  # nodes of a part whose pairs are looked at
FEW = 200  # nodes of a part of which no eigenvalue is asked for, as pairs are quick
SHARE = 0.25  # of a time limit, that an eigenvalue, or STEPS steps with pairs, may take
STEPS = 30
ENTRY_SECONDS = 1e-7  # of the first call, for each node and entry
NEAR = 0.05


class PartitionBounds(Bounds):
    """No partition cuts less than `value`.

    Parts are what edges connect. At first trees are counted; then the largest part is worked on, and so on:
    by an eigenvalue where it is not small, by pairs where it is not large.

    parts   the proofs of those that were worked on
    """

    near = NEAR

    def __init__(self, balance: Balance, most_bytes: float = np.inf) -> None:
        """most_bytes: what the work on one part may take, about"""
        self._balance, self._most = balance, most_bytes
        self.value, self.method = 0, ""
        self._limit = np.inf
        self._works: dict[int, PairWork | EigenWork] = {}  # at hand, of a part
        self._proofs: dict[int, PartitionBound] = {}
        self._left: dict[int, list[type]] = {}  # works to come, of a part
        self._block: np.ndarray | None = None
        self._best: int | None = None  # what the best blocks known cut

    @property
    def least_seconds(self) -> float:
        """An estimate of the first call, and of the next step."""
        if not self.method:
            return ENTRY_SECONDS * (self._balance.rows.n + len(self._balance.rows.indices))
        part = self._next()
        return 0.0 if part is None or part not in self._works else self._works[part].seconds

    @property
    def gaining(self) -> bool:
        """Whether parts are open: their bounds may become much better."""
        return bool(self.method) and self._next() is not None

    @property
    def closing(self) -> bool:
        """Whether the bound is near."""
        return self.gaining and self._best is not None and self._best - self.value <= NEAR * self._best + 1

    @property
    def parts(self) -> tuple[PartitionBound, ...]:
        """What proves the bound, besides trees elsewhere."""
        return tuple(self._proofs[i] for i in sorted(self._proofs))

    def expect(self, seconds: float) -> None:
        """The time limit of the run: what takes too long for it is left out."""
        self._limit = seconds

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, knowing blocks [n] that cut `best`; True while there is more to try."""
        end = time.perf_counter() + seconds
        self._best = best
        if solution is not None:
            self._block = solution
        if not self.method:
            self._begin()
        while self.value < best and (part := self._next()) is not None:
            work = self._works.get(part) or self._open(part)
            if work is None:
                continue
            work.run(end, best - self.value + int(self._lowers[part]))
            if work.done:
                del self._works[part]
            if work.bound.lower > self._lowers[part]:
                self._proofs[part] = work.bound
                self.value += work.bound.lower - int(self._lowers[part])
                self._lowers[part] = work.bound.lower
                self.method = work.method
            if time.perf_counter() >= end:
                return self.value < best and self._next() is not None
        return False

    # ---- parts ---------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        rows, self.method = self._balance.rows, TREES
        label = components(rows)
        self._trees = of_trees(self._balance, np.arange(rows.n), label)
        self._lowers = self._trees.copy()
        self.value = int(self._lowers.sum())
        open_parts = np.flatnonzero(self._trees)
        order = np.argsort(label, kind="stable")
        ends = np.cumsum(np.bincount(label, minlength=len(self._trees)))
        self._nodes = {i: order[(ends[i - 1] if i else 0) : ends[i]] for i in open_parts.tolist()}
        self._left = {
            i: [EigenWork] * (len(each) > FEW) + [PairWork] * (len(each) <= MOST_PAIRS)
            for i, each in self._nodes.items()
        }
        self._turn = sorted(self._nodes, key=lambda i: (-len(self._nodes[i]), i))

    def _next(self) -> int | None:
        """The part to work on."""
        return next((i for i in self._turn if i in self._works or self._left[i]), None)

    def _open(self, part: int) -> PairWork | EigenWork | None:
        """The next work on a part, or None where that is too much."""
        nodes, kind = self._nodes[part], self._left[part].pop(0)
        block = np.arange(len(nodes)) if self._block is None else self._block[nodes]
        if kind is EigenWork:
            work: PairWork | EigenWork = EigenWork(self._balance, nodes)
            if not work.fits or work.seconds > SHARE * self._limit:
                return None
        else:
            needed = PAIR_BYTES * float(len(nodes)) ** 2
            if STEPS * step_seconds(len(nodes)) > SHARE * self._limit or needed > self._most:
                return None
            work = PairWork(self._balance, nodes, block)
        self._works[part] = work
        return work
