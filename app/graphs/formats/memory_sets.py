"""Families of sets in memory as streams: of mappings, lists, matrices, DataFrames and NetworkX graphs."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.covering import HITTING
from app.graphs.formats.frames import columns_of, is_frame
from app.graphs.formats.memory import as_weights
from app.graphs.formats.source import shown
from app.graphs.given import unmasked
from app.graphs.stream import Chunk, EdgeStream

Labels = list[Any]
RIGHT = (
    "a mapping of sets to their elements, a list of sets, a matrix [sets, elements], a DataFrame of two "
    "columns, set and element, or a NetworkX graph whose nodes have the attribute bipartite, 0 of sets, "
    "would be right"
)


def stream_of_family(given: Any, problem: str) -> tuple[EdgeStream, Labels, Labels]:
    """A family of sets as a stream, and labels of what a problem chooses and of what that has to meet.

    given   a mapping {set: its elements}; a list of iterables of elements, whose sets are numbered from 0; an
            array or SciPy matrix [sets, elements], not zero where an element is in a set; a DataFrame of two
            columns, a set and one of its elements a row; or a bipartite NetworkX graph
    Elements are in ascending order, where they have one. The node attributes `weight` of a NetworkX graph are
    costs. Raises GraphError.
    """
    stream, sets, elements = _family(given)
    return (stream, elements, sets) if problem == HITTING else (stream, sets, elements)


def with_demands(family: EdgeStream, problem: str, costs: np.ndarray) -> np.ndarray:
    """[nodes] float32 costs of sets and elements, from those of what a problem chooses [k]."""
    ones = np.ones(family.nodes - len(costs), dtype=np.float32)
    return np.concatenate([ones, costs] if problem == HITTING else [costs, ones])


def _family(given: Any) -> tuple[EdgeStream, Labels, Labels]:
    """The stream, and the labels of sets and elements."""
    if isinstance(given, Mapping):
        return _listed(list(given), list(given.values()))
    if hasattr(given, "adj") and hasattr(given, "edges"):
        return _networkx(given)
    if hasattr(given, "tocoo") or (isinstance(given, np.ndarray) and given.ndim == 2):
        return _matrix(given)
    if is_frame(given):
        return _frame(given)
    if isinstance(given, list | tuple):
        return _listed(list(range(len(given))), list(given))
    raise GraphError(f"graph: found {type(given)}; {RIGHT}")


def _listed(sets: Labels, members: list[Any]) -> tuple[EdgeStream, Labels, Labels]:
    """Sets by their labels, and the elements of each."""
    found: list[Labels] = []
    for label, each in zip(sets, members):
        if isinstance(each, str | bytes) or not isinstance(each, Iterable):
            raise GraphError(
                f"graph: found {shown(repr(each))} as the elements of {shown(repr(label))}; {RIGHT}"
            )
        found.append(np.asarray(each).tolist() if isinstance(each, np.ndarray) else list(each))
    try:
        known = {element for each in found for element in each}
    except TypeError:
        raise GraphError(f"graph: found elements that cannot be told apart (unhashable); {RIGHT}") from None
    if any(map(_is_nan, known)):
        raise GraphError("graph: found NaN as an element; elements that are like themselves would be right")
    elements = _in_order(known)
    number = {element: i for i, element in enumerate(elements)}
    u = np.repeat(np.arange(len(sets)), [len(each) for each in found])
    v = np.array([number[element] for each in found for element in each], dtype=np.int64)
    return _stream(u, v, sets, elements)


def _in_order(labels: Iterable[Any]) -> Labels:
    """Labels in ascending order; those that have none by type and text, the same in every process."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda each: (type(each).__name__, repr(each)))


def _matrix(given: Any) -> tuple[EdgeStream, Labels, Labels]:
    """The entries of a matrix [sets, elements] that are not zero."""
    if given.dtype.kind not in "biuf" or len(given.shape) != 2:
        raise GraphError(f"graph: found an array of {given.dtype} of shape {tuple(given.shape)}; {RIGHT}")
    if hasattr(given, "tocoo"):
        entries = given.tocsr().tocoo()  # one entry for each place
        u, v, values = entries.row, entries.col, entries.data
    else:
        u, v = np.nonzero(unmasked("graph", given))
        values = given[u, v]
    if values.dtype.kind == "f" and np.isnan(values).any():
        at = int(np.isnan(values).argmax())
        raise GraphError(f"graph: found NaN in row {u[at]}, column {v[at]}; 0 or 1 would be right")
    there = values != 0
    return _stream(u[there], v[there], *(list(range(size)) for size in given.shape))


def _frame(given: Any) -> tuple[EdgeStream, Labels, Labels]:
    """Rows of a set and an element."""
    if len(given.columns) != 2:
        raise GraphError(f"graph: found a table of {len(given.columns)} columns; {RIGHT}")
    names, columns = columns_of(given)
    columns = [column.tolist() for column in columns]
    for called, column in zip(names, columns):
        for row in (row for row, each in enumerate(column) if each is None or _is_nan(each)):
            right = "a set and an element in each row would be right"
            raise GraphError(f"graph: found nothing in row {row} of column {shown(called)!r}; {right}")
    sides = [_in_order(set(column)) for column in columns]
    ends = [
        np.array([number[each] for each in column], dtype=np.int64)
        for column, number in zip(columns, ({each: i for i, each in enumerate(side)} for side in sides))
    ]
    return _stream(*ends, *sides)


def _is_nan(label: Any) -> bool:
    """Whether a label is not a number, not a time, or what tables have in the place of none."""
    try:
        return bool(label != label)
    except (TypeError, ValueError):  # neither yes nor no
        return True


def _networkx(given: Any) -> tuple[EdgeStream, Labels, Labels]:
    """A graph whose nodes are sets (bipartite = 0) and elements (1)."""
    kinds = dict(given.nodes(data="bipartite"))
    for node, kind in kinds.items():
        if kind not in (0, 1):
            raise GraphError(f"graph: node {shown(repr(node))} has bipartite = {shown(repr(kind))}; {RIGHT}")
    sides = [[node for node, kind in kinds.items() if kind == side] for side in (0, 1)]
    number = {node: i for side in sides for i, node in enumerate(side)}
    ends = np.empty((given.number_of_edges(), 2), dtype=np.int64)
    for i, (a, b) in enumerate(given.edges()):
        if kinds[a] == kinds[b]:
            raise GraphError(f"graph: edge {shown(repr((a, b)))} joins nodes of one kind; {RIGHT}")
        a, b = (a, b) if kinds[a] == 0 else (b, a)
        ends[i] = number[a], number[b]
    stream, *_ = _stream(*ends.T, *sides)
    costs = [_costs(given, side, stream.warnings) for side in sides]
    if any(each is not None for each in costs):
        stream.node_weights = np.concatenate(
            [np.ones(len(s), dtype=np.float32) if c is None else c for c, s in zip(costs, sides)]
        )
    return stream, *sides


def _costs(given: Any, nodes: Labels, said: list[str]) -> np.ndarray | None:
    """[k] float32 the attributes `weight` of nodes; None: none has one."""
    found = [given.nodes[node].get("weight") for node in nodes]
    if all(each is None for each in found):
        return None
    if None in found:
        raise GraphError(f"graph: node {shown(repr(nodes[found.index(None)]))} has no weight, others have")
    return as_weights(found, lambda i: f"node {nodes[i]}", said)


def _stream(
    u: np.ndarray, v: np.ndarray, sets: Labels, elements: Labels
) -> tuple[EdgeStream, Labels, Labels]:
    """Pairs [m] of numbers of sets and of elements, in ascending order: Python's sets have none."""
    order = np.lexsort((v, u))
    u, v = u[order], v[order]

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        yield u.astype(np.int64), len(sets) + v.astype(np.int64), None

    count = len(sets) + len(elements)
    stream = EdgeStream("family", "", "memory", count, 0, False, chunks, sets=len(sets))
    return stream, sets, elements
