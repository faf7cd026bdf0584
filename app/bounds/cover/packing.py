"""Packing: a lower bound from edges, odd cycles and cliques whose values fit the weights of the nodes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.bounds.certificate import BadCertificate, Bound, cuts_up, edge_table, exact_sum
from app.bounds.cover.kernels import fill_packing
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set

ONE = 1 << 20  # the usual denominator
LARGEST = 1 << 52  # weights and their sums in units of 1/denominator stay exact in float64
FULL = 1 << 62  # of sums of int64
PIECE = 1 << 22  # edges looked up together


@dataclass(frozen=True, eq=False)
class Columns:
    """Edges, odd cycles and cliques of a graph, as the columns of a packing.

    ptr [k+1], nodes [ptr[k]]   the nodes of each column; those of a cycle in their order
    clique [k] bool             the nodes are pairwise joined; else they are a cycle of odd length
    """

    ptr: np.ndarray
    nodes: np.ndarray
    clique: np.ndarray

    def __len__(self) -> int:
        return len(self.clique)

    @property
    def sizes(self) -> np.ndarray:
        """[k] int64, nodes in each column."""
        return np.diff(self.ptr)

    @property
    def need(self) -> np.ndarray:
        """[k] int64, nodes of each column in every cover: k-1 of a clique, (L+1)/2 of an odd cycle."""
        return np.where(self.clique, self.sizes - 1, (self.sizes + 1) // 2)

    def matrix(self, n: int) -> sp.csr_array:
        """[k, n] float64: one where a node is in a column."""
        return sp.csr_array((np.ones(len(self.nodes)), self.nodes, self.ptr), shape=(len(self), n))

    def load(self, n: int, value: np.ndarray) -> np.ndarray:
        """[n] int64: the sum of the values [k] of the columns that each node is in."""
        load = np.zeros(n, dtype=np.int64)
        np.add.at(load, self.nodes, np.repeat(value, self.sizes))
        return load

    def taken(self, keep: np.ndarray) -> "Columns":
        """The columns of `keep` [k] bool."""
        sizes = self.sizes
        ptr = np.concatenate([[0], np.cumsum(sizes[keep])]).astype(np.int64)
        return Columns(ptr, self.nodes[np.repeat(keep, sizes)], self.clique[keep])


def columns_of(lists: list[np.ndarray], clique: np.ndarray | bool) -> Columns:
    """Columns of lists of nodes.

    clique   [len(lists)] bool, or one for all
    """
    sizes = np.array([len(nodes) for nodes in lists], dtype=np.int64)
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    nodes = np.concatenate(lists).astype(np.int32) if lists else np.zeros(0, dtype=np.int32)
    return Columns(ptr, nodes, np.broadcast_to(clique, len(lists)).copy())


def edge_columns(graph: Graph) -> Columns:
    """All edges of a whole graph, in the order of its rows."""
    u, v = graph.row_of(), graph.indices
    ends = np.stack([u[u < v], v[u < v]], axis=1).astype(np.int32)
    return Columns(
        2 * np.arange(len(ends) + 1, dtype=np.int64), ends.reshape(-1), np.ones(len(ends), dtype=bool)
    )


def joined(parts: list[Columns]) -> Columns:
    """The columns of all parts, one part after the other."""
    sizes = np.concatenate([part.sizes for part in parts]) if parts else np.zeros(0, dtype=np.int64)
    return Columns(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([part.nodes for part in parts]).astype(np.int32)
        if parts
        else np.zeros(0, dtype=np.int32),
        np.concatenate([part.clique for part in parts]) if parts else np.zeros(0, dtype=bool),
    )


def keys_of(columns: Columns) -> np.ndarray:
    """[k] uint64, the same for columns of the same nodes and need, and for others by a chance of 2^-64."""
    if not len(columns):
        return np.zeros(0, dtype=np.uint64)
    z = columns.nodes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.add.reduceat(z ^ (z >> np.uint64(31)), columns.ptr[:-1]) + columns.need.astype(np.uint64)


@dataclass(frozen=True, eq=False)
class Packing(Bound):
    """No vertex cover costs less than `lower`; the witness is a packing of edges, odd cycles and cliques.

    A cover has at least need(C) nodes of a column C. Let the columns have values y(C) >= 0 such that at no
    node v the values of its columns add up to more than its weight w(v). Then a cover X costs
    sum of w(v) over X >= sum over C of y(C) |X and C| >= sum of y(C) need(C). The columns with values fall
    into connected pieces without common nodes; weights are whole numbers, so each piece's sum may be rounded
    up.

    columns   [k] columns                value [k] int64, in units of 1/one
    weights   [n] int64 or None: all one
    """

    lower: int
    method: str
    columns: Columns
    value: np.ndarray
    one: int
    weights: np.ndarray | None = None

    def check(self, graph: Graph) -> None:
        """Prove the bound from the graph's edges and the values. Raises BadCertificate."""
        columns, value = self.columns, self.value
        if not cuts_up(columns.ptr, len(columns.nodes)) or (columns.sizes < 2).any():
            raise BadCertificate(f"{self.method}: a column of the witness has fewer than two nodes")
        if not len(columns) == len(columns.ptr) - 1 == len(value):
            raise BadCertificate(f"{self.method}: {len(value)} values for {len(columns)} columns")
        if len(columns.nodes) and not 0 <= columns.nodes.min() <= columns.nodes.max() < graph.n:
            raise BadCertificate(f"{self.method}: a node of the witness is not in {graph.name}")
        _check_distinct(self.method, columns)
        if not columns.sizes[~columns.clique].all() or (columns.sizes[~columns.clique] % 2 == 0).any():
            raise BadCertificate(f"{self.method}: a cycle of even length")
        largest = int(columns.sizes[columns.clique].max(initial=0))
        if largest * (largest - 1) // 2 > graph.edges:
            raise BadCertificate(
                f"{self.method}: a clique of {largest} nodes has more edges than {graph.name}"
            )
        has_edges = edge_table(graph)
        for u, v in _claimed_edges(columns):
            absent = np.flatnonzero(~has_edges(u, v))
            if len(absent):
                raise BadCertificate(
                    f"{self.method}: {u[absent[0]]}-{v[absent[0]]} is not an edge of {graph.name}"
                )
        if (value < 0).any() or self.one < 1:
            raise BadCertificate(f"{self.method}: a value is negative")
        weights = np.ones(graph.n, dtype=np.int64) if self.weights is None else self.weights
        if max(exact_sum(value), self.one * exact_sum(weights)) > FULL:
            raise BadCertificate(f"{self.method}: values over {self.one} are not exact")
        over = np.flatnonzero(columns.load(graph.n, value) > weights * self.one)
        if len(over):
            raise BadCertificate(
                f"{self.method}: the values at node {over[0]} add up to more than its weight"
            )
        proved = proved_by(graph.n, columns, value, self.one)
        if proved != self.lower:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.lower}"
            )


def _check_distinct(method: str, columns: Columns) -> None:
    """No node is twice in a column."""
    column = np.repeat(np.arange(len(columns)), columns.sizes)
    pairs = np.sort(column * (np.int64(columns.nodes.max(initial=0)) + 1) + columns.nodes)
    if (pairs[1:] == pairs[:-1]).any():
        raise BadCertificate(f"{method}: a node is twice in a column")


def _claimed_edges(columns: Columns) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ends [m] of the edges that the columns claim, some columns at a time: every two nodes of a clique, next
    ones of a cycle.
    """
    for kind in (columns.clique, ~columns.clique):
        for size in sorted_set(columns.sizes[kind]).tolist():
            around = np.arange(size), np.roll(np.arange(size), -1)
            a, b = np.triu_indices(size, 1) if kind is columns.clique else around
            first = columns.ptr[:-1][kind & (columns.sizes == size)]
            for part in np.array_split(first, len(first) * len(a) // PIECE + 1):
                rows = columns.nodes[part[:, None] + np.arange(size)].astype(np.int64)
                yield rows[:, a].reshape(-1), rows[:, b].reshape(-1)


def proved_by(n: int, columns: Columns, value: np.ndarray, one: int) -> int:
    """What the values [k], in units of 1/one, prove: the sum over connected pieces, each rounded up."""
    used = columns.taken(value > 0)
    if not len(used):
        return 0
    k = len(used)
    column = np.repeat(np.arange(k), used.sizes)
    touch = sp.coo_array(
        (np.ones(len(column), dtype=np.int8), (column, used.nodes + k)), shape=(k + n, k + n)
    )
    pieces, piece = connected_components(touch, directed=False)
    worth = np.zeros(pieces, dtype=np.int64)
    np.add.at(worth, piece[:k], value[value > 0] * used.need)
    return int((-(-worth // one)).sum())


def packing(
    n: int, columns: Columns, value: np.ndarray, one: int, weights: np.ndarray | None, method: str
) -> Packing:
    """The bound of values [k] int64 that keep to the weights; columns without a value are left out."""
    used = value > 0
    kept = columns.taken(used)
    return Packing(proved_by(n, kept, value[used], one), method, kept, value[used], one, weights)


def nothing(weights: np.ndarray | None, method: str) -> Packing:
    """The bound 0, proved by no columns."""
    return Packing(0, method, columns_of([], True), np.zeros(0, dtype=np.int64), 1, weights)


def denominator(weights: np.ndarray) -> int:
    """The power of two, at most ONE, in units of which all sums of the weights [n] stay exact."""
    total, one = max(int(weights.sum()), 1), ONE
    while one > 1 and total * one > LARGEST:
        one //= 2
    return one


def repaired(
    columns: Columns, y: np.ndarray, weights: np.ndarray, one: int, compiled: bool = True
) -> np.ndarray:
    """[k] int64, values in units of 1/one that keep to the weights, from nearly fitting ones.

    y   [k] float64, at least 0

    Each column is scaled by the worst of its nodes' overloads, which makes all loads fit; then the columns
    take the slack that is left: those in use first, of these those with the largest need per node.
    """
    n, first = len(weights), columns.ptr[:-1]
    value = np.floor(np.maximum(y, 0.0) * one).astype(np.int64)
    room = weights * one
    load = columns.load(n, value)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(load > room, room / load * (1 - 2.0**-40), 1.0)
    scale = np.minimum.reduceat(share[columns.nodes], first) if len(columns) else np.zeros(0)
    value = np.floor(value * scale).astype(np.int64)
    slack = room - columns.load(n, value)
    order = np.argsort(-columns.need / columns.sizes, kind="stable")
    order = np.concatenate([order[value[order] > 0], order[value[order] == 0]])  # those in use first
    fill_packing(columns, order, slack, value, compiled)
    return value
