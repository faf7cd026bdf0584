"""Exact reductions of dominating sets: what is left of the question which nodes dominate all others.

A row of the table is a node that has to be dominated, a column one that may be chosen; row v holds the
columns of v's closed neighbourhood. A row that holds all of another row is dominated whenever that one is,
and goes. A column whose rows another column has too, which is no dearer, need not be chosen, and goes. The
only column of a row is chosen, and with it go the rows that hold it. Each step says what speaks for it, so
that check.py can prove it.

Source   reductions of set covering: Garfinkel and Nemhauser, Integer Programming 1972, chapter 8
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.graphs.graph import Graph
from app.reductions.domination.table_rows import available, rows_within

ENTRY_BYTES = 160  # of memory, at most, for each node and entry
ENTRY_SECONDS = 1e-6  # for each, about; with compiled kernels a third of that
PASSES, LEAST = 30, 0.005  # of all rules, the last where fewer rows and columns, by this share, went
SMALL, TOGETHER = 30, 300  # parts of fewer columns are joined, up to so many


ROWS, COLUMNS, CHOSEN = range(3)


@dataclass(frozen=True, eq=False)
class Step:
    """Nodes [k] and, one for each, a node that speaks for it, in the table as it was before the step.

    ROWS      `nodes` need not be dominated any more: their rows hold those of `by`
    COLUMNS   `nodes` need not be chosen any more: the columns of `by` hold theirs
    CHOSEN    `nodes` are chosen: each is the only column of the row `by`
    """

    rule: int
    nodes: np.ndarray
    by: np.ndarray


@dataclass(frozen=True, eq=False)
class Component:
    """Rows and columns that no others have to do with.

    table     [r, c] CSR of ones      price   [c] int64
    columns   [c] their nodes, ascending
    """

    table: sp.csr_array
    price: np.ndarray
    columns: np.ndarray


def estimate_seconds(entries: int, compiled: bool = True) -> float:
    """An estimate of what reductions of so many nodes and entries take."""
    return ENTRY_SECONDS * entries / (3 if compiled and available() else 1)


class Kernel:
    """What reductions leave of one graph.

    chosen    [n] bool, nodes of some optimal set: those that it has beside what is left
    paid      the price of those
    needed    [r] nodes that are still to be dominated, ascending
    columns   [c] nodes of which some have to be chosen for that, ascending
    stands    [n] the node that took a node's place; -1: none did
    steps     what was done, in order
    looks     how often `look` was called
    stopped   it has said that this is the end
    """

    def __init__(
        self, graph: Graph, price: np.ndarray, inside: np.ndarray, outside: np.ndarray,
        look: Callable[[], Any], needed: np.ndarray | None = None, compiled: bool = True, most: int = 0,
    ) -> None:  # fmt: skip
        """price [n] int64, above 0     inside, outside [n] bool: nodes that have to be, must not be chosen

        look     called now and then; once it returns True that is the end, and what is reduced by then counts
        needed   [n] bool, nodes that have to be dominated; None: all
        most     end when `looks` are so many; 0: as many as there are
        """
        n = graph.n
        self._price, self._asked, self.stopped = price, look, False
        self._compiled, self._most, self.looks = compiled, most, 0
        self.chosen = np.zeros(n, dtype=bool)
        self.stands = np.full(n, -1, dtype=np.int64)
        self.needed = self.columns = np.arange(n)
        self.steps: list[Step] = []
        self._table = table_of(graph)
        self._whole = True  # it is still that of all nodes, its own transpose
        self._keep_rows(np.ones(n, dtype=bool) if needed is None else needed)
        self._choose(np.flatnonzero(inside[self.columns]))
        self._keep_columns(~outside[self.columns])
        self._reduce()
        self._moved: tuple[np.ndarray, np.ndarray] | None = None  # a solution, and the columns it comes to
        self.chosen |= inside
        self.paid = int(price[self.chosen].sum())

    def moved(self, solution: np.ndarray) -> np.ndarray:
        """[n] bool, a set [n] with every node replaced by the one that took its place: it dominates as much
        of what is left, and is no dearer.
        """
        nodes = np.flatnonzero(solution)
        while (gone := self.stands[nodes] >= 0).any():
            nodes = np.where(gone, self.stands[nodes], nodes)
        there = np.zeros(len(solution), dtype=bool)
        there[nodes] = True
        return there

    def followed(self, part: Component, solution: np.ndarray) -> np.ndarray | None:
        """[c] bool, a choice of a part's columns no dearer than what a dominating set [n] spends on it; None:
        it is none of this graph.
        """
        if self._moved is None or self._moved[0] is not solution:
            self._moved = solution, self.moved(solution)
        taken = self._moved[1][part.columns]
        return taken if covers(part.table, taken) else None

    def _look(self) -> bool:
        if not self.stopped:
            self.looks += 1
            self.stopped = bool(self._asked()) or self.looks == self._most
        return self.stopped

    def _reduce(self) -> None:
        for _ in range(PASSES):
            before = self._table.shape
            self._drop_rows()
            self._drop_columns()
            self._take_only()
            gone = sum(before) - sum(self._table.shape)
            if not gone or gone < LEAST * sum(before) or self._look():
                return

    def _take_only(self) -> None:
        """Choose the columns that are the only ones of some row."""
        only = np.flatnonzero(np.diff(self._table.indptr) == 1)
        places, first = np.unique(self._table.indices[self._table.indptr[only]], return_index=True)
        if len(places):
            self.steps.append(Step(CHOSEN, self.columns[places], self.needed[only[first]]))
            self._choose(places)

    def _choose(self, places: np.ndarray) -> None:
        """Choose the columns at these places [k]."""
        taken = np.zeros(len(self.columns), dtype=bool)
        taken[places] = True
        self.chosen[self.columns[places]] = True
        self._keep_rows(self._table @ taken.astype(np.int32) == 0)
        self._keep_columns(~taken)

    def _keep_rows(self, kept: np.ndarray) -> None:
        if kept.all():
            return
        self._whole = False
        self._table, self.needed = self._table[np.flatnonzero(kept)], self.needed[kept]

    def _keep_columns(self, kept: np.ndarray) -> None:
        """Leave out columns, and those without rows."""
        kept = kept & (np.bincount(self._table.indices, minlength=len(kept)) > 0)
        if not kept.all():
            self._whole = False
            self._table, self.columns = _sorted(self._table[:, np.flatnonzero(kept)]), self.columns[kept]

    def _turned(self) -> sp.csr_array:
        """The rows of each column."""
        return self._table if self._whole else _sorted(self._table.T.tocsr())

    def _drop_rows(self) -> None:
        size = np.diff(self._table.indptr)
        kept, by = np.ones(len(size), dtype=bool), np.zeros(len(size), dtype=np.int64)
        for u, v in rows_within(self._table, self._turned(), kept, self._look, self._compiled):
            less = (size[u] < size[v]) | (u < v)
            kept[v[less]] = False
            by[v[less]] = u[less]
        if not kept.all():
            self.steps.append(Step(ROWS, self.needed[~kept], self.needed[by[~kept]]))
            self._keep_rows(kept)
            self._keep_columns(np.ones(len(self.columns), dtype=bool))  # some may have had no other row

    def _drop_columns(self) -> None:
        turned = self._turned()
        size, price = np.diff(turned.indptr), self._price[self.columns]
        kept, by = np.ones(len(size), dtype=bool), np.zeros(len(size), dtype=np.int64)
        for u, v in rows_within(turned, self._table, kept, self._look, self._compiled):
            less = (size[u] < size[v]) | (price[v] < price[u]) | (v < u)
            gone = (price[v] <= price[u]) & less
            kept[u[gone]] = False
            by[u[gone]] = v[gone]
        if not kept.all():
            step = Step(COLUMNS, self.columns[~kept], self.columns[by[~kept]])
            self.steps.append(step)
            self.stands[step.nodes] = step.by
            self._keep_columns(kept)

    def parts(self) -> list[Component]:
        """What is left, parts of few columns first."""
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
                nodes = self.columns[each]
                parts.append(Component(_sorted(self._table[own][:, each]), self._price[nodes], nodes))
        return sorted(parts, key=lambda part: len(part.columns))


def table_of(graph: Graph) -> sp.csr_array:
    """[n, n] CSR of ones, row v the closed neighbourhood of v."""
    ones = np.ones(len(graph.indices), dtype=np.int8)
    matrix = sp.csr_array((ones, graph.indices, graph.indptr), shape=(graph.n, graph.n))
    return _sorted(matrix + sp.eye_array(graph.n, dtype=np.int8, format="csr"))


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
