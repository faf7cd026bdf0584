"""FieldEnv: states of small integer marks on nodes, and the sums of the neighbours' marks."""

from typing import Any

import numpy as np

from app.comm.group import Group
from app.errors import CaseError
from app.graphs.keys import sorted_set
from app.problems.problem import Problem
from app.rl.env import NodeEnv
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

Array = Any


class FieldEnv(NodeEnv):
    """Marks m and fields c(v) = sum of m(u) over the neighbours u of v, on the rows this rank owns.

    A mark starts as 1. A choice changes the marks of the chosen nodes, and where the problem is closed of
    their neighbours, by Problem.mark_change; the fields of neighbours follow. A node keeps its field
    whatever its own mark. Problem.mark says what mark a node has that was chosen so many times, next to so
    many choices.

    mark_own, field_own   [n_own] int32, zero on padding
    """

    follows = gathers = True
    value = None

    def __init__(
        self,
        group: Group,
        block: RowBlock,
        problem: Problem,
        scan: bool = False,
        mark_own: np.ndarray | None = None,
    ) -> None:
        if scan:
            raise CaseError('train.environment: "scan" finds isolated nodes, which "residual" dynamics have')
        super().__init__(group, block, problem)
        if mark_own is None:
            self.mark_own = (np.arange(block.n_own) < block.n_real).astype(np.int32)
            self.field_own = block.degrees_own()
        else:
            self.mark_own, self.field_own = mark_own, sums_near(group, block, mark_own)
        self.totals = self._total(self.mark_own, self.field_own)
        self.compiled = problem.compiled_field

    def codes_own(self, rows: Any = slice(None)) -> np.ndarray:
        """int32 codes of own rows, those that a choice needs."""
        return self.problem.code(np, self.mark_own[rows], self.field_own[rows])

    def all_codes_own(self) -> np.ndarray:
        """[n_own] int32 codes that give every node an embedding."""
        real = (np.arange(self.block.n_own) < self.block.n_real).astype(np.int32)
        return self.problem.code(np, self.mark_own, self.field_own, real)

    def candidates_own(self) -> np.ndarray:
        """Local numbers of the own nodes that may be chosen, ascending."""
        return np.flatnonzero(self.codes_own() >= self.problem.first_candidate)

    def reached_own(self, nodes: np.ndarray) -> np.ndarray:
        """The own nodes whose marks the choice changes, and by how much."""
        block = self.block
        rows = self.owned(nodes)
        if self.problem.closed:
            rows = np.concatenate([rows, block.adjacent_own(nodes)[0]])
        rows = sorted_set(rows)
        change = self.problem.mark_change(self.mark_own[rows])
        return np.stack([rows + block.lo, change], axis=1).astype(np.int64)[change != 0]

    def choose_own(self, nodes: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """Choose nodes [k] (global): change the marks `reached`, and the fields next to them.

        Cost      the degrees of the nodes whose marks change, not the size of the graph
        """
        block = self.block
        self.chosen_at[self.owned(nodes)] = self.steps
        self.chosen += len(nodes)
        own = reached[(reached[:, 0] >= block.lo) & (reached[:, 0] < block.lo + block.n_real)]
        near, place = block.adjacent_own(reached[:, 0])
        changes = reached[place, 1]
        self.touched = rows = block.each_once([own[:, 0] - block.lo, near])
        before = self._shares(rows)
        self.mark_own[own[:, 0] - block.lo] += own[:, 1].astype(np.int32)
        np.add.at(self.field_own, near, changes.astype(np.int32))
        return self._shares(rows) - before

    def _shares(self, rows: np.ndarray) -> np.ndarray:
        """[T] what own rows add to the totals."""
        return self.problem.shares(self.mark_own[rows], self.field_own[rows])

    def smaller(self, group: Group, block: RowBlock, rows: np.ndarray) -> "FieldEnv":
        """This state on the own rows `rows` [k] alone: their marks go along. Ranks: all call."""
        mark_own = np.zeros(block.n_own, dtype=np.int32)
        mark_own[: len(rows)] = self.mark_own[rows]
        return FieldEnv(group, block, self.problem, mark_own=mark_own)

    @staticmethod
    def replayed(
        problem: Problem, batch: StateBatch, before: list[np.ndarray], after: list[np.ndarray], every: bool
    ) -> tuple[Array, Array]:
        """[rows] int32 codes of the states before and after; see GraphEnv.replayed. Ranks: all call."""
        put, xp = batch.device.put, batch.device.xp
        real = batch.alive_mask([np.empty(0, np.int64)] * batch.states)
        count = put(np.stack([times_chosen(batch, before), times_chosen(batch, after)], axis=1))
        near = batch.times(count) if problem.closed else None
        marks = problem.mark(xp, count, near) * real[:, None]
        field = batch.times(marks)
        return tuple(problem.code(xp, marks[:, i], field[:, i], real if every else None) for i in (0, 1))


def times_chosen(batch: StateBatch, choices: list[np.ndarray]) -> np.ndarray:
    """[rows] float32 (host), how often each node of each state was chosen."""
    states = np.repeat(np.arange(batch.states), [len(nodes) for nodes in choices])
    rows = batch.row_of(states, np.concatenate(choices).astype(np.int64))
    return np.bincount(rows[rows >= 0], minlength=batch.rows).astype(np.float32)


def sums_near(group: Group, block: RowBlock, values_own: np.ndarray, kind: type = np.int32) -> np.ndarray:
    """[n_own] of a kind of integers, for each own row the sum over its neighbours. Ranks: all call."""
    values_ext = block.extend_host(group, values_own)
    counts, columns, _ = block.extended_rows(np.arange(block.n_own))
    rows = np.repeat(np.arange(block.n_own), counts)
    # Sums of integers below 2^53 are exact in float64.
    return np.bincount(rows, weights=values_ext[columns], minlength=block.n_own).astype(kind)
