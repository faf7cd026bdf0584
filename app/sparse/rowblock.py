"""RowBlock: this rank's rows of a symmetric adjacency matrix, with the ghost columns they touch.

The extended columns of a rank are one list in global order: ghosts of lower ranks, the own rows (padded to a
multiple of 8), ghosts of higher ranks. A row of a product is therefore summed in global column order on any
number of ranks.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import _sparsetools

from app.comm.group import Group
from app.graphs.graph import Graph, index_type
from app.partition.rows import RowPartition


@dataclass(frozen=True)
class HaloPlan:
    """Which rows travel before a product.

    mode        "none" (one rank), "gather" (all rows to all ranks) or "halo" (only the rows that are needed)
    send_rows   halo: for each rank the own local rows it needs
    recv_counts halo: ghost rows that come from each rank
    """

    mode: str
    send_rows: list[np.ndarray] = field(default_factory=list)
    recv_counts: list[int] = field(default_factory=list)


class RowBlock:
    """Adjacency rows of one graph on one rank.

    A          CSR on the device [n_own, n_ext], all stored values one
    A_weights  the same pattern with the edge weights, or None when all are one
    n_own      padded rows of this rank; `n_real` of them are nodes, lo..lo+n_real-1
    n_ext      extended columns; `own_at` is where the own rows start among them
    """

    def __init__(self, group: Group, graph: Graph, rows: RowPartition, exchange: str = "auto") -> None:
        self.graph, self.rows, self.n, self.exchange = graph, rows, graph.n, exchange
        self.lo = int(rows.offsets[group.rank])
        self.n_own = int(rows.offsets[group.rank + 1]) - self.lo
        self.n_real = graph.hi - graph.lo
        self.own_counts = np.diff(rows.offsets).tolist()
        self.block_starts = rows.starts[rows.cuts[group.rank] : rows.cuts[group.rank + 1] + 1] - self.lo
        ghosts = self._ghosts()
        self.plan, columns = self._choose(group, ghosts, exchange)
        self._make_matrices(group, columns)
        self._index_columns(group)

    def _ghosts(self) -> np.ndarray:
        """Sorted global numbers of the columns that other ranks own."""
        touched = np.unique(self.graph.indices)
        return touched[(touched < self.lo) | (touched >= self.lo + self.n_real)].astype(np.int64)

    def _choose(self, group: Group, ghosts: np.ndarray, exchange: str) -> tuple[HaloPlan, np.ndarray | None]:
        """The cheaper exchange by counted rows, agreed by all ranks, and the extended columns (None: all)."""
        if group.size == 1:
            self.own_at, self.n_ext = 0, self.n_own
            return HaloPlan("none"), None
        received_halo = int(group.sum_integers(np.array([len(ghosts)]))[0])
        received_gather = int(self.rows.offsets[-1]) * (group.size - 1)
        if exchange == "gather" or (exchange == "auto" and received_halo > 0.7 * received_gather):
            self.own_at, self.n_ext = self.lo, int(self.rows.offsets[-1])
            return HaloPlan("gather"), None
        owner = self.rows.owner(ghosts)
        recv = np.bincount(owner, minlength=group.size).tolist()
        send = group.exchange_counts(recv)
        wanted = group.exchange_host(ghosts, recv, send) - self.lo
        ends = np.cumsum(send)
        send_rows = [wanted[e - s : e] for s, e in zip(send, ends)]
        below = int(np.searchsorted(ghosts, self.lo))
        own = np.arange(self.lo, self.lo + self.n_own, dtype=np.int64)
        self.own_at, self.n_ext = below, len(ghosts) + self.n_own
        columns = np.concatenate([ghosts[:below], own, ghosts[below:]])
        return HaloPlan("halo", send_rows, recv), columns

    def _make_matrices(self, group: Group, columns: np.ndarray | None) -> None:
        """The device copies of the rows, in extended column numbers."""
        graph = self.graph
        indptr = np.full(self.n_own + 1, graph.indptr[-1], dtype=np.int64)
        indptr[: self.n_real + 1] = graph.indptr
        kind = index_type(max(len(graph.indices), self.n_ext))
        local = graph.indices if columns is None else self._positions(columns)
        self._indptr, self._indices = indptr.astype(kind), local.astype(kind)
        shape = (self.n_own, self.n_ext)
        ones = np.ones(len(local), dtype=np.float32)
        self.A = group.device.csr(self._indptr, self._indices, ones, shape)
        self.A_weights = None
        if graph.weights is not None and not np.all(graph.weights == 1):
            self.A_weights = [
                group.device.csr(self._indptr, self._indices, part, shape)
                for part in (np.maximum(graph.weights, 0), np.maximum(-graph.weights, 0))
            ]
        self.columns = columns

    def _positions(self, columns: np.ndarray) -> np.ndarray:
        """Extended position of each stored column. Own rows first is wrong: the list is in global order."""
        position = np.searchsorted(columns[: self.own_at], self.graph.indices)
        own = (self.graph.indices >= self.lo) & (self.graph.indices < self.lo + self.n_real)
        position[own] = self.graph.indices[own] - self.lo + self.own_at
        above = self.graph.indices >= self.lo + self.n_own
        tail = self.own_at + self.n_own
        position[above] = tail + np.searchsorted(columns[tail:], self.graph.indices[above])
        return position

    def _index_columns(self, group: Group) -> None:
        """For each extended column the own rows that touch it: who is affected when a node changes."""
        if group.size == 1:  # the matrix is symmetric
            self._column_ptr, self._column_rows = self._indptr, self._indices
            return
        kind = self._indptr.dtype
        self._column_ptr = np.empty(self.n_ext + 1, dtype=kind)
        self._column_rows = np.empty(len(self._indices), dtype=kind)
        data = np.ones(len(self._indices), dtype=np.int8)
        _sparsetools.csr_tocsc(
            self.n_own, self.n_ext, self._indptr, self._indices, data,
            self._column_ptr, self._column_rows, np.empty_like(data),
        )  # fmt: skip

    def neighbours_own(self, node: int) -> np.ndarray:
        """Local numbers of the own rows adjacent to a global node, ascending (host)."""
        at = node
        if self.columns is not None:
            if self.lo <= node < self.lo + self.n_own:
                at = node - self.lo + self.own_at
            else:
                at = int(np.searchsorted(self.columns, node))
                if at == self.n_ext or self.columns[at] != node:
                    return self._column_rows[:0]
        return self._column_rows[self._column_ptr[at] : self._column_ptr[at + 1]]

    def host_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Row offsets [n_own+1] and extended columns [nnz] of the own rows (host, read only)."""
        return self._indptr, self._indices

    def extend_host(self, group: Group, values_own: np.ndarray) -> np.ndarray:
        """[n_ext] host values of the extended columns from one value per own row. Ranks: all call."""
        if self.plan.mode == "none":
            return values_own
        if self.plan.mode == "gather":
            return group.gather_host(values_own, self.own_counts)
        send = np.concatenate([values_own[rows] for rows in self.plan.send_rows])
        counts = [len(rows) for rows in self.plan.send_rows]
        ghosts = group.exchange_host(send, counts, self.plan.recv_counts)
        return np.concatenate([ghosts[: self.own_at], values_own, ghosts[self.own_at :]])

    def owns(self, node: int) -> bool:
        """True where the node's row is held here."""
        return self.lo <= node < self.lo + self.n_real

    def degrees_own(self) -> np.ndarray:
        """[n_own] int32, degrees of the own rows; zero on padding (host)."""
        return np.diff(self._indptr).astype(np.int32)

    def max_degree_own(self) -> int:
        """The largest degree among the own rows."""
        return int(np.diff(self._indptr).max(initial=0))
