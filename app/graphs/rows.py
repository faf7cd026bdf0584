"""CSR rows lo..hi-1 of a symmetric matrix from the entries of its pairs, in the memory that the entries take.

Eight builders with one interface; `row_builder` chooses. Loops are dropped, columns ascend, of repeats one is
kept (the largest weight). An entry is (row, doubled column + written), see kernels.py.

    add_pairs(ends, weights)        both directions of pairs; only where all rows are held
    add_entries(entries, weights)   entries whose rows are held
    finish()                        the rows
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from app.graphs import kernels
from app.graphs.graph import IN_A, IN_TRANSPOSE, index_type
from app.graphs.keys import first_of_runs, sorted_set
from app.graphs.lists import starts
from app.native.library import address

STEP = 1 << 17  # entries handled at a time
SORTED = 1 << 23  # entries that are sorted between two looks


class Rows(NamedTuple):
    """CSR rows; indptr [rows+1], others as in Graph.

    written   the number of distinct (u, v), u != v, that stood so in the file
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None
    written: int
    arcs: np.ndarray | None = None
    transpose_weights: np.ndarray | None = None
    loops: np.ndarray | None = None


class RowBuilder(Protocol):
    """See above."""

    def add_pairs(self, ends: np.ndarray, weights: np.ndarray | None) -> None: ...
    def add_entries(self, entries: np.ndarray, weights: np.ndarray | None) -> None: ...
    def finish(self) -> Rows: ...


def row_builder(
    n: int, lo: int, counts: np.ndarray, weighted: bool, neighbours: str = "both",
    look: Callable[[], None] = lambda: None,
) -> RowBuilder:  # fmt: skip
    """The builder that takes the least memory.

    counts       [hi-lo] how many entries each row will get
    neighbours   "both": of an undirected graph; "in", "out": of a directed one, whose nodes hear the tails of
                 the arcs into them, or the heads of those out of them
    look         called every now and then where the longest work is: what it raises ends it
    """
    rows = len(counts)
    wide = 2 * rows * n >= 1 << 63
    if kernels.FINISH_MERGED and n < kernels.MOST_PLACED and (weighted or neighbours != "both"):
        return MergedRows(lo, counts, weighted, neighbours, look)
    if neighbours != "both":
        if wide:
            return ListedArcs(n, lo, counts, weighted, neighbours)
        return (WeightedArcs if weighted else DirectedRows)(n, lo, counts, neighbours)
    if wide:
        return ListedRows(n, lo, counts, weighted)
    if weighted:
        return WeightedRows(n, lo, counts)
    if kernels.FINISH_ROWS and n < kernels.MOST_PLACED:
        return PlacedRows(lo, counts, look)
    return SortedRows(n, lo, counts)


class PlacedRows:
    """Entries are put straight into their rows, 4 bytes each, and sorted there (compiled).

    look   called every now and then while they are sorted: what it raises ends that
    """

    def __init__(self, lo: int, counts: np.ndarray, look: Callable[[], None] = lambda: None) -> None:
        self.lo, self.look = lo, look
        ends = np.cumsum(counts, dtype=np.int64)
        self.starts = ends - counts
        self.next = self.starts.copy()
        self.entries = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.uint32)

    def add_pairs(self, ends: np.ndarray, weights: np.ndarray | None = None) -> None:
        kernels.PLACE_PAIRS(address(ends), len(ends), address(self.next), address(self.entries))

    def add_entries(self, entries: np.ndarray, weights: np.ndarray | None = None) -> None:
        kernels.PLACE_ENTRIES(
            address(entries), len(entries), self.lo, address(self.next), address(self.entries)
        )

    def finish(self) -> Rows:
        indptr = np.zeros(len(self.starts) + 1, dtype=np.int64)

        def finished(first: int, last: int) -> int:
            return kernels.FINISH_ROWS(
                last - first, self.lo + first, address(self.starts[first:]), address(self.next[first:]),
                address(self.entries), address(indptr[first:]),
            )  # fmt: skip

        written = self._in_parts(finished)
        self.entries.resize(int(indptr[-1]), refcheck=False)
        return Rows(indptr, self.entries.view(np.int32), None, written)

    def _in_parts(self, finished: Callable[[int, int], int]) -> int:
        """The sum of what `finished` says of rows first..last-1, some after others, with a look before each;
        below 0: there is no memory.
        """
        n, written = len(self.starts), 0
        parts = np.searchsorted(self.starts, np.arange(0, len(self.entries), SORTED))
        for first, last in pairwise(sorted_set(np.append(parts, n)).tolist()):
            self.look()
            found = finished(first, last)
            if found < 0:
                raise MemoryError("no memory to sort the longest row")
            written += found
        return written


class MergedRows(PlacedRows):
    """As PlacedRows, of entries with weights, 8 bytes each, of directed graphs, or both: of equal entries, of
    either direction where they are told apart, the largest weight is kept (compiled)."""

    def __init__(
        self, lo: int, counts: np.ndarray, weighted: bool, neighbours: str,
        look: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        super().__init__(lo, counts, look)
        self.weighted, self.directed = weighted, neighbours != "both"
        # An entry that stood in the file goes from its row to its column. Those with this flag are in A.
        self.a_flag = int(neighbours == "out") if self.directed else -1
        if weighted:
            self.entries = np.empty(len(self.entries), dtype=np.uint64)

    def add_pairs(self, ends: np.ndarray, weights: np.ndarray | None = None) -> None:
        if not self.weighted:
            super().add_pairs(ends)
            return
        held = np.ascontiguousarray(weights, dtype=np.float32)
        kernels.PLACE_WEIGHTED_PAIRS(
            address(ends), address(held), len(ends), address(self.next), address(self.entries)
        )

    def add_entries(self, entries: np.ndarray, weights: np.ndarray | None = None) -> None:
        if not self.weighted:
            super().add_entries(entries)
            return
        held = np.ascontiguousarray(weights, dtype=np.float32)
        kernels.PLACE_WEIGHTED_ENTRIES(
            address(entries), address(held), len(entries), self.lo, address(self.next), address(self.entries)
        )

    def finish(self) -> Rows:
        n, m = len(self.starts), len(self.entries)
        indptr = np.zeros(n + 1, dtype=np.int64)
        both = self.weighted and self.directed
        weights, transpose = (
            np.empty(m if there else 0, dtype=np.float32) for there in (self.weighted, both)
        )
        arcs = np.empty(m if self.directed else 0, dtype=np.uint8)
        loops = np.zeros(n, dtype=np.uint8) if self.directed else None

        def finished(first: int, last: int) -> int:
            return kernels.FINISH_MERGED(
                int(self.weighted), last - first, self.lo + first, address(self.starts[first:]),
                address(self.next[first:]), address(self.entries), self.a_flag, address(indptr[first:]),
                address(weights) if self.weighted else 0, address(transpose), address(arcs),
                0 if loops is None else address(loops[first:]),
            )  # fmt: skip

        written = self._in_parts(finished)
        kept = int(indptr[-1])
        entries, self.entries = self.entries, np.empty(0, dtype=self.entries.dtype)
        entries.resize(-(-4 * kept // entries.itemsize), refcheck=False)
        for each in (weights, transpose, arcs):
            if len(each):
                each.resize(kept, refcheck=False)
        return Rows(
            indptr, entries.view(np.int32)[:kept], weights if self.weighted else None, written,
            arcs if self.directed else None, transpose if both else None, loops,
        )  # fmt: skip


class SortedRows:
    """Entries are kept as one number each, 8 bytes, sorted, and turned to columns in the same memory."""

    def __init__(self, n: int, lo: int, counts: np.ndarray) -> None:
        self.n, self.lo, self.rows, self.filled = n, lo, len(counts), 0
        self.keys = np.empty(int(counts.sum()), dtype=np.int64)

    def add_pairs(self, ends: np.ndarray, weights: np.ndarray | None = None) -> None:
        self.add_entries(kernels.both_directions(ends, np.uint64))

    def add_entries(self, entries: np.ndarray, weights: np.ndarray | None = None) -> None:
        keys = self.keys[self.filled : self.filled + len(entries)]
        keys[:] = entries[:, 0]
        keys -= self.lo
        keys *= 2 * self.n
        keys += entries[:, 1].astype(np.int64)
        self.filled += len(entries)

    def _pairs(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """indptr, columns, and which of the distinct pairs are no loops.

        pairs   [k] ascending: keys without what is written; overwritten
        """
        rows = pairs // self.n
        pairs -= rows * self.n
        kept = pairs != rows + self.lo
        return starts(rows[kept], self.rows), pairs[kept].astype(index_type(self.n)), kept

    def finish(self) -> Rows:
        self.keys.sort()
        kind = index_type(self.n)
        columns = self.keys.view(kind)
        degrees, at, written = np.zeros(self.rows, dtype=np.int64), 0, 0
        for start in range(0, len(self.keys), STEP):
            part = self.keys[start : start + STEP + 1].copy()
            rows, kept, new = self._distinct(part, last=start + STEP >= len(self.keys))
            # Columns take half the room of the keys or the same: they never pass what is still to be read.
            columns[at : at + len(kept)] = kept
            at, written = at + len(kept), written + new
            if len(rows):
                degrees[rows[0] : rows[-1] + 1] += np.bincount(rows - rows[0])
        self.keys.resize(-(-at * np.dtype(kind).itemsize // 8), refcheck=False)
        indptr = np.zeros(self.rows + 1, dtype=np.int64)
        np.cumsum(degrees, out=indptr[1:])
        return Rows(indptr, self.keys.view(kind)[:at], None, written)

    def _distinct(self, part: np.ndarray, last: bool) -> tuple[np.ndarray, np.ndarray, int]:
        """Rows and columns of the distinct entries of sorted keys, and how many of them were written.

        part   [k+1], the last one belongs to the next part; [k] where there is none
        """
        pair = part >> 1
        final = np.append(pair[1:] != pair[:-1], True) if last else pair[1:] != pair[:-1]
        k = len(final)
        rows = pair[:k] // self.n
        columns = pair[:k] - rows * self.n
        final &= columns != rows + self.lo
        # Of equal entries the one that is written comes last.
        return rows[final], columns[final], int(np.count_nonzero(part[:k][final] & 1))


class DirectedRows(SortedRows):
    """The rows of both directions of arcs without weights, and which of them there are; 8 bytes an entry, and
    some 50 while they are sorted."""

    def __init__(self, n: int, lo: int, counts: np.ndarray, neighbours: str) -> None:
        super().__init__(n, lo, counts)
        # An entry that stood in the file goes from its row to its column. Those with this flag are in A.
        self.a_flag = int(neighbours == "out")

    def finish(self) -> Rows:
        keys, self.keys = self.keys, np.empty(0, dtype=np.int64)
        keys.sort()
        keys = keys[first_of_runs(keys)]
        seen = np.where(keys.astype(np.uint8) & 1 == self.a_flag, IN_A, IN_TRANSPOSE)
        keys >>= 1
        first = first_of_runs(keys)
        # Of a pair in both directions the entry that stood in the file comes second.
        arcs, twice = seen[first], np.flatnonzero(~first)
        arcs[twice - np.arange(1, len(twice) + 1)] |= seen[twice]
        pairs = keys[first]
        loops = _looped(pairs // self.n, pairs % self.n - self.lo, self.rows)
        indptr, columns, kept = self._pairs(pairs)
        return Rows(indptr, columns, None, _written(arcs[kept], self.a_flag), arcs[kept], loops=loops)


class WeightedRows(SortedRows):
    """As SortedRows, with weights: 12 bytes an entry, and some 30 while they are sorted."""

    def __init__(self, n: int, lo: int, counts: np.ndarray) -> None:
        super().__init__(n, lo, counts)
        self.weights = np.empty(len(self.keys), dtype=np.float32)

    def add_pairs(self, ends: np.ndarray, weights: np.ndarray) -> None:
        self.add_entries(kernels.both_directions(ends, np.uint64), np.repeat(weights, 2))

    def add_entries(self, entries: np.ndarray, weights: np.ndarray) -> None:
        self.weights[self.filled : self.filled + len(entries)] = weights
        super().add_entries(entries)

    def _ascending(self) -> tuple[np.ndarray, np.ndarray]:
        """All keys and their weights, which are held here no longer."""
        keys, self.keys = self.keys, np.empty(0, dtype=np.int64)
        weights, self.weights = self.weights, np.empty(0, dtype=np.float32)
        # Not stable, hence twice as fast: of equal keys the largest weight is kept, whatever their order.
        order = np.argsort(keys)
        return keys[order], weights[order]

    def finish(self) -> Rows:
        keys, weights = self._ascending()
        first = first_of_runs(keys >> 1)
        weights = _largest(weights, first)
        # Of equal entries the one that is written comes last.
        keys = keys[np.append(first[1:], True)[: len(keys)]]
        written = (keys & 1).astype(bool)
        keys >>= 1
        indptr, columns, kept = self._pairs(keys)
        return Rows(indptr, columns, weights[kept], int(np.count_nonzero(written[kept])))


class WeightedArcs(WeightedRows):
    """As DirectedRows, with weights: the largest of an arc's repeats."""

    def __init__(self, n: int, lo: int, counts: np.ndarray, neighbours: str) -> None:
        super().__init__(n, lo, counts)
        self.a_flag = int(neighbours == "out")

    def finish(self) -> Rows:
        keys, weights = self._ascending()
        first = first_of_runs(keys)
        keys, weights = keys[first], _largest(weights, first)
        flags = keys.astype(np.uint8) & 1
        keys >>= 1
        first = first_of_runs(keys)
        arcs, sides = _both_sides(first, flags, weights, self.a_flag)
        pairs = keys[first]
        loops = _looped(pairs // self.n, pairs % self.n - self.lo, self.rows)
        indptr, columns, kept = self._pairs(pairs)
        arcs, written = arcs[kept], _written(arcs[kept], self.a_flag)
        return Rows(indptr, columns, sides[0][kept], written, arcs, sides[1][kept], loops)


class ListedRows:
    """Entries are kept as they come, where a number for each would not fit 64 bits.

    Sorting takes some 50 bytes an entry.
    """

    def __init__(self, n: int, lo: int, counts: np.ndarray, weighted: bool) -> None:
        self.n, self.lo, self.rows = n, lo, len(counts)
        self.entries: list[np.ndarray] = []
        self.weights: list[np.ndarray] | None = [] if weighted else None

    def add_pairs(self, ends: np.ndarray, weights: np.ndarray | None) -> None:
        entries = kernels.both_directions(ends, np.uint32 if self.n < kernels.MOST_PLACED else np.uint64)
        self.add_entries(entries, None if weights is None else np.repeat(weights, 2))

    def add_entries(self, entries: np.ndarray, weights: np.ndarray | None) -> None:
        self.entries.append(entries)
        if self.weights is not None:
            self.weights.append(weights)

    def _take(self) -> tuple[np.ndarray, np.ndarray | None]:
        """All entries [m, 2] and weights [m], which are held here no longer."""
        entries, weights = np.concatenate([np.empty((0, 2), np.uint32), *self.entries]), None
        if self.weights is not None:
            weights = np.concatenate([np.empty(0, np.float32), *self.weights])
        self.entries, self.weights = [], None
        return entries, weights

    def finish(self) -> Rows:
        entries, weights = self._take()
        one = entries.dtype.type(1)
        keys = (entries[:, 1] >> one, entries[:, 0])
        order = np.lexsort(keys if weights is None else (_ranked(weights), *keys))
        rows, columns, flags = entries[order, 0], entries[order, 1] >> one, entries[order, 1] & one
        firsts = np.flatnonzero(_is_first(rows, columns))
        ends = np.append(firsts[1:], len(rows))[: len(firsts)] - 1
        arcs = np.maximum.reduceat(flags, firsts) if len(firsts) else flags
        kept = rows[ends] != columns[ends]
        ends, arcs = ends[kept], arcs[kept]
        indptr = starts(rows[ends].astype(np.int64) - self.lo, self.rows)
        merged = None if weights is None else weights[order[ends]]
        return Rows(indptr, columns[ends].astype(index_type(self.n)), merged, int(np.count_nonzero(arcs)))


class ListedArcs(ListedRows):
    """As WeightedArcs, of entries as they come."""

    def __init__(self, n: int, lo: int, counts: np.ndarray, weighted: bool, neighbours: str) -> None:
        super().__init__(n, lo, counts, weighted)
        self.a_flag = int(neighbours == "out")

    def finish(self) -> Rows:
        weighted = self.weights is not None
        entries, weights = self._take()
        rows, doubled = entries[:, 0].astype(np.int64), entries[:, 1].astype(np.int64)
        kept = rows != doubled >> 1
        loops = _looped(rows - self.lo, (doubled >> 1) - self.lo, self.rows)
        rows, doubled = rows[kept], doubled[kept]
        weights = np.ones(len(rows), dtype=np.float32) if weights is None else weights[kept]
        order = np.lexsort((_ranked(weights), doubled, rows))
        rows, columns, flags = rows[order], doubled[order] >> 1, doubled[order] & 1
        first = _is_first(rows, columns)
        # Of equal entries the last one counts, which has the largest weight.
        arcs, sides = _both_sides(first, flags, weights[order], self.a_flag)
        sides = sides if weighted else [None, None]
        columns = columns[first].astype(index_type(self.n))
        indptr = starts(rows[first] - self.lo, self.rows)
        return Rows(indptr, columns, sides[0], _written(arcs, self.a_flag), arcs, sides[1], loops)


def _both_sides(
    first: np.ndarray, flags: np.ndarray, weights: np.ndarray, a_flag: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """What Graph has as arcs, weights and transpose_weights, of each distinct pair.

    first     [m] bool, where a pair begins     flags, weights [m] of its entries; the last one counts
    """
    place = np.cumsum(first) - 1  # of each entry among the distinct ones
    arcs, sides = np.zeros(int(np.count_nonzero(first)), dtype=np.uint8), []
    for flag, bit in ((a_flag, IN_A), (1 - a_flag, IN_TRANSPOSE)):
        chosen = flags == flag
        arcs[place[chosen]] |= bit
        sides.append(np.zeros(len(arcs), dtype=np.float32))
        sides[-1][place[chosen]] = weights[chosen]
    return arcs, sides


def _looped(rows: np.ndarray, columns: np.ndarray, count: int) -> np.ndarray:
    """[count] uint8, which of the held rows have an entry in their own column; both by the held rows."""
    loops = np.zeros(count, dtype=np.uint8)
    loops[rows[rows == columns]] = 1
    return loops


def _written(arcs: np.ndarray, a_flag: int) -> int:
    """Distinct arcs as they stood in the file."""
    return int(np.count_nonzero(arcs & (IN_A if a_flag else IN_TRANSPOSE)))


def _is_first(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """[m] bool, whether a sorted entry differs from the one before it."""
    first = np.ones(len(rows), dtype=bool)
    first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    return first


def _ranked(weights: np.ndarray) -> np.ndarray:
    """[m] int32 in the order of the float32 weights, -0 before 0."""
    bits = weights.view(np.int32)
    return np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits)


def _largest(weights: np.ndarray, first: np.ndarray) -> np.ndarray:
    """[k] float32, the largest weight of each run that begins where `first` [m] says."""
    if first.all():
        return weights
    ranks = np.maximum.reduceat(_ranked(weights), np.flatnonzero(first))
    return _ranked(ranks.view(np.float32)).view(np.float32)  # its own inverse
