"""Lower bounds on facility location that improve in slices of time."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from app.bounds.certificate import Proof
from app.bounds.facility.covering import CoverCases, Pool
from app.bounds.facility.dual import NOTHING, Cases
from app.bounds.facility.lists import ENTRY_SECONDS as LISTED_SECONDS
from app.bounds.facility.lists import ListCases
from app.bounds.facility.packing import CoverPacking
from app.bounds.facility.reach import MOST_ENTRIES, ListReach
from app.bounds.facility.witness import CenterBound, FacilityBound
from app.bounds.highs import available
from app.errors import Halted
from app.graphs.facility import Sites
from app.toolbox import Bounds

PACKED, MIDDLE, ABOVE, BEST = "packed", "middle", "above", "best"  # which radius is tried
PASSES = ((MIDDLE, 1), (ABOVE, 50), (BEST, 1000), (ABOVE, 2000), (BEST, 1 << 40))  # by so many cases
COVER_PASSES = ((MIDDLE, 1), (MIDDLE, 60), (MIDDLE, 1000), (BEST, 4000), (MIDDLE, 20000), (BEST, 1 << 40))
LIST_PASSES = ((PACKED, 0), (ABOVE, 1), *COVER_PASSES[1:])  # without a table
FINE = 256  # packings: radii that differ by less than so small a part are left to covers
TABLE_SHARE = 0.25  # of a time limit, for a table
NEAR = 1.0  # of any gap cases may prove the best solution
ENTRY_SECONDS = 2e-8  # of checking a row, for each entry
COLUMN_SECONDS, SHARE_SECONDS = 2e-7, 1e-9  # the same of covers: to sort them, and a row


class SumBounds(Bounds):
    """Bounds of the sum of what customers and openings cost: multipliers, then cases."""

    closing, near = True, NEAR

    def __init__(self, sites: Sites, start: np.ndarray, compiled: bool = True) -> None:
        """start   [m] bool, a solution"""
        self.sites = sites
        self.cases = self._begun(start, compiled)
        self._known = 1 << 62

    def _begun(self, start: np.ndarray, compiled: bool) -> Cases:
        """Cases that begin with what customers cost in a solution."""
        return Cases(self.sites, np.minimum(self.sites.least(start), self.sites.worst), compiled)

    @property
    def value(self) -> int:
        """The best bound so far."""
        return self.cases.lower

    @property
    def method(self) -> str:
        """How it was found."""
        return self.cases.method

    @property
    def check_seconds(self) -> float:
        """An estimate of what a check takes."""
        return ENTRY_SECONDS * self.sites.m * self.sites.n + 1e-3 * self.cases.nodes

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, knowing a solution of value `best`; False: nothing better is to come."""
        end, self._known = time.perf_counter() + seconds, best
        while self.cases.lower < best:
            if not self.cases.improve(best):
                return False
            if time.perf_counter() >= end:
                return True
        return False

    def optimum(self) -> np.ndarray | None:
        """[m] bool, a solution worth `value`, where one was met."""
        cases = self.cases
        return cases.found if cases.found is not None and cases.value <= cases.lower else None

    def pieces(self) -> np.ndarray | None:
        """[m] bool, a solution that is better than the caller's."""
        return self.cases.found if self.cases.value < self._known else None

    def proof(self) -> FacilityBound:
        """What proves the bound."""
        return self.cases.certificate()


class ListBounds(SumBounds):
    """The same by lists of the nearest places: multipliers alone."""

    def __init__(
        self, sites: Any, start: np.ndarray, width: int, compiled: bool = True,
        heard: Callable[[], bool] | None = None,
    ) -> None:  # fmt: skip
        """start   [m] bool, a solution     width   of the lists     heard   see lists_of. Raises Halted"""
        self.width, self._heard = width, heard
        super().__init__(sites, start, compiled)

    def _begun(self, start: np.ndarray, compiled: bool) -> Cases:
        return ListCases(self.sites, start, self.width, compiled, self._heard)

    @property
    def check_seconds(self) -> float:
        """An estimate of what a check takes."""
        return 2 * LISTED_SECONDS * self.sites.n * self.width


class RadiusBounds(Bounds):
    """Bounds of the largest cost of a customer: radii within which no facilities have all customers.

    A radius is a bound if at least one customer costs as much: by covers of some customers (CoverCases), or
    without HiGHS by multipliers and cases of all (Cases). The middle one of the radii left is tried, by few
    cases first; what these do not decide is tried by more of them later, and at last the radius of the best
    solution itself. Choices that are met on the way may be better than that.

    Without a table packings come before covers, until radii differ by little: they take fewer steps. Lists
    serve all radii up to that of the best solution; where these have no room they are made for each radius
    that is tried, and radii at which there is none for them are not proved.
    """

    closing, near = True, NEAR

    def __init__(
        self, sites: Any, start: np.ndarray, compiled: bool = True, covers: bool = True,
        entries: int = MOST_ENTRIES,
    ) -> None:  # fmt: skip
        """start   [m] bool, a solution     covers   False: as without HiGHS, which takes a table
        entries of lists, at most
        """
        self.sites, self.compiled, self._entries = sites, compiled, entries
        self._reach: ListReach | None = None  # without a table: who is near whom at some radius
        self._beyond = 1 << 62  # at this radius lists have no room
        self._pool = Pool() if covers and available() else None
        self.gaining = self.leads = self._pool is not None
        self._passes = PASSES if self._pool is None else COVER_PASSES
        if self._pool is not None and not isinstance(sites, Sites):
            self._passes = LIST_PASSES
        self._entries_of_best = 0  # pairs that a check of the best bound lists, at most, without a table
        self._rest: tuple[np.ndarray, np.ndarray] | None = None  # where the last packing came to rest
        none = np.zeros(0, dtype=np.int64)
        self.best: Proof = FacilityBound(0, NOTHING, 1, none.reshape(0, sites.n), none, none)
        self.found: np.ndarray | None = None
        self._radius = self._known = sites.value(start)
        self._low, self._high, self._pass = -1, 0, -1  # numbers of radii: proved, and not in this pass
        self._tried: Cases | CoverCases | CoverPacking | None = None
        self._kept: tuple[int, Any] = -1, None  # what was tried of the best radius, and its number
        self._at, self._first, self._stride, self._end = 0, True, 1, math.inf

    @property
    def value(self) -> int:
        """The best bound so far."""
        return self.best.lower

    @property
    def method(self) -> str:
        """How it was found."""
        return self.best.method

    @property
    def check_seconds(self) -> float:
        """An estimate of what a check takes."""
        if not isinstance(self.sites, Sites):
            return LISTED_SECONDS * self._entries_of_best
        if isinstance(self.best, CenterBound):
            rows = COLUMN_SECONDS + SHARE_SECONDS * len(self.best.cases.rows)
            return rows * self.sites.m * len(self.best.customers)
        return ENTRY_SECONDS * self.sites.m * self.sites.n + 1e-3 * len(self.best.branch)

    def until(self, clock: float) -> None:
        """When, by time.perf_counter(), all has to be over."""
        self._end = clock

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, knowing a solution of value `best`; False: nothing better is to come."""
        end, self._known = time.perf_counter() + seconds, best
        self._radius = min(self._radius, best)
        while self.value < self._radius:
            if self._tried is None and not self._begin():
                return False
            if self._tried is not None:
                self._go_on(self._tried)
            if time.perf_counter() >= end:
                return self.value < self._radius
        return False

    def _go_on(self, tried: Cases | CoverCases | CoverPacking) -> None:
        """A step of what is tried, and what it says of its radius."""
        going = tried.improve(1) and tried.nodes <= self._passes[self._pass][1]
        self._hear(tried)
        if isinstance(tried, CoverPacking):
            self._rest = tried.x, tried.y
        if tried.lower >= 1:
            self._take()
        elif tried.solved:
            self._tried = None
        elif not going:
            self._kept = (self._at, tried) if self._passes[self._pass][0] == BEST else self._kept
            self._high, self._tried = self._at, None
            self._stride = max(self._stride // 4, 1)

    def _hear(self, tried: Cases | CoverCases | CoverPacking) -> None:
        """The best choice that was met, where it is better."""
        if tried.found is None or not (self._pool is not None or tried.solved):
            return
        value = tried.value if self._pool is not None else self.sites.value(tried.found)
        if value < self._radius:
            self.found, self._radius = tried.found, value

    def _begin(self) -> bool:
        """The next radius to try, None where its lists have no room; False: none is left."""
        passes, top = self._passes, min(self._number(self._radius), self._beyond - 1)
        self._high = min(self._high, top + 1)
        while self._high - self._low <= self._least_step or (
            self._high <= top and passes[self._pass][0] == BEST
        ):
            self._pass += 1
            if self._low >= top or self._pass >= len(passes):
                return False
            self._stride = max(self._high - self._low, 1) if passes[self._pass - 1][0] == PACKED else 1
            self._high = top + 1
        which = passes[self._pass][0]
        if self._first:  # a customer costs as much anywhere
            self._at = max(self._number(int(self.sites.cheapest.max(initial=0))), min(1, top))
        elif which in (PACKED, MIDDLE):
            self._at = (self._low + self._high) // 2
        else:
            self._at = top if which == BEST else min(self._low + self._stride, self._high - 1)
        self._first = False
        try:
            self._tried = (
                self._kept[1] if self._kept[0] == self._at else self._question(self._radius_of(self._at))
            )
        except MemoryError:
            self._beyond = self._at
        except TimeoutError:
            return False
        return True

    @property
    def _least_step(self) -> int:
        """Between the best radius that is proved and the least that is not, in this pass."""
        packed = self._pass >= 0 and self._passes[self._pass][0] == PACKED
        return max(1, self._low // FINE) if packed else 1

    def _number(self, radius: int) -> int:
        """Of a radius, among all costs; without a table all whole numbers are radii."""
        return int(np.searchsorted(self.sites.radii, radius)) if isinstance(self.sites, Sites) else radius

    def _radius_of(self, number: int) -> int:
        return int(self.sites.radii[number]) if isinstance(self.sites, Sites) else number

    def _question(self, radius: int) -> Cases | CoverCases | CoverPacking:
        """Whether any choice has all customers below a radius."""
        if self._passes[self._pass][0] == PACKED:
            return CoverPacking(self.sites, radius, self._reach_of(radius), self._rest)
        if self._pool is not None:
            found = CoverCases(self.sites, radius, self._pool, self._reach_of(radius))
            found.end = self._end
            return found
        part = self.sites.within(radius)
        return Cases(part, np.zeros(part.n, dtype=np.int64), self.compiled)

    def _reach_of(self, radius: int) -> ListReach | None:
        """Who is near whom; None: there is a table. Raises MemoryError, TimeoutError."""
        if isinstance(self.sites, Sites):
            return None
        if self._reach is None and self._beyond > self._radius:
            try:
                self._reach = self._listed(self._radius)
            except MemoryError:
                self._beyond = self._radius
        if self._reach is None or radius > self._reach.radius:
            self._reach = None
            self._reach = self._listed(radius)
        return self._reach.smaller(radius)

    def _listed(self, radius: int) -> ListReach:
        return ListReach(self.sites, radius, self.compiled, self._entries, self._end)

    def _take(self) -> None:
        """A radius is proved."""
        radius = self._radius_of(self._at)
        if radius > self.value:
            self.best = self._tried.certificate(radius)
            if self._reach is not None:
                self._entries_of_best = self._reach.entries_of(self.best.customers)
        self._low, self._tried = max(self._low, self._at), None
        self._stride *= 2

    def pieces(self) -> np.ndarray | None:
        """[m] bool, a solution that is better than the caller's."""
        return self.found if self.found is not None and self._radius < self._known else None

    def proof(self) -> Proof:
        """What proves the bound."""
        return self.best


class LateBounds(Bounds):
    """Bounds that begin with a table, or with lists, where there is time for it; until then there are none.

    least_seconds   what that takes, until it is made; so long it leads, or it never would be
    """

    closing, near = True, NEAR

    def __init__(self, *kinds: tuple[Callable[[np.ndarray | None], Bounds], float]) -> None:
        """kinds   bounds by the best solution known, and an estimate of what beginning takes, the strongest
        first: the first for which there is time is taken
        """
        self._kinds = kinds
        self._made, self.least_seconds = kinds[0]
        self._inner: Bounds | None = None
        self._solution: np.ndarray | None = None
        self._fits, self._clock = True, math.inf
        self._allowed: float | None = None

    def expect(self, seconds: float) -> None:
        """The time limit: a beginning may take a share of it."""
        self._take(TABLE_SHARE * seconds)

    def allow(self, seconds: float) -> None:
        """What all calls may take: so long may a beginning be."""
        self._take(seconds)
        self._allowed = seconds

    def _take(self, most: float) -> None:
        """The first kind whose beginning takes no longer."""
        fits = [kind for kind in self._kinds if kind[1] <= most]
        self._fits = bool(fits)
        self._made, self.least_seconds = (fits or self._kinds)[0]

    def until(self, clock: float) -> None:
        """When, by time.perf_counter(), all has to be over."""
        self._clock = clock

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """What they begin with at first; then as the bounds do."""
        self._solution = self._solution if solution is None else solution
        if not self._fits or time.perf_counter() + self.least_seconds > self._clock:
            return False
        if self._inner is None:
            try:
                self._inner, self.least_seconds = self._made(self._solution), 0.0
            except Halted:  # the run is to stop: its keeper says so, to all ranks at once
                return True
            self._inner.until(self._clock)
            if self._allowed is not None:
                self._inner.allow(self._allowed)
            seconds = 0.0  # a step, so that what was made for it is of use
        return self._inner.improve(seconds, best, solution)

    @property
    def leads(self) -> bool:
        """Whether there is no bound above 0 yet, for which the table was made, or the bounds lead."""
        return self._inner is None or self._inner.value <= 0 or self._inner.leads

    @property
    def gaining(self) -> bool:
        """As the bounds do, once there is a table."""
        return self._inner is not None and self._inner.gaining

    @property
    def value(self) -> int:
        """The best bound so far."""
        return 0 if self._inner is None else self._inner.value

    @property
    def method(self) -> str:
        """How it was found."""
        return "" if self._inner is None else self._inner.method

    @property
    def check_seconds(self) -> float:
        """An estimate of what a check takes, its own table among it."""
        return 0.0 if self._inner is None else self._inner.check_seconds

    def pieces(self) -> np.ndarray | None:
        """[m] bool, a solution that is better than the caller's."""
        return None if self._inner is None else self._inner.pieces()

    def optimum(self) -> np.ndarray | None:
        """[m] bool, a solution worth `value`, where one was met."""
        return None if self._inner is None else self._inner.optimum()

    def proof(self) -> Proof | None:
        """What proves the bound."""
        return None if self._inner is None else self._inner.proof()
