"""Elimination orders without compiled kernels: the same results (app/native/treewidth.c)."""

import numpy as np

from app.graphs.graph import Graph
from app.graphs.orders import places_of


def neighbours(graph: Graph) -> list[set[int]]:
    """Of each node."""
    return [set(graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist()) for v in range(graph.n)]


def eliminate(near: list[set[int]], v: int) -> set[int]:
    """Take v out of a graph and join its neighbours, which are returned."""
    own = near[v]
    for u in own:
        near[u] |= own
        near[u] -= {u, v}
    return own


def _bags(graph: Graph, order: np.ndarray) -> dict[int, set[int]]:
    """Of each node those of its bag that come after it, by making the edges."""
    near = neighbours(graph)
    return {v: eliminate(near, v) for v in order.tolist()}


def tree_of(graph: Graph, order: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Parents [n] int32 and weights of bags [n] int64."""
    place = places_of(order)
    each = np.ones(graph.n, dtype=np.int64) if weights is None else weights
    parent, bag = np.full(graph.n, -1, dtype=np.int32), np.zeros(graph.n, dtype=np.int64)
    for v, own in _bags(graph, order).items():
        parent[v] = min(own, key=place.__getitem__, default=-1)
        bag[v] = each[v] + sum(int(each[u]) for u in own)
    return parent, bag


def lists_of(graph: Graph, order: np.ndarray) -> np.ndarray:
    """Bags without their own nodes, by nodes, each in the order of elimination; int32."""
    place = places_of(order)
    bags = _bags(graph, order)
    return np.array(
        [u for v in range(graph.n) for u in sorted(bags[v], key=place.__getitem__)], dtype=np.int32
    )


def missing(near: list[set[int]], v: int) -> int:
    """Twice the pairs of neighbours of v that are not adjacent."""
    return sum(len(near[v] - near[u]) - 1 for u in near[v])


def greedy(graph: Graph, rule: int, ties: np.ndarray) -> np.ndarray:
    """[n] the node of the least score, then tie, of all left; the rest by degree once it is complete."""
    near, left, order = neighbours(graph), set(range(graph.n)), []

    def score(v: int) -> tuple[int, int]:
        return (missing(near, v) if rule else len(near[v])), int(ties[v])

    while left:
        v = min(left, key=score)
        if not rule and len(near[v]) == len(left) - 1:
            break
        order.append(v)
        left.discard(v)
        eliminate(near, v)
    order += sorted(left, key=lambda v: (len(near[v]), int(ties[v])))
    return np.array(order, dtype=np.int64)
