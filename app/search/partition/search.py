"""Search for balanced partitions: lineages that are taken apart and put together again, and meet each other.

A lineage begins with a partition from nothing. Its graph is made coarser within its blocks, in another way
each time, and refined again; with a partition from elsewhere, within what both agree on. Neither is ever
worse.

Source   Sanders and Schulz, Distributed evolutionary graph partitioning, ALENEX 2012
Differs  instead of a population, lineages of one age meet, like the digits of a counter
"""

from collections.abc import Generator

import numpy as np

from app.blocks.multilevel import Course, Multilevel
from app.graphs.balance import Balance
from app.graphs.contracted import overlay
from app.rng import SplitMix, stream
from app.toolbox import Search

PATIENCE = 3  # tries without a better partition end a lineage, for each of its ages
LEAST_MEETING = 1 << 18  # steps between two meetings of several searches, or 64 for each node


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
        self._ways = Multilevel(stream(seed, "partition"), SplitMix(seed), compiled)
        self._quick = Multilevel(stream(seed, "partition", 1), SplitMix(seed), compiled, quick=True)
        self._block = self._best = np.array(start, dtype=np.int32)
        self._cut = self.best = balance.cut(start)
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
        """Lineages: each is improved until that has long failed; two of one age make an older one."""
        waiting: list[tuple[int, np.ndarray]] = []  # ages and partitions
        age = 0
        if self._rough:
            made = yield from self._charged(self._quick.either(self.balance))
            if not self.balance.over(made) and self.balance.cut(made) < self._cut:
                self._take(made)
        while True:
            yield from self._lineage(age)
            if waiting and waiting[-1][0] == age:
                yield from self._met(waiting.pop()[1])
                age += 1
                continue
            waiting.append((age, self._block))
            age, made = 0, (yield from self._charged(self._ways.fresh(self.balance)))
            if self.balance.over(made):
                age, made = waiting.pop()  # it found no partition: the last one goes on
            self._block, self._cut = made, self.balance.cut(made)
            self._take(made)

    def _lineage(self, age: int) -> Generator[None, None, None]:
        """Better and better, until nothing has been for a time."""
        failed = 0
        while failed < PATIENCE * (1 + age):
            before = self._cut
            while self._guests:
                yield from self._met(self._guests.pop(0))
            self._take((yield from self._charged(self._ways.better(self.balance, self._block))))
            failed = failed + 1 if self._cut == before else 0

    def _met(self, other: np.ndarray) -> Generator[None, None, None]:
        """The lineage and another partition: the better one, made better of what both agree on."""
        own, cut = self._block, self.balance.cut(other)
        if cut < self._cut:
            self._block, self._cut = other, cut
        within = overlay(own, other)
        self._take((yield from self._charged(self._ways.better(self.balance, self._block, within))))

    def _take(self, block: np.ndarray) -> None:
        """Go on from blocks, which are not worse."""
        self._block, self._cut = block, self.balance.cut(block)
        if self._cut < self.best:
            self.best, self._best, self.found_at = self._cut, block, self.steps
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
