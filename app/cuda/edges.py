"""Messages along entries with rows of their own by edges.cu: those of app/numerics/edges.py."""

from typing import Any

import numpy as np

from app.cuda.dynamic import CudaDynamicAttention
from app.cuda.kernels import NULL, Kernels, by_four, matrix, vector, whole
from app.cuda.matrix import Pattern, SomeRows
from app.cuda.rows import CudaAttention
from app.errors import NumericsError
from app.numerics.edge_attention import EdgeAttention
from app.numerics.edges import EdgeEntries, EdgeSums, pieces
from app.numerics.products import Operand

Array = Any
SOME = 4  # entries of a thread that makes rows, as in edges.cu
ATTENDED = 3  # arrays of as many columns at most as rows of entries have: these, w and g
EDGE_BYTES = 64 << 20  # of what the entries of some row blocks give their rows, unless one block's are more


class CudaEdgeSums(EdgeSums):
    """Messages in one kernel, of a device that has CudaProducts; arrays are float32."""

    kernels: Kernels
    _gram: Any

    def edge_add(self, entries: EdgeEntries, W: Array, b: Array | None, X_ext: Array, Y: Array) -> None:
        """Y_i += relu(X_j + E_ij W + b) for every entry, in order."""
        (n, f), rows = Y.shape, matrix(Y)
        given, W = self._given(entries, n, W, b)
        four = by_four((W, f, f), (X_ext, f, f), (*rows, f)) and (b is None or not b.data.ptr % 16)
        name, each = ("edge_add_4", f // 4) if four else ("edge_add", f)
        self.kernels.launch(name, n * each, *given, entries.A.lines, whole(X_ext, f), *rows)

    def edge_back(
        self, entries: EdgeEntries, W: Array, b: Array | None, H: Array, D_ext: Array, dH: Array,
        starts: np.ndarray,
    ) -> Array:  # fmt: skip
        """dH, and by row block the sums that make the gradients of W and b.

        The entries of some blocks give their rows G, of which dH has been added up, to the sums.
        """
        (n, f), indptr, k = dH.shape, entries.indptr, entries.width
        out = self.zeros((len(starts) - 1, (k + 1) * f))
        given, W = self._given(entries, n, W, b)
        own, sums, D = matrix(H, n, f), matrix(dH), whole(D_ext, f)
        four = by_four((W, f, f), (D, f, f), (*own, f), (*sums, f)) and (b is None or not b.data.ptr % 16)
        name, each = ("edge_back_4", f // 4) if four else ("edge_back", f)
        for lo, hi in pieces(indptr, starts, entries_of(f, k, entries.kinds)):
            top, bottom = int(starts[lo]), int(starts[hi])
            first, last = int(indptr[top]), int(indptr[bottom])
            G, rows = self.empty((last - first, f)), np.int64(bottom - top)
            operands = rows, *given[1:], np.int64(top), *own, D, *sums, G
            self.kernels.launch(name, (bottom - top) * each, *operands)
            ends = indptr[starts[lo : hi + 1]] - first
            self._gram([Operand(self._numbers(entries, first, last))], G, ends[None], 0, out[lo:hi])
            out[lo:hi, k * f :] = self.fold(ends, G)
        return out

    def edge_bytes(self, stored: int, f: int, width: int, kinds: bool) -> int:
        """What `edge_back` holds of so many entries while it runs; see EdgeSums."""
        return 4 * min(stored, entries_of(f, width, kinds)) * (f + width * kinds)

    def _given(
        self, entries: EdgeEntries, n: int, W: Array, b: Array | None
    ) -> tuple[tuple[Any, ...], Array]:
        """The first arguments of the kernels, and W without gaps."""
        A, values, (k, f) = entries.A, entries.values, W.shape
        if A.shape[0] != n or k != entries.width:
            raise NumericsError(f"edges: {A.shape} with W of {W.shape} does not fit {n} rows")
        W = whole(self.xp.ascontiguousarray(W), f)
        numbers = (NULL, values) if entries.kinds else (values, NULL)
        sizes = np.int32(k), np.int32(values.shape[1])
        shape = np.int64(n), np.int32(f), A.indptr, A.indices
        return (*shape, *sizes, *numbers, W, NULL if b is None else vector(b, f)), W

    def _edge_rows(self, entries: EdgeEntries, first: int, last: int, W: Array, b: Array | None) -> Array:
        """[last-first, f], E W + b of some entries."""
        given, W = self._given(entries, entries.A.shape[0], W, b)
        count, f = last - first, W.shape[1]
        Q = self.empty((count, f))
        four = by_four((W, f, f), (Q, f, f)) and (b is None or not b.data.ptr % 16)
        name, across = ("edge_products_4", f // 4) if four else ("edge_products", f)
        threads = -(-count // SOME) * across
        self.kernels.launch(name, threads, *given, np.int64(first), np.int64(count), Q)
        return Q

    def _numbers(self, entries: EdgeEntries, first: int, last: int) -> Array:
        """[last-first, width], E of some entries."""
        values = entries.values[first:last]
        if not entries.kinds:
            return values
        out, k = self.empty((last - first, entries.width)), entries.width
        sizes = np.int64(last - first), np.int32(k), np.int32(values.shape[1])
        self.kernels.launch("edge_ones", (last - first) * k, *sizes, values, out)
        return out


def entries_of(f: int, width: int, kinds: bool) -> int:
    """Entries whose rows, of f columns and where they are categories of `width`, are held at a time."""
    return max(EDGE_BYTES // (4 * (f + width * kinds)), 1)


class CudaEdgeAttention(EdgeAttention):
    """Attention by the kernels for entries with rows of their own, these made for some rows at a time."""

    plain, dynamic = CudaAttention, CudaDynamicAttention
    put: Any

    def _most(self, entries: EdgeEntries, f: int) -> int:
        """Entries whose rows are made at a time: these, and two numbers of each head."""
        return entries_of(ATTENDED * f, entries.width, entries.kinds)

    def _pattern(self, entries: EdgeEntries, lo: int, hi: int) -> Pattern:
        """The entries of some rows."""
        first, last = (int(entries.indptr[row]) for row in (lo, hi))
        A, (n, m) = entries.A, entries.A.shape
        if (lo, hi) == (0, n):
            return A
        own = self.put(entries.indptr[lo : hi + 1] - first)
        return SomeRows(own, A.indices[first:last], last - first, (hi - lo, m))

    def attended_bytes(self, stored: int, f: int, width: int, kinds: bool) -> int:
        """What is held of so many entries while their rows are attended to; see EdgeAttention."""
        return 4 * min(stored, entries_of(ATTENDED * f, width, kinds)) * (ATTENDED * f + width * kinds)
