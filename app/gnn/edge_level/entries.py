"""Stored entries of a rank's rows that an operation goes through, some whole row blocks at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.numerics.edges import OCTET, EdgeEntries, pieces
from app.sparse.rowblock import RowBlock

Array = Any
PIECE, LARGE_PIECE = 1 << 11, 1 << 16  # entries whose rows are made at a time, on the host and on a GPU;
# those of one row block at least


@dataclass(frozen=True, eq=False)
class Piece:
    """Entries lo..hi-1, those of some whole row blocks.

    blocks    first and last + 1     rows_at   the own rows of these blocks, first and last + 1
    row, column   [k] on the device: the own row of each entry, and that of the extended rows
    ones      matrix [own rows of the blocks, k] that adds up the entries of each row; None: not asked for
    first     [m] on the device, places among the k of entries that count for their edge; None: all
    ends      [blocks+1] int64 host, where those of each block begin among the m (or k)
    """

    lo: int
    hi: int
    blocks: tuple[int, int]
    rows_at: tuple[int, int]
    row: Array
    column: Array
    ones: Any
    first: Array | None
    ends: np.ndarray

    @property
    def padded(self) -> int:
        """As many rows as dense products want for the k entries."""
        return -(-(self.hi - self.lo) // OCTET) * OCTET


@dataclass(frozen=True, eq=False)
class Entries:
    """Entries in stored order, in pieces.

    count    how many     edges   of them that count for their edge     starts [blocks+1] where those of
             each block begin
    parts    the pieces   E       rows of features of edges, by entries, or None
    """

    count: int
    edges: int
    starts: np.ndarray
    parts: list[Piece]
    E: EdgeEntries | None

    @classmethod
    def of(
        cls, device: Any, block: RowBlock, chosen: np.ndarray, first: np.ndarray, E: EdgeEntries | None,
        adds: bool,
    ) -> "Entries":  # fmt: skip
        """Some of the stored entries of a block's rows [nnz] bool.

        first   [nnz] bool, those that count for their edge     E   the features of all entries, or None
        adds    sums over the entries of each row will be asked for
        """
        pointers, columns = block.host_rows()
        before = np.concatenate([[0], np.cumsum(chosen)])
        indptr = before[pointers].astype(np.int64)
        row = np.repeat(np.arange(block.n_own), np.diff(indptr))
        column, first = columns[chosen], first[chosen]
        counted = np.concatenate([[0], np.cumsum(first)])
        starts, parts = block.block_starts, []
        for lo, hi in pieces(indptr, starts, most_entries(device)):
            top, bottom = int(starts[lo]), int(starts[hi])
            a, b = int(indptr[top]), int(indptr[bottom])
            ones = _adder(device, indptr[top : bottom + 1] - a) if adds else None
            mine = np.flatnonzero(first[a:b])
            ends = counted[indptr[starts[lo : hi + 1]]] - counted[a]
            index = None if len(mine) == b - a else device.put(mine.astype(np.int32))
            both = (device.put(each[a:b].astype(np.int32)) for each in (row, column))
            parts.append(Piece(a, b, (lo, hi), (top, bottom), *both, ones, index, ends))
        some = None if E is None else _some(device, E, chosen)
        return cls(len(row), int(counted[-1]), counted[indptr[starts]], parts, some)


def most_entries(device: Any) -> int:
    """Entries of a piece, but for row blocks that have more."""
    return PIECE if device.xp is np else LARGE_PIECE


def _adder(device: Any, indptr: np.ndarray) -> Any:
    """Matrix [rows, k] of ones that adds up the entries of each row; indptr: where they begin."""
    columns = np.arange(indptr[-1], dtype=np.int32)
    return device.csr(indptr.astype(np.int32), columns, None, (len(indptr) - 1, int(indptr[-1])))


def _some(device: Any, E: EdgeEntries, chosen: np.ndarray) -> EdgeEntries:
    """The features of those entries [nnz] bool, without a matrix."""
    values = device.put(np.ascontiguousarray(device.get(E.values)[chosen]))
    return EdgeEntries(None, np.zeros(1, dtype=np.int64), values, E.width)
