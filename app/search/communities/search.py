"""Local search for communities: regions are clustered anew, and what both clusterings agree on goes together.

A region is the whole graph, or a few communities that lie side by side. It is clustered from single nodes
(moves of nodes, then of the groups that these make, and so on; on the way back nodes of each level may move
again). Groups of nodes that are together both in that clustering and in the best one are moved as one, from
the communities of the best one on: what comes of it is never worse.

Source   Louvain: Blondel et al. 2008; moves on the way back: Rotta and Noack, Journal of Experimental
         Algorithmics 2011; groups on which clusterings agree: Ovelgönne and Geyer-Schulz, An ensemble
         learning strategy for graph clustering, DIMACS challenge 2012
Differs  regions: most clusterings are of a part of the graph. Each that gains, and the next one, cost some
         passes over all nodes besides.
"""

from collections.abc import Generator

import numpy as np

from app.graphs.contracted import numbered, overlay
from app.graphs.quality import Quality
from app.rng import SplitMix, stream
from app.search.communities.moves import Mover
from app.toolbox import Search

# Either stops where the steps it was given are used up; the second one returns communities.
Course, Found = Generator[None, None, None], Generator[None, None, np.ndarray]
ALL = 1 << 62
EARLIEST = 4  # halvings of the nodes that are looked at before groups of them move
FINE = 3  # every so many clusterings there is one of small groups
SMALLEST = 16  # nodes of a region
WHOLE = 4  # regions of all sizes together cost so many times what the whole graph costs, between two of these
PATIENCE = 20  # such rounds without a better partition end a lineage, for each of its ages
TRIED = 8  # edges drawn of each community of a region, beyond which others lie
LEAST_MEETING = 1 << 17  # steps between two meetings of several searches, or 16 for each node


class CommunitySearch(Search):
    """A partition that gets better; a function of quality, start, seed, what it hears, and steps made.

    quality   of the core
    start     [n] communities
    steps     nodes looked at so far
    best      value of the best partition, found_at the step it was found in
    """

    hears = True
    done = False

    def __init__(self, quality: Quality, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        self.quality, self.compiled = quality, compiled
        self._random, self._draws = SplitMix(seed), stream(seed, "communities")
        self._every = np.arange(quality.n)
        self._label = self._best = numbered(start)  # of the lineage, and of all
        self._value = self.best = quality.value(start)
        self.steps = self.found_at = self._found = self._left = 0
        self._place = np.full(quality.n, -1, dtype=np.int32)
        self._members: tuple[np.ndarray, np.ndarray] | None = None  # nodes in order, ends
        self._guests: list[np.ndarray] = []
        self._course = self._forever()

    @property
    def meeting_steps(self) -> int:
        """Steps between two meetings of several searches."""
        return max(LEAST_MEETING, 16 * self.quality.n)

    def news(self) -> np.ndarray:
        """[1, n] int32, the best partition."""
        return self._best[None, :]

    def meet(self, others: list[np.ndarray]) -> None:
        """The best partitions of the other searches: each is a clustering of the whole graph."""
        self._guests = [each[0].astype(np.int32) for each in others]

    def hear(self, solution: np.ndarray) -> None:
        """A partition from elsewhere, to go on from where it is better."""
        if self.quality.value(solution) > self.best:
            self._guests.append(numbered(solution))

    def solution(self) -> np.ndarray:
        """[n] int64, the best partition, a copy."""
        return self._best.astype(np.int64)

    def run(self, steps: int) -> None:
        """Look at so many more nodes."""
        self._left += steps
        while self._left:
            next(self._course)

    # ---- the course ----------------------------------------------------------------------------------------

    def _forever(self) -> Course:
        """Lineages: each is improved until that has long failed; two of one age make an older one."""
        waiting: list[tuple[int, np.ndarray]] = []  # ages and partitions
        age = 0
        yield from self._improve(self._every, self._label)
        while True:
            yield from self._lineage(age)
            if waiting and waiting[-1][0] == age:
                yield from self._improve(self._every, waiting.pop()[1])
                age += 1
                continue
            waiting.append((age, self._label))
            age, made = 0, (yield from self._fresh(self.quality))
            self._take(made, self.quality.value(made))

    def _lineage(self, age: int) -> Course:
        """Regions, one after the other, until none has been better for a time."""
        self._found = self.steps
        while True:
            begun = self.steps
            while self._guests:
                yield from self._improve(self._every, self._guests.pop(0))
            yield from self._improve(self._every)
            cost, begun = self.steps - begun, self.steps
            while self.steps - begun < WHOLE * cost and not self._guests:
                yield from self._improve(self._region())
            if self.steps - self._found > PATIENCE * (1 + WHOLE) * (1 + age) * cost:
                return

    def _improve(self, nodes: np.ndarray, other: np.ndarray | None = None) -> Course:
        """Make the communities of some nodes [k] better, all of whose nodes are among them.

        other   [k] another clustering of them; None: one is made
        """
        whole = len(nodes) == self.quality.n
        quality = self.quality if whole else self.quality.induced(nodes, self._place)
        label = numbered(self._label[nodes])
        if other is None:
            other = yield from (self._fresh(quality) if self._random.below(FINE) else self._fine(quality))
        made = yield from self._combined(quality, label, other)
        gained = quality.value(made) - quality.value(label)
        if gained > 0:
            new = self._label.copy()
            new[nodes] = numbered(made) + int(new.max()) + 1
            self._take(new, self._value + gained)

    def _take(self, label: np.ndarray, value: int) -> None:
        """Go on from communities [n]."""
        self._label, self._value, self._found = numbered(label), value, self.steps
        self._members = None
        if value > self.best:
            self.best, self._best, self.found_at = value, self._label, self.steps

    def _combined(self, quality: Quality, label: np.ndarray, other: np.ndarray) -> Found:
        """Returns [n], communities at least as good as `label` [n]."""
        group = overlay(label, other)
        coarse = quality.contracted(group, self.compiled)
        start = np.zeros(coarse.n, dtype=np.int32)
        start[group] = label
        best, worth = label, quality.value(label)
        for begin in (start, None):
            found = yield from self._clustered(coarse, begin)
            found = yield from self._settled(quality, found[group])
            if quality.value(found) > worth:
                best, worth = found, quality.value(found)
        return best

    def _clustered(self, quality: Quality, label: np.ndarray | None) -> Found:
        """Returns [n], communities that no move of a node, or of a community, makes better, from `label`
        on.
        """
        label = np.arange(quality.n) if label is None else label
        label = yield from self._settled(quality, label)
        group = numbered(label)
        if int(group.max(initial=-1)) + 1 < quality.n:
            coarse = quality.contracted(group, self.compiled)
            found = yield from self._clustered(coarse, None)
            if int(found.max(initial=-1)) + 1 < coarse.n:
                label = yield from self._settled(quality, found[group])
        return numbered(label)

    def _fresh(self, quality: Quality) -> Found:
        """Returns [n], communities from single nodes on.

        Every second time groups move before all nodes have: what they come to lies elsewhere.
        """
        halvings = self._random.below(2 * EARLIEST)
        if halvings < EARLIEST:
            return (yield from self._clustered(quality, None))
        looks = max(quality.n >> halvings - EARLIEST + 1, 1)
        group = numbered((yield from self._settled(quality, np.arange(quality.n), looks)))
        found = yield from self._clustered(quality.contracted(group, self.compiled), None)
        return numbered((yield from self._settled(quality, found[group])))

    def _fine(self, quality: Quality) -> Found:
        """Returns [n], groups of a few nodes, and single ones: what some looks at nodes come to."""
        looks = max(quality.n >> self._random.below(EARLIEST), 1)
        return numbered((yield from self._settled(quality, np.arange(quality.n), looks)))

    def _settled(self, quality: Quality, label: np.ndarray, looks: int = ALL) -> Found:
        """Returns [n], communities that no move of a node makes better, from `label` on; or what so many
        looks come to.
        """
        mover = Mover(quality, label, self._shuffled(quality.n), self.compiled)
        while mover.waiting and looks:
            while not self._left:
                yield
            made = mover.run(min(self._left, looks))
            looks -= made
            self._left -= made
            self.steps += made
        return mover.label

    # ---- drawn ---------------------------------------------------------------------------------------------

    def _shuffled(self, count: int) -> np.ndarray:
        """[count] int64, numbers in a drawn order."""
        return self._draws.permutation(count)

    def _region(self) -> np.ndarray:
        """[k] nodes, ascending: communities around a drawn node, of which each is next to one before it."""
        quality, n = self.quality, self.quality.n
        doublings = max(n // SMALLEST, 1).bit_length()
        wanted = min(SMALLEST << self._random.below(doublings), n)
        if self._members is None:
            order = np.argsort(self._label, kind="stable")
            self._members = order, np.cumsum(np.bincount(self._label))
        order, ends = self._members
        taken, region, waiting = np.zeros(len(ends), dtype=bool), [], [self._random.below(n)]
        count = 0
        while waiting and count < wanted:
            label = int(self._label[waiting.pop(0)])
            if taken[label]:
                continue
            taken[label] = True
            nodes = order[(ends[label - 1] if label else 0) : ends[label]]
            region.append(nodes)
            count += len(nodes)
            near = quality.indices[quality.entries(nodes)]
            near = near[~taken[self._label[near]]]
            waiting += [int(near[self._random.below(len(near))]) for _ in range(min(len(near), TRIED))]
        return np.sort(np.concatenate(region))
