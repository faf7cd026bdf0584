"""Search for balanced partitions: a population, whose members are combined.

A member begins with a partition from nothing. Two are combined in that the graph is made coarser within what
both agree on, so that nothing that either cuts is lost, and refined again from the better one on: what comes
of it is not worse than either, and takes the place of the member most like it among those that are not
better. By turns that is done quickly, and with flows.

Source   Sanders and Schulz, Distributed evolutionary graph partitioning, ALENEX 2012 (KaFFPaE)
Differs  the first members are made quickly, each is combined with the best one at once; later ones with care
"""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from app.blocks.multilevel import Course, Multilevel
from app.graphs.balance import Balance
from app.graphs.contracted import overlay
from app.rng import SplitMix, stream
from app.toolbox import Search

TURNS, WORTH = 2, 0.999  # in which a member is made better alone; of a cut, that is left for more of them
RENEWED = 4  # one of so many turns makes a member from nothing,
MOST = 12  # in the place of the worst where there are so many
LEAST_MEETING = 1 << 18  # steps between two meetings of several searches, or 64 for each node


@dataclass(frozen=True, eq=False)
class Member:
    """A partition.

    block    [n] int32     cut   what it cuts
    between  [nnz] bool, the entries of edges between blocks
    flowed   whether flows have made nothing better of it
    """

    block: np.ndarray
    cut: int
    between: np.ndarray
    flowed: bool

    def apart(self, other: "Member") -> int:
        """How many entries one of both cuts."""
        return int(np.count_nonzero(self.between != other.between))


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
        self._careful = Multilevel(stream(seed, "partition"), SplitMix(seed), compiled)
        self._quick = Multilevel(stream(seed, "partition", 1), SplitMix(seed), compiled, quick=True)
        self._ways = self._quick, self._careful
        self._draws = stream(seed, "partition", 2)
        self._row = balance.rows.row_of()
        self._members = [self._member(np.array(start, dtype=np.int32), False)]
        self._best = self._members[0]
        self.best = self._best.cut
        self.done = self.best == 0
        self.steps = self.found_at = self._left = 0
        self._guests: list[np.ndarray] = []
        self._course = self._forever()

    @property
    def meeting_steps(self) -> int:
        """Steps between two meetings of several searches."""
        return max(LEAST_MEETING, 64 * self.balance.rows.n)

    def news(self) -> np.ndarray:
        """[1, n] int32, the best partition."""
        return self._best.block[None, :]

    def meet(self, others: list[np.ndarray]) -> None:
        """The best partitions of the other searches."""
        self._guests = [each[0].astype(np.int32) for each in others]

    def hear(self, solution: np.ndarray) -> None:
        """A partition from elsewhere, to go on from where it is better."""
        if self.balance.cut(solution) < self.best:
            self._guests.append(solution.astype(np.int32))

    def solution(self) -> np.ndarray:
        """[n] int64, the best partition, a copy."""
        return self._best.block.astype(np.int64)

    def run(self, steps: int) -> None:
        """Look at so many more nodes, or some more where they are moved together."""
        self._left += steps
        while self._left > 0 and not self.done:
            next(self._course)

    # ---- the course ----------------------------------------------------------------------------------------

    def _forever(self) -> Generator[None, None, None]:
        """Some members from nothing; then members are combined, and now and then there is a new one."""
        if self._rough:
            made = yield from self._charged(self._quick.either(self.balance))
            if not self.balance.over(made):
                self._enter(made, False)
        yield from self._settled(self._best)
        yield from self._fresh(self._quick)
        renewed = 0
        while True:
            for ways in self._ways:
                while self._guests:
                    guest = self._member(self._guests.pop(0), False)
                    yield from self._combined(self._careful, self._best, guest)
                if self._draws.integers(RENEWED) == 0:
                    renewed += 1
                    yield from self._fresh(self._ways[renewed % 2])
                    continue
                one, other = self._draws.integers(len(self._members), size=2).tolist()  # it may be the same
                yield from self._combined(ways, self._members[one], self._members[other])

    def _fresh(self, ways: Multilevel) -> Generator[None, None, None]:
        """A member from nothing."""
        made = yield from self._charged(ways.fresh(self.balance))
        if not self.balance.over(made):
            yield from self._settled(self._enter(made, ways is self._careful))

    def _settled(self, member: Member) -> Generator[None, None, None]:
        """A member is made coarser and refined again while that makes much of it."""
        before = None
        while before is None or member.cut < WORTH * before:
            before = member.cut
            for _ in range(TURNS):
                for ways in self._ways:
                    member = yield from self._combined(ways, member, member)

    def _combined(self, ways: Multilevel, one: Member, other: Member) -> Generator[None, None, Member]:
        """What two members come to takes the place of the one most like it, of those that are not better."""
        first, second = (one, other) if one.cut <= other.cut else (other, one)
        within = overlay(first.block, second.block)
        course = ways.better(self.balance, first.block, within, first.flowed)
        made = yield from self._charged(course)
        child = self._member(made, ways is self._careful or (first.flowed and (made == first.block).all()))
        places = [i for i, each in enumerate(self._members) if each.cut >= child.cut]
        if places:
            place = min(places, key=lambda i: (child.apart(self._members[i]), i))
            self._members[place] = child
        self._look(child)
        return child

    def _enter(self, block: np.ndarray, flowed: bool) -> Member:
        """A partition from nothing becomes a member."""
        member = self._member(block, flowed)
        if len(self._members) < MOST:
            self._members.append(member)
        else:
            worst = max(range(MOST), key=lambda i: (self._members[i].cut, i))
            self._members[worst] = member
        self._look(member)
        return member

    def _member(self, block: np.ndarray, flowed: bool) -> Member:
        between = block[self._row] != block[self.balance.rows.indices]
        cut = int(self.balance.rows.weights[between].sum()) // 2
        return Member(block, cut, between, flowed)

    def _look(self, member: Member) -> None:
        """Whether it is the best one."""
        if member.cut < self.best:
            self.best, self._best, self.found_at = member.cut, member, self.steps
            self.done = self.best == 0

    def _charged(self, course: Course) -> Generator[None, None, np.ndarray]:
        """What a course returns; steps are counted, and it waits where there are none left, or no need."""
        while True:
            while self._left <= 0 or self.done:
                yield
            self._careful.looks = self._quick.looks = self._left
            try:
                looked = next(course)
            except StopIteration as end:
                return end.value
            self.steps += looked
            self._left -= looked
