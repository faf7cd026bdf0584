"""Rounds: local searches from several seeds and the bounds, advanced together on all ranks.

Search i belongs to rank i modulo the number of ranks; all searches make the same number of steps in a round,
so what they find depends on their number and on the steps, never on the ranks that share them or on the
clock that cuts the rounds. Bounds have a rank of their own where there are more ranks than searches. An exact
search, where the core has one, is shared by all ranks; most of those without a search have no other work.
"""

import time
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np

from app.checkpoint.checkpoints import NOTHING_KEPT, Keeper
from app.checkpoint.store import State
from app.comm.group import Group
from app.comm.guard import raise_together
from app.search.toolbox import Bounds, Search, Toolbox
from app.solver.budget import Budget
from app.solver.exact import EAGER_SHARE, Exact
from app.solver.meetings import Meetings
from app.solver.progress import EXACT, Progress

FIRST_SLICE = 16  # steps of the first round, before anything was timed
SHORTEST, LONGEST = 0.005, 0.5  # s, of a round
GROWTH = 0.25  # a round lasts this share of the time spent so far
BOUND_SHARE = 0.25  # of a search's time that bounds get on the same rank
HURRIED_SHARE = 0.05  # the same under a short time limit, and for near bounds that have long stood still
LEADING_SHARE = 2.0  # the same for bounds that lead to the best solutions
CLOSING_SHARE = 4.0  # the same for bounds that may prove the best optimal, once searches have settled,
SETTLED = 2  # which they have after so many times the steps to their best
TREE_SHARE = 0.4  # of the time of bounds, for the exact search that all ranks share
NEAR = 0.01  # gap of a near bound
STALE_SHARE = 0.1  # of a time limit: bounds that have worked so long without a better one stand still
FIRST_BOUND, FIRST_SHARE = 0.02, 0.05  # s, and the share of a time limit, for the bounds of the first round
CHECK_SHARE = 0.25  # of a time limit: a check of the bound that takes longer is left out
TINY = 1e-4  # s: a call of the bounds that makes one step
MICRO = 1e6


@dataclass
class Outcome:
    """What the rounds found, the same on all ranks.

    solution    the best core solution, or None where no search beat the start
    steps       of every search
    search      the local search that found it; where an exact search did, the best of them
    """

    solution: np.ndarray | None
    steps: int
    search: int


class Rounds:
    """All searches of one instance, those of this rank at hand.

    starts    core solutions, one for each search; the same on all ranks
    seeds     one for each search
    """

    def __init__(
        self, group: Group, toolbox: Toolbox, starts: list[np.ndarray], seeds: list[int], budget: Budget,
        progress: Progress, with_bounds: bool, keeper: Keeper = NOTHING_KEPT,
    ) -> None:  # fmt: skip
        """keeper   where the search may be stopped; under a time limit its best solution is kept"""
        self.keeper, self.start = keeper, starts[0]
        self.group, self.toolbox, self.budget, self.progress = group, toolbox, budget, progress
        self.count = len(seeds)
        self.bound_rank = self.count % group.size
        self.mine: dict[int, Search] = {}
        self.bounds: Bounds | None = None
        self.more = False
        self.told: int | None = None
        self.bound_seconds = self.search_seconds = self.overrun = 0.0
        self.proved_by = -1, 0  # the rank whose bounds have found the best solution; the value of that
        self.offered: tuple[np.ndarray | None, int] = None, 0  # a solution of the bounds here, and its value
        self.taken: np.ndarray | None = None  # the last one that was better than all
        self.fruitless = 0.0  # s that bounds have worked since the last better one
        self.steps, self.slice = 0, FIRST_SLICE
        with raise_together(group, "starting the search"):
            for i in range(group.rank, self.count, group.size):
                search = toolbox.search(seeds[i], starts[i])
                if search is not None:
                    self.mine[i] = search
            make = getattr(toolbox, "tree", None) if with_bounds else None
            tree = None if make is None else make(group.rank, group.size)
        self.exact = Exact(group, toolbox, tree, budget, progress, self.count)
        with raise_together(group, "bounding"):
            if with_bounds and group.rank == self.bound_rank:
                self.bounds = toolbox.bounds()
                self.more = self.bounds is not None
                if self.more and budget.seconds:
                    self.bounds.expect(budget.seconds)
                if self.bounds is not None and not self.mine:  # the start is all this rank will see
                    self.bounds.improve(0.0, toolbox.core_value(progress.best), starts[0])
        self.searching = bool(group.max_integer(int(bool(self.mine))))
        self.follows = (
            with_bounds and self.bound_rank == self.count and getattr(toolbox, "bounds_follow", False)
        )
        self.heard: np.ndarray | None = None  # a solution for bounds on a rank without a search
        self.last_best = self.followed = None  # values of the round before, of the solution last told
        hears = any(hasattr(search, "hear") for search in self.mine.values())
        self.hears = bool(group.max_integer(int(hears)))
        self.by_clock = False  # whether bounds have told searches something
        self.meetings = Meetings(group, self.mine, self.count)

    def run(self) -> Outcome:
        """Rounds until the budget is spent or the best is proved optimal. Ranks: all call."""
        try:
            return self._run()
        finally:
            if hasattr(self.bounds, "close"):
                self.bounds.close()

    def _run(self) -> Outcome:
        found = np.zeros((self.count, 3), dtype=np.int64)
        for number in count():
            # Where steps decide, a stopped search begins anew and takes the same course.
            self.keeper.at(number, "search", partial(self._state, found) if self.budget.seconds else None)
            with raise_together(self.group, "searching"):
                self._search()
                self._bound()
                self._exact()
            if self.made:
                self.meetings.hold(self.steps)
            found, going = self._share()
            if self.follows and self.searching:
                self._tell_bounds(found)
            self._take_from_bounds()
            if self.exact.more:
                self.exact.share(self.steps, self._room(self.exact.spent))
            if self.progress.closed or not (going or self.exact.more):
                break
        if self.budget.seconds and not self.progress.closed:
            with raise_together(self.group, "bounding"):
                self._first_bound()
            found, _ = self._share()
        return self._finish(found)

    def _state(self, found: np.ndarray) -> State:
        """The best solution of the instance so far, and the seconds it took. Ranks: all call."""
        best = self.start
        if found.any():
            outcome = self._finish(found)
            best = self.start if outcome.solution is None else outcome.solution
        return State({"elapsed": self.budget.elapsed()}, {"solution": np.asarray(self.toolbox.lift(best))})

    # ---- one round ----------------------------------------------------------------------------------------

    def _search(self) -> None:
        """The slice of every search of this rank."""
        begun = time.perf_counter()
        most = min(self.budget.steps - self.steps, self.meetings.room(self.steps))
        steps = min(self.slice, most) if self.searching else 0
        for search in self.mine.values():
            if steps and not search.done:
                search.run(steps)
        self.steps += steps
        self.last = time.perf_counter() - begun
        self.search_seconds += self.last if steps else 0.0
        self.made = steps

    def _bound(self) -> None:
        """The bounds' share of the round."""
        if not self.more:
            return
        seconds = self._bound_time()
        if seconds <= 0:
            return
        begun, before = time.perf_counter(), self.bounds.value
        best = self.toolbox.core_value(self.progress.best)
        self.more = self.bounds.improve(seconds, best, self._news())
        spent = time.perf_counter() - begun
        if self.bound_seconds:  # the first call also sets things up
            self.overrun = max(self.overrun, spent - seconds)
        self.bound_seconds += spent
        self.fruitless = self.fruitless + spent if self.bounds.value == before else 0.0

    def _exact(self) -> None:
        """This rank's part of the exact search."""
        if self.exact.more and self.exact.begun and (seconds := self._exact_time()) > 0:
            self.exact.run(seconds)

    def _exact_time(self) -> float:
        """Seconds for the exact search now; 0: none."""
        if self.made and self.mine and self.exact.eager:
            wanted = self.last * EAGER_SHARE / (1 - EAGER_SHARE)
        elif self.made and self.mine:
            wanted = self._tree_share() * self.search_seconds - self.exact.seconds
        else:
            wanted = self._turn() * (self._exact_share() if self.more else 1)
        room = min(self.exact.room, self.budget.left())
        fits = getattr(self.exact.tree, "least_seconds", 0.0) <= room
        return min(wanted, room) if fits else 0.0

    def _tree_share(self) -> float:
        """What the exact search gets of the time of the searches of this rank."""
        if getattr(self.exact.tree, "closing", False) and self._settled():
            return CLOSING_SHARE
        alone = self.bounds is not None and not self.more
        return self._bound_share() * (1 if alone else TREE_SHARE)

    def _exact_share(self) -> float:
        """What the exact search gets of a rank that it has for itself and the bounds."""
        if not (self.exact.more and self.exact.begun):
            return 0.0
        return EAGER_SHARE if self.exact.eager else TREE_SHARE

    def _turn(self) -> float:
        """How long a rank without a search works in a round, s."""
        return self._target() if self.made else LONGEST

    def _first_bound(self) -> None:
        """Where the rounds had no time for a bound: the one that time was kept for."""
        if self.more and not self.bounds.method and self._last_seconds():
            self.more = self.bounds.improve(TINY, self.toolbox.core_value(self.progress.best))

    def _least(self) -> float:
        """Seconds that a call of the bounds may take beyond what it is given."""
        return max(self.overrun, self.bounds.least_seconds)

    def _last_seconds(self) -> float:
        """What a first bound after the rounds would take, where that fits a time limit; else 0."""
        least = TINY + self.bounds.least_seconds
        return least if least <= CHECK_SHARE * self.budget.seconds else 0.0

    def _reserve(self) -> float:
        """Seconds to keep for the check of the bound, and for the bound itself while there is none."""
        seconds = self.bounds.check_seconds if self._may_check() else 0.0
        return seconds if self.bounds.method or not self.more else seconds + self._last_seconds()

    def _news(self) -> np.ndarray | None:
        """A core solution of this rank that is better than those the bounds have seen."""
        values = {search.best: search for search in self.mine.values()}
        if not values:
            heard, self.heard = self.heard, None
            return heard
        value = min(values, key=lambda v: self._sign() * v)
        if self.told is not None and self._sign() * value >= self._sign() * self.told:
            return None
        self.told = value
        return values[value].solution()

    def _tell_bounds(self, found: np.ndarray) -> None:
        """Bring a best solution that has stood for a round to the rank of the bounds. Ranks: all call."""
        winner = self._winner(found)
        best = int(found[winner, 0])
        if best == self.last_best and best != self.followed:
            owner = winner % self.group.size
            held = self.mine[winner].solution() if self.group.rank == owner else None
            self.heard, self.followed = self._everywhere(held, owner), best
        self.last_best = best

    def _bound_share(self) -> float:
        """What bounds get of the time of the searches of this rank."""
        gap = self.progress.gap()
        near = gap is not None and gap <= NEAR
        closing = getattr(self.bounds, "closing", False) and self._in_sight(gap)
        if closing and self._settled():
            return CLOSING_SHARE
        if getattr(self.bounds, "leads", False):
            return LEADING_SHARE
        if closing:
            return HURRIED_SHARE if self.budget.hurried else BOUND_SHARE
        stale = self.budget.seconds and self.fruitless > STALE_SHARE * self.budget.seconds
        hurried = self.budget.hurried or self.exact.eager or (near and stale)
        return HURRIED_SHARE if hurried else BOUND_SHARE

    def _in_sight(self, gap: float | None) -> bool:
        """Whether the end of closing bounds may be near, by the gap."""
        return gap is not None and gap <= getattr(self.bounds, "near", NEAR)

    def _settled(self) -> bool:
        """Whether the searches of this rank have long found nothing better."""
        return self.steps > SETTLED * max((search.found_at for search in self.mine.values()), default=0)

    def _bound_time(self) -> float:
        """Seconds for the bounds now; 0: none."""
        if not self._may_bound():
            return 0.0
        least, share = self._least(), 1.0
        closing = getattr(self.bounds, "closing", False)
        if not self.bound_seconds and least <= FIRST_SHARE * self.budget.left():
            return min(FIRST_BOUND, FIRST_SHARE * self.budget.left())
        if not self.made:  # no search is left to wait for
            wanted = max(LONGEST * (1 - self._exact_share()), least)
        elif self.mine:
            share = self._bound_share() * (1 - TREE_SHARE * self.exact.more)
            wanted = share * self.search_seconds - self.bound_seconds
        elif (
            2 * least > LONGEST and not closing
        ):  # no call of a round's time would do; the other ranks wait for this one
            wanted = self._bound_share() * self.progress.elapsed() - self.bound_seconds
        else:
            wanted = self._target() * (1 - self._exact_share())
        patient = self.mine or not closing
        if self.made and patient and wanted < (2 if self.bound_seconds else 1) * least:  # mostly overrun
            return 0.0
        return min(wanted, self._bound_room() - least, max(LONGEST * max(share, 1.0), least))

    def _bound_room(self) -> float:
        """Seconds that bounds may still use."""
        return self._room(self.bound_seconds)

    def _room(self, spent: float) -> float:
        """Seconds that bounds or an exact search that have worked so long may still use."""
        if self.budget.seconds:
            return self.budget.left()
        return max(self.budget.bound_seconds, self.search_seconds) - spent

    def _may_bound(self) -> bool:
        """Whether a call fits; the first one, without a time limit, always does."""
        if not (self.budget.seconds or self.bound_seconds):
            return True
        return self._bound_room() > self._least()

    def _target(self) -> float:
        """How long a round should last, s."""
        target = min(max(SHORTEST, GROWTH * self.progress.elapsed()), LONGEST)
        return min(target, max(self.budget.left(), 0.0))

    def _share(self) -> tuple[np.ndarray, bool]:
        """Tell all ranks what the round brought; returns the searches' finds and whether to go on.

        Every number has one writer, so a sum over ranks brings it to all. Ranks: all call
        """
        n, group = self.count, self.group
        words = np.zeros(3 * n + 6, dtype=np.int64)  # the last: microseconds to keep
        for i, search in self.mine.items():
            words[3 * i : 3 * i + 3] = search.best, search.found_at, search.done
        if self.bounds is not None:
            words[3 * n : 3 * n + 3] = (
                self.bounds.value,
                bool(self.bounds.method),
                self.more and self._may_bound(),
            )
        if self.bounds is not None and self.budget.seconds:
            words[3 * n + 5] = int(MICRO * self._reserve())
        if group.rank == 0:
            words[3 * n + 3 : 3 * n + 5] = self._next_slice(), self.budget.left() > 0
        words = group.sum_integers(words)
        found = words[: 3 * n].reshape(n, 3)
        bound, proved, more, self.slice, in_time = words[3 * n : 3 * n + 5].tolist()
        self.budget.reserved = words[3 * n + 5] / MICRO
        if proved:
            method = group.broadcast_text(self.bounds.method if self.bounds else "", self.bound_rank)
            self.progress.proved(self.toolbox.value_of_core(bound), method, self.steps)
        searching = self.searching and self.steps < self.budget.steps and not found[:, 2].all()
        if self.searching:
            self._announce(found)
        self.progress.tell(self.steps)
        return found, bool(in_time) and (searching or bool(more))

    def _next_slice(self) -> int:
        """Steps that rank 0's searches make in the time of a round."""
        if not self.made or not self.mine:
            return max(self.slice, FIRST_SLICE)
        each = self.last / (self.made * len(self.mine)) + 1e-9
        target = self._target() * (1 - EAGER_SHARE if self.exact.eager else 1)
        even = min(getattr(search, "even_steps", 1 << 40) for search in self.mine.values())
        return max(1, min(int(target / (each * len(self.mine))), 4 * self.slice, even, 1 << 40))

    def _announce(self, found: np.ndarray) -> None:
        winner = self._winner(found)
        value = self.toolbox.value_of_core(int(found[winner, 0]))
        self.progress.found(value, "search" if self.count == 1 else f"search {winner}", int(found[winner, 1]))

    def _winner(self, found: np.ndarray) -> int:
        """The search with the best value; of equal ones the earliest find, then the lowest number."""
        sign = self._sign()
        return int(np.lexsort((np.arange(self.count), found[:, 1], sign * found[:, 0]))[0])

    def _sign(self) -> int:
        """1 where smaller core values are better, -1 where larger ones are."""
        return 1 if self.toolbox.core_minimises else -1

    def _take_from_bounds(self) -> None:
        """A solution of the bounds, where it is better than every search's. Ranks: all call.

        Only under a time limit: what bounds find depends on the clock.
        """
        if not self.budget.seconds:
            return
        held = self._offer()
        words = [0, 0] if held is None else [1, self.offered[1]]
        known, best = self.group.sum_integers(np.array(words, dtype=np.int64)).tolist()
        source = getattr(self.toolbox, "bounds_find", EXACT)
        if known and self.progress.found(best, source, self.steps):
            self.proved_by, self.taken = (self.bound_rank, best), held
            if self.hears:
                self._tell_searches(held)

    def _tell_searches(self, held: np.ndarray | None) -> None:
        """All searches hear what bounds have found: a clock then decides where they go. Ranks: all call."""
        solution, self.by_clock = self._everywhere(held, self.bound_rank), True
        for search in self.mine.values():
            search.hear(solution)

    def _offer(self) -> np.ndarray | None:
        """What the bounds of this rank have found: an optimum, or one that is better part by part."""
        held = None if self.bounds is None else self.bounds.optimum()
        if held is None and hasattr(self.bounds, "pieces"):
            held = self.bounds.pieces()
        if held is not None and held is not self.offered[0]:
            self.offered = held, self.toolbox.value(self.toolbox.lift(held))
        return held

    def _finish(self, found: np.ndarray) -> Outcome:
        """Bring the best core solution to all ranks."""
        winner = self._winner(found)
        if self.progress.best == self.proved_by[1] and self.proved_by[0] >= 0:
            owner, held = self.bound_rank, self.taken
        elif self.exact.owner >= 0 and self.progress.best == self.exact.value:
            owner, held = self.exact.owner, self.exact.solution()
        elif self.searching:
            owner = winner % self.group.size
            held = self.mine[winner].solution() if self.group.rank == owner else None
        else:
            return Outcome(None, 0, 0)
        return Outcome(self._everywhere(held, owner), self.steps, winner)

    def _everywhere(self, held: np.ndarray | None, owner: int) -> np.ndarray:
        """The owner's solution on all ranks, as int64."""
        size = self.group.max_integer(0 if held is None else len(held))
        buffer = np.zeros(size, dtype=np.int64)
        if held is not None:
            buffer[:] = held
        return self.toolbox.as_solution(self.group.broadcast(buffer, owner))

    def _may_check(self) -> bool:
        """Whether the check of the bound fits a time limit."""
        limit = self.budget.seconds
        return not limit or self.bounds.check_seconds <= CHECK_SHARE * limit

    def verify(self) -> bool:
        """Prove the bound by independent code, on the rank that has it. Ranks: all call."""
        verified = False
        with raise_together(self.group, "checking the bound"):
            if self.bounds is not None and self.bounds.method and self._may_check() and self._bounds_stand():
                verified = self.bounds.verify()
        return bool(self.group.max_integer(int(verified)))

    def _bounds_stand(self) -> bool:
        """Whether the bound that stands is that of the bounds: an exact search leaves none to check."""
        return self.progress.bound == self.toolbox.value_of_core(self.bounds.value)
