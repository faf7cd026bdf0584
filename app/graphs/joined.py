"""Nodes that are joined: components of rows; and pairs one after the other, of each node one nearer to the
root of its part.
"""

import ctypes
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from app.graphs.lists import entries_of
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
COMPONENTS = function("lk_components", Long, *(Pointer,) * 4, returns=Long)
LARGE = 1 << 16  # nodes from which on one component is looked for first


def components(
    indptr: np.ndarray, indices: np.ndarray, large: int = LARGE, compiled: bool = True
) -> np.ndarray:
    """[n] int64, the component of each node, numbered by their lowest nodes.

    indptr [n+1], indices [nnz] of rows that hold both directions of each edge

    Without the kernel: SciPy turns the matrix round, which takes most of the time; of a large graph only
    where the node with most neighbours does not lead.
    """
    n = len(indptr) - 1
    if not n:
        return np.zeros(0, dtype=np.int64)
    if compiled and COMPONENTS is not None:
        found, queue = (np.empty(n, dtype=np.int32) for _ in range(2))
        rows = np.ascontiguousarray(indptr, np.int64), np.ascontiguousarray(indices, np.int32)
        COMPONENTS(n, *map(address, (*rows, found, queue)))
        return found.astype(np.int64)
    label, rest = np.zeros(n, dtype=np.int64), np.arange(n)
    if n >= large:
        hub = int(np.diff(indptr).argmax())
        apart = np.ones(n, dtype=bool)
        apart[breadth_first_order(_matrix(indptr, indices), hub, return_predecessors=False)] = False
        rest = np.flatnonzero(apart)
    begin = np.append(0, np.cumsum(indptr[rest + 1] - indptr[rest]))
    if len(rest) == n:
        columns = indices
    else:
        place = np.zeros(n, dtype=np.int64)
        place[rest] = np.arange(len(rest))
        columns = place[indices[entries_of(indptr, rest)]]
    if len(rest):
        part = connected_components(_matrix(begin, columns), directed=False)[1]
        label[rest] = part + (len(rest) < n)
    lowest = np.empty(int(label.max()) + 1, dtype=np.int64)
    lowest[label[::-1]] = np.arange(n)[::-1]  # of values that go to one place the last one stays
    return np.argsort(np.argsort(lowest))[label]


def _matrix(indptr: np.ndarray, indices: np.ndarray) -> sp.csr_array:
    """Where the entries are."""
    n, ones = len(indptr) - 1, np.ones(len(indices), dtype=np.int8)
    return sp.csr_array((ones, indices, indptr), shape=(n, n))


def root_of(above: Any, node: int) -> int:
    """The root of a node's part; ways to it are halved (Tarjan and van Leeuwen, Journal of the ACM 1984).

    above   of each node one of its part, of a root itself; changed, and parts stay what they are
    """
    while above[node] != node:
        above[node] = above[above[node]]
        node = above[node]
    return node
