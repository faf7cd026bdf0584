"""Work that rank 0 does by itself, while ranks that would do the same rest.

At the end of a loop they go on from its state, as a run does that is resumed there: so what they hold then
has the bits that it would have if each of them had made all steps.
"""

from collections.abc import Callable
from typing import TypeVar, cast

from app.checkpoint.keeper import Around, Keeper, Nothing
from app.checkpoint.shared import share_state
from app.checkpoint.store import State
from app.comm.group import Group
from app.comm.guard import raise_together, share_failure

T = TypeVar("T")


def led(alike: Group | None, keeper: Keeper, what: str, loop: Callable[[Keeper], T]) -> T:
    """What a loop comes to, on every rank; an error of rank 0, and a stop, is that of all.

    alike   ranks that would do the same, each by itself; None: they run the loop together
    what    rank 0 does, for messages
    loop    recalls a state of the keeper, and calls `at` and `ended` with its own, under the same key
    Ranks   all call
    """
    if alike is None or alike.size == 1:
        return loop(keeper)
    first = _Leading(keeper)
    found = by_first(alike, keeper, what, lambda: loop(first))
    state = share_state(alike, first.end, 0)
    with raise_together(alike, what):
        return loop(_Following(state)) if alike.rank else cast(T, found)


def by_first(alike: Group, keeper: Keeper, what: str, work: Callable[[], T]) -> T | None:
    """What rank 0's work comes to, there; None on the others, which rest. An error of rank 0, and a stop, is
    that of all.

    work    calls `at` of the keeper, as rank 0 alone may
    Ranks   all call
    """
    found, failure = None, None
    keeper.lead()
    if alike.rank == 0:
        try:
            found = work()
        except Exception as error:  # raised below, on every rank
            failure = error
        alike.rest()
    else:
        alike.rest(keeper.look)
    keeper.meet()
    share_failure(alike, failure, what)
    return found


class _Leading(Around):
    """The keeper of rank 0, which notes where the loop ends."""

    end: State | None = None

    def ended(self, key: str, state: Callable[[], State]) -> None:
        """See Keeper."""
        self.end = state()


class _Following(Nothing):
    """The keeper of a rank that begins where the loop has ended."""

    def __init__(self, end: State) -> None:
        self.end = end

    def recall(self, key: str) -> State | None:
        """See Keeper."""
        return self.end
