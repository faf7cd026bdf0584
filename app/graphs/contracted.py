"""WeightedRows: a whole graph in whole numbers, graphs of groups of its nodes, and of some of its nodes."""

import ctypes
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from app.graphs.lists import entries_of, starts
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
CONTRACT = function("lk_contract", Long, *[Pointer] * 9, returns=Long)


def numbered(label: np.ndarray) -> np.ndarray:
    """[n] int32, the same groups, numbered from 0 on as nodes come to them; label [n] not far beyond n."""
    first = np.full(int(label.max(initial=-1)) + 1, -1, dtype=np.int64)
    first[label[::-1]] = np.arange(len(label) - 1, -1, -1)  # of equal places the last one counts
    used = np.flatnonzero(first >= 0)
    number = np.empty(len(first), dtype=np.int32)
    number[used[np.argsort(first[used])]] = np.arange(len(used))
    return number[label]


def overlay(label: np.ndarray, other: np.ndarray) -> np.ndarray:
    """[n] int32, groups of nodes that are together in both; both [n] numbered."""
    both = label.astype(np.int64) * (int(other.max(initial=0)) + 1) + other
    return np.unique(both, return_inverse=True)[1].reshape(-1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Weights of the edges and sizes of the nodes of a whole graph.

    indptr [n+1] int64, indices [nnz] int32, weights [nnz] int64   rows, both directions, without loops
    size   [n] int64, not negative
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    size: np.ndarray

    @property
    def n(self) -> int:
        """Nodes."""
        return len(self.size)

    def row_of(self) -> np.ndarray:
        """[nnz] int64, the row of each entry."""
        return np.repeat(np.arange(self.n, dtype=np.int64), self.indptr[1:] - self.indptr[:-1])

    def contracted(self, group: np.ndarray, compiled: bool = True) -> Self:
        """That of groups of nodes; group [n] numbers 0..k-1, each of which occurs."""
        k = int(group.max(initial=-1)) + 1
        size = np.zeros(k, dtype=np.int64)
        np.add.at(size, group, self.size)
        rows = self._contracted(group, k) if compiled and CONTRACT else self._summed(group, k)
        return replace(self, **dict(zip(("indptr", "indices", "weights"), rows)), size=size)

    def _contracted(self, group: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Its rows, by the kernel."""
        group = np.ascontiguousarray(group, dtype=np.int32)
        nodes = np.argsort(group, kind="stable").astype(np.int32)
        begin = starts(group, k)
        indptr = np.zeros(k + 1, dtype=np.int64)
        indices, weights = np.empty_like(self.indices), np.empty_like(self.weights)
        arrays = (self.indptr, self.indices, self.weights, group, nodes, begin, indptr, indices, weights)
        made = CONTRACT(k, *map(address, arrays))
        if made < 0:
            raise MemoryError("graphs of groups")
        return indptr, indices[:made].copy(), weights[:made].copy()

    def _summed(self, group: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Its rows, by sorting."""
        row, column = group[self.row_of()].astype(np.int64), group[self.indices].astype(np.int64)
        apart = row != column
        key, weights = row[apart] * k + column[apart], self.weights[apart]
        order = np.argsort(key, kind="stable")
        key, weights = key[order], weights[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        key = key[first]
        indptr = starts(key // max(k, 1), k)
        sums = np.add.reduceat(weights, first) if len(first) else weights
        return indptr, (key % max(k, 1)).astype(np.int32), sums

    def entries(self, nodes: np.ndarray) -> np.ndarray:
        """[m] int64, the places of the entries of some rows [k], in their order."""
        return entries_of(self.indptr, nodes)

    def induced(self, nodes: np.ndarray, place: np.ndarray) -> Self:
        """That of some nodes [k], in their order.

        place   [n] int32 of -1, and so again afterwards
        """
        place[nodes] = np.arange(len(nodes), dtype=np.int32)
        entry = self.entries(nodes)
        columns = place[self.indices[entry]]
        kept = columns >= 0
        row = np.repeat(np.arange(len(nodes)), self.indptr[nodes + 1] - self.indptr[nodes])[kept]
        place[nodes] = -1
        indptr = starts(row, len(nodes))
        weights = self.weights[entry[kept]]
        return replace(self, indptr=indptr, indices=columns[kept], weights=weights, size=self.size[nodes])
