"""Lower bounds of one part: a packing, then the linear program, then branch and bound, best bound first.

Every node of the tree has its own rounded duals, and its bound is what these prove (witness.py), never what
HiGHS says: a tree can be written at any time, and proved.
"""

import heapq
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.bounds.dfvs.program import Program
from app.bounds.dfvs.rows import Row, Rows
from app.bounds.dfvs.witness import LARGEST, LEAF, DirectedFeedbackPart, proved_by
from app.bounds.highs import available
from app.graphs.digraph import Digraph

PACKING, PROGRAM, TREE = "packed cycles", "linear program of cycles", "branch and bound"
ROWS_LARGEST = 1 << 12  # nodes of a row, for which sums have room
PLACES = 20  # of values, in bits, where prices leave room
# A node is divided after so many rounds of rows that gain less than this part of a mean price.
TAIL, GAIN = 12, 0.02
# Nodes that are tried before one of the tree is divided, simplex steps of a try, tries that tell enough.
CANDIDATES, STEPS, RELIABLE = 12, 40, 3
LITTLE = 1e-3  # of a mean price: a rise of no less counts
MOST_NODES, MOST_ARCS = 20_000, 1 << 19  # of a part with a linear program
SECONDS, LEAST_SECONDS = 60.0, 0.01  # of one linear program, at most, and where the time is up
WHOLE = 1e-6


@dataclass
class Node:
    """One of the tree: which nodes of the part are in I and O, and what its rows prove.

    lower      that, rounded up, or what the node above it has        children, divided   None, LEAF: a leaf
    rows, values   its y, as multiples of 1/one; exact: what these prove, likewise
    """

    inside: list[int]
    outside: list[int]
    lower: int
    rows: np.ndarray
    values: np.ndarray
    children: tuple["Node", "Node"] | None = None
    divided: int = LEAF
    exact: int = 0


class PartBounds:
    """The bounds of one part.

    nodes    [k] of the core, ascending       lower   no set takes less of the part
    best     what the best set known takes of it; cover [k] bool, that set; None: none is known
    done     nothing is left to try
    end      when, by time.perf_counter(), all has to be over
    """

    def __init__(self, digraph: Digraph, nodes: np.ndarray, price: np.ndarray) -> None:
        """digraph, price   of the part alone"""
        self.digraph, self.nodes, self.price = digraph, nodes, price
        total = int(price.sum())
        self.one = 1 << max(min(PLACES, (LARGEST // (ROWS_LARGEST * max(total, 1))).bit_length() - 1), 0)
        self.lower, self.method, self.done, self.best = 0, "", False, total
        self.chosen: np.ndarray | None = None
        self.searching, self.end = False, math.inf
        self._ptr, self._members, self._cliques = [0], [], []
        self._arrays: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        empty = np.zeros(0, dtype=np.int64)
        self._root = Node([], [], 0, empty, empty)
        self._rows: list[Row] = []
        self._risen: dict[int, tuple[list[float], list[float]]] = {}
        self._work = self._course()

    def offer(self, chosen: np.ndarray) -> None:
        """A set [k] bool that leaves no cycle."""
        cost = int(self.price[chosen].sum())
        if cost < self.best or self.chosen is None:
            self.best, self.chosen = cost, chosen.copy()

    def step(self) -> None:
        """A little work."""
        if self.lower >= self.best or next(self._work, None) is None:
            self.done = True

    def _seconds(self) -> float:
        """What a linear program may take."""
        return max(min(SECONDS, self.end - time.perf_counter()), LEAST_SECONDS)

    # ---- the course ----------------------------------------------------------------------------------------

    def _course(self) -> Iterator[bool]:
        finder = Rows(self.digraph)
        for packed in finder.packed(self.price.tolist()):
            if len(packed) >= 2 * max(len(self._rows), 1) or not self.method:
                self._take_packed(packed)
            yield True
        self._take_packed(packed)
        yield True
        if self.digraph.n > MOST_NODES or self.digraph.arcs > MOST_ARCS or not available():
            return
        self._program = program = Program(self.price)
        program.add(self._rows)
        program.add(finder.cover())
        self._take_rows(program.rows[len(self._rows) :])
        self._finder = finder
        yield from self._tree()

    def _take_packed(self, packed: list[tuple[Row, int]]) -> None:
        """What a packing proves, of which some rows are known."""
        self._take_rows([row for row, _ in packed[len(self._rows) :]])
        values = np.array([value for _, value in packed], dtype=np.int64) * self.one
        self._prove(self._root, np.arange(len(packed)), values)
        self.lower, self.method = self._root.lower, PACKING

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
                for child in children:
                    counter += 1
                    depth = len(child.inside) + len(child.outside)
                    heapq.heappush(waiting, (child.lower, -depth, counter, child))
            self._lift(waiting)
            yield True

    def _lift(self, waiting: list[tuple[int, int, int, Node]], at_work: int | None = None) -> None:
        """The least bound of the leaves that are open is that of the part; closed ones reach the best set."""
        least = min(waiting[0][0] if waiting else self.best, self.best if at_work is None else at_work)
        self.lower = max(self.lower, min(least, self.best))

    def _solve(self, node: Node, waiting: list[tuple[int, int, int, Node]]) -> Iterator[bool | None]:
        """Rows until they gain little; returns whether the node is to be divided, None: HiGHS fails."""
        program, idle, before = self._program, 0, -math.inf
        program.fix(node.inside, node.outside)
        while True:
            solved = program.solve(self._seconds())
            if solved is None:
                return None
            if solved is False:
                self._prove_empty(node)
                return False
            self._round_duals(node)
            if node is self._root:
                self.method = PROGRAM
            self._lift(waiting, node.lower)
            if node.lower >= self.best:
                return False
            new = self._finder.violated(program.x, max(60, self.digraph.n // 2))
            added = program.add(new)
            self._take_rows(program.rows[len(self._rows) :])
            if not added:
                x = program.x
                if (np.abs(x - np.rint(x)) < WHOLE).all() and self._leaves_none(x > 0.5):
                    self.offer(x > 0.5)
                    return node.lower < self.best
                return True
            gain = program.value - before
            idle = 0 if gain > GAIN * self.price.mean() else idle + 1
            before = max(before, program.value)
            yield True
            fractional = (np.abs(program.x - np.rint(program.x)) > WHOLE).any()
            if idle >= (TAIL if node is self._root else TAIL // 4) and fractional:
                return True

    def _leaves_none(self, chosen: np.ndarray) -> bool:
        """Whether a set [k] bool leaves no directed cycle."""
        left = self.digraph.part(np.flatnonzero(~chosen))
        return len(np.unique(left.components())) == left.n

    def _divided(self, node: Node) -> Iterator[bool]:
        """Two children by the node of the part that tells most; returns them."""
        program, x = self._program, self._program.x.copy()
        free = np.ones(len(x), dtype=bool)
        free[node.inside + node.outside] = False
        degree = np.diff(self.digraph.out_ptr) * np.diff(self.digraph.in_ptr)
        near = np.where(free, np.abs(x - 0.5), 2.0)
        order = np.lexsort((np.arange(len(x)), -degree, np.round(near, 1)))
        order = [v for v in order[:CANDIDATES].tolist() if free[v]]
        value, best, unit = program.value, (-1.0, order[0]), float(self.price.mean())
        for v in order if len(order) > 1 else ():
            gains = self._gains(node, v, value)
            yield True
            score = max(gains[0], LITTLE * unit) * max(gains[1], LITTLE * unit)
            if score > best[0] * (1 + WHOLE):
                best = score, v
        v = best[1]
        node.divided = v
        children = []
        for sides in (([*node.inside, v], node.outside), (node.inside, [*node.outside, v])):
            child = Node(*sides, node.lower, node.rows, node.values)
            self._prove(child, node.rows, node.values)
            child.lower = max(child.lower, node.lower)
            children.append(child)
        node.children = children[0], children[1]
        return node.children

    def _gains(self, node: Node, v: int, value: float) -> tuple[float, float]:
        """By how much the program rises with a node in I, and in O: tried, or as it did before."""
        known = self._risen.setdefault(v, ([], []))
        if min(map(len, known)) < RELIABLE:
            sides = ([*node.inside, v], node.outside), (node.inside, [*node.outside, v])
            for rises, fixed in zip(known, sides):
                self._program.fix(*fixed)
                reached = self._program.tried(STEPS)
                rises.append(float(self.best) if reached is None else max(reached - value, 0.0))
        return sum(known[0]) / len(known[0]), sum(known[1]) / len(known[1])

    # ---- what is proved ------------------------------------------------------------------------------------

    def _take_rows(self, rows: list[Row]) -> None:
        for nodes, clique in rows:
            self._members += nodes
            self._ptr.append(len(self._members))
            self._cliques.append(clique)
        self._rows += rows
        self._arrays = None

    def _as_arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self._arrays is None:
            self._arrays = (
                np.array(self._ptr, dtype=np.int64), np.array(self._members, dtype=np.int64),
                np.array(self._cliques, dtype=np.uint8),
            )  # fmt: skip
        return self._arrays

    def _round_duals(self, node: Node) -> None:
        y = np.rint(np.minimum(self._program.y, float(self.price.sum())) * self.one).astype(np.int64)
        rows = np.flatnonzero(y)
        self._prove(node, rows, y[rows])

    def _prove(self, node: Node, rows: np.ndarray, values: np.ndarray) -> None:
        """Give a node what rows prove, where that is more than what it has."""
        side = np.zeros(len(self.price), dtype=np.int8)
        side[node.inside], side[node.outside] = 1, -1
        found = proved_by(rows, values, *self._as_arrays(), self.price * self.one, side)
        if found > node.exact or not len(node.rows):
            node.exact, node.rows, node.values = found, rows, values
            node.lower = max(node.lower, -(-found // self.one))

    def _prove_empty(self, node: Node) -> None:
        """Without a point there is a row within O: a large value of it proves what is wanted."""
        outside = set(node.outside)
        for i, (nodes, clique) in enumerate(self._rows):
            if len(outside.intersection(nodes)) > (1 if clique else len(nodes) - 1):
                self._prove(node, np.array([i]), np.array([self.best * self.one]))
                node.lower = max(node.lower, self.best)
                return

    def witness(self) -> DirectedFeedbackPart:
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
        return self._packed(tree, ptr, np.concatenate(rows), np.concatenate(values))

    def _packed(
        self, tree: list[int], ptr: list[int], rows: np.ndarray, values: np.ndarray
    ) -> DirectedFeedbackPart:
        """Without the rows that no leaf has."""
        used, number = np.unique(rows, return_inverse=True)
        starts, members, cliques = self._as_arrays()
        kept = [members[starts[i] : starts[i + 1]] for i in used.tolist()]
        own = np.append(0, np.cumsum([len(each) for each in kept]))
        empty = np.zeros(0, dtype=np.int64)
        return DirectedFeedbackPart(
            self.lower, self.method, self.nodes, own.astype(np.int64), np.concatenate([empty, *kept]),
            cliques[used], np.array(tree, dtype=np.int64), np.array(ptr, dtype=np.int64),
            number.reshape(-1).astype(np.int64), values.astype(np.int64), self.one,
        )  # fmt: skip
