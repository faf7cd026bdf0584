"""Knowledge graphs that are already in memory: triples of numbers or names, NetworkX graphs, labels."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.formats.frames import is_frame
from app.graphs.formats.memory import MANY, SPARSEST
from app.graphs.formats.source import shown
from app.graphs.given import unmasked
from app.graphs.keys import sorted_set
from app.graphs.nodes.data import SPLITS
from app.graphs.nodes.memory import ClassNames, splits_of, table_of_arrays
from app.graphs.triples.data import MOST, TEST, TRAIN, VALID, NodeLabels, Triples

NAME = "triples"
NAMES = {TRAIN: "triples", VALID: "val", TEST: "test"}  # of the arguments
Row = tuple[Any, Any, Any]  # subject, relation, object
RIGHT = "(subject, relation, object) would be right"


@dataclass(frozen=True, eq=False)
class NamedTriples:
    """Triples, and what a caller calls their nodes and relations, by number; None: by their numbers."""

    triples: Triples
    nodes: list[Any] | None = None
    relations: list[Any] | None = None


def triples_of_object(
    given: Any,
    nodes: int | None = None,
    relations: int | None = None,
    attribute: str = "relation",
    others: dict[int, Any] | None = None,
) -> NamedTriples:
    """The triples of an array [m, 3], of a list of names or of a directed NetworkX graph.

    given             integers [m, 3]; or rows (subject, relation, object) of any names, numbered in the order
                      in which they occur, as a list or a DataFrame; or a graph, whose nodes keep their order
    nodes, relations  how many there are, of numbers only; None: one more than the largest
    attribute         the edge attribute of a NetworkX graph that names the relation
    others            triples of the same kinds by the set that they are (VALID, TEST)
    Raises GraphError.
    """
    every = {TRAIN: given, **(others or {})}
    parts = {NAMES[number]: _rows_of(each, attribute, NAMES[number]) for number, each in every.items()}
    numbered = {name for name, rows in parts.items() if isinstance(rows, np.ndarray)}
    if len(numbered) == len(parts):
        found = NamedTriples(_numbered(parts, nodes, relations))
    elif numbered:
        raise GraphError(f"{min(numbered)}: found numbers, others are names; names in all would be right")
    else:
        _refuse_counts(nodes, relations)
        found = _named(parts, [node for each in every.values() for node in _nodes_of(each)])
    if not others:
        return found
    sets = np.repeat(np.array(list(every), dtype=np.uint8), [len(rows) for rows in parts.values()])
    return replace(found, triples=replace(found.triples, sets=sets))


def _is_networkx(given: Any) -> bool:
    return hasattr(given, "adj") and hasattr(given, "edges")


def _nodes_of(given: Any) -> list[Any]:
    """The nodes of a NetworkX graph, which has some that are in no triple."""
    return list(given.nodes) if _is_networkx(given) else []


def _rows_of(given: Any, attribute: str, name: str) -> np.ndarray | list[Row]:
    """Rows of numbers or of names; `name` is that of the argument."""
    rows = _networkx(given, attribute, name) if _is_networkx(given) else _rows(given, name)
    if not 0 < len(rows) <= MOST:
        raise GraphError(f"{name}: found {len(rows)}; from 1 to {MOST} would be right")
    return rows


def _refuse_counts(nodes: int | None, relations: int | None) -> None:
    for name, value in (("nodes", nodes), ("relations", relations)):
        if value is not None:
            raise GraphError(f"{name}: counts those of an array of numbers; names tell it: leave it out")


def _rows(given: Any, name: str) -> np.ndarray | list[Row]:
    """[m, 3] int64 where all are whole numbers, else the rows as they are."""
    given = _rows_of_frame(given, name) if is_frame(given) else unmasked(name, given)
    needed = f"an array [m, 3], a list of {RIGHT.split(' would')[0]}, a DataFrame, or a NetworkX MultiDiGraph"
    if isinstance(given, np.ndarray) and given.dtype.kind in "iu" and given.shape[1:] == (3,):
        return given
    if isinstance(given, np.ndarray) and (given.ndim != 2 or given.dtype.kind not in "USO"):
        raise GraphError(
            f"{name}: found {given.dtype} of shape {given.shape}; integers [m, 3] would be right"
        )
    if isinstance(given, str | type) or hasattr(given, "tocoo") or not isinstance(given, Iterable):
        raise GraphError(f"{name}: found {type(given)}; {needed} would be right")
    rows = given.tolist() if isinstance(given, np.ndarray) else list(given)
    for i, row in enumerate(rows):
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != 3:
            raise GraphError(f"{name}: found {shown(repr(row))} in row {i}; {RIGHT}")
        if any(each is None or (isinstance(each, float) and each != each) for each in row):
            raise GraphError(f"{name}: found {shown(repr(row))} in row {i}; three names would be right")
    if rows and all(_is_count(each) for row in rows for each in row):
        try:
            return np.array([[int(each) for each in row] for row in rows], dtype=np.int64)
        except OverflowError:
            raise GraphError(f"{name}: found a number beyond {MOST}; 0..{MOST} would be right") from None
    return [tuple(row) for row in rows]


def _rows_of_frame(frame: Any, name: str) -> list[Row]:
    """The rows of a table of three columns."""
    columns = list(frame.columns)
    if len(columns) != 3 or len(set(columns)) != 3:
        told = ", ".join(map(str, columns[:6]))
        raise GraphError(f"{name}: found a table of {len(columns)} columns ({shown(told)}); three, {RIGHT}")
    rows = list(zip(*(np.asarray(frame[column]).tolist() for column in columns)))
    for i, row in enumerate(rows):
        if any(each is None or each != each for each in row):
            raise GraphError(f"{name}: found {shown(repr(row))} in row {i}; three names would be right")
    return rows


def _numbered(parts: dict[str, np.ndarray], nodes: int | None, relations: int | None) -> Triples:
    """Triples of numbers from 0, by the name of the argument."""
    counts = []
    for name, what, columns, stated in (
        ("nodes", "node", slice(None, None, 2), nodes), ("relations", "relation", slice(1, 2), relations),
    ):  # fmt: skip
        most = MOST if stated is None else stated
        if stated is not None and not (_is_count(stated) and 1 <= stated <= MOST):
            raise GraphError(f"{name}: found {stated!r}; a number from 1 to {MOST} would be right")
        for given, rows in parts.items():
            wrong = (rows[:, columns] < 0) | (rows[:, columns] >= most)
            if wrong.any():
                i = int(np.flatnonzero(wrong.any(axis=1))[0])
                number = int(rows[i, columns][wrong[i]][0])
                raise GraphError(f"{given}: found {what} {number} in row {i}; 0..{most - 1} would be right")
        largest = max(int(rows[:, columns].max()) for rows in parts.values())
        rows_in_all = sum(map(len, parts.values()))
        if stated is None and largest >= MANY + SPARSEST * rows_in_all:
            right = f"names, as texts, of which those that occur count, or {name}=, would be right"
            raise GraphError(f"triples: found {what} {largest} among {rows_in_all} rows; {right}")
        counts.append(largest + 1 if stated is None else int(stated))
    return Triples(NAME, *counts, *_columns(np.concatenate(list(parts.values()))))


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _named(parts: dict[str, list[Row]], first: list[Any]) -> NamedTriples:
    """Triples of names, numbered as the reader of text files does, after some nodes."""
    nodes: dict[Any, int] = {}
    relations: dict[Any, int] = {}
    for node in first:
        nodes.setdefault(node, len(nodes))
    numbers = np.empty((sum(map(len, parts.values())), 3), dtype=np.int64)
    rows = ((name, i, row) for name, part in parts.items() for i, row in enumerate(part))
    for at, (name, i, (s, r, o)) in enumerate(rows):
        try:
            numbers[at, 0] = nodes.setdefault(s, len(nodes))
            numbers[at, 1] = relations.setdefault(r, len(relations))
            numbers[at, 2] = nodes.setdefault(o, len(nodes))
        except TypeError:  # what can be no key of a dict
            found = shown(repr((s, r, o)))
            raise GraphError(f"{name}: found {found} in row {i}; three names would be right") from None
    return NamedTriples(
        Triples(NAME, len(nodes), len(relations), *_columns(numbers)), list(nodes), list(relations)
    )


def _networkx(graph: Any, attribute: str, name: str) -> list[Row]:
    """The edges of a directed graph, each with a relation."""
    if not graph.is_directed():
        raise GraphError(
            f"{name}: found {type(graph)}; a MultiDiGraph, whose edges have directions, is needed"
        )
    if not isinstance(attribute, Hashable) or isinstance(attribute, bool):
        raise GraphError(
            f"relation: found {shown(repr(attribute))}; the name of an edge attribute would be right"
        )
    rows = [(s, r, o) for s, o, r in graph.edges(data=attribute)]
    for s, r, o in rows:
        if r is None:
            found = f"edge {s!r}-{o!r} has no attribute {attribute!r}"
            raise GraphError(f"{name}: {found}; one for every edge, or another relation=, would be right")
        if not isinstance(r, Hashable):
            found = f"edge {s!r}-{o!r} has the {attribute} {shown(repr(r))}"
            raise GraphError(f"{name}: {found}; a name would be right")
    return rows


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

    def called_as(self, texts: list[str], classes: int) -> np.ndarray:
        """What the caller calls classes in the order of saved weights, which name them by texts or number so
        many of them."""
        if not texts:
            return self.called if len(self.called) == classes else np.arange(classes)
        if texts == self.labels.class_names:
            return self.called
        own = dict(zip(self.labels.class_names, self.called.tolist()))
        other = int if self.called.dtype.kind in "iu" and all(map(_is_number, texts)) else str
        return np.array([own[text] if text in own else other(text) for text in texts])


def labels_of_arrays(
    values: Any, sets: dict[str, Any], nodes: list[Any] | None, n: int, learns: bool = True
) -> Classes:
    """Classes of some nodes of a knowledge graph, as `classify` takes them, one at most for each.

    values   [n] classes, -1 for none, or names, None for none; or a mapping of nodes to either
    sets     "train", "val" and "test": [n] bool, or nodes as splits_of takes them; test None: the labelled
             nodes that are in neither of the others
    nodes    their names; None: they are numbers
    learns   there have to be some to train with; else, without labels and sets, all nodes are of the test
    Nodes of the test need no class: theirs is asked. Raises GraphError.
    """
    if values is None and learns:
        raise GraphError("labels: found none; classes of some nodes would be right")
    given = ClassNames(np.full(n, -1) if values is None else values, None if values is None else nodes, n)
    known = table_of_arrays(labels=given.numbers)
    known.check(n, NAME)
    if known.labels.columns:
        raise GraphError("labels: found several columns; one class for each node would be right")
    found = np.concatenate(list(known.labels.parts()))
    splits = table_of_arrays(**splits_of(sets, nodes), n=n).splits
    flags = np.zeros(n, dtype=np.uint8) if splits is None else splits.flags
    if sets.get("test") is None:
        flags[(flags == 0) & (found >= 0)] = SPLITS["test"]
    if values is None and not any(each is not None for each in sets.values()):
        flags[:] = SPLITS["test"]
    chosen = {name: np.flatnonzero(flags & bit).astype(np.int32) for name, bit in SPLITS.items()}
    _check_sets(chosen, flags, found, nodes)
    if not flags.any() or (learns and not len(chosen["train"])):
        what = "train: no node to train with" if learns else "test: no node whose class is asked"
        raise GraphError(f"{what}; at least one would be right")
    ids = sorted_set(found[(flags > 0) & (found >= 0)])
    arrays = {}
    for name, mine in chosen.items():
        numbers = np.searchsorted(ids, found[mine]).astype(np.int32)
        arrays[name] = (mine, np.where(found[mine] >= 0, numbers, np.int32(-1)))
    val_idx, val_label = arrays["val"]
    called = given.named(ids)
    labels = NodeLabels(
        len(ids), *arrays["train"], *arrays["test"], as_texts(called.tolist()), val_idx, val_label
    )  # fmt: skip
    return Classes(labels, called)


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit()


def as_texts(names: list[Any] | None) -> list[str]:
    """What saved weights call relations or classes; empty without names, and where two are the same text."""
    texts = [str(name) for name in names or ()]
    return texts if len(set(texts)) == len(texts) else []


def _check_sets(
    chosen: dict[str, np.ndarray], flags: np.ndarray, found: np.ndarray, nodes: list[Any] | None
) -> None:
    """Refuse a node in two sets, and one without a class to learn from."""

    def called(node: int) -> str:
        return shown(repr(int(node) if nodes is None else nodes[node]))

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
