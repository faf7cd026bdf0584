"""Folders of graph sets as TU Dortmund's collection has them (Morris et al. 2020); DS is the name of the set.

DS_A.txt                 an edge a line, "i, j", nodes from 1; in both directions as a rule
DS_graph_indicator.txt   the graph of each node, from 1, ascending
DS_graph_labels.txt      a class of each graph, a number      DS_graph_attributes.txt  numbers of each graph
DS_node_labels.txt       a kind of each node, or several      DS_node_attributes.txt   numbers of each node
DS_edge_labels.txt       a kind of each edge                  DS_edge_attributes.txt   numbers of each edge
Files may be packed. Kinds become features, a column for each of 0 up to the largest, after the attributes.
"""

import os
from collections.abc import Iterable, Iterator

import numpy as np

from app.errors import GraphError
from app.graphs.formats.source import PACKED_SUFFIXES, Limits, Source, shown
from app.graphs.formats.text import Layout, read_rows
from app.graphs.nodes.data import (
    MOST_CLASSES,
    Check,
    DenseFeatures,
    Labels,
    NodeTable,
    Refuse,
    SparseFeatures,
    rows_per_piece,
)
from app.graphs.nodes.text import text_features, text_integers, text_values
from app.graphs.stream import Chunk, EdgeStream

EDGES, INDICATOR = "_A", "_graph_indicator"
MOST_KINDS = 1 << 16


def read_tu(path: str, limits: Limits) -> EdgeStream:
    """The stream of all graphs of a folder, or of the set that a file DS_A.txt is of."""
    files = _files(path, limits)
    edges, indicator = files[EDGES], files[INDICATOR]
    sizes = _sizes(indicator, files)
    nodes, told = int(sizes.sum()), any(f"_edge_{each}" in files for each in ("labels", "attributes"))

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        for text, line in edges.pieces():
            yield read_rows(edges, text, line, Layout(2, 1, nodes, comma=True))

    name = shown(os.path.basename(_prefix(edges.path)), 200)
    return EdgeStream(
        name, path, "tu", nodes, 1, False, chunks, sizes=sizes, first_graph=1,
        edge_features=(lambda: _features(files, "edge", sparse=False)) if told else None,
    )  # fmt: skip


def read_table(path: str, limits: Limits, wanted: bool = True, values: bool = False) -> NodeTable:
    """Features of nodes and classes of graphs, or with `values` numbers; these folders have no splits."""
    files = _files(path, limits)
    labels = files.get("_graph_labels")
    if values:
        told = files.get("_graph_attributes", labels)
        return NodeTable(_features(files), None if told is None else text_values(told), None)
    return NodeTable(_features(files), None if labels is None else _classes(labels), None)


def _files(path: str, limits: Limits) -> dict[str, Source]:
    """The files of a set by how their names go on after its own."""
    folder, start = os.path.split(_prefix(path))
    if os.path.isdir(path):
        names = sorted(each for each in os.listdir(path) if _prefix(each) != each)
        if len(names) != 1:
            right = "a folder with one DS_A.txt, or that file, would be right"
            raise GraphError(f"{shown(path, 400)}: holds {len(names)} files that end in _A.txt; {right}")
        folder, start = path, _prefix(names[0])
    found = {}
    for each in sorted(os.listdir(folder or ".")):
        plain = PACKED_SUFFIXES.sub("", each)
        if plain.startswith(start + "_") and plain.endswith(".txt"):
            found[plain.removeprefix(start).removesuffix(".txt")] = Source(os.path.join(folder, each), limits)
    for needed in (EDGES, INDICATOR):
        if needed not in found:
            right = "a folder of TU Dortmund's collection would be right"
            raise GraphError(f"{shown(path, 400)}: holds no {shown(start)}{needed}.txt; {right}")
    return found


def _prefix(path: str) -> str:
    """A path without _A.txt at its end."""
    plain = PACKED_SUFFIXES.sub("", path)
    return plain.removesuffix(f"{EDGES}.txt") if plain.endswith(f"{EDGES}.txt") else path


def _sizes(source: Source, files: dict[str, Source]) -> np.ndarray:
    """[graphs] int64, the nodes of each graph; the last graphs may have none where labels tell of them."""
    graph_of = text_integers(source)
    if not len(graph_of):
        raise source.error("holds no nodes; the number of a graph on each line would be right")
    if (np.diff(graph_of) < 0).any() or graph_of[0] < 1:
        at = int(np.argmax(np.diff(graph_of) < 0)) + 1 if graph_of[0] >= 1 else 0
        right = "graphs from 1, the nodes of one after those of another, would be right"
        raise source.error(f"found graph {graph_of[at]} of node {at + 1}; {right}")
    told = [each for name, each in files.items() if name in ("_graph_labels", "_graph_attributes")]
    lines = max((each.most_lines() for each in told), default=len(graph_of))
    if graph_of[-1] > max(lines, len(graph_of)):
        raise source.error(f"found graph {graph_of[-1]}; at most {max(lines, len(graph_of))} would be right")
    return np.bincount(graph_of - 1)


def _classes(source: Source) -> Labels:
    """One class for each graph; of numbers below 0, as 1 and -1, each is a name."""
    refuse, found = source.error, [_whole(rows, source.error) for rows in text_values(source).parts()]
    numbers = np.concatenate(found)
    if numbers.shape[1] != 1:
        raise refuse(f"found {numbers.shape[1]} fields on a line; one class would be right")
    numbers = numbers[:, 0]
    if numbers.min(initial=0) >= 0:
        return Labels(len(numbers), 0, lambda: iter([numbers]), refuse)
    known, number = np.unique(numbers.astype(str), return_inverse=True)
    if len(known) > MOST_CLASSES:
        raise refuse(f"found {len(known)} classes; at most {MOST_CLASSES} would be right")
    return Labels(
        len(numbers), 0, lambda: iter([number.astype(np.int64)]), refuse, names=tuple(known.tolist())
    )


def _whole(rows: np.ndarray, refuse: Refuse) -> np.ndarray:
    """Numbers [k, c] float64 as int64."""
    wrong = ~(np.abs(rows) < 2**53) | (rows != np.rint(rows))
    if wrong.any():
        raise refuse(f"found {rows[wrong][0]}; whole numbers would be right")
    return rows.astype(np.int64)


def _features(
    files: dict[str, Source], what: str = "node", sparse: bool = True
) -> DenseFeatures | SparseFeatures | None:
    """Attributes, kinds, or both side by side, of nodes or edges; sparse: kinds alone are sparse rows."""
    attributes = files.get(f"_{what}_attributes")
    kinds = files.get(f"_{what}_labels")
    if kinds is None:
        return None if attributes is None else text_features(attributes)
    columns, width = _columns_of_kinds(kinds)
    if attributes is None and sparse:
        return _one_hot(columns, width, kinds.error)
    numbers = _no_columns(len(columns), kinds.error) if attributes is None else text_features(attributes)
    if numbers.n != len(columns):
        raise kinds.error(f"found {len(columns)} lines; {numbers.n}, as of attributes, would be right")

    def beside_kinds(pieces: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        at = 0
        for rows in pieces:
            beside = np.zeros((len(rows), width), dtype=np.float32)
            np.put_along_axis(beside, columns[at : at + len(rows)], 1, axis=1)
            yield np.concatenate([rows, beside], axis=1)
            at += len(rows)

    def holes(check: Check) -> Iterator[np.ndarray]:
        return beside_kinds(numbers.holes(check))

    return DenseFeatures(
        numbers.n, numbers.width + width, lambda: beside_kinds(numbers.parts()), numbers.refuse,
        holes=holes if numbers.holes else None,
    )  # fmt: skip


def _no_columns(n: int, refuse: Refuse) -> DenseFeatures:
    """Rows without numbers."""
    step = rows_per_piece(1)

    def parts() -> Iterator[np.ndarray]:
        for at in range(0, n, step):
            yield np.empty((min(step, n - at), 0), dtype=np.float32)

    return DenseFeatures(n, 0, parts, refuse)


def _columns_of_kinds(source: Source) -> tuple[np.ndarray, int]:
    """[n, kinds of a node] int64, their columns, ascending in a row; and how many columns there are."""
    found = np.concatenate([_whole(rows, source.error) for rows in text_values(source).parts()])
    if found.min() < 0:
        raise source.error(f"found kind {found.min()}; numbers from 0 would be right")
    widths = found.max(axis=0) + 1
    if widths.sum() > MOST_KINDS:
        raise source.error(f"found {widths.sum()} kinds; at most {MOST_KINDS} would be right")
    return found + np.concatenate([[0], np.cumsum(widths)[:-1]]), int(widths.sum())


def _one_hot(columns: np.ndarray, width: int, refuse: Refuse) -> SparseFeatures:
    """Sparse rows with a one in each of the columns [n, k]."""
    n, each = columns.shape
    flat = columns.reshape(-1).astype(np.int32)

    def parts(counts: Iterable[int]) -> Iterator[tuple[np.ndarray, None]]:
        at = 0
        for count in counts:
            yield flat[at : at + count], None
            at += count

    return SparseFeatures(n, width, np.arange(n + 1) * each, True, parts, refuse)
