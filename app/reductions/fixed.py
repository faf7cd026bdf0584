"""What a reducer is given: its checks, nodes fixed in and out of the cover, and the rows that remain."""

from collections.abc import Sequence

import numpy as np

from app.errors import FixedNodesError
from app.graphs.graph import Graph
from app.graphs.lists import starts

MOST_WEIGHT = 1 << 60  # sums of weights stay far inside int64


def forced_nodes(
    graph: Graph,
    weights: np.ndarray | None,
    inside: np.ndarray | Sequence[int],
    outside: np.ndarray | Sequence[int],
) -> tuple[np.ndarray, np.ndarray]:
    """Weights [n] int64, and [n] bool: the nodes of `inside` and the neighbours of `outside`.

    The arguments are those of CoverReducer; ValueError where they are wrong.
    """
    if not graph.whole:
        raise ValueError(f"{graph.name}: rows {graph.lo}..{graph.hi - 1} held, reductions need all {graph.n}")
    weight = np.ones(graph.n, dtype=np.int64) if weights is None else _checked_weights(graph, weights)
    forced, left_out = _marked(graph, "inside", inside), _marked(graph, "outside", outside)
    both = np.flatnonzero(forced & left_out)
    if len(both):
        raise ValueError(f"{graph.name}: node {both[0]} is both inside and outside")
    if not left_out.any():
        return weight, forced
    rows = graph.row_of()
    bare = np.flatnonzero(left_out[rows] & left_out[graph.indices])
    if len(bare):
        u, v = rows[bare[0]], graph.indices[bare[0]]
        raise FixedNodesError("{} and {} are adjacent: both cannot be outside a cover, or in a set", u, v)
    forced[graph.indices[left_out[rows]]] = True
    return weight, forced


def _checked_weights(graph: Graph, weights: np.ndarray) -> np.ndarray:
    weights = np.asarray(weights)
    if weights.shape != (graph.n,) or not np.issubdtype(weights.dtype, np.integer):
        raise ValueError(f"weights: needs [{graph.n}] integers, got {weights.shape} {weights.dtype}")
    if graph.n and weights.min() < 1:
        raise ValueError(f"weights: must be positive, got {weights.min()} at node {weights.argmin()}")
    if sum(weights.tolist()) > MOST_WEIGHT:
        raise ValueError(f"weights: their sum must be at most 2^60, got {sum(weights.tolist())}")
    return np.ascontiguousarray(weights, dtype=np.int64)


def _marked(graph: Graph, name: str, nodes: np.ndarray | Sequence[int]) -> np.ndarray:
    """[n] bool, True at `nodes`."""
    nodes = np.asarray(nodes, dtype=np.int64).reshape(-1)
    if len(nodes) and (nodes.min() < 0 or nodes.max() >= graph.n):
        raise ValueError(f"{name}: node numbers must be 0..{graph.n - 1}")
    marked = np.zeros(graph.n, dtype=bool)
    marked[nodes] = True
    return marked


def rows_without(graph: Graph, removed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """indptr [n+1] int64 and indices int32 of the graph without the edges of the removed nodes [n] bool."""
    if not removed.any():
        return graph.indptr.astype(np.int64), graph.indices.astype(np.int32)
    rows = graph.row_of()
    keep = ~(removed[rows] | removed[graph.indices])
    indptr = starts(rows[keep], graph.n)
    return indptr, graph.indices[keep].astype(np.int32)
