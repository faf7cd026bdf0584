"""The independent check of reductions of dismantling problems: replays their log, and proves each entry
(app/reductions/replay.py).
"""

import numpy as np

from app.graphs.sized import SizedGraph, from_ends
from app.reductions.dismantle.log import DROP, MERGE, PAIR, TAKE
from app.reductions.replay import Replay, require


def verify_log(core: SizedGraph, log: np.ndarray) -> tuple[SizedGraph, int]:
    """What the log [words] int64 leaves of a graph, and what is taken in any case weighs; nodes are numbered
    in the order of the numbers they are called by. Raises BadReduction.
    """
    replay = _Replay(core)
    replay.follow(log)
    return replay.core(), replay.paid


class _Replay(Replay):
    """The graph as the entries so far have left it: of each node its neighbours; None: it has gone."""

    def __init__(self, core: SizedGraph) -> None:
        self.near: list[set[int] | None] = [set() for _ in range(core.n)]
        for u, v in zip(*(each.tolist() for each in core.edges())):
            self.near[u].add(v)
            self.near[v].add(u)
        self.size, self.weight = core.size.tolist(), core.weights.tolist()
        self.most = core.most
        self.rules = {
            DROP: self._drop, MERGE: self._merge, TAKE: self._take, PAIR: self._pair,
        }  # fmt: skip

    def _small(self, words: list[int], at: int) -> tuple[set[int], int]:
        """Nodes that are small together behind their number, and where they end."""
        named, end = self.nodes(words, at)
        nodes = set(named)
        require(len(nodes) == len(named), "a node is named twice")
        require(sum(self.size[node] for node in nodes) <= self.most, "nodes that are too large together")
        return nodes, end

    def _beyond(self, nodes: set[int], but: int) -> None:
        for node in nodes:
            outside = self.near[node] - nodes - {but}
            require(not outside, f"an edge leads from node {node} to others")

    def _leave(self, node: int) -> None:
        for other in self.near[node]:
            self.near[other].discard(node)
        self.near[node] = None

    def _drop(self, words: list[int], at: int) -> int:
        nodes, end = self._small(words, at)
        self._beyond(nodes, -1)
        for node in nodes:
            self._leave(node)
        return end

    def _merge(self, words: list[int], at: int) -> int:
        v = self.node(words, at)
        nodes, end = self._small(words, at + 1)
        require(v not in nodes, f"node {v} is merged with itself")
        self._beyond(nodes, v)
        for node in nodes:
            require(self.weight[node] >= self.weight[v], f"node {v} is heavier than {node}")
        self.size[v] += sum(self.size[node] for node in nodes)
        for node in nodes:
            self._leave(node)
        return end

    def _take(self, words: list[int], at: int) -> int:
        v = self.node(words, at)
        require(self.size[v] > self.most, f"node {v} is not too large")
        self.paid += self.weight[v]
        self._leave(v)
        return at + 1

    def _pair(self, words: list[int], at: int) -> int:
        v, u = self.node(words, at), self.node(words, at + 1)
        require(u in self.near[v], f"no edge joins {v} and {u}")
        require(self.size[u] + self.size[v] > self.most, f"nodes {v} and {u} are not too large together")
        require(self.near[u] - {v} <= self.near[v], f"an edge of {u} leads past {v}")
        require(self.size[u] <= self.size[v], f"node {v} is smaller than {u}")
        require(self.weight[v] <= self.weight[u], f"node {v} is heavier than {u}")
        self.paid += self.weight[v]
        self._leave(v)
        return at + 2

    def core(self) -> SizedGraph:
        """What is left."""
        there, place = self.left()
        pairs = [(place[u], place[v]) for u in there for v in self.near[u] if u < v]
        u, v = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        size, weights = (
            np.array([of[node] for node in there], dtype=np.int64) for of in (self.size, self.weight)
        )
        return from_ends(u, v, size, weights, self.most)
