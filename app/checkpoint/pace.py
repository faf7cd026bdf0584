"""When ranks ask each other what they want: to go on, to write a checkpoint, to stop."""

import time
from collections.abc import Callable

import numpy as np

from app.comm.group import Group

PACE_S = 0.1  # between two questions to all ranks: a few microseconds each
NOTHING, SAVE, HOURS, FIRST_SIGNAL = 0, 1, 2, 3  # a wish; a signal's is FIRST_SIGNAL and its place


class Pace:
    """When ranks ask each other what they want: now and then, at steps that are the same on all of them.

    The pace follows from the slowest rank's clock.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.asked_at = time.monotonic()
        self._every = self._unasked = 1

    def agreed(self, wish: Callable[[float], int], always: bool = False) -> int:
        """The largest wish of all ranks; between two questions nothing. Ranks: all call.

        wish     of this rank, at a time of time.monotonic
        always   True: this is a question, however short ago the last one was
        """
        now = time.monotonic()
        if self.group.size == 1:
            return wish(now)
        self._unasked += 1
        if self._unasked < self._every and not always:
            return NOTHING
        micro = round(1e6 * (now - self.asked_at))
        found, micro = self.group.max_integers(np.array([wish(now), micro], dtype=np.int64)).tolist()
        each = max(micro, 1) / self._unasked
        self._every = max(1, min(int(1e6 * PACE_S / each), 2 * self._every))
        self._unasked, self.asked_at = 0, now
        return found
