"""A row block with its rows where another partition wants them."""

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph, index_type
from app.partition.migrate import move_rows
from app.partition.rows import RowPartition
from app.sparse.rowblock import RowBlock


def graph_of(block: RowBlock) -> Graph:
    """The held rows as a Graph again, with global columns: those of the graph may have been let go of."""
    counts, columns = block.global_rows(np.arange(block.n_real))
    weights, arcs, transpose_weights = block.extended_rows(np.arange(block.n_real))[2], None, None
    if weights is None and block.weighted:  # this rank's happen to be one
        weights = np.ones(len(columns), dtype=np.float32)
    if block.directed:
        arcs, weights, transpose_weights = block.arcs_of(np.arange(block.n_real))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Graph(
        block.name, block.n, min(block.lo, block.n), min(block.lo, block.n) + block.n_real, indptr,
        columns.astype(index_type(block.n)), block.edges, weights, arcs=arcs,
        transpose_weights=transpose_weights,
    )  # fmt: skip


def repartition(group: Group, block: RowBlock, new: RowPartition) -> RowBlock:
    """The same matrix with this rank's rows of another partition.

    new      over the same blocks or others, the same on all ranks
    returns  a block that exchanges as this one was asked to; what others kept in this one is not in it
    Ranks    all call
    """
    graph = move_rows(group, graph_of(block), block.rows, new)
    return RowBlock(group, graph, new, block.exchange, block.width, block.metric)
