"""Local search for facilities among very many points: interchanges whose gains are found when asked for.

A customer is served by the nearest open facility, at d1, and would be by the next, at d2. A place is looked
at: what opening it saves of customers to whom it is nearer than d2, and how much less closing a facility
costs then, so that the best facility to close for it is known, as in FacilitySearch, whose sums of all pairs
are never made. Only customers of facilities near the place are asked: where it is nearer than d2 to one of a
facility, it is less than d1 + d2 from that facility. The first interchange that gains is made. Where a round
of all places finds none, those near one customer are looked at again after some moves that are drawn there;
what ends worse than before is taken back.

Source   Whitaker 1983; Resende and Werneck 2007 (loss, gain and extra); Hansen and Mladenovic 1997 (shaking):
         see app/search/facility/search.py
"""

import ctypes
from math import gcd
from typing import Any

import numpy as np

from app.graphs.facility_points import PointSites
from app.native.library import function, give_arrays, numbers_in
from app.native.tour import KINDS
from app.rng import SplitMix
from app.search.facility import points_plain
from app.search.mask_search import MaskSearch

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ARRAYS = (
    "place", "customer", "demand", "opening", "forced", "beside", "best_open", "slot", "inside",
    "first", "second", "head", "next", "prev", "touched", "seen", "journal", "d1", "d2",
    "reach", "loss", "extra", "stamp",
)  # fmt: skip
FIXED = ("most", "slots", "counted", "strongest", "radius", "stride", "room")
NUMBERS = (
    "size", "value", "base", "best", "steps", "found_at", "shaking", "shakes", "begin", "width", "at", "left",
    "noted",
)  # fmt: skip
STRONGEST, ROOM = 6, 4096  # moves of a shake, and that can be taken back, at most
LEAST_MEETING = 1 << 14
PATIENCE, ROUNDS = 4000, 8  # places that are looked at; of all places


class _Points(ctypes.Structure):
    _fields_ = (
        ("m", Long),
        ("n", Long),
        ("kind", Long),
        *((name, Pointer) for name in ARRAYS),
        *((name, Long) for name in (*FIXED, *NUMBERS)),
        ("random", ctypes.c_uint64),
    )


P = ctypes.POINTER(_Points)
SEARCH = function("lk_points_search", P, Long, returns=Long)
LOAD = function("lk_points_load", P)


def available() -> bool:
    """True where the library was built."""
    return None not in (SEARCH, LOAD)


class PointSearch(MaskSearch):
    """A search for facilities of least cost; a function of sites, start, seed, what it hears, steps made.

    start      [m] bool, facilities of a feasible solution, at least one
    seed       an integer, taken modulo 2^64
    compiled   False: the same without the compiled kernels

    steps      places looked at, and drawn moves, so far
    best       value of the best solution, found_at the step it was found in
    done       nothing can cost less

    slot, inside   [m], [slots] int32, places of open facilities in a list; the list
    first, second, d1, d2   [n] the nearest open facilities of a customer, and how far they are
    head, next, prev        the customers of each open facility
    reach, loss, extra      [slots] int64, see above
    journal                 moves since the local optimum that shakes return to
    """

    least_meeting = LEAST_MEETING

    def __init__(self, sites: PointSites, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        m, n = self.m, self.n = sites.m, sites.n
        self.sites, self.compiled = sites, compiled and available()
        self.place, self.customer = sites.place, sites.customer
        self.demand, self.opening, self.beside = sites.demand, sites.opening, sites.beside
        self.forced, self.best_open = sites.forced.astype(np.uint8), start.astype(np.uint8)
        self.most, self.radius, self.room = sites.most, sites.radius, ROOM
        self.slots = max(sites.most, int(np.count_nonzero(start)), 1)
        self.counted = int(not self.opening.any())
        self.strongest = max(1, min(STRONGEST, self.slots))
        self.stride = _stride(m)
        self.slot, self.inside = np.full(m, -1, dtype=np.int32), np.zeros(self.slots, dtype=np.int32)
        self.first, self.second, self.next, self.prev, self.touched = (
            np.zeros(n, dtype=np.int32) for _ in range(5)
        )
        self.head, self.seen = (np.zeros(self.slots, dtype=np.int32) for _ in range(2))
        self.journal, self.stamp = np.zeros(2 * ROOM, dtype=np.int32), np.zeros(m, dtype=np.int64)
        self.d1, self.d2 = (np.zeros(n, dtype=np.int64) for _ in range(2))
        self.reach, self.loss, self.extra = (np.zeros(self.slots, dtype=np.int64) for _ in range(3))
        self.size = self.value = self.base = self.steps = self.found_at = self.shakes = 0
        self.random = SplitMix(seed).state
        self._points = _Points(m, n, KINDS[sites.kind])
        give_arrays(self, self._points, ARRAYS)
        for name in FIXED:
            setattr(self._points, name, getattr(self, name))
        self._least = -1
        if self.counted:
            self._least = 0 if self.radius else int(sites.cheapest.sum())
        self.begin = self.width = self.at = self.left = self.noted = self.shaking = self.best = 0
        self._load()
        self.best = self.value

    @staticmethod
    def patience(sites: PointSites) -> int:
        """Steps that may be in vain, in CenterSearch."""
        return min(PATIENCE, ROUNDS * sites.m)

    @property
    def done(self) -> bool:
        """Whether nothing can cost less."""
        return self.best <= self._least

    def run(self, steps: int) -> None:
        """So many steps, fewer only when done."""
        if steps <= 0 or self.done:
            return
        if self.compiled:
            self._call(SEARCH, steps)
        else:
            points_plain.run(self, steps)

    def _call(self, kernel: Any, *arguments: int) -> None:
        """Run a kernel on the state."""
        with numbers_in(self, self._points, (*NUMBERS, "random")):
            kernel(self._points, *arguments)

    def _load(self) -> None:
        """Go on from the best solution: a round of all places, but where a radius tells what is missing."""
        self.shaking = self.noted = self.begin = self.at = 0
        self.width, self.left = self.m, 0 if self.radius else self.m
        if self.compiled:
            self._call(LOAD)
        else:
            points_plain.load(self)
        self.base = self.value

    def solution(self) -> np.ndarray:
        """[m] bool, the best solution, a copy."""
        return self.best_open.astype(bool)

    def hear(self, solution: np.ndarray) -> None:
        """A solution from elsewhere; where it is better the search goes on from it."""
        value = self.sites.value(solution)
        if value < self.best:
            self.best, self.found_at = value, self.steps
            self.best_open[:] = solution
            self._load()


def _stride(m: int) -> int:
    """A step by which a walk around m places, far from each other, meets all of them."""
    found = max(int(0.6180339887 * m), 1)
    while gcd(found, m) != 1:
        found += 1
    return found
