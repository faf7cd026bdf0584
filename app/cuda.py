"""The GPU device: CuPy arrays and the kernels that keep the order of additions of app/device.py.

One thread makes one output element as one left-to-right chain, so no result depends on the number of rows, on
atomics or on a library's choice of algorithm. `--fmad=false`: multiply, then add, as on the host.
"""

from collections.abc import Callable
from typing import Any

import cupy as cp
import cupyx
import cupyx.scipy.sparse as cpsp
import numpy as np

from app.attention import Attention
from app.elementwise import Elementwise
from app.errors import NumericsError
from app.products import Products

Array = Any

SOURCE = r"""
extern "C" {
__global__ void spmm_add(const long long n, const int c, const long long* indptr, const int* indices,
                         const float* data, const float* X, float* Y) {
    long long t = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (t >= n * c) return;
    long long row = t / c;
    int col = t % c;
    float sum = Y[t];
    for (long long j = indptr[row]; j < indptr[row + 1]; ++j)
        sum += data[j] * X[(long long)indices[j] * c + col];
    Y[t] = sum;
}
__global__ void fold(const long long k, const int c, const long long* starts, const float* X, float* Y) {
    long long t = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (t >= k * c) return;
    long long seg = t / c;
    int col = t % c;
    float sum = 0.0f;
    for (long long r = starts[seg]; r < starts[seg + 1]; ++r) sum += X[r * c + col];
    Y[t] = sum;
}
__global__ void row_product(const long long r, const int k, const int m, const float* X, const float* W,
                            float* Y) {
    long long t = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (t >= r * m) return;
    long long row = t / m;
    int col = t % m;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += X[row * k + i] * W[i * m + col];
    Y[t] = sum;
}
__global__ void block_gram(const long long graphs, const long long b, const int k, const int m,
                           const long long* starts, const float* X, const float* D, float* Y) {
    long long t = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (t >= b * k * m) return;
    long long block = t / (k * m);
    int i = (t / m) % k;
    int j = t % m;
    float sum = 0.0f;
    for (long long g = 0; g < graphs; ++g) {
        const long long* s = starts + g * (b + 1) + block;
        for (long long r = s[0]; r < s[1]; ++r) sum += X[r * k + i] * D[r * m + j];
    }
    Y[t] = sum;
}
}
"""
THREADS = 256


def available() -> bool:
    """True where the driver and a device answer."""
    return bool(cp.cuda.is_available())


class CudaDevice(Products, Elementwise, Attention):
    """One GPU; several ranks of a machine share its GPUs round-robin."""

    name = "gpu"
    product = "a kernel of one thread per element"
    xp = cp
    portable = True  # the kernels' chains are those of the portable host path

    def __init__(self, rank: int) -> None:
        self.index = rank % cp.cuda.runtime.getDeviceCount()
        cp.cuda.Device(self.index).use()
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.stream.use()
        self._copies = cp.cuda.Stream(non_blocking=True)
        self.direct = False  # Group asks the MPI library whether it may read device memory
        module = cp.RawModule(code=SOURCE, options=("--fmad=false",))
        self._kernel = {
            name: module.get_function(name) for name in ("spmm_add", "fold", "row_product", "block_gram")
        }

    def put(self, host: np.ndarray) -> Array:
        """A copy of the host array on this GPU."""
        return cp.asarray(host)

    def get(self, array: Array) -> np.ndarray:
        """A copy of the array on the host; waits for the device."""
        return cp.asnumpy(array, stream=self.stream)

    def pinned(self, count: int) -> np.ndarray:
        """[count] float32 on the host, page-locked: copies to and from it need not wait for the processor."""
        return cupyx.empty_pinned((count,), dtype=np.float32)

    def set_ahead(self, array: Array, host: np.ndarray) -> Callable[[], None]:
        """Begin to copy a host array into a device array, beside what is computed meanwhile.

        It starts when all that was issued so far is done; the function that is returned lets whatever is
        issued later wait for its end.
        """
        self._copies.wait_event(self.stream.record())
        array.set(host, stream=self._copies)
        done = self._copies.record()
        return lambda: self.stream.wait_event(done)

    def synchronize(self) -> None:
        """Wait until the stream is idle; called before every MPI call."""
        self.stream.synchronize()

    def csr(
        self, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray | None, shape: tuple[int, int]
    ) -> Any:
        """A CSR matrix on this GPU from host arrays (no data: all values one).

        Row offsets are kept as int64 beside it for the kernels.
        """
        values = cp.ones(len(indices), dtype=cp.float32) if data is None else cp.asarray(data)
        A = cpsp.csr_matrix((values, cp.asarray(indices), cp.asarray(indptr)), shape=shape)
        A.row_offsets = cp.asarray(indptr, dtype=cp.int64)
        return A

    def _launch(self, name: str, size: int, *arguments: Any) -> None:
        for operand in arguments:
            if isinstance(operand, cp.ndarray) and not operand.flags.c_contiguous:
                raise NumericsError(f"{name}: operands must be row-major")
        if size:
            self._kernel[name](((size + THREADS - 1) // THREADS,), (THREADS,), arguments)

    def spmm_add(self, A: Any, X: Array, Y: Array, live: Array | None = None) -> None:
        """Y += A X; see HostDevice.spmm_add."""
        n, c = Y.shape
        indices = A.indices.astype(cp.int32, copy=False)
        self._launch("spmm_add", n * c, np.int64(n), np.int32(c), A.row_offsets, indices, A.data, X, Y)

    def fold(self, starts: np.ndarray, X: Array) -> Array:
        """Sums of consecutive rows; see HostDevice.fold."""
        k, c = len(starts) - 1, X.shape[1]
        out = cp.empty((k, c), dtype=cp.float32)
        self._launch("fold", k * c, np.int64(k), np.int32(c), cp.asarray(starts, dtype=cp.int64), X, out)
        return out

    def row_product(self, X: Array, W: Array) -> Array:
        """X W; see HostDevice.row_product."""
        (r, k), m = X.shape, W.shape[1]
        out = cp.empty((r, m), dtype=cp.float32)
        W = cp.ascontiguousarray(W)
        self._launch("row_product", r * m, np.int64(r), np.int32(k), np.int32(m), X, W, out)
        return out

    def block_gram(self, X: Array, D: Array, starts: np.ndarray) -> Array:
        """X^T D by blocks of rows; see HostDevice.block_gram."""
        k, m = X.shape[1], D.shape[1]
        graphs, b = starts.shape[0], starts.shape[1] - 1
        out = cp.empty((b, k * m), dtype=cp.float32)
        starts = cp.asarray(starts, dtype=cp.int64)
        X, D = cp.ascontiguousarray(X), cp.ascontiguousarray(D)
        sizes = np.int64(graphs), np.int64(b), np.int32(k), np.int32(m)
        self._launch("block_gram", b * k * m, *sizes, starts, X, D, out)
        return out

    def describe(self) -> str:
        """One line for the log."""
        name = cp.cuda.runtime.getDeviceProperties(self.index)["name"].decode()
        return f"gpu {self.index} ({name}), CuPy {cp.__version__}"
