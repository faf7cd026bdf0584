"""Search for balanced partitions: generations of a few, which are taken apart and put together again.

A generation begins with quick partitions from nothing, each refined once. Its graph is made coarser within
what two of them agree on, in another way each time, and the better one is refined again, which is never
worse; what comes of it takes the place of the one most like it of those that are not better. Where that has
long failed the best one waits for that of a generation of its age, and both make an older one.

Source   Sanders and Schulz, Distributed evolutionary graph partitioning, ALENEX 2012
Differs  instead of one population generations, whose best meet like the digits of a counter; partitions from
         nothing are as quick as may be, and more of them
"""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from app.blocks.multilevel import Course, Multilevel
from app.graphs.balance import Balance
from app.graphs.contracted import overlay
from app.rng import SplitMix, stream
from app.toolbox import Search

MEMBERS = 6  # of a generation
SHARE = 0.4  # of the steps of a generation, for its partitions from nothing, while there are fewer
PROMISE = 400  # the last way down gained one part in so many: the next one will, too
PATIENCE = 8  # children in a row that are not better than what they would take the place of end a generation
OTHER = 3  # of so many partitions from nothing one is made by the worse kind of groups
ALONE = 8  # of so many children one has a single parent
MATES = 8  # tries without a better partition end the meeting of two generations
MOST_PATIENT = 1 << 22  # entries of a graph without hasty ways
WORTH = 0.999  # of a cut: another hasty way is worth it
LEAST_MEETING = 1 << 18  # steps between two meetings of several searches, or 64 for each node


@dataclass(frozen=True, eq=False)
class _Member:
    """A partition.

    cut, block   what it cuts; [n] int32
    apart        [nnz], which entries of the rows it cuts
    gained       by how much it is better than what it was made of
    """

    cut: int
    block: np.ndarray
    apart: np.ndarray
    gained: int

    @property
    def promises(self) -> bool:
        """Whether it is worth more than others to go on with."""
        return self.gained * PROMISE > self.cut


class PartitionSearch(Search):
    """A partition that gets better; a function of the question, start, seed, what it hears, and steps made.

    start   [n] blocks, none too heavy; rough: it may be far from what one way down and up comes to
    steps   nodes looked at so far
    best    what the best partition cuts, found_at the step it was found in
    """

    hears = True
    done = False

    def __init__(
        self, balance: Balance, start: np.ndarray, seed: int, compiled: bool = True, rough: bool = False
    ) -> None:
        self.balance, self._rough = balance, rough
        self._draws = SplitMix(~seed & (1 << 64) - 1)
        self._ways = Multilevel(stream(seed, "partition"), SplitMix(seed), compiled)
        self._quick = Multilevel(stream(seed, "partition", 1), SplitMix(seed), compiled, quick=True)
        self._best = np.array(start, dtype=np.int32)
        self.best = balance.cut(start)
        self.done = self.best == 0
        self.steps = self.found_at = self._left = 0
        self._members: list[_Member] = []
        self._made: dict[bool, list[int]] = {True: [], False: []}  # cuts of starts, by their kind of groups
        self._failed = 0  # children in a row that were not better than what they would take the place of
        self._of_starts = 0  # steps of partitions from nothing, in this generation
        self._guests: list[np.ndarray] = []
        self._course = self._forever()

    @property
    def meeting_steps(self) -> int:
        """Steps between two meetings of several searches."""
        return max(LEAST_MEETING, 64 * self.balance.rows.n)

    def news(self) -> np.ndarray:
        """[1, n] int32, the best partition."""
        return self._best[None, :]

    def meet(self, others: list[np.ndarray]) -> None:
        """The best partitions of the other searches."""
        self._guests = [each[0].astype(np.int32) for each in others]

    def hear(self, solution: np.ndarray) -> None:
        """A partition from elsewhere, to go on from where it is better."""
        if self.balance.cut(solution) < self.best:
            self._guests.append(solution.astype(np.int32))

    def solution(self) -> np.ndarray:
        """[n] int64, the best partition, a copy."""
        return self._best.astype(np.int64)

    def run(self, steps: int) -> None:
        """Look at so many more nodes, or some more where they are moved together."""
        self._left += steps
        while self._left > 0 and not self.done:
            next(self._course)

    # ---- the course ----------------------------------------------------------------------------------------

    def _forever(self) -> Generator[None, None, None]:
        """Generations; the best of two of one age make an older one."""
        waiting: list[tuple[int, _Member]] = []  # ages and partitions
        if self._rough:
            yield from self._hastened()
        first = self._best
        while True:
            yield from self._generation(first)
            age, best, first = 0, self._fittest(), None
            while waiting and waiting[-1][0] == age:
                best = yield from self._joined(best, waiting.pop()[1])
                age += 1
            waiting.append((age, best))

    def _hastened(self) -> Generator[None, None, None]:
        """Partitions from nothing by both kinds of groups, each taken as it is while it becomes better: on a
        large graph a time limit may end before the first one does. On very large ones there are hasty ways
        down and up before, as long as they help.
        """
        self._quick.whole = self.balance
        if len(self.balance.rows.indices) > MOST_PATIENT:
            self._quick.hasty = True
            self._take((yield from self._charged(self._quick.fresh(self.balance, True))))
            before = 0
            while self.best < WORTH * before or not before:
                before = self.best
                self._take((yield from self._charged(self._quick.better(self.balance, self._best))))
            self._quick.hasty = False
        for _ in range(2):
            self._take((yield from self._charged(self._quick.fresh(self.balance))))
        self._quick.whole = None

    def _generation(self, first: np.ndarray | None) -> Generator[None, None, None]:
        """A few partitions, until their children have long been no better.

        first   [n] blocks of one of them; None: all are from nothing
        """
        self._members, self._failed = [], 0
        begun, self._of_starts = self.steps, 0
        while len(self._members) < MEMBERS or self._failed < PATIENCE:
            while self._guests and self._members:
                yield from self._welcome(self._guests.pop(0))
            if len(self._members) < MEMBERS and self._is_time(self.steps - begun):
                yield from self._start(first)
                first, self._failed = None, 0
            else:
                self._enter((yield from self._child()))

    def _is_time(self, made: int) -> bool:
        """Whether another member is made, after so many steps of a generation: where none promises more, and
        starts are short of their share, or nothing else helps.
        """
        if any(each.promises for each in self._members):
            return False
        stuck = self._failed >= (PATIENCE if len(self._members) > 1 else 1)
        return not self._members or stuck or self._of_starts <= SHARE * made

    def _start(self, block: np.ndarray | None) -> Generator[None, None, None]:
        """One more member, from blocks [n] or from nothing."""
        if block is None:
            before, spreads = self.steps, self._kind()
            block = yield from self._charged(self._quick.fresh(self.balance, spreads))
            cut = self.balance.cut(block)
            if self.balance.over(block):  # no partition was found: as bad as one that cuts everything
                block, cut = self._best, int(self.balance.rows.weights.sum()) // 2
            self._made[spreads].append(cut)
            self._of_starts += self.steps - before
        self._take(block)
        self._members.append((yield from self._better(block)))

    def _kind(self) -> bool:
        """Whether the next start is of groups by label propagation: mostly of the kind that has cut less."""
        totals = {kind: (sum(cuts), len(cuts)) for kind, cuts in self._made.items()}
        (one, ones), (other, others) = totals[True], totals[False]
        if not ones or not others:
            return not ones
        spreads = one * others <= other * ones
        return spreads != ((ones + others) % OTHER == 0)

    def _welcome(self, guest: np.ndarray) -> Generator[None, None, None]:
        """A partition [n] from elsewhere, and what it makes with the best member."""
        self._take(guest)
        own, other = self._fittest(), self._member(guest, 0)
        self._enter(other)
        self._enter((yield from self._mated(own, other)))

    def _child(self) -> Generator[None, None, _Member]:
        """What one or two members make: first one that gained most, where it promises more; then better ones
        more often.
        """
        count, draw = len(self._members), self._draws.below
        one = max(self._members, key=lambda each: each.gained)
        if not one.promises:
            one = min(self._members[draw(count)], self._members[draw(count)], key=lambda each: each.cut)
        others = [each for each in self._members if each is not one]
        if not others or not draw(ALONE):
            return (yield from self._better(one.block))
        other = others[draw(len(others))]
        if not one.promises:
            return (yield from self._mated(one, other))
        return (yield from self._better(one.block, overlay(one.block, other.block)))

    def _joined(self, one: _Member, other: _Member) -> Generator[None, None, _Member]:
        """The better one of two and its children with the other one, until that has long not helped."""
        one, other = sorted((one, other), key=lambda each: each.cut)
        failed = 0
        while failed < MATES:
            child = yield from self._mated(one, other)
            failed = 0 if child.cut < one.cut else failed + 1
            one = child
        return one

    def _mated(self, one: _Member, other: _Member) -> Generator[None, None, _Member]:
        """The better one of two, made better of what both agree on."""
        better = min(one, other, key=lambda each: each.cut)
        return (yield from self._better(better.block, overlay(one.block, other.block)))

    def _better(self, block: np.ndarray, within: np.ndarray | None = None) -> Generator[None, None, _Member]:
        """One way down within blocks [n], and up again."""
        made = yield from self._charged(self._ways.better(self.balance, block, within))
        self._take(made)
        return self._member(made, self.balance.cut(block))

    def _enter(self, child: _Member) -> None:
        """A child takes the place of the member most like it of those that are not better."""
        places = [i for i, each in enumerate(self._members) if each.cut >= child.cut]
        if not places:
            self._failed += 1
            return
        unlike = {i: int(np.count_nonzero(self._members[i].apart != child.apart)) for i in places}
        place = min(places, key=lambda i: (unlike[i], -self._members[i].cut))
        self._failed = 0 if child.cut < self._members[place].cut else self._failed + 1
        self._members[place] = child

    def _fittest(self) -> _Member:
        """The best member, the first of equal ones."""
        return min(self._members, key=lambda each: each.cut)

    def _member(self, block: np.ndarray, before: int) -> _Member:
        """Blocks [n], made of some that cut `before`."""
        rows = self.balance.rows
        apart = block[rows.row_of()] != block[rows.indices]
        cut = int(rows.weights[apart].sum()) // 2
        return _Member(cut, block, apart, before - cut)

    def _take(self, block: np.ndarray, cut: int = -1) -> None:
        """Keep blocks [n] that cut less than all before; cut: what they do, where that is known."""
        cut = self.balance.cut(block) if cut < 0 else cut
        if cut < self.best and not self.balance.over(block):
            self.best, self._best, self.found_at = cut, block, self.steps
            self.done = self.best == 0

    def _charged(self, course: Course) -> Generator[None, None, np.ndarray]:
        """What a course returns; steps are counted, and it waits where there are none left, or no need."""
        while True:
            while self._left <= 0 or self.done:
                yield
            self._ways.looks = self._quick.looks = self._left
            try:
                looked = next(course)
            except StopIteration as end:
                return end.value
            self.steps += looked
            self._left -= looked
            if self._quick.so_far is not None:
                self._take(self._quick.so_far, self._quick.cut_so_far)
                self._quick.so_far = None
