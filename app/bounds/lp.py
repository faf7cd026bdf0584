"""The bound of the linear-programming relaxation of vertex cover, by bipartite matching."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from app.bounds.certificate import Certificate
from app.graphs.graph import Graph


def half_integral(graph: Graph) -> Certificate:
    """The optimum of the relaxation, odd cycles rounded up.

    The relaxation and its dual, the fractional matching, have half-integral optima (Balinski 1965, Nemhauser
    and Trotter 1975): half a maximum matching M of the bipartite double cover, which has edges (i, j) and
    (j, i) for each edge of the graph, so x_ij = (M(i, j) + M(j, i)) / 2. Read as arcs i -> j, the pairs in M
    form paths, edges taken both ways, and cycles; a cycle of odd length L has the value L/2 and needs
    (L+1)/2 nodes.

    graph    whole
    returns  at least the optimum of the relaxation, rounded up; that is at least half the smallest cover
    """
    matrix = sp.csr_array(
        (np.ones(len(graph.indices), dtype=np.int8), graph.indices, graph.indptr), shape=(graph.n, graph.n)
    )
    partner = maximum_bipartite_matching(matrix, perm_type="column") if graph.edges else np.full(graph.n, -1)
    tail = np.flatnonzero(partner >= 0)
    head = partner[tail].astype(np.int64)

    arcs = sp.coo_array((np.ones(len(tail)), (tail, head)), shape=(graph.n, graph.n))
    pieces, piece = connected_components(arcs, directed=True, connection="weak") if graph.n else (0, tail)
    odd = int((np.bincount(piece[tail], minlength=pieces) % 2).sum())

    # An edge taken both ways has the value 1 and is listed once.
    pairs, halves = np.unique(
        np.stack([np.minimum(tail, head), np.maximum(tail, head)]), axis=1, return_counts=True
    )
    return Certificate(
        (len(tail) + odd) // 2, "LP relaxation, odd cycles rounded up", pairs[0], pairs[1], halves
    )
