"""The files that hold features, labels and splits: beside a graph, or inside its archive."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.formats import graphsage, ogb, ppi, tu
from app.graphs.formats.npy import MAGIC, NAME, Npy
from app.graphs.formats.npz import Npz
from app.graphs.formats.source import Limits, Source
from app.graphs.nodes.arrays import (
    archive_features,
    archive_splits,
    array_labels,
    array_values,
    dense_features,
    label_name,
    table_of_archive,
)
from app.graphs.nodes.data import DenseFeatures, Labels, NodeTable, Splits
from app.graphs.nodes.keyed import Nodes, keyed
from app.graphs.nodes.keyed_ends import keyed_by_ends
from app.graphs.nodes.text import (
    has_number,
    is_label,
    is_split,
    text_features,
    text_labels,
    text_splits,
    text_values,
)
from app.graphs.stream import EdgeStream
from app.graphs.union import unite_tables

# (path, limits, whether its splits are wanted, whether labels are numbers) -> what it says
TABLES: dict[str, Callable[[str, Limits, bool, bool], NodeTable]] = {
    "ogb": ogb.read_table, "ppi": ppi.read_table, "graphsage": graphsage.read_table, "tu": tu.read_table,
}  # fmt: skip
ARCHIVE = b"PK"


def open_node_table(
    paths: list[str],
    format: str,
    n: int,
    limits: Limits,
    features: str = "",
    labels: str = "",
    splits: str = "",
    nodes: Nodes | None = None,
    values: bool = False,
    whole: bool = False,
) -> NodeTable:
    """What the files of a graph say of its n nodes, headers read and checked.

    paths    the graph's own file, or those that were united into it
    features, labels, splits   files that take the place of what is in `paths`; "": none; splits "random":
             those in `paths` are not wanted either
    nodes    their lines begin with ids of these; None: they are in the order of the nodes
    values   labels are numbers to be predicted, no classes
    whole    of a set of n graphs: these have labels and splits and are named by ids, nodes have features
    """
    table = unite_tables([_own_table(path, format, limits, not splits, values) for path in paths])
    by = None if whole else nodes
    found = read_features(features, limits, by) if features else table.features
    if found is not None and not found.width:
        raise found.refuse("found features without columns; at least one would be right")
    if splits and splits != "random":
        table = replace(table, splits=read_splits(splits, n, limits, nodes))
    told = read_labels(labels, limits, nodes, values) if labels else table.labels
    if told is not None and told.values != values:
        raise told.refuse('found classes; gnn.goal = "classes", or numbers in graph.labels, would be right')
    return NodeTable(found, told, table.splits)


def _own_table(path: str, format: str, limits: Limits, splits: bool, values: bool) -> NodeTable:
    """What the graph's own file or folder says of its nodes."""
    if format in TABLES:
        return TABLES[format](path, limits, splits, values)
    if path.startswith("networkx:") or Source(path, limits).first_bytes(2) != ARCHIVE:
        return NodeTable()
    return table_of_archive(Npz(Source(path, limits)), values)


def open_arrays(path: str, limits: Limits) -> Npz | None:
    """The arrays of an .npz or .npy file, told from its content; None for anything else."""
    source = Source(path, limits)
    start = source.first_bytes(len(MAGIC))
    if start.startswith(ARCHIVE):
        return Npz(source)
    return Npy(source) if start.startswith(MAGIC) else None


def check_node_file(path: str, limits: Limits) -> None:
    """Refuse a file of features, labels or splits whose headers are wrong; "" and "random" name none."""
    if path not in ("", "random") and not os.path.isdir(path):
        open_arrays(path, limits)


def read_features(path: str, limits: Limits, nodes: Nodes | None = None) -> Any:
    """Features: an .npy matrix, an .npz with one or with CSR arrays (as scipy.sparse.save_npz has), text."""
    if nodes is not None:
        return keyed(text_features, has_number, _text(path, limits), nodes)
    arrays = open_arrays(path, limits)
    if arrays is None:
        return text_features(Source(path, limits))
    if NAME in arrays:
        return dense_features(arrays, NAME)
    found = archive_features(arrays, "feat_") or archive_features(arrays, "")
    if found is None:
        raise arrays.error("holds no features; indptr, indices, data and shape, or features, would be right")
    return found


def open_edge_features(path: str, limits: Limits) -> DenseFeatures:
    """Features of edges, a row for each: dense ones. Raises GraphError."""
    found = read_features(path, limits)
    if not isinstance(found, DenseFeatures) or not found.width:
        raise found.refuse("found no dense rows of features; a row of numbers for each edge would be right")
    return found


def open_edge_table(
    stream: EdgeStream | None, labels: str, splits: str, limits: Limits, values: bool, nodes: Nodes | None,
    count: Callable[[], int],
) -> tuple[Labels | None, Splits | None, np.ndarray | None, np.ndarray | None]:  # fmt: skip
    """Labels and splits of edges: files, in the place of what the graph's own say; "" names none.

    stream   of the graph     values   labels are numbers to be predicted
    nodes    lines begin with the ids of two of these; None: rows are in the order of the edges
    count    tells how many edges there are, which lists of edges do not say
    returns  labels, splits, and of which nodes their rows are, where lines say so
    """
    ends: list[np.ndarray | None] = [None, None]
    told = stream.edge_labels(values) if stream is not None and stream.edge_labels and not labels else None
    if labels and nodes is None:
        told = read_labels(labels, limits, None, values)
    elif labels:
        read, known = (text_values, has_number) if values else (text_labels, is_label)
        told, ends[0] = keyed_by_ends(read, known, _text(labels, limits, "edge"), nodes)
    found = None
    if splits and nodes is None:
        found = read_splits(splits, 0 if stream is None else count(), limits)
    elif splits:
        found, ends[1] = keyed_by_ends(text_splits, is_split, _text(splits, limits, "edge"), nodes)
    return told, found, *ends


def read_labels(path: str, limits: Limits, nodes: Nodes | None = None, values: bool = False) -> Any:
    """Labels, or values: an .npy array, the array `labels` or `label` of an .npz, or text."""
    read = text_values if values else text_labels
    if nodes is not None:
        return keyed(read, has_number if values else is_label, _text(path, limits), nodes)
    arrays = open_arrays(path, limits)
    if arrays is None:
        return read(Source(path, limits))
    name = NAME if NAME in arrays else label_name(arrays)
    if name is None:
        raise arrays.error("holds no array 'labels'; that one would be right")
    return array_values(arrays, name) if values else array_labels(arrays, name)


def read_splits(path: str, n: int, limits: Limits, nodes: Nodes | None = None) -> Any:
    """Splits: an .npz of masks, lists of nodes or node types, a folder of lists as OGB has them, or text."""
    if nodes is not None:
        return keyed(text_splits, is_split, _text(path, limits), nodes)
    if ogb.is_folder(path):
        return ogb.read_split(path, n, limits)
    arrays = open_arrays(path, limits)
    if arrays is None:
        return text_splits(Source(path, limits))
    found = None if NAME in arrays else archive_splits(arrays, n)
    if found is None:
        raise _no_splits(arrays)
    return found


def _text(path: str, limits: Limits, kind: str = "node") -> Source:
    """A file of lines that begin with ids, which arrays have not; kind: "node" or "edge"."""
    source = Source(path, limits)
    if os.path.isdir(path) or open_arrays(path, limits) is not None:
        found = "a folder" if os.path.isdir(path) else "arrays"
        ids = "their ids" if kind == "node" else "the ids of their ends"
        right = f'text, or graph.{kind}_data_by = "order", would be right'
        raise source.error(f"found {found}, in which {kind}s are not named by {ids}; {right}")
    return source


def _no_splits(arrays: Npz) -> GraphError:
    return arrays.error("holds no splits; train_mask, val_mask and test_mask in an .npz would be right")
