"""The check of feedback reductions on row partitions, by each rank on its own rows, not by what made them."""

import numpy as np
from scipy.sparse import csr_array

from app.comm.group import Group
from app.comm.guard import raise_together
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set
from app.solver.rows.feedback import FeedbackReduced
from app.solver.rows.kinds import require
from app.solver.rows.own import everywhere

NONE = -1


def check_feedback(group: Group, graph: Graph, weights: np.ndarray | None, reduced: FeedbackReduced) -> None:
    """Prove that a set meets all cycles of what is left only where it meets all of the graph, and that some
    lightest set of the graph is one of what is left.

    Round by round: the owner of each node that goes finds its neighbours to be those told, none of which
    goes; of two one is no heavier than the node. All ranks then join these two, which no edge has joined.

    graph    own rows of the graph
    Ranks    all call. Raises LockstepError on all
    """
    left = np.ones(graph.n, dtype=bool) if weights is None else weights > 0
    rows, columns = graph.row_of(), graph.indices
    kept = left[rows] & left[columns]
    shape, lo, hi = (graph.hi - graph.lo, graph.n), graph.lo, graph.hi
    ones = np.ones(int(kept.sum()), dtype=np.int64)
    table = csr_array((ones, (rows[kept] - lo, columns[kept])), shape=shape)
    for step in reduced.steps:
        with raise_together(group, "checking the reductions"):
            _check_step(table, lo, hi, left, weights, step)
            left[step[:, 0]] = False
            table = _joined(table, lo, hi, left, step)
            require(bool((table.data == 1).all()), "two edges join two nodes")
    with raise_together(group, "checking the reductions"):
        table.sort_indices()
        own = np.flatnonzero(left[lo:hi])
        mine = reduced.own
        same = np.array_equal(mine.nodes, own + lo) and np.array_equal(mine.indices, table.indices)
        same = same and np.array_equal(mine.degrees(), np.diff(table.indptr)[own])
        require(same, "what is left is not what the steps leave")
    require(np.array_equal(everywhere(group, own + lo), reduced.nodes), "other nodes are left")


def _check_step(
    table: csr_array, lo: int, hi: int, left: np.ndarray, weights: np.ndarray | None, step: np.ndarray
) -> None:
    """Prove the own part of a step [k, 3]. Raises LockstepError."""
    n = len(left)
    require(bool(((step[:, 0] >= 0) & (step < max(n, 1)).all(axis=1)).all()), "an unknown node")
    require(bool((step[:, 1:] >= NONE).all()), "an unknown node")
    require(bool(left[step[:, 0]].all()) and len(sorted_set(step[:, 0])) == len(step), "a node goes twice")
    gone = np.zeros(n + 1, dtype=bool)  # the last place is that of NONE
    gone[step[:, 0]] = True
    require(not gone[step[:, 1:]].any(), "two neighbours go at once")
    own = step[(step[:, 0] >= lo) & (step[:, 0] < hi)]
    part = table[own[:, 0] - lo]
    told = np.sort(own[:, 1:], axis=1)
    counts = (told != NONE).sum(axis=1)
    require(np.array_equal(np.diff(part.indptr), counts), "a node has more edges than were told")
    part.sort_indices()
    require(np.array_equal(part.indices, told[told != NONE]), "a node has other neighbours")
    if weights is not None:
        two = own[counts == 2]
        least = np.minimum(weights[two[:, 1]], weights[two[:, 2]])
        require(bool((least <= weights[two[:, 0]]).all()), "a node is lighter than its neighbours")


def _joined(table: csr_array, lo: int, hi: int, left: np.ndarray, step: np.ndarray) -> csr_array:
    """The own rows among the nodes that are left, with the edges that stand for nodes of a step [k, 3]."""
    table = table.tocoo()
    kept = left[table.row + lo] & left[table.col]
    a, b = step[(step[:, 1:] != NONE).all(axis=1), 1:].T
    row, col = np.concatenate([a, b]), np.concatenate([b, a])
    own = (row >= lo) & (row < hi)
    row = np.concatenate([table.row[kept], row[own] - lo])
    col = np.concatenate([table.col[kept], col[own]])
    data = np.concatenate([table.data[kept], np.ones(int(own.sum()), dtype=np.int64)])
    return csr_array((data, (row, col)), shape=table.shape)
