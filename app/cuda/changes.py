"""Products of some rows, and what is kept of them, by the kernels spmm.cu and changes.cu."""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.cuda.kernels import NULL, Kernels, vector, whole
from app.cuda.matrix import CudaMatrix
from app.cuda.products import SPAN

Array = Any
WORTHWHILE = 512  # stored entries: of a few rows, those with more take a block each, and two lists of them


class CudaChanges:
    """What scores that follow the selections need of a device (app/rl/incremental_device.py).

    Lists of rows are given on the host or as `numbers`, the same on the device, int32 and distinct.
    """

    follows_rows = True
    kernels: Kernels
    put: Callable[[np.ndarray], Array]
    empty: Callable[[tuple[int, ...]], Array]

    def spmm_rows(self, A: CudaMatrix, rows: np.ndarray, numbers: Array, X: Array) -> Array:
        """[k, c], some rows of A X, each the chain over its stored entries.

        rows   [k] on the host     numbers [k] the same on the device     X [m, c]
        """
        k, c = len(rows), whole(X).shape[1]
        N = self.empty((k, c))
        common = A.indptr, A.indices, vector(A.data, A.nnz), X
        four = not c % 4 and not X.data.ptr % 16
        wide = c // 4 if four else c
        lanes = min(1 << max(wide - 1, 0).bit_length(), 32)
        self.kernels.launch(
            "spmm_rows_4" if four else "spmm_rows", k * lanes, np.int64(k), np.int32(c), *common,
            vector(numbers, k, np.int32), N, np.int32(WORTHWHILE), np.int32(lanes), across=-(-wide // lanes),
        )  # fmt: skip
        places = np.flatnonzero(A.counts[rows] > WORTHWHILE)
        if len(places):
            sizes, rest = (
                (np.int64(k), np.int32(c), np.int32(c)),
                (np.int64(c), NULL, np.int32(1), NULL, NULL),
            )
            lists = (self.put(each.astype(np.int64)) for each in (rows[places], places))
            name, across = "spmm_long_4" if four else "spmm_long", -(-c // SPAN)
            self.kernels.launch_blocks(name, len(places), *sizes, *common, N, *rest, *lists, across=across)
        return N

    def place_rows(self, X: Array, numbers: Array, rows: Array) -> None:
        """X[numbers] = rows, both of c columns."""
        k, c = rows.shape
        operands = vector(numbers, k, np.int32), whole(rows), whole(X, c)
        self.kernels.launch("place_rows", k * c, np.int64(k), np.int32(c), *operands)

    def clear_rows(self, X: Array, numbers: Array) -> None:
        """X[:, numbers] = 0, X [layers, n, c] contiguous."""
        k, (layers, n, c) = numbers.shape[0], X.shape
        sizes = np.int64(k), np.int32(layers), np.int64(n), np.int32(c)
        flat = vector(X.reshape(-1), layers * n * c)
        self.kernels.launch("clear_rows", k * layers * c, *sizes, vector(numbers, k, np.int32), flat)

    def place_keys(
        self, keys: Array, numbers: Array, code: Array, lo: int, first: int, scores: Array | None
    ) -> None:
        """keys[numbers] = those of the scores at nodes lo + numbers, 0 where code is below `first`; without
        scores 0 everywhere."""
        k = numbers.shape[0]
        lists = vector(numbers, k, np.int32), vector(code, k, np.int32)
        sizes = np.int64(k), np.int64(lo)
        keys = vector(keys, None, np.uint64)
        self.kernels.launch("place_keys", k, *sizes, *lists, np.int32(first), vector(scores, k), keys)
