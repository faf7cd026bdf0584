"""Lower bounds of one part: a packing of cycles, then the linear program, then branch and bound.

Every node of the tree has its own rounded duals, and its bound is what these prove (witness.py), never what
HiGHS says: a tree can be written at any time, and proved.
"""

import heapq
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.bounds.highs import available
from app.bounds.ordering.cycles import Finder, packed, triangles
from app.bounds.ordering.program import Cycle, Program
from app.bounds.ordering.witness import LARGEST, LEAF, OrderingPart, Pairs
from app.graphs.ordering import NetArcs, least_order

PACKING, PROGRAM, TREE = "packed cycles", "linear program of cycles", "branch and bound"
LONGEST = 1 << 12  # nodes of a cycle, for which sums have room
PLACES = 20  # of values, in bits, where weights leave room
DENSE_NODES, DENSE_SHARE = (
    250,
    0.2,
)  # of a part with a y for each pair: nodes at most, arcs of all pairs at least
MOST_ARCS = 60_000  # of a part with a linear program
ROWS_EACH = 6  # of a round, for each node, and:
LEAST_ROWS = 300
MOST_FIRST = 10_000  # packed cycles that are the first rows of a program with a y for each pair
# A node is divided after so many rounds of rows that gain less than this part of what it is worth.
TAIL, GAIN = 8, 1e-4
# Pairs that are tried before a node of the tree is divided, simplex steps of a try, tries that tell enough.
CANDIDATES, STEPS, RELIABLE = 10, 60, 3
LITTLE = 1e-3  # of a mean weight: a rise of no less counts
SECONDS, LEAST_SECONDS = 60.0, 0.01  # of one linear program, at most, and where the time is up
WHOLE = 1e-6


@dataclass
class Node:
    """One of the tree: which nodes stand before which, and what its cycles prove.

    lower      that, rounded up, or what the node above it has     children, divided   None, LEAF: a leaf
    rows, values   its g, as multiples of 1/one; exact: what these prove, likewise
    """

    fixed: list[tuple[int, int]]
    lower: int
    rows: np.ndarray
    values: np.ndarray
    children: tuple["Node", "Node"] | None = None
    divided: int = LEAF
    exact: int = -1


class PartBounds:
    """The bounds of one part.

    nodes    [k] of the core, ascending       lower   no order pays less for the part
    best     what the best order known pays for it; order [k], that order; None: none is known
    packing, searching   whether cycles are being packed, or a linear program or a tree is at work
    done     nothing is left to try
    end      when, by time.perf_counter(), all has to be over
    """

    def __init__(self, net: NetArcs, nodes: np.ndarray, compiled: bool, descend: Any) -> None:
        """net   of the part alone     descend   as of OrderingBounds"""
        self.net, self.nodes, self._compiled, self._descend = net, nodes, compiled, descend
        total = int(net.weights.sum())
        self.one = 1 << max(min(PLACES, (LARGEST // (LONGEST * max(total, 1))).bit_length() - 1), 0)
        self.lower, self.method, self.done, self.best = 0, "", False, total
        self.order: np.ndarray | None = None
        self.searching, self.packing, self.end = False, True, math.inf
        empty = np.zeros(0, dtype=np.int64)
        self._root, self._divisions = Node([], 0, empty, empty), []
        self._cycles: list[Cycle] = []
        self._ahead = 0  # cycles that are no rows of the program
        self._pairs: Pairs | None = None
        self._risen: dict[tuple[int, int], tuple[list[float], list[float]]] = {}
        self._work = self._course()

    def offer(self, order: np.ndarray) -> None:
        """An order [k]."""
        cost = self.net.cost(order)
        if cost < self.best or self.order is None:
            self.best, self.order = cost, order.copy()

    def step(self) -> None:
        """A little work."""
        if self.lower >= self.best or next(self._work, None) is None:
            self.done = True

    def _seconds(self) -> float:
        """What a linear program may take."""
        return max(min(SECONDS, self.end - time.perf_counter()), LEAST_SECONDS)

    # ---- the course ----------------------------------------------------------------------------------------

    def _course(self) -> Iterator[bool]:
        for found in packed(self.net, self._compiled):
            if len(found) >= 2 * max(len(self._cycles), 1) or not self.method:
                self._take_packed(found)
            yield True
        self._take_packed(found)
        self.packing = False
        yield True
        n, arcs = self.net.n, self.net.arcs
        self._dense = n <= DENSE_NODES and arcs >= DENSE_SHARE * n * (n - 1) / 2
        if arcs > MOST_ARCS or not available():
            return
        self._program, self._finder = Program(self.net, self._dense), Finder(self.net)
        if self._dense and len(found) > MOST_FIRST:  # rows of the program are numbered behind them
            self._ahead = len(found)
        else:
            self._program.add(self._cycles)
        yield from self._tree()

    def _take_packed(self, found: list[tuple[Cycle, int]]) -> None:
        """What a packing proves."""
        self._cycles, self._pairs = [cycle for cycle, _ in found], None
        values = np.array([value for _, value in found], dtype=np.int64) * self.one
        self._root.exact = -1
        self._prove(self._root, np.arange(len(found)), values)
        self.lower, self.method = max(self.lower, self._root.lower), PACKING

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

    def _lift(self, waiting: list[tuple[int, int, int, Node]], at_work: int | None = None) -> None:
        """The least bound of open leaves is that of the part; closed ones reach the best order."""
        least = min(waiting[0][0] if waiting else self.best, self.best if at_work is None else at_work)
        self.lower = max(self.lower, min(least, self.best))

    def _solve(self, node: Node, waiting: list[tuple[int, int, int, Node]]) -> Iterator[bool | None]:
        """Rows until they gain little; returns whether the node is to be divided, None: HiGHS fails."""
        program, idle, before = self._program, 0, -math.inf
        program.fix(node.fixed)
        while True:
            solved = program.solve(self._seconds())
            if not solved:  # nodes that are divided have an order, so that there is a point
                return None
            self._round_duals(node)
            if node is self._root:
                self.method = PROGRAM
            self._lift(waiting, node.lower)
            if node.lower >= self.best:
                return False
            added = program.add(self._violated())
            self._cycles += program.cycles[len(program.cycles) - added :]
            self._pairs = None if added else self._pairs
            if not added:
                self._follow()
                self._lift(waiting, node.lower)
                return node.lower < self.best
            gain = program.value - before
            idle = 0 if gain > GAIN * max(abs(program.value), 1.0) else idle + 1
            before = max(before, program.value)
            yield True
            if idle >= (TAIL if node is self._root else TAIL // 2):
                self._follow()
                if (np.abs(program.y - np.rint(program.y)) > WHOLE).any():
                    return node.lower < self.best

    def _violated(self) -> list[Cycle]:
        """Cycles of less than 1: of three nodes where there is a y for each pair, else of net arcs."""
        most = max(ROWS_EACH * self.net.n, LEAST_ROWS)
        if self._dense:
            return triangles(self._table(), most)
        return self._finder.violated(self._program.y, most)

    def _table(self) -> np.ndarray:
        """[k, k] float64, y of all two nodes, 1/2 of those without one."""
        program = self._program
        Y = np.full((self.net.n, self.net.n), 0.5)
        Y[program.tails, program.heads] = program.y
        Y[program.heads, program.tails] = 1 - program.y
        return Y

    def _follow(self) -> None:
        """An order that follows the point: nodes by how much of their arcs leads backward, then a descent."""
        program, n = self._program, self.net.n
        behind = np.zeros(n)  # how many nodes stand before each
        np.add.at(behind, program.tails, program.y)
        np.add.at(behind, program.heads, 1 - program.y)
        if not self._dense:
            share = np.bincount(np.concatenate([program.tails, program.heads]), minlength=n)
            behind = behind / np.maximum(share, 1)
        if np.abs(program.y - np.rint(program.y)).max(initial=0) < WHOLE:
            back = program.y > 0.5
            tails, heads = (
                np.where(back, program.heads, program.tails),
                np.where(back, program.tails, program.heads),
            )
            order = least_order(n, tails, heads, self._compiled)
            if len(order) == n:
                self.offer(order)
                return
        self.offer(self._descend(self.net, np.argsort(behind, kind="stable")))

    # ---- divisions -----------------------------------------------------------------------------------------

    def _divided(self, node: Node) -> Iterator[bool]:
        """Two children by the two nodes that tell most; returns them, or none where all is decided."""
        program, y = self._program, self._program.y.copy()
        known = _reached(self.net.n, node.fixed)
        near = np.abs(y - 0.5)
        order = np.lexsort((np.arange(len(y)), -self._weights_of(program), np.round(near, 1)))
        open_ = ~(known | known.T)[program.tails[order], program.heads[order]]
        pairs = list(zip(program.tails[order][open_].tolist(), program.heads[order][open_].tolist()))
        if not pairs:  # the order is decided, and HiGHS's point is not exact enough to tell so
            return ()
        pairs = pairs[:CANDIDATES]
        value, best, unit = program.value, (-1.0, pairs[0]), float(self.net.weights.mean())
        for pair in pairs if len(pairs) > 1 else ():
            gains = self._gains(node, pair, value)
            yield True
            score = max(gains[0], LITTLE * unit) * max(gains[1], LITTLE * unit)
            if score > best[0] * (1 + WHOLE):
                best = score, pair
        u, v = best[1]
        node.divided = len(self._divisions)
        self._divisions.append((u, v))
        self._pairs, children = None, []
        for pair in ((u, v), (v, u)):
            child = Node([*node.fixed, pair], node.lower, node.rows, node.values)
            self._prove(child, node.rows, node.values)
            child.lower = max(child.lower, node.lower)
            children.append(child)
        node.children = children[0], children[1]
        return node.children

    def _weights_of(self, program: Program) -> np.ndarray:
        """[c] int64, the weights of y."""
        found = np.zeros(len(program.tails), dtype=np.int64)
        found[: self.net.arcs] = self.net.weights
        return found

    def _gains(self, node: Node, pair: tuple[int, int], value: float) -> tuple[float, float]:
        """By how much the program rises with two nodes in one order, and the other: tried, or as before."""
        known = self._risen.setdefault(pair, ([], []))
        if min(map(len, known)) < RELIABLE:
            for rises, each in zip(known, (pair, pair[::-1])):
                self._program.fix([*node.fixed, each])
                reached = self._program.tried(STEPS)
                rises.append(float(self.best) if reached is None else max(reached - value, 0.0))
        return sum(known[0]) / len(known[0]), sum(known[1]) / len(known[1])

    # ---- what is proved ------------------------------------------------------------------------------------

    def _as_pairs(self) -> Pairs:
        if self._pairs is None:
            ends = np.array(self._divisions, dtype=np.int64).reshape(-1, 2)
            self._pairs = Pairs(self.net, *_listed(self._cycles), ends[:, 0], ends[:, 1])
        return self._pairs

    def _round_duals(self, node: Node) -> None:
        most = float(self.net.weights.sum())
        g = np.rint(np.minimum(self._program.g, most) * self.one).astype(np.int64)
        rows = np.flatnonzero(g)
        self._prove(node, rows + self._ahead, g[rows])

    def _prove(self, node: Node, rows: np.ndarray, values: np.ndarray) -> None:
        """Give a node what cycles prove, where that is more than what it has."""
        pairs = self._as_pairs()
        side = np.zeros(pairs.count, dtype=np.int8)
        for u, v in node.fixed:
            pair, paid = pairs.fixed(u, v)
            side[pair] = 1 if paid else -1
        found = pairs.proved(rows, values, self.one, side)
        if found > node.exact or not len(node.rows):
            node.exact, node.rows, node.values = found, rows, values
            node.lower = max(node.lower, -(-found // self.one))

    def witness(self) -> OrderingPart:
        """The tree as it is."""
        tree, ptr, rows, values = [], [0], [], []
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            tree.append(node.divided)
            if node.children is not None:
                waiting += [node.children[1], node.children[0]]
                continue
            rows.append(node.rows)
            values.append(node.values)
            ptr.append(ptr[-1] + len(node.rows))
        used, number = np.unique(np.concatenate(rows), return_inverse=True)
        ends = np.array(self._divisions, dtype=np.int64).reshape(-1, 2)
        return OrderingPart(
            self.lower, self.method, self.nodes, *_listed([self._cycles[i] for i in used.tolist()]),
            np.array(tree, dtype=np.int64), ends[:, 0].copy(), ends[:, 1].copy(),
            np.array(ptr, dtype=np.int64), number.reshape(-1).astype(np.int64),
            np.concatenate(values).astype(np.int64), self.one,
        )  # fmt: skip


def _reached(n: int, fixed: list[tuple[int, int]]) -> np.ndarray:
    """[n, n] bool: which nodes stand before which, by some that do."""
    found = np.zeros((n, n), dtype=bool)
    for u, v in fixed:
        before, behind = found[:, u].copy(), found[v].copy()
        before[u] = behind[v] = True
        found |= before[:, None] & behind[None, :]
    return found


def _listed(cycles: list[Cycle]) -> tuple[np.ndarray, np.ndarray]:
    """ptr [rows+1], nodes: cycles one behind the other."""
    ptr = np.append(0, np.cumsum([len(cycle) for cycle in cycles])).astype(np.int64)
    return ptr, np.array([v for cycle in cycles for v in cycle], dtype=np.int64)
