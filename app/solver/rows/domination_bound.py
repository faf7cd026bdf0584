"""A lower bound of dominating sets on row partitions, where no rank holds what reductions leave.

Dual ascent: every node that is to be dominated has a value, and the values in the closed neighbourhood of a
node that may be chosen add up to its price at most; so a dominating set costs at least as much as all values
(app/bounds/domination/packing.py). Round by round a node that may be chosen offers what is left of its price
in equal parts to those around it whose values may still rise, and these rise by the least offer. All numbers
are whole.
"""

from dataclasses import dataclass

import numpy as np

from app.bounds.domination.packing import LARGEST, ONE, Packing
from app.comm.group import Group
from app.graphs.graph import Graph
from app.proofs.kinds import DominationProof
from app.solver.rows.domination_check import check_dominations, check_values
from app.solver.rows.dominations import DominationsReduced
from app.solver.rows.kinds import RowBound
from app.solver.rows.own import OwnRows, Rounds, everywhere, renumbered, row_least

METHOD = "reductions, dual ascent on rows"
LEAST_RISE = 1e-4  # of all values, in a round, for there to be another


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
    values = _ascended(
        group, renumbered(reduced.own, nodes), price * one, reduced.needed[nodes], reduced.allowed[nodes],
        rounds,
    )  # fmt: skip
    chosen = np.count_nonzero(reduced.chosen) if weights is None else weights[reduced.chosen].sum()
    return DominationRowBound(int(chosen) - (-int(values.sum()) // one), reduced, weights, values, one)


def _ascended(
    group: Group, rows: OwnRows, room: np.ndarray, needed: np.ndarray, allowed: np.ndarray, rounds: Rounds
) -> np.ndarray:
    """[n] int64, values that fit the `room` [n] of the nodes that are allowed, of those that are needed."""
    values, rising, mine = np.zeros(rows.n, dtype=np.int64), needed.copy(), rows.nodes
    room_own, may = room[mine], allowed[mine]
    while rounds.another():
        count = rows.sums(rising.astype(np.int64)) + rising[mine]
        offer = np.where(may & (count > 0), room_own // np.maximum(count, 1), LARGEST)
        offers = everywhere(group, offer)
        least = np.minimum(_least_near(rows, offers), offer)
        least = np.where(rising[mine] & (least < LARGEST), least, 0)
        rise = everywhere(group, least)
        values += rise
        room_own -= np.where(may, rows.sums(rise) + rise[mine], 0)
        rising &= rise > 0
        if not rising.any() or int(rise.sum()) <= LEAST_RISE * int(values.sum()):
            break
    return values


def _least_near(rows: OwnRows, values: np.ndarray) -> np.ndarray:
    """[k] int64, the least of the values [n] of the columns of each row; LARGEST of none."""
    return row_least(rows.indptr, values[rows.indices], LARGEST)
