"""Searches whose solutions are masks, and which tell each other their best ones."""

from typing import ClassVar

import numpy as np

from app.toolbox import Search


class MaskSearch(Search):
    """A search that hears others' best solutions [m] bool; what it does of one says `hear`.

    least_meeting   steps between two meetings of several searches
    """

    hears = True
    least_meeting: ClassVar[int]

    @property
    def meeting_steps(self) -> int:
        """Steps between two meetings of several searches."""
        return self.least_meeting

    def news(self) -> np.ndarray:
        """[1, m] int64, the best solution."""
        return self.solution().astype(np.int64)[None, :]

    def meet(self, others: list[np.ndarray]) -> None:
        """The best solutions of the other searches: where one is better the search goes on from it."""
        for each in others:
            self.hear(each[0].astype(bool))
