"""Series from files, and from memory, to the owners of the rows: some steps of time at a time."""

from collections.abc import Iterator

import numpy as np

from app.comm.group import Group
from app.comm.guard import raise_together
from app.graphs.formats.source import Limits
from app.graphs.orders import places_of
from app.graphs.series import (
    ARRAY,
    COVARIATES,
    SeriesTable,
    known_floats,
    known_numbers,
    open_series,
    read_shared,
)
from app.partition.dealer import own_old_rows
from app.partition.ids import ids_on_first
from app.partition.loaded import Loaded
from app.partition.scatter import rounds, send_rows

READING = "reading the series"
BESIDE = "reading the covariates"


def load_series(
    group: Group, loaded: Loaded, path: str, limits: Limits, covariates: bool = False
) -> np.ndarray:
    """[n_own, T, C] float32, the series of own nodes, NaN where they are not known, zero on padding.

    covariates   they are such, and all must be known
    Rank 0 reads some steps of time of all nodes at a time and deals them.
    Ranks   all call. Raises GraphError
    """
    array, check = (COVARIATES, known_numbers) if covariates else (ARRAY, known_floats)
    table, ids = None, ids_on_first(group, loaded.graph, loaded.rows, loaded.order_all)
    with raise_together(group, READING):
        if group.rank == 0:
            table = open_series(path, limits, ids, loaded.graph.name, array, check)
    channels = int(group.broadcast(np.array([table.channels if table else 0], dtype=np.int64))[0])
    numbers = _numbers(group, loaded, table)
    pieces = [_dealt(group, loaded, numbers, piece, channels) for piece in _rounds(group, table)]
    n_own = _padded(loaded, group.rank)
    return np.concatenate(pieces, axis=1) if pieces else np.zeros((n_own, 0, channels), dtype=np.float32)


def load_shared(group: Group, path: str, limits: Limits) -> np.ndarray:
    """[T, k] float32 of all nodes alike, on every rank. Ranks: all call. Raises GraphError"""
    found = np.zeros((0, 0), dtype=np.float32)
    with raise_together(group, BESIDE):
        if group.rank == 0:
            found = np.ascontiguousarray(read_shared(path, limits), dtype=np.float32)
    shape = group.broadcast(np.array(found.shape, dtype=np.int64)).tolist()
    return group.broadcast(found if group.rank == 0 else np.zeros(shape, dtype=np.float32))


def own_series(loaded: Loaded, series: np.ndarray, rank: int) -> np.ndarray:
    """The same of an array [T, n, C] that every rank has, by the nodes' own numbers."""
    own = own_old_rows(loaded, rank)
    out = np.zeros((_padded(loaded, rank), len(series), series.shape[2]), dtype=np.float32)
    out[: len(own)] = series[:, own].transpose(1, 0, 2)
    return out


def _rounds(group: Group, table: SeriesTable | None) -> Iterator[np.ndarray | None]:
    """Pieces of steps of time, on rank 0; None elsewhere. Ranks: all take every round."""
    return rounds(group, table.parts() if table else iter(()), READING)


def _numbers(group: Group, loaded: Loaded, table: SeriesTable | None) -> np.ndarray:
    """[n] int64 on rank 0, the row of the node of each column; elsewhere none."""
    if group.rank:
        return np.zeros(0, dtype=np.int64)
    old = np.arange(loaded.graph.n) if table.places is None else table.places
    if loaded.order_all is None:
        return old
    new_of = places_of(loaded.order_all)
    return new_of[old]


def _dealt(
    group: Group, loaded: Loaded, numbers: np.ndarray, piece: np.ndarray | None, channels: int
) -> np.ndarray:
    """[n_own, k, C] of a piece [k, n, C] that rank 0 has. Ranks: all call."""
    steps = int(group.broadcast(np.array([0 if piece is None else len(piece)], dtype=np.int64))[0])
    values = np.zeros((0, steps * channels), dtype=np.float32)
    if piece is not None:
        values = np.ascontiguousarray(piece.transpose(1, 0, 2), dtype=np.float32).reshape(len(numbers), -1)
    rows, found = send_rows(group, loaded.rows, numbers, values)
    out = np.zeros((_padded(loaded, group.rank), steps, channels), dtype=np.float32)
    out[rows - loaded.rows.range_of(group.rank)[0]] = found.reshape(len(rows), steps, channels)
    return out


def _padded(loaded: Loaded, rank: int) -> int:
    """Rows of a rank with its padding."""
    offsets = loaded.rows.offsets
    return int(offsets[rank + 1] - offsets[rank])
