"""RoundMessage: the numbers that ranks tell each other after a round of searches and bounds."""

from dataclasses import astuple, dataclass

import numpy as np

from app.comm.group import Group

LARGEST = 1 << 62  # microseconds: as good as for ever


@dataclass
class RoundMessage:
    """What one rank writes, the rest being zero; and, added up, what all know: every number has one writer.

    found           [searches, 3] int64: of every search its best value, the step of that, whether it is done
    bound           the value of the bounds on the core            proved   whether they have one yet
    bounds_go_on    whether they have more to do, and room for it
    slice           steps of every search in the next round; 0: a step would not fit the time limit
    left_us         of the limit for work, with what the ranks have known is to be kept
    reserved_us     of the limit, to be kept for the bound and its check
    steps_to_come   that the limit still allows each search; 0: unknown, or nobody asks
    searched_us     that the searches of rank 0 took in this round, LARGEST where they are done
    """

    found: np.ndarray
    bound: int = 0
    proved: int = 0
    bounds_go_on: int = 0
    slice: int = 0
    left_us: int = 0
    reserved_us: int = 0
    steps_to_come: int = 0
    searched_us: int = 0

    @classmethod
    def of(cls, searches: int) -> "RoundMessage":
        """An empty one."""
        return cls(np.zeros((searches, 3), dtype=np.int64))

    def summed(self, group: Group) -> "RoundMessage":
        """The message of all ranks. Ranks: all call; one sum of integers."""
        found, *numbers = astuple(self)
        words = group.sum_integers(np.concatenate([found.ravel(), np.array(numbers, dtype=np.int64)]))
        cut = found.size
        return RoundMessage(words[:cut].reshape(found.shape), *words[cut:].tolist())
