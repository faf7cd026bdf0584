"""Pairs of rows of a graph: which of them edges join, which are among others."""

import numpy as np
import scipy.sparse as sp

from app.comm.group import Group
from app.graphs.graph import Graph
from app.partition.rows import RowPartition

PIECE = 1 << 20  # pairs that are looked at together


def among(keys: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """[k] bool, which of `asked` [k] are among ascending keys."""
    if not len(keys):
        return np.zeros(len(asked), dtype=bool)
    return keys[np.minimum(np.searchsorted(keys, asked), len(keys) - 1)] == asked


def joined_rows(group: Group, graph: Graph, rows: RowPartition, pairs: np.ndarray) -> np.ndarray:
    """[k] bool on all ranks, which pairs of rows [k, 2] are edges of a graph. Ranks: all call."""
    found = np.zeros(len(pairs), dtype=np.int64)
    mine = np.flatnonzero(rows.owner(pairs[:, 0]) == group.rank)
    for lo in range(0, len(mine), PIECE):
        at = mine[lo : lo + PIECE]
        u, v = pairs[at].T
        found[at] = find_columns(graph, u, v)
    return group.sum_integers(found) > 0


def find_columns(graph: Graph, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """[k] bool, which pairs of a held row u and any row v, [k] each, are edges: rows are halved together."""
    columns, last = graph.indices, max(len(graph.indices) - 1, 0)
    lo, end = (graph.indptr[u - graph.lo + k] for k in (0, 1))
    hi = end
    while (lo < hi).any():
        middle = (lo + hi) // 2
        below = (lo < hi) & (columns[np.minimum(middle, last)] < v)
        hi = np.where((lo < hi) & ~below, middle, hi)
        lo = np.where(below, middle + 1, lo)
    inside = lo < end
    inside[inside] = columns[lo[inside]] == v[inside]
    return inside


def own_rows(graph: Graph) -> sp.csr_array:
    """The rows of A that are here, [hi - lo, n] int64 ones."""
    ones = np.ones(len(graph.indices), dtype=np.int64)
    return sp.csr_array((ones, graph.indices, graph.indptr), shape=(graph.hi - graph.lo, graph.n))
