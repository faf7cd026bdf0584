"""The ids of all nodes: on every rank, and on rank 0, which reads the files that name them."""

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.partition.rows import RowPartition


def ids_everywhere(group: Group, graph: Graph, rows: RowPartition) -> np.ndarray:
    """[n] int64 or names, the file's ids of all nodes. Ranks: all call."""
    return group.gather_host(graph.held_ids(), rows.row_counts())


def ids_on_first(
    group: Group, graph: Graph, rows: RowPartition, order_all: np.ndarray | None = None
) -> np.ndarray:
    """[n] int64 or names on rank 0, the file's ids in the order of the rows before they were ordered.

    order_all   [n] the old number of each row; None: they are as they were
    returns     elsewhere none
    Ranks       all call
    """
    own, none = np.ascontiguousarray(graph.held_ids()), [0] * group.size
    into = rows.row_counts() if group.rank == 0 else none
    found = group.exchange_host(own, [len(own), *none[1:]], into)
    if order_all is None or group.rank > 0:
        return found
    ids = np.empty_like(found)
    ids[order_all] = found
    return ids
