"""Local search for facilities among very many points (app/search/facility/tableless.py).

Distances are computed from coordinates. Only customers of facilities near a place are asked what it saves:
where it is nearer than d2 to one of a facility, it is less than d1 + d2 from that facility.
"""

import ctypes

import numpy as np

from app.graphs.facility_points import PointSites
from app.native.library import function
from app.native.tour import KINDS
from app.search.facility import points_plain
from app.search.facility.tableless import FIXED, NUMBERS, TablelessSearch

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ARRAYS = (
    "place", "customer", "demand", "opening", "forced", "beside", "best_open", "slot", "inside",
    "first", "second", "head", "next", "prev", "touched", "seen", "journal", "d1", "d2",
    "reach", "loss", "extra", "stamp",
)  # fmt: skip
OWN = (*NUMBERS, "begin")


class _Points(ctypes.Structure):
    _fields_ = (
        ("m", Long),
        ("n", Long),
        ("kind", Long),
        *((name, Pointer) for name in ARRAYS),
        *((name, Long) for name in (*FIXED, *OWN)),
        ("random", ctypes.c_uint64),
    )


P = ctypes.POINTER(_Points)
SEARCH = function("lk_points_search", P, Long, returns=Long)
LOAD = function("lk_points_load", P)


class PointSearch(TablelessSearch):
    """A search among points.

    slot    [m] int32        inside [slots]        first, second, d1, d2   [n], of customers
    begin   where the window of a shake begins, in the order of places
    head, next, prev   the customers of each open facility
    reach   [slots] int64, how far from a facility another one changes anything for its customers
    """

    arrays, kernels, plain = ARRAYS, (SEARCH, LOAD), points_plain
    numbers = (*OWN, "random")

    def __init__(self, sites: PointSites, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        m, n = sites.m, sites.n
        self.place, self.customer = sites.place, sites.customer
        self.demand, self.opening, self.beside = sites.demand, sites.opening, sites.beside
        self.forced, self.best_open = sites.forced.astype(np.uint8), start.astype(np.uint8)
        slots = self.slots = max(sites.most, int(np.count_nonzero(start)), 1)
        self.slot, self.inside = np.full(m, -1, dtype=np.int32), np.zeros(slots, dtype=np.int32)
        self.first, self.second, self.next, self.prev, self.touched = (
            np.zeros(n, dtype=np.int32) for _ in range(5)
        )
        self.head, self.seen = (np.zeros(slots, dtype=np.int32) for _ in range(2))
        self.stamp = np.zeros(m, dtype=np.int64)
        self.d1, self.d2 = (np.zeros(n, dtype=np.int64) for _ in range(2))
        self.reach, self.loss, self.extra = (np.zeros(slots, dtype=np.int64) for _ in range(3))
        self.begin = 0
        self._make(sites, start, seed, compiled)
        self._begin(_Points(m, n, KINDS[sites.kind]))

    def _load(self) -> None:
        self.begin = 0
        super()._load()
