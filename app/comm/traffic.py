"""Traffic: what a group's calls have in common: the memory that MPI reads and writes, and what is counted."""

import time
from typing import Any

import numpy as np
from mpi4py import MPI

from app.errors import NumericsError
from app.native.library import aligned
from app.watchdog import wait_begins, wait_ends

Array = Any


class Traffic:
    """Buffers and counters of a Group, which sets these attributes."""

    comm: MPI.Comm
    device: Any
    rank: int
    size: int
    direct: bool
    reproducible: bool
    prefix: str
    calls: int
    sent_bytes: dict[str, int]
    seconds: dict[str, float]
    processor_s: float | None
    _scratch: dict[tuple[str, str], Array]

    def scratch(self, slot: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """An unset row-major device array, in memory that the next call with this slot gets too.

        The memory grows to the largest request and is kept: steady state allocates nothing.
        """
        return self._scratch_on(self.device.xp, slot, shape, dtype)

    def _scratch_on(self, xp: Any, slot: str, shape: tuple[int, ...], dtype: Any) -> Array:
        size, key = int(np.prod(shape)), (slot, np.dtype(dtype).char)
        held = self._scratch.get(key)
        if held is None or held.shape[0] < size:
            self._scratch.pop(key, None)  # the old memory may go before the new one comes
            held = None
            self._scratch[key] = held = (aligned if xp is np else xp.empty)((size,), dtype=dtype)
        return held[:size].reshape(shape)

    def _outgoing(self, X: Array, slot: str = "send") -> Array:
        """A row-major buffer that MPI may read now: device memory, or its copy on the host.

        slot   names the copy's memory, which the next call with it gets too
        """
        if not X.flags.c_contiguous:
            raise NumericsError("communication: the buffer must be row-major")
        if not self.direct:
            return self._staged(X, slot)
        self.device.synchronize()
        return X

    def _staged(self, X: Array, slot: str = "send") -> np.ndarray:
        """The host copy of a device array."""
        self.device.synchronize()
        return self.device.stage_out(slot, X)

    def _receive_buffer(self, send: np.ndarray, rows: int) -> np.ndarray:
        """Host memory for as many rows as those of `send`, on their way to the device."""
        return self.device.stage_buffer("receive", (rows, *send.shape[1:]), send.dtype)

    def _incoming(self, received: Array, slot: str = "receive") -> Array:
        """What MPI wrote, on the device."""
        return received if self.direct else self.device.stage_in(slot, received)

    def _empty_like(self, send: Array, rows: int) -> Array:
        """A receive buffer where `send` lives."""
        shape = (rows, *send.shape[1:])
        if isinstance(send, np.ndarray):
            return np.empty(shape, dtype=send.dtype)
        receive = self.device.xp.empty(shape, dtype=send.dtype)
        # A memory pool may hand out what a queued kernel still reads or writes.
        self.device.synchronize()
        return receive

    def _count(self, phase: str, nbytes: int) -> None:
        phase = self.prefix + phase
        self.sent_bytes[phase] = self.sent_bytes.get(phase, 0) + int(nbytes)
        self.calls += 1


class Clock:
    """Adds the time spent inside to group.seconds[phase]; the watchdog knows that this rank waits."""

    def __init__(self, group: Traffic, phase: str) -> None:
        self.group, self.phase = group, group.prefix + phase

    def __enter__(self) -> None:
        if self.group.processor_s is not None:
            self.group.processor_s -= time.process_time()
        wait_begins()
        self.start = time.perf_counter()

    def __exit__(self, *exc: object) -> None:
        wait_ends()
        if self.group.processor_s is not None:
            self.group.processor_s += time.process_time()
        seconds = self.group.seconds
        seconds[self.phase] = seconds.get(self.phase, 0.0) + time.perf_counter() - self.start


def mpi_type(array: Array) -> MPI.Datatype:
    """What MPI calls the type of an array's elements."""
    return MPI.Datatype.fromcode(array.dtype.char)


def octets(array: np.ndarray) -> np.ndarray:
    """A host array row-major; texts of one length, which MPI has no type for, as bytes [k, length]."""
    array = np.ascontiguousarray(array)
    return array.view(np.uint8).reshape(-1, array.itemsize) if array.dtype.kind == "S" else array


def typed(array: np.ndarray, kind: np.dtype) -> np.ndarray:
    """What `octets` made of texts as texts again."""
    return array.reshape(-1).view(kind) if kind.kind == "S" else array


def row_size(X: Array) -> int:
    """Elements in one row."""
    width = 1
    for extent in X.shape[1:]:
        width *= extent
    return width


def offsets(sizes: list[int]) -> list[int]:
    """Where parts of these sizes begin, one behind the other."""
    out = [0]
    for size in sizes[:-1]:
        out.append(out[-1] + size)
    return out
