"""What a rank knows of its rows on the host: neighbours, ghost columns, whom it sends what."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.keys import sorted_set
from app.graphs.lists import ranges

PIECE = 1 << 17  # stored entries handled at a time: bounds the memory that making a block takes beside it
MARKED_SHARE = 256  # rows for each of a list: to mark all takes then about as long as to sort the list


class HostRows:
    """Rows and columns of a RowBlock, which makes the arrays and says what they are."""

    plan: Any
    columns: np.ndarray | None
    directed: bool
    lo: int
    n_own: int
    n_real: int
    n_ext: int
    own_at: int
    own_counts: list[int]
    _rank: int
    _pointers: list[np.ndarray]
    _indices: list[np.ndarray]
    _weights: list[list[np.ndarray]]
    _arcs: Any
    _adjacency: Any
    _transpose: Any
    _tile_firsts: list[int]
    _own_tile: int
    _ghost_ptr: np.ndarray
    _ghost_rows: np.ndarray

    def neighbours_own(self, node: int) -> np.ndarray:
        """[k] local numbers of the own rows adjacent to a global node, ascending."""
        row = node - self.lo
        if 0 <= row < self.n_own:
            return self._own_part(row)
        at = node
        if self.columns is not None:
            at = int(self.columns.searchsorted(node))
            if at == self.n_ext or self.columns[at] != node:
                return self._ghost_rows[:0]
        return self._ghost_rows[self._ghost_ptr[at] : self._ghost_ptr[at + 1]]

    def adjacent_own(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The own rows adjacent to some of the global nodes [k], each as often as it is.

        returns   local numbers [m], and of each the place 0..k-1 of its node; in any order
        """
        if len(nodes) == 1:
            rows = self.neighbours_own(int(nodes[0]))
            return rows, np.zeros(len(rows), dtype=np.int64)
        at = self.extended_of(nodes)
        own = (at >= self.own_at) & (at < self.own_at + self.n_own)
        places = np.flatnonzero(own)
        counts, columns, _ = self.extended_rows(at[own] - self.own_at)  # A is symmetric
        near, place = columns.astype(np.int64) - self.own_at, np.repeat(places, counts)
        inside = (near >= 0) & (near < self.n_own)
        places = np.flatnonzero(~own & (at >= 0))
        if not len(places):
            return near[inside], place[inside]
        starts = self._ghost_ptr[at[places]]
        counts = self._ghost_ptr[at[places] + 1] - starts
        rows = self._ghost_rows[ranges(starts, counts)]
        return np.concatenate([near[inside], rows]), np.concatenate(
            [place[inside], np.repeat(places, counts)]
        )

    def rows_touching(self, columns: np.ndarray) -> np.ndarray:
        """[m] the own rows with an entry in some of the extended columns [k], one for each entry."""
        rows = columns - self.own_at
        own = (rows >= 0) & (rows < self.n_own)
        near = self.extended_rows(rows[own])[1].astype(np.int64) - self.own_at  # A is symmetric
        near = near[(near >= 0) & (near < self.n_own)]
        ghosts = columns[~own]
        if not len(ghosts):
            return near
        starts = self._ghost_ptr[ghosts]
        rows = self._ghost_rows[ranges(starts, self._ghost_ptr[ghosts + 1] - starts)]
        return np.concatenate([near, rows])

    def each_once(self, rows: list[np.ndarray]) -> np.ndarray:
        """[k] local numbers of the own rows of several lists, ascending, each once: sorted where they are
        few, else by marks of all rows.
        """
        if MARKED_SHARE * sum(map(len, rows)) < self.n_own:
            return sorted_set(np.concatenate(rows))
        marks = np.zeros(self.n_own, dtype=bool)
        for each in rows:
            marks[each] = True
        return np.flatnonzero(marks)

    def _own_part(self, row: int) -> np.ndarray:
        """The own rows among the neighbours of an own row."""
        pointers = self._pointers[self._own_tile]
        near = self._indices[self._own_tile][pointers[row] : pointers[row + 1]]
        if self.plan.mode in ("none", "staged"):
            return near
        first, last = near.searchsorted((self.own_at, self.own_at + self.n_own))
        return near[first:last] - near.dtype.type(self.own_at)

    def extended_rows(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The stored entries of some own rows.

        rows      [k] local numbers
        returns   counts [k]; extended columns [sum of counts], ascending within a row; their weights float32,
                  or None when all on this rank are one (those of a directed graph: see `arcs_of`)
        """
        counts, columns, found = self._entries(rows, [] if self.directed else self._weights)
        weights, *negated = found or [None]
        for each in negated:
            weights -= each
        return counts, columns, weights

    def arcs_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Of a directed graph what the entries of `extended_rows` have, in their order.

        rows      [k] local numbers
        returns   arcs, weights, transpose_weights as graphs/graph.py has them, of as many entries; None, None
                  where all weights on this rank are one
        """
        _, _, (arcs, *weights) = self._entries(rows, [self._arcs, *self._weights])
        return (arcs, *(weights or (None, None)))

    def _entries(
        self, rows: np.ndarray, valued: list[list[np.ndarray]]
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Counts [k] and extended columns of own rows, and of each in `valued`, by tiles, their values."""
        starts = np.stack([pointers[rows] for pointers in self._pointers], axis=1)
        counts = np.stack([pointers[rows + 1] for pointers in self._pointers], axis=1) - starts
        places = (np.cumsum(counts) - counts.reshape(-1)).reshape(counts.shape)
        columns = np.empty(int(counts.sum()), dtype=self._indices[0].dtype)
        found = [np.empty(len(columns), dtype=tiles[0].dtype) for tiles in valued]
        for tile, first in enumerate(self._tile_firsts):
            entries = ranges(starts[:, tile], counts[:, tile])
            at = ranges(places[:, tile], counts[:, tile])
            columns[at] = self._indices[tile][entries] + columns.dtype.type(first)
            for values, tiles in zip(found, valued):
                values[at] = tiles[tile][entries]
        return counts.sum(axis=1), columns, found

    def global_rows(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Counts [k] and global columns of the stored entries of own rows `rows` [k] (local numbers)."""
        counts, columns, _ = self.extended_rows(rows)
        return counts, columns if self.columns is None else self.columns[columns]

    def pieces(self, rows: np.ndarray) -> Iterator[slice]:
        """Slices of own rows `rows` [k], one after the other, each of one row or of at most PIECE entries."""
        ends = np.cumsum(sum(pointers[rows + 1] - pointers[rows] for pointers in self._pointers))
        at = 0
        while at < len(rows):
            before = int(ends[at - 1]) if at else 0
            end = max(at + 1, int(np.searchsorted(ends, before + PIECE, side="right")))
            yield slice(at, end)
            at = end

    def host_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Row offsets [n_own+1] and extended columns [nnz] of the own rows: read only; staged: made anew."""
        if self.plan.mode != "staged":
            return self._pointers[0], self._indices[0]
        counts, columns, _ = self.extended_rows(np.arange(self.n_own))
        return np.concatenate([[0], np.cumsum(counts)]), columns

    def sent_rows(self, rank: int) -> np.ndarray:
        """[k] int64 local numbers of the own rows that a rank needs, ascending; none for this rank."""
        if self.plan.mode == "halo":
            return self.plan.send_rows[rank].astype(np.int64)
        return np.arange(0 if rank == self._rank else self.n_own)

    def extend_host(self, group: Group, values_own: np.ndarray) -> np.ndarray:
        """[n_ext] host values of the extended columns from one value per own row. Ranks: all call."""
        if self.plan.mode == "none":
            return values_own
        if self.plan.mode != "halo":
            return group.gather_host(values_own, self.own_counts)
        send = np.concatenate([values_own[rows] for rows in self.plan.send_rows])
        counts = [len(rows) for rows in self.plan.send_rows]
        extended = group.exchange_host(send, counts, self.plan.recv_counts)
        extended[self.own_at : self.own_at + self.n_own] = values_own
        return extended

    def extended_of(self, nodes: np.ndarray) -> np.ndarray:
        """[k] int64, the extended column of each global node, -1 where none is held here."""
        if self.columns is None:
            return nodes
        if not self.n_ext:
            return np.full(len(nodes), -1)
        at = np.minimum(self.columns.searchsorted(nodes), self.n_ext - 1)
        return np.where(self.columns[at] == nodes, at, -1)

    def boundary_own(self) -> np.ndarray:
        """[n_own] bool, the own rows that other ranks hold as ghosts."""
        boundary = np.full(self.n_own, self.plan.mode != "halo")
        for rows in self.plan.send_rows:
            boundary[rows] = True
        return boundary

    def ghost_index(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Offsets [n_ext+1] and own rows that touch each ghost column; None on one rank."""
        return (None, None) if self.plan.mode == "none" else (self._ghost_ptr, self._ghost_rows)

    def owns(self, node: int) -> bool:
        """True where the node's row is held here."""
        return self.lo <= node < self.lo + self.n_real

    def degrees_own(self) -> np.ndarray:
        """[n_own] int32, degrees of the own rows; zero on padding."""
        return sum(np.diff(pointers) for pointers in self._pointers).astype(np.int32)


def slices(length: int) -> Iterator[slice]:
    """Consecutive slices of at most PIECE elements."""
    return (slice(at, min(at + PIECE, length)) for at in range(0, length, PIECE))
