"""The slow tier: a file on disk, or memory of the host; and the copies between it and the fast tier."""

import mmap
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from app.errors import CaseError

Array = Any
PAGE = mmap.ALLOCATIONGRANULARITY


class FileTier:
    """Tensors in a file that has no name: it is gone with the process, however that ends.

    Its pages are given back after every copy, so that they count as the system's cache, not as this process.
    """

    def __init__(self, sizes: dict[str, int], folder: str = "") -> None:
        """sizes: bytes by name, multiples of 4; folder "": the system's folder for temporary files."""
        self._at: dict[str, tuple[int, int]] = {}
        total = 0
        for name, size in sizes.items():
            self._at[name] = (total, size)
            total += -(-size // PAGE) * PAGE
        self._map = file_map(total, folder)

    def array(self, name: str) -> np.ndarray:
        """[size / 4] float32, the tensor in the file."""
        offset, size = self._at[name]
        return np.frombuffer(self._map, np.float32, size // 4, offset)

    def copied(self, name: str) -> None:
        """The tensor was read or written: its pages are not needed here any longer."""
        offset, size = self._at[name]
        if hasattr(mmap, "MADV_DONTNEED"):  # of a shared mapping: the pages stay in the system's cache
            self._map.madvise(mmap.MADV_DONTNEED, offset, -(-size // PAGE) * PAGE)

    def close(self) -> None:
        """Give the file back, with the last array that shows it."""
        del self._map


def file_map(size: int, folder: str = "") -> mmap.mmap:
    """A file of `size` bytes or some more, zero, as memory; it is gone with the last array that shows it.

    folder   where it lies; "": the system's folder for temporary files
    Raises CaseError where there is no room.
    """
    folder, size = folder or tempfile.gettempdir(), max(-(-size // PAGE), 1) * PAGE
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            reserve(file.fileno(), size)
            return mmap.mmap(file.fileno(), size)
    except OSError as error:
        raise CaseError(
            f"memory.folder {folder!r}: no file of {size:,} bytes for the slow tier: {error.strerror}"
        ) from None


def reserve(file: int, size: int) -> None:
    """Make a file `size` bytes long that the disk has room for; a write into a hole could be fatal."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.ftruncate(file, size)


class HostTier:
    """Tensors in the host's memory, page-locked where the device asks for that."""

    def __init__(self, sizes: dict[str, int], device: Any) -> None:
        make = _array if device.xp is np else device.pinned
        self._arrays = {name: make(size // 4) for name, size in sizes.items()}

    def array(self, name: str) -> np.ndarray:
        """[size / 4] float32, the tensor."""
        return self._arrays[name]

    def copied(self, name: str) -> None:
        """Nothing to give back."""

    def close(self) -> None:
        """Give the memory back."""
        self._arrays.clear()


def _array(count: int) -> np.ndarray:
    return np.empty(count, dtype=np.float32)


class HostCopies:
    """Copies where both tiers are memory of one process; a helper thread makes those ahead and behind."""

    def __init__(self) -> None:
        self._helper = ThreadPoolExecutor(1, "copies")

    def load(self, fast: np.ndarray, slow: np.ndarray) -> None:
        """Slow to fast."""
        fast[...] = slow

    def load_ahead(self, fast: np.ndarray, slow: np.ndarray) -> Callable[[], Any]:
        """Begin to copy; the function that is returned waits for the end."""
        return self._helper.submit(self.load, fast, slow).result

    def store(self, slow: np.ndarray, fast: np.ndarray) -> None:
        """Fast to slow."""
        slow[...] = fast

    def store_behind(self, slow: np.ndarray, fast: np.ndarray) -> Callable[[], Any]:
        """Begin to copy what nobody writes meanwhile; the function that is returned waits for the end."""
        return self._helper.submit(self.store, slow, fast).result

    def finish(self) -> None:
        """Nothing is under way but what somebody waits for."""

    def shift(self, block: np.ndarray, source: int, target: int, count: int) -> None:
        """Move towards the front; NumPy copies flat arrays that overlap in order, without a second buffer."""
        block[target : target + count] = block[source : source + count]

    def close(self) -> None:
        """End the helper thread, once it has finished."""
        self._helper.shutdown()


class DeviceCopies:
    """Copies between a GPU and the host, by name; those ahead and behind run beside the kernels."""

    def __init__(self, device: Any) -> None:
        self._device = device

    def load(self, fast: Array, slow: np.ndarray) -> None:
        """Slow to fast."""
        self._device.load(fast, slow)

    def load_ahead(self, fast: Array, slow: np.ndarray) -> Callable[[], Any]:
        """Begin to copy; the function that is returned makes later operations wait for the end."""
        return self._device.set_ahead(fast, slow)

    def store(self, slow: np.ndarray, fast: Array) -> None:
        """Fast to slow; waits for the device."""
        self._device.store(slow, fast)

    def store_behind(self, slow: np.ndarray, fast: Array) -> Callable[[], Any]:
        """Begin to copy what nobody writes meanwhile; the function that is returned makes later operations,
        and copies that begin later, wait for the end."""
        return self._device.get_behind(slow, fast)

    def finish(self) -> None:
        """Wait until the host has all that was stored."""
        self._device.synchronize()

    def shift(self, block: Array, source: int, target: int, count: int) -> None:
        """Move towards the front, in pieces that do not overlap: no second buffer is needed."""
        piece = source - target
        for at in range(0, count, piece):
            size = min(piece, count - at)
            block[target + at : target + at + size] = block[source + at : source + at + size]

    def close(self) -> None:
        """The device does not write to the host any more."""
        self._device.synchronize()
