"""Folders of graphs for inductive node classification, as DGL has PPI (Zitnik and Leskovec 2017).

For each of train, valid and test: MODE_graph.json (NetworkX's node-link form), MODE_feats.npy [n, F],
MODE_labels.npy [n, C]. All become one graph without edges between them, whose masks are the modes: nothing of
a held-back graph can reach a node that is trained on, and a mean over training nodes stays what it was. With
the path of one MODE_graph.json in place of the folder's it is the graph of that mode alone.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from app.graphs.formats.npy import NAME, Npy
from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.nodes.arrays import array_labels, dense_features
from app.graphs.nodes.data import SPLITS, NodeTable, Splits
from app.graphs.stream import Chunk, EdgeStream
from app.graphs.union import unite, unite_tables

MODES = {"train": "train", "valid": "val", "test": "test"}
GRAPH = "_graph.json"  # the end of a graph's name
LINKS = "a node-link graph with whole numbers 0..n-1 as ids would be right"


def read_ppi(path: str, limits: Limits) -> EdgeStream:
    """The stream of all graphs of a folder side by side, or of one of them."""
    folder, modes = _modes(path, limits)
    return unite([_graph(folder, mode, limits) for mode in modes], graph_name(folder))


def read_table(path: str, limits: Limits, wanted: bool = True, values: bool = False) -> NodeTable:
    """Features and labels of all graphs, or of one of them, and the splits that the modes are.

    wanted   False: splits may be left out; they take no reading
    """
    folder, modes = _modes(path, limits)
    return unite_tables([_table(folder, mode, limits) for mode in modes])


def _modes(path: str, limits: Limits) -> tuple[str, list[str]]:
    """The folder of a path, and the modes that it names."""
    if os.path.isdir(path):
        return path, list(MODES)
    folder, name = os.path.split(path)
    mode = name.removesuffix(GRAPH)
    if mode not in MODES or not name.endswith(GRAPH):
        right = ", ".join(each + GRAPH for each in MODES)
        raise Source(path, limits).error(
            f"is no graph of PPI; one of {right}, or their folder, would be right"
        )
    return folder, [mode]


def _table(path: str, mode: str, limits: Limits) -> NodeTable:
    features = dense_features(_array(path, f"{mode}_feats.npy", limits), NAME)
    labels = array_labels(_array(path, f"{mode}_labels.npy", limits), NAME)
    flags = np.full(features.n, SPLITS[MODES[mode]], dtype=np.uint8)
    if labels.n != features.n:
        raise labels.refuse(f"found {labels.n} rows; {features.n}, as the features have, would be right")
    return NodeTable(features, labels, Splits(flags, features.refuse))


def _array(path: str, name: str, limits: Limits) -> Npy:
    return Npy(Source(os.path.join(path, name), limits))


def _graph(path: str, mode: str, limits: Limits) -> EdgeStream:
    """The graph of one mode; its rows are those of the features."""
    nodes = _array(path, f"{mode}_feats.npy", limits).columns[NAME].shape[0]
    source = Source(os.path.join(path, mode + GRAPH), limits)
    source.check()

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        ends = _links(source, nodes)
        yield ends[:, 0], ends[:, 1], None

    name = f"{graph_name(path)}-{mode}"
    return EdgeStream(name, source.path, "ppi", nodes, 0, False, chunks, undirected=True)


def _links(source: Source, nodes: int) -> np.ndarray:
    """[m, 2] int64, the ends of all links. The text is whole in memory while it is parsed."""
    try:
        data: Any = json.loads(b"".join(source.blocks()))
    except (ValueError, RecursionError) as error:
        raise source.error(f"is no JSON: {shown(str(error))}; {LINKS}") from None
    links = data.get("links", data.get("edges")) if isinstance(data, dict) else None
    listed = data.get("nodes") if isinstance(data, dict) else None
    if not isinstance(links, list) or not isinstance(listed, list):
        raise source.error(f"found no lists of nodes and links; {LINKS}")
    if len(listed) != nodes:
        raise source.error(f"found {len(listed)} nodes; {nodes}, as the features have, would be right")
    ends = [_ends(source, at, link, nodes) for at, link in enumerate(links)]
    return np.array(ends, dtype=np.int64).reshape(-1, 2)


def _ends(source: Source, at: int, link: Any, nodes: int) -> tuple[int, int]:
    """Both ends of one link."""
    ends = (link.get("source"), link.get("target")) if isinstance(link, dict) else (None, None)
    for end in ends:
        if type(end) is not int or not 0 <= end < nodes:
            raise source.error(f"found end {shown(repr(end))} of link {at}; 0..{nodes - 1} would be right")
    return ends
