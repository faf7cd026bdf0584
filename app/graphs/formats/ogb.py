"""Folders as the Open Graph Benchmark (Hu et al. 2020) keeps node classification data on disk.

raw/edge.csv.gz            two node numbers a line        raw/num-node-list.csv.gz    the number of nodes
raw/node-feat.csv.gz       a line for each node           raw/node-label.csv.gz       a line for each node
split/NAME/{train,valid,test}.csv.gz                      node numbers
Files may also be unpacked (.csv), or arrays in place of texts (ogb_arrays.py). Edges are arcs from the
first node to the second, which count in both directions unless a case says otherwise (graph.neighbours).
"""

import os
from collections.abc import Iterator

import numpy as np

from app.graphs.formats.counted import MOST_NODES
from app.graphs.formats.ogb_arrays import (
    MOST_BARE,
    has_arrays,
    node_count,
    read_arrays,
    read_features,
    read_labels,
)
from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.formats.text import Layout, read_rows
from app.graphs.nodes.data import SPLITS, NodeTable, Splits
from app.graphs.nodes.text import text_features, text_integers, text_labels
from app.graphs.stream import Chunk, EdgeStream

FILES = {"train": "train", "val": "valid", "test": "test"}


def read_ogb(path: str, limits: Limits) -> EdgeStream:
    """The stream of a folder's graph."""
    if has_arrays(path):
        return read_arrays(path, limits, graph_name(path))
    source = _required(path, "raw/edge", limits)
    nodes = _nodes(path, limits)

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        for text, line in source.pieces():
            yield read_rows(source, text, line, Layout(2, 0, nodes - 1, comma=True))

    return EdgeStream(graph_name(path), path, "ogb", nodes, 0, False, chunks)


def read_table(path: str, limits: Limits, wanted: bool = True) -> NodeTable:
    """Features, labels and, where it is wanted, the only split of a folder."""
    folder = _only_split(path, limits) if wanted else None
    splits = read_split(folder, _nodes(path, limits), limits) if folder else None
    if has_arrays(path):
        return NodeTable(read_features(path, limits), read_labels(path, limits), splits)
    features = _find(path, "raw/node-feat", limits)
    labels = _find(path, "raw/node-label", limits)
    return NodeTable(
        text_features(features) if features else None, text_labels(labels) if labels else None, splits
    )


def is_folder(path: str) -> bool:
    """Whether a path names a folder, as a split is."""
    return os.path.isdir(path)


def read_split(folder: str, n: int, limits: Limits) -> Splits:
    """The lists of nodes in a folder: train, valid, test."""
    flags = np.zeros(n, dtype=np.uint8)
    for name, file in FILES.items():
        source = _required(folder, file, limits)
        flags[text_integers(source, n - 1)] |= SPLITS[name]
    return Splits(flags, Source(folder, limits).error)


def _nodes(path: str, limits: Limits) -> int:
    """The number of nodes of the only graph."""
    if has_arrays(path):
        return node_count(path, limits)
    source = _required(path, "raw/num-node-list", limits)
    counts = text_integers(source, MOST_NODES)
    if len(counts) != 1:
        raise source.error(f"found {len(counts)} graphs; one number, of one graph, would be right")
    # Features and labels have a line for each node; without them most nodes have an edge.
    found = [_find(path, name, limits) for name in ("raw/edge", "raw/node-feat", "raw/node-label")]
    most = max(MOST_BARE, *(each.most_lines() for each in found if each is not None))
    if counts[0] > most:
        raise source.error(f"states {counts[0]} nodes; the files have room for {most} at most")
    return int(counts[0])


def _only_split(path: str, limits: Limits) -> str | None:
    """The folder of the only split; None without any."""
    folder = os.path.join(path, "split")
    names = sorted(each.name for each in os.scandir(folder) if each.is_dir()) if os.path.isdir(folder) else []
    if len(names) > 1:
        found = ", ".join(shown(name) for name in names[:8])
        raise Source(folder, limits).error(
            f"found splits {found}; graph.splits = the path of one of these would be right"
        )
    return os.path.join(folder, names[0]) if names else None


def _find(folder: str, name: str, limits: Limits) -> Source | None:
    """The file of that name, packed or not."""
    for suffix in (".csv.gz", ".csv"):
        path = os.path.join(folder, name + suffix)
        if os.path.isfile(path):
            return Source(path, limits)
    return None


def _required(folder: str, name: str, limits: Limits) -> Source:
    source = _find(folder, name, limits)
    if source is None:
        raise Source(folder, limits).error(f"holds no {name}.csv.gz; a folder as OGB makes it would be right")
    return source
