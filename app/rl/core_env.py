"""CoreEnv: the 2-core of what choices leave of a graph, kept by cascades across ranks."""

from typing import Any

import numpy as np

from app.comm.group import Group
from app.errors import CaseError
from app.native import residual
from app.native.residual import ResidualSteps
from app.problems.problem import Problem
from app.rl.env import NONE_REACHED, RULED_OUT, GraphEnv, NodeEnv
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

Array = Any
LEAST_DEGREE = 2  # of a node that stays: one of fewer neighbours lies on no cycle
NO_ROWS = NONE_REACHED[:, 0]


class CoreEnv(GraphEnv):
    """The largest part of the graph without the chosen nodes in which every node has two neighbours or more.

    A choice takes nodes out; then nodes with at most one live neighbour fall, and those that this leaves with
    at most one, until there are none: no cycle goes through any of them. What is left is the same in whatever
    order they fall, so that a state depends on the set of the choices alone.

    degree_own   [n_own] int32, live neighbours; 0 outside the core and on padding
    chosen_at    RULED_OUT for nodes that fell

    Ranks        each follows a cascade on its own rows as far as it goes, then tells which of the fallen ones
                 other ranks hold as ghosts, and so on: a round of messages for each time that the cascade
                 crosses borders, none on one rank
    Cost         of a choice, the degrees of the nodes that leave with it, not the size of the graph
    """

    compiled = "core"
    spreads = True

    def __init__(
        self, group: Group, block: RowBlock, problem: Problem, scan: bool = False, peeled: bool = False
    ) -> None:
        """peeled   nodes with edges have two or more each: nothing falls at the start"""
        if scan:
            raise CaseError('train.environment: "scan" finds isolated nodes, which "residual" dynamics have')
        NodeEnv.__init__(self, group, block, problem)
        self.scan, self.follows, self.gathers = False, True, True
        self.degree_own = block.degrees_own()
        self._whole = residual.available() and group.size == 1 and block.plan.mode == "none"
        self._steps: ResidualSteps | None = None
        self._border = block.boundary_own() if group.size > 1 else np.zeros(block.n_own, dtype=bool)
        self._before = np.full(block.n_own, -1, dtype=np.int32)  # degrees at the last state, of touched rows
        self._touched: list[np.ndarray] = []
        if not peeled:
            self._peel_whole()
        self.totals = self._total(self.marks_own(), self.degree_own)

    def _peel_whole(self) -> None:
        """The 2-core of the whole graph. Ranks: all call; a gathering for each round."""
        few = np.flatnonzero(self.degree_own[: self.block.n_real] < LEAST_DEGREE)
        told = self._border_of([few, *self._cascade(few, NO_ROWS)])
        self.chosen_at[few] = RULED_OUT
        while len(told_all := self._gather(told)):
            told = self._border_of(self._cascade(NO_ROWS, self._lose_to_others(told_all)))
        self._settle_touched()

    def _gather(self, nodes: np.ndarray) -> np.ndarray:
        """The global nodes [k] of all ranks. Ranks: all call."""
        if self.group.size == 1:
            return NO_ROWS
        counts = self.group.gather_integers(np.array([len(nodes)]))[:, 0].tolist()
        return self.group.gather_host(nodes, counts)

    def reached_own(self, nodes: np.ndarray) -> np.ndarray:
        """The own nodes that fall when nodes [k] go, as far as others have to be told.

        Asked again of what all ranks have told, until none tells more (`spreads`); choose_own ends the step.

        nodes   of the choice, or those that ranks have told of
        """
        if self._whole:  # choose_own makes the whole step
            return NONE_REACHED
        own = self.owned(nodes)
        own = own[self.degree_own[own] > 0]  # those that this rank has told of are gone
        told = self._border_of(self._cascade(own, self._lose_to_others(nodes)))
        return np.stack([told, np.full(len(told), -1)], axis=1)

    def choose_own(self, nodes: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """End the step that takes nodes [k] (global) out, once their cascade is over."""
        if self._whole:
            change, self.touched = self._steps_whole().core_step(
                np.ascontiguousarray(nodes, dtype=np.int64), self.steps, LEAST_DEGREE
            )
            self.chosen += len(nodes)
            return change
        self.chosen_at[self.owned(nodes)] = self.steps
        self.chosen += len(nodes)
        return self._settle_touched()

    def _settle_touched(self) -> np.ndarray:
        """[T] what the rows touched since the last state add to the totals now, less what they added then."""
        self.touched = rows = self.block.each_once([NO_ROWS, *self._touched])
        before, after = self._before[rows], self.degree_own[rows]
        self._before[rows] = -1
        self._touched = []
        return self.problem.shares(after > 0, after) - self.problem.shares(before > 0, before)

    # ---- cascades ------------------------------------------------------------------------------------------

    def _lose_to_others(self, nodes: np.ndarray) -> np.ndarray:
        """Own rows next to other ranks' nodes among nodes [k], as often as they are."""
        block = self.block
        others = nodes[(nodes < block.lo) | (nodes >= block.lo + block.n_own)]
        return block.adjacent_own(others)[0] if len(others) else NO_ROWS

    def _cascade(self, gone: np.ndarray, losing: np.ndarray) -> list[np.ndarray]:
        """Own rows `gone` leave, and rows lose an edge as often as they are in `losing`; returns those that
        fall, wave by wave.
        """
        fallen: list[np.ndarray] = []
        self._touch(gone)
        self.degree_own[gone] = 0
        while True:
            if len(gone):
                losing = np.concatenate([losing, self.block.adjacent_own(gone + self.block.lo)[0]])
            rows = losing[self.degree_own[losing] > 0]
            if not len(rows):
                return fallen
            rows, lost = np.unique(rows, return_counts=True)
            self._touch(rows)
            self.degree_own[rows] -= lost.astype(np.int32)
            gone, losing = rows[self.degree_own[rows] < LEAST_DEGREE], NO_ROWS
            if not len(gone):
                return fallen
            self.degree_own[gone] = 0
            self.chosen_at[gone] = RULED_OUT
            fallen.append(gone)

    def _touch(self, rows: np.ndarray) -> None:
        """Keep the degrees of own rows, each named once, before they change for the first time in a step."""
        new = rows[self._before[rows] < 0]
        self._before[new] = self.degree_own[new]
        self._touched.append(new)

    def _border_of(self, fallen: list[np.ndarray]) -> np.ndarray:
        """[k] int64, ascending, the global nodes among own rows that other ranks hold."""
        rows = np.concatenate([NO_ROWS, *fallen])
        return np.sort(rows[self._border[rows]]) + self.block.lo

    # ---- other states --------------------------------------------------------------------------------------

    def smaller(self, group: Group, block: RowBlock, rows: np.ndarray) -> "CoreEnv":
        """What is left is a graph, and its own core. Ranks: all call."""
        return CoreEnv(group, block, self.problem, peeled=True)

    @staticmethod
    def replayed(
        problem: Problem, batch: StateBatch, before: list[np.ndarray], after: list[np.ndarray], every: bool
    ) -> tuple[Array, Array]:
        """[rows] int32 codes of the states before and after; see GraphEnv.replayed.

        Ranks   all call; a product and a sum for each wave of the longest cascade
        """
        xp = batch.device.xp
        mark0 = batch.alive_mask(before)
        mark1 = batch.alive_mask([late[len(early) :] for early, late in zip(before, after)], mark0)
        marks, field = cores(batch, xp.stack([mark0, mark1], axis=1))
        real = batch.alive_mask([np.empty(0, np.int64)] * batch.states) if every else None
        return tuple(problem.code(xp, marks[:, i], field[:, i], real) for i in (0, 1))


def cores(batch: StateBatch, marks: Array) -> tuple[Array, Array]:
    """The 2-cores of marked subgraphs: marks and live degrees, [rows, f] float32 each. Ranks: all call."""
    while True:
        field = batch.times(marks) * marks
        kept = marks * (field >= LEAST_DEGREE)
        fall = np.array([int((kept != marks).sum())])
        if not batch.group.sum_integers(fall)[0]:
            return marks, field
        marks = kept
