"""What is known of a set of graphs as a table of the rows that they have side by side (graphs/members.py).

Features have a row for each node, labels and splits one for each graph; spread out, features stand in the
rows of nodes, labels and splits in those of graphs; of labels there are no other rows.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from app.graphs.members import Members
from app.graphs.nodes.data import (
    DenseFeatures,
    Labels,
    NodeTable,
    SparseFeatures,
    Splits,
    check_disjoint,
    rows_per_piece,
)


def spread_out(table: NodeTable, members: Members, name: str) -> NodeTable:
    """A table of nodes and graphs as one of rows. Raises GraphError where counts are others."""
    for part, count, what in (
        (table.features, members.nodes, "node"),
        (table.labels, members.count, "graph"),
        (table.splits, members.count, "graph"),
    ):
        if part is not None and part.n != count:
            right = f"{count}, one for each {what} of {name}, would be right"
            raise part.refuse(f"found {part.n} rows; {right}")
    if table.splits is not None:
        check_disjoint(table.splits, "graph", lambda i: called(members, members.own_rows[i]))
    return NodeTable(
        _features(table.features, members),
        None if table.labels is None else _labels(table.labels, members),
        None if table.splits is None else _splits(table.splits, members),
    )


def _features(
    features: DenseFeatures | SparseFeatures | None, members: Members
) -> DenseFeatures | SparseFeatures | None:
    """Rows of nothing for the graphs themselves."""
    if isinstance(features, SparseFeatures):
        counts = np.zeros(int(members.starts[-1]), dtype=np.int64)
        counts[members.node_rows] = np.diff(features.indptr)
        return replace(features, n=len(counts), indptr=np.concatenate([[0], np.cumsum(counts)]))
    if features is None:
        return None
    none, step = members.count, rows_per_piece(4 * features.width)

    def parts() -> Iterator[np.ndarray]:
        zeros = (np.zeros((min(step, none - at), features.width), np.float32) for at in range(0, none, step))
        return chain(features.parts(), zeros)

    order = np.concatenate([members.node_rows, members.own_rows])
    return replace(features, n=features.n + none, parts=parts, order=order)


def _labels(labels: Labels, members: Members) -> Labels:
    """The rows of the graphs."""
    order = members.own_rows if labels.order is None else members.own_rows[labels.order]
    return replace(labels, order=order)


def _splits(splits: Splits, members: Members) -> Splits:
    """No set for the nodes."""
    flags = np.zeros(int(members.starts[-1]), dtype=np.uint8)
    flags[members.own_rows] = splits.flags
    return replace(splits, flags=flags)


def called(members: Members | None, row: int) -> str:
    """A node or a graph by the number of its row, for a message."""
    if members is None:
        return f"node {row}"
    at = int(members.graph_of(row, row + 1)[0])
    return f"graph {members.names[at] if members.names else members.first_id + at}"
