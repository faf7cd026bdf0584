"""The exact search that all ranks share, in the rounds: its beginning, its finds, how soon it ends."""

import math

import numpy as np

from app.comm.group import Group
from app.comm.guard import raise_together
from app.solver.budget import Budget
from app.solver.progress import QUICK, Progress
from app.text import counted, duration
from app.toolbox import EXACT, Toolbox, Tree

BEGIN_SHARE = 0.05  # of the time that is left: a search that takes longer to begin is left out
CALL_SHARE = 0.1  # of that time: so is one of which a single call would take more
EAGER_SHARE = 0.75  # of the time of a rank with a local search, once an end is in sight
EAGER, GIVE_UP = 0.8, 1.1  # of the time left: the forecast of an end in sight; of one that no longer is
PAUSE = 9.0  # of the time that an exchange takes, before the next
CHANGED = 4.0  # factor by which a forecast changes before it is told again
MICRO, LONGEST = 1e6, 1000 * 31_557_600  # s; nobody wants to know more exactly


class Exact:
    """One rank's part of a tree, and what all ranks know of it.

    more     whether there is more to search; the same on all ranks, as is what follows
    begun    whether the tree is ready
    eager    whether its end is so near that it gets most of the time
    owner    the rank that has found the best solution of the tree; -1: none has
    value    of the instance, that solution's
    seconds  that this rank has worked, not the same on all ranks
    spent    s, of the rank that has worked longest; room: s that every rank may still work
    """

    def __init__(
        self,
        group: Group,
        toolbox: Toolbox,
        tree: Tree | None,
        budget: Budget,
        progress: Progress,
        searches: int,
    ) -> None:
        """searches   local searches, that ranks have beside their part of the tree

        Ranks: all.
        """
        self.group, self.toolbox, self.budget, self.progress = group, toolbox, budget, progress
        self.tree = tree
        missing = group.max_integer(int(tree is None))  # on a rank without kernels, say
        self.more, self.begun, self.eager = not missing, False, False
        self.owner, self.value, self.seconds = -1, None, 0.0
        busy = min(searches, group.size) / group.size
        self._capacity = 1 - (1 - EAGER_SHARE) * busy  # of all ranks' time, at most
        self._told, self._due, self.spent, self.room = 0.0, 0.0, 0.0, 0.0

    def run(self, seconds: float) -> None:
        """Work for about so long."""
        before = self.budget.elapsed()
        self.tree.run(seconds)
        self.seconds += self.budget.elapsed() - before

    def share(self, steps: int, room: float) -> None:
        """Bring together what all ranks have found out. Ranks: all call, while `more` is true.

        room   seconds that ranks may still work; the first rank's counts, on all ranks
        """
        before = self.budget.elapsed()
        known = int(MICRO * min(max(room, 0.0), LONGEST))
        due, known = self._from_first(before >= self._due or room <= 0, known)
        self.room = known / MICRO
        if not self.begun:
            self._begin()
            return
        if not due:
            return
        with raise_together(self.group, "the exact search"):
            told = self.tree.told()
        best, words = self._best(steps), self.group.max_integers(told)
        self.spent = self.group.max_integer(int(MICRO * self.seconds)) / MICRO
        with raise_together(self.group, "the exact search"):
            self.tree.take(words, best)
        self.progress.proved(self.toolbox.value_of_core(self.tree.value), self.tree.method, steps)
        self._look_ahead()
        self._due = (1 + PAUSE) * self.budget.elapsed() - PAUSE * before

    def _begin(self) -> None:
        """Make the tree ready, where there is time for it."""
        fits = self.tree.begin_seconds <= BEGIN_SHARE * self.room
        if self.budget.seconds:
            fits = fits and self.tree.least_seconds <= CALL_SHARE * self.room
        self.begun = self.more = bool(self._from_first(fits)[0])
        if self.begun:
            with raise_together(self.group, "beginning the exact search"):
                self.tree.begin(self.toolbox.core_value(self.progress.best))

    def _from_first(self, *numbers: int) -> list[int]:
        """Rank 0's numbers."""
        return self.group.broadcast(np.array(numbers, dtype=np.int64)).tolist()

    def _best(self, steps: int) -> int:
        """The core value of the best solution known; what the tree has found counts under a time limit.

        Without one it does not: it depends on the clock.
        """
        sign = -1 if self.toolbox.core_minimises else 1
        best = sign * self.group.max_integer(sign * self.tree.best)
        value = self.toolbox.value_of_core(best)
        if self.budget.seconds and self.progress.found(value, EXACT, steps):
            mine = self.tree.best == best and self.tree.solution() is not None
            self.owner, self.value = self.group.max_integer(self.group.rank if mine else -1), value
        known = self.toolbox.core_value(self.progress.best)
        return sign * max(sign * best, sign * known)

    def solution(self) -> np.ndarray | None:
        """The core solution that was found, on its owner."""
        return self.tree.solution() if self.group.rank == self.owner else None

    def _look_ahead(self) -> None:
        """Whether there is more to do, and an end in sight of a time limit, by rank 0's clock."""
        room = self.room
        may_forecast = bool(self._from_first(self.tree.forecast_seconds <= BEGIN_SHARE * room)[0])
        with raise_together(self.group, "the forecast of the exact search"):
            needs = self.tree.left_seconds() / self._capacity if may_forecast else math.inf
        # A room in which no call fits is none: without a time limit nothing would ever use it up.
        more = self.tree.more and room > 0 and self.tree.least_seconds <= room
        eager = more and self.budget.seconds > 0 and needs <= (GIVE_UP if self.eager else EAGER) * room
        known = int(MICRO * min(needs, LONGEST)) if math.isfinite(needs) else 0
        self.more, self.eager, known = self._from_first(more, eager, known)
        self.tree.hurry(bool(self.eager))
        if self.more and known:
            self._tell(known / MICRO)

    def _tell(self, needs: float) -> None:
        """Say what is to be expected, where that is news."""
        if self._told / CHANGED < needs < self._told * CHANGED or needs < QUICK:
            return
        self._told = needs
        open_, all_ = self.tree.left
        about = f"about {duration(needs)} more" if needs < LONGEST else "over 1,000 years"
        self.progress.log.info(
            "%s: by exact search a proof would take %s on %s (%s of %s %s are open)%s",
            self.progress.name, about, counted(self.group.size, "rank"), f"{open_:,}", f"{all_:,}",
            self.tree.units,
            "; most of the time goes to it" if self.eager else "",
        )  # fmt: skip
