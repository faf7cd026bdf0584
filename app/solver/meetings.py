"""Meetings: the searches of one instance tell each other what they found, at steps that they fix."""

import numpy as np

from app.comm.group import Group
from app.toolbox import Search


class Meetings:
    """Every so many steps each search hears the news of the others.

    The steps are those of every search, and what is told depends on them alone: so does what is found, on any
    number of ranks and however the rounds are cut.

    mine    the searches of this rank; search i of all `count` lives on rank i modulo the number of ranks
    every   steps between two meetings; 0: none, there is one search, or searches that have no use for it
    """

    def __init__(self, group: Group, mine: dict[int, Search], count: int) -> None:
        self.group, self.mine, self.count = group, mine, count
        wanted = max((search.meeting_steps for search in mine.values()), default=0)
        self.every = group.max_integer(wanted) if count > 1 else 0
        if self.every:
            for search in mine.values():
                search.join(count)

    def room(self, steps: int) -> int:
        """Steps until the next meeting, for searches that made `steps`."""
        return self.every - steps % self.every if self.every else 1 << 62

    def hold(self, steps: int) -> None:
        """The meeting after `steps` steps, where there is one. Ranks: all call."""
        if not self.every or steps % self.every:
            return
        told = [self._everywhere(i) for i in range(self.count)]
        for i, search in self.mine.items():
            search.meet([news for k, news in enumerate(told) if k != i])

    def _everywhere(self, number: int) -> np.ndarray:
        """The news [k, n] of a search on all ranks. Ranks: all call."""
        owner = number % self.group.size
        held = self.mine[number].news() if self.group.rank == owner else np.zeros((0, 0), dtype=np.int32)
        shape = self.group.broadcast(np.array(held.shape, dtype=np.int64), owner)
        news = np.zeros(shape.prod(), dtype=np.int64)
        if self.group.rank == owner:
            news[:] = held.ravel()
        return self.group.broadcast(news, owner).reshape(shape)
