"""Features: the input of the first layer, dense or sparse, and the gradient of the weights it meets.

No gradient by the features themselves is ever needed. Dense features are rows like all others, so the
gradient of W in X W is X^T D, a sum over nodes by row blocks. Sparse features keep their transpose instead,
cut by columns: each rank owns some features and all entries of theirs, and gets the rows of D one rank after
the other (a staged broadcast), so each row of X^T D is one chain over nodes in global order on one rank; then
the rows are gathered. Both ways the bits do not depend on the number of ranks.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.comm.group import Group
from app.elementwise import Dropout
from app.products import Finish, Part

Array = Any


class DenseFeatures:
    """X [n_own, f] on the device, with dropout drawn anew for each pass.

    array      what the first layer reads now: X, or its dropped copy
    products   P X for normalised adjacency matrices P by name (Engine.product_of)
    """

    whole_gradient = False

    def __init__(self, device: Any, X_own: Array) -> None:
        self.device, self._whole, self.array = device, X_own, X_own
        self.width = self.stored = X_own.shape[1]
        self.products: dict[str, DenseFeatures] = {}
        self._dropped: Array = None

    def begin(self, drop: Dropout | None) -> None:
        """Draw the dropout of the next pass; None: all entries."""
        self.array = self._whole
        if drop is not None:
            if self._dropped is None:
                self._dropped = self.device.empty(self._whole.shape)
            self._dropped[...] = self._whole
            self.device.activate(self._dropped, drop=drop)
            self.array = self._dropped

    def times(self, W: Array, out: Array, scale: Array | None = None) -> None:
        """out [n_own, m] = scale * (X W)."""
        self.device.dense([Part(self.array)], W, Finish(scale=scale), out)


@dataclass
class _Entries:
    """A CSR matrix on the device, the values it was made with, and the node and feature of each entry."""

    matrix: Any
    values: Array
    nodes: Array
    columns: Array

    def drop(self, device: Any, drop: Dropout | None) -> None:
        """Let the matrix have the dropped values."""
        if drop is None:
            self.matrix.data[...] = self.values
        else:
            device.drop_entries(self.values, self.nodes, self.columns, drop, self.matrix.data)


class SparseFeatures:
    """X [n_own, f] in CSR, and this rank's columns of it for all nodes, transposed.

    first_row   global number of the first own row
    Ranks       all construct
    """

    whole_gradient = True
    array = None

    def __init__(self, group: Group, X_own: sp.csr_array, row_counts: list[int]) -> None:
        """row_counts   padded rows of each rank."""
        self.group, self.device = group, group.device
        n_own, self.width = X_own.shape
        first = sum(row_counts[: group.rank])
        entries = int(group.sum_integers(np.array([X_own.nnz]))[0])
        self.stored = max(1, entries // max(sum(row_counts), 1))
        self.row_counts = row_counts
        nodes = first + np.repeat(np.arange(n_own, dtype=np.int64), np.diff(X_own.indptr))
        self._own = self._put(X_own.indptr, X_own.indices, X_own.data, X_own.shape, nodes, X_own.indices)
        self.owned = _share_columns(group, X_own)
        self._tiles = self._transpose(X_own, nodes)
        self._dropped = False

    def _put(
        self, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, shape: tuple[int, int],
        nodes: np.ndarray, columns: np.ndarray,
    ) -> _Entries:  # fmt: skip
        put, kind = self.device.put, np.result_type(indptr.dtype, indices.dtype)
        indptr, indices = indptr.astype(kind), indices.astype(kind)
        matrix = self.device.csr(indptr, indices, np.array(data, dtype=np.float32), shape)
        held = put(np.array(data, dtype=np.float32))
        return _Entries(matrix, held, put(nodes.astype(np.int64)), put(columns.astype(np.int64)))

    def _transpose(self, X_own: sp.csr_array, nodes: np.ndarray) -> list[_Entries]:
        """For each rank its rows of this rank's features, transposed. Ranks: all call."""
        group = self.group
        owner = np.searchsorted(self.owned[1:], X_own.indices, side="right")
        order = np.argsort(owner, kind="stable")
        sizes = np.bincount(owner, minlength=group.size).tolist()
        into = group.exchange_counts(sizes)
        triples = (nodes, X_own.indices.astype(np.int64), X_own.data.astype(np.float32))
        node, column, value = (group.exchange_host(each[order], sizes, into) for each in triples)
        lo, hi = (int(at) for at in self.owned[group.rank : group.rank + 2])
        ends, tiles, first = np.cumsum(into), [], 0
        for rank, (size, end) in enumerate(zip(into, ends)):
            part = slice(end - size, end)
            tile_order = np.lexsort((node[part], column[part]))
            rows, at, data = (each[part][tile_order] for each in (node, column, value))
            indptr = np.concatenate([[0], np.cumsum(np.bincount(at - lo, minlength=hi - lo))])
            shape = (hi - lo, self.row_counts[rank])
            tiles.append(self._put(indptr, rows - first, data, shape, rows, at))
            first += self.row_counts[rank]
        return tiles

    def begin(self, drop: Dropout | None) -> None:
        """Draw the dropout of the next pass; None: all entries."""
        if drop is None and not self._dropped:
            return
        self._dropped = drop is not None
        for entries in (self._own, *self._tiles):
            entries.drop(self.device, drop)

    def times(self, W: Array, out: Array, scale: Array | None = None) -> None:
        """out [n_own, m] = scale * (X W)."""
        out[...] = 0
        self.device.spmm_add(self._own.matrix, self.device.xp.ascontiguousarray(W), out)
        if scale is not None:
            self.device.activate(out, scale)

    def gradient(self, D_own: Array, out: Array, scale: Array | None = None) -> None:
        """out [f*m] = X^T (scale * D), whole on every rank. Ranks: all call (staged rows, then a gather)."""
        group, device, m = self.group, self.device, D_own.shape[1]
        if scale is not None:
            D_own = D_own.copy()
            device.activate(D_own, scale)
        own = device.zeros((self._tiles[0].matrix.shape[0], m))
        for rank, D in group.stage_rows(D_own, self.row_counts):
            device.spmm_add(self._tiles[rank].matrix, D, own)
        counts = np.diff(self.owned).tolist()
        out[...] = group.gather_rows(own, counts, phase="sum").reshape(-1)


Features = DenseFeatures | SparseFeatures


def _share_columns(group: Group, X_own: sp.csr_array) -> np.ndarray:
    """[ranks+1] int64: ranges of features with about equally many entries each. Ranks: all call."""
    stored = group.sum_integers(np.bincount(X_own.indices, minlength=X_own.shape[1]).astype(np.int64))
    total = np.concatenate([[0], np.cumsum(stored)])
    goals = total[-1] * np.arange(group.size + 1, dtype=np.int64) // group.size
    cuts = np.searchsorted(total, goals, side="left")
    cuts[0], cuts[-1] = 0, X_own.shape[1]
    return np.maximum.accumulate(cuts)


def make_features(group: Group, X_own: np.ndarray | sp.csr_array, row_counts: list[int]) -> Features:
    """Features of this rank's padded rows [n_own, f], dense or CSR, on the device. Ranks: all call."""
    if isinstance(X_own, np.ndarray):
        return DenseFeatures(group.device, group.device.put(np.ascontiguousarray(X_own, dtype=np.float32)))
    return SparseFeatures(group, X_own, row_counts)
