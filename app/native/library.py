"""The compiled kernels, where they were built: optional, and never a source of other bits.

`kernels()` is the shared library or None. Each module that uses it declares the arguments of its functions,
and each use has a path without it that gives the same bits (docs/architecture.md).
"""

import contextlib
import ctypes
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np


@cache
def kernels() -> ctypes.CDLL | None:
    """The library that `pip install` built next to this file, or None where there was no compiler."""
    for path in sorted(Path(__file__).parent.glob("_kernels*")):
        if path.suffix in (".so", ".dylib", ".pyd", ".dll"):
            try:
                return ctypes.CDLL(str(path))
            except OSError:  # built for another system
                continue
    return None


def address(array: np.ndarray | None) -> int:
    """The address of an array's first element, for an argument declared c_void_p; 0 for None."""
    if array is None:
        return 0
    try:  # five times as fast as the array interface
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError, BufferError):  # read-only, empty, or a view with gaps
        return array.__array_interface__["data"][0]


def aligned(shape: tuple[int, ...]) -> np.ndarray:
    """An empty float32 array that begins at a cache line: 16 numbers are then read from one line, not two."""
    size = math.prod(shape)
    room = np.empty(size + 15, dtype=np.float32)
    first = -address(room) % 64 // 4
    return room[first : first + size].reshape(shape)


def function(name: str, *kinds: Any, returns: Any = None) -> Any:
    """A kernel with its argument types declared, or None without the library."""
    found = getattr(kernels(), name, None)  # a library of an older source may lack it
    if found is None:
        return None
    found.argtypes, found.restype = kinds, returns
    return found


def keep_freed_memory() -> None:
    """Ask glibc to keep the memory of freed arrays of up to 32 MB; does nothing with other C libraries.

    A loop that makes and drops the same arrays again and again else asks the kernel for zeroed pages each
    time: a quarter of a training step.
    """
    trim_threshold, mmap_threshold = -1, -3  # malloc.h
    with contextlib.suppress(OSError, AttributeError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(mmap_threshold, 1 << 25)
        libc.mallopt(trim_threshold, 1 << 28)
