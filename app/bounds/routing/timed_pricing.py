"""Least ng-routes in time: of loads and times that are both within limits.

The labels are those of lk_timed_routes in routing_bounds.c, in the same order.

Sources  Desrochers, Desrosiers and Solomon 1992 (labels of cost, load and time); Baldacci, Mingozzi and
         Roberti 2011 (ng-routes)
"""

import heapq

import numpy as np

from app.bounds.routing.paths import FAR as NONE
from app.bounds.routing.paths import coarse_for, positive_times
from app.bounds.routing.pricing import FAR, Found, Pricing
from app.bounds.routing.timed_paths import Reach
from app.graphs.deliveries import Deliveries
from app.graphs.metric import Metric
from app.native import routing_bounds as native

MOST_LABELS = 1 << 20


class TimedPricing(Pricing):
    """As Pricing, of routes with windows; loads are counted in parts of `coarse`, rounded down."""

    def __init__(
        self, near: np.ndarray, load: np.ndarray, capacity: int, metric: Metric, deliveries: Deliveries,
        compiled: bool = True, backwards: bool = False,
    ) -> None:  # fmt: skip
        """backwards   routes are found from their ends on, in a time that runs backwards"""
        n, depot, times = metric.n, deliveries.depot, positive_times(metric, deliveries)
        times = times.backwards(depot) if backwards else times
        self._given = near, load, capacity, metric, deliveries, compiled, True
        self.coarse = coarse_for(n, near.shape[1], capacity)
        self.opens, self.closes = times.opens, times.closes
        self.opens_at, self.closes_at = int(times.opens[depot]), int(times.closes[depot])
        self._metric, self._times = metric, times
        self.away = times.way(np.full(n, depot), np.arange(n), 0)
        self.home = times.way(np.arange(n), np.full(n, depot), 0)
        super().__init__(near, load // self.coarse, capacity // self.coarse, depot, compiled)
        self.closed = np.empty(self.capacity + 1, dtype=np.int64)

    def use(self, u: np.ndarray, v: np.ndarray) -> None:
        """The edges u-v that routes may have."""
        super().use(u, v)
        at = np.repeat(np.arange(self.n), np.diff(self.begin))
        step = self._times.way(at, self.to)
        kept = self.opens[at] + step <= self.closes[self.to]
        self.to, self.step, self._inner = self.to[kept], step[kept], self._inner[kept]
        self.block, self.carried = self.block[kept], np.ascontiguousarray(self.carried[kept])
        self.begin = np.searchsorted(at[kept], np.arange(self.n + 1)).astype(np.int64)

    def find(self, reduced: np.ndarray, reach: bool = False) -> Found | None:
        """The best routes for costs of the edges in use, int64; None: they take too much memory.

        Paths by loads are not told (`reach`), but what routes of each load cost.
        """
        self.cost = reduced[self._inner]
        self.out = np.full(self.n, FAR)
        self.out[self._first_customer] = reduced[self._first]
        while (made := native.timed_routes(self) if self.compiled else self._plain()) < 0:
            if self.room >= MOST_LABELS:
                return None
            self._give_room(4 * self.room)
        self.made = made
        return Found(*self._best_ends(), self.length[:, 0].copy(), None, self.closed.copy())

    def through(self, found: Found, reduced: np.ndarray) -> np.ndarray | None:
        """[edges] at most the cost of every route with the edge, FAR: none; None: it takes too much
        memory.
        """
        back = TimedPricing(*self._given)
        back.use(self._u, self._v)
        other = back.find(reduced)
        if other is None:
            return None
        most = np.full(len(reduced), FAR)
        customer = self._first_customer
        most[self._first] = np.minimum(found.closed, other.closed)[customer]
        inner = np.setdiff1d(np.arange(len(reduced)), self._first)
        u, v = self._u[inner], self._v[inner]
        both = self._reach().through(back._reach(), self.depot, u, v)
        most[inner] = np.where(both < NONE, both + reduced[inner], FAR)
        return most

    def _reach(self) -> Reach:
        """Of the labels of the last pricing."""
        found, made = Reach(self._times, self.capacity), slice(self.made)
        found.take(self.customer[made], self.carries[made], self.time[made], self.value[made])
        found.close()
        return found

    def _give_tables(self) -> None:
        self.dominant = np.empty((self.n, 1 << self.width, self.capacity + 1), dtype=np.int64)

    def _give_room(self, labels: int) -> None:
        self.room = labels
        self.value, self.time = (np.empty(labels, dtype=np.int64) for _ in range(2))
        self.before, self.customer, self.memory, self.carries, self.heap = (
            np.empty(labels, dtype=np.int32) for _ in range(5)
        )

    # ---- the kernel, plainly -------------------------------------------------------------------------------

    def _plain(self) -> int:
        """What lk_timed_routes does; returns the number of labels, -1 where there is no room."""
        self.dominant[:], self.closed[:], self.ends[:], self.length[:] = FAR, FAR, -1, FAR
        self.made, self._waiting = 0, []
        for customer in np.flatnonzero(self.out < FAR).tolist():
            time = max(self.opens_at + int(self.away[customer]), int(self.opens[customer]))
            first = int(self.load[customer]), customer, 1, int(self.out[customer]), -1
            if time <= self.closes[customer] and not self._put_at(time, *first):
                return -1
        while self._waiting:
            if not self._look_at(*heapq.heappop(self._waiting)):
                return -1
        return self.made

    def _put_at(self, time: int, load: int, customer: int, memory: int, cost: int, before: int) -> bool:
        made = self.made
        if made == self.room:
            return False
        self.value[made], self.time[made], self.before[made] = cost, time, before
        self.customer[made], self.memory[made], self.carries[made] = customer, memory, load
        heapq.heappush(self._waiting, (time, made))
        self.made += 1
        return True

    def _look_at(self, time: int, label: int) -> bool:
        """Keep a label, if none is better, and extend it."""
        at, memory, load = int(self.customer[label]), int(self.memory[label]), int(self.carries[label])
        cost = int(self.value[label])
        if self.dominant[at, memory, load] <= cost:
            return True
        over = np.flatnonzero((np.arange(1 << self.width) & memory) == memory)
        self.dominant[at, over, load:] = np.minimum(self.dominant[at, over, load:], cost)
        if self.out[at] < FAR and time + self.home[at] <= self.closes_at:
            whole = cost + int(self.out[at])
            self._note_end(at, label, whole)
            self.closed[load] = min(whole, int(self.closed[load]))
        for arc in range(self.begin[at], self.begin[at + 1]):
            to, longer = int(self.to[arc]), cost + int(self.cost[arc])
            more, then = load + int(self.load[to]), max(time + int(self.step[arc]), int(self.opens[to]))
            if then > self.closes[to] or more > self.capacity or memory & self.block[arc]:
                continue
            kept = 1
            for place in range(self.width):
                kept |= int(self.carried[arc, place]) if memory >> place & 1 else 0
            if self.dominant[to, kept, more] <= longer:
                continue
            if not self._put_at(then, more, to, kept, longer, label):
                return False
        return True
