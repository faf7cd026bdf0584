"""Greedy cliques without learning: what a learned policy has to beat, and where exact searches begin.

Each works on the whole graph on the host and returns `(chosen, label)`: chosen [n] bool, and the name to
print beside the result. Ties go to the lowest node number.
"""

import numpy as np

from app.bounds.clique.degeneracy import core_order
from app.graphs.graph import Graph
from app.graphs.orders import places_of


def by_degree(
    graph: Graph, compiled: bool = True, weights: np.ndarray | None = None
) -> tuple[np.ndarray, str]:
    """Take the node of largest degree of those that are next to all taken ones.

    weights  [n] whole numbers above 0: what a node weighs with its neighbours counts instead; None: all one
    """
    return grown(graph, loads(graph, weights)), "max degree"


def by_core(graph: Graph, compiled: bool = True, weights: np.ndarray | None = None) -> tuple[np.ndarray, str]:
    """Take the node that comes last in a degeneracy order of those that are next to all taken ones.

    Source   the heuristic of Rossi, Gleich, Gebremedhin and Patwary 2014, from the last node alone
    weights  [n] whole numbers above 0, or None; of nodes of one core number the heaviest comes last
    """
    order, core = core_order(graph, compiled)
    if weights is not None:
        order = order[np.lexsort((weights[order], core[order]))]
    rank = places_of(order)
    return grown(graph, rank), "core order"


def grown(graph: Graph, rank: np.ndarray) -> np.ndarray:
    """[n] bool, a clique that no node can join: the node of largest rank, time after time.

    rank    [n]
    Cost    the degrees of the nodes taken
    """
    chosen = np.zeros(graph.n, dtype=bool)
    free = np.arange(graph.n)
    while len(free):
        node = free[rank[free].argmax()]
        near = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
        chosen[node] = True
        free = np.intersect1d(free, near, assume_unique=True)
    return chosen


def loads(graph: Graph, weights: np.ndarray | None) -> np.ndarray:
    """[n] int64, what each node weighs with its neighbours."""
    if weights is None:
        return graph.degrees() + 1
    ends = np.concatenate([[0], np.cumsum(weights[graph.indices])])
    return weights + np.diff(ends[graph.indptr])


CLIQUE_BASELINES = {"max_degree": by_degree, "core_order": by_core}
