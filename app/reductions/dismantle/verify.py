"""The independent check of reductions of dismantling problems: replays their log, and proves each entry.

It shares with what reduces only the meaning of an entry (log.py), and searches nothing.
"""

from collections.abc import Callable

import numpy as np

from app.errors import LockstepError
from app.graphs.sized import SizedGraph, from_ends
from app.reductions.dismantle.log import DROP, MERGE, PAIR, TAKE

CHECK_SECONDS = 1e-6  # about, for each node and entry
WORD_SECONDS = 1e-6  # for each word of a log


class BadReduction(LockstepError):
    """An entry proves nothing; the message says where it begins and what is wrong."""


def verify_log(core: SizedGraph, log: np.ndarray) -> tuple[SizedGraph, int]:
    """What the log [words] int64 leaves of a graph, and what is taken in any case weighs; nodes are numbered
    in the order of the numbers they are called by. Raises BadReduction.
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
    """The graph as the entries so far have left it: of each node its neighbours; None: it has gone."""

    def __init__(self, core: SizedGraph) -> None:
        self.near: list[set[int] | None] = [set() for _ in range(core.n)]
        for u, v in zip(*(each.tolist() for each in core.edges())):
            self.near[u].add(v)
            self.near[v].add(u)
        self.size, self.weight = core.size.tolist(), core.weights.tolist()
        self.most, self.paid = core.most, 0
        self.rules: dict[int, Callable[[list[int], int], int]] = {
            DROP: self._drop, MERGE: self._merge, TAKE: self._take, PAIR: self._pair,
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
        there = 0 <= node < len(self.near) and self.near[node] is not None
        _require(there, f"node {node} is not there")
        return node

    def _nodes(self, words: list[int], at: int) -> tuple[set[int], int]:
        """Several nodes behind their number, and where the entry ends."""
        _require(at < len(words) and 0 < words[at] < len(words) - at, "the log ends within it")
        end = at + 1 + words[at]
        nodes = {self._node(words, i) for i in range(at + 1, end)}
        _require(len(nodes) == words[at], "a node is named twice")
        _require(sum(self.size[node] for node in nodes) <= self.most, "nodes that are too large together")
        return nodes, end

    def _beyond(self, nodes: set[int], but: int) -> None:
        for node in nodes:
            outside = self.near[node] - nodes - {but}
            _require(not outside, f"an edge leads from node {node} to others")

    def _leave(self, node: int) -> None:
        for other in self.near[node]:
            self.near[other].discard(node)
        self.near[node] = None

    def _drop(self, words: list[int], at: int) -> int:
        nodes, end = self._nodes(words, at)
        self._beyond(nodes, -1)
        for node in nodes:
            self._leave(node)
        return end

    def _merge(self, words: list[int], at: int) -> int:
        v = self._node(words, at)
        nodes, end = self._nodes(words, at + 1)
        _require(v not in nodes, f"node {v} is merged with itself")
        self._beyond(nodes, v)
        for node in nodes:
            _require(self.weight[node] >= self.weight[v], f"node {v} is heavier than {node}")
        self.size[v] += sum(self.size[node] for node in nodes)
        for node in nodes:
            self._leave(node)
        return end

    def _take(self, words: list[int], at: int) -> int:
        v = self._node(words, at)
        _require(self.size[v] > self.most, f"node {v} is not too large")
        self.paid += self.weight[v]
        self._leave(v)
        return at + 1

    def _pair(self, words: list[int], at: int) -> int:
        v, u = self._node(words, at), self._node(words, at + 1)
        _require(u in self.near[v], f"no edge joins {v} and {u}")
        _require(self.size[u] + self.size[v] > self.most, f"nodes {v} and {u} are not too large together")
        _require(self.near[u] - {v} <= self.near[v], f"an edge of {u} leads past {v}")
        _require(self.size[u] <= self.size[v], f"node {v} is smaller than {u}")
        _require(self.weight[v] <= self.weight[u], f"node {v} is heavier than {u}")
        self.paid += self.weight[v]
        self._leave(v)
        return at + 2

    def left(self) -> SizedGraph:
        """What is left."""
        there = [node for node, near in enumerate(self.near) if near is not None]
        place = {node: i for i, node in enumerate(there)}
        pairs = [(place[u], place[v]) for u in there for v in self.near[u] if u < v]
        u, v = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        size, weights = (
            np.array([of[node] for node in there], dtype=np.int64) for of in (self.size, self.weight)
        )
        return from_ends(u, v, size, weights, self.most)
