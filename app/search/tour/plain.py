"""The search of app/native/tour.c without a compiler, move by move: the same tours, only slower."""

from dataclasses import dataclass

import numpy as np

from app.graphs.metric import Metric
from app.rng import SplitMix

NONE, FLIP, TWO_FLIPS, SWAP, TURN = range(5)
# A double bridge: which ends of the four edges that go are joined.
REACH = 1000  # as in tour.c
JOINED = ((0, 5), (6, 3), (4, 1), (2, 7))


@dataclass
class _Counters:
    """What the kernel keeps in its structure; `random` is the generator's state."""

    length: int = 0
    steps: int = 0
    found_at: int = 0
    random: int = 0


class _Best:
    """The exchange found: its kind, the gain before the tour is closed, and its cities t1, t2, ...."""

    def __init__(self) -> None:
        self.kind, self.open, self.t = NONE, 0, []


class PlainSearch:
    """See NativeSearch (app/native/tour.py) for the arguments, tour.c for the algorithm."""

    def __init__(
        self,
        metric: Metric,
        near: np.ndarray,
        cost: np.ndarray,
        order: np.ndarray,
        sizes: tuple[int, int, int],
    ) -> None:
        self.metric, self.n = metric, metric.n
        self.near, self.cost = near.tolist(), cost.tolist()
        self.depth, self.longest, self.room = sizes
        self.order = np.empty(self.n, dtype=np.int32)
        self.journal: list[tuple[int, int]] = []
        self.struct = _Counters()
        self.rows = None if metric.matrix is None else metric.matrix.tolist()
        self.begin(order)

    def between(self, i: int, j: int) -> int:
        """A distance."""
        return self.rows[i][j] if self.rows is not None else int(self.metric.between(i, j))

    def begin(self, order: np.ndarray) -> None:
        """Go on from another tour, of which every city waits, in its order; kicks are counted from 0."""
        self.order[:] = order
        self.tour = order.tolist()
        self.place = [0] * self.n
        for i, city in enumerate(self.tour):
            self.place[city] = i
        self.queue, self.queued = list(self.tour), [True] * self.n
        self.struct = _Counters(self.metric.length(order), random=self.struct.random)

    @property
    def waiting(self) -> int:
        """Cities that a descent has still to look at."""
        return len(self.queue)

    def next_city(self, city: int) -> int:
        """The city after `city`."""
        return self.tour[(self.place[city] + 1) % self.n]

    def city_before(self, city: int) -> int:
        """The city before `city`."""
        return self.tour[self.place[city] - 1]

    def descend(self, most: int) -> bool:
        """Look at up to `most` waiting cities of the first descent; False when none is left."""
        self._descend(most, True)
        self.journal.clear()
        self.order[:] = self.tour
        return bool(self.queue)

    def run(self, steps: int) -> None:
        """Kicks and repairs."""
        counters = self.struct
        random = SplitMix(counters.random)
        for _ in range(steps):
            before = counters.length
            self.journal.clear()
            self._kick(random)
            self._descend(-1, False)
            counters.steps += 1
            if counters.length > before:
                self._undo(0)
                counters.length = before
            elif counters.length < before:
                counters.found_at = counters.steps
        counters.random = random.state
        self.journal.clear()
        self.order[:] = self.tour

    # ---- the tour

    def _turn(self, first: int, count: int) -> None:
        """Reverse `count` cities from place `first` on, around the end."""
        i, j = first, (first + count - 1) % self.n
        for _ in range(count // 2):
            a, b = self.tour[i], self.tour[j]
            self.tour[i], self.tour[j] = b, a
            self.place[b], self.place[a] = i, j
            i, j = (i + 1) % self.n, (j - 1) % self.n

    def _turn_noted(self, first: int, count: int) -> None:
        self._turn(first, count)
        self.journal.append((first, count))

    def _undo(self, noted: int) -> None:
        while len(self.journal) > noted:
            self._turn(*self.journal.pop())

    def _flip(self, a: int, b: int, d: int) -> None:
        """Replace edges a-b and d-c by b-c and d-a, where c lies beyond d."""
        forward = self.next_city(a) == b
        first, last = self.place[b if forward else d], self.place[d if forward else b]
        count = (last - first) % self.n + 1
        if 2 * count > self.n:
            first, count = (last + 1) % self.n, self.n - count
        self._turn_noted(first, count)

    def _apply(self, kind: int, t: list[int]) -> None:
        if kind == FLIP:
            self._flip(t[0], t[1], t[3])
        elif kind == TWO_FLIPS:
            self._flip(t[0], t[1], t[3])
            self._flip(t[0], t[3], t[5])
        elif kind == SWAP:
            self._flip(t[0], t[1], t[2])
            self._flip(t[0], t[2], t[5])
            self._flip(t[2], t[4], t[1])
        elif kind == TURN:
            self._flip(t[5], t[4], t[2])
            self._flip(t[0], t[1], t[5])

    # ---- exchanges

    def _find_exchange(self, t1: int, t2: int, open_gain: int) -> tuple[_Best, bool]:
        """The first exchange that shortens the tour, and True; else that of the largest open gain."""
        n, best = self.n, _Best()
        start, sign = self.place[t2], 1 if self.next_city(t1) == t2 else -1
        for t3, cost in zip(self.near[t2], self.cost[t2]):
            if open_gain <= cost:
                break
            i, gain = sign * (self.place[t3] - start) % n, open_gain - cost
            if i in (1, n - 1):
                continue
            t = [t1, t2, t3, self.tour[(start + sign * (i - 1)) % n]]
            flipped = gain + self.between(t3, t[3])
            if self._consider(best, FLIP, flipped, t):
                return best, True
            if self._second_flips(best, (start, sign), i, flipped, t):
                return best, True
            if i == n - 2:
                continue
            t = [t1, t2, t3, self.tour[(start + sign * (i + 1)) % n]]
            if self._openings(best, (start, sign), i, gain + self.between(t3, t[3]), t):
                return best, True
        return best, False

    def _second_flips(self, best: _Best, path: tuple[int, int], i: int, gain: int, t: list[int]) -> bool:
        n, (start, sign) = self.n, path
        for t5, cost in zip(self.near[t[3]], self.cost[t[3]]):
            if gain <= cost:
                break
            j = sign * (self.place[t5] - start) % n
            if j in (i, i - 2, n - 1):
                continue
            t6 = self.tour[(start + sign * (j - 1 if j > i else j + 1)) % n]
            if self._consider(best, TWO_FLIPS, gain - cost + self.between(t5, t6), [*t, t5, t6]):
                return True
        return False

    def _openings(self, best: _Best, path: tuple[int, int], i: int, gain: int, t: list[int]) -> bool:
        n, (start, sign) = self.n, path
        for t5, cost in zip(self.near[t[3]], self.cost[t[3]]):
            if gain <= cost:
                break
            j = sign * (self.place[t5] - start) % n
            if j >= i:
                continue
            t6 = self.tour[(start + sign * (j + 1)) % n]
            if self._consider(best, SWAP, gain - cost + self.between(t5, t6), [*t, t5, t6]):
                return True
            if j == 0:
                continue
            t6 = self.tour[(start + sign * (j - 1)) % n]
            if self._consider(best, TURN, gain - cost + self.between(t5, t6), [*t, t5, t6]):
                return True
        return False

    def _consider(self, best: _Best, kind: int, gain: int, t: list[int]) -> bool:
        """Keep an exchange that shortens the tour, or the one of the largest open gain."""
        closing = self.between(t[-1], t[0])
        if gain > closing or gain > best.open:
            best.kind, best.open, best.t = kind, gain, t
        return gain > closing

    # ---- descent and kicks

    def _enqueue(self, cities: list[int]) -> None:
        for city in cities:
            if not self.queued[city]:
                self.queued[city] = True
                self.queue.append(city)

    def _chain(self, t1: int, t2: int) -> bool:
        noted, touched = len(self.journal), []
        gain = self.between(t1, t2)
        for depth in range(self.depth):
            best, gained = self._find_exchange(t1, t2, gain)
            last = depth + 1 == self.depth
            if best.kind == NONE or (not gained and (last or not self._within_reach(best.t))):
                break
            self._apply(best.kind, best.t)
            touched += best.t
            t2, gain = best.t[-1], best.open
            if gained:
                self.struct.length -= gain - self.between(t2, t1)
                self._enqueue(touched)
                return True
        self._undo(noted)
        return False

    def _within_reach(self, t: list[int]) -> bool:
        """Whether an exchange, which may be undone, reverses no long stretch."""
        away = [abs(self.place[city] - self.place[t[0]]) for city in t[3:]]
        return all(min(a, self.n - a) <= REACH for a in away)

    def _room_left(self) -> bool:
        return len(self.journal) + 3 * self.depth <= self.room

    def _descend(self, most: int, keep: bool) -> None:
        while self.queue and most != 0 and self._room_left():
            most -= 1
            t1 = self.queue.pop(0)
            self.queued[t1] = False
            while self._chain(t1, self.next_city(t1)) or self._chain(t1, self.city_before(t1)):
                if keep:
                    self.journal.clear()
                if not self._room_left():
                    break
        if not self._room_left():
            self.queue, self.queued = [], [False] * self.n

    def _kick(self, random: SplitMix) -> None:
        n = self.n
        first = random.below(n)
        size = [1 + random.below(self.longest) for _ in range(3)]
        at = [first]
        for count in size:
            at.append((at[-1] + count) % n)
        ends = [city for i in at for city in (self.tour[i - 1], self.tour[i])]
        for k, (a, b) in enumerate(JOINED):
            self.struct.length += self.between(ends[a], ends[b])
            self.struct.length -= self.between(ends[2 * k], ends[2 * k + 1])
        self._turn_noted(first, sum(size))
        self._turn_noted(first, size[2])
        self._turn_noted((first + size[2]) % n, size[1])
        self._turn_noted((first + size[2] + size[1]) % n, size[0])
        self._enqueue(ends)
