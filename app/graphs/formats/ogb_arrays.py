"""Folders of the Open Graph Benchmark whose arrays are stored as such, as ogbn-papers100M has them.

raw/data.npz          edge_index [2, m], num_nodes_list [1], perhaps num_edges_list [1], node_feat [n, F],
                      edge_feat [m, K]
raw/node-label.npz    node_label [n], [n, 1] or [n, C], NaN for no label
Arrays are read some megabytes at a time. One may be as large as packed text: papers100M's features are 57 GB.
"""

import os
from dataclasses import replace

from app.graphs.formats.arrays import pairs_stream
from app.graphs.formats.counted import MOST_NODES
from app.graphs.formats.npz import Npz
from app.graphs.formats.source import Limits, Source
from app.graphs.nodes.arrays import array_labels, dense_features
from app.graphs.nodes.data import DenseFeatures, Labels
from app.graphs.stream import EdgeStream

DATA, LABELS = "raw/data.npz", "raw/node-label.npz"
EDGES, NODES, EDGE_COUNT, FEATURES, LABEL, EDGE_FEATURES = (
    "edge_index", "num_nodes_list", "num_edges_list", "node_feat", "node_label", "edge_feat"
)  # fmt: skip
MOST_BARE = 1 << 20  # nodes that a folder may state whatever its files hold


def has_arrays(path: str) -> bool:
    """Whether a folder is of this kind."""
    return os.path.isfile(os.path.join(path, DATA))


def read_arrays(path: str, limits: Limits, name: str) -> EdgeStream:
    """The stream of a folder's graph."""
    npz = _open(path, DATA, limits)
    pairs = npz.integers(EDGES, (2, None))
    stated = _count(npz, EDGE_COUNT) if EDGE_COUNT in npz else pairs.shape[1]
    if stated != pairs.shape[1]:
        raise npz.error(
            f"found {pairs.shape[1]} edges; {stated}, as {EDGE_COUNT} states, would be right", EDGES
        )
    stream = pairs_stream(npz, EDGES, node_count(path, limits), name, path, "ogb")
    told = (lambda: dense_features(npz, EDGE_FEATURES)) if EDGE_FEATURES in npz else None
    return replace(stream, edge_features=told)


def node_count(path: str, limits: Limits) -> int:
    """The number of nodes of the only graph."""
    npz = _open(path, DATA, limits)
    nodes = _count(npz, NODES)
    # Features and labels have a row for each node; without them most nodes have an edge.
    columns = [npz.columns[FEATURES].shape[:1]] if FEATURES in npz else []
    columns += [(2 * npz.integers(EDGES, (2, None)).shape[1],)]
    labels = _open(path, LABELS, limits) if os.path.isfile(os.path.join(path, LABELS)) else None
    if labels is not None and LABEL in labels:
        columns.append(labels.columns[LABEL].shape[:1])
    most = max(MOST_BARE, *(count for shape in columns for count in shape))
    if nodes > most:
        raise npz.error(f"states {nodes} nodes; the files have room for {most} at most", NODES)
    return nodes


def read_features(path: str, limits: Limits) -> DenseFeatures | None:
    """The features; None without any."""
    npz = _open(path, DATA, limits)
    return dense_features(npz, FEATURES) if FEATURES in npz else None


def read_labels(path: str, limits: Limits) -> Labels | None:
    """The labels; None without any."""
    if not os.path.isfile(os.path.join(path, LABELS)):
        return None
    npz = _open(path, LABELS, limits)
    if LABEL not in npz:
        raise npz.error(f"holds no array '{LABEL}'; that one would be right")
    return array_labels(npz, LABEL, unlabelled=True)


def _count(npz: Npz, name: str) -> int:
    """The number in an array that has one for each graph."""
    column = npz.integers(name, (None,))
    if column.size != 1:
        raise npz.error(f"found {column.size} graphs; one number, of one graph, would be right", name)
    count = int(npz.wide(column, npz.whole(column))[0])
    if count > MOST_NODES:
        raise npz.error(f"found {count}; at most {MOST_NODES} would be right", name)
    return count


def _open(path: str, name: str, limits: Limits) -> Npz:
    """An archive of a folder."""
    most = max(limits.npz, limits.decompressed)
    return Npz(Source(os.path.join(path, name), Limits(limits.decompressed, most)))
