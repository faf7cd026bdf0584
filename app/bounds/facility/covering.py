"""Whether so many facilities have all customers within a radius: a set cover of few of them, that grows.

A solution whose customers all cost less than a radius is a set cover: each customer has an open facility of
those that cost it less. A cover of some customers is less to ask for: where no `most` facilities cover these,
none cover all. So a linear program has the rows of few customers, and those of others join where its solution
leaves them uncovered. Branch and bound follows, in which rows may join anywhere, as they hold everywhere. A
case is proved by multipliers of customers (witness.py): duals of the program rounded to whole numbers, never
what HiGHS says.

Source   Chen and Handler, Relaxation method for the solution of the minimax location-allocation problem in
         Euclidean space, 1987; Contardo, Iori and Kramer, A scalable exact algorithm for the vertex p-center
         problem, 2019
"""

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from app.bounds.certificate import exact_sum
from app.bounds.dfvs.program import Program
from app.bounds.facility.reach import Reach, TableReach
from app.bounds.facility.witness import FINEST, CenterBound, FacilityBound, fix

METHOD = "branch and bound on covers of some customers"
PROGRAM = "covers of some customers"
ONE = FINEST  # parts of a multiplier of 1
UNCOVERED = 1e-6  # of a row
TAIL, HOPE = 8, 10  # rounds of rows, by so many times whose gain the program can still rise
EACH = 5  # rows for each facility, before the program is called slow
FEW = 40  # customers that join at a time
SECONDS, LEAST_SECONDS = 60.0, 0.01  # of one linear program, at most, and where the time is up
CANDIDATES, STEPS = 6, 25  # facilities that are tried before one is branched on; simplex steps of a try
LITTLE = 1e-3  # of a rise
MOST_BYTES = 1 << 28  # of multipliers that are kept
MOST_ENTRIES = 1 << 26  # of facilities and customers in the program


class Pool:
    """Customers whose rows were of use in the last question: where the next one begins."""

    def __init__(self) -> None:
        self.customers: list[int] = []


class Rows:
    """Sets of facilities, of m, one after the other; sums over them are exact below 2^53."""

    def __init__(self, m: int) -> None:
        self.m, self.entries = m, 0
        self._places: list[np.ndarray] = []
        self._joined, self._ptr = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)

    def add(self, places: np.ndarray) -> None:
        """One more."""
        self._places.append(places)
        self.entries += len(places)

    def _all(self) -> np.ndarray:
        """All of them in a row, `_ptr` where each begins."""
        if len(self._ptr) != len(self._places) + 1:
            self._joined = np.concatenate(self._places)
            self._ptr = np.concatenate([[0], np.cumsum([len(each) for each in self._places])])
        return self._joined

    def sizes(self) -> np.ndarray:
        """[k] int64, how many facilities each has."""
        self._all()
        return np.diff(self._ptr)

    def times(self, v: np.ndarray) -> np.ndarray:
        """[m] float64, of each facility the sum of v [j] over those of the first j sets that have it."""
        sizes = self.sizes()[: len(v)]
        return np.bincount(self._all()[: sizes.sum()], np.repeat(v, sizes), minlength=self.m)

    def counts(self, mask: np.ndarray) -> np.ndarray:
        """[k] float64, how many facilities of a mask [m] each set has."""
        every = self._all()
        sizes = self.sizes()
        return np.bincount(np.repeat(np.arange(len(sizes)), sizes), mask[every], minlength=len(sizes))


class CoverCases:
    """Whether a choice of facilities has all customers below a radius; a function of the pool and of steps.

    lower    1: no choice has
    value    what the best choice that was met is worth, found [m] bool; None: none was
    solved   the best choice has all below the radius
    done     nothing is left to try
    nodes    cases that were looked at
    end      when, by time.perf_counter(), all has to be over
    """

    def __init__(self, sites: Any, radius: int, pool: Pool, reach: Reach | None = None) -> None:
        """reach   who is near whom; None: by the table of `sites`"""
        self.sites, self.radius, self._pool = sites, radius, pool
        self._reach: Reach = TableReach(sites, radius) if reach is None else reach
        self.lower, self.nodes, self.done = 0, 1, False
        self.found: np.ndarray | None = None
        self.value = 1 << 62
        self._customers: list[int] = []
        self._rows: list[int] = []  # of the program, each the number of a customer among these
        self._numbers: dict[int, int] = {}
        self._held = Rows(sites.m)  # the facilities that these have
        self.end = math.inf
        self._duals: list[tuple[int, np.ndarray]] = []  # multipliers of the first customers
        self._ptr, self._branch, self._bytes = [0], [], 0
        self._work = self._course()

    def improve(self, steps: int) -> bool:
        """So many steps; False: nothing better is to come."""
        for _ in range(steps):
            if not self.done and next(self._work, None) is None:
                self.done = True
        return not self.done

    @property
    def solved(self) -> bool:
        """Whether the best choice has all customers below the radius."""
        return self.value < self.radius

    # ---- the course ----------------------------------------------------------------------------------------

    def _course(self) -> Iterator[bool]:
        """Depth first, the case of an open facility before that of a closed one: in preorder."""
        sites = self.sites
        alone = self._reach.alone()
        spread = [int(alone[0])] if len(alone) else self._pool.customers
        self._pool.customers = spread or self._reach.spread(sites.most + 1)
        self._begin_program()
        todo = [(sites.forced.copy(), np.zeros(sites.m, dtype=bool), None)]
        while todo:
            open_, closed, above = todo.pop()
            self.nodes += bool(self._branch)
            proved = yield from self._solved(open_, closed, above)
            if proved is None or self.solved:
                return
            self._ptr.append(len(self._duals))
            self._branch.append(-1)
            if proved:
                continue
            j = yield from self._divided(open_, closed)
            if j is None:
                return
            self._branch[-1] = j
            if above is None:
                self._begin_program()
            shut, opened = closed.copy(), open_.copy()
            shut[j] = opened[j] = True
            last = self._duals[-1]
            todo += [(open_, shut, last), (opened, closed, last)]
        self.lower = 1

    def _solved(self, open_: np.ndarray, closed: np.ndarray, above: tuple | None) -> Iterator[bool | None]:
        """Rows until none is missing; whether the case is proved, None: HiGHS fails, or too much is kept."""
        if above is not None and self._fixes(above, open_, closed):
            return True
        reached: list[float] = []
        while True:
            self._program.fix(np.flatnonzero(open_).tolist(), np.flatnonzero(closed).tolist())
            solved = self._program.solve(max(min(SECONDS, self.end - time.perf_counter()), LEAST_SECONDS))
            if solved is None or self._bytes > MOST_BYTES or self._program_is_large():
                return None
            y = self._program_duals() if solved else self._alone(closed)
            proved = self._proves(y, open_, closed)
            if above is None and solved:
                self._pool.customers = [self._customers[i] for i in np.flatnonzero(y > UNCOVERED)]
            if proved:
                return True
            x = self._program.point
            missed = self._missed(x)
            self._offer(x)
            reached.append(self._program.value)
            if not missed or self.solved or (above is None and self._is_slow(reached)):
                return False
            if not self._join(missed):  # they are there, and what they lack is rounding
                return False
            yield True

    def _is_slow(self, reached: list[float]) -> bool:
        """Whether rows, by the values of the program so far, are not going to prove the question."""
        if len(reached) <= TAIL or len(self._rows) < EACH * (self.sites.most + EACH):
            return False
        return HOPE * (reached[-1] - reached[-1 - TAIL]) < self.sites.most - reached[-1]

    def _program_is_large(self) -> bool:
        return self._held.entries > MOST_ENTRIES

    def _divided(self, open_: np.ndarray, closed: np.ndarray) -> Iterator[int | None]:
        """The facility to branch on: of those of about half an x that by which the program rises most."""
        x, value = self._program.point.copy(), self._program.value
        part = np.flatnonzero(~(open_ | closed) & (np.abs(x - np.rint(x)) > UNCOVERED))
        if not len(part):
            return None
        near = np.round(np.abs(x[part] - 0.5), 1)
        held = self._held.times(np.ones(len(self._customers)))[part]
        part = part[np.lexsort((part, -held, near))][:CANDIDATES].tolist()
        if len(part) == 1:
            return part[0]
        inside, outside = np.flatnonzero(open_).tolist(), np.flatnonzero(closed).tolist()
        best, most = part[0], -1.0
        for j in part:
            rises = []
            for sides in (([*inside, j], outside), (inside, [*outside, j])):
                self._program.fix(*sides)
                reached = self._program.tried(STEPS)
                rises.append(1.0 if reached is None else min(max(reached - value, LITTLE), 1.0))
            yield True
            if rises[0] * rises[1] > most * (1 + UNCOVERED):
                best, most = j, rises[0] * rises[1]
        return best

    def _offer(self, x: np.ndarray) -> None:
        """The facilities of the largest x, as many as may be, as a choice."""
        sites = self.sites
        chosen, order = sites.forced.copy(), np.argsort(-x, kind="stable")
        order = order[~chosen[order]][: sites.most - int(np.count_nonzero(chosen))]
        chosen[order] = True
        value = sites.value(chosen)
        if value < self.value:
            self.value, self.found = value, chosen

    # ---- rows ----------------------------------------------------------------------------------------------

    def _missed(self, x: np.ndarray) -> list[int]:
        """Customers whose rows x [m] does not satisfy, the most wanting first, no two of them near one
        facility.
        """
        held = self._reach.held(np.where(x > UNCOVERED / 10, x, 0.0))
        left = np.flatnonzero(held < 1 - UNCOVERED)
        left, found = left[np.argsort(held[left], kind="stable")], []
        while len(left) and len(found) < FEW:
            u = int(left[0])
            found.append(u)
            left = left[~self._reach.sharing(u, left)]
        return found

    def _begin_program(self) -> None:
        """A program of the rows of the pool alone."""
        self._program, self._rows = Program(np.ones(self.sites.m, dtype=np.int64)), []
        self._join(self._pool.customers)

    def _join(self, customers: list[int]) -> bool:
        """Rows of customers, but for those that are there; whether there are more now."""
        before = len(self._rows)
        for u in customers:
            places = self._reach.of(u)
            if not self._program.add([(tuple(places.tolist()), False)]):
                continue
            self._rows.append(self._number_of(u, places))
        return len(self._rows) > before

    def _number_of(self, u: int, places: np.ndarray) -> int:
        """The number of a customer, which may be a new one."""
        number = self._numbers.setdefault(u, len(self._customers))
        if number == len(self._customers):
            self._customers.append(u)
            self._held.add(places)
        return number

    # ---- what is proved ------------------------------------------------------------------------------------

    def _program_duals(self) -> np.ndarray:
        """[k] of the customers that are known, those of the last program."""
        y = np.zeros(len(self._customers))
        y[self._rows] = self._program.duals
        return y

    def _alone(self, closed: np.ndarray) -> np.ndarray:
        """Multipliers of a case that leaves a customer without a facility."""
        y = np.zeros(len(self._customers))
        y[int(self._held.counts(~closed).argmin())] = 1.0
        return y

    def _proves(self, y: np.ndarray, open_: np.ndarray, closed: np.ndarray) -> bool:
        """Whether duals prove a case; else the masks get what they fix. They are kept."""
        v = np.rint(np.clip(y, 0, 1) * ONE).astype(np.int64)
        v[self._held.sizes() == self.sites.m] = 0  # such a customer costs nothing anywhere
        self._duals.append((len(v), v))
        self._bytes += v.nbytes
        return self._fixes(self._duals[-1], open_, closed)

    def _fixes(self, row: tuple[int, np.ndarray], open_: np.ndarray, closed: np.ndarray) -> bool:
        """The same of multipliers that are kept: sums of float64 are exact below 2^53."""
        reduced = -self._held.times(row[1].astype(np.float64)).astype(np.int64)
        return fix(self.sites, exact_sum(row[1]), reduced, 0, open_, closed)

    def certificate(self, radius: int) -> CenterBound:
        """The proof that no solution is worth less than the radius."""
        customers = np.array(self._customers, dtype=np.int64)
        rows = np.zeros((len(self._duals), len(customers)), dtype=np.int64)
        for row, (count, v) in zip(rows, self._duals):
            row[:count] = v
        order = np.argsort(customers)
        cases = FacilityBound(
            1, self.method, ONE, np.ascontiguousarray(rows[:, order]), np.array(self._ptr, dtype=np.int64),
            np.array(self._branch, dtype=np.int64),
        )  # fmt: skip
        return CenterBound(radius, self.method, customers[order], cases)

    @property
    def method(self) -> str:
        """How the bound was found."""
        return PROGRAM if self.nodes == 1 else METHOD
