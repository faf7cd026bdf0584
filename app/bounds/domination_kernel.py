"""Exact reductions of dominating sets: what is left of the question which nodes dominate all others.

A row of the table is a node that has to be dominated, a column one that may be chosen; row v holds the
columns of v's closed neighbourhood. A row that holds all of another row is dominated whenever that one is,
and goes. A column whose rows another column has too, which is no dearer, need not be chosen, and goes. The
only column of a row is chosen, and with it go the rows that hold it.

Source   reductions of set covering: Garfinkel and Nemhauser, Integer Programming 1972, chapter 8
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.graphs.graph import Graph

PIECE = 1 << 16  # pairs of rows compared together
MOST_PAIRS = 1 << 25  # with more, a comparison of all rows, or columns, is left out
PASSES, LEAST = 30, 0.005  # of all rules, the last where fewer rows and columns, by this share, went
SMALL, TOGETHER = 30, 300  # parts of fewer columns are joined, up to so many


@dataclass(frozen=True, eq=False)
class Part:
    """Rows and columns that no others have to do with.

    table     [r, c] CSR of ones      price   [c] int64
    columns   [c] their nodes, ascending
    """

    table: sp.csr_array
    price: np.ndarray
    columns: np.ndarray


class Kernel:
    """What reductions leave of one graph.

    chosen   [n] bool, nodes of some optimal set: those that it has beside what `parts` have
    paid     the price of those
    parts    what is left, those of few columns first
    """

    def __init__(
        self, graph: Graph, price: np.ndarray, inside: np.ndarray, outside: np.ndarray,
        look: Callable[[], bool],
    ) -> None:  # fmt: skip
        """price [n] int64, above 0     inside, outside [n] bool: nodes that have to be, must not be chosen

        look   called now and then; nothing is left to be done once it returns True
        """
        n = graph.n
        self._price, self._look = price, look
        self.chosen = np.zeros(n, dtype=bool)
        self._stands = np.full(n, -1, dtype=np.int64)  # the column that took a column's place
        self._columns = np.arange(n)
        ones = np.ones(len(graph.indices), dtype=np.int8)
        matrix = sp.csr_array((ones, graph.indices, graph.indptr), shape=(n, n))
        self._table = _sorted(matrix + sp.eye_array(n, dtype=np.int8, format="csr"))
        self._choose(np.flatnonzero(inside))
        self._keep_columns(~outside[self._columns])
        self._reduce()
        self._moved: tuple[np.ndarray, np.ndarray] | None = None  # a solution, and the columns it comes to
        self.paid = int(price[self.chosen].sum())
        self.parts = self._parts()

    def followed(self, part: Part, solution: np.ndarray) -> np.ndarray | None:
        """[c] bool, a choice of a part's columns no dearer than what a dominating set [n] spends on it; None:
        it is none of this graph.
        """
        if self._moved is None or self._moved[0] is not solution:
            nodes = np.flatnonzero(solution)
            while (moved := self._stands[nodes] >= 0).any():
                nodes = np.where(moved, self._stands[nodes], nodes)
            there = np.zeros(len(solution), dtype=bool)
            there[nodes] = True
            self._moved = solution, there
        taken = self._moved[1][part.columns]
        return taken if covers(part.table, taken) else None

    def _reduce(self) -> None:
        for _ in range(PASSES):
            before = self._table.shape
            self._drop_rows()
            self._drop_columns()
            only = np.flatnonzero(np.diff(self._table.indptr) == 1)
            if len(only):
                self._choose(np.unique(self._table.indices[self._table.indptr[only]]))
            gone = sum(before) - sum(self._table.shape)
            if not gone or gone < LEAST * sum(before) or self._look():
                return

    def _choose(self, places: np.ndarray) -> None:
        """Choose the columns at these places [k]."""
        if not len(places):
            return
        taken = np.zeros(len(self._columns), dtype=bool)
        taken[places] = True
        self.chosen[self._columns[places]] = True
        self._table = self._table[self._table @ taken.astype(np.int32) == 0]
        self._keep_columns(~taken)

    def _keep_columns(self, kept: np.ndarray) -> None:
        """Leave out columns, and those without rows."""
        kept = kept & (np.bincount(self._table.indices, minlength=len(kept)) > 0)
        self._table, self._columns = _sorted(self._table[:, np.flatnonzero(kept)]), self._columns[kept]

    def _drop_rows(self) -> None:
        size = np.diff(self._table.indptr)
        kept = np.ones(len(size), dtype=bool)
        for u, v in _within(self._table, kept, self._look):
            kept[v[(size[u] < size[v]) | (u < v)]] = False
        self._table = self._table[np.flatnonzero(kept)]

    def _drop_columns(self) -> None:
        turned = _sorted(self._table.T.tocsr())
        size, price = np.diff(turned.indptr), self._price[self._columns]
        kept = np.ones(len(size), dtype=bool)
        for u, v in _within(turned, kept, self._look):
            less = (size[u] < size[v]) | (price[v] < price[u]) | (v < u)
            gone = (price[v] <= price[u]) & less
            kept[u[gone]] = False
            self._stands[self._columns[u[gone]]] = self._columns[v[gone]]
        self._keep_columns(kept)

    def _parts(self) -> list[Part]:
        rows, columns = self._table.shape
        if not columns:
            return []
        both = sp.block_array([[None, self._table], [self._table.T, None]]).tocsr()
        count, label = connected_components(both, directed=False)
        size = np.bincount(label[rows:], minlength=count)
        group = _joined(size)
        of_row, of_column = group[label[:rows]], group[label[rows:]]
        parts, in_order = [], np.argsort(of_row, kind="stable")
        ends = np.append(0, np.cumsum(np.bincount(of_row, minlength=int(of_column.max()) + 1)))
        for each in np.split(np.argsort(of_column, kind="stable"), np.cumsum(np.bincount(of_column))[:-1]):
            if len(each):
                number = of_column[each[0]]
                own = in_order[ends[number] : ends[number + 1]]
                nodes = self._columns[each]
                parts.append(Part(_sorted(self._table[own][:, each]), self._price[nodes], nodes))
        return sorted(parts, key=lambda part: len(part.columns))


def covers(table: sp.csr_array, taken: np.ndarray) -> bool:
    """Whether the columns taken [c] bool hit every row."""
    return bool((table @ taken.astype(np.int32) > 0).all())


def _joined(size: np.ndarray) -> np.ndarray:
    """[k] the group of each component by its columns [k]: small ones are joined."""
    small = size < SMALL
    together = np.cumsum(np.where(small, size, 0)) // TOGETHER
    return np.where(small, together, together[-1] + 1 + np.arange(len(size)))


def _sorted(table: sp.csr_array) -> sp.csr_array:
    table = table.tocsr()
    table.sort_indices()
    return table


def _within(
    table: sp.csr_array, kept: np.ndarray, look: Callable[[], bool]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of two rows (u, v) of which v holds all columns of u, some at a time.

    kept [r] bool, changed meanwhile: rows that are no longer kept are in no more pairs, since what speaks
    against them speaks against what they would be held against.
    What holds u holds the column of u that fewest rows have: only those are compared.
    """
    rows, columns = table.shape
    size, degree = np.diff(table.indptr), np.bincount(table.indices, minlength=columns)
    row = np.repeat(np.arange(rows, dtype=np.int64), size)
    keys = row * columns + table.indices  # ascending
    rare = table.indices[np.lexsort((degree[table.indices], row))]
    turned = table.T.tocsr()
    some = np.flatnonzero(size)
    count = degree[rare[table.indptr[some]]]
    ends = np.cumsum(count)
    if not len(some) or ends[-1] > MOST_PAIRS:
        return
    cuts = np.unique(np.append(np.searchsorted(ends, np.arange(PIECE, ends[-1], PIECE)), len(some)))
    for first, last in zip(np.append(0, cuts[:-1]), cuts):
        if look():
            return
        each = count[first:last]
        alive = kept[some[first:last]]
        of, each = some[first:last][alive], each[alive]
        u = np.repeat(of, each)
        place = np.arange(len(u)) - np.repeat(np.cumsum(each) - each, each)
        v = turned.indices[turned.indptr[rare[table.indptr[u]]] + place]
        likely = (size[u] <= size[v]) & (u != v) & kept[v]
        yield from _holding(table.indptr, rare, keys, columns, size, u[likely], v[likely])


def _holding(
    indptr: np.ndarray, rare: np.ndarray, keys: np.ndarray, columns: int, size: np.ndarray, u: np.ndarray,
    v: np.ndarray,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # fmt: skip
    """Of pairs that have u's first column in common those that have all: column after column."""
    at = 1
    while len(u):
        all_of = size[u] <= at
        yield u[all_of], v[all_of]
        u, v = u[~all_of], v[~all_of]
        wanted = v.astype(np.int64) * columns + rare[indptr[u] + at]
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        held = keys[place] == wanted
        u, v, at = u[held], v[held], at + 1
