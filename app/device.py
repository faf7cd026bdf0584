"""The device of a rank, the host or a GPU: how it is opened, tested and measured."""

import time
from importlib import import_module
from typing import Any

import numpy as np

from app.cuda import compiler
from app.cuda.device import CudaDevice
from app.cuda.vendor import VendorDevice
from app.errors import CaseError, NumericsError
from app.native.device import HostDevice

OCTET_WIDTHS = (16, 16), (40, 16), (24, 32)  # columns of the operands that BLAS is tested with
TIMED_PRODUCTS = 3  # after one that is not


def check_octets(device: Any) -> None:
    """Test on this machine's BLAS what NUMERICS relies on: a row's bits do not depend on where it stands.

    Raises NumericsError, naming the way out, when the property does not hold; takes a millisecond.
    """
    xp = device.xp
    for k, m in OCTET_WIDTHS:
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


def product_rate(device: Any) -> float:
    """GB/s at which a sparse product of 16 columns gathers rows on this device; takes some milliseconds.

    The graph is a small fixed one, so this tells kernels and machines apart, not graphs.
    """
    n, degree = 1 << 14, 16
    rows = np.arange(n, dtype=np.int64)[:, None]
    columns = np.sort((rows * 9973 + np.arange(degree) ** 3 * 7919) % n, axis=1)
    indptr = np.arange(0, n * degree + 1, degree, dtype=np.int32)
    A = device.csr(indptr, columns.astype(np.int32).reshape(-1), None, (n, n))
    X, Y = (device.put(np.zeros((n, 16), dtype=np.float32)) for _ in range(2))
    seconds = []
    for _ in range(1 + TIMED_PRODUCTS):
        device.synchronize()
        start = time.perf_counter()
        device.spmm_add(A, X, Y)
        device.synchronize()
        seconds.append(time.perf_counter() - start)
    return n * degree * (4 + 64) / min(seconds[1:]) / 1e9


def open_device(
    wanted: str, rank: int, portable: bool, reproducible: bool = True, compiled: bool = True,
    replays: bool = False,
) -> Any:  # fmt: skip
    """The device of this rank.

    wanted                  "auto": a GPU where one can be used, else the host; "cpu"; "gpu" (an error where
                            there is none)
    rank                    of the ranks of this machine: they are dealt round-robin to its GPUs
    portable, reproducible, compiled   as run.portable, run.reproducible and run.kernels = "auto"
    replays                 a GPU may record repeated launches as a CUDA graph
    """
    if wanted != "cpu":
        found = open_gpu(rank, reproducible)
        if not isinstance(found, str):
            found.replays = replays
            return found
        if wanted == "gpu":
            raise CaseError(f"device gpu: {found}; use --device cpu or auto")
    return HostDevice(portable and reproducible, reproducible, compiled)


def open_gpu(local_rank: int, reproducible: bool = True) -> Any:
    """A GPU of this machine, or the reason why there is none.

    reproducible   False: sparse and dense products by cuSPARSE and cuBLAS
    """
    try:
        import cupy
    except ImportError as error:
        return f"CuPy cannot be imported ({compiler.first_line(error)})"
    try:
        if not cupy.cuda.is_available():
            return "CuPy finds no usable GPU"
        device = CudaDevice(cupy, local_rank) if reproducible else _open_vendor(cupy, local_rank)
        compiler.check(cupy)
        return device
    except (ImportError, RuntimeError) as error:  # a driver, a library or a GPU that does not work
        return f"CuPy cannot use the GPU ({compiler.first_line(error)})"


def _open_vendor(cupy: Any, local_rank: int) -> VendorDevice:
    """The device with cuSPARSE and cuBLAS, which our own kernels do without. Raises ImportError."""
    import cupyx.cusparse
    import cupyx.scipy.sparse

    import_module("cupy.cublas")  # else CuPy looks for the library in the first product
    return VendorDevice(cupy, cupyx, local_rank)
