"""A sparse matrix as the kernels of app/sparse/kernels read it."""

from typing import Any

import numpy as np

Array = Any
LONG = 4096  # stored entries: rows with more are summed by a block each, beside the others


class CudaMatrix:
    """CSR on the device: 64-bit row offsets, 32-bit columns.

    data    [nnz] float32, or None: all stored values are one, and take no memory
    long    [k] int64, the rows with more than LONG entries, the longest first; None: there are none
    long_host  the same on the host
    vendor  the same as a library's type, once one was asked for, or that there is none
    """

    vendor: Any = None

    def __init__(
        self,
        cp: Any,
        indptr: np.ndarray,
        indices: np.ndarray,
        data: np.ndarray | None,
        shape: tuple[int, int],
    ) -> None:
        self.shape, self.nnz = tuple(shape), len(indices)
        self.indptr = cp.asarray(np.ascontiguousarray(indptr, dtype=np.int64))
        self.indices = cp.asarray(np.ascontiguousarray(indices, dtype=np.int32))
        self.data = None if data is None else cp.asarray(np.ascontiguousarray(data, dtype=np.float32))
        counts = np.diff(indptr)
        rows = np.flatnonzero(counts > LONG)
        rows = rows[np.argsort(-counts[rows], kind="stable")].astype(np.int64)
        self.long_host, self.long = rows, cp.asarray(rows) if len(rows) else None
