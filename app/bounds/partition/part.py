"""Part: the question of balanced partitions for some of the nodes, in whole numbers that are small enough."""

from dataclasses import dataclass

import numpy as np

from app.graphs.balance import Balance
from app.graphs.contracted import WeightedRows

# Of what nodes weigh together: larger weights are rounded down, and so is what a block may weigh.
SIZES = 1 << 20


@dataclass(frozen=True, eq=False)
class Part:
    """The question for some nodes.

    rows    of these alone     sizes   [k] int64, their weights, rounded down to multiples
    most    of such units in a block; parts: blocks
    """

    rows: WeightedRows
    sizes: np.ndarray
    most: int
    parts: int

    @property
    def total(self) -> int:
        """What the nodes weigh."""
        return int(self.sizes.sum())

    @property
    def squares(self) -> int:
        """The largest sum of squares of what blocks hold."""
        full, rest = divmod(self.total, max(self.most, 1))
        return full * self.most**2 + rest**2

    @property
    def edges(self) -> int:
        """The weight of all edges."""
        return int(self.rows.weights.sum()) // 2

    def degrees(self) -> np.ndarray:
        """[k] int64, the weight of the edges of each node."""
        found = np.zeros(self.rows.n, dtype=np.int64)
        np.add.at(found, self.rows.row_of(), self.rows.weights)
        return found


def part_of(balance: Balance, nodes: np.ndarray) -> Part:
    """The question for nodes [k]."""
    rows = balance.rows.induced(nodes, np.full(balance.rows.n, -1, dtype=np.int32))
    shift = max(int(rows.size.sum()).bit_length() - SIZES.bit_length(), 0)
    return Part(rows, rows.size >> shift, int(balance.limits.max(initial=0)) >> shift, balance.parts)
