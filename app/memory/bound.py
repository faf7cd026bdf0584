"""Bytes that certainly still move: what lets the search for the least transfers end early."""

from functools import cache

from app.memory.operations import Epoch, members

MOST_SUMS = 20_000  # sums of sizes that are looked at; beyond them any number of bytes counts as a sum


class Bound:
    """A lower bound of the bytes that move after an operation, given what is cached and what is dirty.

    - A tensor that will be read, or must be back in the end, and is not cached is loaded at least once.
    - Consider the later operation j beside which the most bytes wait for a reader: those that do not fit
      beside it lie outside the fast tier then. Such tensors are loaded again after j; and unless the slow
      tier has their values by now, they are stored before j too.
    """

    def __init__(self, epoch: Epoch, limit: int, start: int) -> None:
        """start: constants that must be cached at the end."""
        self.epoch, self.start = epoch, start
        self._excess = [
            (epoch.bytes_of(unread | needed) - limit, unread & ~needed)
            for unread, needed in zip(epoch.unread, epoch.needs)
        ]
        self._worst = self._excess[-1:]  # after each operation, from the last on, the worst one that follows
        for each in reversed(self._excess[:-1]):
            self._worst.append(max(self._worst[-1], each))
        self._worst.reverse()

    def __call__(self, at: int, cached: int, dirty: int) -> int:
        """Bytes that move after operation `at`; -1: before the first."""
        epoch = self.epoch
        outside = (self._wanted(at) | self.start) & ~cached
        loads = epoch.bytes_of(outside)
        if at + 1 >= len(self._worst):
            return loads
        excess, waiting = self._worst[at + 1]
        out = smallest_sum(self._sizes(waiting & ~outside), excess - epoch.bytes_of(waiting & outside))
        return loads + out + max(0, out - epoch.bytes_of(waiting & cached & ~dirty))

    def _wanted(self, at: int) -> int:
        """What is read after an operation before it is written."""
        epoch = self.epoch
        if at >= 0 or not epoch.operations:
            return epoch.unread[at] if epoch.operations else 0
        return epoch.reads[0] | (epoch.unread[0] & ~epoch.writes[0])

    def _sizes(self, tensors: int) -> tuple[int, ...]:
        return tuple(sorted(self.epoch.sizes[each] for each in members(tensors)))


@cache
def smallest_sum(sizes: tuple[int, ...], least: int) -> int:
    """The smallest sum of some sizes that is at least `least`; `least` itself where that takes long."""
    if least <= 0:
        return 0
    sums = {0}
    for size in sizes:
        sums |= {each + size for each in sums if each < least}
        if len(sums) > MOST_SUMS:
            return least
    return min((each for each in sums if each >= least), default=least)
