"""Rounds: local searches from several seeds and the bounds, advanced together on all ranks.

Search i belongs to rank i modulo the number of ranks; all searches make the same number of steps in a round,
so what they find depends on their number and on the steps, never on the ranks that share them or on the
clock that cuts the rounds. Bounds have a rank of their own where there are more ranks than searches. An exact
search, where the core has one, is shared by all ranks; most of those without a search have no other work.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import numpy as np

from app.checkpoint.keeper import NOTHING_KEPT, Keeper
from app.checkpoint.store import State
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import Stopped
from app.proofs.archive import certificate_of
from app.solver.budget import Budget
from app.solver.exact import Exact
from app.solver.meetings import Meetings
from app.solver.progress import Progress
from app.solver.round_message import LARGEST, RoundMessage
from app.solver.workload import Workload
from app.toolbox import Bounds, Search, Toolbox, Tree, verified

MICRO = 1e6


@dataclass
class Outcome:
    """What the rounds found, the same on all ranks.

    solution    the best core solution, or None where no search beat the start
    steps       of every search
    planned     what the searches made of the time that was to come
    search      the local search that found it; where an exact search did, the best of them
    """

    solution: np.ndarray | None
    steps: int
    search: int
    planned: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Beginning:
    """What searches begin from, the same on all ranks.

    starts    core solutions, one for each search
    seeds     one for each search
    planned   see Search; empty: searches plan by the clock
    fits      False: there is no time for searches; bounds and the exact search are alone
    """

    starts: list[np.ndarray]
    seeds: list[int]
    planned: Sequence[int] = ()
    fits: bool = True


class Rounds:
    """All searches of one instance, those of this rank at hand."""

    def __init__(
        self, group: Group, toolbox: Toolbox, begin: Beginning, budget: Budget, progress: Progress,
        with_bounds: bool, keeper: Keeper = NOTHING_KEPT,
    ) -> None:  # fmt: skip
        """keeper   where the search may be stopped; under a time limit its best solution is kept"""
        self.keeper, self.start = keeper, begin.starts[0]
        self.group, self.toolbox, self.budget, self.progress = group, toolbox, budget, progress
        self.count, self.bound_rank = len(begin.seeds), len(begin.seeds) % group.size
        with raise_together(group, "starting the search"):
            mine = self._searches(begin) if begin.fits else {}
            tree = self._tree() if with_bounds else None
        self.plans = bool(group.max_integer(int(any(each.plans for each in mine.values()))))
        for each in mine.values() if self.plans else ():
            each.plan(begin.planned)
        self.exact = Exact(group, toolbox, tree, budget, progress, self.count)
        with raise_together(group, "bounding"):
            bounds = self._bounds() if with_bounds and group.rank == self.bound_rank else None
        self.mine, self.bounds = mine, bounds
        self.work = Workload(toolbox, budget, progress, mine, bounds, self.exact)
        self.slice = toolbox.first_steps
        self.searching = bool(group.max_integer(int(bool(mine))))
        self.meetings = Meetings(group, mine, self.count)
        # What searches and bounds have told each other.
        apart = with_bounds and self.bound_rank == self.count
        self.follows = apart and toolbox.bounds_follow
        self.hears = bool(group.max_integer(int(any(each.hears for each in mine.values()))))
        self.told: int | None = None  # value of the last solution that the bounds of this rank have seen
        self.heard = None if mine else self.start  # a solution for bounds on a rank without a search
        self.last_best = self.followed = None  # values of the round before, of the solution last told
        self.by_clock = False  # whether bounds have told searches something
        self.proved_by = -1, 0  # the rank whose bounds have found the best solution; the value of that
        self.offered: tuple[np.ndarray | None, int] = None, 0  # a solution of the bounds here, and its value
        self.taken: np.ndarray | None = None  # the last one that was better than all

    def _searches(self, begin: Beginning) -> dict[int, Search]:
        """Those of this rank, by their numbers."""
        numbers = range(self.group.rank, self.count, self.group.size)
        made = {i: self.toolbox.search(begin.seeds[i], begin.starts[i]) for i in numbers}
        return {i: search for i, search in made.items() if search is not None}

    def _tree(self) -> Tree | None:
        """This rank's part of an exact search, where the core has one."""
        return self.toolbox.tree(self.group.rank, self.group.size)

    def _bounds(self) -> Bounds | None:
        """Bounds of the core."""
        bounds = self.toolbox.bounds()
        if bounds is not None and self.budget.seconds:
            bounds.expect(self.budget.seconds)
            bounds.until(self.budget.end)
        elif bounds is not None:
            bounds.allow(self.budget.bound_seconds)
        return bounds

    def run(self) -> Outcome:
        """Rounds until the budget is spent or the best is proved optimal. Ranks: all call."""
        try:
            return self._run()
        finally:
            if self.bounds is not None:
                self.bounds.close()

    def _run(self) -> Outcome:
        """Search and bound for a slice, then tell each other, until an end is reached. Ranks: all call."""
        found = np.zeros((self.count, 3), dtype=np.int64)
        for number in count():
            # Where steps decide, a stopped search begins anew and takes the same course.
            state = partial(self._state, found) if self.budget.seconds else None
            try:
                self.keeper.at(number, "search", state, now=True)
            except Stopped as stopped:
                stopped.so_far = self._best(found)
                raise
            with raise_together(self.group, "searching", rest=True):
                self.work.search(self._steps())
                self.work.bound(self._news)
                self.work.search_exactly()
            if self.work.made:
                self.meetings.hold(self.work.steps)
            found, going = self._share()
            if self.follows and self.searching:
                self._tell_bounds(found)
            self._take_from_bounds()
            if self.exact.more:
                self.exact.share(self.work.steps, self.work.room(self.exact.spent))
            if self.progress.closed or not (going or self.exact.more):
                break
        if self.budget.seconds and not self.progress.closed:
            with raise_together(self.group, "bounding"):
                self.work.first_bound()
            found, _ = self._share()
        return self._finish(found)

    def _best(self, found: np.ndarray) -> np.ndarray:
        """The best core solution so far. Ranks: all call."""
        outcome = self._finish(found) if found.any() else None
        return self.start if outcome is None or outcome.solution is None else outcome.solution

    def _state(self, found: np.ndarray) -> State:
        """The best solution of the instance so far, and the seconds it took. Ranks: all call."""
        best = np.asarray(self.toolbox.lift(self._best(found)))
        return State({"elapsed": self.budget.elapsed()}, {"solution": best})

    # ---- one round ----------------------------------------------------------------------------------------

    def _steps(self) -> int:
        """Steps of every search in this round, the same on all ranks."""
        most = min(self.budget.steps - self.work.steps, self.meetings.room(self.work.steps))
        return min(self.slice, most) if self.searching else 0

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

    def _share(self) -> tuple[np.ndarray, bool]:
        """Tell all ranks what the round brought; returns the searches' finds and whether to go on.

        Ranks: all call
        """
        told = self._message().summed(self.group)
        in_time = told.left_us > told.reserved_us - int(MICRO * self.budget.reserved)
        self.slice, self.budget.reserved = told.slice, told.reserved_us / MICRO
        self.work.wait(told.searched_us / MICRO)
        for each in self.mine.values() if told.steps_to_come else ():
            each.expect(told.steps_to_come)
        if told.proved:
            method = self.group.broadcast_text(self.bounds.method if self.bounds else "", self.bound_rank)
            self.progress.proved(self.toolbox.value_of_core(told.bound), method, self.work.steps)
        done = told.found[:, 2].all()
        searching = self.searching and self.work.steps < self.budget.steps and told.slice > 0 and not done
        if self.searching:
            self._announce(told.found)
        self.progress.tell(self.work.steps)
        return told.found, in_time and (searching or bool(told.bounds_go_on))

    def _message(self) -> RoundMessage:
        """What this rank has to tell."""
        mine = RoundMessage.of(self.count)
        for i, search in self.mine.items():
            mine.found[i] = search.best, search.found_at, search.done
        if self.bounds is not None:
            mine.bound, mine.proved = self.bounds.value, bool(self.bounds.method)
            mine.bounds_go_on = self.work.more and self.work.may_bound()
        if self.bounds is not None and self.budget.seconds:
            mine.reserved_us = int(MICRO * self.work.reserve())
        if self.group.rank == 0:
            mine.slice = self.work.next_slice(self.slice)
            mine.left_us = int(min(MICRO * self.budget.left(), LARGEST))
            mine.steps_to_come = self.work.steps_to_come() if self.plans else 0
            mine.searched_us = int(min(MICRO * self.work.last_of_searches, LARGEST))
        return mine

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
        if known and self.progress.found(best, self.toolbox.bounds_find, self.work.steps):
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
        if self.bounds is None:
            return None
        held = self.bounds.optimum()
        if held is None:
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
        return Outcome(self._everywhere(held, owner), self.work.steps, winner, self._planned())

    def _planned(self) -> list[int]:
        """What the searches have planned, all alike: those of search 0 to all ranks."""
        own = np.array(self.mine[0].planned if self.plans and 0 in self.mine else [], dtype=np.int64)
        numbers = np.zeros(self.group.max_integer(len(own)), dtype=np.int64)
        numbers[: len(own)] = own
        return self.group.broadcast(numbers).tolist()

    def _everywhere(self, held: np.ndarray | None, owner: int) -> np.ndarray:
        """The owner's solution on all ranks, as int64."""
        size = self.group.max_integer(0 if held is None else len(held))
        buffer = np.zeros(size, dtype=np.int64)
        if held is not None:
            buffer[:] = held
        return self.toolbox.as_solution(self.group.broadcast(buffer, owner))

    def verify(self) -> bool:
        """Prove the bound by independent code, on the rank that has it. Ranks: all call."""
        proved = False
        with raise_together(self.group, "checking the bound"):
            if (
                self.bounds is not None
                and self.bounds.method
                and self.work.may_check()
                and self._bounds_stand()
            ):
                proved = verified(self.toolbox, self.bounds)
        return bool(self.group.max_integer(int(proved)))

    def certificate(self) -> bytes:
        """The file of what proves the bound, or empty, on all ranks. Ranks: all call."""
        content = b""
        with raise_together(self.group, "making the certificate"):
            if self.bounds is not None:
                content = certificate_of(self.bounds)
        return self.group.broadcast_bytes(content, self.bound_rank)

    def _bounds_stand(self) -> bool:
        """Whether the bound that stands is that of the bounds: an exact search leaves none to check."""
        return self.progress.bound == self.toolbox.value_of_core(self.bounds.value)
