"""What callers of Python hand in as arrays: masked ones, and tables and columns of pandas and polars."""

from collections import Counter
from numbers import Integral
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.formats.source import shown


def unmasked(name: str, values: Any) -> Any:
    """A masked array in which nothing is masked as a plain one; others pass. Raises GraphError."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if np.any(values.mask):
        raise GraphError(f"{name}: found masked entries; an array without would be right")
    return np.asarray(values)


def rows_by_node(name: str, given: Any, nodes: list[Any] | None) -> Any:
    """A table or a column of pandas as a mapping of nodes, which its index names, to rows; others pass.

    An index 0, 1, 2, ... counts rows where none of these is a node: rows are then in the order of the nodes,
    as those of a table without an index are (polars). Raises GraphError.
    nodes   what they are called; None: by their numbers
    """
    if not hasattr(given, "to_numpy") or callable(getattr(given, "index", None)):  # a method of pyarrow's
        return given
    if not hasattr(given, "index"):
        return given.to_numpy()
    index, rows = list(given.index), given.to_numpy()
    if nodes is not None and index == list(range(len(index))) and set(nodes).isdisjoint(index):
        return rows
    found = dict(zip(index, rows))
    if len(found) < len(index):
        twice = Counter(index).most_common(1)[0][0]
        raise GraphError(f"{name}: found node {shown(repr(twice))} twice; each once would be right")
    return found


def all_whole(labels: list[Any]) -> bool:
    """Whether all are whole numbers."""
    return all(isinstance(label, Integral) and not isinstance(label, bool) for label in labels)
