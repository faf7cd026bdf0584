"""Layouts: the batches of states that a learner works on, the latest ones kept."""

from app.comm.group import Group
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

KEPT = 8


class Layouts:
    """StateBatch by what it is made of: laying one out costs more than looking it up."""

    def __init__(self, group: Group, blocks: list[RowBlock]) -> None:
        self.group, self.blocks = group, blocks
        self._batches: dict[tuple[tuple[int, int], ...], StateBatch] = {}

    def of(self, graphs: list[int], counts: list[int]) -> StateBatch:
        """The layout for counts[i] states of graph graphs[i], in this order."""
        key = tuple(zip(graphs, counts))
        if key not in self._batches:
            if len(self._batches) >= KEPT:
                self._batches.pop(next(iter(self._batches)))
            self._batches[key] = StateBatch(self.group, [(self.blocks[g], count) for g, count in key])
        return self._batches[key]
