"""Ruin and recreate: strings of customers leave their routes, and are inserted again where that is cheapest.

Source   Christiaens and Vanden Berghe, Slack induction by string removals for vehicle routing problems,
         Transportation Science 2020
Differs  places of insertion are those beside the customers that are nearest, and at the ends of the routes
         that strings have left; a new route is opened also where it is shorter; places are not seen (blinks)
         once in 128 times; vehicles may carry more than they can at a price, which goes up and down so that
         half of all routes are possible ones; all in whole numbers
         (penalties: Vidal, Hybrid genetic search for the CVRP, Computers and Operations Research 2022);
         with windows the nearest are near in time, too
Windows  whether a customer can be served between two stops is told by when a vehicle leaves the first at the
         earliest, and when it has to be at the second at the latest (Savelsbergh, Local search in routing
         problems with time windows, Annals of Operations Research 1985)
"""

import ctypes
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from app.graphs.deliveries import Deliveries, Times
from app.graphs.metric import Metric
from app.graphs.routes import length_of, routes_of
from app.native.library import aligned, function
from app.native.state import KernelState
from app.native.tour import KINDS, NativeMetric
from app.numerics.elementary import log
from app.rng import MASK
from app.search.routing.plain import TOLLS, Steps, retime

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
NEAR, MOST_NEAR = 100, 1 << 23  # nearest customers of each; of all together, but for LEAST_NEAR of each
LEAST_NEAR = 20
# Customers beside which one is inserted, of all together, but for so many of each: routes of 200 clustered
# customers are 1 % shorter by 100 than by 30 in as many steps, which take 2.4 times the time.
LOOKED_AT, LEAST_LOOKED_AT = 24_000, 30
WIDER, WIDE = 4, 2  # times as many nearest ones are looked at for those near in time, too; without a table
WAITING = 5  # a unit of length, or of being late, in units of waiting
NO_LENGTH = (1 << 63) - 1  # of the best routes, while there are none
DEAREST = 1 << 60  # of all demands beyond capacities
STOP = 8  # numbers of a stop: see app/native/routing.c
PRICE_BITS = 10
DEGREE = 1 << PRICE_BITS  # the unit of temperatures


class _Change(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int32) for name in ("customer", "before", "leg_before", "leg"))


GIVEN = ("near", "far", "demand", "home", "toll", "customers")
OF_TIMES = ("opens", "closes", "service")
ROUTES = ("stop", "load", "size", "empty", "ruined", "place", "removed")
IN_TIME = ("ready", "latest", "grown", "grew", "late", "absent", "missing", "absence")
NUMBERS = (
    "empties", "absents", "length", "over", "best_length", "found_at", "steps", "temperature", "price",
    "fitting", "packing",
)  # fmt: skip


class _Routing(ctypes.Structure):
    _fields_ = (
        ("metric", Pointer),
        *((name, Long) for name in ("n", "depot", "near_count", "looked_at", "capacity", "limit")),
        *((name, Pointer) for name in (*GIVEN, *OF_TIMES)),
        ("count", Long),
        *((name, Pointer) for name in (*ROUTES, "rank", "change", "best", *IN_TIME)),
        *((name, Long) for name in ("empties", "ruins", "removals", "changes", "growths", "absents")),
        *((name, Long) for name in ("length", "over", "best_length", "found_at", "steps")),
        *((name, Long) for name in ("temperature", "price", "dearest", "fitting", "packing")),
        ("random", ctypes.c_uint64),
    )  # fmt: skip


RUN = function("lk_routing_run", ctypes.POINTER(_Routing), Long)
PACK = function("lk_routing_pack", ctypes.POINTER(_Routing), Long)


class Routing(KernelState):
    """Routes of one question, changed step by step.

    after        [n] int64, the routes to begin with (app/graphs/routes.py), all in time
    absent       customers on no route, for `pack`; what `after` says of them counts for nothing
    length       of all routes
    best_length  of the shortest routes that keep to the capacity, of step found_at; NO_LENGTH: none yet
    steps        so far
    temperature  in DEGREE-ths of a unit of length: with a drawn u, routes may get longer by -ln u times that
    over, price  what all carry beyond the capacity; of a unit of that, in DEGREE-ths of a unit of length

    near, far  [n, k] int32, the customers nearest to each, and their distances; app/native/routing.c says
    what the arrays of ROUTES are
    """

    numbers = (*NUMBERS, "random")

    def __init__(
        self, metric: Metric, deliveries: Deliveries, after: np.ndarray, seed: int, compiled: bool = True,
        absent: Sequence[int] = (),
    ) -> None:  # fmt: skip
        n = metric.n
        self.metric, self.n, self.depot = metric, n, deliveries.depot
        self.compiled = compiled and RUN is not None and (metric.matrix is not None or metric.kind in KINDS)
        self.capacity, self.limit = deliveries.capacity, deliveries.vehicles or n
        self.demand = np.ascontiguousarray(deliveries.demand, dtype=np.int64)
        self.near, self.far = nearest_customers(metric, self.depot)
        self.opens = self.closes = self.service = None
        if deliveries.times is not None:
            self.opens, self.closes, self.service = map(np.ascontiguousarray, deliveries.times.arrays)
            self.near, self.far = nearest_in_time(metric, deliveries)
        self.looked_at = min(max(LOOKED_AT // n, LEAST_LOOKED_AT), self.near.shape[1])
        self.home = metric.between(np.full(n, self.depot), np.arange(n)).astype(np.int32)
        self.toll = tolls()
        self.customers = np.delete(np.arange(n, dtype=np.int32), self.depot)
        self.count = len(self.customers)
        self.stop = aligned((2 * n, STOP), np.int32)
        self.next, self.prev, self.leg, self.back, self.route = self.stop.T[:5]
        self.size, self.empty, self.ruined, self.place = np.zeros((4, n), dtype=np.int32)
        self.removed, self.best, self.grown, self.grew = np.zeros((4, n), dtype=np.int32)
        self.late, self.absent, self.missing = np.zeros((3, n), dtype=np.int32)
        self.absents, self.absence = len(absent), np.ones(n, dtype=np.int64)
        self.absent[: self.absents], self.packing = absent, self.absents > 0
        self.ready, self.latest = np.zeros((2, 2 * n), dtype=np.int64)
        self.load, self.rank = np.zeros((2, n), dtype=np.int64)
        self.place -= 1
        self.change = (_Change * (2 * n))()
        self.best_length, self.found_at, self.steps, self.temperature = NO_LENGTH, 0, 0, 0
        self.random = seed & MASK
        self._load(after)
        self.dearest = DEAREST // max(int(self.demand.sum()), 1)
        self.price = min(DEGREE * self.length // max(int(self.demand.sum()), 1) + 1, self.dearest)
        self.fitting = 0
        self._link()

    def run(self, steps: int) -> None:
        """So many more steps, at the temperature that is set."""
        if self.compiled:
            self._call(RUN, steps)
        else:
            self._slow.run(steps)

    def pack(self, steps: int) -> None:
        """So many more steps at most, of which the last one leaves no customer without a route."""
        if self.compiled:
            self._call(PACK, steps)
        else:
            self._slow.pack(steps)

    def take(self, after: np.ndarray) -> None:
        """Go on from other routes [n], which hold all customers."""
        self._load(after)

    @property
    def value(self) -> int:
        """The length of the routes at hand, and the price of what they carry beyond the capacity."""
        return self.length + (self.price * self.over >> PRICE_BITS)

    def value_of(self, after: np.ndarray) -> int:
        """The same of other routes [n], at the same price."""
        loads = np.array([self.demand[each].sum() for each in routes_of(after, self.depot)], dtype=np.int64)
        over = int(np.maximum(loads - self.capacity, 0).sum())
        return length_of(self.metric, self.depot, after) + (self.price * over >> PRICE_BITS)

    def after(self) -> np.ndarray:
        """[n] int64, the routes at hand."""
        following = self.next[: self.n].astype(np.int64)
        following[following >= self.n] = self.depot
        following[self.depot] = self.depot
        return following

    def best_after(self) -> np.ndarray:
        """[n] int64, the shortest routes so far."""
        best = self.best.astype(np.int64)
        best[self.depot] = self.depot
        return best

    def _load(self, after: np.ndarray) -> None:
        n, routes = self.n, routes_of(after, self.depot)
        if self.absents:
            gone = set(self.absent[: self.absents].tolist())
            routes = [route for each in routes if (route := [c for c in each if c not in gone])]
        self.stop[:], self.load[:], self.size[:] = 0, 0, 0
        self.next[n:] = self.prev[n:] = np.arange(n, 2 * n)
        self.route[:] = -1
        ring = np.array([x for r, each in enumerate(routes) for x in (n + r, *each)], dtype=np.int64)
        heads = np.flatnonzero(ring >= n)
        after = np.roll(ring, -1)
        after[heads - 1] = np.roll(ring[heads], 1)  # from the last stop back to the depot
        self.next[ring], self.prev[after] = after, ring
        stops, to = (np.where(each < n, each, self.depot) for each in (ring, after))
        self.leg[ring] = self.back[after] = self.metric.between(stops, to)
        self.size[: len(routes)] = sizes = np.diff(heads, append=len(ring)) - 1
        self.route[ring[ring < n]] = np.repeat(np.arange(len(routes)), sizes)
        self.load[: len(routes)] = np.add.reduceat(self.demand[stops], heads)  # of the depot 0
        self.empties = n - len(routes)
        self.empty[: self.empties] = np.arange(n - 1, len(routes) - 1, -1)
        self.length = int(self.leg.astype(np.int64).sum())
        self.over = int(np.maximum(self.load - self.capacity, 0).sum())
        if self.opens is not None:
            self.ready[n:], self.latest[n:] = self.opens[self.depot], self.closes[self.depot]
            for r in range(len(routes)):
                retime(self, r)
        if not (self.over or self.absents) and self.length < self.best_length:
            self.best[:], self.best_length, self.found_at = self.after(), self.length, self.steps

    def _link(self) -> None:
        if not self.compiled:
            self._slow = Steps(self)
            return
        self._metric = NativeMetric(self.metric)
        struct = _Routing()
        times = () if self.opens is None else OF_TIMES
        struct.metric = ctypes.addressof(self._metric.struct)
        struct.change = ctypes.addressof(self.change)
        struct.near_count = self.near.shape[1]
        arrays = (*GIVEN, *times, *ROUTES, "rank", "best", *IN_TIME)
        self._hold(struct, arrays, ("n", "depot", "looked_at", "capacity", "limit", "count", "dearest"))


@lru_cache(maxsize=2)  # start and search ask for the same
def nearest_customers(metric: Metric, depot: int, times: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """[n, k] int32 the customers nearest to each point, nearest first, and their distances.

    times   so many times as many as a search looks at
    """
    n = metric.n
    wanted = min(times * min(max(MOST_NEAR // n, LEAST_NEAR), NEAR), max(n - 2, 0))
    if not wanted:
        return np.zeros((n, 0), dtype=np.int32), np.zeros((n, 0), dtype=np.int32)
    found = metric.neighbours(wanted + 1)
    kept = found != depot
    kept[kept.all(axis=1), -1] = False  # a row without the depot has one more
    kept[depot, -1] = False
    near = np.ascontiguousarray(found[kept].reshape(n, -1))
    return near, metric.between(np.arange(n)[:, None], near).astype(np.int32, order="C")


@lru_cache(maxsize=1)
def nearest_in_time(metric: Metric, deliveries: Deliveries) -> tuple[np.ndarray, np.ndarray]:
    """[n, k] int32 likewise, of those who are near the ones nearest to be served just before or after, too.

    To the distance a part of the time is added that a vehicle waits between both, and all that it is late, in
    that order of the two in which this is less.

    Source   Vidal, Crainic, Gendreau and Prins, A hybrid genetic algorithm with adaptive diversity management
             for a large class of vehicle routing problems with time-windows, Computers and Operations
             Research 2013 (4.4: correlation of customers)
    """
    n, depot, times = metric.n, deliveries.depot, deliveries.times
    near, far = nearest_customers(metric, depot, WIDER if metric.matrix is not None else WIDE)
    row = np.arange(n)[:, None]
    apart = np.minimum(_loss(times, row, near, far), _loss(times, near, row, far))
    wanted = min(max(MOST_NEAR // n, LEAST_NEAR), NEAR, max(n - 2, 0))
    order = np.argsort(apart, axis=1, kind="stable")[:, :wanted]
    return tuple(np.ascontiguousarray(np.take_along_axis(each, order, axis=1)) for each in (near, far))


def _loss(times: Times, i: np.ndarray, j: np.ndarray, far: np.ndarray) -> np.ndarray:
    """[n, k] int64, WAITING times the length of the way from i to j, what is waited, and is late, there."""
    way = times.service[i] + far
    waited = np.maximum(times.opens[j] - way - times.closes[i], 0)
    late = np.maximum(times.opens[i] + way - times.closes[j], 0)
    return WAITING * (far.astype(np.int64) + late) + waited


def tolls() -> np.ndarray:
    """[TOLLS] int64, -ln u for u even in 0..1, in 2^-16."""
    u = (np.arange(TOLLS) + 0.5) / TOLLS
    return np.floor(-log(np, u) * (1 << 16)).astype(np.int64)
