"""Dynamic attention by the kernels of dynamic.cu: the operations of app/numerics/dynamic.py."""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.cuda.kernels import NULL, Kernels, whole
from app.cuda.matrix import CudaMatrix
from app.numerics.dynamic import DynamicAttention

Array = Any
WARP = 32


class CudaDynamicAttention(DynamicAttention):
    """Dynamic attention: what every entry adds, then sums of rows; arrays are float32 and row-major."""

    kernels: Kernels
    empty: Callable[..., Array]

    def dynamic_begin(self, M: Array, V: Array) -> None:
        """Sums of nothing."""
        n, h = len(M), M.shape[1] // 2
        self.kernels.launch("dynamic_begin", n * h, np.int64(n), np.int32(h), whole(M))
        V.fill(0)

    def dynamic_add(self, pattern: CudaMatrix, S_ext: Array, T: Array, a: Array, M: Array, V: Array) -> None:
        """Add every entry's w and w S_j."""
        (n, width), h, launch = V.shape, M.shape[1] // 2, self.kernels.launch
        E, old = self.empty((pattern.nnz, h)), self.empty((pattern.nnz, h))
        sizes, S, v = (np.int64(n), *map(np.int32, (h, width // h))), whole(S_ext, width), whole(V)
        entries = pattern.indptr, pattern.indices
        launch("dynamic_scores", n * WARP, *sizes, *entries, S, whole(T, width), whole(a), E)
        launch("dynamic_weights", n * h, *sizes[:2], pattern.indptr, E, old, whole(M))
        launch("dynamic_add", n * width, *sizes, *entries, S, E, old, v)

    def dynamic_finish(self, M: Array, V: Array) -> None:
        """Divide by the sum of w."""
        self.kernels.launch("dynamic_finish", *_by_heads(M, V.shape[1]), whole(M), whole(V))

    def dynamic_pack(self, D: Array, T: Array, M: Array, V: Array, F: Array) -> None:
        """What entries need of a row for its gradients and those of others."""
        operands = [whole(each) for each in (D, T, M, V, F)]
        self.kernels.launch("dynamic_pack", *_by_heads(M, V.shape[1]), *operands)

    def dynamic_back_rows(
        self, pattern: CudaMatrix, S_ext: Array, F: Array, a: Array, dT: Array, G: Array
    ) -> None:
        """Add every entry's part of the gradients by T_i, and by a as far as it is row i's."""
        (n, width), launch = dT.shape, self.kernels.launch
        common, h = _entries(pattern, F, width)
        g, S, f = self.empty((pattern.nnz, h)), whole(S_ext, width), whole(F)
        launch("dynamic_slopes", n * WARP, *common, np.int32(0), f, S, whole(a), NULL, g)
        launch("dynamic_back_rows", n * width, *common, S, f, whole(a), g, whole(dT), whole(G))

    def dynamic_back_columns(self, pattern: CudaMatrix, F_ext: Array, S: Array, a: Array, dS: Array) -> None:
        """Add every entry's part of the gradient by S_j."""
        (n, width), launch = dS.shape, self.kernels.launch
        common, h = _entries(pattern, F_ext, width)
        w, g, s, f = self.empty((pattern.nnz, h)), self.empty((pattern.nnz, h)), whole(S), whole(F_ext)
        launch("dynamic_slopes", n * WARP, *common, np.int32(1), f, s, whole(a), w, g)
        launch("dynamic_back_columns", n * width, *common, f, s, whole(a), w, g, whole(dS))


def _by_heads(M: Array, width: int) -> tuple[Any, ...]:
    """Threads, rows, heads and columns of a head, of M [n, 2 h]."""
    n, h = len(M), M.shape[1] // 2
    return n * h, np.int64(n), np.int32(h), np.int32(width // h)


def _entries(pattern: CudaMatrix, F: Array, width: int) -> tuple[tuple[Any, ...], int]:
    """Rows, heads, columns of a head, offsets and columns of the entries; and the heads."""
    h = (F.shape[1] - 2 * width) // 3
    return (
        np.int64(len(pattern.indptr) - 1),
        *map(np.int32, (h, width // h)),
        pattern.indptr,
        pattern.indices,
    ), h
