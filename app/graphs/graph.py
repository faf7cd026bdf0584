"""Graph: immutable rows of a symmetric adjacency matrix on the host, all of them or one rank's."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.graphs.ids import one_id
from app.graphs.lists import starts


def index_type(largest: int) -> type:
    """The narrowest of int32 and int64 that holds `largest`."""
    return np.int32 if largest <= np.iinfo(np.int32).max else np.int64


def narrow(matrix: Any) -> Any:
    """A CSR matrix with 32-bit indices where they hold: before SciPy 1.17 some of csgraph takes no others."""
    width = index_type(max(*matrix.shape, matrix.nnz))
    parts = matrix.data, *(a.astype(width, copy=False) for a in (matrix.indices, matrix.indptr))
    return type(matrix)(parts, shape=matrix.shape)


# Bits of Graph.arcs: of A, whose row has those that a node hears; of A^T, whose row has those that hear it.
IN_A, IN_TRANSPOSE = np.uint8(1), np.uint8(2)


@dataclass(frozen=True, eq=False)
class Graph:
    """Rows lo..hi-1 of the adjacency matrix of an undirected graph without self loops.

    Of a directed graph the pattern is that of both directions, so that rows are partitioned, permuted and
    exchanged as those of any other, and `arcs` says which of them are there.

    indptr        [hi-lo+1] int64    row offsets
    indices       [nnz]              global neighbour numbers 0..n-1, ascending within a row
    weights       [nnz] float32      edge weights, or None: all one
    ids           [hi-lo]            the file's own node ids, int64 or names (graphs/ids.py), or None:
                                     row number + first_id
    node_weights  [hi-lo] float32    or None: all one
    n, edges      of the whole graph, whatever rows are held; an edge counts once
    arcs          [nnz] uint8        IN_A, IN_TRANSPOSE or their sum; None: the graph is undirected
    transpose_weights  [nnz] float32  of the entries in A^T, as `weights` are then of those in A, 0 where
                                     there is none; None: all one
    loops         [hi-lo] uint8      of a directed graph: 1 where a node has an arc to itself; else None
    """

    name: str
    n: int
    lo: int
    hi: int
    indptr: np.ndarray
    indices: np.ndarray
    edges: int
    weights: np.ndarray | None = None
    ids: np.ndarray | None = None
    first_id: int = 0
    node_weights: np.ndarray | None = None
    arcs: np.ndarray | None = None
    transpose_weights: np.ndarray | None = None
    loops: np.ndarray | None = None

    @property
    def whole(self) -> bool:
        """True when every row is held."""
        return self.lo == 0 and self.hi == self.n

    def held(self, lo: int, hi: int) -> "Graph":
        """Rows lo..hi-1, of a graph that is whole."""
        first, last = self.indptr[lo], self.indptr[hi]

        def rows(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else values[lo:hi].copy()

        def entries(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else values[first:last].copy()

        return Graph(
            self.name, self.n, lo, hi, self.indptr[lo : hi + 1] - first, self.indices[first:last].copy(),
            self.edges, entries(self.weights), rows(self.ids), self.first_id, rows(self.node_weights),
            entries(self.arcs), entries(self.transpose_weights), rows(self.loops),
        )  # fmt: skip

    def degrees(self) -> np.ndarray:
        """[hi-lo] int64, the degree of each held node."""
        return np.diff(self.indptr)

    def row_of(self) -> np.ndarray:
        """[nnz] int64, the global row number of each stored entry."""
        return np.repeat(np.arange(self.lo, self.hi, dtype=np.int64), np.diff(self.indptr))

    def node_ids(self, rows: np.ndarray) -> np.ndarray:
        """[k] int64 or names, the file's ids of global rows `rows` [k], all of them held."""
        return rows + self.first_id if self.ids is None else self.ids[rows - self.lo]

    def held_ids(self) -> np.ndarray:
        """[hi-lo] int64 or names, the file's ids of the held rows."""
        return self.node_ids(np.arange(self.lo, self.hi))

    def called(self, *rows: int) -> str:
        """Nodes for a message, by the file's ids where these are held: "5", or "5-7" of an edge."""
        held = self.ids is None or all(self.lo <= row < self.hi for row in rows)
        ids = self.node_ids(np.array(rows, dtype=np.int64)) if held else np.array(rows)
        return "-".join(one_id(ids, i) for i in range(len(rows)))

    def called_entry(self, entry: int) -> str:
        """The edge of a stored entry, for a message: "5-7"."""
        row = self.lo + int(np.searchsorted(self.indptr, entry, side="right")) - 1
        return self.called(row, int(self.indices[entry]))


def holds_entries(
    indptr: np.ndarray, indices: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """[k] bool: row rows[i] of CSR rows has an entry in column columns[i]; columns ascend within a row."""
    low, end = indptr[rows], indptr[rows + 1]
    high = end.copy()
    for _ in range(int((end - low).max(initial=0)).bit_length()):
        middle = (low + high) // 2
        open_, more = low < high, np.zeros(len(rows), dtype=bool)
        more[open_] = indices[middle[open_]] < columns[open_]
        low, high = np.where(more, middle + 1, low), np.where(more | ~open_, high, middle)
    found = low < end
    found[found] = indices[low[found]] == columns[found]
    return found


def from_edges(
    n: int, u: np.ndarray, v: np.ndarray, weights: np.ndarray | None = None, name: str = "graph"
) -> Graph:
    """The whole graph of undirected edges u[i]-v[i]; loops dropped, repeats merged (largest weight kept).

    u, v      [m]   node numbers 0..n-1
    weights   [m]   or None
    """
    u, v = np.asarray(u, dtype=np.int64), np.asarray(v, dtype=np.int64)
    w = None if weights is None else np.asarray(weights, dtype=np.float32)
    rows, cols = np.concatenate([u, v]), np.concatenate([v, u])
    both = None if w is None else np.concatenate([w, w])
    indptr, indices, merged = build_rows(rows, cols, both, 0, n)
    return Graph(
        name, n, 0, n, indptr, indices.astype(index_type(n)), edges=int(indptr[-1]) // 2, weights=merged
    )


def build_rows(
    rows: np.ndarray, cols: np.ndarray, weights: np.ndarray | None, lo: int, hi: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """CSR rows lo..hi-1 from directed entries: loops dropped, columns ascending, repeats merged.

    rows, cols  [m] int64; weights [m] float32 or None; of repeats the largest weight is kept
    returns indptr [hi-lo+1], indices [nnz] int64, weights [nnz] or None
    """
    keep = rows != cols
    rows, cols = rows[keep], cols[keep]
    weights = None if weights is None else weights[keep]
    # Ascending (row, column); of equal pairs the largest weight comes last.
    order = np.lexsort((cols, rows)) if weights is None else np.lexsort((weights, cols, rows))
    rows, cols = rows[order], cols[order]
    last = np.ones(len(rows), dtype=bool)
    last[:-1] = (rows[1:] != rows[:-1]) | (cols[1:] != cols[:-1])
    indptr = starts(rows[last] - lo, hi - lo)
    return indptr, cols[last], None if weights is None else weights[order][last]
