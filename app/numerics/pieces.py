"""Rows of CSR arrays by pieces, where what is made of all at once would take much memory."""

from collections.abc import Iterator

import numpy as np


def row_pieces(indptr: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """(first, last + 1) of consecutive rows that cover all: of at most `most` entries, or of one row."""
    lo, n = 0, len(indptr) - 1
    while lo < n:
        # A goal of another type would have all row pointers copied.
        goal = indptr.dtype.type(min(int(indptr[lo]) + most, int(indptr[n])))
        hi = int(np.searchsorted(indptr, goal, side="right")) - 1
        hi = max(hi, lo + 1)
        yield lo, hi
        lo = hi
