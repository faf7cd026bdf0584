"""The residual graph without compiled kernels, and the order of the rules: app/native/reduce.c in Python."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from app.reductions.cover import rules
from app.reductions.cover.half import COVER, OUT, HalfIntegral
from app.reductions.cover.log import CHOSEN_ARCS, CROWN, HALF_ARCS, NEAR, PHASES, RULES, TAKE
from app.reductions.cover.unconfined import unconfined

SLICE = 1000  # nodes of the queues between two looks


class Queue:
    """First in, first out; a node waits at most once."""

    def __init__(self) -> None:
        self.items: deque[int] = deque()
        self.queued: set[int] = set()

    def push(self, v: int) -> None:
        """Append a node unless it waits."""
        if v not in self.queued:
            self.queued.add(v)
            self.items.append(v)

    def pop(self) -> int:
        """The node that has waited longest."""
        v = self.items.popleft()
        self.queued.remove(v)
        return v


class PlainResidual:
    """What is left of a graph, as ascending lists of neighbours; fields and results are CompiledResidual's.

    indptr, indices, weight [n]   the graph to start from; unit: all weights are one
    settled                       no rule applies to it
    """

    def __init__(
        self, indptr: np.ndarray, indices: np.ndarray, weight: np.ndarray, unit: bool, settled: bool = False
    ) -> None:
        starts, columns = indptr.tolist(), indices.tolist()
        self.n, self.unit, self.exact = len(weight), unit, True
        self.row = [columns[a:b] for a, b in pairwise(starts)]
        self.weight = weight.tolist()
        self.alive = sum(map(bool, self.row))
        self.edges, self.offset = len(columns) // 2, 0
        self.words: list[int] = []
        self.counts = dict.fromkeys(RULES, 0)
        self.first, self.second = Queue(), Queue()
        self.lighter: set[int] = set()  # nodes whose weight fell, which their neighbours have not yet seen
        # Nodes left when the whole graph was last looked at
        self.swept: int | None = self.alive if settled else None
        self._looked = self.alive  # nodes left when all of them last came to the rules
        self.steps = 0
        self._partner: list[int] = []
        self._paired = -1  # nodes left when `partner` was found
        for v in range(0 if settled else self.n):
            self.touch(v)

    # ---- changes of the graph -------------------------------------------------------------------------

    def touch(self, v: int) -> None:
        """Have the rules look at a node again."""
        if self.row[v]:
            self.first.push(v)

    def record(self, rule: int, words: list[int]) -> None:
        """Append an entry to the log."""
        self.words += [rule, len(words), *words]
        self.counts[RULES[rule]] += 1

    def adjacent(self, u: int, v: int) -> bool:
        """Whether u-v is an edge."""
        row = self.row[u]
        place = bisect_left(row, v)
        return place < len(row) and row[place] == v

    def lose_edge(self, v: int, u: int) -> None:
        """Take u, to which the edge is gone, from the neighbours of v."""
        del self.row[v][bisect_left(self.row[v], u)]
        self.edges -= 1
        self.alive -= not self.row[v]
        self.touch(v)

    def drop(self, v: int) -> None:
        """Remove a node and its edges."""
        near, self.row[v] = self.row[v], []
        self.alive -= bool(near)
        for u in near:
            self.lose_edge(u, v)

    def cover(self, v: int) -> None:
        """Pay for a node and remove it."""
        self.offset += self.weight[v]
        self.drop(v)

    def set_weight(self, v: int, weight: int) -> None:
        """Give a node another weight."""
        if weight < self.weight[v]:
            self.lighter.add(v)
        self.weight[v] = weight
        self.touch(v)

    def merge(self, x: int, y: int) -> None:
        """Give the edges of y to x, which is not adjacent to it."""
        near, self.row[y] = self.row[y], []
        self.alive += bool(near and not self.row[x]) - bool(near)
        for z in near:
            if self.adjacent(x, z):
                self.lose_edge(z, y)
                continue
            del self.row[z][bisect_left(self.row[z], y)]
            insort(self.row[z], x)
            insort(self.row[x], z)
            self.touch(z)

    # ---- all rules ------------------------------------------------------------------------------------

    def reduce(self, look: Callable[[], Any] = lambda: False, most: int = 0) -> None:
        """See CoverReducer.reduce: cheap rules first, the relaxation last."""
        while not most or self.steps < most:
            if not (self._reduce_rows() or self._sweep()):
                return
            if self.steps % SLICE == 0 and look():
                return

    def _reduce_rows(self) -> bool:
        """One node of the queues; False where they are empty."""
        self.steps += bool(self.first.items or self.second.items)
        if self.first.items:
            v = self.first.pop()
            if self.row[v] and not any(rule(self, v) for rule in rules.CHEAP):
                self._pass_on(v)
        elif self.second.items:
            v = self.second.pop()
            if self.row[v]:
                unconfined(self, v)
        else:
            return False
        return True

    def _pass_on(self, v: int) -> None:
        """What a change of v may have made possible elsewhere."""
        near = self.row[v]
        self.second.push(v)
        if v in self.lighter:
            self.lighter.remove(v)
            for u in near:
                self.first.push(u)
        if len(near) <= NEAR:
            for u in near:
                self.second.push(u)

    def _sweep(self) -> bool:
        """Solve the relaxation; where it decides nothing, touch every node. False where no sweep is due."""
        if not self._sweep_due():
            return False
        self.swept = self.alive
        if not self._crown() and self.alive != self._looked:
            self._looked = self.alive
            for v in range(self.n):
                self.touch(v)
        return True

    def _sweep_due(self) -> bool:
        """Whether the graph has changed since the last sweep; after a choice, whether a quarter has gone."""
        if self.edges == 0:
            return False
        if self.swept is None:
            return True
        if self.exact:
            return self.alive != self.swept  # every rule removes a node
        return self.alive <= self.swept - self.swept // 4

    def _crown(self) -> bool:
        """Solve the relaxation, take what it decides."""
        if 2 * self.edges > (HALF_ARCS if self.exact else CHOSEN_ARCS):
            return False
        self.steps += 1
        indptr, indices, nodes, weight = self.snapshot()
        half = HalfIntegral(indptr, indices, weight)
        half.solve(None if self.exact else PHASES)
        outs = [i for i, side in enumerate(half.side) if side == OUT]
        if not outs:
            if self.exact and self.unit:
                self._keep_pairs(half)
            return False
        words = [len(outs), *(nodes[i] for i in outs)]
        for i in outs:
            for e in range(indptr[i], indptr[i + 1]):
                if half.flow[e]:
                    words += [nodes[i], nodes[indices[e]], half.flow[e]]
        self.record(CROWN, words)
        for i, side in enumerate(half.side):
            if side == COVER:
                self.cover(nodes[i])
        return True

    def _keep_pairs(self, half: HalfIntegral) -> None:
        """Keep the matching of the double cover, from which the bound of the relaxation follows."""
        rows = [range(a, b) for a, b in pairwise(half.indptr)]
        self._paired = self.alive
        self._partner = [next((half.indices[e] for e in row if half.flow[e]), -1) for row in rows]

    # ---- what the caller sees -------------------------------------------------------------------------

    def take(self, nodes: np.ndarray) -> None:
        """Put nodes into the cover, those without an edge excepted."""
        for v in nodes.tolist():
            if self.row[v]:
                self.record(TAKE, [v])
                self.cover(v)
                self.exact = False

    def snapshot(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Rows of the nodes that have edges, numbered 0.., their numbers here, and their weights."""
        nodes = [v for v in range(self.n) if self.row[v]]
        number = {v: i for i, v in enumerate(nodes)}
        indptr, indices = [0], []
        for v in nodes:
            indices += [number[u] for u in self.row[v]]
            indptr.append(len(indices))
        return indptr, indices, nodes, [self.weight[v] for v in nodes]

    def kernel(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """snapshot() as arrays: indptr int64, indices int32, nodes int64, weights int64."""
        kinds = (np.int64, np.int32, np.int64, np.int64)
        return tuple(np.array(part, dtype=kind) for part, kind in zip(self.snapshot(), kinds))

    def partners(self) -> np.ndarray | None:
        """See CoverReducer.partners."""
        return np.array(self._partner, dtype=np.int64) if self._paired == self.alive else None

    def degrees(self) -> np.ndarray:
        """[n] int64."""
        return np.array([len(row) for row in self.row], dtype=np.int64)

    def log(self) -> np.ndarray:
        """[words] int64, see app/reductions/cover/log.py."""
        return np.array(self.words, dtype=np.int64)
