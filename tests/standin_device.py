"""StandInDevice: the counterpart of app.cuda.CudaDevice on the stand-in for CuPy.

Its kernels take the host's portable chains, as those of the GPU do, and insist on what CUDA code takes for
granted: float32, row-major, row offsets of segments on the host. Their results are busy until `synchronize`.
"""

import numpy as np
import standin

from app.device import HostDevice
from app.numerics.aggregation import Aggregation
from app.numerics.attention import Attention
from app.numerics.distmult import DistMultProducts
from app.numerics.dynamic import DynamicAttention
from app.numerics.edge_attention import EdgeAttention
from app.numerics.edges import EdgeSums
from app.numerics.elementwise import Elementwise
from app.numerics.gates import Gates
from app.numerics.heads import HeadProducts
from app.numerics.pairs import PairProducts
from app.numerics.products import Products


class StandInDevice(
    Products, Elementwise, Attention, DynamicAttention, DistMultProducts, EdgeSums, EdgeAttention,
    HeadProducts,
    Gates,
    PairProducts,
    Aggregation,
):  # fmt: skip
    """A device whose arrays are standin.Array.

    direct   True: MPI is handed the memory of device arrays, through __cuda_array_interface__
    """

    name = "stand-in"
    xp = standin.xp
    portable = True

    def __init__(self, direct=False):
        self.direct = direct
        self._host = HostDevice(compiled=False)
        self._dense = (
            HostDevice()
        )  # by compiled kernels where there are some: the same bits (test_device.py), sooner

    def put(self, host):
        return standin.put(host)

    def get(self, array):
        if not array.flags.c_contiguous:
            array = self.xp.ascontiguousarray(array)
        self.synchronize()
        return array.get()

    def pinned(self, count):
        return np.full(count, np.nan, dtype=np.float32)

    def load(self, array, host):
        array.set(host)

    def store(self, host, array):
        array.get(out=host)

    def get_behind(self, host, array):
        array.get(out=host)
        return self.synchronize

    def set_ahead(self, array, host):
        array.set(host)
        return lambda: None

    def synchronize(self):
        standin.stream.synchronize()

    def csr(self, indptr, indices, data, shape):
        data = np.ones(len(indices), dtype=np.float32) if data is None else data
        return standin.sparse.csr_matrix(tuple(standin.put(a) for a in (data, indices, indptr)), shape)

    def spmm_add(self, A, X, Y, live=None):
        out = _memory(Y)
        if (A.shape[1], X.shape[1]) != (X.shape[0], Y.shape[1]) or A.shape[0] != Y.shape[0]:
            raise ValueError(f"spmm_add: {A.shape} times {X.shape} does not fit {Y.shape}")
        self._host.spmm_add(A._host, _memory(X), out)
        Y._write()

    def fold(self, starts, X):
        return _wrap(self._host.fold(_starts(starts, X), _memory(X)))

    def chains(self, X, W):
        return _wrap(self._dense.chains(_memory(X), np.ascontiguousarray(_float32(W))))

    def row_product(self, X, W):
        if X.shape[0] % 8:
            raise ValueError(f"row_product: {X.shape[0]} rows are not a multiple of 8")
        return _wrap(self._dense.row_product(_memory(X), np.ascontiguousarray(_float32(W))))

    def block_gram(self, X, D, starts):
        X, D = np.ascontiguousarray(_float32(X)), np.ascontiguousarray(_float32(D))
        for own in starts:
            _starts(own, X)
        return _wrap(self._dense.block_gram(X, D, starts))

    def describe(self):
        return "stand-in for a gpu"


def _float32(array):
    """The held host array of a device array of float32; the CUDA kernels would misread any other."""
    if not isinstance(array, standin.Array) or array.dtype != np.float32:
        raise TypeError(f"kernel: needs a float32 device array, got {type(array).__name__}")
    return standin.host(array)


def _memory(array):
    """_float32 of an array that must be row-major: the CUDA kernels take its address as it is."""
    held = _float32(array)
    if not held.flags.c_contiguous:
        raise TypeError("kernel: the operand must be row-major")
    return held


def _starts(starts, X):
    """Row offsets of segments: host integers, ascending, within X."""
    if not isinstance(starts, np.ndarray) or (np.diff(starts) < 0).any():
        raise TypeError("kernel: segments are given by ascending host integers")
    if len(starts) and (starts[0] < 0 or starts[-1] > X.shape[0]):
        raise ValueError(f"kernel: segments up to {starts[-1]} of {X.shape[0]} rows")
    return starts


def _wrap(result):
    """A newly written device array."""
    return standin.Array(result, standin.Memory())
