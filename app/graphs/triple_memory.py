"""Knowledge graphs that are already in memory: triples of numbers or names, NetworkX graphs, labels."""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.node_memory import ClassNames, splits_of, table_of_arrays
from app.graphs.nodedata import SPLITS
from app.graphs.source import shown
from app.graphs.triples import MOST, NodeLabels, Triples

NAME = "triples"
RIGHT = "(subject, relation, object) would be right"


@dataclass(frozen=True, eq=False)
class NamedTriples:
    """Triples, and what a caller calls their nodes and relations, by number; None: by their numbers."""

    triples: Triples
    nodes: list[Any] | None = None
    relations: list[Any] | None = None


def triples_of_object(
    given: Any, nodes: int | None = None, relations: int | None = None, attribute: str = "relation"
) -> NamedTriples:
    """The triples of an array [m, 3], of a list of names or of a directed NetworkX graph.

    given             integers [m, 3]; or rows (subject, relation, object) of any names, numbered in the order
                      in which they occur; or a graph, whose nodes keep their order
    nodes, relations  how many there are, of numbers only; None: one more than the largest
    attribute         the edge attribute of a NetworkX graph that names the relation
    Raises GraphError.
    """
    if hasattr(given, "adj") and hasattr(given, "edges"):
        _refuse_counts(nodes, relations)
        return _networkx(given, attribute)
    rows = given if isinstance(given, np.ndarray) and given.dtype.kind in "iu" else _rows(given)
    if isinstance(rows, np.ndarray):
        return NamedTriples(_numbered(rows, nodes, relations))
    _refuse_counts(nodes, relations)
    return _named(rows)


def _refuse_counts(nodes: int | None, relations: int | None) -> None:
    for name, value in (("nodes", nodes), ("relations", relations)):
        if value is not None:
            raise GraphError(f"{name}: counts those of an array of numbers; names tell it: leave it out")


def _rows(given: Any) -> np.ndarray | list[tuple[Any, Any, Any]]:
    """[m, 3] int64 where all are whole numbers, else the rows as they are."""
    needed = f"an array [m, 3], a list of {RIGHT.split(' would')[0]}, or a NetworkX MultiDiGraph"
    if isinstance(given, np.ndarray) and (given.ndim != 2 or given.dtype.kind not in "USO"):
        raise GraphError(
            f"triples: found {given.dtype} of shape {given.shape}; integers [m, 3] would be right"
        )
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise GraphError(f"triples: found {type(given)}; {needed} would be right")
    rows = given.tolist() if isinstance(given, np.ndarray) else list(given)
    for i, row in enumerate(rows):
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != 3:
            raise GraphError(f"triples: found {shown(repr(row))} in row {i}; {RIGHT}")
    if rows and all(
        isinstance(each, Integral) and not isinstance(each, bool) for row in rows for each in row
    ):
        try:
            return np.array([[int(each) for each in row] for row in rows], dtype=np.int64)
        except OverflowError:
            raise GraphError(f"triples: found a number beyond {MOST}; 0..{MOST} would be right") from None
    return [tuple(row) for row in rows]


def _numbered(rows: np.ndarray, nodes: int | None, relations: int | None) -> Triples:
    """Triples of numbers from 0."""
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise GraphError(f"triples: found {rows.dtype} of shape {rows.shape}; integers [m, 3] would be right")
    _refuse_none(len(rows))
    counts = []
    for name, what, columns, stated in (
        ("nodes", "node", rows[:, ::2], nodes), ("relations", "relation", rows[:, 1:2], relations),
    ):  # fmt: skip
        most = MOST if stated is None else stated
        if stated is not None and not (isinstance(stated, Integral) and 1 <= stated <= MOST):
            raise GraphError(f"{name}: found {stated!r}; a number from 1 to {MOST} would be right")
        wrong = (columns < 0) | (columns >= most)
        if wrong.any():
            i = int(np.flatnonzero(wrong.any(axis=1))[0])
            number = int(columns[i][wrong[i]][0])
            raise GraphError(f"triples: found {what} {number} in row {i}; 0..{most - 1} would be right")
        counts.append(int(columns.max()) + 1 if stated is None else int(stated))
    return Triples(NAME, *counts, *_columns(rows))


def _named(rows: list[tuple[Any, Any, Any]]) -> NamedTriples:
    """Triples of names, numbered as the reader of N-Triples does."""
    nodes: dict[Any, int] = {}
    relations: dict[Any, int] = {}
    _refuse_none(len(rows))
    numbers = np.empty((len(rows), 3), dtype=np.int64)
    for i, (s, r, o) in enumerate(rows):
        try:
            numbers[i, 0] = nodes.setdefault(s, len(nodes))
            numbers[i, 1] = relations.setdefault(r, len(relations))
            numbers[i, 2] = nodes.setdefault(o, len(nodes))
        except TypeError:  # what can be no key of a dict
            found = shown(repr(rows[i]))
            raise GraphError(f"triples: found {found} in row {i}; three names would be right") from None
    return NamedTriples(
        Triples(NAME, len(nodes), len(relations), *_columns(numbers)), list(nodes), list(relations)
    )


def _networkx(graph: Any, attribute: str) -> NamedTriples:
    """The edges of a directed graph, each with a relation."""
    if not graph.is_directed():
        raise GraphError(
            f"triples: found {type(graph)}; a MultiDiGraph, whose edges have directions, is needed"
        )
    edges = list(graph.edges(data=attribute))
    lacking = next((edge for edge in edges if edge[2] is None), None)
    if lacking is not None:
        found = f"edge {lacking[0]!r}-{lacking[1]!r} has no attribute {attribute!r}"
        raise GraphError(f"triples: {found}; one for every edge, or another relation=, would be right")
    _refuse_none(len(edges))
    nodes = list(graph.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    relations: dict[Any, int] = {}
    rows = np.empty((len(edges), 3), dtype=np.int64)
    for i, (s, o, r) in enumerate(edges):
        try:
            rows[i] = number[s], relations.setdefault(r, len(relations)), number[o]
        except TypeError:  # what can be no key of a dict
            found = f"edge {s!r}-{o!r} has the {attribute} {shown(repr(r))}"
            raise GraphError(f"triples: {found}; a name would be right") from None
    return NamedTriples(Triples(NAME, len(nodes), len(relations), *_columns(rows)), nodes, list(relations))


def _refuse_none(count: int) -> None:
    if not 0 < count <= MOST:
        raise GraphError(f"triples: found {count}; from 1 to {MOST} would be right")


def _columns(rows: np.ndarray) -> list[np.ndarray]:
    return [np.ascontiguousarray(rows[:, at], dtype=np.int32) for at in range(3)]


# ---- labels -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Classes:
    """Labels of nodes, and what a caller calls the classes, by number.

    called   [classes] numbers or names
    """

    labels: NodeLabels
    called: np.ndarray


def labels_of_arrays(values: Any, sets: dict[str, Any], nodes: list[Any] | None, n: int) -> Classes:
    """Classes of some nodes of a knowledge graph, as `classify` takes them, one at most for each.

    values   [n] classes, -1 for none, or names, None for none; or a mapping of nodes to either
    sets     "train", "val" and "test": [n] bool, node numbers, or nodes by name; test None: the labelled
             nodes that are in neither of the others
    nodes    their names; None: they are numbers
    Nodes of the test need no class: theirs is asked. Raises GraphError.
    """
    if values is None:
        raise GraphError("labels: found none; classes of some nodes would be right")
    given = ClassNames(values, nodes, n)
    known = table_of_arrays(labels=given.numbers)
    known.check(n, NAME)
    if known.labels.columns:
        raise GraphError("labels: found several columns; one class for each node would be right")
    found = np.concatenate(list(known.labels.parts()))
    splits = table_of_arrays(**splits_of(sets, nodes), n=n).splits
    flags = np.zeros(n, dtype=np.uint8) if splits is None else splits.flags
    if sets.get("test") is None:
        flags[(flags == 0) & (found >= 0)] = SPLITS["test"]
    chosen = {name: np.flatnonzero(flags & bit).astype(np.int32) for name, bit in SPLITS.items()}
    _check_sets(chosen, flags, found, nodes)
    ids = np.unique(found[(flags > 0) & (found >= 0)])
    arrays = {}
    for name, mine in chosen.items():
        numbers = np.searchsorted(ids, found[mine]).astype(np.int32)
        arrays[name] = (mine, np.where(found[mine] >= 0, numbers, np.int32(-1)))
    val_idx, val_label = arrays["val"]
    labels = NodeLabels(
        len(ids), *arrays["train"], *arrays["test"], val_idx=val_idx, val_label=val_label
    )  # fmt: skip
    return Classes(labels, given.named(ids))


def _check_sets(
    chosen: dict[str, np.ndarray], flags: np.ndarray, found: np.ndarray, nodes: list[Any] | None
) -> None:
    """Refuse a node in two sets, one without a class to learn from, and nothing to learn from."""

    def called(node: int) -> str:
        return shown(repr(int(node) if nodes is None else nodes[node]))

    if not len(chosen["train"]):
        raise GraphError("train: no node to train with; at least one would be right")
    for name, bit in SPLITS.items():
        twice = np.flatnonzero((flags & bit > 0) & (flags != bit))
        if len(twice):
            others = " and ".join(each for each, one in SPLITS.items() if flags[twice[0]] & one)
            raise GraphError(f"node {called(twice[0])} is in {others}; one of them would be right")
        lacking = chosen[name][found[chosen[name]] < 0]
        if len(lacking) and name != "test":
            raise GraphError(
                f"{name}: node {called(lacking[0])} has no label; nodes that have one would be right"
            )
