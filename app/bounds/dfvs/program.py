"""The linear program of a part: w x least, 1 at least on cycles, |C| - 1 on cliques, 0 <= x <= 1."""

from typing import Any

import numpy as np

from app.bounds.cycles.program import GrowingProgram
from app.bounds.dfvs.rows import Row


class Program(GrowingProgram):
    """The program of one part, a column for each node."""

    def __init__(self, price: np.ndarray) -> None:
        """price   [n] int64"""
        super().__init__(price, float(price.mean()))

    def _as_rows(self, rows: list[Row]) -> tuple[np.ndarray, Any, Any, np.ndarray]:
        sizes = np.array([len(nodes) for nodes, _ in rows])
        sides = np.array([len(nodes) - 1 if clique else 1 for nodes, clique in rows], dtype=np.float64)
        columns = np.concatenate([np.array(nodes) for nodes, _ in rows])
        return sides, np.append(0, np.cumsum(sizes)[:-1]), columns, np.ones(len(columns))

    @staticmethod
    def _key(row: Row) -> frozenset[int]:
        return frozenset((-1, *row[0])) if row[1] and len(row[0]) > 2 else frozenset(row[0])

    def fix(self, inside: list[int], outside: list[int]) -> None:
        """From now on x is 1 at some nodes, 0 at others."""
        low, high = np.zeros(len(self.point)), np.ones(len(self.point))
        low[inside], high[outside] = 1, 0
        self._confine(low, high)
