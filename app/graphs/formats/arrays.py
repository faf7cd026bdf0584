"""Graphs in .npz files: CSR arrays, edge arrays, SciPy sparse matrices, and sets of small graphs."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from app.graphs.formats.counted import MOST_NODES
from app.graphs.formats.npz import Column, Npz
from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.graph import Graph, build_rows, from_edges
from app.graphs.nodes.arrays import array_labels, array_values, dense_features
from app.graphs.stream import CHUNK_EDGES, Chunk, EdgeStream
from app.graphs.weights import kept_weights

LAYOUTS = "indptr and indices, adj_indptr and adj_indices, edges, edge_index, or row and col"
FEATURES = ("edge_feat", "edge_attr")  # of edges
LABELS = ("edge_labels", "edge_label")
SET_ARRAYS = ("nodes", "nnz", "indptr", "indices")


def read_npz(path: str, limits: Limits) -> EdgeStream:
    """The stream of one graph; CSR layouts give every stored entry, so usually both directions."""
    npz = Npz(Source(path, limits))
    if "nnz" in npz and "nodes" in npz:
        raise npz.error("holds a set of graphs; a file of one graph would be right")
    if "format" in npz:
        return _read_scipy(npz)
    for prefix in ("", "adj_"):
        if prefix + "indptr" in npz:
            return _read_csr(npz, prefix, _stated_nodes(npz))
    if "edges" in npz:
        pairs = npz.integers("edges", (None, 2))
        stream = _read_pairs(npz, pairs, pairs.shape[0], _stated_nodes(npz), interleaved=not pairs.fortran)
        return _with_features(npz, stream)
    if "edge_index" in npz:
        pairs, nodes = npz.integers("edge_index", (2, None)), _stated_nodes(npz)
        stream = _read_pairs(npz, pairs, pairs.shape[1], nodes, interleaved=pairs.fortran)
        return _with_features(npz, replace(stream, entries=pairs.shape[1]))
    if "row" in npz:
        return _read_coordinates(npz)
    names = ", ".join(list(npz.columns)[:8])
    raise npz.error(f"found arrays {shown(names)}; {LAYOUTS} would be right")


def _with_features(npz: Npz, stream: EdgeStream) -> EdgeStream:
    """The stream with the features and labels of edges that an archive has."""
    name, labels = (next((each for each in names if each in npz), None) for names in (FEATURES, LABELS))
    return replace(
        stream,
        edge_features=(lambda: dense_features(npz, name)) if name else None,
        edge_labels=(lambda values: (array_values if values else array_labels)(npz, labels))
        if labels
        else None,
    )


def _stated_nodes(npz: Npz) -> int | None:
    """The node count, from `shape` or `num_nodes`; None where neither is there."""
    name = "shape" if "shape" in npz else "num_nodes"
    if name not in npz:
        return None
    column = npz.integers(name, (2,) if name == "shape" else npz.columns[name].shape)
    counts = npz.wide(column, npz.whole(column)).tolist()
    if len(counts) not in (1, 2) or counts[0] != counts[-1] or counts[0] > MOST_NODES:
        raise npz.error(
            f"found {shown(str(counts))}; one node count, or two equal ones, would be right", name
        )
    return counts[0]


def _read_scipy(npz: Npz) -> EdgeStream:
    """The layout of scipy.sparse.save_npz."""
    column = npz.columns["format"]
    letters = npz.whole(column) if column.dtype.kind in "SU" and column.size == 1 else [b"?"]
    kind = letters[0].decode("ascii", "replace") if isinstance(letters[0], bytes) else str(letters[0])
    if kind not in ("csr", "csc", "coo"):
        raise npz.error(f"found a sparse matrix of format '{shown(kind)}'; csr, csc or coo would be right")
    if "shape" not in npz:
        raise npz.error("holds no array 'shape'; a file written by scipy.sparse.save_npz would be right")
    if kind == "coo":
        return _read_coordinates(npz)
    return _read_csr(npz, "", _stated_nodes(npz), by_columns=kind == "csc")


def _weights(npz: Npz, name: str, length: int) -> Column | None:
    """The weights, or None where there are none or they are bits."""
    column = npz.numbers(name, length) if name in npz else None
    return None if column is None or column.dtype.kind == "b" else column


def _weight_parts(npz: Npz, column: Column | None) -> Iterator[np.ndarray | None]:
    """float32 weights [<= CHUNK_EDGES] part by part, or None for ever."""
    while column is None:
        yield None
    for number, part in enumerate(npz.parts(column, CHUNK_EDGES)):
        narrow = kept_weights(
            part,
            lambda i, at=number * CHUNK_EDGES: f"{npz.source.where}: {column.name}[{at + i}]",
            npz.source.warnings,
        )
        if not np.isfinite(narrow).all():
            raise npz.error(
                "found a weight that is no finite 32-bit number; only such are right", column.name
            )
        yield narrow


def _read_csr(npz: Npz, prefix: str, stated: int | None, by_columns: bool = False) -> EdgeStream:
    """Compressed rows, or columns, whose entries go the other way."""
    indices = npz.integers(prefix + "indices", (None,))
    pointers = npz.integers(prefix + "indptr", (None if stated is None else stated + 1,))
    entries = indices.shape[0]
    nodes = pointers.shape[0] - 1
    if nodes < 0:
        raise npz.error("found no offsets; nodes + 1 of them would be right", pointers.name)
    weights = _weights(npz, prefix + "data", entries)

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        indptr = npz.wide(pointers, npz.whole(pointers))
        if indptr[0] != 0 or indptr[-1] != entries or (np.diff(indptr) < 0).any():
            raise npz.error(f"ascending offsets from 0 to {entries} would be right", pointers.name)
        at = 0
        for part, w in zip(npz.parts(indices, CHUNK_EDGES), _weight_parts(npz, weights)):
            v = _checked(npz, indices, part, nodes)
            u = np.searchsorted(indptr, np.arange(at, at + len(v)), side="right") - 1
            at += len(v)
            yield (v, u, w) if by_columns else (u, v, w)

    return replace(_stream(npz, nodes, weights is not None, chunks), entries=entries)


def _checked(npz: Npz, column: Column, part: np.ndarray, nodes: int | None) -> np.ndarray:
    """Node numbers [k] int64, all below `nodes` where that is known."""
    numbers = npz.wide(column, part)
    if nodes is not None and len(numbers) and numbers.max() >= nodes:
        raise npz.error(f"found node {numbers.max()}; 0..{nodes - 1} would be right", column.name)
    return numbers


def _read_coordinates(npz: Npz) -> EdgeStream:
    """Two arrays `row` and `col`, and perhaps `data`."""
    row = npz.integers("row", (None,))
    col = npz.integers("col", row.shape)
    nodes = _stated_nodes(npz)
    weights = _weights(npz, "data", row.shape[0])

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        both = zip(npz.parts(row, CHUNK_EDGES), npz.parts(col, CHUNK_EDGES), _weight_parts(npz, weights))
        for u, v, w in both:
            yield _checked(npz, row, u, nodes), _checked(npz, col, v, nodes), w

    return replace(_stream(npz, nodes, weights is not None, chunks), entries=row.shape[0])


def pairs_stream(npz: Npz, array: str, nodes: int, name: str, path: str, format: str) -> EdgeStream:
    """The stream of an array [2, m] of a graph of `nodes` nodes, named as given."""
    pairs = npz.integers(array, (2, None))
    stream = _read_pairs(npz, pairs, pairs.shape[1], nodes, interleaved=pairs.fortran)
    return replace(stream, name=name, path=path, format=format)


def _read_pairs(npz: Npz, pairs: Column, edges: int, nodes: int | None, interleaved: bool) -> EdgeStream:
    """One array of pairs, stored pair by pair (interleaved) or all first ends before all second ends."""
    weights = _weights(npz, "weights", edges)

    def ends() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if interleaved:
            for part in npz.parts(pairs, 2 * CHUNK_EDGES):
                yield part[0::2], part[1::2]
        else:
            yield from zip(
                npz.parts(pairs, CHUNK_EDGES, 0, edges), npz.parts(pairs, CHUNK_EDGES, edges, 2 * edges)
            )

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        for (u, v), w in zip(ends(), _weight_parts(npz, weights)):
            yield _checked(npz, pairs, u, nodes), _checked(npz, pairs, v, nodes), w

    return _stream(npz, nodes, weights is not None, chunks)


def _stream(npz: Npz, nodes: int | None, weighted: bool, chunks: object) -> EdgeStream:
    path = npz.source.path
    return EdgeStream(graph_name(path), path, "npz", nodes, 0, weighted, chunks, npz.source.warnings)


def open_graph_set(path: str, limits: Limits | None = None) -> tuple[list[Graph], list[int | None]]:
    """All graphs of a set file, named "<stem>-<i>", and the best known cover of each, None where not stated.

    The file holds nodes [g], nnz [g], and the CSR arrays of one graph after the other: indptr [sum of
    nodes + 1], indices [sum of nnz], each starting at 0; perhaps best_cover [g].
    """
    npz = Npz(Source(path, limits or Limits()))
    nodes, nnz, indptr, indices = (_set_array(npz, name) for name in SET_ARRAYS)
    if len(nodes) != len(nnz) or nodes.sum() + len(nodes) != len(indptr) or nnz.sum() != len(indices):
        sizes = f"{len(nodes)} and {len(nnz)} graphs, {len(indptr)} offsets, {len(indices)} neighbours"
        raise npz.error(f"found {sizes}; lengths that agree with nodes and nnz would be right")
    first_row = np.cumsum(nodes + 1) - (nodes + 1)
    first_entry = np.cumsum(nnz) - nnz
    graphs = [
        _one_of_set(npz, i, indptr[row : row + n + 1], indices[at : at + m])
        for i, (n, m, row, at) in enumerate(zip(nodes, nnz, first_row, first_entry))
    ]
    return graphs, _best_covers(npz, len(graphs))


def _set_array(npz: Npz, name: str) -> np.ndarray:
    column = npz.integers(name, (None,))
    return npz.wide(column, npz.whole(column))


def _one_of_set(npz: Npz, number: int, indptr: np.ndarray, indices: np.ndarray) -> Graph:
    """One graph, its rows checked: ascending offsets, known neighbours, symmetric, no loops or repeats."""
    n = len(indptr) - 1
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise npz.error(f"graph {number}: offsets from 0 up to {len(indices)} would be right", "indptr")
    if len(indices) and indices.max() >= n:
        raise npz.error(f"graph {number}: found node {indices.max()}; 0..{n - 1} would be right", "indices")
    rows = np.repeat(np.arange(n), np.diff(indptr))
    graph = from_edges(n, rows, indices, name=f"{graph_name(npz.source.path)}-{number}")
    # Without loops and repeats all entries stay; if symmetric, adding the other directions adds none.
    _, kept, _ = build_rows(rows, indices, None, 0, n)
    if len(kept) != len(indices) or not np.array_equal(kept, graph.indices):
        raise npz.error(f"graph {number}: symmetric rows without loops and repeats would be right", "indices")
    return graph


def _best_covers(npz: Npz, count: int) -> list[int | None]:
    if "best_cover" not in npz:
        return [None] * count
    column = npz.integers("best_cover", (count,))
    return [int(best) if best >= 0 else None for best in npz.whole(column)]
