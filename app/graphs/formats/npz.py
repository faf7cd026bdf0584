"""Arrays of an .npz file, column by column, without pickle: sizes are checked before any reading."""

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import numpy as np

from app.errors import GraphError
from app.graphs.formats.source import MOST_SHRINKING, Source, shown

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    NotImplementedError,
    UnicodeError,
    SyntaxError,
    tokenize.TokenError,
    MemoryError,
    OverflowError,
)


@dataclass(frozen=True)
class Column:
    """One array of the file, not yet read: member name, shape, dtype; `fortran`: stored column-major."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=object)) if self.shape else 1


class Npz:
    """The arrays of one .npz file; `columns` maps names to what their headers state."""

    def __init__(self, source: Source) -> None:
        self.source = source
        source.check()
        with self._reading(""), zipfile.ZipFile(source.path) as archive:
            members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
            if not members:
                raise self.error("holds no arrays; an archive written by numpy.savez would be right")
            self.columns = {info.filename[:-4]: self._check(archive, info) for info in members}

    def error(self, text: str, name: str = "") -> GraphError:
        """The error to raise for this file, at array `name` where there is one."""
        return self.source.error(f"array '{shown(name)}': {text}" if name else text)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def integers(self, name: str, shape: tuple[int | None, ...]) -> Column:
        """Column `name`, which must hold integers in the given shape (None: any length)."""
        if name not in self.columns:
            raise self.error(f"holds no array '{name}'; the arrays of one layout would be right")
        column = self.columns[name]
        fits = len(column.shape) == len(shape) and all(
            want in (None, have) for want, have in zip(shape, column.shape)
        )
        if column.dtype.kind not in "iu" or not fits:
            right = f"integers of shape {shape_text(shape)} would be right"
            raise self.error(f"found {column.dtype} of shape {shape_text(column.shape)}; {right}", name)
        return column

    def list_of(self, name: str, length: int | None = None) -> np.ndarray:
        """[length] int64, numbers from 0; an array of nothing may be of any kind, as np.array([]) is."""
        if length in (0, None) and name in self and self.columns[name].shape == (0,):
            return np.zeros(0, dtype=np.int64)
        column = self.integers(name, (length,))
        return self.wide(column, self.whole(column))

    def numbers(self, name: str, length: int) -> Column:
        """Column `name`, which must hold `length` real numbers."""
        column = self.columns[name]
        if column.dtype.kind not in "iufb" or column.shape != (length,):
            right = f"real numbers of shape ({length}) would be right"
            raise self.error(f"found {column.dtype} of shape {shape_text(column.shape)}; {right}", name)
        return column

    def parts(
        self, column: Column, size: int, start: int = 0, stop: int | None = None
    ) -> Iterator[np.ndarray]:
        """Elements start..stop-1 of a column as stored, at most `size` at a time."""
        stop = column.size if stop is None else stop
        yield from self.cut(column, (min(size, stop - at) for at in range(start, stop, size)), start)

    def cut(self, column: Column, counts: Iterable[int], start: int = 0) -> Iterator[np.ndarray]:
        """Elements of a column as stored, from `start` on: as many at a time as `counts` says in turn."""
        width = column.dtype.itemsize
        with self._reading(column.name), self._open(column) as file:
            read_header(file)
            _skip(file, start * width)
            for count in counts:
                yield np.frombuffer(_read_exactly(file, count * width), dtype=column.dtype)

    @contextmanager
    def _open(self, column: Column) -> Iterator[IO[bytes]]:
        """The file of one array, at its header."""
        with (
            zipfile.ZipFile(self.source.path) as archive,
            archive.open(f"{column.name}.npy") as file,
        ):
            yield file

    def whole(self, column: Column) -> np.ndarray:
        """All elements of a column, flat."""
        parts = list(self.parts(column, 1 << 20))
        return np.concatenate(parts) if parts else np.zeros(0, dtype=column.dtype)

    def wide(self, column: Column, values: np.ndarray) -> np.ndarray:
        """Integer `values` [k] of a column as int64; refuses what does not fit or is negative."""
        if len(values) and (values.min() < 0 or int(values.max()) > 2**63 - 1):
            found = values.min() if values.min() < 0 else values.max()
            raise self.error(f"found {found}; numbers 0..2^63-1 would be right", column.name)
        return values.astype(np.int64)

    def _check(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Column:
        """What the header of a member states, if the member's sizes agree with it and with the limits."""
        name, most = info.filename[:-4], self.source.limits.npz
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self.error("is neither stored nor deflated; numpy.savez would be right", name)
        if info.file_size > MOST_SHRINKING * info.compress_size + 1024:
            raise self.error(f"states {info.file_size} bytes, more than its packed bytes can hold", name)
        if info.file_size > most:
            right = f"at most {most} would be right"
            raise self.error(f"states {info.file_size} bytes; {right}", name)
        with self._reading(name), archive.open(info) as file:
            return self._column(name, file, info.file_size)

    def _column(self, name: str, file: IO[bytes], size: int) -> Column:
        """What the header of an array states, if it holds numbers and as many bytes as it says."""
        shape, fortran, dtype = read_header(file)
        held = size - file.tell()
        if dtype.hasobject:
            raise self.error("holds Python objects, which are never loaded; numbers would be right", name)
        column = Column(name, shape, dtype, fortran)
        if min(shape, default=0) < 0 or column.size * dtype.itemsize != held:
            stated = f"its header states {dtype} of shape {shape_text(shape)}, but it holds {held} bytes"
            raise self.error(f"{stated}; equal sizes would be right", name)
        return column

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Turn whatever a damaged archive makes zipfile or NumPy raise into a GraphError."""
        try:
            yield
        except DAMAGE as error:
            reason = shown(str(error) or type(error).__name__)
            raise self.error(f"cannot be read: {reason}; an undamaged .npz would be right", name) from None


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, column-major order and dtype; `file` is left at the first element."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(file)
    raise ValueError(f"unknown version {version[0]}.{version[1]} of the array format")


def _skip(file: IO[bytes], count: int) -> None:
    while count:
        count -= len(_read_exactly(file, min(count, 1 << 22)))


def _read_exactly(file: IO[bytes], count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = file.read(count - len(data))
        if not part:
            raise EOFError("the data end early")
        data += part
    return bytes(data)


def shape_text(shape: tuple[int | None, ...]) -> str:
    return "(" + ", ".join("any" if length is None else str(length) for length in shape) + ")"
