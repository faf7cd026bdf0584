"""What a tour is asked of in memory: coordinates or distances, of arrays, DataFrames or a NetworkX graph."""

from numbers import Real
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.distances import stream_of_distances
from app.graphs.formats.frames import columns_of, is_frame, number_nodes
from app.graphs.formats.memory import coordinates
from app.graphs.formats.source import shown
from app.graphs.metric import MOST_TABLE_POINTS, from_points, scaled_points
from app.graphs.points import stream_of_metric
from app.graphs.stream import EdgeStream


def stream_of_tour(given: Any) -> tuple[EdgeStream, list[Any] | None]:
    """The metric of a tour's cities as a stream, and their labels in row order, or None.

    given   coordinates [n, 2]; distances, see stream_of_distances; or a DataFrame: two columns of
            coordinates, a city a row, perhaps after one of names; distances, where rows and columns have the
            same names; or two columns of cities and one of distances from the first to the second, a line for
            every pair, or two where they differ by direction
    Rows of a DataFrame are named by that first column, else by its index, where it has one.
    Raises GraphError.
    """
    labels = None
    if is_frame(given):
        given, labels, points = _of_frame(given)
    else:
        points = isinstance(given, np.ndarray) and not (given.ndim == 2 and len(given) == given.shape[1])
    if not points:
        stream, labels = stream_of_distances(given, labels=labels)
        stream.warnings += _half(given)
        return stream, labels
    made = from_points if given.dtype.kind in "iu" else scaled_points
    return stream_of_metric(made("points", coordinates(given)), "", "memory", 0), labels


def _half(given: Any) -> list[str]:
    """A warning where the distances of an array are zero in all of one direction: a half of a matrix."""
    if not isinstance(given, np.ndarray) or len(given) < 3:
        return []
    above, below = (part(given, k).any() for part, k in ((np.triu, 1), (np.tril, -1)))
    if above == below:
        return []
    said = (
        f"graph: all distances {'below' if above else 'above'} the diagonal are 0, as of one half of a matrix"
    )
    return [f"{said}; they count as distances: D + D.T would be the whole of it"]


def _of_frame(frame: Any) -> tuple[np.ndarray, list[Any] | None, bool]:
    """Coordinates [n, 2] or distances [n, n], the labels of the rows, and whether it is coordinates."""
    index, columns = getattr(frame, "index", None), list(frame.columns)
    labels = None if index is None or callable(index) else np.asarray(index).tolist()
    if labels is not None and len(columns) == len(labels) and set(labels) == set(columns):
        return _plain(np.asarray(frame[labels])), _distinct(labels), False
    if len(columns) > 3:
        right = "two of coordinates, three of two cities and a distance, or rows named as the columns,"
        raise GraphError(f"graph: found a table of {len(columns)} columns; {right} would be right")
    names, values = columns_of(frame)
    if len(names) == 3 and not _is_place(values):
        return *_of_pairs(names, values), False
    labels = values[0].tolist() if len(names) == 3 else labels
    for name, column in zip(names[-2:], values[-2:]):
        _numbers(name, column)
    return np.stack(values[-2:], axis=1), None if labels is None else _distinct(labels), True


def _plain(values: np.ndarray) -> np.ndarray:
    """[n, n] numbers of columns that may have empty fields, which are NaN then. Raises GraphError."""
    if values.dtype != object:
        return values
    for each in values.ravel():
        if isinstance(each, str):
            raise GraphError(f"graph: found {shown(repr(each))} as a distance; a number would be right")
    fields = [float(each) if isinstance(each, Real) else np.nan for each in values.ravel()]
    return np.array(fields).reshape(values.shape)


def _is_place(columns: list[np.ndarray]) -> bool:
    """Whether the second of three columns is no city but a coordinate, so that the first names the rows."""
    first, second, _ = (column.dtype.kind for column in columns)
    return second == "f" or (second in "iu" and first not in "iu")


def _distinct(labels: list[Any]) -> list[Any]:
    """The labels, each of them once."""
    if len(set(labels)) < len(labels):
        seen: set[Any] = set()
        again = next(label for label in labels if label in seen or seen.add(label))
        raise GraphError(f"graph: found the row {shown(repr(again))} twice; one for each city would be right")
    return labels


def _numbers(name: str, column: np.ndarray) -> None:
    """Raises GraphError where a column holds anything else."""
    if column.dtype.kind not in "iuf":
        right = "numbers would be right (names of cities: as the index of the table)"
        raise GraphError(f"graph: found {column.dtype} in column {shown(name)!r}; {right}")


def _of_pairs(names: list[str], columns: list[np.ndarray]) -> tuple[np.ndarray, list[Any]]:
    """[n, n] the distances of lines (city, city, distance), and the cities in ascending order."""
    _numbers(names[2], columns[2])
    (u, v), nodes = number_nodes(names[:2], columns[:2])
    n, length = len(nodes), columns[2]
    if n > MOST_TABLE_POINTS:
        raise GraphError(f"graph: found distances of {n} points; 1 to {MOST_TABLE_POINTS} would be right")
    u, v, length = (each[u != v] for each in (u, v, length))
    found, known = np.zeros((n, n), dtype=length.dtype), np.eye(n, dtype=bool)
    for rows, others in ((v, u), (u, v)):
        found[rows, others], known[rows, others] = length, True
    if not known.all():
        i, j = np.unravel_index(int((~known).argmax()), known.shape)
        pair = f"no distance from {nodes[i]!r} to {nodes[j]!r}"
        places = " (where these are coordinates: the first column as the index of the table, or as texts)"
        told = places if isinstance(nodes[0], int) else ""
        raise GraphError(f"graph: found {pair}; a tour needs that of every pair{told}")
    _refuse_other(u, v, length, found, nodes)
    return found, nodes


def _refuse_other(
    u: np.ndarray, v: np.ndarray, length: np.ndarray, found: np.ndarray, nodes: list[Any]
) -> None:
    """Refuse a pair of which lines [m] say different distances in the same direction."""
    other = found[u, v]
    unlike = (other != length) & ~(np.isnan(other) & np.isnan(length))
    if unlike.any():
        i = int(unlike.argmax())
        pair = f"{length[i]} and {other[i]} from {nodes[u[i]]!r} to {nodes[v[i]]!r}"
        raise GraphError(f"graph: found {pair}; one distance would be right")
