"""The matching bound: a cover holds an end of each edge of a matching, and these ends differ."""

import numpy as np

from app.bounds.certificate import Certificate
from app.graphs.graph import Graph


def maximal_matching(graph: Graph) -> Certificate:
    """The bound of the matching that takes every edge it can, in the order of the rows.

    graph    whole
    returns  at least half the optimum: both ends of a maximal matching's edges are a cover
    """
    indptr, indices = graph.indptr.tolist(), graph.indices.tolist()
    free = [True] * graph.n
    u, v = [], []
    for node in range(graph.n):
        if not free[node]:
            continue
        for other in indices[indptr[node] : indptr[node + 1]]:
            if free[other]:
                free[node] = free[other] = False
                u.append(node)
                v.append(other)
                break
    ends = np.array([u, v], dtype=np.int64).reshape(2, -1)
    return Certificate(len(u), "maximal matching", ends[0], ends[1], np.full(len(u), 2))
