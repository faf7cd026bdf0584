"""Dynamic attention by the kernels of dynamic.cu: the operations of app/numerics/dynamic.py."""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.cuda.kernels import NULL, Kernels, whole
from app.cuda.matrix import Pattern, edged
from app.numerics.dynamic import DynamicAttention

Array = Any
WARP = 32


class CudaDynamicAttention(DynamicAttention):
    """Dynamic attention: what every entry adds, then sums of rows; arrays are float32 and row-major.

    Where entries have rows of their own, Q [nnz, h k], kernels of the same names read these too.
    """

    kernels: Kernels
    empty: Callable[..., Array]

    def dynamic_begin(self, M: Array, V: Array) -> None:
        """Sums of nothing."""
        n, h = len(M), M.shape[1] // 2
        self.kernels.launch("dynamic_begin", n * h, np.int64(n), np.int32(h), whole(M))
        V.fill(0)

    def dynamic_add(
        self, pattern: Pattern, S_ext: Array, T: Array, a: Array, M: Array, V: Array, Q: Array | None = None
    ) -> None:
        """Add every entry's w and w S_j."""
        (n, width), h, launch = V.shape, M.shape[1] // 2, self.kernels.launch
        E, old = self.empty((pattern.nnz, h)), self.empty((pattern.nnz, h))
        sizes, S, v = (np.int64(n), *map(np.int32, (h, width // h))), whole(S_ext, width), whole(V)
        entries = pattern.indptr, pattern.indices
        name, rows = edged("dynamic_scores", pattern, Q, width)
        launch(name, n * WARP, *sizes, *entries, *rows, S, whole(T, width), whole(a), E)
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
        self, pattern: Pattern, S_ext: Array, F: Array, a: Array, dT: Array, G: Array, Q: Array | None = None
    ) -> None:
        """Add every entry's part of the gradients by T_i, and by a as far as it is row i's; Q becomes the
        gradient by it."""
        (n, width), launch = dT.shape, self.kernels.launch
        common, h = _entries(pattern, F, width)
        g, S, f = self.empty((pattern.nnz, h)), whole(S_ext, width), whole(F)
        name, rows = edged("dynamic_slopes", pattern, Q, width)
        launch(name, n * WARP, *common, np.int32(0), *rows, f, S, whole(a), NULL, g)
        name, rows = edged("dynamic_back_rows", pattern, Q, width)
        launch(name, n * width, *common, *rows, S, f, whole(a), g, whole(dT), whole(G))

    def dynamic_back_columns(
        self, pattern: Pattern, F_ext: Array, S: Array, a: Array, dS: Array, Q: Array | None = None
    ) -> None:
        """Add every entry's part of the gradient by S_j."""
        (n, width), launch = dS.shape, self.kernels.launch
        common, h = _entries(pattern, F_ext, width)
        w, g, s, f = self.empty((pattern.nnz, h)), self.empty((pattern.nnz, h)), whole(S), whole(F_ext)
        name, rows = edged("dynamic_slopes", pattern, Q, width)
        launch(name, n * WARP, *common, np.int32(1), *rows, f, s, whole(a), w, g)
        name, rows = edged("dynamic_back_columns", pattern, Q, width)
        launch(name, n * width, *common, *rows, f, s, whole(a), w, g, whole(dS))


def _by_heads(M: Array, width: int) -> tuple[Any, ...]:
    """Threads, rows, heads and columns of a head, of M [n, 2 h]."""
    n, h = len(M), M.shape[1] // 2
    return n * h, np.int64(n), np.int32(h), np.int32(width // h)


def _entries(pattern: Pattern, F: Array, width: int) -> tuple[tuple[Any, ...], int]:
    """Rows, heads, columns of a head, offsets and columns of the entries; and the heads."""
    h = (F.shape[1] - 2 * width) // 3
    return (
        np.int64(len(pattern.indptr) - 1),
        *map(np.int32, (h, width // h)),
        pattern.indptr,
        pattern.indices,
    ), h
