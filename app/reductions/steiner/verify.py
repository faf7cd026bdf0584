"""The independent check of reductions of Steiner trees: replays their log, and proves each entry.

It shares with what reduces only the meaning of an entry (log.py), and searches nothing: it asks of each entry
whether the nodes it names satisfy what it demands of the graph that is left.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.errors import LockstepError
from app.graphs.steiner import SteinerCore
from app.reductions.steiner.log import DROP, JOIN, LEAF, PATH

CHECK_SECONDS = 1e-6  # about, for each node and entry
WORD_SECONDS = 1e-6  # for each word of a log


class BadReduction(LockstepError):
    """An entry proves nothing; the message says where it begins and what is wrong."""


def verify_log(core: SteinerCore, log: np.ndarray) -> tuple[SteinerCore, int]:
    """What the log [words] int64 leaves of a graph, and the length of the edges that it takes; nodes are
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
    """The graph as the entries so far have left it.

    edges     [n] of each node its neighbours with lengths; None: it has gone
    wanted    terminals
    """

    def __init__(self, core: SteinerCore) -> None:
        self.edges: list[dict[int, int] | None] = [{} for _ in range(core.n)]
        rows = core.row_of().tolist()
        for u, v, length in zip(rows, core.indices.tolist(), core.lengths.tolist()):
            self.edges[u][v] = length
        self.wanted, self.paid = set(core.terminals.tolist()), 0
        self.rules: dict[int, Callable[[list[int], int], int]] = {
            LEAF: self._leaf, PATH: self._path, JOIN: self._join, DROP: self._drop,
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
        _require(0 <= node < len(self.edges) and self.edges[node] is not None, f"node {node} is not there")
        return node

    def _nodes(self, words: list[int], at: int) -> tuple[list[int], int]:
        """A number of nodes, and these; and where they end."""
        _require(at < len(words) and 0 < words[at] < len(words) - at, "the log ends within it")
        end = at + 1 + words[at]
        return [self._node(words, i) for i in range(at + 1, end)], end

    def _leave(self, node: int) -> dict[int, int]:
        edges, self.edges[node] = self.edges[node], None
        for other in edges:
            del self.edges[other][node]
        return edges

    def _shorter(self, u: int, v: int, length: int) -> None:
        """An edge, where there is none as short."""
        if length < self.edges[u].get(v, length + 1):
            self.edges[u][v] = self.edges[v][u] = length

    def _leaf(self, words: list[int], at: int) -> int:
        node = self._node(words, at)
        _require(node not in self.wanted and len(self.edges[node]) < 2, f"node {node} is no leaf to spare")
        self._leave(node)
        return at + 1

    def _path(self, words: list[int], at: int) -> int:
        node = self._node(words, at)
        _require(node not in self.wanted and len(self.edges[node]) == 2, f"node {node} has not two edges")
        (a, first), (b, second) = self._leave(node).items()
        self._shorter(a, b, first + second)
        return at + 1

    def _length(self, u: int, v: int) -> int:
        _require(v in self.edges[u], f"there is no edge {u}-{v}")
        return self.edges[u][v]

    def _join(self, words: list[int], at: int) -> int:
        region, at = self._nodes(words, at)
        way, at = self._nodes(words, at)
        inside = set(region)
        lengths = [self._length(u, v) for u, v in pairwise(way)]
        out = [(u, v) for u, v in pairwise(way) if (u in inside) != (v in inside)]
        _require(len(out) == 1, "the way leaves the region more or less than once")
        others = [
            length
            for u in inside
            for v, length in self.edges[u].items()
            if v not in inside and (u, v) != out[0] and (v, u) != out[0]
        ]
        _require(way[0] in inside or len(way) == 2, "the way does not begin in the region")
        if way[0] in self.wanted and way[-1] in self.wanted:
            _require(min(others, default=sum(lengths)) >= sum(lengths), "a shorter edge leaves the region")
        else:
            _require(len(way) == 2 and not others, "the way does not join terminals")
            apart = self.wanted & inside and self.wanted - inside
            _require(bool(apart), "no terminals on one side of the edge")
        kept, gone = sorted(out[0])
        self.paid += self.edges[kept].pop(gone)
        del self.edges[gone][kept]
        for node, length in self._leave(gone).items():
            self._shorter(kept, node, length)
        self.wanted = self.wanted - {gone} | {kept}
        return at

    def _drop(self, words: list[int], at: int) -> int:
        u, v = self._node(words, at), self._node(words, at + 1)
        way, at = self._nodes(words, at + 2)
        most = self._length(u, v)
        _require(way[0] == u and way[-1] == v, "the way does not join the ends of the edge")
        part = 0
        for a, b in pairwise(way):
            _require({a, b} != {u, v}, "the way has the edge itself")
            part += self._length(a, b)
            _require(part <= most, "a part of the way is longer than the edge")
            part = 0 if b in self.wanted else part
        del self.edges[u][v], self.edges[v][u]
        return at

    def left(self) -> SteinerCore:
        """What is left that paths join to the terminals; nothing of one terminal."""
        there = [node for node, edges in enumerate(self.edges) if edges is not None]
        place = {node: i for i, node in enumerate(there)}
        triples = [(place[u], place[v], length) for u in there for v, length in sorted(self.edges[u].items())]
        u, v, length = np.array(triples, dtype=np.int64).reshape(-1, 3).T
        wanted = np.array(sorted(place[node] for node in self.wanted), dtype=np.int64)
        k = len(there)
        matrix = sp.csr_array((np.ones(len(u), np.int8), (u, v)), shape=(k, k))
        part = connected_components(matrix, directed=False)[1]
        kept = part == part[wanted[0]] if len(wanted) > 1 else np.zeros(k, dtype=bool)
        number = np.cumsum(kept) - 1
        own = kept[u]
        indptr = np.append(0, np.cumsum(np.bincount(number[u[own]], minlength=int(kept.sum()))))
        wanted = number[wanted[kept[wanted]]]
        return SteinerCore(
            indptr.astype(np.int64), number[v[own]].astype(np.int32), length[own].copy(), wanted
        )
