"""Messages along entries with rows of their own by edges.cu: those of app/numerics/edges.py."""

from typing import Any

import numpy as np

from app.cuda.kernels import NULL, Kernels, by_four, matrix, vector, whole
from app.errors import NumericsError
from app.numerics.edges import EdgeEntries, EdgeSums, pieces
from app.numerics.products import Operand

Array = Any
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
