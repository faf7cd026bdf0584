"""Node weights of a file of their own, to the owners of the rows."""

from dataclasses import replace

import numpy as np

from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import GraphError
from app.graphs.formats.source import Limits
from app.graphs.graph import Graph
from app.graphs.nodes.weights import read_node_weights
from app.partition.ids import ids_on_first
from app.partition.rows import RowPartition


def weigh(
    group: Group, graph: Graph, rows: RowPartition, path: str, limits: Limits, count: int
) -> tuple[Graph, tuple[str, ...]]:
    """The graph with the weights of a file, which rank 0 reads, and on rank 0 what is lost of them.

    graph     rows in the file's order, without node weights
    count     of the first nodes, which have weights; the others' are 0
    Ranks     all call; a rank holds ids and weights of its own rows, rank 0 of all
    """
    if group.max_integer(int(graph.node_weights is not None)):
        raise GraphError(f"graph.node_weights: {graph.name} has node weights of its own; leave the key out")
    counts = rows.row_counts()
    first, none = group.rank == 0, [0] * group.size
    ids = ids_on_first(group, graph, rows)
    values, warnings = np.empty(0, np.float32), []
    with raise_together(group, "reading the node weights"):
        if first:
            values, warnings = read_node_weights(path, limits, ids[:count], graph.name)
            values = np.append(values, np.zeros(graph.n - count, dtype=np.float32))
    own_weights = group.exchange_host(values, counts if first else none, [graph.hi - graph.lo, *none[1:]])
    return replace(graph, node_weights=own_weights), tuple(warnings)
