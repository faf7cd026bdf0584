"""The residual graph of a maximum cut in plain Python; app/native/reduce_cut.c takes the same steps."""

from collections import deque
from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from app.reductions.cut.log import CLIQUE, MERGE, PASSES, RULES, TIE, TRIANGLE, TWIN, triangle

Row = dict[int, int]


class PlainCutResidual:
    """What is left of a graph.

    indptr, indices, weights [nnz] int64   the graph to start from, weights in the small unit

    offset   what lifted cuts are worth beyond those of what is left
    counts   how often each rule was applied
    steps    see CutReducer
    """

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray) -> None:
        ends, columns, numbers = indptr.tolist(), indices.tolist(), weights.tolist()
        self.near: list[Row] = [
            {x: w for x, w in zip(columns[a:b], numbers[a:b]) if w} for a, b in pairwise(ends)
        ]
        self.offset, self.counts = 0, dict.fromkeys(RULES, 0)
        self._words: list[int] = []
        self.steps = self._passes = 0
        self._now: deque[int] = deque()
        self._later: set[int] = set(range(len(self.near)))

    def tie(self, u: int, v: int, apart: bool) -> None:
        """Put u where v is, or opposite."""
        self._join(TIE, u, v, apart)

    def reduce(self, look: Callable[[], Any] = lambda: False, most: int = 0) -> None:
        """See CutReducer.reduce."""
        while self._passes < PASSES:
            while self._now or self._later:
                if not self._now:
                    self._now, self._later = deque(sorted(self._later)), set()
                while self._now and (not most or self.steps < most):
                    self.steps += 1
                    self._visit(self._now.popleft())
                if self._now or look():
                    return
            if most and self.steps >= most:
                return
            self.steps += 1
            self._passes += 1
            if not self._pass():
                return

    def _note(self, rule: int, words: list[int]) -> None:
        self.counts[RULES[rule]] += 1
        self._words += [rule, len(words), *words]

    def _visit(self, u: int) -> None:
        """MERGE or TRIANGLE of one node, where one applies."""
        row = self.near[u]
        if not row:
            return
        v = min(row, key=lambda x: (-abs(row[x]), x))
        if 2 * abs(row[v]) >= sum(map(abs, row.values())):
            self._join(MERGE, u, v, row[v] > 0)
        elif len(row) == 3:
            self._triangle(u, row)

    def _join(self, rule: int, u: int, v: int, apart: bool) -> None:
        """Put u and v together by a rule."""
        self._note(rule, [u, v, int(apart)])
        for x, w in self._take_out(u):
            if apart:
                self.offset += w
            if x != v:
                self._add(v, x, -w if apart else w)
        self._later.add(v)

    def _take_out(self, u: int) -> list[tuple[int, int]]:
        """Remove a node; returns its row."""
        row, self.near[u] = list(self.near[u].items()), {}
        for x, _ in row:
            del self.near[x][u]
            self._later.add(x)
        return row

    def _add(self, a: int, b: int, weight: int) -> None:
        total = self.near[a].get(b, 0) + weight
        if total:
            self.near[a][b] = self.near[b][a] = total
        else:
            self.near[a].pop(b, None)
            self.near[b].pop(a, None)

    def _triangle(self, u: int, row: Row) -> None:
        (a, wa), (b, wb), (c, wc) = sorted(row.items())
        found = triangle(wa, wb, wc)
        if found is None:
            return
        self._note(TRIANGLE, [u, a, wa, b, wb, c, wc])
        self.offset += found[0]
        self._take_out(u)
        for x, y, w in zip((a, a, b), (b, c, c), found[1]):
            self._add(x, y, w)

    def _pass(self) -> bool:
        """TWIN and CLIQUE wherever they apply; returns whether they did."""
        groups: dict[tuple, list[int]] = {}
        for u, row in enumerate(self.near):
            if not row:
                continue
            entries = sorted(row.items())
            sign = 1 if entries[0][1] > 0 else -1
            groups.setdefault((TWIN, *((x, sign * w) for x, w in entries)), []).append(u)
            if len(set(row.values())) == 1 and sign > 0:
                groups.setdefault((CLIQUE, entries[0][1], *sorted([u, *row])), []).append(u)
        found = [(nodes[0], key[0] == TWIN, nodes) for key, nodes in groups.items() if len(nodes) > 1]
        before = sum(self.counts.values())
        for first, twins, nodes in sorted(found):
            if self.near[first]:
                (self._twins if twins else self._clique)(nodes)
        return sum(self.counts.values()) > before

    def _twins(self, nodes: list[int]) -> None:
        v, times = nodes[0], 1
        for u in nodes[1:]:
            row, target = self.near[u], self.near[v]
            if len(row) != len(target) or not row:
                continue
            x = min(row)
            factor = times if (row[x] > 0) == (target.get(x, 0) > 0) else -times
            if all(target.get(x, 0) == factor * w for x, w in row.items()):
                self._join(TWIN, u, v, factor < 0)
                times += 1

    def _clique(self, nodes: list[int]) -> None:
        first = self.near[nodes[0]]
        weight, closed = max(first.values()), {nodes[0], *first}
        if min(first.values()) != weight or weight < 0:
            return
        inside = [u for u in nodes if self._spans(u, weight, closed)]
        outside = sorted(closed - set(inside))
        if len(inside) < max(len(outside) - 1, 2):
            return
        self._note(CLIQUE, [weight, len(inside), *inside, *outside])
        self.offset += weight * (len(closed) ** 2 // 4)
        for u in inside:
            self._take_out(u)
        for a, b in combinations(outside, 2):
            self._add(a, b, -weight)

    def _spans(self, u: int, weight: int, closed: set[int]) -> bool:
        row = self.near[u]
        return row.keys() | {u} == closed and all(w == weight for w in row.values())

    def kernel(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """indptr int64, indices int32, weights int64, nodes int64 of the nodes that have edges."""
        nodes = [u for u, row in enumerate(self.near) if row]
        number = {u: k for k, u in enumerate(nodes)}
        rows = [sorted(self.near[u].items()) for u in nodes]
        indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        indices = np.array([number[x] for row in rows for x, _ in row], dtype=np.int32)
        weights = np.array([w for row in rows for _, w in row], dtype=np.int64)
        return indptr, indices, weights, np.array(nodes, dtype=np.int64)

    def log(self) -> np.ndarray:
        """[words] int64, see log.py."""
        return np.array(self._words, dtype=np.int64)
