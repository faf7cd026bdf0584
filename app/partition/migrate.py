"""Moving the rows of a graph from one partition to another: contiguous ranges, one exchange per array."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from app.comm.group import Group
from app.errors import NumericsError
from app.graphs.edge_data import EdgeData, EdgeRows
from app.graphs.graph import Graph
from app.graphs.nodes.data import SPLITS, NodeData
from app.graphs.nodes.of_edges import ARRAYS, EdgeLabels
from app.partition.rows import RowPartition


def move_rows(group: Group, graph: Graph, old: RowPartition, new: RowPartition) -> Graph:
    """The same graph with this rank's rows of another partition. Ranks: all call."""
    if np.array_equal(old.offsets, new.offsets):
        return graph
    lo, hi = new.range_of(group.rank)
    out = _overlaps(old.range_of(group.rank), new, group.size)
    into = group.exchange_counts([end - start for start, end in out])
    rows = [end - start for start, end in out]
    starts = [graph.indptr[start - graph.lo] if end > start else 0 for start, end in out]
    ends = [graph.indptr[end - graph.lo] if end > start else 0 for start, end in out]
    entries = [int(b - a) for a, b in zip(starts, ends)]
    entries_in = group.exchange_counts(entries)

    def per_row(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else group.exchange_host(values, rows, into)

    def per_entry(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else group.exchange_host(values, entries, entries_in)

    degrees = per_row(graph.degrees())
    return replace(
        graph, lo=lo, hi=hi, indptr=np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64),
        indices=per_entry(graph.indices), weights=per_entry(graph.weights), ids=per_row(graph.ids),
        node_weights=per_row(graph.node_weights), arcs=per_entry(graph.arcs),
        transpose_weights=per_entry(graph.transpose_weights), loops=per_row(graph.loops),
    )  # fmt: skip


def move_arrays(
    group: Group, arrays: dict[str, Any], old: RowPartition, new: RowPartition, padded: bool = True
) -> dict[str, Any]:
    """Arrays that have one row for each row of this rank, with its rows of another partition.

    arrays   by name, host or device arrays [rows of this rank, ...], row-major; the same names on all ranks
    padded   True: rows as `RowPartition.offsets` counts them, to a multiple of 8 (arrays named _own);
             False: the real rows alone (features and labels of a Graph)
    returns  by the same names, in the same place
    Ranks    all call (one exchange for each array, in the order of names)
    """
    if padded:
        held, ranges = _padded_range(old, group.rank), [_padded_range(new, r) for r in range(group.size)]
    else:
        held, ranges = old.range_of(group.rank), [new.range_of(r) for r in range(group.size)]
    out = [end - start for start, end in _overlap(held, ranges)]
    into = group.exchange_counts(out)
    moved = {}
    for name in sorted(arrays):
        array = arrays[name]
        if array.shape[0] != held[1] - held[0]:
            raise NumericsError(f"moving rows: {name} has {array.shape[0]} rows, not {held[1] - held[0]}")
        exchange = group.exchange_host if isinstance(array, np.ndarray) else group.exchange_rows
        moved[name] = exchange(array, out, into)
    return moved


def move_nodes(group: Group, data: NodeData, old: RowPartition, new: RowPartition) -> NodeData:
    """What is known of the nodes, with this rank's rows of another partition. Ranks: all call."""
    arrays = {name: getattr(data, name) for name in ("labelled", *SPLITS)}
    if data.labels is not None and data.rows is None:
        arrays["labels"] = data.labels
    if data.numbers is not None:
        arrays["numbers"] = data.numbers
    if isinstance(data.features, np.ndarray):
        arrays["features"] = data.features
    moved = move_arrays(group, arrays, old, new)
    if issparse(data.features):
        moved["features"] = move_entries(group, data.features, old, new)
    if data.rows is not None:
        moved |= _move_some(group, data.labels, data.rows, old, new)
    if data.edges is not None:
        moved["edges"] = move_edges(group, data.edges, old, new)
    return replace(data, **moved)


def _move_some(
    group: Group, labels: np.ndarray, rows: np.ndarray, old: RowPartition, new: RowPartition
) -> dict[str, np.ndarray]:
    """Labels [k, ...] of some own rows [k], with those of another partition, and these. Ranks: all call."""
    held, ranges = _padded_range(old, group.rank), [_padded_range(new, r) for r in range(group.size)]
    out = [
        int(np.diff(np.searchsorted(rows, np.array(part) - held[0]))[0]) for part in _overlap(held, ranges)
    ]
    into = group.exchange_counts(out)
    found, numbers = (group.exchange_host(each, out, into) for each in (labels, rows + held[0]))
    return {"labels": found, "rows": numbers - ranges[group.rank][0]}


def move_edges(group: Group, edges: EdgeData, old: RowPartition, new: RowPartition) -> EdgeData:
    """What is known of the edges, with this rank's padded rows of another partition. Ranks: all call."""
    heard = _move_edge_rows(group, edges.heard, old, new)
    hearing = _move_edge_rows(group, edges.hearing, old, new) if edges.directed else heard
    return EdgeData(heard, hearing, edges.columns)


def _move_edge_rows(group: Group, own: EdgeRows, old: RowPartition, new: RowPartition) -> EdgeRows:
    counts = move_arrays(group, {"counts": own.counts}, old, new)["counts"]
    held, ranges = _padded_range(old, group.rank), [_padded_range(new, r) for r in range(group.size)]
    starts, first = np.concatenate([[0], np.cumsum(own.counts)]), held[0]
    out = [int(starts[end - first] - starts[start - first]) for start, end in _overlap(held, ranges)]
    return EdgeRows(counts, group.exchange_host(own.values, out, group.exchange_counts(out)))


def move_edge_labels(group: Group, labels: EdgeLabels, old: RowPartition, new: RowPartition) -> EdgeLabels:
    """What edges are, with this rank's padded rows of another partition. Ranks: all call."""

    def moved(values: np.ndarray) -> np.ndarray:
        return _move_edge_rows(group, EdgeRows(labels.counts, values), old, new).values

    about = labels.about
    arrays = {name: getattr(about, name) for name in ARRAYS}
    found = {name: None if each is None else moved(each) for name, each in arrays.items()}
    counts = move_arrays(group, {"counts": labels.counts}, old, new)["counts"]
    return EdgeLabels(counts, moved(labels.first), replace(about, **found))


def move_entries(group: Group, X_own: csr_array, old: RowPartition, new: RowPartition) -> csr_array:
    """A host CSR matrix [n_own, F] with this rank's padded rows of another partition. Ranks: all call."""
    counts = move_arrays(group, {"counts": np.diff(X_own.indptr)}, old, new)["counts"]
    held, ranges = _padded_range(old, group.rank), [_padded_range(new, r) for r in range(group.size)]
    indptr, first = X_own.indptr, held[0]
    out = [int(indptr[end - first] - indptr[start - first]) for start, end in _overlap(held, ranges)]
    into = group.exchange_counts(out)
    columns, values = (group.exchange_host(each, out, into) for each in (X_own.indices, X_own.data))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(indptr.dtype)
    return csr_array((values, columns, indptr), shape=(len(counts), X_own.shape[1]))


def _padded_range(rows: RowPartition, rank: int) -> tuple[int, int]:
    return int(rows.offsets[rank]), int(rows.offsets[rank + 1])


def _overlaps(held: tuple[int, int], new: RowPartition, ranks: int) -> list[tuple[int, int]]:
    """The part of the held rows that each rank owns in the new partition; ascending, empty parts allowed."""
    return _overlap(held, [new.range_of(rank) for rank in range(ranks)])


def _overlap(held: tuple[int, int], ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The part of the held rows in each of consecutive ranges; ascending, empty parts allowed."""
    parts = []
    for lo, hi in ranges:
        start = min(max(lo, held[0]), held[1])
        parts.append((start, max(start, min(hi, held[1]))))
    return parts
