"""Steiner trees in whole numbers: the cheapest tree of a graph that holds given nodes, the terminals.

A tree is told by `parent` [n] int64: the next node on the way to its root, the root's own number there, and
-1 for what is not in the tree. Of all roots the smallest node of the tree is the canonical one.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from app.errors import GraphError
from app.graphs.fixed_point import integer_weights
from app.graphs.graph import Graph
from app.graphs.joined import components
from app.graphs.keys import sorted_set
from app.graphs.lists import entries_of, ranges, starts

OUTSIDE = -1  # the parent of what is not in a tree


class SteinerCore(NamedTuple):
    """A question: rows of a graph without loops and repeats, both directions of each edge, and terminals.

    indptr [n+1] int64, indices [nnz] int32, ascending within a row
    lengths    [nnz] int64, above 0, whole numbers of a unit; all together below 2^53
    terminals  [k] int64, ascending; all in one component
    """

    indptr: np.ndarray
    indices: np.ndarray
    lengths: np.ndarray
    terminals: np.ndarray

    @property
    def n(self) -> int:
        """Nodes."""
        return len(self.indptr) - 1

    @property
    def edges(self) -> int:
        """Edges, each counted once."""
        return len(self.indices) // 2

    def row_of(self) -> np.ndarray:
        """[nnz] int64, the row of each entry."""
        return np.repeat(np.arange(self.n, dtype=np.int64), np.diff(self.indptr))

    def connected(self, compiled: bool = True) -> bool:
        """Whether paths join all nodes."""
        return int(self.parts(compiled).max(initial=0)) == 0

    def parts(self, compiled: bool = True) -> np.ndarray:
        """[n] int64, the component of each node."""
        return components(self.indptr, self.indices, compiled=compiled)

    def towards(self, node: int) -> np.ndarray:
        """[n] int32, the next node on a way of fewest edges to a node, which is its own; OUTSIDE where there
        is no way. Of all such ways those that a search in breadth finds first, rows in their order.
        """
        # Rows hold both directions of each edge, so that those of a directed graph are the same.
        ones = np.ones(len(self.indices), dtype=np.int8)
        matrix = sp.csr_array((ones, self.indices, self.indptr), shape=(self.n, self.n))
        near = breadth_first_order(matrix, node, directed=True)[1]
        near[near < 0] = OUTSIDE
        near[node] = node
        return near

    def lengths_of(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """[k] int64, the lengths of edges u[i]-v[i]; -1 where there is none."""
        rows = sorted_set(np.asarray(u, np.int64))
        at, counts = entries_of(self.indptr, rows), self.indptr[rows + 1] - self.indptr[rows]
        if not len(at):
            return np.full(len(u), -1, dtype=np.int64)
        keys = np.repeat(rows, counts) * self.n + self.indices[at]
        wanted = np.asarray(u, np.int64) * self.n + v
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, self.lengths[at[place]], -1)

    def length(self, parent: np.ndarray) -> int:
        """Of a tree of the graph, by its parents [n]."""
        return int(self.lengths_of(*ends_of(parent)).sum())


def ends_of(parent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The edges of a tree: u, v [m] int64, each node but the root with its parent, by ascending u."""
    child = np.flatnonzero((parent >= 0) & (parent != np.arange(len(parent))))
    return child, parent[child].astype(np.int64)


def tree_of_edges(n: int, u: np.ndarray, v: np.ndarray, node: int = OUTSIDE) -> np.ndarray:
    """[n] int64, the parents of the tree of edges u[i]-v[i] [m], canonical; of none the tree is one node.

    node   of a tree without edges
    Raises ValueError where the edges are not a tree: some close a circle, or they do not hang together
    """
    parent = np.full(n, OUTSIDE, dtype=np.int64)
    if not len(u):
        if node >= 0:
            parent[node] = node
        return parent
    ends, places = np.unique(np.concatenate([u, v]), return_inverse=True)
    a, b = np.split(places.reshape(-1), 2)
    matrix = sp.csr_array((np.ones(len(a), np.int8), (a, b)), shape=(len(ends), len(ends)))
    if len(ends) != len(u) + 1 or connected_components(matrix, directed=False)[0] != 1:
        raise ValueError("edges that are no tree")
    parent[ends] = ends[_towards(len(ends), a, b)]
    return parent


def forest_of_edges(n: int, u: np.ndarray, v: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """[n] int64, the parents of those trees of a forest of edges u[i]-v[i] [m] that hold roots [k], one each;
    nodes of other trees are outside.
    """
    head, tail = np.append(np.full(len(roots), n), u), np.append(roots, v)  # node n joins the trees
    matrix = sp.csr_array((np.ones(len(head), np.int8), (head, tail)), shape=(n + 1, n + 1))
    parent = breadth_first_order(matrix, n, directed=False)[1][:n].astype(np.int64)
    parent[roots] = roots
    return np.maximum(parent, OUTSIDE)


def rooted_at(parent: np.ndarray, node: int) -> np.ndarray:
    """[n], the same tree with another of its nodes as the root."""
    found, below, here = parent.copy(), node, int(parent[node])
    found[node] = node
    while here != below:
        above = int(parent[here])
        found[here] = below
        if above == here:
            break
        below, here = here, above
    return found


def canonical_tree(parent: np.ndarray) -> np.ndarray:
    """[n] int64, the same tree with its smallest node as the root."""
    own = np.flatnonzero(parent >= 0)
    return rooted_at(parent, int(own[0])).astype(np.int64) if len(own) else parent.astype(np.int64)


def _towards(k: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[k] int64, the next node on the way to node 0 in a tree of nodes 0..k-1, of edges a[i]-b[i] [k-1]."""
    head, tail = np.concatenate([a, b]), np.concatenate([b, a])
    order = np.argsort(head, kind="stable")
    near, begin = tail[order], starts(head, k)
    parent = np.full(k, OUTSIDE, dtype=np.int64)
    parent[0], front = 0, np.zeros(1, dtype=np.int64)
    while len(front):
        count = begin[front + 1] - begin[front]
        at = ranges(begin[front], count)
        found, source = near[at], np.repeat(front, count)
        new = parent[found] < 0
        parent[found[new]] = source[new]
        front = found[new]
    return parent


class Asked(NamedTuple):
    """What a caller asks of a graph: its core, and objective = length * unit."""

    core: SteinerCore
    unit: float


def steiner_of(graph: Graph, terminals: np.ndarray) -> Asked:
    """What a caller asks of a whole graph; terminals [k] rows. Raises GraphError."""
    return rooted(graph, terminals)[0]


def rooted(graph: Graph, terminals: np.ndarray) -> tuple[Asked, np.ndarray]:
    """What `steiner_of` says, and the ways to the first terminal (SteinerCore.towards), by which it is seen
    that terminals hang together.
    """
    weights, unit = integer_weights(graph)
    refuse_lengths(graph, weights)
    terminals = sorted_set(np.asarray(terminals, dtype=np.int64))
    if not len(terminals):
        raise GraphError(f"{graph.name}: found no terminals; one or more would be right")
    step = int(np.gcd.reduce(weights)) if len(weights) else 1
    indptr, indices = np.asarray(graph.indptr, np.int64), np.asarray(graph.indices, np.int32)
    core = SteinerCore(*map(np.ascontiguousarray, (indptr, indices, weights // step, terminals)))
    return Asked(core, unit * step), refuse_apart(graph, core)


def refuse_lengths(graph: Graph, weights: np.ndarray, largest: float = 0.0) -> None:
    """Refuse lengths [nnz], in units, that are not above 0. Raises GraphError.

    largest   of other numbers that share the unit
    """
    wrong = np.flatnonzero(weights <= 0)
    if len(wrong):
        where = int(wrong[0])
        pair = graph.called_entry(where)
        lengths = np.ones(len(weights), dtype=np.float32) if graph.weights is None else graph.weights
        length, largest = float(lengths[where]), max(largest, float(lengths.max()))
        right = "one above 0 would be right"
        if length > 0:
            right = f"beside {largest:g} it counts as 0; longer or none would be right"
        raise GraphError(f"{graph.name}: edge {pair} has the length {length:g}; {right}")


def refuse_apart(graph: Graph, core: SteinerCore) -> np.ndarray:
    """Refuse terminals that no path joins; returns the ways to the first one, [n] int32, of no terminal
    none. Raises GraphError.
    """
    if not len(core.terminals):
        return np.full(core.n, OUTSIDE, dtype=np.int32)
    near = core.towards(int(core.terminals[0]))
    apart = np.flatnonzero(near[core.terminals] == OUTSIDE)
    if len(apart):
        first, other = (graph.called(int(node)) for node in core.terminals[[0, apart[0]]])
        right = "terminals in one component would be right"
        raise GraphError(f"{graph.name}: no path joins the terminals {first} and {other}; {right}")
    return near
