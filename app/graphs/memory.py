"""Graphs that are already in memory as edge streams: of NetworkX, SciPy and NumPy, and Graph objects."""

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.graph import Graph
from app.graphs.stream import EdgeStream

LARGEST_NUMBER = (1 << 32) - 3  # of a node


def stream_of(graph: Graph) -> EdgeStream:
    """A whole graph, each edge once."""
    rows, columns = graph.row_of(), graph.indices.astype(np.int64)
    once = rows < columns
    weights = None if graph.weights is None else graph.weights[once]
    return _stream(graph.name, graph.n, rows[once], columns[once], weights, graph.first_id)


def stream_of_object(graph: Any, name: str = "graph") -> tuple[EdgeStream, list[Any] | None]:
    """The edges of a NetworkX graph, a SciPy matrix or a NumPy array, and the node labels in row order.

    An array is an adjacency matrix [n, n] of weights, zero for no edge, or [m, 2] pairs of node numbers.
    NetworkX edge attributes `weight` become edge weights where every edge has one, node attributes `weight`
    node weights; directions are ignored.
    Raises GraphError for anything else.
    """
    if hasattr(graph, "adj") and hasattr(graph, "edges"):
        return _networkx(graph, name)
    if hasattr(graph, "tocoo") and len(graph.shape) == 2:
        return _scipy(graph, name), None
    if isinstance(graph, np.ndarray):
        return _array(graph, name), None
    needed = "a NetworkX graph, a SciPy sparse matrix, a NumPy array or a file name is needed"
    raise GraphError(f"graph: {needed}, got {type(graph)}")


def _warn_of_directions() -> None:
    _warn("graph: the matrix is not symmetric: of two entries of a pair the larger counts")


def coordinates(points: np.ndarray) -> np.ndarray:
    """Points in the plane as float64 [n, 2]; raises GraphError for anything else."""
    if points.ndim != 2 or points.shape[1] != 2 or points.dtype.kind not in "iuf":
        raise GraphError(f"graph: found {_kind(points)}; coordinates [n, 2] would be right")
    found = points.astype(np.float64)
    if not np.isfinite(found).all():
        raise GraphError("graph: the coordinates hold NaN or infinite numbers")
    return found


def _kind(array: np.ndarray) -> str:
    return f"an array of {array.dtype} of shape {array.shape}"


def _array(array: np.ndarray, name: str) -> EdgeStream:
    """A dense adjacency matrix, or pairs of node numbers."""
    square = array.ndim == 2 and array.shape[0] == array.shape[1]
    if square and array.dtype.kind in "iufb":
        if not np.isfinite(array).all():
            raise GraphError("graph: the matrix holds NaN or infinite weights")
        if ((array != array.T) & (array != 0) & (array.T != 0)).any():
            _warn_of_directions()
        rows, columns = np.nonzero(array)
        weights = array[rows, columns].astype(np.float32)
        return _stream(name, len(array), rows, columns, None if (weights == 1).all() else weights)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        right = "[n, n] numbers, or [m, 2] integers, would be right"
        raise GraphError(f"graph: found {_kind(array)}; {right}")
    if len(array) and (array.min() < 0 or array.max() > LARGEST_NUMBER):
        raise GraphError(f"graph: found node number {array.min() if array.min() < 0 else array.max()}")
    u, v = array.astype(np.int64).T
    return _stream(name, int(array.max(initial=-1)) + 1, u, v, None)


def _networkx(graph: Any, name: str) -> tuple[EdgeStream, list[Any]]:
    labels = list(graph.nodes)
    number = {label: i for i, label in enumerate(labels)}
    ends = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    weights = [d.get("weight") for _, _, d in graph.edges(data=True)]
    w = None
    if weights and all(x is not None for x in weights):
        pairs = list(graph.edges())
        w = as_weights(weights, lambda i: "edge {}-{}".format(*pairs[i]))
        _warn_of_parallels(ends, w, len(labels))
    stream = _stream(str(graph.name or name), len(labels), ends[:, 0], ends[:, 1], w)
    own = [d.get("weight") for _, d in graph.nodes(data=True)]
    if own and all(isinstance(each, Real) for each in own):
        stream.node_weights = as_weights(own, lambda i: f"node {labels[i]}")
    elif any(each is not None for each in own):
        _warn("graph: not every node has a number as its attribute weight: nodes count as 1 each")
    return stream, labels


def _warn_of_parallels(ends: np.ndarray, w: np.ndarray, n: int) -> None:
    """Where edges [m, 2] of different weights [m] join the same nodes."""
    key = ends.min(axis=1) * n + ends.max(axis=1)
    order = np.argsort(key, kind="stable")
    key, w = key[order], w[order]
    if ((key[1:] == key[:-1]) & (w[1:] != w[:-1])).any():
        _warn("graph: of parallel edges the one of largest weight counts")


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)


def weights_of_nodes(given: Any, labels: list[Any] | None, n: int) -> np.ndarray:
    """[n] float32 weights of nodes from an array in their order or a mapping by label. Raises GraphError."""
    labels = list(range(n)) if labels is None else labels
    if hasattr(given, "keys"):
        missing = next((label for label in labels if label not in given), None)
        if missing is not None:
            raise GraphError(f"graph: node {missing!r} has no weight, others have")
        given = [given[label] for label in labels]
    if len(given) != n:
        raise GraphError(f"graph: found {len(given)} node weights for {n} nodes")
    return as_weights(given, lambda i: f"node {labels[i]}")


def as_weights(values: Any, name: Callable[[int], str]) -> np.ndarray:
    """[k] float32 from numbers; warns where whole numbers are not kept as they are. Raises GraphError."""
    found = np.asarray(values)
    if found.dtype.kind not in "biuf" or found.ndim != 1:
        for i, value in enumerate(values):
            if not isinstance(value, Real):
                raise GraphError(f"graph: the weight of {name(i)} is {value!r}; a number would be right")
        found = np.array([float(value) for value in values])
    found = found.astype(np.float64)
    if not np.isfinite(found).all():
        i = int(np.flatnonzero(~np.isfinite(found))[0])
        raise GraphError(f"graph: the weight of {name(i)} is NaN or infinite")
    kept = found.astype(np.float32)
    changed = np.flatnonzero((found == np.rint(found)) & (kept != found))
    if len(changed):
        i = int(changed[0])
        what = f"graph: the weight of {name(i)}, {found[i]:.0f}, is kept as {kept[i]:.0f}: 24 bits are kept"
        _warn(f"{what}; smaller whole numbers are exact")
    return kept


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
    mirror = matrix.tocsr().T
    if abs(matrix.tocsr() - mirror).multiply(mirror.astype(bool)).multiply(matrix.astype(bool)).nnz:
        _warn_of_directions()
    return _stream(name, matrix.shape[0], rows, columns, None if (weights == 1).all() else weights)


def _stream(
    name: str, n: int, u: np.ndarray, v: np.ndarray, w: np.ndarray | None, first_id: int = 0
) -> EdgeStream:
    return EdgeStream(name, "", "memory", n, first_id, w is not None, lambda stream: iter([(u, v, w)]))
