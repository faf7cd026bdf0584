"""Features of edges from the file or the caller that tells them to the owners of the rows.

Rank 0 goes through the edges again, as the graph's file or the caller lists them, with a row of features for
each one, and sends both to the owners of the matrix entries that the edge became. So the rows that a rank
gets do not depend on the number of ranks, and a rank holds those of its own entries alone.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import GraphError
from app.graphs.edge_data import EdgeData, EdgeRows
from app.graphs.formats.source import Limits, shown
from app.graphs.graph import IN_A, IN_TRANSPOSE, Graph
from app.graphs.ids import name_numbers
from app.graphs.nodes.data import DenseFeatures, rows_per_piece
from app.graphs.nodes.files import open_edge_features
from app.graphs.orders import places_of
from app.graphs.stream import EdgeStream
from app.partition.ids import ids_on_first
from app.partition.loaded import Loaded
from app.partition.scatter import rounds

READING = "reading the edge features"
Piece = tuple[np.ndarray, np.ndarray, int, np.ndarray]  # tails, heads (int64), the first edge's number, rows


def load_edge_data(
    group: Group, loaded: Loaded, path: str, limits: Limits, neighbours: str
) -> EdgeData | None:
    """This rank's rows of what is told of the edges of a graph; None where nothing is.

    path         a file with a row for each edge, in the place of what the graph's own files say; "": none
    neighbours   graph.neighbours, by which nodes hear arcs
    Ranks        all call; the rows of all ranks together are the same on any number of ranks
    Raises       GraphError where rows are not one for each edge, or differ for one
    """
    told, width = None, np.zeros(1, dtype=np.int64)
    with raise_together(group, READING):
        if group.rank == 0 and loaded.stream is not None:
            own = loaded.stream.edge_features
            told = open_edge_features(path, limits) if path else own and own()
            width[0] = told.width if told is not None else 0
    width = int(group.broadcast(width)[0])
    if not width:
        return None
    columns = tuple(json.loads(group.broadcast_text(json.dumps(told.names if told else ()))))
    ids = ids_on_first(group, loaded.graph, loaded.rows, loaded.order_all)
    dealer = Dealer(group, loaded, width, neighbours)
    pieces = pieces_in_order(loaded, told, ids) if told is not None else iter(())
    for piece in rounds(group, pieces, READING):
        dealer.deal(piece)
    return replace(dealer.finish(), columns=columns)


# ---- reading, on rank 0 -----------------------------------------------------------------------------------


def pieces_in_order(loaded: Loaded, told: DenseFeatures, ids: np.ndarray) -> Iterator[Piece]:
    """The edges by the numbers of their ends' rows, with their features, some at a time.

    ids   [n] of the nodes, in the order that they had before they were ordered
    """
    stream, new_of, at = loaded.stream, new_rows(loaded), 0
    step, rows = rows_per_piece(8 * told.width + 48), _Taken(told)
    for u, v in numbered_edges(stream, ids):
        for lo in range(0, len(u), step):
            ends = [each[lo : lo + step].astype(np.int64, copy=False) for each in (u, v)]
            tails, heads = ends if new_of is None else (new_of[each] for each in ends)
            X = rows.take(len(tails))
            if len(X) < len(tails):
                raise _refusal(told, stream, sum(len(each[0]) for each in stream.chunks()))
            yield tails, heads, at, X
            at += len(tails)
    if at != told.n:
        raise _refusal(told, stream, at)


def new_rows(loaded: Loaded) -> np.ndarray | None:
    """[n] int64 the number of each old row; None: they are as they were."""
    if loaded.order_all is None:
        return None
    new_of = places_of(loaded.order_all)
    return new_of


def _refusal(told: DenseFeatures, stream: EdgeStream, edges: int) -> GraphError:
    right = f"{edges}, one for each edge of {shown(stream.name, 200)}, would be right"
    return told.refuse(f"found {told.n} rows of {told.what}; {right}")


def numbered_edges(stream: EdgeStream, ids: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The ends of the edges by the numbers of the nodes."""
    if stream.nodes is not None:
        yield from ((u, v) for u, v, _ in stream.chunks())
    elif stream.named:  # by the order in which names occur, which is known at the end
        chunks = [(u, v) for u, v, _ in stream.chunks()]
        numbers = name_numbers(stream.ids)[1]
        yield from ((numbers[u], numbers[v]) for u, v in chunks)
    else:
        yield from ((np.searchsorted(ids, u), np.searchsorted(ids, v)) for u, v, _ in stream.chunks())


class _Taken:
    """Rows of features as many at a time as are asked for."""

    def __init__(self, told: DenseFeatures) -> None:
        self._parts, self._left = told.parts(), np.empty((0, told.width), dtype=told.kind)

    def take(self, count: int) -> np.ndarray:
        """The next rows [count, k], fewer where there are no more."""
        held = [self._left]
        while sum(map(len, held)) < count and (part := next(self._parts, None)) is not None:
            held.append(part)
        rows = np.concatenate(held) if len(held) > 1 else held[0]
        self._left = rows[count:]
        return rows[:count]


# ---- dealing ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wanted:
    """What rows of edges are to be.

    kind    of numbers     none   what stands where nothing is told     what   they are, for messages
    whole   every edge is told of, as the graph has them; else some, by the nodes that a file names
    """

    kind: type = np.float32
    none: float = 0
    what: str = "features"
    whole: bool = True


FEATURES = Wanted()


class Dealer:
    """Sends edges to the owners of their entries, which put the rows in their places. Ranks: all call."""

    def __init__(
        self, group: Group, loaded: Loaded, width: int, neighbours: str, wanted: Wanted = FEATURES
    ) -> None:
        self.group, self.rows, self.width, self.wanted = group, loaded.rows, width, wanted
        offsets, graph = loaded.rows.offsets, loaded.graph
        n_own = int(offsets[group.rank + 1] - offsets[group.rank])
        self.outward = neighbours == "out"
        bits = (None,) if graph.arcs is None else (IN_A, IN_TRANSPOSE)
        self.sides = [_Side(graph, n_own, bit, width, wanted) for bit in bits]

    def deal(self, piece: Piece | None) -> None:
        """The edges of rank 0's piece (None: no more, or another rank) to their owners' places."""
        none = np.empty(0, dtype=np.int64)
        tails, heads, at, X = piece or (none, none, 0, np.empty((0, self.width), dtype=self.wanted.kind))
        kept = tails != heads
        numbers, X = (at + np.arange(len(tails)))[kept], X[kept]
        hear, heard = (tails, heads) if self.outward else (heads, tails)
        ways = [(hear[kept], heard[kept]), (heard[kept], hear[kept])]
        for i, (row, column) in enumerate(ways):
            found = self._send(row, column, numbers, X)
            with raise_together(self.group, READING):
                self.sides[i % len(self.sides)].put(*found)

    def _send(self, rows: np.ndarray, *arrays: np.ndarray) -> list[np.ndarray]:
        """Rows' numbers [k], and arrays that have a row for each, to the owners."""
        group = self.group
        if group.size == 1:
            return [rows, *arrays]
        owner = self.rows.owner(rows)
        order = np.argsort(owner, kind="stable")
        out = np.bincount(owner, minlength=group.size).tolist()
        into = group.exchange_counts(out)
        return [group.exchange_host(np.ascontiguousarray(each[order]), out, into) for each in (rows, *arrays)]

    def finish(self) -> EdgeData:
        """What was put."""
        with raise_together(self.group, READING):
            held = [side.finish() for side in self.sides]
        return EdgeData(held[0], held[-1])


class _Side:
    """The rows of the entries of A or of A^T, which are put in any order.

    bit   of Graph.arcs that those entries have; None: they are all entries
    """

    def __init__(self, graph: Graph, n_own: int, bit: Any, width: int, wanted: Wanted) -> None:
        row, columns = graph.row_of() - graph.lo, graph.indices
        if bit is not None:
            chosen = graph.arcs & bit > 0
            row, columns = row[chosen], columns[chosen]
        self.graph, self.wanted = graph, wanted
        self.counts = np.bincount(row, minlength=n_own)
        self.keys = row * graph.n + columns  # ascending
        self.values = np.full((len(row), width), wanted.none, dtype=wanted.kind)
        self.edge = np.full(len(row), -1, dtype=np.int64)  # that each row is of

    def put(self, rows: np.ndarray, columns: np.ndarray, edges: np.ndarray, X: np.ndarray) -> None:
        """Features X [k, width] of the entries (rows, columns), which are of the edges with some numbers."""
        keys = (rows - self.graph.lo) * self.graph.n + columns
        at = np.searchsorted(self.keys, keys)
        order = np.argsort(at, kind="stable")
        at, edges, X = at[order], edges[order], X[order]
        if (lacking := self._lacking(at, keys[order])).any():
            self._refuse_lacking(int(keys[order][lacking][0]))
        first = np.flatnonzero(np.diff(at, prepend=-1))
        new = first[self.edge[at[first]] < 0]
        self.values[at[new]], self.edge[at[new]] = X[new], edges[new]
        held = self.values[at]
        differ = np.flatnonzero(((held != X) & ((held == held) | (X == X))).any(axis=1))  # NaN is NaN
        if len(differ):
            self._refuse(int(at[differ[0]]), int(edges[differ[0]]))

    def _lacking(self, at: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """[k] bool, which keys are of no entry; at: where they would be."""
        if not len(self.keys):
            return np.ones(len(keys), dtype=bool)
        return self.keys[np.minimum(at, len(self.keys) - 1)] != keys

    def _refuse_lacking(self, key: int) -> None:
        """Refuse an edge that the graph does not have. Raises GraphError."""
        if self.wanted.whole:
            raise GraphError(f"{self.graph.name}: its edges are others than when the graph was read")
        row, column = divmod(key, self.graph.n)
        ends = self.graph.called(row + self.graph.lo, column)
        right = f"an edge of {shown(self.graph.name, 200)} would be right"
        raise GraphError(f"{self.wanted.what} of edges: found {ends}, which is none; {right}")

    def _refuse(self, at: int, edge: int) -> None:
        """Refuse an edge whose features are others than those of an earlier one. Raises GraphError."""
        row, column = divmod(int(self.keys[at]), self.graph.n)
        one, other = sorted((int(self.edge[at]), edge))
        nodes = self.graph.called(row + self.graph.lo, column)
        found = (
            f"edges {one} and {other}, counted from 0, are both {nodes} and have unlike {self.wanted.what}"
        )
        right = 'equal rows, or graph.neighbours = "in" where they are arcs of their own, would be right'
        right = right if self.wanted.what == FEATURES.what else "equal ones would be right"
        raise GraphError(f"{self.graph.name}: {found}; {right}")

    def finish(self) -> EdgeRows:
        """All rows. Raises GraphError where an entry has none."""
        if self.wanted.whole and (self.edge < 0).any():
            raise GraphError(f"{self.graph.name}: its edges are others than when the graph was read")
        return EdgeRows(self.counts, self.values)
