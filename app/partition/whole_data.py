"""What is known of the nodes and edges of a graph, of all its rows on every rank (graphs: whole.py)."""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array, issparse

from app.comm.group import Group
from app.graphs.edge_data import EdgeData, EdgeRows
from app.graphs.nodes.data import SPLITS, NodeData
from app.graphs.nodes.of_edges import ARRAYS, EdgeLabels
from app.partition.rows import RowPartition


def whole_nodes(group: Group, data: NodeData, rows: RowPartition) -> NodeData:
    """What is known of all nodes, by the padded rows of the whole graph.

    rows    whose own rows the data have
    Ranks   all call; identical on all
    """
    sizes = np.diff(rows.offsets).tolist()
    found = {name: _gathered(group, getattr(data, name), sizes) for name in ("labelled", *SPLITS, "numbers")}
    if data.rows is None:
        found["labels"] = _gathered(group, data.labels, sizes)
    else:  # labels of graphs alone
        held = _sizes(group, data.rows)
        found["labels"] = _gathered(group, data.labels, held)
        found["rows"] = _gathered(group, data.rows + rows.offsets[group.rank], held)
    if issparse(data.features):
        found["features"] = _whole_entries(group, data.features, sizes)
    else:
        found["features"] = _gathered(group, data.features, sizes)
    if data.edges is not None:
        heard = _whole_edge_rows(group, data.edges.heard, sizes)
        hearing = _whole_edge_rows(group, data.edges.hearing, sizes) if data.edges.directed else heard
        found["edges"] = EdgeData(heard, hearing, data.edges.columns)
    return replace(data, **found)


def whole_edge_labels(group: Group, labels: EdgeLabels, rows: RowPartition) -> EdgeLabels:
    """What all edges are, by the entries of the padded rows of the whole graph. Ranks: all call; identical on
    all."""
    held = _sizes(group, labels.first)
    arrays = {name: _gathered(group, getattr(labels.about, name), held) for name in ARRAYS}
    counts = _gathered(group, labels.counts, np.diff(rows.offsets).tolist())
    return EdgeLabels(counts, _gathered(group, labels.first, held), replace(labels.about, **arrays))


def _gathered(group: Group, own: np.ndarray | None, sizes: list[int]) -> np.ndarray | None:
    """Rows of all ranks, of which there are so many on each; None of none. Ranks: all call."""
    return None if own is None else group.gather_host(np.ascontiguousarray(own), sizes)


def _sizes(group: Group, own: np.ndarray) -> list[int]:
    """The rows that each rank has. Ranks: all call."""
    return group.gather_integers(np.array([len(own)]))[:, 0].tolist()


def _whole_entries(group: Group, X_own: csr_array, sizes: list[int]) -> csr_array:
    """[n, F] from the rows of all ranks. Ranks: all call."""
    counts, held = _gathered(group, np.diff(X_own.indptr), sizes), _sizes(group, X_own.indices)
    columns, values = (_gathered(group, each, held) for each in (X_own.indices, X_own.data))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(X_own.indptr.dtype)
    return csr_array((values, columns, indptr), shape=(len(counts), X_own.shape[1]))


def _whole_edge_rows(group: Group, own: EdgeRows, sizes: list[int]) -> EdgeRows:
    """The rows of numbers of all stored entries. Ranks: all call."""
    return EdgeRows(
        _gathered(group, own.counts, sizes), _gathered(group, own.values, _sizes(group, own.values))
    )
