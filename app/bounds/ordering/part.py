"""Lower bounds of one part of net arcs (app/bounds/cycles/part.py): rows are cycles, and a division is of two
nodes, of which the one stands before the other in one subtree, behind it in the other.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.bounds.cycles.part import WHOLE, Node, PartBounds
from app.bounds.ordering.cycles import Finder, packed, triangles
from app.bounds.ordering.program import Cycle, Program
from app.bounds.ordering.witness import OrderingPart, Pairs
from app.graphs.ordering import NetArcs, least_order

# Of a part with a y for each pair: nodes at most, arcs of all pairs at least.
DENSE_NODES, DENSE_SHARE = 250, 0.2
MOST_ARCS = 60_000  # of a part with a linear program
ROWS_EACH = 6  # of a round, for each node, and:
LEAST_ROWS = 300
MOST_FIRST = 10_000  # packed cycles that are the first rows of a program with a y for each pair
GAIN = 1e-4  # a round of rows that gains less than this part of the bound gains little
Pair = tuple[int, int]  # the first node stands before the second


class OrderingPartBounds(PartBounds):
    """The bounds of one part; a solution is an order [k]."""

    tail, tail_below = 8, 4
    candidates, steps = 10, 60
    program: Program

    def __init__(self, net: NetArcs, nodes: np.ndarray, compiled: bool, descend: Any) -> None:
        """net   of the part alone     descend   as of OrderingBounds"""
        super().__init__(nodes, net.weights)
        self.net, self._compiled, self._descend = net, compiled, descend
        self._pairs: list[Pair] = []  # divisions, by their numbers

    def _cost(self, solution: np.ndarray) -> int:
        return self.net.cost(solution)

    def _packings(self) -> Iterator[list[tuple[Cycle, int]]]:
        return packed(self.net, self._compiled)

    def _begin_program(self) -> bool:
        n, arcs = self.net.n, self.net.arcs
        self._dense = n <= DENSE_NODES and arcs >= DENSE_SHARE * n * (n - 1) / 2
        if arcs > MOST_ARCS:
            return False
        self.program, self._finder = Program(self.net, self._dense), Finder(self.net)
        if self._dense and len(self._rows) > MOST_FIRST:
            self._ahead = len(self._rows)
        else:
            self.program.add(self._rows)
        return True

    def _violated(self) -> list[Cycle]:
        """Cycles of less than 1: of three nodes where there is a y for each pair, else of net arcs."""
        most = max(ROWS_EACH * self.net.n, LEAST_ROWS)
        if self._dense:
            return triangles(self._table(), most)
        return self._finder.violated(self.program.point, most)

    def _table(self) -> np.ndarray:
        """[k, k] float64, y of all two nodes, 1/2 of those without one."""
        program = self.program
        Y = np.full((self.net.n, self.net.n), 0.5)
        Y[program.tails, program.heads] = program.point
        Y[program.heads, program.tails] = 1 - program.point
        return Y

    def _follow(self) -> None:
        """An order that follows the point: nodes by how much of their arcs leads backward, then a descent."""
        program, n = self.program, self.net.n
        behind = np.zeros(n)  # how many nodes stand before each
        np.add.at(behind, program.tails, program.point)
        np.add.at(behind, program.heads, 1 - program.point)
        if not self._dense:
            share = np.bincount(np.concatenate([program.tails, program.heads]), minlength=n)
            behind = behind / np.maximum(share, 1)
        if np.abs(program.point - np.rint(program.point)).max(initial=0) < WHOLE:
            back = program.point > 0.5
            tails, heads = (
                np.where(back, program.heads, program.tails),
                np.where(back, program.tails, program.heads),
            )
            order = least_order(n, tails, heads, self._compiled)
            if len(order) == n:
                self.offer(order)
                return
        self.offer(self._descend(self.net, np.argsort(behind, kind="stable")))

    def _gained(self) -> float:
        return GAIN * max(abs(self.program.value), 1.0)

    # ---- divisions -----------------------------------------------------------------------------------------

    def _divisions_of(self, node: Node) -> list[Pair]:
        """Of two nodes each; none: HiGHS's point is not exact enough to tell that the order is decided."""
        program, y = self.program, self.program.point
        known = _reached(self.net.n, node.fixed)
        weights = np.zeros(len(y), dtype=np.int64)
        weights[: self.net.arcs] = self.net.weights
        order = np.lexsort((np.arange(len(y)), -weights, np.round(np.abs(y - 0.5), 1)))
        order = order[~(known | known.T)[program.tails[order], program.heads[order]]][: self.candidates]
        return list(zip(program.tails[order].tolist(), program.heads[order].tolist()))

    def _sides(self, division: Pair) -> tuple[Pair, Pair]:
        return division, division[::-1]

    def _number(self, division: Pair) -> int:
        self._pairs.append(division)
        self._listing = None
        return len(self._pairs) - 1

    def _fix(self, fixed: list[Pair]) -> None:
        self.program.fix(fixed)

    # ---- what is proved ------------------------------------------------------------------------------------

    def _nodes_of(self, row: Cycle) -> tuple[int, ...]:
        return row

    def _proved_by(self, rows: np.ndarray, values: np.ndarray, fixed: list[Pair]) -> int:
        if self._listing is None:
            self._listing = Pairs(self.net, *self._listed(), *self._ends())
        pairs: Pairs = self._listing
        side = np.zeros(pairs.count, dtype=np.int8)
        for u, v in fixed:
            pair, where = pairs.fixed(u, v)
            side[pair] = where
        return pairs.proved(rows, values, self.one, side)

    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """[d] int64 each, the first and the second nodes of divisions."""
        ends = np.array(self._pairs, dtype=np.int64).reshape(-1, 2)
        return ends[:, 0].copy(), ends[:, 1].copy()

    def _proof(self, used: np.ndarray, **shared: Any) -> OrderingPart:
        us, vs = self._ends()
        return OrderingPart(**shared, us=us, vs=vs)


def _reached(n: int, fixed: list[tuple[int, int]]) -> np.ndarray:
    """[n, n] bool: which nodes stand before which, by some that do."""
    found = np.zeros((n, n), dtype=bool)
    for u, v in fixed:
        before, behind = found[:, u].copy(), found[v].copy()
        before[u] = behind[v] = True
        found |= before[:, None] & behind[None, :]
    return found
