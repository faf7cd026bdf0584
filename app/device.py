"""Device: where arrays live and the few kernels whose order of additions defines the result.

Every kernel adds in a documented left-to-right order, so that a row's bits depend on that row alone: not on
how many rows the call has, nor on the rank or the position it is computed at (docs/architecture.md).
"""

from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import _sparsetools

from app.errors import CaseError, NumericsError

Array = Any  # a NumPy array on the host, a CuPy array on a GPU
OCTET = 8  # rows of one dense product: with 8 a row's bits do not depend on its neighbours


class HostDevice:
    """NumPy and SciPy on one core of the host.

    portable   True: every product is one float32 chain (multiply, then add), without BLAS: the same bits on
               other processors too, at two to five times the time of a step
    reproducible  False: one BLAS call for a whole product; a row's bits then depend on the number of rows
    """

    name = "cpu"
    xp: ModuleType = np
    direct = True  # MPI may read and write these arrays where they are

    def __init__(self, portable: bool = False, reproducible: bool = True) -> None:
        self.portable, self.reproducible = portable, reproducible
        self._ramp = np.arange(0, dtype=np.int32)
        self._ones = np.ones(0, dtype=np.float32)

    def put(self, host: np.ndarray) -> Array:
        """The array on this device; here the very same array."""
        return host

    def get(self, array: Array) -> np.ndarray:
        """The array on the host; here the very same array."""
        return array

    def synchronize(self) -> None:
        """Wait for the device; nothing to wait for on the host."""

    def csr(self, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, shape: tuple[int, int]) -> Any:
        """A CSR matrix on this device from host arrays; data is float32."""
        return sp.csr_array((data, indices, indptr), shape=shape, copy=False)

    def spmm_add(self, A: Any, X: Array, Y: Array) -> None:
        """Y += A X, each entry a chain over the row's entries in stored order.

        A   [n, m] CSR   X [m, c]   Y [n, c], all float32, X and Y row-major
        """
        _csr_chain(A.shape[0], A.shape[1], A.indptr, A.indices, A.data, X, Y)

    def fold(self, starts: np.ndarray, X: Array) -> Array:
        """Sums of consecutive rows: out[i] = X[starts[i]] + X[starts[i]+1] + ..., from the left.

        starts   [k+1] host integers, ascending     X [m, c] float32 row-major
        returns  [k, c]; an empty segment is zero
        """
        out = np.zeros((len(starts) - 1, X.shape[1]), dtype=np.float32)
        indptr = np.ascontiguousarray(starts, dtype=np.int32)
        _csr_chain(len(starts) - 1, X.shape[0], indptr, self.ramp(X.shape[0]), self.ones(X.shape[0]), X, out)
        return out

    def row_product(self, X: Array, W: Array) -> Array:
        """X W in blocks of 8 rows, so that a row's bits depend on that row and W alone.

        X   [r, k], r a multiple of 8     W [k, m]
        returns [r, m] row-major
        """
        r, k = X.shape
        m = W.shape[1]
        if self.portable:
            out = np.zeros((r, m), dtype=np.float32)
            indptr = np.arange(0, r * k + 1, k, dtype=np.int64)
            indices = np.broadcast_to(np.arange(k, dtype=np.int64), (r, k)).reshape(-1)
            _csr_chain(r, k, indptr, indices, X.reshape(-1), W, out)
            return out
        if not self.reproducible:
            return np.matmul(X, W)
        if m == 1:  # BLAS would take a matrix-vector path
            return (X * W[:, 0]).sum(axis=1, keepdims=True)
        if k == 1:
            return X * W
        return np.matmul(X.reshape(-1, OCTET, k), W).reshape(r, m)

    def block_gram(self, X: Array, D: Array, starts: np.ndarray) -> Array:
        """X^T D, one addend for each block of rows.

        X   [r, k]   D [r, m]   starts [b+1] host integers, multiples of 8
        returns [b, k*m]; an empty block is zero
        """
        k, m = X.shape[1], D.shape[1]
        blocks = len(starts) - 1
        if self.portable:
            return self._chained_gram(X, D, starts)
        out = np.zeros((blocks, k, m), dtype=np.float32)
        rows = np.diff(starts)
        filled = np.flatnonzero(rows)
        # Blocks of equal length that follow each other go in one batched product.
        breaks = np.flatnonzero(np.diff(rows[filled])) + 1
        edges = [0, *breaks.tolist(), len(filled)]
        for a, b in pairwise(edges):
            if a == b:
                continue
            lo, hi, length = starts[filled[a]], starts[filled[b - 1] + 1], rows[filled[a]]
            Xb = X[lo:hi].reshape(b - a, length, k).transpose(0, 2, 1)
            out[filled[a:b]] = np.matmul(Xb, D[lo:hi].reshape(b - a, length, m))
        return out.reshape(blocks, k * m)

    def _chained_gram(self, X: Array, D: Array, starts: np.ndarray) -> Array:
        """block_gram as one chain over the rows of each block, in row order."""
        r, k = X.shape
        blocks = len(starts) - 1
        block_of = np.repeat(np.arange(blocks, dtype=np.int64), np.diff(starts))
        indices = (block_of[:, None] * k + np.arange(k)).reshape(-1)
        indptr = np.arange(0, r * k + 1, k, dtype=np.int64)
        out = np.zeros((blocks * k, D.shape[1]), dtype=np.float32)
        flat = np.ascontiguousarray(X).reshape(-1)
        D = np.ascontiguousarray(D)
        _sparsetools.csc_matvecs(
            blocks * k, r, D.shape[1], indptr, indices, flat, D.reshape(-1), out.reshape(-1)
        )
        return out.reshape(blocks, k * D.shape[1])

    def ramp(self, m: int) -> np.ndarray:
        """[m] int32: 0, 1, ..., m-1 (a shared buffer: read only)."""
        if len(self._ramp) < m:
            self._ramp = np.arange(max(m, 2 * len(self._ramp)), dtype=np.int32)
        return self._ramp[:m]

    def ones(self, m: int) -> np.ndarray:
        """[m] float32 ones (a shared buffer: read only)."""
        if len(self._ones) < m:
            self._ones = np.ones(max(m, 2 * len(self._ones)), dtype=np.float32)
        return self._ones[:m]

    def describe(self) -> str:
        """One line for the log."""
        return "cpu, NumPy " + np.__version__ + (", portable products" if self.portable else "")


def _csr_chain(
    n: int, m: int, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, X: np.ndarray, Y: np.ndarray
) -> None:
    """Y += CSR X through SciPy's kernel, which adds in stored order and into its output."""
    if not (X.flags.c_contiguous and Y.flags.c_contiguous):
        raise NumericsError("sparse product: operands must be row-major")
    _sparsetools.csr_matvecs(n, m, X.shape[1], indptr, indices, data, X.reshape(-1), Y.reshape(-1))


def check_octets(device: Any, widths: tuple[tuple[int, int], ...] = ((16, 16), (40, 16), (24, 32))) -> None:
    """Test on this machine's BLAS what NUMERICS relies on: a row's bits do not depend on where it stands.

    Raises NumericsError, naming the way out, when the property does not hold; takes a millisecond.
    """
    xp = device.xp
    for k, m in widths:
        X = device.put(np.sin(np.arange(64 * k, dtype=np.float32)).reshape(64, k).astype(np.float32))
        W = device.put(np.cos(np.arange(k * m, dtype=np.float32)).reshape(k, m).astype(np.float32))
        whole = device.row_product(X, W)
        shifted = device.row_product(xp.ascontiguousarray(X[24:40]), W)
        rolled = device.row_product(xp.concatenate([X[1:], X[:1]]), W)
        same = (whole[24:40] == shifted).all() & (whole[1:] == rolled[:-1]).all()
        if not bool(same):
            raise NumericsError(
                "this BLAS gives a row different bits at different positions: set run.portable=true"
            )


def open_device(wanted: str, rank: int, portable: bool, reproducible: bool = True) -> Any:
    """The device of this rank.

    wanted   "auto": a GPU where one can be used, else the host; "cpu"; "gpu" (an error where there is none)
    rank     ranks of one machine are dealt round-robin to its GPUs
    """
    if wanted != "cpu":
        reason = "CuPy is not installed"
        try:
            from app import cuda

            if cuda.available():
                return cuda.CudaDevice(rank)
            reason = "CuPy finds no usable GPU"
        except ImportError:
            pass
        if wanted == "gpu":
            raise CaseError(f"device gpu: {reason}; use --device cpu or auto")
    return HostDevice(portable, reproducible)
