"""Features of nodes, dense or sparse, from a table that rank 0 reads to the owners of the rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from app.comm.guard import raise_together
from app.graphs.nodes.data import PIECE_BYTES, NodeTable, SparseFeatures
from app.numerics.pieces import row_pieces
from app.partition.dealer import READING, Dealer, MakeRoom, Shape, first_old, first_part, made_room
from app.partition.scatter import EntryRows, rounds, send_entries

ENTRIES = PIECE_BYTES // 8


def dealt_features(dealer: Dealer, source: NodeTable | None, shape: Shape, make_room: MakeRoom) -> Any:
    """[n_own, width] dense or sparse features of own rows; None without any. Ranks: all call."""
    held = first_part(dealer.group, source, "features")
    if shape.features < 0:
        return None
    if not shape.sparse:
        parts = held.parts() if held else iter(())
        room = made_room(dealer.group, dealer.n_own, shape.features, make_room)
        return dealer.into(room.array, parts, held and held.order, room.done)
    counts = dealer.rows(iter([np.diff(held.indptr)]) if held else iter(()), (), np.int64)
    own, at = EntryRows(counts, np.int32, [None if shape.binary else np.float32]), 0
    for piece in rounds(dealer.group, _entry_pieces(held) if held else iter(()), READING):
        sizes, columns, values = piece or _no_entries(shape.binary)
        numbers, sizes_in, (columns, values) = send_entries(
            dealer.group, dealer.partition, dealer.numbers(at, len(sizes)), sizes, columns, values
        )
        own.put(numbers - dealer.lo, sizes_in, columns, [values])
        at += len(sizes)
    own.sort()
    _refuse_repeats(dealer, held, own)
    values = np.ones(len(own.columns), np.float32) if shape.binary else own.values[0]
    return csr_array((values, own.columns, own.indptr), shape=(dealer.n_own, shape.features))


def _no_entries(binary: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    return np.empty(0, np.int64), np.empty(0, np.int32), None if binary else np.empty(0, np.float32)


def _entry_pieces(held: SparseFeatures) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """(entries of each row, columns, values) of whole rows, of about ENTRIES entries at most."""
    sizes = [np.diff(held.indptr[lo : hi + 1]) for lo, hi in row_pieces(held.indptr, ENTRIES)]
    entries = held.parts([int(each.sum()) for each in sizes])
    for each, (columns, values) in zip(sizes, entries, strict=True):
        yield each, columns, values


def _refuse_repeats(dealer: Dealer, held: SparseFeatures | None, own: EntryRows) -> None:
    """Raise on all ranks where a row names a column twice."""
    row = np.repeat(np.arange(len(own.indptr) - 1), np.diff(own.indptr))
    twice = np.flatnonzero((own.columns[1:] == own.columns[:-1]) & (row[1:] == row[:-1]))
    first = first_old(dealer, row[twice])
    with raise_together(dealer.group, READING):
        if first is not None and held is not None:
            graphs = 0 if dealer.members is None else int(dealer.members.graph_of(first, first + 1)[0])
            raise held.refuse(f"row {first - graphs} names a column twice; each once would be right")
