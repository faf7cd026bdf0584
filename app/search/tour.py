"""Search for short tours: iterated local search from many starts, whose tours are crossed with each other.

Sources  Lin and Kernighan 1973 (gain criterion, chains of exchanges); Martin, Otto and Felten 1991 (kicks by
         a double bridge); Johnson and McGeoch 1997 (neighbour lists, don't-look bits, segment lengths);
         Nagata and Kobayashi 2013 (edge assembly crossover); Cook and Seymour 2003 (merging of tours)
"""

from collections.abc import Callable, Iterator

import numpy as np

from app.graphs.metric import Metric
from app.native import tour as native
from app.native import tour_assembly as native_assembly
from app.rng import SplitMix
from app.search.tour_assembly_plain import PlainAssembly
from app.search.tour_baselines import greedy_edge, space_filling_curve
from app.search.tour_plain import PlainSearch
from app.search.tour_start import random_greedy, short_edges

CHAIN = 3  # rounds of a chain, each of up to three exchanges
LONGEST_SEGMENT = 50  # cities in a segment of a kick
ROOM = 1 << 14  # reversals of one repair; a repair that would need more ends early
SLICE = 1000  # kicks, or cities of the first descent, in one call of a kernel
GREEDY_POINTS = 200_000  # above this a search starts from a space-filling curve
LOOKED_AT = 16  # cities that a step of a later descent looks at
import os
KICKS_PER_CITY = float(os.environ.get('KPC','.5'))
LEAST_KICKS = 100  # of a tour of a pool
POOL = int(os.environ.get('POOL','64'))
FIRST_BREEDING = int(os.environ.get('FB','8'))
CHILDREN = int(os.environ.get('NCH','30'))  # of a pair of tours


class TourSearch:
    """A tour that gets shorter.

    Tours of a pool are made one after the other, each from another start by a descent and some kicks, and each
    is merged with the best so far (what it has better is taken over). When the pool has grown to twice its
    size, its tours are bred: crossed with each other until none gets shorter. A full pool is given up, and the
    tours of the next one get twice as many kicks.

    A step is one kick with its repair, one child of a crossing, or LOOKED_AT cities of a descent. The first
    descent comes with the first call of `run` and is none. A result depends on (metric, seed, start, steps):
    how calls of `run` are cut, and whether the kernels are there, changes nothing.

    start       [n] order, or None: a greedy-edge tour
    neighbours  candidates per city
    steps       made so far            best      length of the shortest tour
    found_at    the step at which it was found
    """

    def __init__(
        self,
        metric: Metric,
        seed: int,
        start: np.ndarray | None = None,
        neighbours: int = 8,
        compiled: bool = True,
    ) -> None:
        self.metric, self.compiled = metric, compiled
        given = None if start is None else np.array(start, dtype=np.int32)
        if given is not None and not np.array_equal(np.sort(given), np.arange(metric.n)):
            raise ValueError(f"the start is no tour of {metric.name}: not every city occurs once")
        given = self._distinct(given)
        metric = self.metric
        self._order = _start(metric) if given is None else given
        self.best, self.found_at, self.steps, self._left = metric.length(self._order), 0, 0, 0
        self.done = metric.n <= 3
        if self.done:
            return
        near = np.ascontiguousarray(metric.neighbours(neighbours))
        cost = metric.between(np.arange(metric.n)[:, None], near).astype(np.int32, order="C")
        sizes = CHAIN, min(LONGEST_SEGMENT, (metric.n - 1) // 3), ROOM
        kind = native.NativeSearch if compiled and native.available() else PlainSearch
        self._search = kind(metric, near, cost, self._order, sizes)
        self._search.struct.random = seed & (1 << 64) - 1
        kind = native_assembly.NativeAssembly if compiled and native_assembly.available() else PlainAssembly
        self._near, self._base, self._edges = near, self._order.copy(), None
        self._random = SplitMix(~seed)
        self._assembly = kind(metric, near, self._random.bits())
        self._course = self._plan()

    def run(self, steps: int) -> None:
        """Make `steps` more; the first call descends first, and `run(0)` only does that."""
        if not self.done:
            self._left = steps
            next(self._course)

    # ---- the course of a search: generators that stop where the steps of `run` are used up

    def _plan(self) -> Iterator[None]:
        while self._search.descend(SLICE):
            pass
        self._took(self._search.order, self._search.struct.length, 0)
        kicks = max(LEAST_KICKS, int(KICKS_PER_CITY * self.metric.n))
        while True:
            yield from self._pool(kicks)
            kicks *= 2

    def _pool(self, kicks: int) -> Iterator[None]:
        """Tours of so many kicks."""
        pool, breeding = [], FIRST_BREEDING
        while len(pool) < POOL:
            best = self._order.copy()
            yield from self._kicks(kicks)
            pool.append(self._search.order.copy())
            yield from self._merge(best if self._search.struct.length == self.best else pool[-1])
            if len(pool) == breeding:
                yield from self._breed(list(pool))
                breeding *= 2
            yield from self._another_start()

    def _spend(self, work: Callable[[int], int], most: int) -> Iterator[None]:
        """Up to `most` steps of some work, which returns how many it made, 0 at its end."""
        while most > 0:
            if not self._left:
                yield
                continue
            made = work(min(most, self._left, SLICE))
            if not made:
                return
            most -= made
            self._left -= made
            self.steps += made

    def _another_start(self) -> Iterator[None]:
        if self._edges is None:
            self._edges = short_edges(self.metric, self._near)
        self._search.begin(random_greedy(self._edges, self._base, self._random, self.compiled))
        yield from self._spend(self._descend, self._search.waiting)

    def _descend(self, most: int) -> int:
        made = 0
        while made < most and self._search.waiting:
            self._search.descend(LOOKED_AT)
            made += 1
        return made

    def _kicks(self, count: int) -> Iterator[None]:
        struct, begun = self._search.struct, self.steps

        def kick(most: int) -> int:
            self._search.run(most)
            self._took(self._search.order, struct.length, begun + struct.found_at)
            return most

        self._took(self._search.order, struct.length, begun)
        yield from self._spend(kick, count)

    def _merge(self, tour: np.ndarray) -> Iterator[None]:
        """Take over what is better in a tour, or in the best one where this is it."""
        assembly, gained = self._assembly, True
        while gained:
            assembly.order[:] = self._order
            assembly.begin(tour)
            struct, begun, before = assembly.struct, self.steps, self.best

            def take_over(most: int) -> int:
                made = assembly.merge(most)
                self._took(assembly.order, before - struct.gain, begun + struct.best + 1)
                return made

            yield from self._spend(take_over, struct.count)
            gained = struct.gain > 0

    def _breed(self, tours: list[np.ndarray]) -> Iterator[None]:
        """Cross each tour with another until none gets shorter."""
        gained = True
        while gained:
            gained = False
            self._shuffle(tours)
            others = [*tours[1:], tours[0]]
            for i, other in enumerate(others):
                self._assembly.order[:] = tours[i]
                self._assembly.begin(other)
                yield from self._spend(self._assembly.draw, min(CHILDREN, self._assembly.struct.count))
                if self._assembly.struct.gain:
                    self._assembly.take()
                    tours[i], gained = self._assembly.order.copy(), True
                    self._took(tours[i], self.metric.length(tours[i]), self.steps)

    def _shuffle(self, tours: list[np.ndarray]) -> None:
        for i in range(len(tours) - 1, 0, -1):
            j = self._random.below(i + 1)
            tours[i], tours[j] = tours[j], tours[i]

    def _took(self, order: np.ndarray, length: int, step: int) -> None:
        """Keep a tour of this length, found at this step, where it is the shortest."""
        if length < self.best:
            self.best, self.found_at = int(length), int(step)
            self._order[:] = order

    # ---- solutions

    def solution(self) -> np.ndarray:
        """[n] int32, the tour from city 0 on, in the direction whose second city is the smaller."""
        order = self._with_equals(self._order)
        order = np.roll(order, -int(np.argmax(order == 0))).astype(np.int32)
        if len(order) > 2 and order[1] > order[-1]:
            order[1:] = order[:0:-1].copy()
        return order

    def _distinct(self, order: np.ndarray | None) -> np.ndarray | None:
        """The tour through one of all equal points, which the search is about; others stand beside them."""
        self._places = self.metric.places
        if self._places is None:
            return order
        firsts, place = self._places
        self.metric = self.metric.restrict(firsts)
        if order is None:
            return None
        passed = place[order]
        return passed[np.sort(np.unique(passed, return_index=True)[1])].astype(np.int32)

    def _with_equals(self, order: np.ndarray) -> np.ndarray:
        """The tour of all cities: equal points one after the other, which is as long."""
        if self._places is None:
            return order
        place = self._places[1]
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return np.argsort(rank[place], kind="stable").astype(np.int32)


def _start(metric: Metric) -> np.ndarray:
    if metric.n > GREEDY_POINTS and metric.points is not None:
        return space_filling_curve(metric)[0]
    return greedy_edge(metric)[0]
