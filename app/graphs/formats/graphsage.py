"""Graphs in the files of GraphSAGE (Hamilton, Ying and Leskovec 2017): PREFIX-G.json and others beside it.

PREFIX-G.json            NetworkX's node-link form; nodes have `val` and `test`, the others are trained on
PREFIX-id_map.json       the row of each node: {"id": 0, ...}, which is its number here
PREFIX-class_map.json    a class for each node, or a list of 0 and 1
PREFIX-feats.npy         [n, F], perhaps
Nodes without `val` and `test`, or not in PREFIX-G.json, of which GraphSAGE lets go, stay without edges and in
no set. The text of a file is whole in memory while it is parsed; of a link only its two ends are kept.
"""

import os
from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec
import numpy as np

from app.graphs.formats.npy import NAME, Npy
from app.graphs.formats.source import Limits, Source, shown
from app.graphs.nodes.arrays import dense_features
from app.graphs.nodes.data import (
    MOST_CLASSES,
    SPLITS,
    DenseFeatures,
    Labels,
    NodeTable,
    Splits,
    class_bits,
    class_numbers,
    rows_per_piece,
)
from app.graphs.stream import Chunk, EdgeStream

GRAPH, ROWS, CLASSES, FEATURES = "-G.json", "-id_map.json", "-class_map.json", "-feats.npy"
MOST_SPARSE = 16  # numbers of a table of labels for each byte that the file holds of it
LINKS = "a node-link graph as NetworkX writes it would be right"
Id = int | str
Classes = float | list[float]
Parsed = TypeVar("Parsed")


class _Node(msgspec.Struct, gc=False):
    """A node; of its attributes the two that say which set it is in."""

    id: Id
    val: bool | None = None
    test: bool | None = None

    @property
    def kept(self) -> bool:
        """Whether GraphSAGE keeps it."""
        return self.val is not None and self.test is not None


class _Link(msgspec.Struct, gc=False):
    """A link by its ends: ids, or positions in the list of nodes."""

    source: Id
    target: Id


class _Nodes(msgspec.Struct):
    """The nodes of PREFIX-G.json."""

    nodes: list[_Node]


class _Graph(msgspec.Struct):
    """PREFIX-G.json; new versions of NetworkX say edges for links."""

    nodes: list[_Node]
    links: list[_Link] | None = None
    edges: list[_Link] | None = None


def read_graphsage(path: str, limits: Limits) -> EdgeStream:
    """The stream of a graph; its nodes are numbered by PREFIX-id_map.json."""
    source, rows = _source(path, "", limits), _rows(path, limits)
    source.check()

    def chunks(opened: EdgeStream) -> Iterator[Chunk]:
        u, v, left = _links(source, rows, opened)
        if left:
            opened.warn(f"{source.where}: {left} links of nodes without val and test are left out")
        yield u, v, None

    name = shown(os.path.basename(path).removesuffix(GRAPH), 200)
    return EdgeStream(name, path, "graphsage", len(rows), 0, False, chunks, undirected=True)


def read_table(path: str, limits: Limits, wanted: bool = True, values: bool = False) -> NodeTable:
    """Features, labels and the splits that val and test say.

    wanted   False: splits may be left out; they take no reading
    """
    rows = _rows(path, limits)
    return NodeTable(_features(path, limits), _labels(path, rows, limits), _splits(path, rows, limits))


# ---- the graph --------------------------------------------------------------------------------------------


def _links(source: Source, rows: dict[str, int], opened: EdgeStream) -> tuple[np.ndarray, np.ndarray, int]:
    """Both ends [m] int64 of links between nodes that GraphSAGE keeps; how many other links there are."""
    graph = _parsed(source, _Graph, LINKS)
    links = graph.links if graph.links is not None else graph.edges
    if links is None:
        raise source.error(f"found no list of links; {LINKS}")
    number = _numbers(source, graph.nodes, rows)
    row_at = np.array([number[each.id] for each in graph.nodes], dtype=np.int64)
    kept_at = np.array([*(each.kept for each in graph.nodes), False], dtype=bool)
    place = _places(source, graph.nodes, links, rows, opened)
    ends = np.fromiter((place(end) for each in links for end in (each.source, each.target)), dtype=np.int64)
    ends = ends.reshape(-1, 2)
    kept = kept_at[ends].all(axis=1)
    return row_at[ends[kept, 0]], row_at[ends[kept, 1]], int(np.count_nonzero(~kept))


def _places(
    source: Source, nodes: list[_Node], links: list[_Link], rows: dict[str, int], opened: EdgeStream
) -> Callable[[Id], int]:
    """What makes a position in the list of nodes of the end of a link, -1 of a node that is not in it.

    Old versions of NetworkX write positions, as GraphSAGE reads them, new ones ids: whole numbers are
    positions where all of them can be, with a warning where they could be ids, of other nodes, as well.
    """
    at = {each.id: place for place, each in enumerate(nodes)}
    n, ends = len(nodes), [end for each in links for end in (each.source, each.target)]
    if all(type(end) is int and 0 <= end < n for end in ends):
        if any(at.get(end, end) != end for end in ends) and all(end in at for end in ends):
            opened.warn(
                f"{source.where}: the ends of links are taken for positions in the list of nodes, not ids"
            )
        return int
    for number, end in enumerate(ends):
        if end not in at and str(end) not in rows:
            found = f"found end {shown(repr(end))} of link {number // 2}"
            raise source.error(
                f"{found}; the id of a node, or positions 0..{n - 1} in all links, would be right"
            )
    return lambda end: at.get(end, -1)


def _numbers(source: Source, nodes: list[_Node], rows: dict[str, int]) -> dict[Id, int]:
    """The row of each node by its id."""
    found: dict[Id, int] = {}
    taken = np.zeros(len(rows), dtype=bool)
    for each in nodes:
        row = rows.get(str(each.id))
        if row is None or taken[row]:
            wrong = f", which {ROWS[1:]} has not" if row is None else " again"
            right = f"each node of {ROWS[1:]} once would be right"
            raise source.error(f"found node {shown(str(each.id))}{wrong}; {right}")
        found[each.id], taken[row] = row, True
    return found


def _rows(path: str, limits: Limits) -> dict[str, int]:
    """The row of each node by its id: 0..n-1 in any order."""
    source = _source(path, ROWS, limits)
    right = 'a row for each node, such as {"17": 0}, would be right'
    rows = _parsed(source, dict[str, int], right)
    seen = np.zeros(len(rows), dtype=bool)
    for name, row in rows.items():
        if not 0 <= row < len(rows) or seen[row]:
            found = f"found row {row} for node {shown(name)}"
            raise source.error(f"{found}; each of 0..{len(rows) - 1} once would be right")
        seen[row] = True
    return rows


# ---- its nodes --------------------------------------------------------------------------------------------


def _features(path: str, limits: Limits) -> DenseFeatures | None:
    """The features; None without their file."""
    source = _source(path, FEATURES, limits)
    return dense_features(Npy(source), NAME) if os.path.isfile(source.path) else None


def _splits(path: str, rows: dict[str, int], limits: Limits) -> Splits:
    """The sets that the attributes val and test say."""
    source = _source(path, "", limits)
    nodes = _parsed(source, _Nodes, LINKS).nodes
    number = _numbers(source, nodes, rows)
    flags = np.zeros(len(rows), dtype=np.uint8)
    for each in nodes:
        if each.kept:
            held = SPLITS["val"] * bool(each.val) | SPLITS["test"] * bool(each.test)
            flags[number[each.id]] = held or SPLITS["train"]
    return Splits(flags, source.error)


def _labels(path: str, rows: dict[str, int], limits: Limits) -> Labels:
    """The classes; a node that the file does not name has none."""
    source = _source(path, CLASSES, limits)
    text = _text(source)
    right = 'a class for each node, or a list of 0 and 1, such as {"17": [0, 1]}, would be right'
    classes = _decoded(source, text, dict[str, Classes], right)
    by_row: list[Classes | None] = [None] * len(rows)
    columns = {len(each) if isinstance(each, list) else 0 for each in classes.values()}
    for name, each in classes.items():
        if name not in rows:
            raise source.error(f"found node {shown(name)}; a node of {ROWS[1:]} would be right")
        by_row[rows[name]] = each
    width = max(columns, default=0)
    if len(columns) > 1 or width > MOST_CLASSES:
        found = ", ".join(str(each) for each in sorted(columns)[:8])
        raise source.error(
            f"found lists of {found} numbers; lists of one length, or no lists, would be right"
        )
    if width * len(rows) > MOST_SPARSE * len(text):
        raise source.error(f"found {len(classes)} lists of {width} numbers; one for each node would be right")
    check, none = (class_bits, [-1] * width) if width else (class_numbers, -1)

    def parts() -> Iterator[np.ndarray]:
        size = rows_per_piece(8 * max(width, 1))
        for at in range(0, len(by_row), size):
            piece = [none if each is None else each for each in by_row[at : at + size]]
            yield check(np.array(piece, dtype=np.float64), at, source.error)

    return Labels(len(rows), width, parts, source.error)


# ---- text -------------------------------------------------------------------------------------------------


def _source(path: str, end: str, limits: Limits) -> Source:
    """A file of the graph; with end "" PREFIX-G.json itself."""
    if not path.endswith(GRAPH):
        raise Source(path, limits).error(
            f"is no graph of GraphSAGE; the path of PREFIX{GRAPH} would be right"
        )
    return Source(path.removesuffix(GRAPH) + end if end else path, limits)


def _parsed(source: Source, kind: type[Parsed], right: str) -> Parsed:
    """What the JSON of a file says."""
    return _decoded(source, _text(source), kind, right)


def _text(source: Source) -> bytes:
    source.check()
    return b"".join(source.blocks())


def _decoded(source: Source, text: bytes, kind: type[Parsed], right: str) -> Parsed:
    """JSON as values of a kind."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise source.error(f"found no such JSON: {shown(str(error), 120)}; {right}") from None
