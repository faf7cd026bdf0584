"""Lower bounds of one part of a digraph (app/bounds/cycles/part.py): rows are directed cycles and cliques of
mutual arcs, and a division is of a node, which is in all sets of one subtree, in none of the other.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.bounds.cycles.part import WHOLE, Node, PartBounds
from app.bounds.dfvs.program import Program
from app.bounds.dfvs.rows import Row, Rows
from app.bounds.dfvs.witness import DirectedFeedbackPart, proved_by
from app.graphs.digraph import Digraph
from app.graphs.keys import sorted_set

GAIN = 0.02  # a round of rows that gains less than this part of a mean price gains little
LEAST_ROWS = 60  # of a round, or one for two nodes
MOST_NODES, MOST_ARCS = 20_000, 1 << 19  # of a part with a linear program
Side = tuple[int, int]  # a node, 1 in the set, -1 not


class DigraphPartBounds(PartBounds):
    """The bounds of one part; a solution is a set [k] bool."""

    tail, tail_below = 12, 3
    candidates, steps = 12, 40
    program: Program

    def __init__(self, digraph: Digraph, nodes: np.ndarray, price: np.ndarray) -> None:
        """digraph, price   of the part alone"""
        super().__init__(nodes, price)
        self.digraph, self.price = digraph, price

    def _cost(self, solution: np.ndarray) -> int:
        return int(self.price[solution].sum())

    def _packings(self) -> Iterator[list[tuple[Row, int]]]:
        self._finder = Rows(self.digraph)
        return self._finder.packed(self.price.tolist())

    def _begin_program(self) -> bool:
        if self.digraph.n > MOST_NODES or self.digraph.arcs > MOST_ARCS:
            return False
        self.program = Program(self.price)
        self.program.add(self._rows)
        self.program.add(self._finder.cover())
        self._take_rows(self.program.rows[len(self._rows) :])
        return True

    def _violated(self) -> list[Row]:
        return self._finder.violated(self.program.point, max(LEAST_ROWS, self.digraph.n // 2))

    def _follow(self) -> None:
        x = self.program.point
        if (np.abs(x - np.rint(x)) < WHOLE).all() and self._leaves_none(x > 0.5):
            self.offer(x > 0.5)

    def _leaves_none(self, chosen: np.ndarray) -> bool:
        """Whether a set [k] bool leaves no directed cycle."""
        left = self.digraph.part(np.flatnonzero(~chosen))
        return len(sorted_set(left.components())) == left.n

    def _gained(self) -> float:
        return GAIN * self._mean

    # ---- divisions -----------------------------------------------------------------------------------------

    def _divisions_of(self, node: Node) -> list[int]:
        x = self.program.point
        free = np.ones(len(x), dtype=bool)
        free[[v for v, _ in node.fixed]] = False
        degree = np.diff(self.digraph.out_ptr) * np.diff(self.digraph.in_ptr)
        near = np.where(free, np.abs(x - 0.5), 2.0)
        order = np.lexsort((np.arange(len(x)), -degree, np.round(near, 1)))
        return [v for v in order[: self.candidates].tolist() if free[v]]

    def _sides(self, division: int) -> tuple[Side, Side]:
        return (division, 1), (division, -1)

    def _number(self, division: int) -> int:
        return division

    def _fix(self, fixed: list[Side]) -> None:
        inside, outside = ([v for v, side in fixed if side == one] for one in (1, -1))
        self.program.fix(inside, outside)

    # ---- what is proved ------------------------------------------------------------------------------------

    def _nodes_of(self, row: Row) -> tuple[int, ...]:
        return row[0]

    def _proved_by(self, rows: np.ndarray, values: np.ndarray, fixed: list[Side]) -> int:
        if self._listing is None:
            self._listing = *self._listed(), self._cliques(self._rows)
        side = np.zeros(len(self.price), dtype=np.int8)
        for v, where in fixed:
            side[v] = where
        return proved_by(rows, values, *self._listing, self.price * self.one, side)

    @staticmethod
    def _cliques(rows: list[Row]) -> np.ndarray:
        return np.array([clique for _, clique in rows], dtype=np.uint8)

    def _without_point(self, node: Node) -> bool:
        """There is a row within O: a large value of it proves what is wanted."""
        outside = {v for v, side in node.fixed if side < 0}
        for i, (nodes, clique) in enumerate(self._rows):
            if len(outside.intersection(nodes)) > (1 if clique else len(nodes) - 1):
                self._prove(node, np.array([i]), np.array([self.best * self.one]))
                node.lower = max(node.lower, self.best)
                break
        return False

    def _proof(self, used: np.ndarray, **shared: Any) -> DirectedFeedbackPart:
        return DirectedFeedbackPart(**shared, cliques=self._cliques([self._rows[i] for i in used.tolist()]))
