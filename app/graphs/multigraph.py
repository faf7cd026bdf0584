"""Multigraph: an undirected graph with single and double edges and whole node weights, as the cycles of a
graph leave it when nodes of degree two have gone.
"""

from typing import NamedTuple

import numpy as np

from app.graphs.graph import Graph
from app.graphs.joined import components
from app.graphs.lists import ranges, starts


class Multigraph(NamedTuple):
    """A symmetric pattern; two or more parallel edges count as a double one, which is a cycle of two nodes.

    indptr    [n+1] int64       indices  [nnz] int32, ascending within a row
    twice     [nnz] uint8, 1 where an entry is a double edge
    weights   [n] int64, above 0
    """

    indptr: np.ndarray
    indices: np.ndarray
    twice: np.ndarray
    weights: np.ndarray

    @property
    def n(self) -> int:
        """Nodes."""
        return len(self.weights)

    def row_of(self) -> np.ndarray:
        """[nnz] int64, the row of each entry."""
        return np.repeat(np.arange(self.n), np.diff(self.indptr))

    def edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(u, v, count), [m] int64 each: joined nodes, u < v, and whether one or two edges join them."""
        rows, columns = self.row_of(), self.indices.astype(np.int64)
        one = rows < columns
        return rows[one], columns[one], 1 + self.twice[one].astype(np.int64)

    def degrees(self) -> np.ndarray:
        """[n] int64, double edges count twice."""
        if not self.twice.any():
            return np.diff(self.indptr)
        return np.bincount(self.row_of(), weights=1.0 + self.twice, minlength=self.n).astype(np.int64)

    def without(self, gone: np.ndarray) -> tuple["Multigraph", np.ndarray]:
        """What is left without some nodes [n] bool, and which nodes [k] int64 these are."""
        kept = np.flatnonzero(~gone)
        number = np.cumsum(~gone) - 1
        rows = self.row_of()
        own = ~gone[rows] & ~gone[self.indices]
        counts = np.bincount(number[rows[own]], minlength=len(kept))
        indptr = np.append(0, np.cumsum(counts)).astype(np.int64)
        indices = number[self.indices[own]].astype(np.int32)
        return Multigraph(indptr, indices, self.twice[own], self.weights[kept]), kept

    def parts(self, compiled: bool = True) -> np.ndarray:
        """[n] int64, the connected component of each node, numbered by their lowest nodes."""
        return components(self.indptr, self.indices, compiled=compiled)

    def split(self, compiled: bool = True) -> list[tuple["Multigraph", np.ndarray]]:
        """The connected components, small ones first, and which nodes [k] int64 each has."""
        part, degree = self.parts(compiled) if self.n else np.zeros(0, dtype=np.int64), np.diff(self.indptr)
        size = np.bincount(part)
        order = np.lexsort((np.arange(self.n), part, size[part]))
        first = _begins(part[order])
        place = np.empty(self.n, dtype=np.int64)
        place[order] = np.arange(self.n) - np.repeat(first[:-1], np.diff(first))
        ptr = np.append(0, np.cumsum(degree[order]))
        entries = ranges(self.indptr[order], degree[order])
        columns, twice = place[self.indices[entries]].astype(np.int32), self.twice[entries]
        found = []
        for a, b in zip(first[:-1].tolist(), first[1:].tolist()):
            own, nodes = slice(ptr[a], ptr[b]), order[a:b]
            inner = Multigraph(ptr[a : b + 1] - ptr[a], columns[own], twice[own], self.weights[nodes])
            found.append((inner, nodes))
        return found

    def cycles(self, compiled: bool = True) -> int:
        """Edges beyond those of a forest: 0 where it is one."""
        if not self.n:
            return 0
        return int(self.edges()[2].sum()) - self.n + int(self.parts(compiled).max()) + 1

    def pattern(self, name: str) -> Graph:
        """Which nodes are joined, as a graph."""
        return Graph(name, self.n, 0, self.n, self.indptr, self.indices, len(self.indices) // 2)

    def simple(self, name: str) -> tuple[Graph, np.ndarray]:
        """A graph without double edges that has the same cycles to break: beside one of the two edges of each
        the other leads through a node of its own, n, n + 1, ...; and of each of these [k] int64 one end.
        """
        u, v, count = self.edges()
        ends = np.stack([u, v], axis=1)
        twice = ends[count == 2]
        middle = self.n + np.arange(len(twice))
        pairs = np.concatenate([ends, *(np.stack([twice[:, i], middle], axis=1) for i in (0, 1))])
        ones = np.ones(len(pairs), dtype=np.int64)
        weights = np.ones(self.n + len(twice), dtype=np.int64)
        return from_pairs(pairs[:, 0], pairs[:, 1], ones, weights).pattern(name), twice[:, 0]


def _begins(values: np.ndarray) -> np.ndarray:
    """[k+1] where runs of equal values begin, and the end of all."""
    return np.append(np.flatnonzero(np.append(True, np.diff(values) != 0)[: len(values)]), len(values))


def multigraph_of(graph: Graph, weights: np.ndarray) -> Multigraph:
    """A whole graph with weights [n] int64 above 0."""
    indptr = np.ascontiguousarray(graph.indptr, dtype=np.int64)
    indices = np.ascontiguousarray(graph.indices, dtype=np.int32)
    return Multigraph(indptr, indices, np.zeros(len(indices), dtype=np.uint8), weights)


def from_pairs(u: np.ndarray, v: np.ndarray, count: np.ndarray, weights: np.ndarray) -> Multigraph:
    """Of joined nodes u[i], v[i], each pair once, and whether count[i] is 1 or 2 edges."""
    rows, columns = np.concatenate([u, v]), np.concatenate([v, u])
    order = np.lexsort((columns, rows))
    indptr = starts(rows, len(weights))
    twice = (np.concatenate([count, count])[order] > 1).astype(np.uint8)
    return Multigraph(indptr, columns[order].astype(np.int32), twice, weights)
