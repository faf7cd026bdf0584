"""Sets of graphs that a caller of the Python interface hands in, of which each one has a label."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from app.api.given import (
    check_given,
    digest_of_features,
    digest_of_names,
    digests_of_stream,
    refuse_beside_file,
    refuse_file_of_edges,
    setting,
)
from app.comm.guard import raise_together
from app.errors import GraphError
from app.gnn.saved import ARCHITECTURE
from app.graphs.formats.frames import is_frame
from app.graphs.formats.memory import stream_of_object
from app.graphs.formats.memory_edges import edge_rows, features_of_rows, names_in, without_edge_features
from app.graphs.members import with_own_rows
from app.graphs.nodes.memory import rows_of_nodes
from app.graphs.union import unite
from app.log import warn_caller
from app.partition.load import read_paths
from app.partition.loaded import Loaded
from app.partition.streams import load_stream
from app.tasks.context import Context

# What a set of graphs is learned by unless settings say otherwise: the table [gnn] of inputs/graphs.toml.
RECIPE = {
    "gnn.level": "graph", "gnn.model": "gin_norm", "gnn.depth": 3, "gnn.hidden": 32, "gnn.dropout": 0.0,
    "gnn.input_dropout": 0.0, "gnn.feature_rows": "as_given", "gnn.weight_decay": 0.0,
}  # fmt: skip
BY_LAYERS = ("model", "depth", "hidden")  # of the recipe, which gnn.layers says of each layer


def recipe_for(settings: Any, weights: Any) -> dict[str, Any]:
    """The recipe without the keys that gnn.layers of the settings, or given weights, say otherwise."""
    begun = weights is not None or setting(settings, "gnn", "weights")
    told = BY_LAYERS if setting(settings, "gnn", "layers") else ()
    told = [key for key in ARCHITECTURE if key != "level"] if begun else told
    return {key: value for key, value in RECIPE.items() if key.removeprefix("gnn.") not in told}


@dataclass(frozen=True)
class GivenSet:
    """Graphs one after the other, and what they are called; names empty: by their places."""

    graphs: list[Any]
    names: list[Any]

    @property
    def files(self) -> bool:
        """Whether they are names of files."""
        return all(isinstance(each, str | os.PathLike) for each in self.graphs)

    @property
    def directed(self) -> bool:
        """Whether some are directed graphs of NetworkX."""
        return any(hasattr(each, "is_directed") and each.is_directed() for each in self.graphs)


def given_set(graphs: Any, wanted: bool) -> GivenSet | None:
    """The graphs of a list, a mapping of names to graphs, a column of pandas (by its index), an iterator or
    an array [graphs, n, n]; None of one graph.

    wanted   one graph, too, is a set, but for a file, which may hold several
    """
    if isinstance(graphs, Iterator) or (isinstance(graphs, np.ndarray) and graphs.dtype == object):
        graphs = list(graphs)
    if _is_column(graphs):
        graphs = dict(zip(graphs.index, graphs, strict=True)) if graphs.index.is_unique else list(graphs)
    if isinstance(graphs, Mapping) and not _is_graph(graphs):
        return GivenSet(list(graphs.values()), list(graphs)) if _are_graphs(graphs.values(), wanted) else None
    if isinstance(graphs, np.ndarray) and graphs.ndim == 3:
        return GivenSet(list(graphs), [])
    if isinstance(graphs, list | tuple) and _are_graphs(graphs, wanted):
        return GivenSet(list(graphs), [])
    if wanted and not isinstance(graphs, str | os.PathLike):
        return GivenSet([graphs], [])
    return None


def _are_graphs(given: Any, wanted: bool) -> bool:
    """Whether some of these are graphs, or none where graphs are wanted."""
    return any(map(_is_graph, given)) if len(given) else wanted


def _is_graph(given: Any) -> bool:
    """Whether this is a graph by itself, as no edge of a list is."""
    if isinstance(given, str | os.PathLike) or (hasattr(given, "adj") and hasattr(given, "edges")):
        return True
    return (
        np.ndim(given) == 2 if isinstance(given, np.ndarray) else hasattr(given, "tocoo") or is_frame(given)
    )


def _is_column(given: Any) -> bool:
    """Whether this is a column of pandas."""
    return (
        hasattr(given, "to_numpy") and hasattr(getattr(given, "index", None), "is_unique") and given.ndim == 1
    )


def loaded_set(
    context: Context, given: GivenSet, edge_features: Any = None
) -> tuple[Loaded, list[list[Any] | None]]:
    """The graphs side by side on row partitions, and by graph the labels of its nodes, or None.

    edge_features   names for all graphs, or an item for each: see formats/memory_edges.py
    What is lost of them is a Python warning. Ranks: all call
    """
    group, case = context.group, context.case
    names = [str(each) for each in given.names]
    with raise_together(group, "reading the graphs"):
        if not given.graphs:
            raise GraphError("graph: found a set without graphs; at least one would be right")
    if given.files:
        with raise_together(group, "reading the graphs"):
            refuse_beside_file(edge_features)
        check_given(group, {"graphs": f"{len(given.graphs)} files"})
        paths = [os.fspath(each) for each in given.graphs]
        item, labels = read_paths(group, case.graph, paths, case, tuple(names)), [None] * len(paths)
    else:
        with raise_together(group, "reading the graphs"):
            refuse_file_of_edges(case)
            features = _edge_features(edge_features, given)
            streams, labels = zip(*map(_stream, given.graphs, range(len(given.graphs)), features))
            sizes = np.array([each.nodes for each in streams])
            source = unite(list(streams), "graphs", case.graph.neighbours != "both")
            source = with_own_rows(replace(source, name="graphs", sizes=sizes, graph_names=tuple(names)))
            called = [*names, *chain.from_iterable(each or () for each in labels)]
            found = digests_of_stream(source, None) if group.size > 1 else {}
            found["names"] = digest_of_names(called)
            if group.size > 1:
                found["edge_features"] = " ".join(map(digest_of_features, streams))
        check_given(group, found)
        item = load_stream(group, source, case.graph, case)
    for text in item.warnings:
        warn_caller(text)
    return item, list(labels)


def _edge_features(edge_features: Any, given: GivenSet) -> list[Any]:
    """Those of each graph, from an item for each, a mapping of names to them, or names for all.

    Raises GraphError
    """
    count = len(given.graphs)
    if edge_features is None or names_in(edge_features):
        return [edge_features] * count
    if isinstance(edge_features, Mapping):
        if set(edge_features) != set(given.names) or not given.names:
            right = "an item for each graph, by its name, would be right"
            raise GraphError(f"edge_features: found a mapping of {len(edge_features)}; {right}")
        return [edge_features[name] for name in given.names]
    if not isinstance(edge_features, list | tuple) or len(edge_features) != count:
        found = f"{len(edge_features)} items" if hasattr(edge_features, "__len__") else type(edge_features)
        right = f"{count}, one for each graph, or names for all, would be right"
        raise GraphError(f"edge_features: found {found}; {right}")
    return list(edge_features)


def _stream(graph: Any, number: int, edge_features: Any) -> tuple[Any, list[Any] | None]:
    if isinstance(graph, str | os.PathLike):
        right = "files alone, or none, would be right"
        raise GraphError(f"graph {number} (from 0): found the name of a file among graphs in memory; {right}")
    try:
        stream, labels = stream_of_object(without_edge_features(graph, edge_features))
        if edge_features is not None:
            rows = edge_rows(graph, edge_features, stream)
            stream.edge_features = partial(features_of_rows, rows, edge_features)
        return stream, labels
    except GraphError as error:
        raise GraphError(f"graph {number} (from 0): {error}") from None


def features_of_set(features: Any, given: GivenSet, labels: list[list[Any] | None], sizes: np.ndarray) -> Any:
    """Rows of all nodes, graph after graph, from those of each graph; rows of all pass. Raises GraphError.

    features   one item for each graph, or a mapping of names to them: each as `classify` takes them of one
               graph; or the rows of the nodes of all graphs, or None
    labels     of the nodes of each graph     sizes   [graphs] nodes of each
    """
    if isinstance(features, Mapping):
        lacking = [name for name in given.names if name not in features]
        if lacking or len(features) != len(given.names):
            right = "an item for each graph, by its name, would be right"
            raise GraphError(f"features: found a mapping of {len(features)}; {right}")
        features = [features[name] for name in given.names]
    if isinstance(features, Iterator) or (isinstance(features, np.ndarray) and features.ndim == 3):
        features = list(features)
    if not isinstance(features, list | tuple) or not any(map(_has_rows, features)):
        return features
    if len(features) != len(sizes):
        raise GraphError(
            f"features: found {len(features)} items; {len(sizes)}, one for each graph, would be right"
        )
    parts = []
    for i, (rows, names, n) in enumerate(zip(features, labels, sizes.tolist())):
        part = _part(rows, names, n, i)
        if part.ndim != 2 or (len(parts) and part.shape[1] != parts[0].shape[1]) or part.shape[0] != n:
            width = parts[0].shape[1] if parts else "F"
            found = f"found shape {part.shape} for graph {i} (from 0)"
            raise GraphError(f"features: {found}; [{n}, {width}] would be right")
        parts.append(part)
    return vstack(parts, format="csr") if any(map(issparse, parts)) else np.concatenate(parts)


def _part(rows: Any, names: list[Any] | None, n: int, number: int) -> Any:
    """The features of one graph as an array or a sparse matrix. Raises GraphError, which says of which."""
    try:
        part = rows_of_nodes(rows, names, n)
        return part if issparse(part) else np.asarray(part)
    except GraphError as error:
        raise GraphError(f"graph {number} (from 0): {error}") from None
    except ValueError:
        found = f"found rows of different lengths for graph {number} (from 0)"
        raise GraphError(f"features: {found}; an array would be right") from None


def _has_rows(given: Any) -> bool:
    """Whether this is what is known of several nodes: no row of numbers."""
    if issparse(given) or isinstance(given, Mapping) or hasattr(given, "to_numpy"):
        return True
    return np.ndim(given) >= 2
