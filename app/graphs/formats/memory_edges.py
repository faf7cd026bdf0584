"""Features of the edges of graphs in memory: attributes of NetworkX, columns of DataFrames, arrays."""

from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.formats.frames import is_frame, labels_of_matrix
from app.graphs.formats.source import shown
from app.graphs.given import unmasked
from app.graphs.nodes.data import DenseFeatures, finite_floats, rows_per_piece
from app.graphs.stream import EdgeStream

NAME = "edge_features"
RIGHT = (
    "names of edge attributes of a NetworkX graph or of columns of a DataFrame, or an array "
    "[edges, columns], would be right"
)


class _Columns:
    """Some columns of a table."""

    def __init__(self, frame: Any, columns: list[Any]) -> None:
        self.frame, self.columns = frame, columns

    def __getitem__(self, name: Any) -> Any:
        return self.frame[name]

    def to_numpy(self) -> np.ndarray:
        """[rows, columns] of any kind."""
        return np.stack([np.asarray(self.frame[each]).astype(object) for each in self.columns], axis=1)


def without_edge_features(graph: Any, given: Any) -> Any:
    """The graph, a table without the columns that features are in. Raises GraphError."""
    names = names_in(given)
    if not names or not is_frame(graph):
        return graph
    lacking = [name for name in names if name not in list(graph.columns)]
    if lacking:
        raise GraphError(f"{NAME}: the table has no column {shown(repr(lacking[0]))}; {RIGHT}")
    return _Columns(graph, [each for each in graph.columns if each not in names])


def edge_rows(graph: Any, given: Any, stream: EdgeStream) -> np.ndarray:
    """[edges, columns] float32: a row for each edge in the order of the stream. Raises GraphError.

    graph    as the caller gave it     given   as RIGHT says; an array [edges] is one column
    """
    if _is_matrix(graph):
        right = "a NetworkX graph, a DataFrame, or pairs of nodes, would be right"
        raise GraphError(f"{NAME}: found a matrix, which has no order of edges; {right}")
    names = names_in(given)
    rows = _array(given) if not names else _of_names(graph, names)
    count = sum(len(u) for u, _, _ in stream.chunks())
    if len(rows) != count:
        raise GraphError(f"{NAME}: found {len(rows)} rows; {count}, one for each edge, would be right")
    if not rows.shape[1]:
        raise GraphError(f"{NAME}: found no columns; {RIGHT}")
    return finite_floats(rows, 0, _refuse)


def features_of_rows(rows: np.ndarray) -> DenseFeatures:
    """Rows [edges, columns] as a stream has them."""
    step = rows_per_piece(4 * rows.shape[1])

    def parts() -> Iterator[np.ndarray]:
        for at in range(0, len(rows), step):
            yield rows[at : at + step]

    return DenseFeatures(len(rows), rows.shape[1], parts, _refuse)


def _refuse(text: str) -> GraphError:
    return GraphError(f"{NAME}: {text}")


def names_in(given: Any) -> list[str]:
    """The names that are given; none of rows."""
    if isinstance(given, str):
        return [given]
    listed = list(given) if isinstance(given, list | tuple) else []
    return listed if all(isinstance(each, str) for each in listed) else []


def _is_matrix(graph: Any) -> bool:
    """Whether entries of a matrix are the edges."""
    if isinstance(graph, np.ndarray):
        return graph.ndim == 2 and graph.shape[0] == graph.shape[1]
    return hasattr(graph, "tocoo") or (is_frame(graph) and labels_of_matrix(graph) is not None)


def _array(given: Any) -> np.ndarray:
    """Rows of real numbers."""
    try:
        array = np.asarray(unmasked(NAME, given.to_numpy() if hasattr(given, "to_numpy") else given))
    except ValueError:  # rows of different lengths
        raise GraphError(f"{NAME}: found rows of different lengths; {RIGHT}") from None
    array = array[:, None] if array.ndim == 1 else array
    if array.dtype.kind not in "iufb" or array.ndim != 2:
        raise GraphError(f"{NAME}: found {array.dtype} of shape {array.shape}; {RIGHT}")
    return array


def _of_names(graph: Any, names: list[str]) -> np.ndarray:
    """The columns, or attributes, of these names side by side."""
    if is_frame(graph):
        columns = [_array(np.asarray(graph[name])) for name in names]
    elif hasattr(graph, "adj") and hasattr(graph, "edges"):
        edges = list(graph.edges(data=True))
        columns = [_attribute(edges, name) for name in names]
    else:
        raise GraphError(f"{NAME}: found names of attributes for {type(graph)}; {RIGHT}")
    return np.concatenate(columns, axis=1)


def _attribute(edges: list[tuple[Any, Any, dict[Any, Any]]], name: str) -> np.ndarray:
    """[edges, columns] float64 of an attribute that is a number, or equally many numbers, of every edge."""
    rows: list[np.ndarray] = []
    for u, v, attributes in edges:
        if name not in attributes:
            right = "a number for every edge would be right"
            raise GraphError(f"{NAME}: edge {u}-{v} has no attribute {shown(repr(name))}; {right}")
        value = attributes[name]
        row = np.asarray([value] if isinstance(value, Real) else value)
        if row.dtype.kind not in "iufb" or row.ndim != 1 or (rows and len(row) != len(rows[0])):
            right = f"a number, or {len(rows[0]) if rows else 'equally many'} numbers, would be right"
            raise GraphError(f"{NAME}: the {shown(name)} of edge {u}-{v} is {shown(repr(value))}; {right}")
        rows.append(row.astype(np.float64))
    return np.array(rows) if rows else np.zeros((0, 1))
