"""Lists that stand one behind the other in one array: where they begin, and where the entries of some are."""

import numpy as np
import scipy.sparse as sp


def starts(rows: np.ndarray, count: int) -> np.ndarray:
    """[count+1] int64, where the entries of each row begin, of the rows [k] in 0..count-1 of all entries."""
    found = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=found[1:])
    return found


def ranges(begins: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """[sum of counts] int64: begins[0], begins[0] + 1, ..., then from begins[1], and so on."""
    before = np.cumsum(counts, dtype=np.int64) - counts
    return np.repeat(begins - before, counts) + np.arange(int(counts.sum()))


def row_counts(flags: np.ndarray, ptr: np.ndarray) -> np.ndarray:
    """[n] int64, how many of the entries of each row are flagged; flags [nnz] bool, ptr [n+1]."""
    small = len(flags) < 1 << 31  # half the room takes half the time
    before = np.zeros(len(flags) + 1, dtype=np.int32 if small else np.int64)
    np.cumsum(flags.view(np.uint8), out=before[1:], dtype=before.dtype)
    return (before[ptr[1:]] - before[ptr[:-1]]).astype(np.int64)


def rows_with(flags: np.ndarray, ptr: np.ndarray) -> np.ndarray:
    """[n] bool, whether an entry of each row is flagged; flags [nnz] bool, ptr [n+1]."""
    found, some = np.zeros(len(ptr) - 1, dtype=bool), np.flatnonzero(np.diff(ptr))
    if len(some):
        found[some] = np.logical_or.reduceat(flags, ptr[some])
    return found


def kept_rows(ptr: np.ndarray, columns: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What some nodes span, numbered anew: ptr [k+1] int64 and columns [m] int32.

    ptr [n+1], columns [nnz] of all; kept [n] bool
    """
    own = np.repeat(kept, np.diff(ptr)) & kept[columns]
    number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    return np.append(0, np.cumsum(row_counts(own, ptr)[kept])), number[columns[own]]


def rows_ascend(columns: np.ndarray, ptr: np.ndarray) -> bool:
    """Whether the columns [nnz] of each row rise; ptr [n+1]."""
    rise = columns[1:] > columns[:-1]
    begins = ptr[1:-1]
    rise[begins[(begins > 0) & (begins < len(columns))] - 1] = True
    return bool(rise.all())


def by_columns(ptr: np.ndarray, columns: np.ndarray, count: int) -> np.ndarray:
    """[nnz] int64, the entries by their columns, those of one column as they are; in linear time.

    ptr [n+1], columns [nnz], below `count`
    """
    entries = np.arange(len(columns), dtype=np.int64)
    return sp.csr_array((entries, columns, ptr), shape=(len(ptr) - 1, count)).tocsc().data


def entries_of(ptr: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """[m] int64, the places of the entries of some rows [k], row after row; row i begins at ptr[i]."""
    return ranges(ptr[rows], ptr[rows + 1] - ptr[rows])
