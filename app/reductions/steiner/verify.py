"""The independent check of reductions of Steiner trees: replays their log, and proves each entry
(app/reductions/replay.py).
"""

from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.graphs.lists import starts
from app.graphs.steiner import SteinerCore
from app.reductions.replay import Replay, require
from app.reductions.steiner.log import DROP, JOIN, LEAF, PATH


def verify_log(core: SteinerCore, log: np.ndarray) -> tuple[SteinerCore, int]:
    """What the log [words] int64 leaves of a graph, and the length of the edges that it takes; nodes are
    numbered in the order of the numbers they are called by. Raises BadReduction.
    """
    if not len(log):
        return _joined(core.n, core.row_of(), core.indices.astype(np.int64), core.lengths, core.terminals), 0
    replay = _Replay(core)
    replay.follow(log)
    return replay.core(), replay.paid


def _joined(k: int, u: np.ndarray, v: np.ndarray, length: np.ndarray, wanted: np.ndarray) -> SteinerCore:
    """What paths join to the terminals `wanted` [t] in a graph of k nodes, entries [m] ascending by their
    ends; nothing of one terminal.
    """
    matrix = sp.csr_array((np.ones(len(u), np.int8), (u, v)), shape=(k, k))
    part = connected_components(matrix, directed=False)[1]
    kept = part == part[wanted[0]] if len(wanted) > 1 else np.zeros(k, dtype=bool)
    number = np.cumsum(kept) - 1
    own = kept[u]
    indptr = starts(number[u[own]], int(kept.sum()))
    wanted = number[wanted[kept[wanted]]]
    return SteinerCore(indptr.astype(np.int64), number[v[own]].astype(np.int32), length[own].copy(), wanted)


class _Replay(Replay):
    """The graph as the entries so far have left it.

    near     [n] of each node its neighbours, with lengths     wanted   terminals
    """

    def __init__(self, core: SteinerCore) -> None:
        self.near: list[dict[int, int] | None] = [{} for _ in range(core.n)]
        rows = core.row_of().tolist()
        for u, v, length in zip(rows, core.indices.tolist(), core.lengths.tolist()):
            self.near[u][v] = length
        self.wanted = set(core.terminals.tolist())
        self.rules = {
            LEAF: self._leaf, PATH: self._path, JOIN: self._join, DROP: self._drop,
        }  # fmt: skip

    def _leave(self, node: int) -> dict[int, int]:
        edges, self.near[node] = self.near[node], None
        for other in edges:
            del self.near[other][node]
        return edges

    def _shorter(self, u: int, v: int, length: int) -> None:
        """An edge, where there is none as short."""
        if length < self.near[u].get(v, length + 1):
            self.near[u][v] = self.near[v][u] = length

    def _leaf(self, words: list[int], at: int) -> int:
        node = self.node(words, at)
        require(node not in self.wanted and len(self.near[node]) < 2, f"node {node} is no leaf to spare")
        self._leave(node)
        return at + 1

    def _path(self, words: list[int], at: int) -> int:
        node = self.node(words, at)
        require(node not in self.wanted and len(self.near[node]) == 2, f"node {node} has not two edges")
        (a, first), (b, second) = self._leave(node).items()
        self._shorter(a, b, first + second)
        return at + 1

    def _length(self, u: int, v: int) -> int:
        require(v in self.near[u], f"there is no edge {u}-{v}")
        return self.near[u][v]

    def _join(self, words: list[int], at: int) -> int:
        region, at = self.nodes(words, at)
        way, at = self.nodes(words, at)
        inside = set(region)
        lengths = [self._length(u, v) for u, v in pairwise(way)]
        out = [(u, v) for u, v in pairwise(way) if (u in inside) != (v in inside)]
        require(len(out) == 1, "the way leaves the region more or less than once")
        others = [
            length
            for u in inside
            for v, length in self.near[u].items()
            if v not in inside and (u, v) != out[0] and (v, u) != out[0]
        ]
        require(way[0] in inside or len(way) == 2, "the way does not begin in the region")
        if way[0] in self.wanted and way[-1] in self.wanted:
            require(min(others, default=sum(lengths)) >= sum(lengths), "a shorter edge leaves the region")
        else:
            require(len(way) == 2 and not others, "the way does not join terminals")
            apart = self.wanted & inside and self.wanted - inside
            require(bool(apart), "no terminals on one side of the edge")
        kept, gone = sorted(out[0])
        self.paid += self.near[kept].pop(gone)
        del self.near[gone][kept]
        for node, length in self._leave(gone).items():
            self._shorter(kept, node, length)
        self.wanted = self.wanted - {gone} | {kept}
        return at

    def _drop(self, words: list[int], at: int) -> int:
        u, v = self.node(words, at), self.node(words, at + 1)
        way, at = self.nodes(words, at + 2)
        most = self._length(u, v)
        require(way[0] == u and way[-1] == v, "the way does not join the ends of the edge")
        part = 0
        for a, b in pairwise(way):
            require({a, b} != {u, v}, "the way has the edge itself")
            part += self._length(a, b)
            require(part <= most, "a part of the way is longer than the edge")
            part = 0 if b in self.wanted else part
        del self.near[u][v], self.near[v][u]
        return at

    def core(self) -> SteinerCore:
        """What is left that paths join to the terminals; nothing of one terminal."""
        there, place = self.left()
        triples = [(place[u], place[v], length) for u in there for v, length in sorted(self.near[u].items())]
        u, v, length = np.array(triples, dtype=np.int64).reshape(-1, 3).T
        wanted = np.array(sorted(place[node] for node in self.wanted), dtype=np.int64)
        return _joined(len(there), u, v, length, wanted)
