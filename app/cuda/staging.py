"""Pinned host memory that device arrays pass through where MPI cannot read the device: a ring of buffers."""

from typing import Any

import numpy as np

Array = Any


def row_major(array: Array) -> Array:
    """The array. Raises ValueError where it is not row-major.

    CuPy copies any other through a temporary one, and goes on with the default stream after it.
    """
    if not array.flags.c_contiguous:
        raise ValueError(f"a copy to the host of {array.shape} by strides {array.strides}: not row-major")
    return array


class PinnedRing:
    """Page-locked buffers, each by a name, and what the device still does with them.

    A copy to or from page-locked memory runs while the host does something else. So a buffer remembers the
    event after its last copy to the device, and whoever writes into it waits for that first. Buffers grow to
    the largest request and are kept: steady state allocates nothing.

    make     (bytes) -> page-locked host memory of so many bytes, as uint8
    stream   the stream of the kernels: copies are in its order
    """

    def __init__(self, make: Any, stream: Any) -> None:
        self._make, self._stream = make, stream
        self._held: dict[str, np.ndarray] = {}
        self._done: dict[str, Any] = {}

    def buffer(self, slot: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Host memory that may be written now; waits for the device's last use of it."""
        self._wait(slot)
        dtype = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        held = self._held.get(slot)
        if held is None or len(held) < size:
            self._held.pop(slot, None)  # the old memory may go before the new one comes
            self._held[slot] = held = self._make(size)
        return held[:size].view(dtype).reshape(shape)

    def out(self, slot: str, X: Array) -> np.ndarray:
        """A copy of a device array on the host, complete when this returns. Raises ValueError."""
        host = self.buffer(slot, row_major(X).shape, X.dtype)
        X.get(stream=self._stream, out=host)
        self._stream.synchronize()
        return host

    def into(self, slot: str, host: np.ndarray, X: Array) -> Array:
        """Begin to copy a buffer of this slot to the device: later kernels of the stream see it whole."""
        X.set(host, stream=self._stream)
        self._done[slot] = self._stream.record()
        return X

    def _wait(self, slot: str) -> None:
        event = self._done.pop(slot, None)
        if event is not None:
            event.synchronize()
