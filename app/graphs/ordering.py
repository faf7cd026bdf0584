"""What an order of the nodes of a weighted digraph costs: the weight of arcs that lead backward in it.

An arc u -> v of weight w is paid where v stands before u. Of two nodes with the weights f from the one to the
other and g back an order pays g or f, so min(f, g) in any case, and f - g more for one of the two ways: that
is a *net* arc, of a weight above 0, and between two nodes there is at most one. f and g may have any sign:
an arc of -w is one of w the other way and -w in any case. What is saved beside, the weight of all arcs less
what is paid, is the weight *kept*; of a matrix it is the sum above the diagonal of rows and columns in that
order, the objective of the linear ordering problem.

Two orders are the same answer where every two nodes with a net arc stand alike; the canonical one of them is
that in which the smallest node comes first, of the others the smallest that may follow, and so on.

Source   Reinelt, The linear ordering problem, 1985; Marti and Reinelt, The linear ordering problem, 2011
"""

import ctypes
import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from app.errors import GraphError
from app.graphs.fixed_point import integer_weights
from app.graphs.graph import IN_A, Graph
from app.graphs.lists import starts
from app.graphs.orders import places_of
from app.graphs.stream import Chunk, EdgeStream
from app.graphs.weights import kept_weights
from app.native.library import address, function

ORDERING = "ordering"  # the problem whose arcs add up
Long, Pointer = ctypes.c_int64, ctypes.c_void_p
LEAST = function("lk_order_least", Long, *(Pointer,) * 5, returns=Long)


@dataclass(frozen=True, eq=False)
class NetArcs:
    """Nodes 0..n-1 and net arcs, at most one between two nodes.

    tails, heads, weights   [m] int64, ascending by tails, then heads; weights above 0
    """

    n: int
    tails: np.ndarray
    heads: np.ndarray
    weights: np.ndarray

    @property
    def arcs(self) -> int:
        """How many there are."""
        return len(self.tails)

    def cost(self, order: np.ndarray) -> int:
        """What an order [n] of the nodes pays for net arcs."""
        place = places_of(order)
        return int(self.weights[place[self.tails] > place[self.heads]].sum())

    @cached_property
    def both_ways(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """ptr [n+1] int64, near [2m] int32, pull [2m] int64: the other end of each arc of a node, and what it
        gains to have that before it: the weight of an arc from there, minus that of one to there.
        """
        given = self.weights, self.heads, starts(self.tails, self.n)
        out = sp.csr_array(given, shape=(self.n, self.n))
        both = out.T.tocsr() - out  # no entry is in both, and none is 0
        kinds = np.int64, np.int32, np.int64
        return tuple(map(np.ascontiguousarray, (both.indptr, both.indices, both.data), kinds))

    @property
    def ends(self) -> np.ndarray:
        """[k] int64, ascending: the nodes that have arcs."""
        found = np.zeros(self.n, dtype=bool)
        found[self.tails] = found[self.heads] = True
        return np.flatnonzero(found)

    def part(self, nodes: np.ndarray) -> "NetArcs":
        """What nodes [k], ascending, span, numbered anew."""
        if len(nodes) == self.n:
            return self
        place = np.full(self.n, -1, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        inside = (place[self.tails] >= 0) & (place[self.heads] >= 0)
        ends = place[self.tails[inside]], place[self.heads[inside]]
        return NetArcs(len(nodes), *ends, self.weights[inside])

    def pattern(self, name: str) -> Graph:
        """Which nodes have a net arc, as a graph without directions."""
        ptr, near, _ = self.both_ways
        return Graph(name, self.n, 0, self.n, ptr, near, self.arcs)


@dataclass(frozen=True, eq=False)
class Ordering:
    """A whole question.

    net     its net arcs
    paid    what every order pays beside; total: the weight of all arcs. Both in units of `unit`
    tails, heads, weights   [a] int64, all arcs as they are given, in units
    """

    net: NetArcs
    paid: int
    total: int
    unit: float
    tails: np.ndarray
    heads: np.ndarray
    weights: np.ndarray

    def value(self, order: np.ndarray) -> int:
        """The weight of the arcs that lead backward in an order [n]."""
        place = places_of(order)
        return int(self.weights[place[self.tails] > place[self.heads]].sum())


def ordering_of(graph: Graph) -> Ordering:
    """The question that the arcs of a whole graph ask; an edge without direction is two of them."""
    rows, columns = graph.row_of(), graph.indices.astype(np.int64)
    weights, unit = integer_weights(graph)
    if graph.arcs is not None:  # rows hold heads of arcs: graph.neighbours = "out"
        out = graph.arcs & IN_A > 0
        rows, columns, weights = rows[out], columns[out], weights[out]
    net, paid = net_of(graph.n, rows, columns, weights)
    return Ordering(net, paid, int(weights.sum()), unit, rows, columns, weights)


def net_of(n: int, tails: np.ndarray, heads: np.ndarray, weights: np.ndarray) -> tuple[NetArcs, int]:
    """The net arcs of arcs [a], no loops, and what every order pays beside; arcs listed twice add up.

    weights   int64, of any sign
    """
    low, high = np.minimum(tails, heads), np.maximum(tails, heads)
    keys, ahead = low * n + high, tails < heads
    if (np.diff(np.sort(keys)) > 0).all():  # one arc of each pair, which needs no sums
        there, back = np.where(ahead, weights, 0), np.where(ahead, 0, weights)
    else:
        keys, pair = np.unique(keys, return_inverse=True)
        pair = pair.reshape(-1)
        # Sums of float64 are exact: all weights together are below 2^53 (app/graphs/fixed_point.py).
        there, back = (
            np.bincount(pair[some], weights[some], len(keys)).astype(np.int64) for some in (ahead, ~ahead)
        )
        low, high = keys // max(n, 1), keys % max(n, 1)
    net = there - back
    from_, to = np.where(net > 0, low, high)[net != 0], np.where(net > 0, high, low)[net != 0]
    net = np.abs(net[net != 0])
    keys = from_ * n + to
    if not (np.diff(keys) > 0).all():
        order = np.argsort(keys)
        from_, to, net = from_[order], to[order], net[order]
    return NetArcs(n, from_, to, net), int(np.minimum(there, back).sum())


# ---- orders ------------------------------------------------------------------------------------------------


def least_order(n: int, tails: np.ndarray, heads: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[k] int64, the order in which arcs [m] lead forward, the smallest node that may come first each time;
    k < n where they have a cycle.
    """
    # Arcs by their tails, in linear time; those that a pair has twice are told twice, and count as one.
    rows = sp.csr_array((heads, tails, np.arange(len(tails) + 1)), shape=(len(tails), n)).tocsc()
    ptr, ends = rows.indptr.astype(np.int64), rows.data.astype(np.int32)
    if compiled and LEAST is not None:
        degree, found = (np.zeros(n, dtype=np.int32) for _ in range(2))
        words = np.zeros(n // 32 + 8, dtype=np.uint64)
        count = LEAST(n, *map(address, (ptr, ends, degree, words, found)))
        return found[:count].astype(np.int64)
    begins, after = ptr.tolist(), ends.tolist()
    degree = np.bincount(ends, minlength=n).tolist()
    ready = [v for v in range(n) if not degree[v]]
    found = []
    while ready:
        v = heapq.heappop(ready)
        found.append(v)
        for u in after[begins[v] : begins[v + 1]]:
            degree[u] -= 1
            if not degree[u]:
                heapq.heappush(ready, u)
    return np.array(found, dtype=np.int64)


def canonical_order(net: NetArcs, order: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[n] int64, the canonical one of the orders that are the same answer as one [n]."""
    place = places_of(order)
    back = place[net.tails] > place[net.heads]
    tails, heads = np.where(back, net.heads, net.tails), np.where(back, net.tails, net.heads)
    return least_order(net.n, tails, heads, compiled)


# ---- arcs of files -----------------------------------------------------------------------------------------


def as_summed(stream: EdgeStream) -> EdgeStream:
    """The same arcs, each once, with the sum of the weights that it is listed with (1 each without weights).

    Sums are those of 64-bit numbers in the order of the file, kept in 32 bits as all weights are.
    """
    return replace(
        stream, weighted=True, make=lambda made: _summed(stream, made), part=None, lines=None, entries=None,
        node_weights=None, edge_features=None, edge_labels=None,
    )  # fmt: skip


def _summed(stream: EdgeStream, made: EdgeStream) -> Iterator[Chunk]:
    """All arcs, and loops of weight 0, which tell of nodes."""
    found = [(u, v, np.ones(len(u)) if w is None else w.astype(np.float64)) for u, v, w in stream.chunks()]
    made.ids, made.first_id = stream.ids, stream.first_id
    for text in stream.warnings:
        made.warn(text)
    if not found:
        return
    u, v, w = (np.concatenate(part) for part in zip(*found))
    order = np.lexsort((v, u))
    u, v, w = u[order], v[order], w[order]
    first = np.append(True, (u[1:] != u[:-1]) | (v[1:] != v[:-1])) if len(u) else np.zeros(0, dtype=bool)
    sums = np.bincount(np.cumsum(first) - 1, w, int(first.sum())) if len(u) else w
    u, v = u[first], v[first]
    _warn_of_loops(stream, made, u, v, sums)
    said: list[str] = []
    what = f"{stream.path or stream.name}: a sum of weights"
    kept = kept_weights(sums, lambda i: what, said)
    if not np.isfinite(kept).all():
        right = "weights in a larger unit would be right"
        raise GraphError(f"{stream.name}: found sums of weights beyond 3.4e38; {right}")
    for text in said:
        made.warn(text)
    yield u, v, kept


def _warn_of_loops(
    stream: EdgeStream, made: EdgeStream, u: np.ndarray, v: np.ndarray, sums: np.ndarray
) -> None:
    """Loops are no part of any order: a word on those with a weight."""
    loops = int(np.count_nonzero((u == v) & (sums != 0)))
    if loops:
        what = "entry of the diagonal is" if loops == 1 else "entries of the diagonal, or loops, are"
        made.warn(f"{stream.path or stream.name}: {loops} {what} dropped: no order pays or keeps them")
