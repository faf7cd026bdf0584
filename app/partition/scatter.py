"""Rows in pieces from the ranks that read or held them to their owners, at any place in the global order."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.comm.group import Group
from app.comm.guard import raise_together
from app.graphs.lists import ranges
from app.partition.rows import RowPartition


def rounds(group: Group, pieces: Iterator[Any], what: str) -> Iterator[Any]:
    """Every rank's pieces, a round at a time, until all are through; None where a rank has no more.

    Ranks   all call, and take every round; an error on one of them is raised on all
    """
    while True:
        piece = None
        with raise_together(group, what):
            piece = next(pieces, None)
        if not group.max_integer(int(piece is not None)):
            return
        yield piece


def send_rows(
    group: Group, rows: RowPartition, numbers: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to their owners.

    numbers   [k] int64, global row numbers     values   [k] or [k, f], the same dtype and f on all ranks
    returns   those that this rank owns, in no particular order
    Ranks     all call
    """
    if group.size == 1:
        return numbers, values
    owner = rows.owner(numbers)
    order = np.argsort(owner, kind="stable")
    out = np.bincount(owner, minlength=group.size).tolist()
    into = group.exchange_counts(out)
    return group.exchange_host(numbers[order], out, into), group.exchange_host(values[order], out, into)


def send_entries(
    group: Group, rows: RowPartition, numbers: np.ndarray, counts: np.ndarray, *arrays: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray | None]]:
    """Rows of different lengths to their owners.

    numbers, counts   [k] int64, global row numbers and entries of each row
    arrays            [sum of counts] each, or None (on all ranks)
    returns           numbers, counts, arrays of the rows that this rank owns
    Ranks             all call
    """
    if group.size == 1:
        return numbers, counts, list(arrays)
    owner = rows.owner(numbers)
    order = np.argsort(owner, kind="stable")
    out = np.bincount(owner, minlength=group.size).tolist()
    into = group.exchange_counts(out)
    sums = np.concatenate([[0], np.cumsum(counts[order])])
    entries = np.diff(sums[np.concatenate([[0], np.cumsum(out)])]).tolist()
    entries_in = group.exchange_counts(entries)
    taken = ranges(np.cumsum(counts)[order] - counts[order], counts[order])
    return (
        group.exchange_host(numbers[order], out, into),
        group.exchange_host(counts[order], out, into),
        [None if a is None else group.exchange_host(a[taken], entries, entries_in) for a in arrays],
    )


class EntryRows:
    """CSR rows of this rank, filled in any order; the number of entries of each row is known before.

    indptr   [rows+1] int64     columns   [nnz] int32 or int64
    values   arrays [nnz], of the types in `valued`; None where that is None
    """

    def __init__(self, counts: np.ndarray, kind: type, valued: list[type | None]) -> None:
        self.indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.columns = np.empty(int(self.indptr[-1]), dtype=kind)
        self.values = [None if each is None else np.empty(len(self.columns), each) for each in valued]

    def put(
        self, rows: np.ndarray, counts: np.ndarray, columns: np.ndarray, values: list[np.ndarray | None]
    ) -> None:
        """Rows [k] (from 0) with their `counts` entries each, one row after the other."""
        places = ranges(self.indptr[rows], counts)
        self.columns[places] = columns
        for held, found in zip(self.values, values):
            if held is not None:
                held[places] = found

    def sort(self) -> None:
        """Columns ascending within each row."""
        row = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        later = self.columns[1:] < self.columns[:-1]
        if not (later & (row[1:] == row[:-1])).any():
            return
        order = np.lexsort((self.columns, row))
        self.columns = self.columns[order]
        self.values = [None if each is None else each[order] for each in self.values]
