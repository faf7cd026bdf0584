"""The best partners of each of some nodes, by the products of rows: exact, a block of rows at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.group import Group
from app.gnn.links.sides import Sides
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set
from app.graphs.lists import ranges
from app.sparse.rowblock import RowBlock

Array = Any
FEW = 8  # times as many as are looked for: candidates of a row that are sorted without a thought
ROWS = 256  # own rows whose scores with those of another rank are made at a time
COLUMNS = 1 << 13


@dataclass(frozen=True, eq=False)
class Partners:
    """Of own nodes their best partners, the best first.

    rows     [k] int64 ascending, the nodes, global numbers
    nodes    [k, K] int64 the partners, -1 where there are no more
    scores   [k, K] float32, -inf there
    """

    rows: np.ndarray
    nodes: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True, eq=False)
class Search:
    """What is looked for.

    rows    [k] int64 ascending, own nodes, global numbers
    count   K, partners of each
    out     graph of own rows: nodes that an edge of it joins are no partners
    order   [n] int64: of equal scores the partner that comes first by it; None: by their numbers
    sides   partners are of the other side; None: any node but the node itself
    """

    rows: np.ndarray
    count: int
    out: Graph
    order: np.ndarray | None
    sides: Sides | None


def best_partners(group: Group, block: RowBlock, left: Array, right: Array, asked: Search) -> Partners:
    """The partners v of each node u with the largest products left_u right_v.

    left, right   [n_own, d] on the device
    Ranks     all call; no bit depends on how many there are; work k n d multiplications for k nodes in all;
              memory beside the lists, 12 K bytes for each node, that of ROWS x COLUMNS scores
    """
    found, device = Lists(asked), group.device
    for rank, X in group.stage_rows(right, block.own_counts):
        first, last = block.rows.range_of(rank)
        for at, columns in _crossing(asked, first, last):
            if len(at) and len(columns):
                own = _picked(device, left, asked.rows[at] - block.lo)
                found.look(device, own, _picked(device, X, columns - first), at, columns)
    return Partners(asked.rows, found.nodes, found.scores)


def left_out(graph: Graph, pairs: np.ndarray) -> Graph:
    """The pattern of a graph's own rows, and of pairs of rows [k, 2] of all ranks, from both ends."""
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    mine = ends[(ends[:, 0] >= graph.lo) & (ends[:, 0] < graph.hi)]
    keys = np.concatenate([graph.row_of() * graph.n + graph.indices, mine[:, 0] * graph.n + mine[:, 1]])
    row, column = np.divmod(sorted_set(keys), graph.n)
    indptr = np.searchsorted(row, np.arange(graph.lo, graph.hi + 1))
    return Graph(graph.name, graph.n, graph.lo, graph.hi, indptr, column, graph.edges)


def _crossing(asked: Search, first: int, last: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Places among the asked rows and, of the rows first..last-1, those that may be their partners."""
    places, columns = np.arange(len(asked.rows)), np.arange(first, last)
    if asked.sides is None:
        yield places, columns
        return
    of_first = asked.sides.first[asked.rows]
    for side in (True, False):
        yield places[of_first == side], columns[asked.sides.first[first:last] != side]


def _bound(S: np.ndarray, count: int) -> np.ndarray:
    """[k], at most the count-th largest of each row of S [k, c]: that of the largest of parts of the row."""
    parts = FEW * count
    width = S.shape[1] // parts
    if not width:
        return np.full(len(S), -np.inf, dtype=np.float32)
    largest = S[:, : parts * width].reshape(len(S), parts, width).max(axis=2)
    return np.sort(largest, axis=1)[:, -count]


def _picked(device: Any, X: Array, rows: np.ndarray) -> Array:
    """Rows [k] of X, ascending; no copy where they follow each other."""
    if int(rows[-1]) - int(rows[0]) == len(rows) - 1:
        return X[int(rows[0]) : int(rows[-1]) + 1]
    return device.xp.take(X, device.put(rows), axis=0)


def first_of(
    asked: Search, rows: np.ndarray, nodes: np.ndarray, scores: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of partners [k] of some rows the best of each: their rows, places in the list, nodes and scores."""
    ties = nodes if asked.order is None else asked.order[nodes]
    order = np.lexsort((ties, -scores, rows))
    rows, nodes, scores = rows[order], nodes[order], scores[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = place < asked.count
    return rows[kept], place[kept], nodes[kept], scores[kept]


class Lists:
    """The best partners so far of the asked rows, as Partners has them."""

    def __init__(self, asked: Search) -> None:
        self.asked, shape = asked, (len(asked.rows), asked.count)
        self.nodes, self.scores = np.full(shape, -1, dtype=np.int64), np.full(shape, -np.inf, np.float32)

    def look(self, device: Any, left: Array, X: Array, at: np.ndarray, columns: np.ndarray) -> None:
        """Scores of the asked rows at places `at` [k] with nodes `columns` [c].

        left   [k, d] their rows     X [c, d] those of the columns
        """
        xp = device.xp
        for c in range(0, len(columns), COLUMNS):
            W, some = xp.ascontiguousarray(X[c : c + COLUMNS].T), columns[c : c + COLUMNS]
            for r in range(0, len(at), ROWS):
                S = np.array(device.get(device.chains(left[r : r + ROWS], W)))
                self._forbid(S, at[r : r + ROWS], some)
                self.take(S, at[r : r + ROWS], some)

    def _forbid(self, S: np.ndarray, at: np.ndarray, columns: np.ndarray) -> None:
        """Scores of pairs that are not to be found become -inf."""
        rows, out = self.asked.rows[at], self.asked.out
        starts, ends = out.indptr[rows - out.lo], out.indptr[rows - out.lo + 1]
        near = out.indices[ranges(starts, ends - starts)]
        row = np.repeat(np.arange(len(rows)), ends - starts)
        near, row = np.concatenate([near, rows]), np.concatenate([row, np.arange(len(rows))])
        place = np.minimum(np.searchsorted(columns, near), len(columns) - 1)
        there = columns[place] == near
        S[row[there], place[there]] = -np.inf

    def take(self, S: np.ndarray, at: np.ndarray, columns: np.ndarray) -> None:
        """Keep the best of what the rows have and of the scores S [k, c]."""
        least = self.scores[at, -1]
        if np.isneginf(least).any():
            least = np.maximum(least, _bound(S, self.asked.count))
        row, column = np.nonzero((least[:, None] <= S) & (-np.inf < S))
        if len(row) > FEW * self.asked.count * len(at):
            row, column = self._fewer(S, row, column, least, columns)
        touched, local = np.unique(row, return_inverse=True)
        old_row, old = np.nonzero(self.nodes[at[touched]] >= 0)
        mine = at[touched[old_row]]
        rows = np.concatenate([old_row, local])
        nodes = np.concatenate([self.nodes[mine, old], columns[column]])
        scores = np.concatenate([self.scores[mine, old], S[row, column]])
        rows, place, nodes, scores = first_of(self.asked, rows, nodes, scores)
        into = at[touched[rows]], place
        self.nodes[into], self.scores[into] = nodes, scores

    def _fewer(
        self, S: np.ndarray, row: np.ndarray, column: np.ndarray, least: np.ndarray, columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of candidates [m] those above what is `least` needed, and of the equal ones of a row the first."""
        equal = S[row, column] == least[row]
        some, order = np.flatnonzero(equal), self.asked.order
        if order is not None:
            some = some[np.lexsort((order[columns[column[some]]], row[some]))]
        place = np.arange(len(some)) - np.searchsorted(row[some], row[some])
        kept = np.concatenate([np.flatnonzero(~equal), some[place < self.asked.count]])
        return row[kept], column[kept]
