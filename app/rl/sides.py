"""SidesEnv: nodes on one of two sides, chosen to change sides, with exact weighted fields."""

import math
from collections import deque
from typing import Any

import numpy as np

from app.comm.group import Group
from app.errors import CaseError, LockstepError
from app.native import sides
from app.native.sides import SideCodes, SideSteps
from app.problems.problem import GRAIN_PARTS, Problem
from app.rl.env import NONE_REACHED
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock
from app.sparse.whole_weights import WholeWeights, whole_weights

Array = Any
NEVER = np.int64(1 << 40)  # moves since the last one of a node that has not moved
MOST_PARTS = 1 << 20  # of a grain: fields are cut here
_CODES: dict[type, SideCodes] = {}  # of problems


class SidesEnv:
    """Marks m(v) = +-1 and fields m(v) sum_u w(v,u) m(u), on the rows this rank owns.

    A problem says how marks start (`start_marks`). A choice turns the marks of the chosen nodes; the field of
    v is what turning v adds to the weight between the sides. Problems see fields in parts of a *grain*
    (`grain_of`, GRAIN_PARTS), rounded away from zero, and of each node how many *rests* ago it moved
    (Problem.rest, in moves; Problem.code takes it as `age`). The clock counts moves, not transitions, so that
    nodes that move together rest for no longer than those that move one by one.

    mark_own    [n_own] int32, zero on padding     mark_ext [n_ext] int8, those of the ghost columns too
    field_own   [n_own] int64, in units of the weights     parts_own [n_own] int32, in parts of a grain
    clock       moves so far, and transitions in which every node rested
    moved_at    [n_own] int32, the clock after a node's last move, less one (one at a time: the transition);
                -1 before
    rest        moves that a node may not move again for, 0: Problem.code alone decides who may
    chosen_at   [n_own] int32: as of the best state, the last move of the nodes of mark -1 (0: they started
                there), and -1 for others
    """

    compiled = ""
    gathers, spreads = True, False

    def __init__(self, group: Group, block: RowBlock, problem: Problem, scan: bool = False) -> None:
        if scan:
            raise CaseError('train.environment: "scan" finds isolated nodes, which "residual" dynamics have')
        self.group, self.block, self.problem = group, block, problem
        self.weights = whole_weights(group, block)
        self.follows = not problem.ordered
        self.steps = self.chosen = self.clock = 0
        self.rest = problem.rest(block.n)
        self._resting: deque[tuple[int, int]] = deque()  # (moved_at, nodes) of transitions, the oldest first
        self.touched, self.gone = NONE_REACHED[:, 0], NONE_REACHED[:, 0]
        self.mark_ext = start_marks(problem, block)
        self.mark_own = self.mark_ext[block.own_at : block.own_at + block.n_own].astype(np.int32)
        self.field_own = self.mark_own * _sums_near(block, self.weights, self.mark_ext.astype(np.int64))
        self.moved_at = np.full(block.n_own, -1, dtype=np.int32)
        self.chosen_at = np.where(self.mark_own < 0, np.int32(0), self.moved_at)
        self._since_best: list[np.ndarray] = []
        self.grain = grain_of(block, self.weights)
        self.parts_own = in_parts(self.field_own, self.grain).astype(np.int32)
        self._table = side_codes(problem)
        whole = group.size == 1 and block.plan.mode == "none" and sides.available()
        self._steps = self._make_steps() if whole and hasattr(problem, "change") else None
        sums = group.sum_integers(problem.shares(self.mark_own, self.field_own)).tolist()
        first = problem.totals(*sums, 0, 0, self.weights.signed, block.edges, self.grain)
        self.totals = first._replace(best=first.cut)

    def _make_steps(self) -> SideSteps:
        """Compiled steps on the arrays of this state."""
        matrix = self.weights.matrix
        rows = self.block.host_rows() if matrix is None else (matrix.indptr, matrix.indices)
        arrays = self.mark_own, self.mark_ext, self.field_own, self.parts_own
        grain = self.grain, GRAIN_PARTS, MOST_PARTS
        return SideSteps(rows, None if matrix is None else matrix.data, arrays, grain)

    @property
    def done(self) -> bool:
        """True when the episode is over."""
        return self.problem.done(self.totals)

    @property
    def value(self) -> float:
        """The objective of the best state so far."""
        best = self.problem.objective(self.chosen, self.totals)
        unit = self.weights.unit * self.problem.unit_share
        return best if unit == 1 else best * unit

    def codes_own(self, rows: Any = slice(None)) -> np.ndarray:
        """int32 codes of own rows, those that a choice needs."""
        return self._codes(rows, None)

    def all_codes_own(self) -> np.ndarray:
        """[n_own] int32 codes: every node has an embedding anyway."""
        return self.codes_own()

    def _codes(self, rows: Any, real: np.ndarray | None) -> np.ndarray:
        if self._table is not None and real is None:
            arrays = (each[rows] for each in (self.mark_own, self.parts_own, self.moved_at))
            return self._table.codes(*map(np.ascontiguousarray, arrays), self.clock, max(self.rest, 1))
        moved = self.moved_at[rows]
        age = np.where(moved < 0, NEVER, self.clock - 1 - moved) // max(self.rest, 1)
        return self.problem.code(np, self.mark_own[rows], self.parts_own[rows], real, age)

    def candidates_own(self) -> np.ndarray:
        """Local numbers of the own nodes that may be chosen, ascending."""
        return np.flatnonzero(self.codes_own() >= self.problem.first_candidate)

    def apart(self, ordered: np.ndarray) -> np.ndarray:
        """All of the nodes [k]."""
        return ordered

    def reached_own(self, nodes: np.ndarray) -> np.ndarray:
        """Nothing: every rank knows the marks of its extended columns."""
        return NONE_REACHED

    def choose_own(self, nodes: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """Move nodes [k] (global, distinct) to their other side; fields follow.

        Cost      the degrees of the nodes, not the size of the graph
        """
        block = self.block
        if self._steps is not None:
            change, self.touched = self._steps.step(np.ascontiguousarray(nodes, dtype=np.int64))
            self._count(nodes, nodes)
            return self.problem.change(*change)
        at = block.extended_of(nodes)
        near = [self._near(int(v), int(column)) for v, column in zip(nodes, at)]
        own = nodes[(nodes >= block.lo) & (nodes < block.lo + block.n_real)] - block.lo
        self.touched = rows = block.each_once([own, *(found for found, _ in near)])
        before = self.problem.shares(self.mark_own[rows], self.field_own[rows])
        for v, column, (found, weights) in zip(nodes.tolist(), at.tolist(), near):
            if column < 0:
                continue
            turned = -2 * int(self.mark_ext[column]) * self.mark_own[found].astype(np.int64)
            self.field_own[found] += turned * weights
            self.mark_ext[column] = -self.mark_ext[column]
            if block.owns(v):
                self.field_own[v - block.lo] *= -1
                self.mark_own[v - block.lo] *= -1
        self.parts_own[rows] = in_parts(self.field_own[rows], self.grain)
        self._count(nodes, own)
        return self.problem.shares(self.mark_own[rows], self.field_own[rows]) - before

    def _count(self, nodes: np.ndarray, own: np.ndarray) -> None:
        """Nodes [k] (global), `own` of this rank's rows among them, have moved."""
        self.chosen += len(nodes)
        self.clock += max(len(nodes), 1)
        self.moved_at[own] = self.clock - 1
        self._since_best.append(own)
        if self.rest:
            self._resting.append((self.clock - 1, len(nodes)))

    def _near(self, node: int, column: int) -> tuple[np.ndarray, Any]:
        """The own rows adjacent to a global node, and the weights of these edges (1: all one)."""
        matrix = self.weights.matrix
        if matrix is None:
            return self.block.neighbours_own(node), 1
        if column < 0:
            return NONE_REACHED[:, 0], 1
        part = slice(matrix.indptr[column], matrix.indptr[column + 1])
        return matrix.indices[part], matrix.data[part]

    def settle(self, change: np.ndarray) -> None:
        """Close the step with the change of the sums over ranks; keep the sides where they are the best."""
        sums = [int(t + c) for t, c in zip(self.totals, change)]
        moved = self.problem.totals(*sums, *self.totals[len(sums) :])
        self.steps += 1
        may = moved.candidates + self._rested()
        self.totals = moved._replace(candidates=may, steps=self.clock, best=max(moved.best, moved.cut))
        if moved.cut > moved.best:
            rows = np.concatenate(self._since_best)
            self.chosen_at[rows] = np.where(self.mark_own[rows] < 0, self.moved_at[rows], -1)
            self._since_best = []

    def _rested(self) -> int:
        """Nodes whose rest ended with the last transition, less those whose rest began."""
        if not self.rest:
            return 0
        ended = 0
        while self._resting and self._resting[0][0] + self.rest < self.clock:
            ended += self._resting.popleft()[1]
        return ended - self._resting[-1][1]

    def smaller(self, group: Group, block: RowBlock, rows: np.ndarray) -> "SidesEnv":
        """Not met: every node keeps its embedding, so there is nothing to compact."""
        raise LockstepError(f"{self.block.name}: states with two sides do not shrink")

    @staticmethod
    def replayed(
        problem: Problem, batch: StateBatch, before: list[np.ndarray], after: list[np.ndarray], every: bool
    ) -> tuple[Array, Array]:
        """[rows] int32 codes of the states before and after; see GraphEnv.replayed. Ranks: all call.

        One product in float32, exact; where it might not be, sums of int64 on the host.
        """
        start = [start_marks(problem, b)[b.own_at : b.own_at + b.n_own] for b in batch.blocks]
        start = np.concatenate([np.repeat(marks, count) for marks, count in zip(start, batch.counts)])
        rests = np.array([max(problem.rest(block.n), 1) for block in batch.blocks])
        rest = np.repeat(rests, np.diff(batch.at))
        first, then = (_moves(batch, choices, start, rest) for choices in (before, after))
        marks = np.stack([first[0], then[0]], axis=1)
        fields = _fields_in_parts(batch, marks)
        put, xp = batch.device.put, batch.device.xp
        marks = put(marks)
        return tuple(
            problem.code(xp, marks[:, i], fields[:, i], None, put(age))
            for i, age in enumerate((first[1], then[1]))
        )


def side_codes(problem: Problem) -> SideCodes | None:
    """Codes by ages, gains and sides in one table; None where a problem does not say which are alike."""
    if not sides.available() or not hasattr(problem, "largest_parts"):
        return None
    name = type(problem)
    if name not in _CODES:
        parts, ages = problem.largest_parts, problem.largest_age
        shape = ages + 1, 2 * parts + 1, 2
        age, gain, side = (each.reshape(-1) for each in np.indices(shape))
        code_of = problem.code(np, 1 - 2 * side, gain - parts, None, age)
        _CODES[name] = SideCodes(np.ascontiguousarray(code_of.reshape(shape), dtype=np.int32))
    return _CODES[name]


def grain_of(block: RowBlock, weights: WholeWeights) -> int:
    """The mean |weight| in units, rounded down, at least 1: what fields are measured in."""
    return max(1, weights.total // (2 * max(block.edges, 1)))


def in_parts(field: np.ndarray, grain: int) -> np.ndarray:
    """[k] fields in parts of a grain, rounded away from zero, within +-MOST_PARTS."""
    parts = field * GRAIN_PARTS
    return np.clip(np.where(parts > 0, -(-parts // grain), parts // grain), -MOST_PARTS, MOST_PARTS)


def start_marks(problem: Problem, block: RowBlock) -> np.ndarray:
    """[n_ext] int8, the first marks of the extended columns, zero on padding; kept with the block."""
    key = f"marks {problem.name}"
    if key not in block.kept:
        marks = np.zeros(int(block.rows.offsets[-1]), dtype=np.int8)
        marks[: block.n] = problem.start_marks(block.n)
        block.kept[key] = marks if block.columns is None else marks[block.columns]
    return block.kept[key].copy()


def _sums_near(block: RowBlock, weights: WholeWeights, marks_ext: np.ndarray) -> np.ndarray:
    """[n_own, ...] int64, the weighted sums over neighbours of marks [n_ext, ...] int64."""
    if weights.matrix is not None:
        return weights.matrix @ marks_ext
    counts, columns, _ = block.extended_rows(np.arange(block.n_own))
    # Sums of integers below 2^53 are exact in float64.
    rows = np.repeat(np.arange(block.n_own), counts)
    near = marks_ext.reshape(len(marks_ext), math.prod(marks_ext.shape[1:]))[columns]
    sums = [np.bincount(rows, each, block.n_own) for each in near.T]
    return np.stack(sums, axis=1).astype(np.int64).reshape(block.n_own, *marks_ext.shape[1:])


def _moves(
    batch: StateBatch, choices: list[np.ndarray], start: np.ndarray, rest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """[rows] float32 marks after some choices, and the rests [rows] since each row's last move (host)."""
    lengths = [len(c) for c in choices]
    states = np.repeat(np.arange(batch.states), lengths)
    rows = batch.row_of(states, np.concatenate(choices))
    ages = np.concatenate([np.arange(k)[::-1] for k in lengths])
    held = rows >= 0
    rows, ages = rows[held], ages[held]
    times = np.bincount(rows, minlength=batch.rows)
    mark = start * (1 - 2 * (times % 2)).astype(np.float32)
    age = np.full(batch.rows, NEVER)
    np.minimum.at(age, rows, ages)
    return mark, (age // rest).astype(np.float32)


def _fields_in_parts(batch: StateBatch, marks: np.ndarray) -> Array:
    """[rows, 2] float32 on the device, fields of marks [rows, 2] in parts of a grain. Ranks: all call."""
    held = [whole_weights(batch.group, block) for block in batch.blocks]
    grains = [grain_of(block, weights) for block, weights in zip(batch.blocks, held)]
    if not all(weights.exact for weights in held):
        return batch.device.put(_fields_on_host(batch, marks, held, grains))
    xp, put = batch.device.xp, batch.device.put
    sums = batch.exchange.multiply(put(marks), _signed_parts(batch.blocks))
    per_row = np.repeat(np.arange(len(held)), np.diff(batch.at))
    unit = put(np.array([w.unit for w in held], dtype=np.float32)[per_row][:, None])
    grain = put(np.array(grains, dtype=np.float32)[per_row][:, None])
    field = put(marks) * (sums[0] - sums[1] if len(sums) > 1 else sums[0]) / unit * np.float32(GRAIN_PARTS)
    # The quotient of integers below 2^24 never rounds to a whole number that it is not.
    rounded = xp.where(field > 0, -xp.floor(-field / grain), xp.floor(field / grain))
    return xp.minimum(xp.maximum(rounded, -MOST_PARTS), MOST_PARTS)


def _signed_parts(blocks: list[RowBlock]) -> list[list[Any]]:
    """Of each graph the matrix of positive weights and, where a graph has any, of negated negative ones."""
    parts = [block.A_weights or [block.A, None] for block in blocks]
    return parts if any(minus is not None for _, minus in parts) else [[plus] for plus, _ in parts]


def _fields_on_host(
    batch: StateBatch, marks: np.ndarray, held: list[WholeWeights], grains: list[int]
) -> np.ndarray:
    """_fields_in_parts by sums of int64. Ranks: all call."""
    out = np.zeros(marks.shape, dtype=np.float32)
    for g, (block, weights, grain) in enumerate(zip(batch.blocks, held, grains)):
        part = slice(batch.at[g], batch.at[g + 1])
        own = np.ascontiguousarray(marks[part].reshape(block.n_own, 2 * batch.counts[g]).astype(np.int64))
        field = own * _sums_near(block, weights, block.extend_host(batch.group, own))
        out[part] = in_parts(field, grain).reshape(-1, 2)
    return out
