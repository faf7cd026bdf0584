"""The GPU device: CuPy arrays, and the kernels that keep the order of additions of app/native/device.py.

CuPy itself is handed in by app/device.py, and is imported nowhere else.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.cuda.changes import CudaChanges
from app.cuda.compiler import OPTIONS
from app.cuda.dynamic import CudaDynamicAttention
from app.cuda.edges import CudaEdgeAttention, CudaEdgeSums
from app.cuda.graph import Captured, NotCapturable, call_plainly
from app.cuda.kernels import Kernels
from app.cuda.matrix import CudaMatrix
from app.cuda.products import CudaProducts
from app.cuda.rows import CudaAttention, CudaElementwise, CudaPairs
from app.cuda.staging import PinnedRing, row_major
from app.numerics.aggregation import Aggregation
from app.numerics.distmult import DistMultProducts
from app.numerics.gates import Gates
from app.numerics.heads import HeadProducts

Array = Any


@dataclass(frozen=True)
class Streams:
    """The streams of one GPU in this process.

    cp       the module cupy, held so that nothing else can take its place in SHARED
    kernels  what kernels and most copies go to; copies: see CudaDevice
    """

    cp: Any
    kernels: Any
    copies: Any


SHARED: dict[tuple[int, int], Streams] = {}  # by the module and the GPU


def streams_of(cp: Any, index: int) -> Streams:
    """The same streams for all devices of this process on one GPU, which must be the current one.

    CuPy has one current stream in a thread: were each device's its own, the kernels of one would go to the
    stream of the other, which its copies do not wait for.
    """
    key = id(cp), index
    if key not in SHARED:
        SHARED[key] = Streams(cp, *(cp.cuda.Stream(non_blocking=True) for _ in range(2)))
    return SHARED[key]


class CudaDevice(
    CudaChanges, CudaProducts, CudaElementwise, CudaAttention, CudaDynamicAttention, CudaPairs,
    DistMultProducts, CudaEdgeSums, CudaEdgeAttention, HeadProducts, Aggregation, Gates,
):  # fmt: skip
    """One GPU; several ranks of a machine may share it.

    cp            the module cupy
    local_rank    of the ranks of this machine: they are dealt round-robin to its GPUs
    replays       True: repeated work may be replayed as a CUDA graph (run.cuda_graph)
    Kernels run on one non-blocking stream, `stream`. Copies that may overlap them run on another, which the
    two wait for by events. All devices of a process on one GPU share both.
    """

    name = "gpu"
    product = "own kernels, a sub-warp to a row"
    portable = True  # the kernels' chains are those of the portable host path
    reproducible = True

    def __init__(self, cp: Any, local_rank: int = 0) -> None:
        super().__init__()
        self.xp = self._cp = cp
        self.count = cp.cuda.runtime.getDeviceCount()
        self.index = local_rank % self.count
        cp.cuda.Device(self.index).use()
        streams = streams_of(cp, self.index)
        self.stream, self._copies = streams.kernels, streams.copies
        self.stream.use()
        self.replays = False
        self.direct = False  # app/comm/transport.py finds out whether MPI may read device memory
        self.kernels = Kernels(cp)
        self.ring = PinnedRing(self._pinned_bytes, self.stream)

    # ---- repeated work ------------------------------------------------------------------------------------

    def repeated(self) -> Callable[[list[Array], Callable[[], Any]], Any]:
        """What does work that is done again and again in the same memory; see Captured."""
        return Captured(self) if self.replays else call_plainly

    @contextmanager
    def recording(self) -> Iterator[list[Any]]:
        """What is launched inside is recorded, not done; yields what holds the arrays that it was handed."""
        self.kernels.held = held = []
        try:
            yield held
        finally:
            self.kernels.held = None

    def _must_not_record(self, what: str) -> None:
        """Refuse what a recorded sequence of launches cannot repeat. Raises NotCapturable."""
        if self.kernels.held is not None:
            raise NotCapturable(what)

    # ---- arrays -------------------------------------------------------------------------------------------

    def put(self, host: np.ndarray) -> Array:
        """A copy of the host array on this GPU."""
        self._must_not_record("a copy from the host")
        return self._cp.asarray(host)

    def get(self, array: Array) -> np.ndarray:
        """A copy of the array on the host; waits for the device."""
        self._must_not_record("a copy to the host")
        if not array.flags.c_contiguous:  # CuPy would go on with the default stream after it
            array = self._cp.ascontiguousarray(array)
        host = self._cp.asnumpy(array, stream=self.stream)
        self.stream.synchronize()
        return host

    def load(self, array: Array, host: np.ndarray) -> None:
        """Begin to copy host memory into a device array, in the order of the kernels."""
        self._must_not_record("a copy from the host")
        array.set(host, stream=self.stream)

    def store(self, host: np.ndarray, array: Array) -> None:
        """Copy a row-major device array into host memory; waits for the device. Raises ValueError."""
        self._must_not_record("a copy to the host")
        row_major(host)
        row_major(array).get(stream=self.stream, out=host)
        self.stream.synchronize()

    def csr(
        self, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray | None, shape: tuple[int, int]
    ) -> CudaMatrix:
        """A CSR matrix on this GPU from host arrays (no data: all values one)."""
        return CudaMatrix(self._cp, indptr, indices, data, shape)

    def pinned(self, count: int) -> np.ndarray:
        """[count] float32 on the host, page-locked: copies to and from it need not wait for the processor."""
        return self._pinned_bytes(4 * count).view(np.float32)

    def _pinned_bytes(self, size: int) -> np.ndarray:
        cuda = self._cp.cuda
        try:
            # Not of CuPy's pool: it rounds up to a power of two, keeps what is given back, and hands that out
            # again while a copy may still be under way.
            held = cuda.PinnedMemory(max(size, 1), cuda.runtime.hostAllocPortable)
        except RuntimeError as error:  # of device memory CuPy makes a MemoryError itself
            if "cudaErrorMemoryAllocation" not in str(error):
                raise
            raise MemoryError(f"{size:,} bytes of page-locked host memory") from error
        return np.frombuffer(cuda.PinnedMemoryPointer(held, 0), np.uint8, size)

    def memory(self) -> dict[str, int]:
        """Bytes of this GPU: used by arrays here, held by the pool, free and total on the device."""
        pool = self._cp.get_default_memory_pool()
        free, total = self._cp.cuda.runtime.memGetInfo()
        return {"used": pool.used_bytes(), "held": pool.total_bytes(), "free": free, "total": total}

    # ---- order --------------------------------------------------------------------------------------------

    def synchronize(self) -> None:
        """Wait until the stream is idle; called before every MPI call."""
        self._must_not_record("the host waits")
        self.stream.synchronize()

    def set_ahead(self, array: Array, host: np.ndarray) -> Callable[[], None]:
        """Begin to copy a host array into a device array, beside what is computed meanwhile.

        It starts when all that was issued so far is done; the function that is returned lets whatever is
        issued later wait for its end.
        """
        self._must_not_record("a copy from the host")
        self._copies.wait_event(self.stream.record())
        array.set(host, stream=self._copies)
        done = self._copies.record()
        return lambda: self.stream.wait_event(done)

    def get_behind(self, host: np.ndarray, array: Array) -> Callable[[], None]:
        """Begin to copy a row-major device array, which nobody changes meanwhile, into host memory.

        It runs beside what follows and starts when all that was issued so far is done; the function that is
        returned lets whatever is issued later wait for its end, `synchronize` after it the host.
        Raises ValueError.
        """
        self._must_not_record("a copy to the host")
        row_major(host)
        self._copies.wait_event(self.stream.record())
        row_major(array).get(stream=self._copies, out=host, blocking=False)
        done = self._copies.record()
        return lambda: self.stream.wait_event(done)

    # ---- staging ------------------------------------------------------------------------------------------

    def stage_out(self, slot: str, X: Array) -> np.ndarray:
        """The array on the host, in page-locked memory that the next call with this slot gets too."""
        self._must_not_record("a copy to the host")
        return self.ring.out(slot, X)

    def stage_buffer(self, slot: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Page-locked host memory to receive into, for stage_in."""
        return self.ring.buffer(slot, shape, dtype)

    def stage_in(self, slot: str, host: np.ndarray) -> Array:
        """A received buffer on the device; the copy may still be under way when this returns."""
        self._must_not_record("a copy from the host")
        return self.ring.into(slot, host, self._cp.empty(host.shape, dtype=host.dtype))

    def describe(self) -> str:
        """One line for the log."""
        cp = self._cp
        about = cp.cuda.runtime.getDeviceProperties(self.index)
        name, memory = about["name"].decode(), about["totalGlobalMem"] / 2**30
        place = f"gpu {self.index} of {self.count} ({name}, {memory:.0f} GiB)"
        return f"{place}, CuPy {cp.__version__}, {' '.join(OPTIONS[:2])}"
