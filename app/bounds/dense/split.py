"""Upper bounds on the weight inside sets of exactly k nodes: shares of edges, and cases.

Each edge e shares one * w_e whole units, of whatever sign, between its ends, c_uv at u and c_vu at v. A set S
of k nodes has in it

    one W(S)  =  sum over u of S of (sum over the others v of S of c_uv)  <=  sum over u of S of r_u,

r_u being the most that k - 1 others are worth to u, 0 where they are no neighbours; and that is at most what
the k largest r_u add up to. This is the Lagrangian of the first level of the reformulation-linearisation of
the problem, without multipliers of pairs that are no edges (Adams and Sherali 1986; the bound of Gilmore and
Lawler for fixed shares). Subgradient steps of Polyak's length look for the shares of least bound: those of an
edge whose ends both take the other stay, where one of them does the share moves to the other.

Cases say of a node that it is in S, or is not (state of app/bounds/dense/rows.py); the bound of all is the
largest of the cases that are left, and that one is divided next, at the node that is taken by about half of
what takes it.
"""

import ctypes
import heapq
import time
from dataclasses import dataclass, replace

import numpy as np

from app.bounds.dense.balance import Balance
from app.bounds.dense.rows import BARRED, FORCED, FREE, best_rows, row_values
from app.bounds.dense.split_witness import SplitBound
from app.bounds.dense.witness import shares_of
from app.graphs.dense import DenseGraph
from app.native.library import address, function
from app.toolbox import Bounds

FINEST, LARGEST = 1 << 20, 1 << 58  # units to one of weight; of all shares together
FIRST, LATER = 300, 30  # subgradient steps of the first case, and of each other one
PATIENCE, SHORTEST = 12, 1e-3  # steps without a better bound after which they are halved; the least factor
ROUNDS, ENTRIES = 8, 1 << 21  # of peeling, before the first step, and what all of them look at, about
TABLE = 1 << 22  # shares of all cases together
CHECK_SECONDS = 5e-7  # of a check, for each entry of each case
Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ROWS = function(
    "lk_dense_rows",
    Long,
    Pointer,
    Pointer,
    Pointer,
    Pointer,
    Long,
    Long,
    Long,
    Pointer,
    Pointer,
    returns=Long,
)


@dataclass(frozen=True, eq=False)
class Case:
    """Sets of which some nodes are said to be, or not to be.

    state   [n] uint8     held   [nnz] int64, shares     total   the bound, in units
    node    the best one to say more of, -1: none is free

    """

    state: np.ndarray
    held: np.ndarray
    total: int
    node: int


class SplitBounds(Bounds):
    """The bound of all cases; a graph whose weights may have any sign, `count` nodes of which are chosen."""

    closing, near = True, 1.0

    def __init__(
        self, graph: DenseGraph, count: int, forced: np.ndarray, compiled: bool = True, branch: bool = True
    ) -> None:
        """forced   [n] bool     branch   False: no cases"""
        self.graph, self.count, self.compiled = graph, count, compiled and ROWS is not None
        total = sum(np.abs(graph.weight).tolist())
        self.one = max(min(FINEST, LARGEST // max(total * max(graph.n, 1), 1)), 1)
        self.first = np.flatnonzero(graph.indices > graph.rows())  # entries of the lower rows
        self.second = graph.twin[self.first]
        state = forced.astype(np.uint8)
        self._course = _Course(self, state, self._begun(state))
        self._steps, self._branch = FIRST, branch
        self._open: list[tuple[int, int]] = []  # minus the bound of a case, and its number
        self._cases: list[Case] = []
        self._kids: dict[int, tuple[int, int, int]] = {}  # of a case that is divided: the node, in, out
        self._parent: int | None = None  # whose cases are under way
        self._left: list[np.ndarray] = []  # their states
        self._most = max(TABLE // max(len(self.first), 1), 1)

    # ---- shares --------------------------------------------------------------------------------------------

    def _begun(self, state: np.ndarray) -> np.ndarray:
        """[nnz] int64, halves, or the loads of some rounds of peeling where these are better."""
        graph, whole = self.graph, self.one * self.graph.weight
        halves = np.zeros(len(whole), dtype=np.int64)
        halves[self.first] = whole[self.first] // 2
        halves[self.second] = whole[self.first] - halves[self.first]
        if not len(whole) or (graph.weight < 0).any():
            return halves
        balance = Balance(replace(graph, size=np.ones(graph.n, dtype=np.int64)), None, self.compiled)
        rounds = max(1, min(ROUNDS, ENTRIES // len(whole)))
        for _ in range(rounds):
            balance.round()
        loads = np.zeros(len(whole), dtype=np.int64)
        # So few rounds: products stay far below 63 bits.
        loads[self.first] = balance.held[self.first] * self.one // rounds
        loads[self.second] = whole[self.first] - loads[self.first]
        return min(halves, loads, key=lambda held: self.judged(held, state)[0])

    def judged(self, held: np.ndarray, state: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
        """The bound of shares in units, which rows it counts [n] bool, and which entries these take [nnz]."""
        graph = self.graph
        if self.compiled:
            sums, taken = np.zeros(graph.n, dtype=np.int64), np.zeros(len(held), dtype=np.uint8)
            free, forced = int((state == FREE).sum()), int((state == FORCED).sum())
            done = ROWS(
                graph.n, address(graph.indptr), address(graph.indices), address(held), address(state), free,
                forced, self.count - 1, address(sums), address(taken),
            )  # fmt: skip
            if done < 0:
                raise MemoryError("rows")
            found = taken.view(bool)
        else:
            sums, found = row_values(graph, held, state, self.count - 1)
        total, chosen = best_rows(sums, state, self.count)
        return total, chosen, found & np.repeat(chosen, np.diff(graph.indptr))

    # ---- bounds --------------------------------------------------------------------------------------------

    @property
    def value(self) -> int:
        """The best bound so far."""
        tops = [-key for key, _ in self._open[:1]]
        if self._parent is not None:
            tops.append(self._cases[self._parent].total)
        elif not self._cases:
            tops.append(self._course.best)
        return max(tops) // self.one

    @property
    def method(self) -> str:
        """How it was found."""
        return f"shares of edges, {len(self._kids) + 1} cases" if self._kids else "shares of edges"

    @property
    def check_seconds(self) -> float:
        """An estimate of what a check takes."""
        return CHECK_SECONDS * len(self.graph.indices) * (len(self._kids) + 1)

    @property
    def gaining(self) -> bool:
        """Whether the first shares are still getting better."""
        return not self._cases

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long; False: the best is proved, or there is no room for more cases."""
        end = time.perf_counter() + seconds
        while self.value > best:
            if self._course.over(self._steps, best):
                if not self._next(best):
                    return False
            else:
                self._course.step(best)
            if time.perf_counter() >= end:
                break
        return self.value > best

    def _next(self, best: int) -> bool:
        """The case under way is over: the next one; False: there is none."""
        number = len(self._cases)
        self._cases.append(self._course.case())
        heapq.heappush(self._open, (-self._cases[number].total, number))
        if self._parent is not None and self._left:
            self._course = _Course(self, self._left.pop(), self._cases[self._parent].held)
            return True
        if self._parent is not None:
            node = self._cases[self._parent].node
            self._kids[self._parent] = node, number - 1, number
            self._cases[self._parent] = replace(self._cases[self._parent], held=np.zeros(0, dtype=np.int64))
            self._parent = None
        key, number = self._open[0]
        case = self._cases[number]
        if -key // self.one <= best or case.node < 0 or not self._branch or len(self._kids) + 2 > self._most:
            return False
        heapq.heappop(self._open)
        self._parent, self._steps = number, LATER
        states = [case.state.copy() for _ in range(2)]
        states[0][case.node], states[1][case.node] = BARRED, FORCED
        self._course = _Course(self, states.pop(), case.held)
        self._left = states
        return True

    def optimum(self) -> np.ndarray | None:
        """[n] bool, a best set, where the case of the largest bound has no other."""
        if self._parent is not None or not self._open:
            return None
        case = self._cases[self._open[0][1]]
        if case.node >= 0 or case.total < self.value * self.one:
            return None
        room = self.count - int((case.state == FORCED).sum())
        return case.state == FORCED if not room else case.state != BARRED

    def proof(self) -> SplitBound:
        """What proves the bound: the tree of cases, and the shares of each that is not divided."""
        if not self._cases:
            course = self._course
            return self._certified([course.best_held], [-1])
        rows: list[np.ndarray] = []
        tree: list[int] = []
        stack = [0]
        while stack:
            number = stack.pop()
            if number in self._kids:
                node, within, without = self._kids[number]
                tree.append(node)
                stack += [without, within]
            else:
                rows.append(self._cases[number].held)
                tree.append(-1)
        return self._certified(rows, tree)

    def _certified(self, rows: list[np.ndarray], tree: list[int]) -> SplitBound:
        shares = np.array([shares_of(self.graph, held) for held in rows], dtype=np.int64)
        return SplitBound(self.value, self.method, self.one, shares, np.array(tree, dtype=np.int64))


class _Course:
    """Subgradient steps of one case.

    best, best_held   the least bound in units, and the shares that prove it

    """

    def __init__(self, owner: SplitBounds, state: np.ndarray, held: np.ndarray) -> None:
        self.owner, self.state = owner, state
        self.held = self.best_held = held.copy()
        self.steps, self._factor, self._waited = 0, 1.0, 0
        self._chances = np.zeros(owner.graph.n, dtype=np.int64)
        self._look()

    def _look(self) -> None:
        """The bound of the shares as they are."""
        total, chosen, taken = self.owner.judged(self.held, self.state)
        self._now, self._taken = total, taken
        self._chances += chosen
        if not self.steps or total < self.best:
            self.best, self.best_held, self._waited = total, self.held.copy(), 0
        else:
            self._waited += 1

    def over(self, most: int, best: int) -> bool:
        """Whether it has made all steps, or its bound is at most `best`, or steps are too small."""
        return self.steps >= most or self.best // self.owner.one <= best or self._factor < SHORTEST

    def step(self, best: int) -> None:
        """A step of Polyak's length towards the value `best`."""
        owner, held = self.owner, self.held.copy()
        move = self._taken[owner.first].astype(np.int64) - self._taken[owner.second]
        norm = int(np.abs(move).sum())
        self.steps += 1
        if not norm:
            self._factor = 0.0
            return
        length = int(self._factor * (self._now - best * owner.one) / (2 * norm))
        length = min(max(length, 1), LARGEST)  # so that shares stay within 63 bits
        held[owner.first] -= length * move
        held[owner.second] += length * move
        if int(np.abs(held).max()) * owner.graph.n >= LARGEST << 2:  # as SplitBound.check has it
            self._factor = 0.0
            return
        self.held = held
        self._look()
        if self._waited >= PATIENCE:
            self._factor, self._waited, self.held = self._factor / 2, 0, self.best_held.copy()
            self._look()

    def case(self) -> Case:
        """What has become of it."""
        free = np.flatnonzero(self.state == FREE)
        room = self.owner.count - int((self.state == FORCED).sum())
        node = -1
        if len(free) and 0 < room < len(free):
            chance = self._chances[free] / max(int(self._chances.max()), 1)
            node = int(free[np.abs(chance - 0.5).argmin()])
        return Case(self.state, self.best_held, self.best, node)
