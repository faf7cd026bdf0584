"""The independent check of reductions of feedback vertex sets: replays their log, and proves each entry.

It shares with what reduces only the meaning of an entry (log.py), and searches nothing.
"""

from collections.abc import Callable

import numpy as np

from app.errors import LockstepError
from app.graphs.multigraph import Multigraph, from_pairs
from app.reductions.fvs.log import CUT, LEAF, PATH, SHIFT, TAKE

CHECK_SECONDS = 1e-6  # about, for each node and entry
WORD_SECONDS = 1e-6  # for each word of a log


class BadReduction(LockstepError):
    """An entry proves nothing; the message says where it begins and what is wrong."""


def verify_log(core: Multigraph, log: np.ndarray) -> tuple[Multigraph, int]:
    """What the log [words] int64 leaves of a multigraph, and what is taken in any case weighs; nodes are
    numbered in the order of the numbers they are called by. Raises BadReduction.
    """
    replay, words, at = _Replay(core), log.tolist(), 0
    while at < len(words):
        try:
            at = replay.entry(words, at)
        except BadReduction as error:
            raise BadReduction(f"reductions, word {at}: {error}") from None
    return replay.left(), replay.paid


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BadReduction(otherwise)


class _Replay:
    """The multigraph as the entries so far have left it.

    single, double   [n] of each node its neighbours by one edge, by two; None: it has gone
    """

    def __init__(self, core: Multigraph) -> None:
        self.single: list[set[int] | None] = [set() for _ in range(core.n)]
        self.double: list[set[int]] = [set() for _ in range(core.n)]
        for u, v, count in zip(*(each.tolist() for each in core.edges())):
            kind = self.double if count == 2 else self.single
            kind[u].add(v)
            kind[v].add(u)
        self.weight, self.paid = core.weights.tolist(), 0
        self.rules: dict[int, Callable[[list[int], int], int]] = {
            LEAF: self._leaf, PATH: self._path, TAKE: self._take, SHIFT: self._shift, CUT: self._cut,
        }  # fmt: skip

    def entry(self, words: list[int], at: int) -> int:
        """Prove the entry at words[at] and follow it; returns where the next one begins."""
        rule = self.rules.get(words[at])
        _require(rule is not None, "no such rule")
        return rule(words, at + 1)

    def _node(self, words: list[int], at: int) -> int:
        """A node that is there."""
        _require(at < len(words), "the log ends within it")
        node = words[at]
        there = 0 <= node < len(self.single) and self.single[node] is not None
        _require(there, f"node {node} is not there")
        return node

    def _leave(self, node: int) -> None:
        for other in self.single[node]:
            self.single[other].remove(node)
        for other in self.double[node]:
            self.double[other].remove(node)
        self.single[node], self.double[node] = None, set()

    def _leaf(self, words: list[int], at: int) -> int:
        v = self._node(words, at)
        _require(len(self.single[v]) < 2 and not self.double[v], f"node {v} has more than one edge")
        self._leave(v)
        return at + 1

    def _path(self, words: list[int], at: int) -> int:
        v = self._node(words, at)
        _require(len(self.single[v]) == 2 and not self.double[v], f"node {v} has not two neighbours")
        a, b = self.single[v]
        lightest = min(self.weight[a], self.weight[b])
        _require(lightest <= self.weight[v], f"node {v} is lighter than its neighbours")
        self._leave(v)
        if b in self.single[a]:
            self.single[a].remove(b)
            self.single[b].remove(a)
            self.double[a].add(b)
            self.double[b].add(a)
        elif b not in self.double[a]:
            self.single[a].add(b)
            self.single[b].add(a)
        return at + 1

    def _take(self, words: list[int], at: int) -> int:
        u, v = self._node(words, at), self._node(words, at + 1)
        _require(u in self.double[v], f"no double edge joins {u} and {v}")
        _require(self.weight[u] <= self.weight[v], f"node {u} is heavier than {v}")
        _require(self.double[v] - {u} <= self.double[u], f"a double edge of {v} leads past {u}")
        _require(len(self.single[v] - self.double[u]) < 2, f"two edges of {v} lead past {u}")
        self.paid += self.weight[u]
        self._leave(u)
        return at + 2

    def _shift(self, words: list[int], at: int) -> int:
        v = self._node(words, at)
        _require(len(self.double[v]) == 1 and len(self.single[v]) < 2, f"node {v} has other edges")
        (u,) = self.double[v]
        _require(self.weight[u] > self.weight[v], f"node {u} is not heavier than {v}")
        self.paid += self.weight[v]
        self.weight[u] -= self.weight[v]
        self._leave(v)
        return at + 1

    def _cut(self, words: list[int], at: int) -> int:
        _require(at < len(words) and 0 < words[at] <= (len(words) - at - 1) // 2, "the log ends within it")
        end = at + 1 + 2 * words[at]
        cut = [(self._node(words, i), self._node(words, i + 1)) for i in range(at + 1, end, 2)]
        for u, v in cut:
            _require(v in self.single[u], f"no single edge joins {u} and {v}")
            self.single[u].remove(v)
            self.single[v].remove(u)
        part = list(range(len(self.single)))
        for u, near in enumerate(self.single):
            for v in (near or set()) | self.double[u]:
                part[_root(part, u)] = _root(part, v)
        for u, v in cut:
            a, b = _root(part, u), _root(part, v)
            _require(a != b, f"a cycle has the edge {u}-{v}")
            part[a] = b
        return end

    def left(self) -> Multigraph:
        """What is left."""
        there = [node for node, near in enumerate(self.single) if near is not None]
        place = {node: i for i, node in enumerate(there)}
        triples = [
            (place[u], place[v], count)
            for u in there
            for count, near in ((1, self.single[u]), (2, self.double[u]))
            for v in near
            if u < v
        ]
        u, v, count = np.array(triples, dtype=np.int64).reshape(-1, 3).T
        return from_pairs(u, v, count, np.array([self.weight[node] for node in there], dtype=np.int64))


def _root(part: list[int], node: int) -> int:
    while part[node] != node:
        part[node] = part[part[node]]
        node = part[node]
    return node
