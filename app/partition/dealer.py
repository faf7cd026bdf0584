"""Dealer: pieces of rows that rank 0 reads, on their way to the owners of the rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from app.comm.group import Group
from app.comm.guard import raise_together
from app.graphs.nodes.data import NodeTable
from app.partition.loaded import Loaded
from app.partition.rows import RowPartition
from app.partition.scatter import rounds, send_rows

READING = "reading the node data"


class Room(Protocol):
    """Memory for rows of features, zero at first."""

    array: np.ndarray

    def done(self, rows: slice = slice(None)) -> None:
        """For now nobody needs these rows."""


class InMemory:
    """Room in this process's memory."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.array = np.zeros(shape, dtype=np.float32)

    def done(self, rows: slice = slice(None)) -> None:
        """They stay."""


MakeRoom = Callable[[tuple[int, ...]], Room]


@dataclass(frozen=True)
class Shape:
    """What every rank must know before rows are dealt; widths are -1 where there is nothing."""

    features: int  # columns
    sparse: bool
    binary: bool
    labels: int  # columns; 0: one class for each node
    values: bool  # labels are numbers to be predicted
    splits: bool


def first_part(group: Group, source: NodeTable | None, part: str) -> Any:
    """Rank 0's part of the table, None elsewhere."""
    return getattr(source, part) if group.rank == 0 else None


class Dealer:
    """Sends pieces of consecutive old rows, read on rank 0, to the owners of the new ones.

    new_of   [n] int64 on rank 0, the new number of each old row; None: the numbers are the same
    graphs   [k] int64, the own rows of graphs of a set; None of one graph
    """

    def __init__(self, group: Group, loaded: Loaded) -> None:
        self.group, self.partition, self.graph = group, loaded.rows, loaded.graph
        self.members = loaded.members
        self.lo, self.hi = loaded.rows.range_of(group.rank)
        offsets = loaded.rows.offsets
        self.n_own = int(offsets[group.rank + 1] - offsets[group.rank])
        self.new_of = None
        if loaded.order_all is not None and group.rank == 0:
            self.new_of = np.empty(loaded.graph.n, dtype=np.int64)
            self.new_of[loaded.order_all] = np.arange(loaded.graph.n)
        self.graphs = None if self.members is None else np.flatnonzero(self.members.own_of(self.lo, self.hi))
        self.old_own = own_old_rows(loaded, group.rank)
        self.padded_old = old_numbers(loaded, group.rank)

    @property
    def what(self) -> str:
        """What labels are of."""
        return "node" if self.members is None else "graph"

    def numbers(self, at: int, count: int, order: np.ndarray | None = None) -> np.ndarray:
        """[count] int64, the new numbers of old rows at, at + 1, ..., or of those in order [n]."""
        old = np.arange(at, at + count) if order is None else order[at : at + count]
        return old if self.new_of is None else self.new_of[old]

    def rows(
        self,
        pieces: Iterator[np.ndarray],
        shape: tuple[int, ...],
        kind: type,
        order: np.ndarray | None = None,
        among: np.ndarray | None = None,
    ) -> np.ndarray:
        """[n_own, *shape] of `kind`, zero on padding, from pieces [k, *shape] that rank 0 reads.

        order   [n] on rank 0, the old row of each that is read; None: they come in order
        among   [m] ascending own rows, of which alone there are rows; None: all, returns [n_own, *shape]
        """
        own = np.zeros((self.n_own if among is None else len(among), *shape), dtype=kind)
        return self.into(own, pieces, order, among=among)

    def into(
        self,
        own: np.ndarray,
        pieces: Iterator[np.ndarray],
        order: np.ndarray | None = None,
        done: Callable[[], None] = lambda: None,
        among: np.ndarray | None = None,
    ) -> np.ndarray:
        """The same into rows `own` [n_own, ...], or those of `among`; done: called after each piece."""
        shape, kind, at = own.shape[1:], own.dtype, 0
        for piece in rounds(self.group, pieces, READING):
            piece = np.empty((0, *shape), dtype=kind) if piece is None else piece.astype(kind, copy=False)
            numbers, values = send_rows(
                self.group, self.partition, self.numbers(at, len(piece), order), piece
            )
            mine = numbers - self.lo
            own[mine if among is None else np.searchsorted(among, mine)] = values
            done()
            at += len(piece)
        return own


def made_room(group: Group, n_own: int, width: int, make_room: MakeRoom) -> Room:
    """Room for the own rows of dense features. Ranks: all call."""
    with raise_together(group, "making room for features"):
        room = make_room((n_own, width))
    return room


def own_old_rows(loaded: Loaded, rank: int) -> np.ndarray:
    """[hi-lo] int64, what the rows of a rank were numbered before they were ordered."""
    lo, hi = loaded.rows.range_of(rank)
    return np.arange(lo, hi) if loaded.order_all is None else loaded.order_all[lo:hi]


def old_numbers(loaded: Loaded, rank: int) -> np.ndarray | None:
    """[n_own] int64, what the rows of a rank were numbered before they were ordered; None: as they are."""
    if loaded.order_all is None:
        return None
    old = own_old_rows(loaded, rank)
    return np.pad(old, (0, padded(loaded.rows, rank) - len(old)))


def padded(rows: RowPartition, rank: int) -> int:
    """Rows of a rank with its padding."""
    return int(rows.offsets[rank + 1] - rows.offsets[rank])


def first_old(dealer: Dealer, own: np.ndarray) -> int | None:
    """The lowest old number of own rows [k] of all ranks; None without any. Ranks: all call."""
    nobody = dealer.graph.n
    lowest = -dealer.group.max_integer(-int(dealer.old_own[own].min(initial=nobody)))
    return None if lowest == nobody else lowest
