"""An array of rows in the slow tier, used some rows at a time: weights that do not fit and their moments,
features and what is kept of them."""

import math
import mmap
from typing import Any

import numpy as np

from app.memory.slow import PAGE, file_map
from app.memory.tiers import TierBudget

PIECE_BYTES = 1 << 24  # that are copied at a time


class SlowRows:
    """float32 rows in a file without a name, or in memory of the host; zero at first.

        rows = SlowRows((n, 40, 16), device, budget)
        rows.array[lo:hi] ...                          read and write in place
        rows.done(slice(lo, hi))                       for now nobody needs these

    Pages of a file that are done with count as the system's cache, no longer as this process; so what the
    process takes is what lies between two calls of `done`.
    """

    def __init__(
        self, shape: tuple[int, ...], device: Any, budget: TierBudget, array: np.ndarray | None = None
    ) -> None:
        """array   memory of the host that has the rows already, instead of new one

        Raises CaseError where the disk has no room for the file.
        """
        count = math.prod(shape)
        self._made = shape, device, budget
        self._row_bytes = 4 * math.prod(shape[1:])
        self._map: mmap.mmap | None = None
        if array is not None:
            self.array = array
        elif budget.tier(device) == "file":
            self._map = file_map(4 * count, budget.folder)
            self.array = np.frombuffer(self._map, np.float32, count).reshape(shape)
        else:
            self.array = np.zeros(shape, dtype=np.float32)

    @classmethod
    def of(cls, rows: np.ndarray, device: Any, budget: TierBudget) -> "SlowRows":
        """Rows that are in memory of the host: a copy in a file, but for such as lie in one; the same where
        the host is the slow tier; a page-locked copy beside a GPU, which reads it while it computes.

        Raises CaseError where the disk has no room for the file.
        """
        if budget.tier(device) != "file":
            return cls(rows.shape, device, budget, rows if device.xp is np else _pinned(rows, device))
        if (found := _map_of(rows)) is not None:
            made = cls(rows.shape, device, budget, rows)
            made._map = found
            return made
        made = cls(rows.shape, device, budget)
        step = max(1, PIECE_BYTES // max(made._row_bytes, 1))
        for lo in range(0, len(rows), step):
            piece = slice(lo, lo + step)
            made.array[piece] = rows[piece]
            made.done(piece)
        return made

    @classmethod
    def empty(cls, shape: tuple[int, ...], device: Any, budget: TierBudget) -> "SlowRows":
        """Rows that somebody will write."""
        if budget.tier(device) == "file" or device.xp is np:
            return cls(shape, device, budget)
        return cls(shape, device, budget, device.pinned(math.prod(shape)).reshape(shape))

    def like(self) -> "SlowRows":
        """Zeros of the same shape in the same tier."""
        return SlowRows(*self._made)

    def done(self, rows: slice = slice(None)) -> None:
        """Give back the pages of some rows: what was written stays in the file."""
        if self._map is not None:
            _give_back(self._map, self._row_bytes, *rows.indices(len(self.array))[:2])


def read_over(array: np.ndarray, rows: slice) -> None:
    """For now nobody needs these rows of an array, which lie in a file if SlowRows has made it."""
    if (found := _map_of(array)) is not None:
        _give_back(found, array.strides[0], *rows.indices(len(array))[:2])


def _give_back(file: mmap.mmap, row_bytes: int, lo: int, hi: int) -> None:
    """Give back the pages of rows lo..hi of a file."""
    first, last = lo * row_bytes // PAGE * PAGE, -(-hi * row_bytes // PAGE) * PAGE
    if last > first and hasattr(mmap, "MADV_DONTNEED"):
        file.madvise(mmap.MADV_DONTNEED, first, last - first)


def _pinned(rows: np.ndarray, device: Any) -> np.ndarray:
    """A copy of rows in page-locked memory."""
    copy: np.ndarray = device.pinned(rows.size).reshape(rows.shape)
    copy[...] = rows
    return copy


def _map_of(rows: np.ndarray) -> mmap.mmap | None:
    """The file that rows fill from its beginning, as they do where SlowRows made them."""
    base: Any = rows
    while isinstance(base, np.ndarray):
        base = base.base
    base = base.obj if isinstance(base, memoryview) else base
    return base if isinstance(base, mmap.mmap) and len(base) - rows.nbytes < PAGE else None
