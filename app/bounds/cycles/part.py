"""Lower bounds of one part: packed rows, then a linear program that grows by rows, then branch and bound.

Every node of the tree has its own rounded duals, and its bound is what these prove (witness.py), never what
HiGHS says: a tree can be written at any time, and proved.
"""

import heapq
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.bounds.cycles.program import GrowingProgram
from app.bounds.cycles.witness import LARGEST, LEAF, TreeProof
from app.bounds.highs import available

PACKING, PROGRAM, TREE = "packed cycles", "linear program of cycles", "branch and bound"
LONGEST = 1 << 12  # nodes of a row, for which sums have room
PLACES = 20  # of values, in bits, where costs leave room
RELIABLE = 3  # tries of a division that tell enough
LITTLE = 1e-3  # of a mean cost: a rise of no less counts
SECONDS, LEAST_SECONDS = 60.0, 0.01  # of one linear program, at most, and where the time is up
WHOLE = 1e-6
Waiting = list[tuple[int, int, int, "Node"]]


@dataclass
class Node:
    """One of the tree: what is fixed in it, and what its rows prove.

    fixed      sides of divisions
    lower      what is proved, rounded up, or what the node above it has
    rows, values   its y, as multiples of 1/one; exact: what these prove, likewise
    children, divided   None, LEAF: a leaf
    """

    fixed: list[Any]
    lower: int
    rows: np.ndarray
    values: np.ndarray
    children: tuple["Node", "Node"] | None = None
    divided: int = LEAF
    exact: int = -1


class PartBounds(ABC):
    """The bounds of one part. A subclass says what rows and divisions are.

    nodes    [k] of the core, ascending       lower   no solution costs less in the part
    best     what the best solution known costs in it; solution: that one, of the part; None: none is known
    packing, searching   whether rows are being packed, or a linear program or a tree is at work
    done     nothing is left to try
    end      when, by time.perf_counter(), all has to be over

    tail, tail_below   a node is divided after so many rounds of rows that gain little: the root, another
    candidates, steps  divisions that are tried before a node is divided; simplex steps of a try
    """

    tail: int
    tail_below: int
    candidates: int
    steps: int
    program: GrowingProgram

    def __init__(self, nodes: np.ndarray, costs: np.ndarray) -> None:
        """costs   [c] int64, of the part alone"""
        self.nodes, self._total, self._mean = nodes, int(costs.sum()), float(costs.mean())
        room = LARGEST // (LONGEST * max(self._total, 1))
        self.one = 1 << max(min(PLACES, room.bit_length() - 1), 0)
        self.lower, self.method, self.done, self.best = 0, "", False, self._total
        self.solution: np.ndarray | None = None
        self.searching, self.packing, self.end = False, True, math.inf
        empty = np.zeros(0, dtype=np.int64)
        self._root = Node([], 0, empty, empty)
        self._rows: list[Any] = []
        self._ahead = 0  # the first of these, which are no rows of the program
        self._ptr, self._members = [0], []
        self._listing: Any = None  # what a subclass makes of all rows
        self._risen: dict[Any, tuple[list[float], list[float]]] = {}
        self._work = self._course()

    def offer(self, solution: np.ndarray) -> None:
        """A solution of the part."""
        cost = self._cost(solution)
        if cost < self.best or self.solution is None:
            self.best, self.solution = cost, solution.copy()

    def step(self) -> None:
        """A little work."""
        if self.lower >= self.best or next(self._work, None) is None:
            self.done = True

    # ---- what a subclass says ------------------------------------------------------------------------------

    @abstractmethod
    def _cost(self, solution: np.ndarray) -> int:
        """What a solution costs in the part."""

    @abstractmethod
    def _packings(self) -> Iterator[list[tuple[Any, int]]]:
        """Rows and values whose sums are at no column above its cost; all so far, again and again."""

    @abstractmethod
    def _begin_program(self) -> bool:
        """Make the program of the rows so far; False: the part is too large for one."""

    @abstractmethod
    def _violated(self) -> list[Any]:
        """Rows that the program's point violates; none: a solution follows from it, or none need be found."""

    @abstractmethod
    def _follow(self) -> None:
        """Offer a solution that follows the program's point, where there is one."""

    @abstractmethod
    def _gained(self) -> float:
        """A round of rows that gains no more gains little."""

    @abstractmethod
    def _divisions_of(self, node: Node) -> list[Any]:
        """What a node may be divided by, what may tell most first; none: all is decided."""

    @abstractmethod
    def _sides(self, division: Any) -> tuple[Any, Any]:
        """What the two subtrees of a division fix."""

    @abstractmethod
    def _number(self, division: Any) -> int:
        """Its number in the tree, from now on."""

    @abstractmethod
    def _fix(self, fixed: list[Any]) -> None:
        """The program has sides of divisions, and no others."""

    @abstractmethod
    def _nodes_of(self, row: Any) -> tuple[int, ...]:
        """The nodes of a row, in order."""

    @abstractmethod
    def _proved_by(self, rows: np.ndarray, values: np.ndarray, fixed: list[Any]) -> int:
        """What rows prove with some sides fixed, in multiples of 1/one."""

    @abstractmethod
    def _proof(self, used: np.ndarray, **shared: Any) -> TreeProof:
        """The proof, of what all have and rows `used` [r] alone."""

    def _without_point(self, node: Node) -> bool | None:
        """The program of a node has no point. Returns False where that is proved, None: it cannot be."""
        return None

    # ---- the course ----------------------------------------------------------------------------------------

    def _course(self) -> Iterator[bool]:
        for packed in self._packings():
            if len(packed) >= 2 * max(len(self._rows), 1) or not self.method:
                self._take_packed(packed)
            yield True
        self._take_packed(packed)
        self.packing = False
        yield True
        if available() and self._begin_program():
            yield from self._tree()

    def _take_packed(self, packed: list[tuple[Any, int]]) -> None:
        """What a packing proves, of which some rows are known."""
        self._take_rows([row for row, _ in packed[len(self._rows) :]])
        values = np.array([value for _, value in packed], dtype=np.int64) * self.one
        self._prove(self._root, np.arange(len(packed)), values)
        self.lower, self.method = self._root.lower, PACKING

    def _take_rows(self, rows: list[Any]) -> None:
        for row in rows:
            self._members += self._nodes_of(row)
            self._ptr.append(len(self._members))
        self._rows += rows
        self._listing = None

    def _tree(self) -> Iterator[bool]:
        """Branch and bound, the node with the least bound first."""
        counter, waiting = 0, [(self._root.lower, 0, 0, self._root)]
        self.searching = True
        while waiting:
            node = heapq.heappop(waiting)[3]
            self.method = TREE if node is not self._root else self.method
            result = yield from self._solve(node, waiting)
            if result is None:
                return
            if result and node.lower < self.best:
                children = yield from self._divided(node)
                if not children:
                    return
                for child in children:
                    counter += 1
                    heapq.heappush(waiting, (child.lower, -len(child.fixed), counter, child))
            self._lift(waiting)
            yield True

    def _lift(self, waiting: Waiting, at_work: int | None = None) -> None:
        """The least bound of open leaves is that of the part; closed ones reach the best solution."""
        least = min(waiting[0][0] if waiting else self.best, self.best if at_work is None else at_work)
        self.lower = max(self.lower, min(least, self.best))

    def _solve(self, node: Node, waiting: Waiting) -> Iterator[bool | None]:
        """Rows until they gain little; returns whether the node is to be divided, None: HiGHS fails."""
        program, idle, before = self.program, 0, -math.inf
        tail = self.tail if node is self._root else self.tail_below
        self._fix(node.fixed)
        while True:
            solved = program.solve(max(min(SECONDS, self.end - time.perf_counter()), LEAST_SECONDS))
            if not solved:
                return solved if solved is None else self._without_point(node)
            self._round_duals(node)
            if node is self._root:
                self.method = PROGRAM
            self._lift(waiting, node.lower)
            if node.lower >= self.best:
                return False
            added = program.add(self._violated())
            self._take_rows(program.rows[len(program.rows) - added :])
            if not added:
                self._follow()
                return True
            idle = 0 if program.value - before > self._gained() else idle + 1
            before = max(before, program.value)
            yield True
            if idle >= tail:
                self._follow()
                if (np.abs(program.point - np.rint(program.point)) > WHOLE).any():
                    return True

    # ---- divisions -----------------------------------------------------------------------------------------

    def _divided(self, node: Node) -> Iterator[bool]:
        """Two children by the division that tells most; returns them, or none where all is decided."""
        divisions, value = self._divisions_of(node), self.program.value
        if not divisions:
            return ()
        best, least = (-1.0, divisions[0]), LITTLE * self._mean
        for division in divisions if len(divisions) > 1 else ():
            gains = self._gains(node, division, value)
            yield True
            score = max(gains[0], least) * max(gains[1], least)
            if score > best[0] * (1 + WHOLE):
                best = score, division
        node.divided, children = self._number(best[1]), []
        for side in self._sides(best[1]):
            child = Node([*node.fixed, side], node.lower, node.rows, node.values)
            self._prove(child, node.rows, node.values)
            children.append(child)
        node.children = children[0], children[1]
        return node.children

    def _gains(self, node: Node, division: Any, value: float) -> tuple[float, float]:
        """By how much the program rises on the two sides of a division: tried, or as it did before."""
        known = self._risen.setdefault(division, ([], []))
        if min(map(len, known)) < RELIABLE:
            for rises, side in zip(known, self._sides(division)):
                self._fix([*node.fixed, side])
                reached = self.program.tried(self.steps)
                rises.append(float(self.best) if reached is None else max(reached - value, 0.0))
        return sum(known[0]) / len(known[0]), sum(known[1]) / len(known[1])

    # ---- what is proved ------------------------------------------------------------------------------------

    def _round_duals(self, node: Node) -> None:
        y = np.rint(np.minimum(self.program.duals, float(self._total)) * self.one).astype(np.int64)
        rows = np.flatnonzero(y)
        self._prove(node, rows + self._ahead, y[rows])

    def _prove(self, node: Node, rows: np.ndarray, values: np.ndarray) -> None:
        """Give a node what rows prove, where that is more than what it has."""
        found = self._proved_by(rows, values, node.fixed)
        if found > node.exact or not len(node.rows):
            node.exact, node.rows, node.values = found, rows, values
            node.lower = max(node.lower, -(-found // self.one))

    def witness(self) -> TreeProof:
        """The tree as it is, without the rows that no leaf has."""
        tree, leaf_ptr, rows, values = [], [0], [], []
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            tree.append(node.divided)
            if node.children is not None:
                waiting += [node.children[1], node.children[0]]
                continue
            rows.append(node.rows)
            values.append(node.values)
            leaf_ptr.append(leaf_ptr[-1] + len(node.rows))
        used, number = np.unique(np.concatenate(rows), return_inverse=True)
        kept = [self._nodes_of(self._rows[i]) for i in used.tolist()]
        return self._proof(
            used, lower=self.lower, method=self.method, nodes=self.nodes, one=self.one,
            ptr=np.append(0, np.cumsum([len(each) for each in kept])).astype(np.int64),
            row_nodes=np.array([v for each in kept for v in each], dtype=np.int64),
            tree=np.array(tree, dtype=np.int64), leaf_ptr=np.array(leaf_ptr, dtype=np.int64),
            leaf_rows=number.reshape(-1).astype(np.int64),
            leaf_values=np.concatenate(values).astype(np.int64),
        )  # fmt: skip

    def _listed(self) -> tuple[np.ndarray, np.ndarray]:
        """ptr [rows+1], nodes: all rows, one behind the other."""
        return np.array(self._ptr, dtype=np.int64), np.array(self._members, dtype=np.int64)
