"""Features and labels of edges of graphs in memory: attributes of NetworkX, columns of DataFrames, arrays."""

from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.formats.frames import is_frame, labels_of_matrix
from app.graphs.formats.source import shown
from app.graphs.given import unmasked
from app.graphs.nodes.data import DenseFeatures, Labels, finite_floats, rows_per_piece
from app.graphs.nodes.memory import ClassNames, table_of_arrays, values_of_nodes
from app.graphs.stream import EdgeStream

NAME = "edge_features"
RIGHT = (
    "names of edge attributes of a NetworkX graph or of columns of a DataFrame, or an array "
    "[edges, columns], would be right"
)

LABELS = "labels"
RIGHT_LABELS = (
    "the name of an edge attribute of a NetworkX graph or of a column of a DataFrame, a label for each edge, "
    "or a mapping of pairs of nodes to labels, would be right"
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


def without_edge_features(graph: Any, given: Any, labels: Any = None) -> Any:
    """The graph, a table without the columns that features, or labels, are in. Raises GraphError."""
    if not is_frame(graph):
        return graph
    names: list[str] = []
    for of, each, right in ((NAME, given, RIGHT), (LABELS, labels, RIGHT_LABELS)):
        found = names_in(each) if of == NAME or isinstance(each, str) else []
        lacking = [name for name in found if name not in list(graph.columns)]
        if lacking:
            raise GraphError(f"{of}: the table has no column {shown(repr(lacking[0]))}; {right}")
        names += found
    if not names:
        return graph
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


def features_of_rows(rows: np.ndarray, given: Any = None) -> DenseFeatures:
    """Rows [edges, columns] as a stream has them; given: names, of one column each, or anything else."""
    names = names_in(given)
    step = rows_per_piece(4 * rows.shape[1])

    def parts() -> Iterator[np.ndarray]:
        for at in range(0, len(rows), step):
            yield rows[at : at + step]

    named = tuple(names) if len(names) == rows.shape[1] else ()
    return DenseFeatures(len(rows), rows.shape[1], parts, _refuse, names=named)


def listed_labels(graph: Any, given: Any, stream: EdgeStream) -> Any:
    """A label for each edge in the order of the stream, None where an edge has none. Raises GraphError.

    graph   as the caller gave it     given   the name of an attribute or a column, or labels in that order
    """
    if _is_matrix(graph):
        right = "a NetworkX graph, a DataFrame, or a mapping of pairs of nodes to labels, would be right"
        raise GraphError(f"{LABELS}: found a matrix, which has no order of edges; {right}")
    found = given
    if isinstance(given, str) and is_frame(graph):
        found = graph[given]
    elif isinstance(given, str):
        if not (hasattr(graph, "adj") and hasattr(graph, "edges")):
            raise GraphError(f"{LABELS}: found {shown(repr(given))}; {RIGHT_LABELS}")
        found = [attributes.get(given) for _, _, attributes in graph.edges(data=True)]
        if found and all(each is None for each in found):
            raise GraphError(f"{LABELS}: no edge has an attribute {shown(repr(given))}; {RIGHT_LABELS}")
    found = found.to_numpy() if hasattr(found, "to_numpy") else found
    if isinstance(found, str) or not hasattr(found, "__len__") or hasattr(found, "keys"):
        raise GraphError(f"{LABELS}: found {shown(repr(given))}; {RIGHT_LABELS}")
    count = sum(len(u) for u, _, _ in stream.chunks())
    if len(found) != count:
        raise GraphError(f"{LABELS}: found {len(found)} rows; {count}, one for each edge, would be right")
    return found


def lists_edges(graph: Any) -> bool:
    """Whether a graph in memory lists its edges one by one, which a matrix does not."""
    return not _is_matrix(graph)


def labels_of_edges(given: Any, values: bool) -> Labels | None:
    """Labels of edges [k] that a caller gives, as a file would have them; of None none. Raises GraphError.

    values   they are numbers to be predicted
    """
    if given is None:
        return None
    if values:
        return table_of_arrays(labels=values_of_nodes(given, None, len(given)), values=True).labels
    classes = ClassNames(given, None, len(given))
    return table_of_arrays(labels=classes.numbers, names=classes.names).labels


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
