"""The independent check of a log of reductions of maximum cut: replays it, and proves each step.

It shares with the reducer only the meaning of the log (app/reductions/cut/log.py): it asks of each step
whether the nodes it names satisfy what its rule demands, and makes the changes itself, by trying sides where
the rule has a formula. What remains at the end is returned, so that a bound of the kernel bounds every cut of
the graph without trust in the code that reduced it.
"""

from collections.abc import Callable
from itertools import combinations

import numpy as np

from app.graphs.graph import Graph
from app.reductions.cover.log import parsed
from app.reductions.cover.verify_compiled import replay_cut
from app.reductions.cut.log import CLIQUE, MERGE, RULES, TIE, TRIANGLE, TWIN
from app.reductions.replay import BadReduction, require

Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def verify_log(
    graph: Graph, weights: np.ndarray, log: np.ndarray, places: int, fixed: list[tuple[int, int]],
    compiled: bool = True,
) -> tuple[int, Rows]:  # fmt: skip
    """Replay a log [words] int64 on a whole graph; raises BadReduction at the first step that is not proved.

    weights  [nnz] int64 in units of the graph; the log's are 2^places times as many
    fixed    (node, side) of the nodes that have been given sides, ascending: tied to the first of them
    compiled let app/native/check_cut.c replay it, where it was built. What that does not accept is replayed
             here, to say why
    returns  the offset; indptr, indices, weights, nodes of what is left, as plain.py has them
    """
    ties = {v: (fixed[0][0], side != fixed[0][1]) for v, side in fixed[1:]}
    found = replay_cut(graph, weights << places, ties, log) if compiled else None
    if found is not None:
        return found.offset, (found.indptr, found.indices, found.weights, found.nodes)
    replay = _Replay(graph, weights << places, ties)
    for step, (rule, words, whole) in enumerate(parsed(log)):
        name = RULES[rule] if 0 <= rule < len(RULES) else f"rule {rule}"
        try:
            require(rule in CHECKS and whole, "no entry of a log")
            CHECKS[rule](replay, *words)
        except (BadReduction, KeyError, TypeError, ValueError, IndexError) as error:
            shown = " ".join(map(str, words[:8])) + (" ..." if len(words) > 8 else "")
            raise BadReduction(f"{graph.name}: step {step} ({name} {shown}): {error}") from None
    require(not replay.ties, f"{graph.name}: a node with a given side was not tied")
    return replay.offset, replay.rest()


class _Replay:
    """The residual graph as one dictionary of neighbours and weights for each node that a step meets."""

    def __init__(self, graph: Graph, weights: np.ndarray, ties: dict[int, tuple[int, bool]]) -> None:
        self.graph, self.weights, self.offset = graph, weights, 0
        self._met: dict[int, dict[int, int]] = {}
        self.ties, self._gone = dict(ties), set[int]()

    def near(self, u: int) -> dict[int, int]:
        """The neighbours of a node and the weights to them; none where it has been taken out."""
        if u not in self._met:
            require(0 <= u < self.graph.n, f"{u} is no node")
            row = slice(self.graph.indptr[u], self.graph.indptr[u + 1])
            pairs = zip(self.graph.indices[row].tolist(), self.weights[row].tolist())
            self._met[u] = {x: w for x, w in pairs if w}
        return self._met[u]

    def take_out(self, u: int) -> dict[int, int]:
        """Remove a node; returns its neighbours and weights."""
        row = self.near(u)
        for x in row:
            del self.near(x)[u]
        self._met[u] = {}
        self._gone.add(u)
        return row

    def add(self, a: int, b: int, weight: int) -> None:
        """Change the weight between two nodes."""
        for x, y in ((a, b), (b, a)):
            total = self.near(x).pop(y, 0) + weight
            if total:
                self.near(x)[y] = total

    def contract(self, u: int, v: int, apart: bool) -> None:
        """Put u and v together."""
        require(u != v and self._gone.isdisjoint((u, v)), f"{u} or {v} is not there any more")
        for x, w in self.take_out(u).items():
            if x == v:
                self.offset += w * apart
            elif apart:  # cut exactly where v and x are on one side
                self.offset += w
                self.add(v, x, -w)
            else:
                self.add(v, x, w)

    def rest(self) -> Rows:
        """indptr, indices, weights, nodes of the nodes that have edges."""
        graph, old = self.graph, np.ones(self.graph.n, dtype=bool)
        old[list(self._met)] = False
        kept = old[graph.row_of()] & (self.weights != 0)
        new = [(u, x, w) for u, row in self._met.items() for x, w in row.items()]
        u, x, w = np.array(new, dtype=np.int64).reshape(-1, 3).T
        u = np.concatenate([graph.row_of()[kept], u])
        x = np.concatenate([graph.indices[kept].astype(np.int64), x])
        w = np.concatenate([self.weights[kept], w])
        order = np.lexsort((x, u))
        degree = np.bincount(u, minlength=graph.n)
        nodes = np.flatnonzero(degree)
        number = np.cumsum(degree > 0) - 1
        indptr = np.concatenate([[0], np.cumsum(degree[nodes])]).astype(np.int64)
        return indptr, number[x[order]].astype(np.int32), w[order], nodes


def _check_tie(r: _Replay, u: int, v: int, apart: int) -> None:
    require(r.ties.pop(u, None) == (v, bool(apart)), f"{u} was not given such a side")
    r.contract(u, v, bool(apart))


def _check_merge(r: _Replay, u: int, v: int, apart: int) -> None:
    require(u not in r.ties, f"{u} has a side that it is not tied to yet")
    row = r.near(u)
    require(v in row and (row[v] > 0) == bool(apart), f"{v} is no neighbour of {u} with such a weight")
    total = sum(map(abs, row.values()))
    require(2 * abs(row[v]) >= total, f"|w| is {abs(row[v])} of {total}: less than half")
    r.contract(u, v, bool(apart))


def _check_twin(r: _Replay, u: int, v: int, apart: int) -> None:
    require(not r.ties and v != u, f"{u} or {v} may have a side that it is not tied to yet")
    row, other = r.near(u), r.near(v)
    require(row.keys() == other.keys() and bool(row), f"{u} and {v} have different neighbours")
    x = next(iter(row))
    require((row[x] * other[x] < 0) == bool(apart), f"{u} and {v} are twins the other way")
    require(all(row[y] * other[x] == other[y] * row[x] for y in row), f"{u} and {v} have different weights")
    r.contract(u, v, bool(apart))


def _check_triangle(r: _Replay, u: int, *words: int) -> None:
    require(u not in r.ties, f"{u} has a side that it is not tied to yet")
    row = r.near(u)
    near = dict(zip(words[::2], words[1::2]))
    require(len(words) == 6 and len(row) == 3 and near == row, f"not {u}'s neighbours and their weights")
    names = list(row)

    def worth(apart: int | None) -> int:
        """The most that u can add where one neighbour, or none, is apart from the others."""
        here = sum(w for x, w in row.items() if x != apart)  # u with the one that is apart
        there = sum(w for x, w in row.items() if x == apart)
        return max(here, there)

    base = worth(None)
    doubled = {
        (a, b): worth(a) + worth(b) - worth(({*names} - {a, b}).pop()) - base
        for a, b in combinations(names, 2)
    }
    require(all(w % 2 == 0 for w in doubled.values()), "the weights are not whole numbers")
    for x in names:  # the triangle adds what u does
        added = sum(w // 2 for pair, w in doubled.items() if x in pair)
        require(base + added == worth(x), "a triangle cannot stand for the node")
    r.offset += base
    r.take_out(u)
    for (a, b), w in doubled.items():
        r.add(a, b, w // 2)


def _check_clique(r: _Replay, weight: int, count: int, *words: int) -> None:
    inside, outside = words[:count], words[count:]
    nodes = {*inside, *outside}
    k = len(words)
    require(weight > 0 and 0 < count <= k == len(nodes), "not a clique of different nodes")
    require(count >= len(outside) - 1, f"{count} nodes inside, {len(outside)} outside")
    require(nodes.isdisjoint(r.ties), "a node has a side that it is not tied to yet")
    for u in inside:
        row = r.near(u)
        require(row.keys() | {u} == nodes, f"{u} has other neighbours")
        require(all(w == weight for w in row.values()), f"{u} has other weights")
    r.offset += weight * (k * k // 4)
    for u in inside:
        r.take_out(u)
    for a, b in combinations(outside, 2):
        r.add(a, b, -weight)


CHECKS: dict[int, Callable[..., None]] = {
    TIE: _check_tie,
    MERGE: _check_merge,
    TWIN: _check_twin,
    TRIANGLE: _check_triangle,
    CLIQUE: _check_clique,
}
