"""Lists that stand one behind the other in one array: where they begin, and where the entries of some are."""

import numpy as np


def starts(rows: np.ndarray, count: int) -> np.ndarray:
    """[count+1] int64, where the entries of each row begin, of the rows [k] in 0..count-1 of all entries."""
    found = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=found[1:])
    return found


def ranges(begins: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """[sum of counts] int64: begins[0], begins[0] + 1, ..., then from begins[1], and so on."""
    before = np.cumsum(counts, dtype=np.int64) - counts
    return np.repeat(begins - before, counts) + np.arange(int(counts.sum()))


def entries_of(ptr: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """[m] int64, the places of the entries of some rows [k], row after row; row i begins at ptr[i]."""
    return ranges(ptr[rows], ptr[rows + 1] - ptr[rows])
