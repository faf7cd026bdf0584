"""Search for short tours: local search from many starts, and crossing of the tours that this gives.

Sources  Lin and Kernighan 1973 (gain criterion, chains of exchanges); Martin, Otto and Felten 1991 (kicks by
         a double bridge); Johnson and McGeoch 1997 (neighbour lists, don't-look bits, segment lengths);
         Nagata and Kobayashi 2013 (edge assembly crossover); Cook and Seymour 2003 (merging of tours)
"""

from collections.abc import Callable, Iterator

import numpy as np

from app.graphs.curve import WORTH_ORDERING, along_curve
from app.graphs.lengths import PLANE
from app.graphs.metric import Metric
from app.graphs.orders import places_of
from app.native import tour as native
from app.native import tour_assembly as native_assembly
from app.rng import MASK, SplitMix
from app.search.tour.assembly_plain import PlainAssembly
from app.search.tour.baselines import greedy_edge, space_filling_curve
from app.search.tour.plain import PlainSearch
from app.search.tour.start import random_greedy, short_edges
from app.toolbox import Search

CHAIN = 3  # rounds of a chain, each of up to three exchanges
LONGEST_SEGMENT = 50  # cities in a segment of a kick
ROOM = 1 << 14  # reversals of one repair; a repair that would need more ends early
SLICE = 1000  # steps, or cities of the first descent, in one call of a kernel
GREEDY_POINTS = 200_000  # above this a search starts from a space-filling curve
LOOKED_AT = 16  # cities that one step of a later descent looks at
KICKS, LEAST_KICKS = 4, 100  # a tour of the first pool gets one kick for so many cities, but not fewer
FIRST_TOUR = 4  # the very first tour gets so many times as many
POOL, MOST_CITIES = 64, 1 << 26  # tours of a pool, and their cities together
FIRST_BREEDING = 8  # tours
CHILDREN = 30  # of a pair of tours, at most
LEAST_MEETING = 5000  # steps between two meetings of several searches, or as many as there are cities


class TourSearch(Search):
    """A tour that gets shorter.

    The tours of a pool are made one after the other: a start of their own, a descent, some kicks. The best so
    far takes over from each what is better there. Whenever the pool has twice as many tours as the last time,
    they are bred: crossed with each other until none gets shorter. A full pool is given up for the next one,
    whose tours get twice as many kicks. Several searches share what they make: a pool has the tours of all.

    A step is a kick with its repair, a child of two tours, or LOOKED_AT cities of a descent. The first
    descent comes with the first call of `run` and is no step. A result depends on (metric, seed, start,
    steps): how calls of `run` are cut, and whether the kernels are there, changes nothing.

    start       [n] order, or None: a greedy-edge tour
    neighbours  candidates per city
    steps       made so far                     best   length of the shortest tour
    found_at    the step at which it was found  done   nothing better can exist
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
        self._given, self._given_length = given, None if given is None else metric.length(given)
        given = self._renumber(given)
        metric = self.metric
        self._order = _start(metric) if given is None else given
        self._best, self._found_at, self.steps, self._left = metric.length(self._order), 0, 0, 0
        self.done = metric.n <= 3
        self._neighbours, self._random = neighbours, SplitMix(seed)
        self._new: list[np.ndarray] = []  # tours that other searches do not know yet
        self._guests: list[list[np.ndarray]] = []  # the news of other searches
        self._searches = 1
        self._course = self._plan()

    @property
    def best(self) -> int:
        """The length of the shortest tour."""
        return self._given_length if self._given_stands else self._best

    @property
    def found_at(self) -> int:
        """The step at which it was found."""
        return 0 if self._given_stands else self._found_at

    @property
    def _given_stands(self) -> bool:
        """Whether the start is shorter than all that the search has, which passes equal points in a row.

        That need not be best where rounded lengths break the triangle inequality.
        """
        return self._given is not None and self._given_length < self._best

    def run(self, steps: int) -> None:
        """Make `steps` more; the first call descends first, and `run(0)` only does that."""
        if not self.done:
            self._left = steps
            next(self._course)

    @property
    def meeting_steps(self) -> int:
        """Steps between two meetings of several searches."""
        return max(LEAST_MEETING, self.metric.n)

    def join(self, searches: int) -> None:
        """Be one of so many searches, before the first step: what the pool gets is kept for the others."""
        self._searches = searches

    def news(self) -> np.ndarray:
        """[k, n] int32, the best tour, and those that this search has made since the last call."""
        told, self._new = [self._order, *self._new], []
        return np.array([self._of_caller(order) for order in told], dtype=np.int32)

    def meet(self, others: list[np.ndarray]) -> None:
        """The news of the other searches; they count when the next tour is finished."""
        for tours in others:
            self._guests.append([self._of_search(tour) for tour in tours])

    def _set_up(self) -> None:
        metric, order, compiled = self.metric, self._order, self.compiled
        near = self._near = np.ascontiguousarray(metric.neighbours(self._neighbours))
        cost = metric.between(np.arange(metric.n)[:, None], near).astype(np.int32, order="C")
        sizes = CHAIN, min(LONGEST_SEGMENT, (metric.n - 1) // 3), ROOM
        fast = compiled and native.available() and native_assembly.available()
        self._search = (native.NativeSearch if fast else PlainSearch)(metric, near, cost, order, sizes)
        self._search.struct.random = self._random.state
        self._random = SplitMix(MASK ^ self._random.state)
        crossing = native_assembly.NativeAssembly if fast else PlainAssembly
        self._assembly = crossing(metric, near, self._random.bits())
        self._base, self._edges = order.copy(), None

    # ---- the course: generators that pause where the steps that `run` allows are used up

    def _plan(self) -> Iterator[None]:
        self._set_up()
        while self._search.descend(SLICE):
            pass
        self._took(self._search.order, self._search.struct.length, 0)
        kicks = max(LEAST_KICKS, self.metric.n // KICKS)
        first = kicks * FIRST_TOUR  # a good answer soon, where there is nothing to cross yet
        while True:
            yield from self._pool(kicks, first)
            first = kicks = 2 * kicks

    def _spend(self, work: Callable[[int], int], most: int) -> Iterator[None]:
        """Up to `most` steps of some work: it is told how many and returns how many it made, 0 at its end."""
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

    def _pool(self, kicks: int, first: int) -> Iterator[None]:
        """Tours of so many kicks each, of `first` the one at hand, until a pool is full."""
        pool: list[np.ndarray] = []
        breeding = FIRST_BREEDING
        while len(pool) < min(POOL * self._searches, max(FIRST_BREEDING, MOST_CITIES // self.metric.n)):
            before = self._order.copy()
            yield from self._kick(kicks if pool else first)
            pool.append(self._search.order.copy())
            self._new += pool[-1:] if self._searches > 1 else []
            yield from self._merge(pool[-1], before)
            while self._guests:
                (guest, *others), before = self._guests.pop(0), self._order.copy()
                self._took(guest, self.metric.length(guest), self.steps)
                yield from self._merge(guest, before)
                pool += others  # the best one is made of such, and would soon be everywhere
            if len(pool) >= breeding:
                yield from self._breed(list(pool))
                breeding = 2 * len(pool)
            yield from self._begin_another()

    def _kick(self, count: int) -> Iterator[None]:
        """Kicks of the tour at hand."""
        struct, begun = self._search.struct, self.steps

        def kick(most: int) -> int:
            self._search.run(most)
            self._took(self._search.order, struct.length, begun + struct.found_at)
            return most

        self._took(self._search.order, struct.length, begun)
        yield from self._spend(kick, count)

    def _merge(self, tour: np.ndarray, before: np.ndarray) -> Iterator[None]:
        """The best tour takes over what is better in a tour, until one pass gains nothing.

        before   the best tour without this one: where this one is the best now, what is taken over from
        """
        other = before if np.array_equal(tour, self._order) else tour
        length = None
        while length != self._best:
            length = self._best
            yield from self._take_over(other)

    def _take_over(self, tour: np.ndarray) -> Iterator[None]:
        """One pass through the cycles of the best tour and another."""
        assembly = self._assembly
        assembly.order[:] = self._order
        assembly.begin(tour)
        yield from self._spend(assembly.merge, assembly.struct.count)
        self._took(assembly.order, self.metric.length(assembly.order), self.steps)

    def _breed(self, tours: list[np.ndarray]) -> Iterator[None]:
        """Each tour gives way to its shortest child with another, where that is shorter, until none is."""
        assembly, gains = self._assembly, True
        while gains:
            gains = False
            self._shuffle(tours)
            for i, other in enumerate([*tours[1:], tours[0]]):
                assembly.order[:] = tours[i]
                assembly.begin(other)
                yield from self._spend(assembly.draw, min(CHILDREN, assembly.struct.count))
                if assembly.struct.gain:
                    assembly.take()
                    tours[i], gains = assembly.order.copy(), True
                    self._took(tours[i], self.metric.length(tours[i]), self.steps)

    def _shuffle(self, tours: list[np.ndarray]) -> None:
        for i in range(len(tours) - 1, 0, -1):
            j = self._random.below(i + 1)
            tours[i], tours[j] = tours[j], tours[i]

    def _begin_another(self) -> Iterator[None]:
        """Another start, and the descent from it."""
        if self._edges is None:
            self._edges = short_edges(self.metric, self._near)
        self._search.begin(random_greedy(self._edges, self._base, self._random, self.compiled))

        def descend(most: int) -> int:
            made = 0
            while made < most and self._search.waiting:
                self._search.descend(LOOKED_AT)
                made += 1
            return made

        yield from self._spend(descend, self._search.waiting)

    def _took(self, order: np.ndarray, length: int, step: int) -> None:
        """Keep a tour of this length, found at this step, where it is the shortest, of equal ones the last.

        Kicks go on from a tour as long as the one before: were the first kept, slices would decide which.
        """
        if length < self._best:
            self._best, self._found_at = int(length), int(step)
        if length == self._best:
            self._order[:] = order

    # ---- solutions

    def solution(self) -> np.ndarray:
        """[n] int32, the tour from city 0 on, in the direction whose second city is the smaller."""
        order = self._given if self._given_stands else self._of_caller(self._order)
        order = np.roll(order, -int(np.argmax(order == 0))).astype(np.int32)
        if len(order) > 2 and order[1] > order[-1]:
            order[1:] = order[:0:-1].copy()
        return order

    def _renumber(self, order: np.ndarray | None) -> np.ndarray | None:
        """Let the search be about one of all equal points; give many points numbers along a curve.

        What is near in the plane is near in memory then: three times as many kicks of 200,000 points.
        order     [n], a tour in the caller's numbers, or None; returns it in those of the search
        """
        places, n = self.metric.places, self.metric.n
        chosen, self._place = (np.arange(n), None) if places is None else places
        if len(chosen) > WORTH_ORDERING and self.metric.kind in PLANE:
            along = self.metric.along if places is None else along_curve(self.metric.points[chosen])
            rank = places_of(along)
            chosen, self._place = chosen[along], rank if places is None else rank[self._place]
        if self._place is None:
            return order
        self.metric = self.metric.restrict(chosen)
        return None if order is None else self._of_search(order)

    def _of_search(self, order: np.ndarray) -> np.ndarray:
        """A tour [n] of the caller in the numbers of the search, int32; of equal points the first counts."""
        if self._place is None:
            return order.astype(np.int32)
        passed = self._place[order]
        return passed[np.sort(np.unique(passed, return_index=True)[1])].astype(np.int32)

    def _of_caller(self, order: np.ndarray) -> np.ndarray:
        """A tour in the caller's numbers: equal points one after the other."""
        if self._place is None:
            return order
        rank = places_of(order)
        return np.argsort(rank[self._place], kind="stable").astype(np.int32)


def _start(metric: Metric) -> np.ndarray:
    if metric.n > GREEDY_POINTS and metric.plane is not None:
        return space_filling_curve(metric)[0]
    return greedy_edge(metric)[0]
