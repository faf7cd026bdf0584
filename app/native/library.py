"""The compiled kernels, where they were built: optional, and never a source of other bits.

`kernels()` is the shared library or None. Each module that uses it declares the arguments of its functions,
and each use has a path without it that gives the same bits (docs/architecture.md).
"""

import contextlib
import ctypes
import hashlib
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

_address_of, _first_byte = ctypes.addressof, ctypes.c_char.from_buffer
FOLDER = Path(__file__).parent


@cache
def kernels() -> ctypes.CDLL | None:
    """The library that `pip install` built next to this file, or None where there was no compiler.

    None also where the sources beside it have changed since: its structs may be others than Python's.
    """
    for path in sorted(FOLDER.glob("_kernels*")):
        if path.suffix in (".so", ".dylib", ".pyd", ".dll"):
            try:
                library = ctypes.CDLL(str(path))
            except OSError:  # built for another system
                continue
            if not stale(library):
                return library
    return None


def absence() -> str:
    """Why there are no kernels, for the log; "" where there are."""
    if kernels() is not None:
        return ""
    built = any(FOLDER.glob("_kernels*"))
    return "older than its sources, build it again" if built else "not built"


def stale(library: ctypes.CDLL) -> bool:
    """True where there are sources, and others than those the library was built from."""
    sources = sorted(FOLDER.glob("*.[ch]"), key=lambda path: path.name)
    if not sources:  # a package without them
        return False
    told = getattr(library, "lk_sources", None)
    if told is None:
        return True
    told.restype = ctypes.c_char_p
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    return told() != digest.encode()


def address(array: np.ndarray | None) -> int:
    """The address of an array's first element, for an argument declared c_void_p; 0 for None."""
    if array is None:
        return 0
    try:  # five times as fast as the array interface
        return _address_of(_first_byte(array))
    except (TypeError, ValueError, BufferError):  # read-only, empty, or a view with gaps
        return array.__array_interface__["data"][0]


LINE = 64  # bytes


def aligned(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """An empty array that begins at a cache line: 16 float32 are then read from one line, not two."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.empty(size + LINE - 1, dtype=np.uint8)
    first = -address(room) % LINE
    return room[first : first + size].view(dtype).reshape(shape)


def give_arrays(owner: Any, struct: ctypes.Structure, names: tuple[str, ...]) -> None:
    """Give a struct the addresses of arrays that are attributes of the same names, or None."""
    for name in names:
        setattr(struct, name, address(getattr(owner, name)))


@contextlib.contextmanager
def numbers_in(owner: Any, struct: ctypes.Structure, names: tuple[str, ...]) -> Iterator[None]:
    """A struct has an object's numbers while a kernel works on it, and gives them back afterwards."""
    for name in names:
        setattr(struct, name, getattr(owner, name))
    yield
    for name in names:
        setattr(owner, name, getattr(struct, name))


def function(name: str, *kinds: Any, returns: Any = None) -> Any:
    """A kernel with its argument types declared, or None without the library."""
    found = getattr(kernels(), name, None)  # a library of an older source may lack it
    if found is None:
        return None
    found.argtypes, found.restype = kinds, returns
    return found


Salt = ctypes.c_uint64 * 2  # of a kernel's table by hash (native/common.h: salted)


def new_salt() -> Any:
    """A Salt that no file was made for: that of Python's own tables, another one in each process unless
    PYTHONHASHSEED says otherwise. Only how fast a table is depends on it."""
    return Salt(*(hash(each) % (1 << 64) for each in (b"first", b"second")))


WIDEST = 16  # numbers in the widest vector register there are kernels for


def use_lanes(most: int = WIDEST) -> int:
    """Take the kernels for the widest vector registers of at most `most` numbers that this processor has.

    Returns how wide they are, 0 without kernels. At the start the widest are taken. The width changes no bit.
    """
    found = function("lk_use_lanes", ctypes.c_int64, returns=ctypes.c_int64)
    return 0 if found is None else found(most)


def lanes() -> int:
    """Numbers in a vector register of the kernels in use; 0 without kernels."""
    found = function("lk_lanes_in_use", returns=ctypes.c_int64)
    return 0 if found is None else found()


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
