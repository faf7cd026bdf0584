"""The linear program of a part: w y least, 0 <= y <= 1, with a row for each cycle (witness.py)."""

from typing import Any

import numpy as np

from app.bounds.cycles.program import GrowingProgram
from app.graphs.ordering import NetArcs

Cycle = tuple[int, ...]


class Program(GrowingProgram):
    """The program of one part; its rows are cycles, the smallest node first.

    tails, heads   [c] int64, the ends of y: net arcs, and where there is a y for each pair those without one
    """

    def __init__(self, net: NetArcs, dense: bool) -> None:
        """dense   a y for each pair of nodes"""
        self.tails, self.heads, weights = net.tails, net.heads, net.weights
        if dense:
            there = np.eye(net.n, dtype=bool)
            there[net.tails, net.heads] = there[net.heads, net.tails] = True
            low, high = np.nonzero(np.triu(~there))
            self.tails, self.heads = np.append(self.tails, low), np.append(self.heads, high)
            weights = np.append(weights, np.zeros(len(low), dtype=np.int64))
        self._number = {pair: i for i, pair in enumerate(zip(self.tails.tolist(), self.heads.tolist()))}
        super().__init__(weights, float(net.weights.mean()))

    def _as_rows(self, rows: list[Cycle]) -> tuple[np.ndarray, Any, Any, np.ndarray]:
        start, columns, values, sides = [], [], [], []
        for cycle in rows:
            start.append(len(columns))
            against = 0
            for u, v in zip(cycle, (*cycle[1:], cycle[0])):
                along = self._number.get((u, v))
                columns.append(self._number[v, u] if along is None else along)
                values.append(-1.0 if along is None else 1.0)
                against += along is None
            sides.append(1.0 - against)
        return np.array(sides), start, columns, np.array(values)

    def fix(self, fixed: list[tuple[int, int]]) -> None:
        """From now on the first of some pairs of nodes stand before the second."""
        low, high = np.zeros(len(self.tails)), np.ones(len(self.tails))
        for u, v in fixed:
            along = self._number.get((u, v))
            if along is None:
                low[self._number[v, u]] = 1
            else:
                high[along] = 0
        self._confine(low, high)
