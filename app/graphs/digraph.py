"""Digraph: a whole directed graph without loops, by the arcs out of each node and by those into it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.graphs.graph import IN_A, IN_TRANSPOSE, Graph, index_type
from app.graphs.keys import sorted_set
from app.graphs.lists import starts


@dataclass(frozen=True, eq=False)
class Digraph:
    """Nodes 0..n-1 and distinct arcs between different ones.

    out_ptr, out   [n+1] int64, [m] int32: heads of the arcs out of each node, ascending
    in_ptr, into   the same: tails of the arcs into each node, ascending
    """

    n: int
    out_ptr: np.ndarray
    out: np.ndarray
    in_ptr: np.ndarray
    into: np.ndarray

    @property
    def arcs(self) -> int:
        """How many there are."""
        return len(self.out)

    def tails(self) -> np.ndarray:
        """[m] int64, where the arcs of `out` begin."""
        return np.repeat(np.arange(self.n, dtype=np.int64), np.diff(self.out_ptr))

    @cached_property
    def mutual(self) -> np.ndarray:
        """[m] bool, which arcs of `out` have one the other way, so that the two are a cycle."""
        tails, heads = self.tails(), self.out.astype(np.int64)
        return np.isin(tails * self.n + heads, heads * self.n + tails, assume_unique=True)

    def matrix(self, kept: np.ndarray | None = None) -> sp.csr_array:
        """[n, n] CSR of ones at the arcs, or at those kept [m] bool."""
        tails, heads = self.tails(), self.out
        if kept is not None:
            tails, heads = tails[kept], heads[kept]
        return sp.csr_array((np.ones(len(heads), dtype=np.int8), (tails, heads)), shape=(self.n, self.n))

    def components(self, kept: np.ndarray | None = None) -> np.ndarray:
        """[n] int32, the number of each node's strongly connected component, by the arcs kept [m] or all."""
        return connected_components(self.matrix(kept), directed=True, connection="strong")[1]

    def part(self, nodes: np.ndarray) -> "Digraph":
        """What nodes [k] span, numbered in their order."""
        if len(nodes) == self.n and (np.diff(nodes) > 0).all():
            return self
        place = np.full(self.n, -1, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        tails, heads = place[self.tails()], place[self.out]
        inside = (tails >= 0) & (heads >= 0)
        return from_arcs(len(nodes), tails[inside], heads[inside])[0]

    def pattern(self, name: str) -> Graph:
        """Both directions of all arcs as a graph, which says which of them there are."""
        ahead, back = (
            sp.csr_array((np.full(self.arcs, bit, dtype=np.uint8), columns, ptr), shape=(self.n, self.n))
            for bit, columns, ptr in ((IN_A, self.out, self.out_ptr), (IN_TRANSPOSE, self.into, self.in_ptr))
        )
        both = ahead + back  # bits of their own: a sum is what either has
        columns = both.indices.astype(index_type(self.n))
        arcs = both.data.astype(np.uint8)
        indptr = both.indptr.astype(np.int64)
        return Graph(name, self.n, 0, self.n, indptr, columns, len(columns) // 2, arcs=arcs)


def from_arcs(n: int, tails: np.ndarray, heads: np.ndarray) -> tuple[Digraph, np.ndarray]:
    """The digraph of arcs [m] each, however often they are listed, and [n] bool: who has one to itself."""
    tails, heads = (np.asarray(ends, dtype=np.int64) for ends in (tails, heads))
    loops = np.zeros(n, dtype=bool)
    loops[tails[tails == heads]] = True
    keys = tails * n + heads
    keys = keys if (np.diff(keys) > 0).all() else sorted_set(keys)
    tails = keys // max(n, 1)
    heads = keys - tails * n
    tails, heads = tails[tails != heads], heads[tails != heads]
    ptr, heads, ones = starts(tails, n), heads.astype(np.int32), np.ones(len(heads), dtype=np.int8)
    back = sp.csr_array((ones, heads, ptr), shape=(n, n)).tocsc()  # its columns have their rows ascending
    return Digraph(n, ptr, heads, back.indptr.astype(np.int64), back.indices.astype(np.int32)), loops


def digraph_of(graph: Graph) -> tuple[Digraph, np.ndarray]:
    """The arcs of a whole graph, an edge without direction being two; and [n] bool, nodes with loops."""
    rows, columns = graph.row_of(), graph.indices.astype(np.int64)
    if graph.arcs is not None:  # rows hold heads of arcs: graph.neighbours = "out"
        out = graph.arcs & IN_A > 0
        rows, columns = rows[out], columns[out]
    loops = np.zeros(graph.n, dtype=bool) if graph.loops is None else graph.loops.astype(bool)
    return from_arcs(graph.n, rows, columns)[0], loops
