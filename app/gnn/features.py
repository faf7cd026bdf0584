"""Features: the input of the first layer, dense or sparse, and the gradient of the weights it meets.

No gradient by the features themselves is ever needed. Dense features are rows like all others, so the
gradient of W in X W is X^T D, a sum over nodes by row blocks. Sparse features keep their transpose instead,
cut by columns: each rank owns some features and all entries of theirs, and gets the rows of D one rank after
the other (a staged broadcast), so each row of X^T D is one chain over nodes in global order on one rank; then
the rows are gathered. Both ways the bits do not depend on the number of ranks.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from app.comm.group import Group
from app.graphs.lists import starts
from app.numerics.elementwise import Dropout
from app.numerics.products import Finish, Operand

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
        self.device.dense([Operand(self.array)], W, Finish(scale=scale), out)


class _Entries:
    """A CSR matrix on the device whose entries can be dropped; its rows are nodes, `by_columns` features.

    The arrays it is made of are left as they are, so it may share them. What dropping needs beside them, the
    values of the pass, and node and feature of each entry, is made with the first pass that drops some.

    first   global numbers of the first node and of the first feature
    """

    def __init__(
        self, device: Any, matrix: sp.csr_array, first: tuple[int, int], by_columns: bool = False
    ) -> None:
        self.device, self.first, self.by_columns = device, first, by_columns
        kind = np.int32 if max(matrix.nnz, *matrix.shape) < 1 << 31 else np.int64
        indptr, indices = (each.astype(kind, copy=False) for each in (matrix.indptr, matrix.indices))
        self._host = indptr, indices, matrix.data.astype(np.float32, copy=False), matrix.shape
        self.matrix = device.csr(*self._host)
        self._values: Array = None
        self._places: Any = None

    def drop(self, drop: Dropout | None) -> None:
        """Let the matrix have the values of a pass; None: all of them."""
        if self._places is None:
            self._prepare()
        if drop is None:
            self.matrix.data[...] = self._values
        else:
            self.device.drop_stored(self._values, self._places, drop, self.matrix.data)

    def _prepare(self) -> None:
        """Values of the matrix's own, and the node and feature of each entry."""
        indptr, indices, data, shape = self._host
        self._values = self.device.put(data)
        self._places = self.device.places_of(indptr, indices, self.first, self.by_columns)
        self.matrix = self.device.csr(indptr, indices, data.copy(), shape)


class SparseFeatures:
    """X [n_own, f] in CSR, and this rank's columns of it for all nodes, transposed.

    Ranks       all construct
    """

    whole_gradient = True
    array = None

    def __init__(self, group: Group, X_own: sp.csr_array, row_counts: list[int]) -> None:
        """X_own is kept, not copied, and never changed; row_counts: padded rows of each rank."""
        self.group, self.device = group, group.device
        self.width = X_own.shape[1]
        entries = int(group.sum_integers(np.array([X_own.nnz]))[0])
        self.stored = max(1, entries // max(sum(row_counts), 1))
        self.row_counts = row_counts
        self._own = _Entries(self.device, X_own, (sum(row_counts[: group.rank]), 0))
        self.owned = _share_columns(group, X_own)
        self._owned_counts = np.diff(self.owned).tolist()
        self._tiles = self._transpose(X_own)
        self._dropped = False

    def _transpose(self, X_own: sp.csr_array) -> list[_Entries]:
        """For each rank its rows of this rank's features, transposed. Ranks: all call."""
        group = self.group
        lo, hi = (int(at) for at in self.owned[group.rank : group.rank + 2])
        turned = sp.csr_array(X_own).tocsc()  # columns in turn, in each the rows in their order
        sizes = np.diff(turned.indptr[self.owned]).tolist()
        into = group.exchange_counts(sizes)
        column = np.repeat(np.arange(self.width, dtype=np.int32), np.diff(turned.indptr))
        column = group.exchange_host(column, sizes, into)
        row, value = (group.exchange_host(each, sizes, into) for each in (turned.indices, turned.data))
        tiles, ends, first = [], np.cumsum(into), 0
        for size, end, rows in zip(into, ends, self.row_counts):
            part = slice(end - size, end)
            indptr = starts(column[part] - lo, hi - lo)
            tile = sp.csr_array((value[part], row[part], indptr), shape=(hi - lo, rows))
            tiles.append(_Entries(self.device, tile, (first, lo), by_columns=True))
            first += rows
        return tiles

    def begin(self, drop: Dropout | None) -> None:
        """Draw the dropout of the next pass; None: all entries."""
        if drop is None and not self._dropped:
            return
        self._dropped = drop is not None
        for entries in (self._own, *self._tiles):
            entries.drop(drop)

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
        rows, counts = out.reshape(-1, m), self._owned_counts
        own = rows if group.size == 1 else device.empty((counts[group.rank], m))
        own[...] = 0
        for rank, D in group.stage_rows(D_own, self.row_counts):
            device.spmm_add(self._tiles[rank].matrix, D, own)
        if own is not rows:
            rows[...] = group.gather_rows(own, counts, phase="sum")


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
