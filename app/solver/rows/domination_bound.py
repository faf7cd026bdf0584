"""A lower bound of dominating sets on row partitions, where no rank holds what reductions leave.

Every node that is to be dominated has a value, and the values in the closed neighbourhood of a node that may
be chosen add up to its price at most; so a dominating set costs at least as much as all values
(app/bounds/domination/packing.py). Primal-dual hybrid gradient steps (app/bounds/first_order.py) find values
near the best ones: a step is two products with the own rows, and every node's number goes to all ranks after
each. Values around nodes that they exceed are cut down, and the rest is filled by dual ascent: round by round
a node that may be chosen offers what is left of its price in equal parts to those around it whose values may
still rise, and these rise by the least offer. What counts in the end are whole numbers.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from app.bounds.domination.packing import LARGEST, ONE, Packing
from app.comm.group import Group
from app.graphs.graph import Graph
from app.proofs.kinds import DominationProof
from app.solver.rows.domination_check import check_dominations, check_values
from app.solver.rows.dominations import DominationsReduced
from app.solver.rows.kinds import RowBound
from app.solver.rows.own import OwnRows, Rounds, everywhere, renumbered, row_least

METHOD = "reductions, packing on rows"
LEAST_RISE = 1e-4  # of all values, in a round of dual ascent, for there to be another
STEPS, SLICES = 20, 40  # of the first-order method, between restarts; of these, at most
LEAST_GAIN, PATIENCE = 5e-4, 3  # of the values, in a slice, for it to count; slices without one
MARGIN = 1e-9  # of values: more than rounding can add up to


@dataclass(frozen=True, eq=False)
class DominationRowBound(RowBound):
    """Values [k] of what reductions leave, over `one`."""

    value: int
    reduced: DominationsReduced
    weights: np.ndarray | None
    values: np.ndarray
    one: int
    method: str = METHOD

    @property
    def lower(self) -> int:
        """What sets of the rest cost."""
        return -(-int(self.values.sum()) // self.one)

    @property
    def proof(self) -> DominationProof:
        """The steps of the reductions, and the values as a packing."""
        reduced, weights = self.reduced, self.weights
        packing = Packing(
            self.lower, METHOD, self.values, self.one, None if weights is None else weights[reduced.nodes],
            reduced.needed[reduced.nodes], reduced.allowed[reduced.nodes],
        )  # fmt: skip
        return DominationProof(reduced.steps, packing, True)

    def check(self, group: Group, graph: Graph) -> None:
        """By the steps and the values. Ranks: all call."""
        check_dominations(group, graph, self.weights, self.reduced)
        check_values(group, self.reduced, self.weights, self.values, self.one)


def bound_dominations(
    group: Group, reduced: DominationsReduced, weights: np.ndarray | None, rounds: Rounds
) -> DominationRowBound:
    """A bound of the graph of which `reduced` is left. Ranks: all call; the same on any number of ranks where
    no clock ends the rounds.
    """
    nodes = reduced.nodes
    price = np.ones(len(nodes), dtype=np.int64) if weights is None else weights[nodes]
    one = min(ONE, 1 << (LARGEST // max(int(price.sum()), 1)).bit_length() - 1)
    packing = _Packing(
        group, renumbered(reduced.own, nodes), price, one, reduced.needed[nodes], reduced.allowed[nodes]
    )
    values = packing.ascended(packing.first_order(rounds), rounds)
    chosen = np.count_nonzero(reduced.chosen) if weights is None else weights[reduced.chosen].sum()
    return DominationRowBound(int(chosen) - (-int(values.sum()) // one), reduced, weights, values, one)


class _Packing:
    """The own rows of a packing of closed neighbourhoods, whose nodes have one number each on all ranks.

    room [n] int64, what the values around a node may add up to     needed, allowed [n] bool
    """

    def __init__(
        self, group: Group, rows: OwnRows, price: np.ndarray, one: int, needed: np.ndarray,
        allowed: np.ndarray,
    ) -> None:  # fmt: skip
        self.group, self.rows, self.one, self.needed, self.allowed = group, rows, one, needed, allowed
        self.room, self.mine = price * one, rows.nodes
        shape = (len(rows.nodes), rows.n)
        self.table = csr_array((np.ones(len(rows.indices)), rows.indices, rows.indptr), shape=shape)
        self.mean = max(float(price.mean()), 1.0) if len(price) else 1.0
        self.price = price / self.mean

    def _around(self, values: np.ndarray) -> np.ndarray:
        """[k] float64, sums of values [n] over the closed neighbourhoods of own nodes."""
        return self.table @ values + values[self.mine]

    def _everywhere(self, own: np.ndarray) -> np.ndarray:
        return everywhere(self.group, own)

    def first_order(self, rounds: Rounds) -> np.ndarray:
        """[n] int64, values that fit, by as many slices as gain something. Ranks: all call."""
        need, may = self.needed[self.mine], self.allowed[self.mine]
        step_y = need / np.maximum(self._around(self.allowed.astype(np.float64)), 1.0)
        step_x = may / np.maximum(self._around(self.needed.astype(np.float64)), 1.0)
        x, y = self._everywhere(step_x * 0.0), self._everywhere(step_y * 0.0)
        best, most, idle = np.zeros(self.rows.n, dtype=np.int64), 0, 0
        for _ in range(SLICES):
            if idle == PATIENCE or not rounds.another():
                break
            sum_x, sum_y, made = np.zeros(len(self.mine)), np.zeros(len(self.mine)), 0
            while made < STEPS and not (made and rounds.late()):
                y_own = np.maximum(y[self.mine] + step_y * (1.0 - self._around(x)), 0.0)
                after = self._everywhere(y_own)
                ahead = self._around(2 * after - y)
                x_own = np.maximum(x[self.mine] + step_x * (ahead - self.price[self.mine]), 0.0)
                x, y = self._everywhere(x_own), after
                sum_x += x_own
                sum_y += y_own
                made += 1
            x, y = self._everywhere(sum_x / made), self._everywhere(sum_y / made)
            values = self._fitted(y)
            idle = 0 if int(values.sum()) > (1 + LEAST_GAIN) * most else idle + 1
            if int(values.sum()) > most:
                best, most = values, int(values.sum())
        return best

    def _fitted(self, y: np.ndarray) -> np.ndarray:
        """[n] int64, values y [n] in units of the mean price cut down until they fit."""
        over = np.where(self.allowed[self.mine], self._around(y) / self.price[self.mine], 0.0)
        load = self._everywhere(over)
        near = -_least_near(self.rows, -load, 0.0)
        worst = self._everywhere(np.maximum(np.maximum(near, over), 1.0))
        return np.floor(y / worst * ((1 - MARGIN) * self.mean * self.one)).astype(np.int64)

    def ascended(self, values: np.ndarray, rounds: Rounds) -> np.ndarray:
        """[n] int64, values [n] that fit, raised as far as they can be. Ranks: all call."""
        rows, mine, values = self.rows, self.mine, values.copy()
        rising, may = self.needed.copy(), self.allowed[mine]
        room = self.room[mine] - rows.sums(values) - values[mine]
        while rounds.another():
            count = rows.sums(rising.astype(np.int64)) + rising[mine]
            offer = np.where(may & (count > 0), room // np.maximum(count, 1), LARGEST)
            least = np.minimum(_least_near(rows, self._everywhere(offer), LARGEST), offer)
            least = np.where(rising[mine] & (least < LARGEST), least, 0)
            rise = self._everywhere(least)
            values += rise
            room -= np.where(may, rows.sums(rise) + rise[mine], 0)
            rising &= rise > 0
            if not rising.any() or int(rise.sum()) <= LEAST_RISE * int(values.sum()):
                break
        return values


def _least_near(rows: OwnRows, values: np.ndarray, none: float) -> np.ndarray:
    """[k] the least of the values [n] of the columns of each row; `none` of no column."""
    return row_least(rows.indptr, values[rows.indices], none)
