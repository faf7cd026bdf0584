"""A sparse matrix as the kernels of app/sparse/kernels read it."""

from dataclasses import dataclass
from math import isqrt
from typing import Any, Protocol

import numpy as np

from app.cuda.kernels import whole
from app.errors import NumericsError

Array = Any
SHORT, LONG = 64, 4096  # stored entries: rows with more may be, and mostly are, summed by a warp or a block
LEAST = 128  # that a warp or block is started for
MUCH_LONGER = 4  # times the mean row
FOR_WARPS = 4  # times what a sub-warp adds up, a warp may
BUSY = 1 << 18  # elements of a product whose rows keep a GPU busy without blocks for the long ones
OCTAVE = 8  # classes of lengths between one and twice it: of a class, rows stay as they are


class Pattern(Protocol):
    """The stored entries of some rows.

    indptr    [n+1] int64     indices   [nnz] int32     both on the device
    """

    indptr: Array
    indices: Array
    nnz: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class SomeRows:
    """A Pattern of consecutive rows of a matrix, whose entries are numbered anew from 0."""

    indptr: Array
    indices: Array
    nnz: int
    shape: tuple[int, ...]


class CudaMatrix:
    """CSR on the device: 64-bit row offsets, 32-bit columns.

    data    [nnz] float32, or None: all stored values are one, and take no memory
    counts  [n] on the host, entries of each row
    lines   [n, 2] int64, of all rows from the longest to the shortest: where its entries begin; its number
            and how many they are, 32 bits each (Line of spmm.cu)
    long    [k, 2] int64, the same of the rows with more than SHORT entries, by falling counts
    minus_long    [k] on the host, less than zero: their entries, so that they rise
    vendor  the same as a library's type, once one was asked for, or that there is none
    """

    vendor: Any = None

    def __init__(
        self,
        cp: Any,
        indptr: np.ndarray,
        indices: np.ndarray,
        data: np.ndarray | None,
        shape: tuple[int, int],
    ) -> None:
        self.shape, self.nnz = tuple(shape), len(indices)
        self.indptr = cp.asarray(np.ascontiguousarray(indptr, dtype=np.int64))
        self.indices = cp.asarray(np.ascontiguousarray(indices, dtype=np.int32))
        self.data = None if data is None else cp.asarray(np.ascontiguousarray(data, dtype=np.float32))
        self.counts = np.diff(indptr)
        self.lines = cp.asarray(lines_of(indptr, by_length(self.counts)))
        rows = np.flatnonzero(self.counts > SHORT)
        rows = rows[np.argsort(-self.counts[rows], kind="stable")].astype(np.int64)
        self.minus_long, self.long = -self.counts[rows], cp.asarray(lines_of(indptr, rows))

    def longest(self, c: int) -> int:
        """Entries of the longest row that one sub-warp should add up in a product of c columns.

        A row's time is to be well below that of the product, which grows with what it reads; but a block to a
        row is a waste on short ones, and on those of a graph whose rows are all long, where they keep the GPU
        busy. On an H200 the first came near the best for 2.3 to 123 million entries and 16 to 256 columns.
        """
        found = min(max(isqrt(self.nnz * (c + 1)) // 28, LEAST), LONG)
        rows = self.shape[0]
        return found if rows * c <= BUSY else max(found, MUCH_LONGER * self.nnz // rows)

    def most(self, c: int) -> int:
        """Entries of the longest row that a warp should add up by itself; longer ones take a block each.

        A warp asks for less at a time, so a row takes it several times as long; but where many rows keep the
        GPU busy that is no loss, and blocks are: most of their threads wait. On an H200 about 900 were best
        for 2.3 million entries and 16 columns, 2,000 for 64, and over 7,000 for 115 million and 16.
        """
        longest = self.longest(c)
        return longest if self.shape[0] * c <= BUSY else FOR_WARPS * longest

    def longer(self, longest: int) -> int:
        """How many rows have more entries than that, which is at least SHORT: so many of `long`."""
        return int(np.searchsorted(self.minus_long, -longest))


def lines_of(indptr: np.ndarray, order: np.ndarray) -> np.ndarray:
    """[n, 2] int64: where the entries of each row of `order` begin; its number, and above it their count."""
    begin = indptr[order].astype(np.int64)
    return np.stack([begin, order + (indptr[order + 1] - begin << 32)], axis=1)


def by_length(counts: np.ndarray) -> np.ndarray:
    """[n] int32, all rows by falling counts, up to an eighth: the sub-warps of a warp end together.

    Of a class neighbours, which often read the same lines of X, stay together.
    """
    mantissa, exponent = np.frexp(counts.astype(np.float64))
    classes = exponent * OCTAVE + (mantissa * 2 * OCTAVE).astype(np.int64) % OCTAVE
    return np.argsort(-classes.astype(np.int16), kind="stable").astype(np.int32)


def edged(name: str, pattern: Pattern, rows: Array | None, columns: int) -> tuple[str, tuple[Array, ...]]:
    """A kernel's name and what it is handed, of entries with rows [nnz, columns] of their own or without.

    Raises NumericsError.
    """
    if rows is None:
        return name, ()
    if rows.shape[0] != pattern.nnz:
        raise NumericsError(f"{name}: {rows.shape} for {pattern.nnz} entries")
    return f"{name}_edges", (whole(rows, columns),)
