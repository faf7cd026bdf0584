"""SizedGraph: an undirected graph whose nodes have sizes and weights, as dismantling asks for it."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from app.graphs.graph import Graph
from app.graphs.joined import components
from app.graphs.lists import kept_rows, ranges, starts


class SizedGraph(NamedTuple):
    """A symmetric pattern, and how large the components may be that a set of nodes leaves.

    indptr    [n+1] int64       indices  [nnz] int32, ascending within a row
    size      [n] int64, above 0: for how many nodes of a graph a node stands
    weights   [n] int64, above 0: what it costs to take a node out
    most      what the nodes of a component that is left may add up to in size
    """

    indptr: np.ndarray
    indices: np.ndarray
    size: np.ndarray
    weights: np.ndarray
    most: int

    @property
    def n(self) -> int:
        """Nodes."""
        return len(self.size)

    def row_of(self) -> np.ndarray:
        """[nnz] int64, the row of each entry."""
        return np.repeat(np.arange(self.n), np.diff(self.indptr))

    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """(u, v), [m] int64 each, u < v."""
        rows, columns = self.row_of(), self.indices.astype(np.int64)
        one = rows < columns
        return rows[one], columns[one]

    def degrees(self) -> np.ndarray:
        """[n] int64."""
        return np.diff(self.indptr)

    def parts(self, compiled: bool = True) -> np.ndarray:
        """[n] int64, the connected component of each node, numbered by their lowest nodes."""
        return components(self.indptr, self.indices, compiled=compiled)

    def sizes(self, compiled: bool = True) -> np.ndarray:
        """[c] int64, what the components have in size."""
        part = self.parts(compiled) if self.n else np.zeros(0, dtype=np.int64)
        total = np.zeros(int(part.max(initial=-1)) + 1, dtype=np.int64)
        np.add.at(total, part, self.size)
        return total

    def apart(self, compiled: bool = True) -> bool:
        """Whether no component is too large."""
        return not (self.sizes(compiled) > self.most).any()

    def without(self, gone: np.ndarray) -> tuple["SizedGraph", np.ndarray]:
        """What is left without some nodes [n] bool, and which nodes [k] int64 these are."""
        kept = np.flatnonzero(~gone)
        rows = kept_rows(self.indptr, self.indices, ~gone)
        return SizedGraph(*rows, self.size[kept], self.weights[kept], self.most), kept

    def split(self, compiled: bool = True) -> list[tuple["SizedGraph", np.ndarray]]:
        """The components that are too large, small ones first, and which nodes [k] int64 each has."""
        part, degree = self.parts(compiled) if self.n else np.zeros(0, dtype=np.int64), self.degrees()
        count, total = np.bincount(part), np.zeros(int(part.max(initial=-1)) + 1, dtype=np.int64)
        np.add.at(total, part, self.size)
        order = np.lexsort((np.arange(self.n), part, count[part]))
        order = order[total[part[order]] > self.most]
        place = np.empty(self.n, dtype=np.int64)
        ends = np.append(np.flatnonzero(np.diff(part[order], prepend=-1)), len(order))
        place[order] = np.arange(len(order)) - np.repeat(ends[:-1], np.diff(ends))
        ptr = np.append(0, np.cumsum(degree[order]))
        entries = ranges(self.indptr[order], degree[order])
        columns, found = place[self.indices[entries]].astype(np.int32), []
        for a, b in zip(ends[:-1].tolist(), ends[1:].tolist()):
            nodes, own = order[a:b], columns[ptr[a] : ptr[b]]
            size, weights = self.size[nodes], self.weights[nodes]
            found.append((SizedGraph(ptr[a : b + 1] - ptr[a], own, size, weights, self.most), nodes))
        return found

    def simple(self, name: str) -> tuple[Graph, np.ndarray]:
        """A graph of nodes of size one in which the same sets leave small components: a node of size s has
        s - 1 nodes of its own beside it; and next to which node each of these is, [k] int64.
        """
        ends = np.repeat(np.arange(self.n), self.size - 1)
        if not len(ends):
            return self.pattern(name), ends
        u, v = self.edges()
        own = self.n + np.arange(len(ends))
        weights = np.ones(self.n + len(ends), dtype=np.int64)
        every = from_ends(np.concatenate([u, ends]), np.concatenate([v, own]), weights, weights, self.most)
        return every.pattern(name), ends

    def pattern(self, name: str) -> Graph:
        """Which nodes are joined, as a graph."""
        return Graph(name, self.n, 0, self.n, self.indptr, self.indices, len(self.indices) // 2)


def sized_of(graph: Graph, weights: np.ndarray, most: int) -> SizedGraph:
    """A whole graph with weights [n] int64 above 0, every node of size 1."""
    indptr = np.ascontiguousarray(graph.indptr, dtype=np.int64)
    indices = np.ascontiguousarray(graph.indices, dtype=np.int32)
    return SizedGraph(indptr, indices, np.ones(graph.n, dtype=np.int64), weights, most)


def from_ends(u: np.ndarray, v: np.ndarray, size: np.ndarray, weights: np.ndarray, most: int) -> SizedGraph:
    """Of joined nodes u[i], v[i], each pair once."""
    rows, columns = np.concatenate([u, v]), np.concatenate([v, u])
    order = np.lexsort((columns, rows))
    indptr = starts(rows, len(size))
    return SizedGraph(indptr, columns[order].astype(np.int32), size, weights, most)


def largest_component(n: int, component: float) -> int:
    """How many of n nodes a component may have: a whole number, n at most, as it is, a share below 1 of n
    rounded down, at least one.
    """
    most = component if component >= 1 else Fraction(str(float(component))) * n
    return max(int(min(most, n)), 1)
