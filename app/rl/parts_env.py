"""PartsEnv: the large components of what choices leave of a graph, kept across ranks."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.comm.group import Group
from app.errors import CaseError
from app.problems.problem import Problem
from app.rl.core_env import CoreEnv
from app.rl.env import NONE_REACHED, RULED_OUT, NodeEnv
from app.rl.forest import part_sizes_own, parts_ext
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

Array = Any
LOOKS = 1 << 12  # nodes that a step may look at one by one: beyond, all components are found anew


class PartsEnv(CoreEnv):
    """The graph without the chosen nodes and without components of at most `most` nodes.

    A choice takes nodes out; then components that have become small fall: no node of them has to be chosen.
    What is left depends on the set of the choices alone. A component has more than one node, so that nodes
    with live neighbours are those that are left, as in a 2-core.

    degree_own   [n_own] int32, live neighbours; 0 outside large components and on padding
    totals       with `most`, which no choice changes

    Ranks        a rank follows a component from where it lost a node, on its own rows: with more than `most`
                 nodes it stays, within its borders with fewer it falls. Where any rank cannot tell, all of
                 them find the components of all that is left (parts_ext). All call choose_own
    Cost         of a choice, as many nodes as a small component has for each neighbour, or all that is left
    """

    compiled = "parts"
    spreads = False

    def __init__(
        self, group: Group, block: RowBlock, problem: Problem, scan: bool = False, most: int = 0
    ) -> None:
        """most   nodes of a component that falls, where all are larger; 0: the problem's, some may fall"""
        if scan:
            raise CaseError('train.environment: "scan" finds isolated nodes, which "residual" dynamics have')
        NodeEnv.__init__(self, group, block, problem)
        self.scan, self.follows, self.gathers = False, True, False
        self.degree_own = block.degrees_own()
        self._border = block.boundary_own() if group.size > 1 else np.zeros(block.n_own, dtype=bool)
        self._before = np.full(block.n_own, -1, dtype=np.int32)  # degrees at the last state, of touched rows
        self._touched: list[np.ndarray] = []
        self.most = most or problem.finest(block.n)
        if not most:
            small = small_parts(group, block, np.arange(block.n_own) < block.n_real, self.most)
            self.chosen_at[small] = RULED_OUT
            self.degree_own[small] = 0
        self.totals = self._total(self.marks_own(), self.degree_own)._replace(most=self.most)

    def reached_own(self, nodes: np.ndarray) -> np.ndarray:
        """Nothing: ranks tell each other in choose_own."""
        return NONE_REACHED

    def choose_own(self, nodes: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """Take nodes [k] (global) out, and components that this makes small. Ranks: all call."""
        own = self.owned(nodes)
        self._touch(own)
        self.degree_own[own] = 0
        self.chosen_at[own] = self.steps
        self.chosen += len(nodes)
        rows, lost = np.unique(self.block.adjacent_own(nodes)[0], return_counts=True)
        alive = self.degree_own[rows] > 0
        rows = rows[alive]
        self._touch(rows)
        self.degree_own[rows] -= lost[alive].astype(np.int32)
        small = self._small_near(rows)
        unsure = np.array([small is None], dtype=np.int64)
        if self.group.size > 1:
            unsure = self.group.sum_integers(unsure)
        if unsure[0]:
            kept = self.degree_own > 0
            kept[rows] = True  # those that have lost all neighbours, too
            small = small_parts(self.group, self.block, kept, self.most)
        self._touch(small)
        self.degree_own[small] = 0
        self.chosen_at[small] = RULED_OUT
        return self._settle_touched()

    def _small_near(self, rows: np.ndarray) -> np.ndarray | None:
        """Own rows of small components next to own rows [k] that are left; None: that is not to be told here,
        or by too many looks.
        """
        if len(rows) * (self.most + 1) > LOOKS:
            return None
        large: set[int] = set()
        small: dict[int, None] = {}
        for row in rows.tolist():
            if row in small or row in large:
                continue
            part, known = self._part_of(row, large)
            if known:
                large.update(part)
            elif self._border[part].any():
                return None
            else:
                small |= dict.fromkeys(part)
        return np.array(list(small), dtype=np.int64)

    def _part_of(self, row: int, large: set[int]) -> tuple[list[int], bool]:
        """Own rows that are joined with an own row on this rank, and whether their component is large; then
        only some of them.

        large   own rows that are known to be in large components
        """
        block, part, met = self.block, [row], {row}
        for each in part:
            rows = block.neighbours_own(block.lo + each)
            for near in rows[self.degree_own[rows] > 0].tolist():
                if near in large:
                    return part, True
                if near not in met:
                    met.add(near)
                    part.append(near)
            if len(part) > self.most:
                return part, True
        return part, False

    def smaller(self, group: Group, block: RowBlock, rows: np.ndarray) -> "PartsEnv":
        """What is left is a graph of large components. Ranks: all call."""
        return PartsEnv(group, block, self.problem, most=self.most)

    @staticmethod
    def replayed(
        problem: Problem, batch: StateBatch, before: list[np.ndarray], after: list[np.ndarray], every: bool
    ) -> tuple[Array, Array]:
        """[rows] int32 codes of the states before and after; see GraphEnv.replayed.

        Ranks   all call; on several of them the components of one state after the other
        """
        xp, device = batch.device.xp, batch.device
        mark0 = batch.alive_mask(before)
        mark1 = batch.alive_mask([late[len(early) :] for early, late in zip(before, after)], mark0)
        marks = np.stack([device.get(mark0), device.get(mark1)], axis=1)
        kept = device.put(_in_large_parts(problem, batch, marks))
        field = batch.times(kept) * kept
        real = batch.alive_mask([np.empty(0, np.int64)] * batch.states) if every else None
        return tuple(problem.code(xp, kept[:, i], field[:, i], real) for i in (0, 1))


def small_parts(group: Group, block: RowBlock, kept_own: np.ndarray, most: int) -> np.ndarray:
    """[k] own rows in components of at most `most` nodes among those kept [n_own] bool. Ranks: all call."""
    size_own = part_sizes_own(group, block, parts_ext(group, block, kept_own[: block.n_real]))
    return np.flatnonzero((size_own > 0) & (size_own <= most))


def _in_large_parts(problem: Problem, batch: StateBatch, marks: np.ndarray) -> np.ndarray:
    """[rows, f] float32, marks [rows, f] without those in small components of the marked. Ranks: all call."""
    kept = np.zeros_like(marks)
    large = _large_whole if batch.group.size == 1 else _large_split
    for block, first, last in zip(batch.blocks, batch.at, batch.at[1:]):
        own = marks[first:last].reshape(block.n_own, -1) > 0  # [n_own, states f]
        found = large(batch.group, block, own, problem.finest(block.n))
        kept[first:last] = found.reshape(-1, marks.shape[1])
    return kept


def _large_whole(group: Group, block: RowBlock, own: np.ndarray, most: int) -> np.ndarray:
    """[n_own, c] bool, nodes in components of more than `most` nodes among those of each column."""
    columns = own.shape[1]
    counts, near, _ = block.extended_rows(np.arange(block.n_own))
    rows = np.repeat(np.arange(block.n_own), counts)
    one = rows < near
    rows, near = rows[one].astype(np.int64), near[one].astype(np.int64)
    at, column = np.nonzero(own[rows] & own[near])
    ends = rows[at] * columns + column, near[at] * columns + column
    pattern = sp.coo_array((np.ones(len(at), dtype=np.int8), ends), shape=(own.size,) * 2)
    part = connected_components(pattern.tocsr(), directed=False)[1]
    return own & (np.bincount(part)[part] > most).reshape(own.shape)


def _large_split(group: Group, block: RowBlock, own: np.ndarray, most: int) -> np.ndarray:
    """The same of rows of several ranks. Ranks: all call."""
    kept = own.copy()
    for column in range(own.shape[1]):
        kept[small_parts(group, block, own[:, column], most), column] = False
    return kept
