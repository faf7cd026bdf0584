"""The bound of the linear-programming relaxation of vertex cover, by bipartite matching."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching, maximum_flow

from app.bounds.certificate import Certificate
from app.bounds.cover.packing import Columns, Packing, packing
from app.graphs.graph import Graph, narrow


def half_integral(graph: Graph, partner: np.ndarray | None = None) -> Certificate:
    """The optimum of the relaxation, odd cycles rounded up.

    The relaxation and its dual, the fractional matching, have half-integral optima (Balinski 1965, Nemhauser
    and Trotter 1975): half a maximum matching M of the bipartite double cover, which has edges (i, j) and
    (j, i) for each edge of the graph, so x_ij = (M(i, j) + M(j, i)) / 2. Read as arcs i -> j, the pairs in M
    form paths, edges taken both ways, and cycles; a cycle of odd length L has the value L/2 and needs
    (L+1)/2 nodes.

    graph    whole
    partner  [n] such a matching, where one is known: j of each i, or -1
    returns  at least the optimum of the relaxation, rounded up; that is at least half the smallest cover
    """
    if partner is None:
        partner = _largest_matching(graph)
    tail = np.flatnonzero(partner >= 0)
    head = partner[tail].astype(np.int64)

    arcs = sp.coo_array((np.ones(len(tail)), (tail, head)), shape=(graph.n, graph.n))
    pieces, piece = connected_components(arcs, directed=True, connection="weak") if graph.n else (0, tail)
    odd = int((np.bincount(piece[tail], minlength=pieces) % 2).sum())

    # An edge taken both ways has the value 1 and is listed once.
    pairs, halves = np.unique(np.minimum(tail, head) * graph.n + np.maximum(tail, head), return_counts=True)
    u, v = np.divmod(pairs, max(graph.n, 1))
    return Certificate((len(tail) + odd) // 2, "LP relaxation, odd cycles rounded up", u, v, halves)


def _largest_matching(graph: Graph) -> np.ndarray:
    """[n] a largest matching of the double cover."""
    if not graph.edges:
        return np.full(graph.n, -1)
    matrix = sp.csr_array(
        (np.ones(len(graph.indices), dtype=np.int8), graph.indices, graph.indptr), shape=(graph.n, graph.n)
    )
    return maximum_bipartite_matching(narrow(matrix), perm_type="column")


def relaxed(graph: Graph, weights: np.ndarray | None = None, partner: np.ndarray | None = None) -> Packing:
    """The bound of the relaxation as a packing of edges.

    graph    whole     weights [n] int64, at least 0, or None: all one     partner   see half_integral
    returns  without weights that of `half_integral`; with weights half a maximum flow of the double cover,
             from each node's copy on the left to its neighbours' copies on the right, both as wide as the
             node weighs
    """
    method = "LP relaxation, odd cycles rounded up"
    if weights is None:
        found = half_integral(graph, partner)
        return packing(graph.n, _edges(found.u, found.v), found.halves.astype(np.int64), 2, None, method)
    u, v, flow = _largest_flow(graph, weights)
    return packing(graph.n, _edges(u, v), flow, 2, weights, method)


def _edges(u: np.ndarray, v: np.ndarray) -> Columns:
    ends = np.stack([u, v], axis=1).astype(np.int32).reshape(-1)
    return Columns(2 * np.arange(len(u) + 1, dtype=np.int64), ends, np.ones(len(u), dtype=bool))


def _largest_flow(graph: Graph, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges u < v and the flow over both their copies [m] int64.

    SciPy's flows are 32 bits wide: larger weights are counted in multiples of a unit, rounded down.
    """
    n, rows = graph.n, graph.row_of()
    unit = int(weights.sum()) // (1 << 30) + 1
    wide = (weights // unit).astype(np.int32)
    source, sink, nodes = 2 * n, 2 * n + 1, np.arange(n)
    tail = np.concatenate([np.full(n, source), nodes + n, rows])
    head = np.concatenate([nodes, np.full(n, sink), graph.indices.astype(np.int64) + n])
    capacity = np.concatenate([wide, wide, np.minimum(wide[rows], wide[graph.indices])])
    net = sp.csr_array((capacity, (tail, head)), shape=(2 * n + 2, 2 * n + 2))
    flow = sp.coo_array(maximum_flow(narrow(sp.csr_array(net)), source, sink).flow)
    inside = (flow.data > 0) & (flow.row < n) & (flow.col >= n) & (flow.col < 2 * n)
    a, b, amount = flow.row[inside], flow.col[inside] - n, flow.data[inside].astype(np.int64)
    pairs, place = np.unique(np.minimum(a, b) * np.int64(n) + np.maximum(a, b), return_inverse=True)
    total = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(total, place, amount * unit)
    return pairs // max(n, 1), pairs % max(n, 1), total
