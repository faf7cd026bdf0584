"""Least ng-routes: routes that come back to a customer only after one who has not it among its neighbours.

Whole-number costs of any sign; the labels are those of lk_ng_routes in routing_bounds.c, in the same order.

Source   Baldacci, Mingozzi and Roberti 2011
"""

from dataclasses import dataclass

import numpy as np

from app.graphs.metric import Metric
from app.native import routing_bounds as native

FAR = np.iinfo(np.int64).max // 4  # above every cost
FIRST_ROOM, MOST_ROOM = 1 << 16, 1 << 23  # labels
TOP = 3  # routes of a pricing for each customer they end at


@dataclass(frozen=True, eq=False)
class Found:
    """What a pricing found.

    routes    customers of each, in order, the best ones that end at each customer
    cost      of each, ascending
    closed    [n] the least cost of a route that ends at each customer, FAR: none
    reach     [capacity + 1, n] of a path to each customer with a load of at most so much; None: not asked for
    loaded    [capacity + 1] least cost of the routes of each load; None: see reach
    """

    routes: list[list[int]]
    cost: np.ndarray
    closed: np.ndarray
    reach: np.ndarray | None
    loaded: np.ndarray | None = None

    @property
    def least(self) -> int:
        """The least cost of all routes."""
        return int(self.closed.min(initial=FAR))


class Pricing:
    """Routes over edges that may be replaced.

    near   [n, width] int64, the neighbours of each point, itself first
    load   [n] int64, at least 1 of customers, and capacity, see paths.py
    coarse  1: loads are counted as they are
    """

    coarse = 1

    def __init__(
        self, near: np.ndarray, load: np.ndarray, capacity: int, depot: int, compiled: bool = True
    ) -> None:
        self.n, self.width = near.shape
        self.near, self.capacity, self.depot, self.top = near, capacity, depot, TOP
        self.load = load.astype(np.int32)
        self.compiled = compiled and native.available()
        self._bit = np.zeros((self.n, self.n), dtype=np.int32)  # of a customer (column) in a memory (row)
        self._bit[np.arange(self.n)[:, None], near] = 1 << np.arange(self.width)
        self._give_tables()
        self.ends = np.empty((self.n, TOP), dtype=np.int32)
        self.length = np.empty((self.n, TOP), dtype=np.int64)
        self._give_room(FIRST_ROOM)
        self.made = 0  # labels of the last pricing

    def _give_tables(self) -> None:
        self.dominant = np.empty((self.n, 1 << self.width), dtype=np.int64)
        self.head = np.empty(self.capacity + 1, dtype=np.int32)

    def use(self, u: np.ndarray, v: np.ndarray) -> None:
        """The edges u-v that routes may have."""
        inner = (u != self.depot) & (v != self.depot)
        self._first = np.flatnonzero(~inner)
        self._first_customer = np.where(u == self.depot, v, u)[self._first]
        at, to = np.append(u[inner], v[inner]), np.append(v[inner], u[inner])
        order = np.lexsort((to, at))
        self._inner = np.tile(np.flatnonzero(inner), 2)[order]
        at, to = at[order], to[order]
        self.to = to.astype(np.int32)
        self.begin = np.searchsorted(at, np.arange(self.n + 1)).astype(np.int64)
        self.block = np.ascontiguousarray(self._bit[at, to])
        self.carried = np.ascontiguousarray(self._bit[to[:, None], self.near[at]])
        self._u, self._v = u, v

    def find(self, reduced: np.ndarray, reach: bool = False) -> Found | None:
        """The best routes for costs of the edges in use, int64; None: they take too much memory."""
        self.cost = reduced[self._inner]
        self.out = np.full(self.n, FAR)
        self.out[self._first_customer] = reduced[self._first]
        self.least = np.empty((self.capacity + 1, self.n), dtype=np.int64) if reach else None
        while (made := native.ng_routes(self) if self.compiled else self._plain()) < 0:
            if self.room >= MOST_ROOM:
                return None
            self._give_room(4 * self.room)
        self.made = made
        return Found(*self._best_ends(), self.length[:, 0].copy(), self.least)

    def _best_ends(self) -> tuple[list[list[int]], np.ndarray]:
        """The best routes that end at each customer, and their costs, ascending."""
        ends, cost = self.ends.ravel(), self.length.ravel()
        chosen = np.flatnonzero(ends >= 0)
        chosen = chosen[np.argsort(cost[chosen], kind="stable")]
        return [self._path(end) for end in ends[chosen].tolist()], cost[chosen]

    def through(self, found: Found, reduced: np.ndarray) -> np.ndarray | None:
        """[edges] at most the cost of every route with the edge, FAR: none; `reach` was asked for."""
        most = np.full(len(reduced), FAR)
        most[self._first] = found.closed[self._first_customer]
        inner = np.flatnonzero((self._u != self.depot) & (self._v != self.depot))
        back, size = found.reach[::-1], max(1, (1 << 22) // (self.capacity + 1))
        for at in range(0, len(inner), size):
            part = inner[at : at + size]
            both = (found.reach[:, self._u[part]] + back[:, self._v[part]]).min(axis=0)
            most[part] = np.where(both < FAR // 2, both + reduced[part], FAR)
        return most

    def _give_room(self, labels: int) -> None:
        self.room = labels
        self.value = np.empty(labels, dtype=np.int64)
        self.before, self.next, self.customer, self.memory = (
            np.empty(labels, dtype=np.int32) for _ in range(4)
        )

    def _path(self, label: int) -> list[int]:
        found = []
        while label >= 0:
            found.append(int(self.customer[label]))
            label = int(self.before[label])
        return found[::-1]

    # ---- the kernel, plainly -------------------------------------------------------------------------------

    def _plain(self) -> int:
        """What lk_ng_routes does; returns the number of labels, -1 where there is no room."""
        self.dominant[:], self.head[:], self.ends[:], self.length[:] = FAR, -1, -1, FAR
        self.made = 0
        for customer in np.flatnonzero(self.out < FAR).tolist():
            if not self._put(int(self.load[customer]), customer, 1, int(self.out[customer]), -1):
                return -1
        if self.least is not None:
            self.least[0] = FAR
        for load in range(1, self.capacity + 1):
            if self.least is not None:
                self.least[load] = self.least[load - 1]
            label = int(self.head[load])
            while label >= 0:
                if not self._look_at(load, label):
                    return -1
                label = int(self.next[label])
        return self.made

    def _put(self, load: int, customer: int, memory: int, cost: int, before: int) -> bool:
        made = self.made
        if made == self.room:
            return False
        self.value[made], self.before[made] = cost, before
        self.customer[made], self.memory[made] = customer, memory
        self.next[made], self.head[load] = self.head[load], made
        self.made += 1
        return True

    def _look_at(self, load: int, label: int) -> bool:
        """Keep a label, if none is better, and extend it."""
        at, memory, cost = int(self.customer[label]), int(self.memory[label]), int(self.value[label])
        if self.dominant[at, memory] <= cost:
            return True
        over = np.flatnonzero((np.arange(1 << self.width) & memory) == memory)
        self.dominant[at, over] = np.minimum(self.dominant[at, over], cost)
        if self.least is not None:
            self.least[load, at] = min(cost, self.least[load, at])
        if self.out[at] < FAR:
            self._note_end(at, label, cost + int(self.out[at]))
        for arc in range(self.begin[at], self.begin[at + 1]):
            to, longer = int(self.to[arc]), cost + int(self.cost[arc])
            more = load + int(self.load[to])
            if more > self.capacity or memory & self.block[arc]:
                continue
            kept = 1
            for place in range(self.width):
                kept |= int(self.carried[arc, place]) if memory >> place & 1 else 0
            if self.dominant[to, kept] > longer and not self._put(more, to, kept, longer, label):
                return False
        return True

    def _note_end(self, customer: int, label: int, cost: int) -> None:
        place = int(np.searchsorted(self.length[customer], cost, side="right"))
        if place < self.top:
            for array, value in ((self.length, cost), (self.ends, label)):
                array[customer, place + 1 :] = array[customer, place:-1].copy()
                array[customer, place] = value


def neighbours(metric: Metric, depot: int, width: int) -> np.ndarray:
    """[n, width] int64: each point, then the customers nearest to it; fewer where there are no more."""
    n = metric.n
    width = max(1, min(width, n - 1))
    found = np.empty((n, width), dtype=np.int64)
    near = metric.neighbours(width)  # one more than needed: the depot may be among them
    for point in range(n):
        others = [each for each in near[point].tolist() if each != depot]
        if point == depot:  # not read
            others = [each for each in range(n) if each != depot]
        found[point] = [point, *others[: width - 1]]
    return found
