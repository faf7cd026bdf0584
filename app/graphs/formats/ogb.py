"""Folders as the Open Graph Benchmark (Hu et al. 2020) keeps data on nodes, or on graphs, on disk.

raw/edge.csv.gz            two node numbers a line        raw/num-node-list.csv.gz    the number of nodes
raw/node-feat.csv.gz       a line for each node           raw/node-label.csv.gz       a line for each node
raw/edge-feat.csv.gz       a line for each edge
split/NAME/{train,valid,test}.csv.gz                      node numbers
Of a set of graphs num-node-list and num-edge-list have a line for each graph, whose nodes are numbered from
0, raw/graph-label.csv.gz is there instead of node-label, and splits are numbers of graphs.
Files may also be unpacked (.csv), or arrays in place of texts (ogb_arrays.py). Edges are arcs from the
first node to the second, which count in both directions unless a case says otherwise (graph.neighbours).
"""

import os
from collections.abc import Callable, Iterator

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
from app.graphs.nodes.data import SPLITS, DenseFeatures, NodeTable, Splits
from app.graphs.nodes.text import text_features, text_integers, text_labels, text_values
from app.graphs.stream import Chunk, EdgeStream

FILES = {"train": "train", "val": "valid", "test": "test"}


def read_ogb(path: str, limits: Limits) -> EdgeStream:
    """The stream of a folder's graph."""
    if has_arrays(path):
        return read_arrays(path, limits, graph_name(path))
    source = _required(path, "raw/edge", limits)
    sizes = _nodes(path, limits)
    if len(sizes) > 1:
        return _read_set(path, limits, source, sizes)
    nodes = int(sizes[0])

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        for text, line in source.pieces():
            yield read_rows(source, text, line, Layout(2, 0, nodes - 1, comma=True))

    told = _edge_features(path, limits)
    return EdgeStream(graph_name(path), path, "ogb", nodes, 0, False, chunks, edge_features=told)


def _read_set(path: str, limits: Limits, source: Source, sizes: np.ndarray) -> EdgeStream:
    """The stream of graphs of so many nodes [graphs], whose edges stand one graph's after another's."""
    counts = _required(path, "raw/num-edge-list", limits)
    edges, first = text_integers(counts), np.cumsum(sizes) - sizes
    if len(edges) != len(sizes):
        raise counts.error(f"found {len(edges)} lines; {len(sizes)}, one for each graph, would be right")
    ends = np.cumsum(edges)

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        at = 0
        for text, line in source.pieces():
            u, v, _ = read_rows(source, text, line, Layout(2, comma=True))
            graph = np.searchsorted(ends, np.arange(at, at + len(u)), side="right")
            at += len(u)
            if at > ends[-1]:
                raise source.error(f"found more than the {ends[-1]} edges that num-edge-list states")
            wrong = np.flatnonzero(np.maximum(u, v) >= sizes[graph])
            if len(wrong):
                i, right = wrong[0], f"0..{sizes[graph[wrong[0]]] - 1} would be right"
                raise source.error(f"found node {max(u[i], v[i])} in graph {graph[i]}; {right}")
            yield u + first[graph], v + first[graph], None
        if at < ends[-1]:
            raise source.error(f"found {at} edges; {ends[-1]}, as num-edge-list states, would be right")

    return EdgeStream(
        graph_name(path), path, "ogb", int(sizes.sum()), 0, False, chunks,
        entries=2 * int(ends[-1]), sizes=sizes, edge_features=_edge_features(path, limits),
    )  # fmt: skip


def _edge_features(path: str, limits: Limits) -> Callable[[], DenseFeatures] | None:
    """What opens the rows of raw/edge-feat, one for each edge; None without."""
    source = _find(path, "raw/edge-feat", limits)
    return source and (lambda: text_features(source))


def read_table(path: str, limits: Limits, wanted: bool = True, values: bool = False) -> NodeTable:
    """Features, labels (with `values` numbers) and, where it is wanted, the only split of a folder."""
    sizes = np.array([node_count(path, limits)]) if has_arrays(path) else _nodes(path, limits)
    several = len(sizes) > 1
    folder = _only_split(path, limits) if wanted else None
    splits = read_split(folder, len(sizes) if several else int(sizes[0]), limits) if folder else None
    if has_arrays(path):
        return NodeTable(read_features(path, limits), read_labels(path, limits), splits)
    features = _find(path, "raw/node-feat", limits)
    labels = _find(path, f"raw/{'graph' if several else 'node'}-label", limits)
    read = text_values if values and several else text_labels
    return NodeTable(text_features(features) if features else None, read(labels) if labels else None, splits)


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


def _nodes(path: str, limits: Limits) -> np.ndarray:
    """[graphs] int64, the nodes of each graph."""
    source = _required(path, "raw/num-node-list", limits)
    counts = text_integers(source, MOST_NODES)
    if not len(counts):
        raise source.error("found no graphs; the number of nodes of one would be right")
    # Features and labels have a line for each node; without them most nodes have an edge.
    found = [_find(path, name, limits) for name in ("raw/edge", "raw/node-feat", "raw/node-label")]
    most = max(MOST_BARE, *(each.most_lines() for each in found if each is not None))
    if counts.sum() > most:
        raise source.error(f"states {counts.sum()} nodes; the files have room for {most} at most")
    return counts


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
