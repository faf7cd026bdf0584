"""Which rows of a sparse table hold all columns of another."""

import ctypes
from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp

from app.graphs.keys import sorted_set
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
RAREST = function("lk_rarest_columns", Long, *(Pointer,) * 4)
WITHIN = function("lk_rows_within", Long, *(Pointer,) * 9, returns=Long)

PIECE = 1 << 16  # pairs of rows compared together
MOST_PAIRS = 1 << 25  # with more, a comparison of all rows is left out

Pairs = tuple[np.ndarray, np.ndarray]


def available() -> bool:
    """True where the library was built."""
    return None not in (RAREST, WITHIN)


def rows_within(
    table: sp.csr_array,
    turned: sp.csr_array,
    kept: np.ndarray,
    look: Callable[[], bool],
    compiled: bool = True,
) -> Iterator[Pairs]:
    """Pairs of two rows (u, v) of which v holds all columns of u, some at a time.

    table     [r, c] CSR, ascending columns; turned: its transpose, likewise
    kept      [r] bool, changed meanwhile: rows that are no longer kept are in no more pairs, since what
              speaks against them speaks against what they would be held against
    look      called before each piece; where it is true that is the end
    compiled  by app/native/table_rows.c, where it was built: the same pairs in the same order
    What holds u holds the column of u that fewest rows have: only those are compared.
    """
    columns = table.shape[1]
    size, degree = np.diff(table.indptr), np.bincount(table.indices, minlength=columns)
    compare = (_Compiled if compiled and available() else _Plain)(table, turned, degree)
    some = np.flatnonzero(size)
    count = degree[compare.first[some]]
    ends = np.cumsum(count)
    if not len(some) or ends[-1] > MOST_PAIRS:
        return
    cuts = sorted_set(np.append(np.searchsorted(ends, np.arange(PIECE, ends[-1], PIECE)), len(some)))
    for start, end in zip(np.append(0, cuts[:-1]), cuts):
        if look():
            return
        alive = kept[some[start:end]]
        yield from compare.pairs(some[start:end][alive], count[start:end][alive], kept)


class _Compiled:
    """first [r]: the rarest column of each row."""

    def __init__(self, table: sp.csr_array, turned: sp.csr_array, degree: np.ndarray) -> None:
        self._rows, self._turned = (
            (each.indptr.astype(np.int64), np.ascontiguousarray(each.indices, dtype=np.int32))
            for each in (table, turned)
        )
        self.first = np.empty(table.shape[0], dtype=np.int32)
        arrays = *self._rows, degree.astype(np.int64), self.first  # which live until the call is over
        RAREST(len(self.first), *map(address, arrays))

    def pairs(self, of: np.ndarray, each: np.ndarray, kept: np.ndarray) -> Iterator[Pairs]:
        """Of rows `of` [k], which have so many pairs `each` [k]; those of shorter rows first."""
        room = int(each.sum())
        u, v = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        arrays = of.astype(np.int64), *self._rows, self.first, *self._turned, kept, u, v
        found = WITHIN(len(of), *map(address, arrays))
        u, v = u[:found], v[:found]
        indptr = self._rows[0]
        order = np.argsort(indptr[u + 1] - indptr[u], kind="stable")
        yield u[order], v[order]


class _Plain:
    """The same by sorted keys, with all columns of each row in the order of their rarity."""

    def __init__(self, table: sp.csr_array, turned: sp.csr_array, degree: np.ndarray) -> None:
        rows, self._columns = table.shape
        self._size, self._indptr = np.diff(table.indptr), table.indptr
        row = np.repeat(np.arange(rows, dtype=np.int64), self._size)
        self._keys = row * self._columns + table.indices  # ascending
        self._rare = table.indices[np.lexsort((degree[table.indices], row))]
        self._turned = turned
        self.first = np.append(self._rare, -1)[np.minimum(table.indptr[:-1], len(self._rare))]

    def pairs(self, of: np.ndarray, each: np.ndarray, kept: np.ndarray) -> Iterator[Pairs]:
        """As _Compiled.pairs, those of rows of one length at a time."""
        u = np.repeat(of, each)
        place = np.arange(len(u)) - np.repeat(np.cumsum(each) - each, each)
        v = self._turned.indices[self._turned.indptr[self.first[u]] + place]
        likely = (self._size[u] <= self._size[v]) & (u != v) & kept[v]
        u, v, at = u[likely], v[likely], 1
        while len(u):  # they have u's first `at` columns in common
            all_of = self._size[u] <= at
            yield u[all_of], v[all_of]
            u, v = u[~all_of], v[~all_of]
            wanted = v.astype(np.int64) * self._columns + self._rare[self._indptr[u] + at]
            found = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
            held = self._keys[found] == wanted
            u, v, at = u[held], v[held], at + 1
