"""Messages along stored entries that have rows of their own: sums of relu(X_j + E_ij W + b), and back.

An entry (i, j) of a matrix has a row E_ij, of numbers or of categories, which are columns that are 1. E_ij W
is a chain of float32 over the columns, each link rounded once as in all dense products, and then b is added;
what an entry adds to its row goes on from what is there, in stored order. The gradients of W and b are one
chain over the entries of a row block, in stored order. Every function is a fixed sequence of such operations:
the same bits on every device and in the compiled kernels (layers/gine.py has the derivation).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = Any
PIECE = 1 << 16  # entries whose rows are made at a time, or those of one row or block
OCTET = 8  # a dense product has rows of a multiple of these


@dataclass(frozen=True, eq=False)
class EdgeEntries:
    """The stored entries of a CSR matrix and the row of each.

    A        the matrix on the device     indptr  [n+1] int64 on the host
    values   [nnz, k] float32 on the device; of categories [nnz, c] int32, ascending numbers of the columns
             that are 1, or -1 for none
    width    columns of E: k, or those that the categories become
    record   what compiled kernels need, or None
    kept     of rows lo..hi-1 what `EdgeSums._piece` makes, where there are no kernels
    patterns  of rows lo..hi-1 what goes through their entries (numerics/edge_attention.py), but in compiled
             kernels
    """

    A: Any
    indptr: np.ndarray
    values: Array
    width: int
    record: Any = None
    kept: dict[tuple[int, int], tuple[Array, Any]] = field(default_factory=dict)
    patterns: dict[tuple[int, int], Any] = field(default_factory=dict)

    @property
    def kinds(self) -> bool:
        """Whether rows are categories."""
        return self.values.dtype.kind == "i"

    def rows(self, xp: Any, lo: int, hi: int) -> Array:
        """[hi-lo, width] float32: E of the entries lo..hi-1, zero beyond the last one."""
        some, last = self.values[lo:hi], min(hi, len(self.values)) - lo
        out = xp.zeros((hi - lo, self.width), dtype=np.float32)
        if not self.kinds:
            out[:last] = some
            return out
        ramp = xp.arange(last)
        for column in range(some.shape[1]):
            known = some[:, column] >= 0
            out[ramp[known], some[:, column][known]] = 1
        return out


class EdgeSums:
    """Operations on such entries, of a device that has Products and `spmm_add`."""

    xp: Any

    def edge_entries(self, A: Any, values: np.ndarray, width: int) -> EdgeEntries:
        """The entries of a matrix of the device with their rows [nnz, ...], which are on the host."""
        return EdgeEntries(A, np.asarray(self.get(A.indptr)).astype(np.int64), self.put(values), width)

    def edge_add(self, entries: EdgeEntries, W: Array, b: Array | None, X_ext: Array, Y: Array) -> None:
        """Y_i += relu(X_j + E_ij W + b) for every entry, in order.

        W [width, f]   b [f] or None   X_ext [*, f] row-major, rows that the columns number
        Y [n, f], which may be columns of a wider array, as H and dH of `edge_back`
        """
        xp, indptr = self.xp, entries.indptr
        for lo, hi in pieces(indptr, np.arange(len(indptr))):
            first, last = int(indptr[lo]), int(indptr[hi])
            M = X_ext[entries.A.indices[first:last]] + self._edge_rows(entries, first, last, W, b)
            ones = self._piece(entries, lo, hi)[1]
            self._add_to(ones, xp.where(M <= 0, np.float32(0), M), Y[lo:hi])

    def edge_back(
        self, entries: EdgeEntries, W: Array, b: Array | None, H: Array, D_ext: Array, dH: Array,
        starts: np.ndarray,
    ) -> Array:  # fmt: skip
        """The gradients, of a matrix whose rows i are where messages come from, j where they go to.

        G_ij = D_j where H_i + E_ij W + b > 0, else 0     dH_i += G_ij for every entry, in order

        W [width, f]   b [f] or None   H, dH [n, f]   D_ext [*, f]
        starts    [blocks+1] int64 host: block m is rows starts[m] .. starts[m+1]-1
        returns   [blocks, (width+1) f]: by block the sums of E^T G and of G
        """
        xp, f, indptr = self.xp, W.shape[1], entries.indptr
        size = entries.width * f
        out = self.zeros((len(starts) - 1, size + f))
        for lo, hi in pieces(indptr, starts):
            top, bottom = int(starts[lo]), int(starts[hi])
            first, last = int(indptr[top]), int(indptr[bottom])
            row, ones = self._piece(entries, top, bottom)
            M = H[row] + self._edge_rows(entries, first, last, W, b)
            G = xp.where(M > 0, D_ext[entries.A.indices[first:last]], np.float32(0))
            self._add_to(ones, G, dH[top:bottom])
            ends = indptr[starts[lo : hi + 1]] - first
            E = self._numbers(entries, first, last)
            out[lo:hi, :size] = self.block_gram(E, G, ends[None])
            out[lo:hi, size:] = self.fold(ends, G)
        return out

    def edge_bytes(self, stored: int, f: int, width: int, kinds: bool) -> int:
        """What `edge_back` holds of so many entries while it runs, where that grows with them.

        f, width   columns of messages, of rows of entries     kinds   rows are categories
        """
        return 0

    def _numbers(self, entries: EdgeEntries, first: int, last: int) -> Array:
        """[last-first, width], E of some entries."""
        return entries.rows(self.xp, first, last)

    def _edge_rows(self, entries: EdgeEntries, first: int, last: int, W: Array, b: Array | None) -> Array:
        """[last-first, f], E W + b of some entries."""
        E = entries.rows(self.xp, first, first - (first - last) // OCTET * OCTET)
        Q = self.row_product(E, self.xp.ascontiguousarray(W))[: last - first]
        return Q if b is None else Q + b

    def _add_to(self, A: Any, X: Array, Y: Array) -> None:
        """Y += A X."""
        if Y.flags.c_contiguous:
            self.spmm_add(A, X, Y)
            return
        sums = self.xp.ascontiguousarray(Y)
        self.spmm_add(A, X, sums)
        Y[...] = sums

    def _piece(self, entries: EdgeEntries, lo: int, hi: int) -> tuple[Array, Any]:
        """Of the entries of rows lo..hi-1 the row of each, and the matrix that adds up those of each row."""
        if (lo, hi) not in entries.kept:
            indptr = entries.indptr[lo : hi + 1] - entries.indptr[lo]
            columns, shape = np.arange(indptr[-1], dtype=np.int32), (hi - lo, int(indptr[-1]))
            row = self.put(np.repeat(np.arange(lo, hi), np.diff(indptr)))
            entries.kept[lo, hi] = row, self.csr(indptr.astype(np.int32), columns, None, shape)
        return entries.kept[lo, hi]


def pieces(indptr: np.ndarray, starts: np.ndarray, most: int = PIECE) -> Iterator[tuple[int, int]]:
    """(first, last + 1) of consecutive blocks that have entries: of at most `most`, or of one block."""
    ends = indptr[starts]
    at, blocks = 0, len(starts) - 1
    while at < blocks:
        fits = int(np.searchsorted(ends, ends[at] + most, side="right")) - 1
        end = min(max(fits, at + 1), blocks)
        if ends[end] > ends[at]:
            yield at, end
        at = end
