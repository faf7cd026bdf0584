"""Environments: the row-partitioned state of one episode, played and told again from its choices.

`GraphEnv` plays problems on residual graphs (RL4GO section 4.4, in O(degree) per step), app/rl/field.py
those on marks and sums of marks, app/rl/core_env.py those on 2-cores. A problem names its environment by
`dynamics`.
"""

import math
from operator import add
from typing import Any, Protocol

import numpy as np

from app.comm.group import Group
from app.graphs.keys import sorted_set
from app.native import residual
from app.native.residual import ResidualSteps
from app.problems.problem import Problem, StateTotals
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

Array = Any
RULED_OUT = -2  # in chosen_at: a node that cannot be chosen any more
NONE_REACHED = np.empty((0, 2), dtype=np.int64)
FEW_ROWS = 32  # of a rank, that others are told in one message with how many there are


class Environment(Protocol):
    """The state of one episode on the rows this rank owns.

    problem      what it plays
    chosen_at    [n_own] int32   the transition at which a node was chosen, -1 before, RULED_OUT for never;
                 what Problem.solution_of reads
    totals       exact integers of the whole graph, the same on all ranks
    steps, chosen   transitions made, and nodes chosen in them
    touched      local numbers of the own rows whose code the last choice may have changed
    gone         global nodes, the same on all ranks, that the last choice left without an embedding; rows
                 that only their owner knows to have lost theirs are among `touched`
    compiled     the name under which incremental.c knows these steps, "" where it does not
    follows      True where few rows change in a step, so that scores can follow
    gathers      True where ranks must be told what a choice reaches on the others
    spreads      True where what was reached reaches more: reached_own is asked again, of the nodes that the
                 ranks named the last time, until no rank names any
    value        where every state is a solution, the objective of the best so far; None: only the last one
                 is, and its objective is the number of nodes in it
    """

    problem: Problem
    block: RowBlock
    chosen_at: np.ndarray
    totals: StateTotals
    steps: int
    chosen: int
    touched: np.ndarray
    gone: np.ndarray
    compiled: str
    follows: bool
    gathers: bool
    spreads: bool
    value: float | None

    @property
    def done(self) -> bool:
        """True when the solution is complete."""
        ...

    def codes_own(self, rows: Any = slice(None)) -> np.ndarray:
        """int32 codes (Problem.code) of own rows, those that a choice needs."""
        ...

    def all_codes_own(self) -> np.ndarray:
        """[n_own] int32 codes that give every node an embedding."""
        ...

    def candidates_own(self) -> np.ndarray:
        """Local numbers of the own nodes that may be chosen, ascending."""
        ...

    def apart(self, ordered: np.ndarray) -> np.ndarray:
        """Of candidates [k] (global), best first, those that are worth choosing in one step. Ranks: all call;
        identical on all.
        """
        ...

    def reached_own(self, nodes: np.ndarray) -> np.ndarray:
        """[k, 2] int64, what every rank has to know of a choice of nodes [k] (global) and only this one does.

        The first column is an own node (global), ascending.
        """
        ...

    def choose_own(self, nodes: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """Choose nodes [k] (global), with what reached_own of all ranks gave, in order of the ranks.

        returns   [T] int64, this rank's share of the change of `totals`; pass the sum over ranks to `settle`
        """
        ...

    def settle(self, change: np.ndarray) -> None:
        """Close the step with the change of `totals` summed over ranks."""
        ...

    def smaller(self, group: Group, block: RowBlock, rows: np.ndarray) -> "Environment":
        """This state on a graph that has the own rows `rows` [k] alone, first in `block`. Ranks: all call."""
        ...


class NodeEnv:
    """What environments share: the counters of an episode, and totals that are sums of shares."""

    spreads = False

    def __init__(self, group: Group, block: RowBlock, problem: Problem) -> None:
        self.group, self.block, self.problem = group, block, problem
        self.chosen_at = np.full(block.n_own, -1, dtype=np.int32)
        self.steps = self.chosen = 0
        self.touched, self.gone = NONE_REACHED[:, 0], NONE_REACHED[:, 0]

    def _total(self, mark_own: np.ndarray, field_own: np.ndarray) -> StateTotals:
        """The totals of the first state. Ranks: all call."""
        shares = self.group.sum_integers(self.problem.shares(mark_own, field_own))
        return self.problem.totals(*shares.tolist())

    @property
    def done(self) -> bool:
        """True when the solution is complete."""
        return self.problem.done(self.totals)

    def settle(self, change: np.ndarray) -> None:
        """Close the step with the change of `totals` summed over ranks."""
        self.totals = self.problem.totals(*map(add, self.totals, np.asarray(change).tolist()))
        self.steps += 1

    def ran(self, totals: tuple[int, ...], steps: int) -> None:
        """Close `steps` choices of one node that were made compiled: the first of the totals are told."""
        kept = min(len(totals), len(self.totals))
        self.totals = self.problem.totals(*totals[:kept], *self.totals[kept:])
        self.steps, self.chosen = self.steps + steps, self.chosen + steps

    def apart(self, ordered: np.ndarray) -> np.ndarray:
        """All of the candidates [k]: what one is worth hardly depends on the others."""
        return ordered

    def owned(self, nodes: np.ndarray) -> np.ndarray:
        """Local numbers of those of the global nodes [k] that this rank owns."""
        local = nodes - self.block.lo
        return local[(local >= 0) & (local < self.block.n_real)]


class GraphEnv(NodeEnv):
    """The residual graph after removing chosen nodes, and where the problem is closed their neighbours.

    scan         True: find new isolated nodes by the paper's scan of the local edges, for comparison only
    degree_own   [n_own] int32   live degrees; 0 for removed, isolated and padding rows: a candidate has > 0
    """

    compiled = "residual"
    value = None

    def __init__(self, group: Group, block: RowBlock, problem: Problem, scan: bool = False) -> None:
        super().__init__(group, block, problem)
        self.scan, self.follows, self.gathers = scan, not scan, problem.closed
        self._whole = residual.available() and group.size == 1 and block.plan.mode == "none" and not scan
        self._steps: ResidualSteps | None = None
        self.degree_own = block.degrees_own()
        self.totals = self._total(self.marks_own(), self.degree_own)
        if scan:
            counts, self._target = block.global_rows(np.arange(block.n_own))
            self._source = np.repeat(np.arange(block.lo, block.lo + block.n_own), counts)
            self._edge_live = np.ones(len(self._source), dtype=bool)

    def marks_own(self) -> np.ndarray:
        """[n_own] int32, one for nodes that were not removed, zero on padding."""
        mark = (self.chosen_at == -1).astype(np.int32)
        mark[self.block.n_real :] = 0
        return mark

    def codes_own(self, rows: Any = slice(None)) -> np.ndarray:
        """int32 codes of own rows, those that a choice needs."""
        degree = self.degree_own[rows]
        return self.problem.code(np, degree, degree)

    def all_codes_own(self) -> np.ndarray:
        """[n_own] int32 codes that give every node an embedding."""
        real = (np.arange(self.block.n_own) < self.block.n_real).astype(np.int32)
        return self.problem.code(np, self.marks_own(), self.degree_own, real)

    def candidates_own(self) -> np.ndarray:
        """Local numbers of the own nodes that may be chosen, ascending."""
        return np.flatnonzero(self.degree_own)

    def reached_own(self, nodes: np.ndarray) -> np.ndarray:
        """The own nodes with live edges next to the chosen ones, where the problem removes these too."""
        if not self.gathers or not len(nodes):
            return NONE_REACHED
        rows = self.block.adjacent_own(nodes)[0]
        if len(nodes) > 1:
            rows = sorted_set(rows)
        rows = rows[self.degree_own[rows] > 0].astype(np.int64) + self.block.lo
        if len(nodes) > 1:  # of one they are its neighbours, which it is not among
            rows = np.setdiff1d(rows, nodes, assume_unique=True)
        return np.stack([rows, np.full(len(rows), -1)], axis=1)

    def choose_own(self, nodes: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """Remove nodes [k] (global), and those reached, from the rows of this rank.

        Cost      the degrees of the removed nodes, not the size of the graph
        """
        block, degree = self.block, self.degree_own
        removed = np.concatenate([nodes, reached[:, 0]]) if len(reached) else nodes
        if self._whole:
            return self._choose_whole(removed, len(nodes))
        own = self.owned(removed)
        rows, _ = block.adjacent_own(removed)
        before = self._shares(own)
        degree[own] = 0
        self.chosen_at[own] = self.steps
        if len(reached):
            self.chosen_at[self.owned(reached[:, 0])] = RULED_OUT
        rows = rows[degree[rows] > 0]
        lost = 1
        if len(removed) > 1:
            rows, lost = np.unique(rows, return_counts=True)
        before += self._shares(rows)
        new = (degree[rows] - lost).astype(np.int32)
        isolated = self._scan_isolated(rows, removed) if self.scan else 0
        degree[rows] = new
        self.touched, self.gone = np.concatenate([rows, own]), removed
        self.chosen += len(nodes)
        change = self._shares(rows) - before
        if self.scan:
            change[0] = -isolated - int(before[0]) + len(rows)
        return change

    def _choose_whole(self, removed: np.ndarray, chosen: int) -> np.ndarray:
        """The same by compiled steps: nodes [k] leave, of which the first `chosen` were chosen."""
        removed = np.ascontiguousarray(removed, dtype=np.int64)
        change, rows = self._steps_whole().step(removed, chosen, self.steps)
        self.touched = np.concatenate([rows if len(removed) == 1 else sorted_set(rows), removed])
        self.gone = removed
        self.chosen += chosen
        return change[: len(self.totals)]

    def _steps_whole(self) -> ResidualSteps:
        """Compiled steps on the arrays of now."""
        if self._steps is None or self._steps.degree is not self.degree_own:
            worth = _worth_by_degree(self.problem, self.block)
            self._steps = ResidualSteps(*self.block.host_rows(), self.degree_own, self.chosen_at, worth)
        return self._steps

    def _shares(self, rows: np.ndarray) -> np.ndarray:
        """[T] what own rows add to the totals."""
        return self.problem.shares(self.chosen_at[rows] == -1, self.degree_own[rows])

    def smaller(self, group: Group, block: RowBlock, rows: np.ndarray) -> "GraphEnv":
        """The residual graph is a graph. Ranks: all call."""
        return GraphEnv(group, block, self.problem)

    def _scan_isolated(self, rows: np.ndarray, removed: np.ndarray) -> int:
        """The paper's two scans: delete edges of removed nodes, then look for neighbours with none left."""
        for v in removed:
            self._edge_live &= (self._source != v) & (self._target != v)
        return sum(not np.any(self._edge_live & (self._source == row + self.block.lo)) for row in rows)

    @staticmethod
    def replayed(
        problem: Problem, batch: StateBatch, before: list[np.ndarray], after: list[np.ndarray], every: bool
    ) -> tuple[Array, Array]:
        """[rows] int32 codes of the states after `before`, and after `after`, for a batch of states.

        before, after   for each state the choices that led to it, in order; `after` begins with `before`
        every           True: every node gets an embedding
        Ranks           all call; one product, two where the problem is closed
        """
        xp = batch.device.xp
        mark0 = batch.alive_mask(before)
        mark1 = batch.alive_mask([late[len(early) :] for early, late in zip(before, after)], mark0)
        marks = xp.stack([mark0, mark1], axis=1)
        if problem.closed:
            marks = outside(batch, marks)
        field = batch.times(marks) * marks
        real = batch.alive_mask([np.empty(0, np.int64)] * batch.states) if every else None
        return tuple(problem.code(xp, marks[:, i], field[:, i], real) for i in (0, 1))


def _worth_by_degree(problem: Problem, block: RowBlock) -> np.ndarray:
    """[degrees] int64, what nodes of the block add to the third of the totals; kept with it."""
    key = f"worth {problem.name}"
    if key not in block.kept:
        block.kept[key] = problem.worth(np.arange(1 + block.max_degree)).astype(np.int64)
    return block.kept[key]


def objective_of(env: Environment) -> float:
    """The objective of the solution so far, of the graph's own weights, or the points as they were given."""
    if env.value is not None:
        return env.value
    found, metric = env.problem.objective(env.chosen, env.totals), env.block.metric
    if metric is None and (unit := getattr(env, "unit", 1)) != 1:
        return round(found * unit, 3 - min(math.floor(math.log10(unit)), 0))  # in parts of their mean
    return found if metric is None or metric.unit == 1 else found * metric.unit


def outside(batch: StateBatch, marks: Array) -> Array:
    """[rows, f] marks, cleared next to nodes whose mark is zero: what neither was chosen nor is adjacent.

    Ranks   all call; one product
    """
    xp = batch.device.xp
    real = batch.alive_mask([np.empty(0, np.int64)] * batch.states)[:, None]
    return marks * (batch.times(xp.ascontiguousarray(real - marks)) == 0)


def step_together(group: Group, envs: list[Environment], choices: list[np.ndarray]) -> None:
    """One transition of several environments with one sum over ranks. Ranks: all call."""
    reached = reach_together(group, envs, choices)
    if len(envs) == 1:
        envs[0].settle(group.sum_integers(envs[0].choose_own(choices[0], reached[0])))
        return
    changes = np.stack([env.choose_own(*args) for env, *args in zip(envs, choices, reached)])
    width = changes.shape[1]
    for env, change in zip(envs, group.sum_integers(changes.reshape(-1)).reshape(-1, width)):
        env.settle(change)


def reach_together(group: Group, envs: list[Environment], choices: list[np.ndarray]) -> list[np.ndarray]:
    """For each environment [k, 2] what its choice reaches on all ranks, in order of the ranks.

    Ranks   all call; one gathering where the environments need it, one for each round where they spread
    """
    if not any(env.gathers for env in envs):
        return [NONE_REACHED] * len(envs)
    rounds = [_reached_next(group, envs, choices)]
    while group.size > 1 and envs[0].spreads and any(map(len, rounds[-1])):
        rounds.append(_reached_next(group, envs, [reached[:, 0] for reached in rounds[-1]]))
    return rounds[0] if len(rounds) == 1 else [np.concatenate(reached) for reached in zip(*rounds)]


def _reached_next(group: Group, envs: list[Environment], nodes: list[np.ndarray]) -> list[np.ndarray]:
    """For each environment [k, 2] what some nodes reach, in order of the ranks. Ranks: all call."""
    own = [env.reached_own(each) for env, each in zip(envs, nodes)]
    if group.size == 1:
        return own
    counts, rows = _gather_few(group, np.array([len(r) for r in own]), np.concatenate(own))
    if not len(rows):
        return [NONE_REACHED] * len(envs)
    owner = np.repeat(np.tile(np.arange(len(envs)), group.size), counts.reshape(-1))
    return [rows[owner == i] for i in range(len(envs))]


def _gather_few(group: Group, counts: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[size, k] counts and [m, 2] rows of all ranks: in one message where each has few. Ranks: all call.

    counts   [k], which add up to the rows [m_own, 2] int64 of this rank
    """
    told, first = np.zeros(len(counts) + 2 * FEW_ROWS, dtype=np.int64), rows[:FEW_ROWS].reshape(-1)
    told[: len(counts)] = counts
    told[len(counts) : len(counts) + len(first)] = first
    counts_all, first_all = np.split(group.gather_integers(told), [len(counts)], axis=1)
    sizes = counts_all.sum(axis=1).tolist()
    if max(sizes) > FEW_ROWS:
        return counts_all, group.gather_host(rows, sizes)
    return counts_all, np.concatenate([each[: 2 * m] for each, m in zip(first_all, sizes)]).reshape(-1, 2)


def codes_of(envs: list[Environment], every: bool = False) -> np.ndarray:
    """[rows] int32 codes of a batch that has one state per environment (host)."""
    if not every and all(type(env) is GraphEnv for env in envs):  # one look at all of them
        degree = np.concatenate([env.degree_own for env in envs])
        return envs[0].problem.code(np, degree, degree)
    codes = [env.all_codes_own() if every else env.codes_own() for env in envs]
    return np.concatenate(codes) if len(codes) > 1 else codes[0]
