"""RowBlock: this rank's rows of a symmetric adjacency matrix, with the ghost columns they touch.

The extended columns of a rank are one list in global order: ghosts of lower ranks, the own rows (padded to a
multiple of 8), ghosts of higher ranks. A row of a product is therefore summed in global column order on any
number of ranks.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import _sparsetools

from app.comm.group import Group
from app.graphs.graph import IN_A, IN_TRANSPOSE, Graph, index_type
from app.graphs.lists import ranges
from app.graphs.metric import Metric
from app.numerics.pieces import row_pieces
from app.partition.rows import RowPartition
from app.sparse.host_rows import PIECE, HostRows, slices

Chosen = Callable[[np.ndarray, np.ndarray], np.ndarray]  # which pairs of rows and columns count
HALO_SHARE = 0.7  # of the rows of a gather: beyond it packing and placing cost more than is saved
GATHERED_BYTES = 8 << 20  # of a gathered array: what a rank's cache about holds
STAGE_BYTES = 256 << 10  # of a stage: below it a broadcast costs its latency


@dataclass(frozen=True)
class ExchangePlan:
    """Which rows travel before a product.

    mode        "none"     one rank
                "gather"   all rows to all ranks, in one message
                "halo"     to each rank only the rows that it needs
                "staged"   the rows of one rank after the other to all, each multiplied while the next travels
    recv_counts for each rank the extended columns that are its rows; for this rank all own rows
    send_rows   halo: for each rank the own local rows it needs
    """

    mode: str
    recv_counts: list[int]
    send_rows: list[np.ndarray] = field(default_factory=list)


class RowBlock(HostRows):
    """Adjacency rows of one graph on one rank.

    group      the ranks that the rows are split over
    A          CSR on the device [n_own, n_ext], all stored values one; staged: a list of tiles, for each rank
               the columns that are its rows, [n_own, own_counts[rank]]
    A_weights  two like A, of the positive and of the negated negative edge weights (None: none is negative);
               None when all weights are one
    max_degree, weighted, signed   of the whole graph: its largest degree; whether a weight is not one, or is
               negative
    n_own      padded rows of this rank; `n_real` of them are nodes, lo..lo+n_real-1
    n_ext      extended columns; `own_at` is where the own rows start among them
    exchange   the mode that was asked for
    width      columns of the operands that whole products are made with; 0 where changes are followed row by
               row, which needs ghost rows: then "auto" is never "staged"
    metric     distances between all pairs of nodes, whole on every rank, where a problem needs them; or None
    node_weights   [n_real] float32 of the own nodes, or None: all one
    directed   the graph has arcs: the rows are the pattern of both directions, A is None, and `adjacency` and
               `transpose` are the matrices
    columns    [n_ext] int64 the global number of each extended column, or None: they are all rows
    kept       what others derive from the rows once (sparse/whole_weights.py), by name
    Memory     4 bytes for each stored directed edge ("none", "gather": in the graph's own array), and 4 more
               for each whose column is a ghost; weights: 4 (unless staged: in the graph's own array), or 8
               where some are negative; directed: the entries of both directions, 1 or 9 bytes more for each,
               and those of `adjacency` and `transpose`
    """

    def __init__(
        self, group: Group, graph: Graph, rows: RowPartition, exchange: str = "auto", width: int = 0,
        metric: Metric | None = None,
    ) -> None:  # fmt: skip
        self.name, self.n, self.edges = graph.name, graph.n, graph.edges
        self.group, self.metric, self.node_weights = group, metric, graph.node_weights
        self.rows, self.exchange, self.width, self._rank = rows, exchange, width, group.rank
        self.lo = int(rows.offsets[group.rank])
        self.n_own = int(rows.offsets[group.rank + 1]) - self.lo
        self.n_real = graph.hi - graph.lo
        self.own_counts = np.diff(rows.offsets).tolist()
        self.block_starts = rows.starts[rows.cuts[group.rank] : rows.cuts[group.rank + 1] + 1] - self.lo
        self.columns: np.ndarray | None = None
        self.kept: dict[str, Any] = {}
        self.directed = graph.arcs is not None
        self.plan = self._choose(group, graph)
        self.own_at = sum(self.plan.recv_counts[: group.rank])
        self.n_ext = sum(self.plan.recv_counts)
        self._adjacency = self._transpose = self._arcs = None
        self._store(group, graph)
        self._agree(group)
        if self.directed:
            self._adjacency = self._direction(group, IN_A, self._weights[:1])
            self._transpose = self._direction(group, IN_TRANSPOSE, self._weights[1:])

    @property
    def adjacency(self) -> "RowBlock":
        """The rows of A, by which a node sums over those that it hears; of an undirected graph this block.

        Of a directed one the block shares plan and columns with this one; the same for `transpose`.
        """
        return self._adjacency or self

    @property
    def transpose(self) -> "RowBlock":
        """The rows of A^T, by which a node sums over those that hear it."""
        return self._transpose or self

    # ---- making -----------------------------------------------------------------------------------------

    def _agree(self, group: Group) -> None:
        """max_degree and weighted. Ranks: all call."""
        # A rank may hold only weights of one where others do not.
        weighted, signed = self.A_weights is not None, len(self._weights) > 1 and not self.directed
        local = [int(self.degrees_own().max(initial=0)), int(weighted), int(signed)]
        self.max_degree, weighted, signed = group.max_integers(np.array(local, dtype=np.int64)).tolist()
        self.weighted, self.signed = bool(weighted), bool(signed)

    def _direction(self, group: Group, bit: int, weights: list[list[np.ndarray]]) -> "RowBlock":
        """The entries whose arcs have a bit, as a block of their own. Ranks: all call.

        weights   [their tiles], or [] for all ones
        """
        part, kept = copy(self), [(arcs & bit) > 0 for arcs in self._arcs]
        part.directed, part.kept, part._adjacency, part._transpose, part._arcs = False, {}, None, None, None
        part._pointers, part._indices = [], []
        for pointers, indices, chosen in zip(self._pointers, self._indices, kept):
            before = np.zeros(len(chosen) + 1, dtype=pointers.dtype)
            np.cumsum(chosen, out=before[1:])
            part._pointers.append(before[pointers])
            part._indices.append(indices[chosen])
        values = [[each[chosen] for each, chosen in zip(tiles, kept)] for tiles in weights]
        one = all((each == 1).all() for tiles in values for each in tiles)
        part._make(group, [] if one else values)
        part._agree(group)
        return part

    def _choose(self, group: Group, graph: Graph) -> ExchangePlan:
        """How rows travel, agreed by all ranks from counts of rows.

        "halo" where the rows that ranks need are at most HALO_SHARE of those a gather brings. Else the bytes
        are those of a gather in any order, and memory decides: "staged", which holds the rows of two ranks
        and not of all, where the gathered array of `width` columns would exceed GATHERED_BYTES and a rank's
        share of it is at least STAGE_BYTES; "gather", one message, where not.
        """
        if group.size == 1:
            return ExchangePlan("none", self.own_counts)
        ghosts = self._ghosts(graph)
        received_halo = int(group.sum_integers(np.array([len(ghosts)]))[0])
        total = int(self.rows.offsets[-1])
        mode, nbytes = self.exchange, 4 * self.width * total
        if mode == "auto" and received_halo <= HALO_SHARE * total * (group.size - 1):
            mode = "halo"
        elif mode == "auto":
            large = nbytes > GATHERED_BYTES and nbytes >= STAGE_BYTES * group.size
            mode = "staged" if large else "gather"
        return self._halo(group, ghosts) if mode == "halo" else ExchangePlan(mode, self.own_counts)

    def _ghosts(self, graph: Graph) -> np.ndarray:
        """[k] ascending: the columns that other ranks own."""
        touched = np.zeros(self.n, dtype=bool)
        for piece in slices(len(graph.indices)):
            touched[graph.indices[piece]] = True
        touched[self.lo : self.lo + self.n_real] = False
        return np.flatnonzero(touched).astype(index_type(self.n))

    def _halo(self, group: Group, ghosts: np.ndarray) -> ExchangePlan:
        """Ask every rank for the ghosts it owns. Ranks: all call."""
        recv = np.bincount(self.rows.owner(ghosts), minlength=group.size).tolist()
        send = group.exchange_counts(recv)
        wanted = group.exchange_host(ghosts, recv, send) - ghosts.dtype.type(self.lo)
        send_rows = [wanted[end - count : end] for count, end in zip(send, np.cumsum(send))]
        below = sum(recv[: group.rank])
        own = np.arange(self.lo, self.lo + self.n_own, dtype=ghosts.dtype)
        self.columns = np.concatenate([ghosts[:below], own, ghosts[below:]], dtype=np.int64)
        recv[group.rank] = self.n_own
        return ExchangePlan("halo", recv, send_rows)

    def _store(self, group: Group, graph: Graph) -> None:
        """The index arrays, and the device's matrices.

        Staged: one tile for each rank, else one. Tiles are arrays of their own: SciPy copies a small view.
        _pointers  of each tile [n_own+1], where its rows begin
        _indices   of each tile [nnz], columns counted from the tile's first
        """
        kind = index_type(max(len(graph.indices), self.n_ext))
        indptr = np.full(self.n_own + 1, len(graph.indices), dtype=kind)
        indptr[: self.n_real + 1] = graph.indptr
        self._pointers, self._indices = [indptr], [self._number(graph.indices).astype(kind, copy=False)]
        self._tile_firsts, self._own_tile = [0], 0
        if group.size > 1:
            self._index_ghosts()
        if self.directed:
            entries = [each for each in (graph.weights, graph.transpose_weights) if each is not None]
            entries.append(graph.arcs)
        else:
            entries = self._split_weights(graph.weights)
        entries = [[part] for part in entries]
        if self.plan.mode == "staged":
            self._tile_firsts, self._own_tile = self.rows.offsets[:-1].tolist(), group.rank
            self._pointers = self._cut_pointers(graph.indices)
            self._indices = self._tile_major(graph.indices, self._indices[0])
            for first, indices in zip(self._tile_firsts, self._indices):
                indices -= indices.dtype.type(first)
            entries = [self._tile_major(graph.indices, part) for (part,) in entries]
        if self.directed:
            *self._weights, self._arcs = entries
            self.A = self.A_weights = None
        else:
            self._make(group, entries)

    @property
    def stored(self) -> int:
        """Entries of the own rows, those of both directions of arcs."""
        return sum(map(len, self._indices))

    def _make(self, group: Group, weights: list[list[np.ndarray]]) -> None:
        """The device's matrices; weights: of the entries, positive and negated negative, by tiles."""
        self._weights = weights
        made = lambda values: self._matrix(group.device, values, self._pointers, self._indices)  # noqa: E731
        self.A, self.A_weights = made([None] * len(self._indices)), None
        if weights:
            self.A_weights = [made(weights[0]), made(weights[1]) if len(weights) > 1 else None]

    def _number(self, indices: np.ndarray) -> np.ndarray:
        """[nnz] the extended column of each stored global column."""
        if self.columns is None:
            return indices
        number = np.empty(int(self.rows.offsets[-1]), dtype=index_type(self.n_ext))
        for piece in slices(self.n_ext):
            number[self.columns[piece]] = np.arange(piece.start, piece.stop)
        out = np.empty(len(indices), dtype=number.dtype)
        for piece in slices(len(indices)):
            out[piece] = number[indices[piece]]
        return out

    def _index_ghosts(self) -> None:
        """For each ghost column the own rows that touch it, ascending: who is affected when a node changes.

        _ghost_ptr [n_ext+1], _ghost_rows. For an own column its row tells, since the matrix is symmetric.
        """
        pointers, indices = self._pointers[0], self._indices[0]
        pieces = list(row_pieces(pointers, max(PIECE, self.n_ext // 4)))
        filled = np.zeros(self.n_ext + 1, dtype=pointers.dtype)
        for lo, hi in pieces:
            filled[1:] += np.bincount(indices[pointers[lo] : pointers[hi]], minlength=self.n_ext)
        filled[1 + self.own_at : 1 + self.own_at + self.n_own] = 0
        np.cumsum(filled, out=filled)
        self._ghost_rows = np.empty(filled[-1], dtype=pointers.dtype)
        for lo, hi in pieces:
            starts, rows = self._ghosts_of(lo, hi)
            touched = np.flatnonzero(starts[1:] != starts[:-1])
            found = starts[touched + 1] - starts[touched]
            self._ghost_rows[ranges(filled[touched], found)] = rows
            filled[touched] += found
        # Each column has been filled up to where the next one begins.
        filled[1:] = filled[:-1]
        filled[0] = 0
        self._ghost_ptr = filled

    def _ghosts_of(self, lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
        """The entries of own rows lo..hi-1 in ghost columns, by column: offsets [n_ext+1], and rows."""
        pointers = self._pointers[0]
        columns, kind = self._indices[0][pointers[lo] : pointers[hi]], pointers.dtype
        ghost = (columns < self.own_at) | (columns >= self.own_at + self.n_own)
        before = np.zeros(len(ghost) + 1, dtype=kind)
        np.cumsum(ghost, out=before[1:])
        before, columns = before[pointers[lo : hi + 1] - pointers[lo]], columns[ghost]
        starts, rows = np.empty(self.n_ext + 1, dtype=kind), np.empty_like(columns)
        data = np.empty((2, len(columns)), dtype=np.int8)  # values that the kernel moves along
        _sparsetools.csr_tocsc(hi - lo, self.n_ext, before, columns, data[0], starts, rows, data[1])
        rows += kind.type(lo)
        return starts, rows

    def _cut_pointers(self, columns: np.ndarray) -> list[np.ndarray]:
        """For each rank's tile [n_own+1], where its rows begin."""
        pointers, tiles = self._pointers[0], len(self.own_counts)
        out = np.zeros((tiles, self.n_own + 1), dtype=pointers.dtype)
        for lo, hi in row_pieces(pointers, PIECE):
            owner = self.rows.owner(columns[pointers[lo] : pointers[hi]])
            row = np.repeat(np.arange(hi - lo), np.diff(pointers[lo : hi + 1]))
            found = np.bincount(owner * (hi - lo) + row, minlength=tiles * (hi - lo))
            out[:, lo + 1 : hi + 1] = found.reshape(tiles, hi - lo)
        return list(np.cumsum(out, axis=1, out=out))

    def _tile_major(self, columns: np.ndarray, values: np.ndarray) -> list[np.ndarray]:
        """The values [nnz] of the entries in global `columns`, one array for each tile, in the same order."""
        out = [np.empty(pointers[-1], dtype=values.dtype) for pointers in self._pointers]
        filled = np.zeros(len(out), dtype=np.int64)
        for piece in slices(len(columns)):
            owner = self.rows.owner(columns[piece])
            ordered = values[piece][np.argsort(owner.astype(np.uint16), kind="stable")]
            ends = np.cumsum(np.bincount(owner, minlength=len(out)))
            for tile, part in enumerate(np.split(ordered, ends[:-1])):
                out[tile][filled[tile] : filled[tile] + len(part)] = part
                filled[tile] += len(part)
        return out

    def _split_weights(self, weights: np.ndarray | None) -> list[np.ndarray]:
        """The positive weights and, where there are any, the negated negative ones; [] for all ones."""
        if weights is None or np.all(weights == 1):
            return []
        if (weights >= 0).all():
            return [weights]
        return [np.maximum(weights, 0), np.maximum(-weights, 0)]

    def _matrix(
        self, device: Any, values: list[Any], pointers: list[np.ndarray], indices: list[np.ndarray]
    ) -> Any:
        """A pattern with the values of each tile (None: ones) on the device: one matrix, or its tiles."""
        widths = self.own_counts if self.plan.mode == "staged" else [self.n_ext]
        parts = zip(pointers, indices, values, widths)
        tiles = [device.csr(*arrays, (self.n_own, width)) for *arrays, width in parts]
        return tiles if self.plan.mode == "staged" else tiles[0]

    def signs(self, device: Any) -> list[Any]:
        """Two matrices like A, of the edges of weights from zero up and of the others (None: there are none).

        Made once. Memory: as A where a weight is negative.
        """
        if not self.signed:
            return [self.A, None]
        if "signs" not in self.kept:
            none = [np.zeros(len(indices), dtype=bool) for indices in self._indices]
            minus = [values > 0 for values in self._weights[1]] if len(self._weights) > 1 else none
            others = [~chosen for chosen in minus]
            self.kept["signs"] = [self._of_entries(device, chosen) for chosen in (others, minus)]
        return self.kept["signs"]

    def _of_entries(self, device: Any, chosen: list[np.ndarray]) -> Any:
        """A matrix like A of the entries of each tile that are chosen [nnz] bool."""
        pointers, indices = [], []
        for starts, columns, kept in zip(self._pointers, self._indices, chosen):
            before = np.zeros(len(kept) + 1, dtype=starts.dtype)
            np.cumsum(kept, out=before[1:])
            pointers.append(before[starts])
            indices.append(columns[kept])
        return self._matrix(device, [None] * len(indices), pointers, indices)

    def of_pairs(self, device: Any, chosen: Chosen, weighted: bool) -> tuple[Any, np.ndarray]:
        """A matrix like A of the entries whose pairs of nodes are chosen, and [n_own] how many each row has.

        chosen     of global numbers of rows [k] and of columns [k] says [k] bool, which
        weighted   with the positive weights instead of ones
        """
        kept = [self._chosen(tile, chosen) for tile in range(len(self._indices))]
        pointers, indices, counts = [], [], np.zeros(self.n_own, dtype=np.int64)
        for starts, columns, mine in zip(self._pointers, self._indices, kept):
            before = np.zeros(len(mine) + 1, dtype=starts.dtype)
            np.cumsum(mine, out=before[1:])
            pointers.append(before[starts])
            indices.append(columns[mine])
            counts += np.diff(pointers[-1])
        values = [None] * len(indices)
        if weighted:
            values = [each[mine] for each, mine in zip(self._weights[0], kept)]
        return self._matrix(device, values, pointers, indices), counts

    def _chosen(self, tile: int, chosen: Chosen) -> np.ndarray:
        """[entries of a tile] bool, see `of_pairs`; asked a piece of the rows at a time."""
        pointers, indices = self._pointers[tile], self._indices[tile]
        kept, first = np.empty(len(indices), dtype=bool), self._tile_firsts[tile]
        for lo, hi in row_pieces(pointers, PIECE):
            part = slice(int(pointers[lo]), int(pointers[hi]))
            rows = np.repeat(np.arange(self.lo + lo, self.lo + hi), np.diff(pointers[lo : hi + 1]))
            columns = indices[part] + first if self.columns is None else self.columns[indices[part]]
            kept[part] = chosen(rows, columns)
        return kept

    def part(
        self, device: Any, rows_own: np.ndarray | None = None, wanted_ext: np.ndarray | None = None
    ) -> tuple[Any, np.ndarray]:
        """A matrix like A of the entries of some rows, or in some columns, and [nnz] bool, which of all they
        are. Not of a staged block.

        rows_own   [n_own] bool     wanted_ext   [n_ext] bool
        """
        chosen = np.ones(len(self._indices[0]), dtype=bool)
        if rows_own is not None:
            chosen &= np.repeat(rows_own, np.diff(self._pointers[0]))
        if wanted_ext is not None:
            chosen &= self._wanted(0, wanted_ext, 0, self.n_own)
        return self._of_entries(device, [chosen]), chosen

    # ---- fewer columns ----------------------------------------------------------------------------------

    def pointers_within(self, wanted_ext: np.ndarray) -> list[np.ndarray]:
        """For each tile [n_own+1], where rows begin once the entries in other columns have gone.

        wanted_ext   [n_ext] bool
        """
        out = []
        for tile, pointers in enumerate(self._pointers):
            ends = np.zeros_like(pointers)
            for lo, hi in row_pieces(pointers, PIECE):
                kept = np.zeros(int(pointers[hi] - pointers[lo]) + 1, dtype=pointers.dtype)
                np.cumsum(self._wanted(tile, wanted_ext, lo, hi), out=kept[1:])
                ends[lo + 1 : hi + 1] = ends[lo] + kept[pointers[lo + 1 : hi + 1] - pointers[lo]]
            out.append(ends)
        return out

    def within(
        self, device: Any, wanted_ext: np.ndarray, pointers: list[np.ndarray], weighted: bool
    ) -> tuple[Any, int]:
        """A matrix like A without the entries in other columns, and its bytes.

        wanted_ext, pointers   see `pointers_within`
        weighted               with the positive weights instead of ones
        """
        columns, values = [], []
        for tile, (old, new) in enumerate(zip(self._pointers, pointers)):
            columns.append(np.empty(new[-1], dtype=self._indices[tile].dtype))
            values.append(np.empty(new[-1], dtype=np.float32) if weighted else None)
            for lo, hi in row_pieces(old, PIECE):
                stored, kept = slice(old[lo], old[hi]), slice(new[lo], new[hi])
                wanted = self._wanted(tile, wanted_ext, lo, hi)
                columns[tile][kept] = self._indices[tile][stored][wanted]
                if weighted:
                    values[tile][kept] = self._weights[0][tile][stored][wanted]
        arrays = [*pointers, *columns, *(each for each in values if each is not None)]
        return self._matrix(device, values, pointers, columns), sum(each.nbytes for each in arrays)

    def _wanted(self, tile: int, wanted_ext: np.ndarray, lo: int, hi: int) -> np.ndarray:
        """[entries of a tile's rows lo..hi-1] bool: in wanted columns."""
        pointers, first = self._pointers[tile], self._tile_firsts[tile]
        width = self.own_counts[tile] if self.plan.mode == "staged" else self.n_ext
        return wanted_ext[first : first + width][self._indices[tile][pointers[lo] : pointers[hi]]]
