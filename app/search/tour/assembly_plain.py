"""The crossover of app/native/tour_assembly.c without a compiler: the same tours, only slower."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import product

import numpy as np

from app.graphs.metric import Metric
from app.rng import SplitMix


@dataclass
class _Counters:
    """What the kernel keeps in its structure; `random` is the generator's state."""

    random: int
    count: int = 0
    next: int = 0
    gain: int = 0
    best: int = 0


class PlainAssembly:
    """See NativeAssembly (app/native/tour_assembly.py) for arguments, tour_assembly.c for the algorithm."""

    def __init__(self, metric: Metric, near: np.ndarray, random: int) -> None:
        self.metric, self.n, self.near = metric, metric.n, near.tolist()
        self.order = np.empty(metric.n, dtype=np.int32)
        self.struct = _Counters(random)

    def begin(self, other: np.ndarray) -> None:
        """Split the difference of `order` and of the tour other [n] into cycles."""
        self._set_links(self.order.tolist())
        links = _links(other.tolist())
        random = SplitMix(self.struct.random)
        self.loose = tuple(
            [[end for end in mine[city] if end not in its[city]] for city in range(self.n)]
            for mine, its in ((self.link, links), (links, self.link))
        )
        self.cycles: list[list[int]] = []
        self.gaining: list[int] = []
        offset = random.below(self.n)
        for i in range(self.n):
            city = self.tour[(i + offset) % self.n]
            while self.loose[0][city]:
                self._walk(city, random)
        self.struct = _Counters(random.state, len(self.cycles))

    def merge(self, most: int) -> int:
        """Make up to `most` children; with the last of all take over what gains. Returns how many."""
        counters, made = self.struct, 0
        while made < most and counters.next < counters.count:
            gain = self._make([counters.next])
            self._unmake([counters.next])
            if gain is not None and gain > 0:
                self.gaining.append(counters.next)
                if gain > counters.gain:
                    counters.gain, counters.best = gain, counters.next
            made += 1
            counters.next += 1
            if counters.next == counters.count and self.gaining:
                self._take_over()
        return made

    def _take_over(self) -> None:
        """All cycles that gain, at once, or the best where together they gain less."""
        gain = self._make(self.gaining)
        if gain is None or gain < self.struct.gain:
            self._unmake(self.gaining)
            gain = self._make([self.struct.best])
        self.struct.gain = gain
        self._settle()

    def draw(self, most: int) -> int:
        """Make up to `most` children of cycles drawn; returns how many."""
        counters, made = self.struct, 0
        random = SplitMix(counters.random)
        while made < most and counters.next < counters.count:
            if not counters.next:
                self.drawn = list(range(counters.count))
            other = counters.next + random.below(counters.count - counters.next)
            number = self.drawn[other]
            self.drawn[other], self.drawn[counters.next] = self.drawn[counters.next], number
            gain = self._make([number])
            self._unmake([number])
            if gain is not None and gain > counters.gain:
                counters.gain, counters.best = gain, number
            made += 1
            counters.next += 1
        counters.random = random.state
        return made

    def take(self) -> None:
        """Make `order` the best child drawn."""
        self._make([self.struct.best])
        self._settle()

    # ---- the tour

    def _between(self, i: int, j: int) -> int:
        return int(self.metric.between(i, j))

    def _set_links(self, tour: list[int]) -> None:
        self.tour, self.place, self.link = tour, [0] * self.n, _links(tour)
        for i, city in enumerate(tour):
            self.place[city] = i

    def _settle(self) -> None:
        city = self.tour[0]
        before, tour = self.link[city][0], []
        for _ in range(self.n):
            tour.append(city)
            city, before = self._across(city, before), city
        self._set_links(tour)
        self.order[:] = tour

    def _replace(self, city: int, old: int, new: int) -> None:
        self.link[city][self.link[city][0] != old] = new

    def _across(self, city: int, before: int) -> int:
        return self.link[city][self.link[city][0] == before]

    # ---- cycles

    def _walk(self, city: int, random: SplitMix) -> None:
        trail: list[int] = []
        at: dict[tuple[int, int], int] = {}
        while True:
            side = len(trail) % 2
            at[side, city] = len(trail)
            trail.append(city)
            ends = self.loose[side][city]
            end = ends[random.below(2) if len(ends) > 1 else 0]
            self._drop(side, city, end)
            self._drop(side, end, city)
            first = at.get((1 - side, end))
            city = end
            if first is None:
                continue
            closed = trail[first:]
            for i, passed in enumerate(closed, first):
                del at[i % 2, passed]
            self.cycles.append(closed[1:] + closed[:1] if first % 2 else closed)
            del trail[first:]
            if not first:
                return

    def _drop(self, side: int, city: int, end: int) -> None:
        """As the kernel does: the other edge, if any, comes first."""
        self.loose[side][city].remove(end)

    # ---- a child

    def _make(self, numbers: list[int]) -> int | None:
        """The gain of the child of some cycles, None where subtours cannot be joined; `link` has it then."""
        self.joins: list[tuple[int, int, int, int]] = []
        self.cuts: list[int] = []
        gain = sum(self._exchange(self.cycles[number]) for number in numbers)
        self.cuts.sort()
        self._find_subtours()
        return self._join(gain)

    def _exchange(self, cycle: list[int]) -> int:
        """Exchange a cycle's edges in `link`, and note where that cuts the tour; returns what it gains."""
        olds, news = list(zip(cycle[::2], cycle[1::2])), list(zip(cycle[1::2], cycle[2::2] + cycle[:1]))
        for a, b in olds:
            self._replace(a, b, -1)
            self._replace(b, a, -1)
            adjacent = self.place[b] == (self.place[a] + 1) % self.n
            self.cuts.append(self.place[a] if adjacent else self.place[b])
        for a, b in news:
            self._replace(a, -1, b)
            self._replace(b, -1, a)
        return sum(self._between(a, b) for a, b in olds) - sum(self._between(a, b) for a, b in news)

    def _unmake(self, numbers: list[int]) -> None:
        cities = [city for number in numbers for city in self.cycles[number]]
        for city in (*cities, *(end for join in self.joins for end in join)):
            i = self.place[city]
            self.link[city] = [self.tour[i - 1], self.tour[(i + 1) % self.n]]

    def _segment(self, city: int) -> int:
        found = bisect_left(self.cuts, self.place[city])
        return 0 if found == len(self.cuts) else found

    def _first_of(self, segment: int) -> int:
        return self.tour[(self.cuts[segment - 1] + 1) % self.n]

    def _find_subtours(self) -> None:
        self.label = [-1] * len(self.cuts)
        self.root: list[int] = []
        self.size: list[int] = []
        self.entry: list[int] = []
        for segment in range(len(self.cuts)):
            if self.label[segment] < 0:
                self.root.append(len(self.root))
                self.entry.append(self._first_of(segment))
                self.size.append(self._trace(segment))

    def _trace(self, segment: int) -> int:
        """Give a subtour's segments its number; returns its cities."""
        cities, end, before = 0, self._first_of(segment), -1
        while self.label[segment] < 0:
            first, last = self._first_of(segment), self.tour[self.cuts[segment]]
            self.label[segment] = len(self.root) - 1
            cities += (self.place[last] - self.place[first]) % self.n + 1
            leave = last if end == first else first
            if first == last:
                inner = self.link[first][0] if before < 0 else before
            else:
                step = -1 if leave == last else 1
                inner = self.tour[(self.place[leave] + step) % self.n]
            end, before = self._across(leave, inner), leave
            segment = self._segment(end)
        return cities

    def _subtour(self, city: int) -> int:
        subtour = self.label[self._segment(city)]
        while self.root[subtour] != subtour:
            subtour = self.root[subtour]
        return subtour

    def _join(self, gain: int) -> int | None:
        for _ in range(len(self.root) - 1):
            alive = [i for i, root in enumerate(self.root) if root == i]
            subtour = min(alive, key=lambda i: self.size[i])
            found = self._cheapest_join(subtour)
            if found is None:
                return None
            cost, join = found
            city, near, u, v = join
            into = self._subtour(near)
            for end, old, new in ((city, u, near), (u, city, v), (near, v, city), (v, near, u)):
                self._replace(end, old, new)
            self.joins.append(join)
            self.root[subtour] = into
            self.size[into] += self.size[subtour]
            gain -= cost
        return gain

    def _cheapest_join(self, subtour: int) -> tuple[int, tuple[int, int, int, int]] | None:
        city = self.entry[subtour]
        before, best = self.link[city][0], None
        while True:
            for near in self.near[city]:
                if self._subtour(near) == subtour:
                    continue
                for u, v in product(self.link[city], self.link[near]):
                    cost = self._between(city, near) + self._between(u, v)
                    cost -= self._between(city, u) + self._between(near, v)
                    if best is None or cost < best[0]:
                        best = cost, (city, near, u, v)
            city, before = self._across(city, before), city
            if city == self.entry[subtour]:
                return best


def _links(tour: list[int]) -> list[list[int]]:
    """For each city the one before and the one after it."""
    links: list[list[int]] = [[] for _ in tour]
    for i, city in enumerate(tour):
        links[city] = [tour[i - 1], tour[(i + 1) % len(tour)]]
    return links
