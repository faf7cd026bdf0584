"""The independent check of reductions of feedback vertex sets: replays their log, and proves each entry
(app/reductions/replay.py).
"""

import numpy as np

from app.graphs.joined import root_of
from app.graphs.multigraph import Multigraph, from_pairs
from app.reductions.fvs.log import CUT, LEAF, PATH, SHIFT, TAKE
from app.reductions.replay import Replay, require


def verify_log(core: Multigraph, log: np.ndarray) -> tuple[Multigraph, int]:
    """What the log [words] int64 leaves of a multigraph, and what is taken in any case weighs; nodes are
    numbered in the order of the numbers they are called by. Raises BadReduction.
    """
    replay = _Replay(core)
    replay.follow(log)
    return replay.core(), replay.paid


class _Replay(Replay):
    """The multigraph as the entries so far have left it.

    near, double   [n] of each node its neighbours by one edge, by two
    """

    def __init__(self, core: Multigraph) -> None:
        self.near: list[set[int] | None] = [set() for _ in range(core.n)]
        self.double: list[set[int]] = [set() for _ in range(core.n)]
        for u, v, count in zip(*(each.tolist() for each in core.edges())):
            kind = self.double if count == 2 else self.near
            kind[u].add(v)
            kind[v].add(u)
        self.weight = core.weights.tolist()
        self.rules = {
            LEAF: self._leaf, PATH: self._path, TAKE: self._take, SHIFT: self._shift, CUT: self._cut,
        }  # fmt: skip

    def _leave(self, node: int) -> None:
        for other in self.near[node]:
            self.near[other].remove(node)
        for other in self.double[node]:
            self.double[other].remove(node)
        self.near[node], self.double[node] = None, set()

    def _leaf(self, words: list[int], at: int) -> int:
        v = self.node(words, at)
        require(len(self.near[v]) < 2 and not self.double[v], f"node {v} has more than one edge")
        self._leave(v)
        return at + 1

    def _path(self, words: list[int], at: int) -> int:
        v = self.node(words, at)
        require(len(self.near[v]) == 2 and not self.double[v], f"node {v} has not two neighbours")
        a, b = self.near[v]
        lightest = min(self.weight[a], self.weight[b])
        require(lightest <= self.weight[v], f"node {v} is lighter than its neighbours")
        self._leave(v)
        if b in self.near[a]:
            self.near[a].remove(b)
            self.near[b].remove(a)
            self.double[a].add(b)
            self.double[b].add(a)
        elif b not in self.double[a]:
            self.near[a].add(b)
            self.near[b].add(a)
        return at + 1

    def _take(self, words: list[int], at: int) -> int:
        u, v = self.node(words, at), self.node(words, at + 1)
        require(u in self.double[v], f"no double edge joins {u} and {v}")
        require(self.weight[u] <= self.weight[v], f"node {u} is heavier than {v}")
        require(self.double[v] - {u} <= self.double[u], f"a double edge of {v} leads past {u}")
        require(len(self.near[v] - self.double[u]) < 2, f"two edges of {v} lead past {u}")
        self.paid += self.weight[u]
        self._leave(u)
        return at + 2

    def _shift(self, words: list[int], at: int) -> int:
        v = self.node(words, at)
        require(len(self.double[v]) == 1 and len(self.near[v]) < 2, f"node {v} has other edges")
        (u,) = self.double[v]
        require(self.weight[u] > self.weight[v], f"node {u} is not heavier than {v}")
        self.paid += self.weight[v]
        self.weight[u] -= self.weight[v]
        self._leave(v)
        return at + 1

    def _cut(self, words: list[int], at: int) -> int:
        require(at < len(words) and 0 < words[at] <= (len(words) - at - 1) // 2, "the log ends within it")
        end = at + 1 + 2 * words[at]
        cut = [(self.node(words, i), self.node(words, i + 1)) for i in range(at + 1, end, 2)]
        for u, v in cut:
            require(v in self.near[u], f"no single edge joins {u} and {v}")
            self.near[u].remove(v)
            self.near[v].remove(u)
        part = list(range(len(self.near)))
        for u, near in enumerate(self.near):
            for v in (near or set()) | self.double[u]:
                part[root_of(part, u)] = root_of(part, v)
        for u, v in cut:
            a, b = root_of(part, u), root_of(part, v)
            require(a != b, f"a cycle has the edge {u}-{v}")
            part[a] = b
        return end

    def core(self) -> Multigraph:
        """What is left."""
        there, place = self.left()
        triples = [
            (place[u], place[v], count)
            for u in there
            for count, near in ((1, self.near[u]), (2, self.double[u]))
            for v in near
            if u < v
        ]
        u, v, count = np.array(triples, dtype=np.int64).reshape(-1, 3).T
        return from_pairs(u, v, count, np.array([self.weight[node] for node in there], dtype=np.int64))
