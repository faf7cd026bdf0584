"""What rows are worth in bounds on sets of so many nodes: as app/native/dense_size.c has it, in NumPy."""

import numpy as np

from app.graphs.dense import DenseGraph, row_sums

FREE, FORCED, BARRED = 0, 1, 2  # states of nodes


def row_values(
    graph: DenseGraph, held: np.ndarray, state: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """[n] int64, the most that a node's entries are worth with exactly `most` others; [nnz] bool, which.

    All forced nodes are among the others, no barred one is; those that are no neighbours are worth 0. Where a
    free node would be one of too many, or too few are free, what is told is of no set, and harmless.

    held   [nnz] int64     state   [n] uint8

    """
    n, rows = graph.n, graph.rows()
    other = state[graph.indices]
    free_nodes, forced = int((state == FREE).sum()), int((state == FORCED).sum())
    count = np.where(state == FORCED, most - forced + 1, most - forced)
    free = other == FREE
    degree = np.bincount(rows[free], minlength=n)
    strangers = free_nodes - (state == FREE) - degree
    above = np.bincount(rows[free & (held > 0)], minlength=n)
    room = np.clip(count, 0, degree)
    wanted = np.minimum(np.maximum(count - strangers, np.minimum(above, room)), room)
    wanted = np.where(count > 0, wanted, 0)
    # Free entries of each row, the largest first, of equal ones those that come first.
    entries = np.flatnonzero(free)
    entries = entries[np.lexsort((entries, -held[entries], rows[entries]))]
    begins = np.cumsum(degree) - degree
    rank = np.arange(len(entries)) - begins[rows[entries]]
    taken = other == FORCED
    taken[entries[rank < wanted[rows[entries]]]] = True
    return row_sums(np.where(taken, held, 0), graph.indptr), taken


def best_rows(sums: np.ndarray, state: np.ndarray, count: int) -> tuple[int, np.ndarray]:
    """What `count` rows are worth at most, all forced ones among them, and which [n] bool."""
    order = np.lexsort((np.arange(len(sums)), -sums, np.array([1, 0, 2])[state]))[:count]
    chosen = np.zeros(len(sums), dtype=bool)
    chosen[order] = True
    return int(sum(sums[order].tolist())), chosen
