"""Tours that grow by cheapest insertion: where each outside city fits best, kept as cities come in."""

import numpy as np

from app.graphs.metric import Metric
from app.native import tour as native


def cheapest_insertion(metric: Metric, order: np.ndarray, city: int) -> tuple[int, int]:
    """(position, cost): inserting `city` before order[position] (at the end: len(order)) costs least.

    order    [m] cities of the closed tour, m >= 1; ties go to the lowest position, which is 1 or more
    """
    order = np.asarray(order, dtype=np.int64)
    to_city = metric.between(order, city)
    extra = to_city + np.roll(to_city, -1) - metric.between(order, np.roll(order, -1))
    best = int(extra.argmin())
    return best + 1, int(extra[best])


class InsertionState:
    """A closed tour of some cities, and for each city outside it what its insertion costs.

    cost_out     [n] int64   the least extra length of inserting a city; 0 on the tour
    nearest_out  [n] int64   the distance to the nearest city of the tour; 0 on the tour
    inside       [n] bool    the cities of the tour
    order        [m] int32   the tour        length   its length

    The place of an insertion is that of `cheapest_insertion`. An insertion takes O(n) and, for each city
    whose best edge it removes, O(m). The arrays change in place: copy what is to be kept.
    """

    def __init__(self, metric: Metric, start: np.ndarray, compiled: bool = True) -> None:
        n = metric.n
        start = np.asarray(start, dtype=np.int32)
        self.metric = metric
        self._size = len(start)
        self._order = np.zeros(n, dtype=np.int32)
        self._order[: len(start)] = start
        self._place = np.full(n, -1, dtype=np.int32)
        self._place[start] = np.arange(len(start), dtype=np.int32)
        self._after = np.zeros(n, dtype=np.int32)
        self.cost_out, self.nearest_out = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        self._length = metric.length(start)
        self._native = None
        if compiled and native.available():
            arrays = {
                "order": self._order,
                "place": self._place,
                "after": self._after,
                "cost": self.cost_out,
                "nearest": self.nearest_out,
            }
            self._native = native.NativeInsertion(metric, self._size, self._length, arrays)
        else:
            self._start()

    @property
    def order(self) -> np.ndarray:
        """[m] int32, a view of the tour."""
        return self._order[: self._native.struct.size if self._native else self._size]

    @property
    def length(self) -> int:
        """The length of the closed tour."""
        return int(self._native.struct.length if self._native else self._length)

    @property
    def inside(self) -> np.ndarray:
        """[n] bool, the cities of the tour."""
        return self._place >= 0

    def position(self, city: int) -> int:
        """Where an outside city would be inserted."""
        return int(self._place[self._after[city]]) + 1

    def insert(self, city: int) -> None:
        """Insert an outside city where it is cheapest."""
        if self._place[city] >= 0:
            raise ValueError(f"city {city} is on the tour already")
        if self._native:
            self._native.insert(int(city))
        else:
            self._insert(int(city))

    def play(self, cities: np.ndarray) -> None:
        """Insert distinct outside cities [k] one after the other, each where it is cheapest by then."""
        cities = np.ascontiguousarray(cities, dtype=np.int64)
        if self._native and len(cities):
            if self._native.play(cities) < len(cities):
                raise ValueError("cities: each has to be outside the tour, and named once")
            return
        for city in cities.tolist():
            if self._place[city] >= 0:
                raise ValueError("cities: each has to be outside the tour, and named once")
            self._insert(city)

    def gains(self, near: np.ndarray) -> np.ndarray:
        """[n] int64, what inserting each outside city now would gain; 0 on the tour.

        That is: its distance to the tour less its insertion cost, and what the outside ones of its neighbours
        save in distance to the tour and in insertion cost if their own best places stay.

        near   [n, k] int32 neighbours of every city
        """
        gain = np.zeros(self.metric.n, dtype=np.int64)
        if self._native:
            self._native.gains(near, gain)
            return gain
        c = np.flatnonzero(~self.inside)
        if not len(c) or not near.shape[1]:
            gain[c] = self.nearest_out[c] - self.cost_out[c]
            return gain
        between, a, u = self.metric.between, self._after[c, None], near[c]
        b = self.order[(self._place[a] + 1) % self._size]
        c = c[:, None]
        to_c = between(u, c)
        cost = np.minimum(between(a, u) + to_c - between(a, c), to_c + between(u, b) - between(c, b))
        saved = np.maximum(self.nearest_out[u] - to_c, 0) + np.maximum(self.cost_out[u] - cost, 0)
        saved[self.inside[u]] = 0
        gain[c[:, 0]] = (self.nearest_out[c] - self.cost_out[c])[:, 0] + saved.sum(axis=1)
        return gain

    def codes(self, steps: native.CodeSteps) -> np.ndarray | None:
        """[n] int32, what a policy sees of each city, in compiled steps; None where there are none."""
        return self._native.codes(steps, self.metric.nearest) if self._native else None

    def replays(self) -> native.NativeReplays | None:
        """What tells states that begin like this one again; None where nothing is compiled."""
        if not self._native:
            return None
        first, room = (InsertionState(self.metric, self.order)._native for _ in range(2))
        return native.NativeReplays(first, room, self.metric.nearest)

    def insert_farthest(self, count: int) -> None:
        """`count` times: insert the city farthest from the tour, ties to the lowest number."""
        if self._native:
            self._native.farthest(count)
            return
        for _ in range(min(count, self.metric.n - self._size)):
            self._insert(int(np.where(self.inside, -1, self.nearest_out).argmax()))

    def insert_cheapest(self, count: int) -> None:
        """`count` times: insert the city whose insertion costs least, ties to the lowest number."""
        if self._native:
            self._native.cheapest(count)
            return
        for _ in range(min(count, self.metric.n - self._size)):
            self._insert(int(np.where(self.inside, np.iinfo(np.int64).max, self.cost_out).argmin()))

    def _start(self) -> None:
        outside = np.flatnonzero(~self.inside)
        self._scan(outside)
        for city in outside:
            self.nearest_out[city] = self.metric.between(self.order, city).min()

    def _scan(self, cities: np.ndarray) -> None:
        """Find the cheapest places of outside cities anew."""
        for city in cities:
            position, self.cost_out[city] = cheapest_insertion(self.metric, self.order, city)
            self._after[city] = self._order[position - 1]

    def _insert(self, c: int) -> None:
        a, at = int(self._after[c]), self.position(c)
        b = int(self._order[at % self._size])
        self._length += int(self.cost_out[c])
        self._order[at + 1 : self._size + 1] = self._order[at : self._size].copy()
        self._order[at] = c
        self._size += 1
        self._place[self.order] = np.arange(self._size, dtype=np.int32)
        self.cost_out[c] = self.nearest_out[c] = 0
        outside = np.flatnonzero(~self.inside)
        to_c = self.metric.between(outside, c)
        self.nearest_out[outside] = np.minimum(self.nearest_out[outside], to_c)
        lost = self._after[outside] == a
        self._scan(outside[lost])
        others, to_c = outside[~lost], to_c[~lost]
        self._offer(others, a, self.metric.between(others, a) + to_c - int(self.metric.between(a, c)))
        self._offer(others, c, self.metric.between(others, b) + to_c - int(self.metric.between(c, b)))

    def _offer(self, cities: np.ndarray, a: int, cost: np.ndarray) -> None:
        """Take the place behind `a` where it is cheaper, or as cheap and earlier."""
        held = self.cost_out[cities]
        earlier = self._place[a] <= self._place[self._after[cities]]
        take = (cost < held) | ((cost == held) & earlier)
        self.cost_out[cities[take]] = cost[take]
        self._after[cities[take]] = a
