"""Edges in a DataFrame of pandas or polars: two columns of nodes, and perhaps one of weights."""

from numbers import Integral
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.formats.source import shown

RIGHT = "two columns of nodes, and perhaps one of weights, would be right"


def is_frame(given: Any) -> bool:
    """Whether something has columns that can be asked for by name, as DataFrames have."""
    return hasattr(given, "columns") and hasattr(given, "to_numpy") and hasattr(given, "__getitem__")


def columns_of(frame: Any) -> tuple[list[str], list[np.ndarray]]:
    """The names and the values [m] of two or three columns. Raises GraphError."""
    names = list(frame.columns)
    if len(names) not in (2, 3):
        told = ", ".join(map(str, names[:6]))
        raise GraphError(f"graph: found a table of {len(names)} columns ({shown(told)}); {RIGHT}")
    if len(set(names)) < len(names):
        raise GraphError(f"graph: found two columns of one name ({shown(str(names))}); {RIGHT}")
    return [str(name) for name in names], [np.asarray(frame[name]) for name in names]


def labels_of_matrix(frame: Any) -> list[Any] | None:
    """The names of the rows of a table that is a matrix, whose columns have the same; None: it is no matrix.

    Numbers from 0 on are no names, but what tables have that were given none.
    """
    index, columns = getattr(frame, "index", None), list(frame.columns)
    labels = [] if index is None or callable(index) else np.asarray(index).tolist()
    same = len(columns) == len(labels) and set(labels) == set(columns) and len(set(labels)) == len(labels)
    return labels if same and labels != list(range(len(labels))) else None


def number_nodes(names: list[str], ends: list[np.ndarray]) -> tuple[list[np.ndarray], list[Any]]:
    """The ends [m] as node numbers int64, and the nodes that occur, in ascending order.

    They are all whole numbers, in the order of their size, or all texts, in that of their bytes in UTF-8.
    Raises GraphError.
    """
    # (Signed numbers and unsigned ones of 64 bits have no type together but a float.)
    if all(values.dtype.kind in "iu" for values in ends) and np.result_type(*ends).kind in "iu":
        nodes, numbers = np.unique(np.concatenate(ends), return_inverse=True)
        u, v = numbers.reshape(2, -1)
        return [u, v], nodes.tolist()
    lists = [values.tolist() for values in ends]
    kinds = {kind for name, values in zip(names, lists) for kind in _kinds(name, values)}
    if len(kinds) > 1:
        raise GraphError("graph: found whole numbers and texts as nodes; all of one kind would be right")
    nodes = sorted({*lists[0], *lists[1]})  # texts by their characters: the same order as by their bytes
    number = {node: i for i, node in enumerate(nodes)}
    return [np.array([number[each] for each in values], dtype=np.int64) for values in lists], nodes


def _kinds(name: str, values: list[Any]) -> set[type]:
    """Of the nodes of one column: str, int or both."""
    found = set()
    missing = (row for row, each in enumerate(values) if isinstance(each, float) and each != each)
    for row in missing:
        raise GraphError(f"graph: found no node in row {row} of column {shown(name)!r}; one would be right")
    for row, each in enumerate(values):
        if isinstance(each, str):
            found.add(str)
        elif isinstance(each, Integral) and not isinstance(each, bool):
            found.add(int)
        else:
            right = "a whole number or a text would be right"
            raise GraphError(
                f"graph: found {shown(repr(each))} in row {row} of column {shown(name)!r}; {right}"
            )
    return found
