"""Core numbers and triangles of a whole undirected graph: exact counts of what is around each node."""

import numpy as np

from app.graphs.lists import entries_of
from app.graphs.orders import places_of

WEDGES = 1 << 21  # pairs of neighbours looked at together


def core_numbers(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """[n] int64, the largest k for which a node is in a subgraph where all have at least k neighbours.

    Source   Seidman 1983; by peeling (Batagelj and Zaversnik 2003), all nodes of at most k neighbours at once
    indptr   [n+1]     indices   [nnz] the neighbours of each node, both ways, without loops
    """
    n = len(indptr) - 1
    left, core, k = np.diff(indptr).astype(np.int64), np.zeros(n, dtype=np.int64), 0
    alive, rest = np.ones(n, dtype=bool), np.arange(n)
    while len(rest):
        k = max(k, int(left[rest].min()))
        peeled = rest[left[rest] <= k]
        while len(peeled):
            core[peeled], alive[peeled] = k, False
            near = indices[entries_of(indptr, peeled)]
            near, met = np.unique(near[alive[near]], return_counts=True)
            left[near] -= met
            peeled = near[left[near] <= k]
        rest = rest[alive[rest]]
    return core


def triangle_counts(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """[n] int64, the triangles that each node is in.

    An edge points to the end of more neighbours, of equal ones to the larger number; a triangle is found at
    the node that both of its edges leave, so that hubs are gone through from their neighbours (the forward
    algorithm, Schank and Wagner 2005).
    indptr, indices   as of `core_numbers`
    """
    n = len(indptr) - 1
    degree, row = np.diff(indptr), np.repeat(np.arange(n), np.diff(indptr))
    rank = places_of(np.lexsort((np.arange(n), degree)))
    u, v = rank[row], rank[indices]
    keys = np.sort(u[u < v] * n + v[u < v])  # edges by the end that they leave, then by the other one
    u, v = keys // max(n, 1), keys % max(n, 1)
    ends = np.searchsorted(u, np.arange(n), side="right")
    found, later = np.zeros(n, dtype=np.int64), ends[u] - np.arange(len(u)) - 1  # of each edge its partners
    before = np.concatenate([[0], np.cumsum(later)])
    lo = 0
    while lo < len(u):
        hi = max(int(np.searchsorted(before, before[lo] + WEDGES, side="right")) - 1, lo + 1)
        first = np.repeat(np.arange(lo, hi), later[lo:hi])
        second = first + 1 + np.arange(len(first)) - np.repeat(before[lo:hi] - before[lo], later[lo:hi])
        wanted = v[first] * n + v[second]
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        closed = keys[at] == wanted
        for each in (u[first[closed]], v[first[closed]], v[second[closed]]):
            found += np.bincount(each, minlength=n)
        lo = hi
    return found[rank]
