"""Graphs that are already in memory as edge streams: NetworkX graphs, SciPy matrices, Graph objects."""

from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.graph import Graph
from app.graphs.stream import EdgeStream


def stream_of(graph: Graph) -> EdgeStream:
    """A whole graph, each edge once."""
    rows, columns = graph.row_of(), graph.indices.astype(np.int64)
    once = rows < columns
    weights = None if graph.weights is None else graph.weights[once]
    return _stream(graph.name, graph.n, rows[once], columns[once], weights, graph.first_id)


def stream_of_object(graph: Any, name: str = "graph") -> tuple[EdgeStream, list[Any] | None]:
    """The edges of a NetworkX graph or a square SciPy sparse matrix, and the node labels in row order.

    NetworkX edge attributes `weight` become edge weights where every edge has one; directions are ignored.
    Raises GraphError for anything else.
    """
    if hasattr(graph, "adj") and hasattr(graph, "edges"):
        return _networkx(graph, name)
    if hasattr(graph, "tocoo") and len(graph.shape) == 2:
        return _scipy(graph, name), None
    raise GraphError(
        f"graph: a NetworkX graph, a SciPy sparse matrix or a file name is needed, got {type(graph)}"
    )


def _networkx(graph: Any, name: str) -> tuple[EdgeStream, list[Any]]:
    labels = list(graph.nodes)
    number = {label: i for i, label in enumerate(labels)}
    ends = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    weights = [d.get("weight") for _, _, d in graph.edges(data=True)]
    w = None
    if weights and all(x is not None for x in weights):
        w = np.array(weights, dtype=np.float32)
    return _stream(str(graph.name or name), len(labels), ends[:, 0], ends[:, 1], w), labels


def _scipy(matrix: Any, name: str) -> EdgeStream:
    if matrix.shape[0] != matrix.shape[1]:
        raise GraphError(
            f"graph: the matrix is {matrix.shape[0]} x {matrix.shape[1]}; a square one is needed"
        )
    coo = matrix.tocoo()
    weights = np.asarray(coo.data, dtype=np.float32)
    if not np.isfinite(weights).all():
        raise GraphError("graph: the matrix holds NaN or infinite weights")
    rows, columns = np.asarray(coo.row, dtype=np.int64), np.asarray(coo.col, dtype=np.int64)
    return _stream(name, matrix.shape[0], rows, columns, None if (weights == 1).all() else weights)


def _stream(
    name: str, n: int, u: np.ndarray, v: np.ndarray, w: np.ndarray | None, first_id: int = 0
) -> EdgeStream:
    return EdgeStream(name, "", "memory", n, first_id, w is not None, lambda stream: iter([(u, v, w)]))
