"""Workload: what one rank works on in the rounds of a search, and how it divides its time."""

import math
import time
from collections.abc import Callable

import numpy as np

from app.solver.budget import Budget
from app.solver.exact import EAGER_SHARE, Exact
from app.solver.progress import Progress
from app.toolbox import ALWAYS, NEAR, Bounds, Search, Toolbox

SHORTEST, LONGEST = 0.005, 0.5  # s, of a round
GROWTH = 0.25  # a round lasts this share of the time spent so far
GROWTH_OF_SLICE = 4  # times the steps of the round before, at most
FORGOTTEN = 0.8  # what a round leaves of the dearest steps before it
RAMP = 1.0  # s that searches have worked: their slices are as long as a round then
BOUND_SHARE = 0.25  # of a search's time that bounds get on the same rank
HURRIED_SHARE = 0.05  # the same under a short time limit, and for near bounds that have long stood still
HURRIED_MARGIN = 1.5  # of an estimate of what one call takes, that a short time limit must have room for
LEADING_SHARE = 2.0  # the same for bounds that lead to the best solutions
CLOSING_SHARE = 4.0  # the same for bounds that may prove the best optimal, once searches have settled,
GAINING_SHARE = 1.0  # the same for bounds that may get much better, once searches have settled,
SETTLED = 2  # which they have after so many times the steps to their best
TREE_SHARE = 0.4  # of the time of bounds, for the exact search that all ranks share
STALE_SHARE = 0.1  # of a time limit: bounds that have worked so long without a better one stand still
FIRST_BOUND, FIRST_SHARE = 0.02, 0.05  # s, and the share of a time limit, for the bounds of the first round
CHECK_SHARE = 0.25  # of a time limit: a check of the bound that takes longer is left out
OVERRUN_SHARE = 0.03  # of a time limit: a step of a search that would end later by more is not begun
SPARE = 0.08  # of a time limit that searches which plan their course are not told of
TINY = 1e-4  # s: a call of the bounds that makes one step


class Workload:
    """The searches of a rank, its bounds and its part of the exact search. Nothing here talks to other ranks.

    mine     the searches, by their numbers     bounds   or None, on ranks that have none
    steps    that every search of all ranks has made     made   of them in this round
    more     the bounds have more to do
    """

    def __init__(
        self, toolbox: Toolbox, budget: Budget, progress: Progress, mine: dict[int, Search],
        bounds: Bounds | None, exact: Exact,
    ) -> None:  # fmt: skip
        self.toolbox, self.budget, self.progress = toolbox, budget, progress
        self.mine, self.bounds, self.exact = mine, bounds, exact
        self.more = bounds is not None
        self.steps = self.made = 0
        self.last = 0.0  # s, of the searches in this round
        self.dearest = 0.0  # s, of a step in the rounds of late
        self.longest = LONGEST  # s, of a turn of a rank without a search
        self._searched = 0.0  # s, of searches, as rank 0 tells
        self.search_seconds = self.bound_seconds = self.overrun = 0.0
        self.fruitless = 0.0  # s that bounds have worked since the last better one

    # ---- a round -------------------------------------------------------------------------------------------

    def search(self, steps: int) -> None:
        """So many steps of every search."""
        begun = time.perf_counter()
        for search in self.mine.values():
            if steps and not search.done:
                search.run(steps)
        self.steps += steps
        self.last = time.perf_counter() - begun
        self.search_seconds += self.last if steps else 0.0
        self.made = steps

    def bound(self, news: Callable[[], np.ndarray | None]) -> None:
        """The bounds' part, where the round has time for it.

        news   tells a core solution that is better than those they have seen, or None
        """
        seconds = self._bound_time() if self.more else 0.0
        if seconds <= 0:
            return
        begun, before = time.perf_counter(), self.bounds.value
        self.more = self.bounds.improve(seconds, self.toolbox.core_value(self.progress.best), news())
        spent = time.perf_counter() - begun
        if self.bound_seconds:  # the first call also sets things up
            self.overrun = max(self.overrun, spent - seconds)
        self.bound_seconds += spent
        self.fruitless = self.fruitless + spent if self.bounds.value == before else 0.0

    def search_exactly(self) -> None:
        """The part of the exact search."""
        if self.exact.more and self.exact.begun and (seconds := self._exact_time()) > 0:
            self.exact.run(seconds)

    def first_bound(self) -> None:
        """After rounds that had no time for a bound: the one that time was kept for."""
        if self.more and not self.bounds.method and self._last_seconds():
            self.more = self.bounds.improve(TINY, self.toolbox.core_value(self.progress.best))

    # ---- how long ------------------------------------------------------------------------------------------

    def target(self) -> float:
        """How long a round should last, s."""
        target = min(max(SHORTEST, GROWTH * self.progress.elapsed()), LONGEST)
        return min(target, max(self.budget.left(), 0.0))

    def wait(self, last: float) -> None:
        """While slices grow, let no turn of a rank without a search last longer than the next one will.

        last   seconds that searches took in the round that has ended; infinite where they are done
        """
        self._searched += last
        grown = self._searched >= RAMP
        self.longest = LONGEST if grown else max(SHORTEST, GROWTH_OF_SLICE * last)

    @property
    def last_of_searches(self) -> float:
        """What `wait` is to be told of this rank's searches."""
        return math.inf if all(search.done for search in self.mine.values()) else self.last

    def next_slice(self, before: int) -> int:
        """Steps that the searches make in the time of a round; `before`: in the round before.

        0   there is no time for one, and none will come
        """
        if not before:
            return 0
        if not self.made or not self.mine:
            return max(before, self.toolbox.first_steps)
        each = self.last / (self.made * len(self.mine)) + 1e-9
        if self._too_late(each):
            return 0
        target = self.target() * (1 - EAGER_SHARE if self.exact.eager else 1)
        even = min(search.even_steps for search in self.mine.values())
        steps = min(int(target / (each * len(self.mine))), GROWTH_OF_SLICE * before, even, 1 << 40)
        return max(1, min(steps, self._steps_in_time(each)))

    def _too_late(self, each: float) -> bool:
        """Whether a step of each search, as long as one of the last round, would end after a time limit; that
        of the first round tells nothing, it also sets things up.
        """
        known = self.steps > self.toolbox.first_steps
        latest = self.budget.left() + OVERRUN_SHARE * self.budget.seconds
        return known and each * len(self.mine) > latest

    def _steps_in_time(self, each: float) -> int:
        """Steps that a time limit has room for, were they as dear as the dearest of late.

        each   seconds of a step of the round that has ended; the first one also sets things up
        """
        if not self.budget.seconds:
            return ALWAYS
        if self.steps > self.toolbox.first_steps:
            self.dearest = max(each, FORGOTTEN * self.dearest)
        return int(max(self.budget.left(), 0.0) / (max(each, self.dearest) * len(self.mine)))

    def steps_to_come(self) -> int:
        """Steps of each search that a time limit still allows, as long as the last ones took; 0: unknown.

        Bounds get their share of the time.
        """
        if not (self.budget.seconds and self.made) or all(search.done for search in self.mine.values()):
            return 0
        each = (self.last + 1e-9) / self.made
        share = 1 + (self.bound_share() if self.bounds is not None and self.more else 0)
        left = self.budget.left() - SPARE * self.budget.seconds
        return min(int(max(left, 0.0) / (each * share)), 1 << 62)

    def room(self, spent: float) -> float:
        """Seconds that bounds or an exact search that have worked so long may still use."""
        if self.budget.seconds:
            return self.budget.left()
        return max(self.budget.bound_seconds, self.search_seconds) - spent

    def reserve(self) -> float:
        """Seconds to keep for the check of the bound, and for the bound itself while there is none."""
        seconds = self.bounds.check_seconds if self.may_check() else 0.0
        return seconds if self.bounds.method or not self.more else seconds + self._last_seconds()

    def may_check(self) -> bool:
        """Whether the check of the bound fits a time limit."""
        limit = self.budget.seconds
        return not limit or self.bounds.check_seconds <= CHECK_SHARE * limit

    def may_bound(self) -> bool:
        """Whether a call of the bounds fits; the first one, without a time limit, always does."""
        if not (self.budget.seconds or self.bound_seconds):
            return True
        return self._bound_room() > self._margin() * self._least()

    def _margin(self) -> float:
        """What estimates are multiplied by where a time limit must have room for a call."""
        return HURRIED_MARGIN if self.budget.hurried else 1.0

    # ---- the exact search ----------------------------------------------------------------------------------

    def _exact_time(self) -> float:
        """Seconds for the exact search now; 0: none."""
        if self.made and self.mine and self.exact.eager:
            wanted = self.last * EAGER_SHARE / (1 - EAGER_SHARE)
        elif self.made and self.mine:
            wanted = self._tree_share() * self.search_seconds - self.exact.seconds
            if self.budget.seconds and wanted < self.exact.tree.least_seconds:  # it would overrun
                return 0.0
        else:
            wanted = self._turn() * (self._exact_share() if self.more else 1)
        room = min(self.exact.room, self.budget.left())
        return min(wanted, room) if self._margin() * self.exact.tree.least_seconds <= room else 0.0

    def _tree_share(self) -> float:
        """What the exact search gets of the time of the searches of this rank."""
        if self.exact.tree.closing and self._settled():
            return CLOSING_SHARE
        alone = self.bounds is not None and not self.more
        return self.bound_share() * (1 if alone else TREE_SHARE)

    def _exact_share(self) -> float:
        """What the exact search gets of a rank that it has for itself and the bounds."""
        if not (self.exact.more and self.exact.begun):
            return 0.0
        return EAGER_SHARE if self.exact.eager else TREE_SHARE

    def _turn(self) -> float:
        """How long a rank without a search works in a round, s."""
        return min(self.target(), self.longest) if self.made else LONGEST

    # ---- the bounds ----------------------------------------------------------------------------------------

    def bound_share(self) -> float:
        """What bounds get of the time of the searches of this rank."""
        gap = self.progress.gap()
        if self.bounds is not None and (share := self._promised_share(gap)):
            return share
        near = gap is not None and gap <= NEAR
        stale = self.budget.seconds and self.fruitless > STALE_SHARE * self.budget.seconds
        hurried = self.budget.hurried or self.exact.eager or (near and stale)
        return HURRIED_SHARE if hurried else BOUND_SHARE

    def _promised_share(self, gap: float | None) -> float:
        """The same for what they may come to; 0: nothing in particular."""
        bounds = self.bounds
        closing = bounds.closing and gap is not None and gap <= bounds.near
        if closing and self._settled():
            return CLOSING_SHARE
        if bounds.leads:
            return LEADING_SHARE
        if closing:
            return HURRIED_SHARE if self.budget.hurried else BOUND_SHARE
        early = bounds.early and not self.budget.hurried
        return GAINING_SHARE if bounds.gaining and (early or self._settled()) else 0.0

    def _settled(self) -> bool:
        """Whether the searches of this rank have long found nothing better."""
        return self.steps > SETTLED * max((search.found_at for search in self.mine.values()), default=0)

    def _bound_time(self) -> float:
        """Seconds for the bounds now; 0: none."""
        if not self.may_bound():
            return 0.0
        least, share = self._least(), 1.0
        closing = self.bounds.closing
        if not self.bound_seconds and least <= FIRST_SHARE * self.budget.left():
            return min(FIRST_BOUND, FIRST_SHARE * self.budget.left())
        if not self.made:  # no search is left to wait for
            wanted = max(LONGEST * (1 - self._exact_share()), least)
        elif self.mine:
            share = self.bound_share() * (1 - TREE_SHARE * self.exact.more)
            wanted = share * self.search_seconds - self.bound_seconds
        elif (
            2 * least > LONGEST and not closing
        ):  # no call of a round's time would do; the other ranks wait for this one
            wanted = self.bound_share() * self.progress.elapsed() - self.bound_seconds
        else:
            wanted = self._turn() * (1 - self._exact_share())
        patient = self.mine or not closing
        if self.made and patient and wanted < (2 if self.bound_seconds else 1) * least:  # mostly overrun
            return 0.0
        return min(wanted, self._bound_room() - least, max(LONGEST * max(share, 1.0), least))

    def _bound_room(self) -> float:
        """Seconds that bounds may still use."""
        return self.room(self.bound_seconds)

    def _least(self) -> float:
        """Seconds that a call of the bounds may take beyond what it is given."""
        return max(self.overrun, self.bounds.least_seconds)

    def _last_seconds(self) -> float:
        """What a first bound after the rounds would take, where that fits a time limit; else 0."""
        least = TINY + self.bounds.least_seconds
        return least if least <= CHECK_SHARE * self.budget.seconds else 0.0
