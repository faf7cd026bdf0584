"""Colours of the nodes of row partitions: nodes of one colour are not next to each other.

Source   Jones and Plassmann, SIAM J. Sci. Comput. 14, 1993; in the order of Welsh and Powell 1967
"""

import numpy as np
from scipy.sparse import csr_array

from app.comm.group import Group
from app.graphs.keys import sorted_set
from app.solver.rows.own import LARGEST_RANK, OwnRows, entries_of, everywhere, keyed, row_counts

NONE = -1


def coloured(group: Group, rows: OwnRows) -> np.ndarray:
    """[n] int32, colours of nodes of which neighbours have different ones; NONE of nodes without a row.

    Nodes with many neighbours first, each the least colour that is free, once all neighbours before it have
    theirs. Ranks: all call; identical on all.
    """
    degree = np.zeros(rows.n, dtype=np.int64)
    degree[everywhere(group, rows.nodes)] = everywhere(group, rows.degrees())
    keys = keyed(np.arange(rows.n), LARGEST_RANK - np.minimum(degree, LARGEST_RANK), 0)
    marks = np.ones(len(rows.indices), dtype=np.int8)
    indptr, own, _ = turned(rows, rows.indices, rows.n, marks)  # own neighbours of each node of the graph
    waits = row_counts(rows.indptr, keys[rows.indices] < np.repeat(keys[rows.nodes], rows.degrees()))
    colour = np.full(rows.n, NONE, dtype=np.int32)
    ready = np.flatnonzero(waits == 0)
    while len(told := everywhere(group, rows.nodes[ready])):
        colour[told] = everywhere(group, _least_free(rows, ready, colour))
        near, times = np.unique(own[entries_of(indptr, told)[1]], return_counts=True)
        waits[near] -= times  # of those before it below 0
        ready = near[waits[near] == 0]
    return colour


def _least_free(rows: OwnRows, at: np.ndarray, colour: np.ndarray) -> np.ndarray:
    """[k] int32, the least colour that no neighbour has, of the nodes of rows at [k]."""
    of, entries = entries_of(rows.indptr, at)
    near = colour[rows.indices[entries]].astype(np.int64)
    width = len(rows.nodes) + rows.n + 1
    pairs = sorted_set(of[near != NONE] * width + near[near != NONE])
    row, taken = np.divmod(pairs, width)
    place = np.arange(len(row)) - np.searchsorted(row, row)
    found = np.bincount(row, minlength=len(at))  # where 0 .. count-1 are taken
    gap = np.flatnonzero(taken != place)
    which, first = np.unique(row[gap], return_index=True)
    found[which] = place[gap[first]]
    return found.astype(np.int32)


def turned(
    rows: OwnRows, columns: np.ndarray, count: int, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The own rows by their columns [m], of which there are `count`: indptr [count+1] int64, then for each
    entry the place of its row among the own ones [m] int32, and its value.
    """
    matrix = csr_array((values, columns, rows.indptr), shape=(len(rows.nodes), count)).tocsc()
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data
