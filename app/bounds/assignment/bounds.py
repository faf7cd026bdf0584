"""Lower bounds on quadratic assignments that improve in slices of time."""

import math
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from app.bounds.assignment.dual import Lean, State, least_assignment, parts_of, state_of
from app.bounds.assignment.spectral import SplitBound
from app.bounds.assignment.splitting import Splitting
from app.bounds.assignment.witness import (
    BY_DEGREES,
    BY_NODES,
    BY_PAIRS,
    AssignmentBound,
    by_rows,
    degree_sum,
    node_costs,
    tables_of,
)
from app.bounds.certificate import BadCertificate
from app.graphs.pairing import Quadratic
from app.toolbox import Bounds

MOST_NODES = 3000  # of bounds of each node by itself: beyond, a table of all pairs takes too much memory
MOST_PAIRS = 64  # of dual ascent: a sweep solves k^2 linear assignments of k - 1 nodes
LEAST_SPLIT, MOST_SPLIT = 13, 600  # of splits: cases of fewer nodes are soon done
SPLIT_STEPS, SWEEPS = 64, 8  # by turns
MOST_CASES = 24  # of cases: beyond, they are far too many
ROOT_SWEEPS, LEAST_GAIN = 2000, 1e-6  # of the first case: sweeps; what a sweep gains of the gap, at least
CASE_SWEEPS, CASE_GAIN = 40, 0.01  # of the others
KEPT_BYTES = 64 << 20  # of the multipliers of all cases
TABLE_SECONDS, PRODUCT_SECONDS = 3e-8, 2e-10  # of bounds by nodes: for each pair; of those of rows, by width
CHECK_SECONDS, STEP_SECONDS = 8e-9, 4e-9  # of a split: for each of k^3
NONE = np.zeros(0, dtype=np.int64)


class AssignmentBounds(Bounds):
    """Bounds by degrees or by nodes at once; then by a split, for few nodes by dual ascent, and by cases."""

    closing, near = True, 1.0

    def __init__(self, core: Quadratic, compiled: bool = True, most_bytes: float = math.inf) -> None:
        self.core, self.compiled, self.most_bytes = core, compiled, most_bytes
        self._proof: AssignmentBound | SplitBound | None = None
        self._stage, self._root, self._cases = 0, None, None
        self._splitting: Splitting | None = None
        self._pieces = 0  # of work, while there is a split
        self._plain = False  # whether degrees tell as much as nodes, and eigenvalues less
        self.found: np.ndarray | None = None
        self._found_cost, self._known = 1 << 62, 1 << 62
        self._closed: tuple[int, str] | None = None  # what finished cases prove, and how, where none is kept

    @property
    def value(self) -> int:
        """The best bound so far, as far as any cost can be as low."""
        if self._closed is not None:
            return self._closed[0]
        return -(1 << 60) if self._proof is None else self._proof.lower

    @property
    def method(self) -> str:
        """How it was found."""
        if self._closed is not None:
            return self._closed[1]
        return "" if self._proof is None else self._proof.method

    @property
    def gaining(self) -> bool:
        """Whether dual ascent, or its cases, may make the bound much better."""
        return self.core.k <= MOST_PAIRS or self._splits

    @property
    def early(self) -> bool:
        """Whether they get their share at once: searches of so few nodes are soon done."""
        return self.core.k <= MOST_PAIRS or self._splits

    @property
    def least_seconds(self) -> float:
        """An estimate of what a step of a split takes, once the first bounds are there."""
        return STEP_SECONDS * self.core.k**3 if self._stage and self._splits else 0.0

    @property
    def check_seconds(self) -> float:
        """An estimate of what a check takes."""
        k, proof = self.core.k, self._proof
        if isinstance(proof, SplitBound):
            return _seconds_by_nodes(self.core) + CHECK_SECONDS * k**3
        if proof is None or proof.by == BY_DEGREES:
            return 0.0
        if proof.by == BY_NODES:
            return _seconds_by_nodes(self.core)
        return 1e-8 * len(proof.rows) * k + 1e-3 * len(proof.branch)

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, knowing a cost `best`; False: nothing better is to come."""
        end, self._known = time.perf_counter() + seconds, best
        if self._stage == 0:
            self._stage = 1
            self._first()
            if time.perf_counter() >= end:
                return self.value < best
        while self.value < best:
            if not self._more(best):
                return False
            if time.perf_counter() >= end:
                return self.value < best
        return False

    def _more(self, best: int) -> bool:
        """A piece of work; False: there is none left."""
        if self._splits and not self._sweeps_now():
            return self._split(best)
        if self.core.k > MOST_PAIRS or self.core.k < 1:
            return False
        k = self.core.k
        if (
            8 * (k**4 * (1 if self._stage < 2 else k // 2 + 1) if k <= MOST_CASES else 4 * k**3)
            > self.most_bytes
        ):
            return False
        if self._stage == 1:
            return self._ascend(best) or self._splits
        if self._cases is None:
            if self.core.k > MOST_CASES:
                return False
            self._cases = Cases(self.core, self._root, self._one, self.compiled)
        return self._branch(best)

    def _sweeps_now(self) -> bool:
        """Whether dual ascent, which is beside a split until one of them is done, has its turn."""
        k = self.core.k
        self._pieces += 1
        room = k <= MOST_PAIRS and 8 * k**3 * max(4, k if k <= MOST_CASES else 0) <= self.most_bytes
        return self._stage == 1 and room and self._pieces % (SPLIT_STEPS + SWEEPS) > SPLIT_STEPS

    @property
    def _splits(self) -> bool:
        """Whether a split is to be found, or made better."""
        k, begun = self.core.k, self._splitting
        if begun is not None:
            return not begun.done
        return not self._plain and LEAST_SPLIT <= k <= MOST_SPLIT and 256 * k * k <= self.most_bytes

    def _split(self, best: int) -> bool:
        """A step of it."""
        if self._splitting is None:
            self._splitting = Splitting(self.core, self.compiled)
        self._splitting.step(best)
        proof = self._splitting.proof
        if proof is not None and proof.lower > self.value:
            self._proof = proof
        return True

    def _first(self) -> None:
        """Degrees where all weights are one number, else, or where that may tell more, each node alone."""
        core = self.core
        with suppress(BadCertificate):  # of other weights
            self._take(degree_sum(core), BY_DEGREES, NONE)
        large = core.k > MOST_NODES or 32 * core.k**2 > self.most_bytes
        self._plain = self._proof is not None and not core.linear.nnz
        if large or (self._plain and core.k > MOST_PAIRS):
            return
        costs = node_costs(core)
        top = least_assignment(costs, self.compiled)[1]
        self._take(by_rows(costs, top) + core.constant, BY_NODES, top)

    def _take(self, proved: int, kind: str, top: np.ndarray) -> None:
        lower = rounded(proved, self.core.scale)
        if lower > self.value:
            self._proof = AssignmentBound(lower, kind, kind, 1, top, NONE, NONE, NONE)

    def _ascend(self, best: int) -> bool:
        """A sweep at the root; cases follow where these gain little."""
        if self._root is None:
            tables = tables_of(self.core)
            self._one = parts_of(tables)
            if not self._one:  # numbers too large for products of them
                return False
            make = state_of if self._fits_cases else Lean
            self._root, self._sweeps = make(tables, self._one), 0
        root = self._root
        gained = root.sweep(self.compiled)
        self._sweeps += 1
        lower = rounded(-(-root.bound // self._one), self.core.scale)
        if lower > self.value:
            self._proof = AssignmentBound(
                lower, BY_PAIRS, BY_PAIRS, self._one, root.top.copy(), root.rows.flatten(),
                root.columns.flatten(), np.array([-1]),
            )  # fmt: skip
        gap = self._one * best - root.bound
        few = self._sweeps > 60 and gained < max(1, (CASE_GAIN if self._fits_cases else LEAST_GAIN) * gap)
        if few or self._sweeps >= ROOT_SWEEPS:
            self._stage = 2
        return True

    @property
    def _fits_cases(self) -> bool:
        return self.core.k <= MOST_CASES

    def _branch(self, best: int) -> bool:
        """A case; the bound is `best` where all are done.

        Where a better assignment has made the goal fall, all are done once more, faster, and kept.
        """
        cases = self._cases
        cases.step(min(best, self._found_cost))
        if cases.found is not None and cases.found_cost < self._found_cost:
            self.found, self._found_cost = cases.found, cases.found_cost
        if cases.more:
            return True
        lower = min(best, self._found_cost)
        method = f"{BY_PAIRS}, {cases.count} cases"
        if cases.kept is not None and cases.goal == lower:
            self._proof = AssignmentBound(lower, method, BY_PAIRS, self._one, *cases.multipliers())
            return False
        if not cases.full:
            self._cases = Cases(self.core, self._root, self._one, self.compiled)
            return True
        self._closed = lower, method
        if self._proof is not None:
            self._proof = replace(self._proof, checked=False)
        return False

    def optimum(self) -> np.ndarray | None:
        """[k] int64, an assignment that costs `value`, where cases have met one."""
        return self.found if self.found is not None and self._found_cost <= self.value else None

    def pieces(self) -> np.ndarray | None:
        """[k] int64, one that costs less than the caller's."""
        return self.found if self._found_cost < self._known else None

    def proof(self) -> AssignmentBound | SplitBound | None:
        """What proves the bound."""
        return self._proof


def rounded(proved: int, scale: int) -> int:
    """The least multiple of `scale`, which all costs are of, that is no smaller."""
    return -(-proved // scale) * scale


def _seconds_by_nodes(core: Quadratic) -> float:
    """An estimate of what node_costs takes."""
    width = min(core.k, *(int(np.diff(each.indptr).max(initial=0)) for each in (core.a, core.b)))
    return core.k**2 * (TABLE_SECONDS + PRODUCT_SECONDS * width)


class Cases:
    """Branch and bound: a node is put on each place in turn, where its state does not prove `goal` or more.

    The states of cases go on from where those above have got to. Cases are done in the order of a depth first
    search; where a better assignment is met the goal falls, and what is kept of cases that proved more stays
    right: they prove it still.

    more, count   whether there are cases left; how many there were
    found, found_cost   the best assignment that was met     goal   what is proved when none is left
    kept          multipliers and branches of the cases so far; None: the goal has fallen since, or
    full          they take too much memory
    """

    def __init__(self, core: Quadratic, root: State, one: int, compiled: bool) -> None:
        self.core, self.one, self.compiled = core, one, compiled
        self.goal, self.count, self._bytes = 1 << 62, 0, 0
        self.found: np.ndarray | None = None
        self.found_cost = 1 << 62
        self.kept: list[Any] | None = []
        self.full = False
        names = np.arange(core.k)
        self._todo: list[tuple[State, int, int, list[tuple[int, int]], np.ndarray, np.ndarray]] = [
            (root, -1, -1, [], names, names)
        ]

    @property
    def more(self) -> bool:
        """Whether there are cases left."""
        return bool(self._todo)

    def step(self, best: int) -> None:
        """One case, knowing a cost `best`."""
        if best < self.goal and self.count and self.kept is not None:
            self.kept = None  # branches were cut for another goal
        self.goal = min(self.goal, best)
        enough = self.one * (self.goal - self.core.scale) + 1
        above, i, x, path, rows, places = self._todo.pop()
        state = above if i < 0 else above.placed(i, x)
        if i >= 0:
            path = [*path, (int(rows[i]), int(places[x]))]
            rows, places = np.delete(rows, i), np.delete(places, x)
        self.count += 1
        for _ in range(CASE_SWEEPS if i >= 0 else 0):
            gap = enough - state.bound
            if gap <= 0 or state.sweep(self.compiled) < max(1, CASE_GAIN * gap):
                break
        self._meet(state, path, rows, places)
        chosen = -1
        if state.bound < enough and state.k:
            open_ = (state.bound + state.linear < enough).sum(axis=1)
            chosen = int(open_.argmin())
            left = np.flatnonzero(state.bound + state.linear[chosen] < enough)
            self._todo += [(state, chosen, y, path, rows, places) for y in left[::-1].tolist()]
        self._keep(state, chosen)

    def _meet(self, state: State, path: list[tuple[int, int]], rows: np.ndarray, places: np.ndarray) -> None:
        """The assignment that the costs of a state suggest."""
        p = np.empty(self.core.k, dtype=np.int64)
        for row, place in path:
            p[row] = place
        p[rows] = places[least_assignment(state.linear, self.compiled)[2]]
        cost = self.core.cost(p)
        if cost < self.found_cost:
            self.found, self.found_cost = p, cost

    def _keep(self, state: State, chosen: int) -> None:
        self._bytes += state.top.nbytes + state.rows.nbytes + state.columns.nbytes
        if self._bytes > KEPT_BYTES:
            self.kept, self.full = None, True
            return
        if self.kept is None:
            return
        self.kept.append((state.top.copy(), state.rows.ravel(), state.columns.ravel(), chosen))

    def multipliers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Those of all cases, one after the other, and their branches."""
        top, rows, columns, branch = zip(*self.kept)
        return np.concatenate(top), np.concatenate(rows), np.concatenate(columns), np.array(branch)
