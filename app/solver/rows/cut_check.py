"""The check of cut reductions on row partitions, by each rank on its own rows, not by what made them."""

import numpy as np
from scipy.sparse import csr_array

from app.comm.group import Group
from app.comm.guard import raise_together
from app.graphs.graph import Graph
from app.solver.rows.cuts import CutsReduced
from app.solver.rows.kinds import require
from app.solver.rows.own import everywhere

Told = np.ndarray  # [k, 3] int64: node, neighbour, weight
PARTS = ("indptr", "indices", "data")


def check_cuts(group: Group, graph: Graph, weights: np.ndarray, reduced: CutsReduced) -> None:
    """Prove that the best cut of what is left is worth `gained` less than the best one of the graph.

    Round by round: the owner of each node finds it with the neighbour it goes with, to which its edge weighs
    at least half of all its edges, on the side that the sign demands; no node goes with one that goes. All
    ranks then put the edges of the node to the neighbour's.

    graph    own rows of the graph     weights   [nnz] int64 of its stored entries, in units
    Ranks    all call. Raises LockstepError on all
    """
    held, gained = _Held(graph, weights), 0
    for step in reduced.steps:
        told = np.empty((0, 3), dtype=np.int64)
        with raise_together(group, "checking the reductions"):
            told = held.edges_of(step)
        edges = everywhere(group, told)
        gained += held.contract(edges, step)
    with raise_together(group, "checking the reductions"):
        require(gained == reduced.gained, f"cuts gain {gained}, not {reduced.gained}")
        require(held.equals(reduced), "what is left is not what the steps leave")
    own = np.flatnonzero(np.diff(held.table.indptr)) + graph.lo
    require(np.array_equal(everywhere(group, own), reduced.nodes), "other nodes are left")


class _Held:
    """The own rows as they are after some rounds: table CSR int64 [n_own, n], without entries of weight 0."""

    def __init__(self, graph: Graph, weights: np.ndarray) -> None:
        self.n, self.lo, self.hi = graph.n, graph.lo, graph.hi
        shape = (graph.hi - graph.lo, graph.n)
        self.table = csr_array((weights, graph.indices, graph.indptr), shape=shape).copy()
        self.table.eliminate_zeros()

    def edges_of(self, step: np.ndarray) -> Told:
        """The edges of the own nodes of a step [k, 3]. Raises LockstepError where the rule takes none."""
        require(bool(((step >= 0) & (step < max(self.n, 2))).all()), "an unknown node")
        gone = np.zeros(self.n, dtype=bool)
        gone[step[:, 0]] = True
        require(int(np.count_nonzero(gone)) == len(step), "a node goes twice")
        own = step[(step[:, 0] >= self.lo) & (step[:, 0] < self.hi)]
        rows = self.table[own[:, 0] - self.lo]
        at, x, w = np.repeat(np.arange(len(own)), np.diff(rows.indptr)), rows.indices, rows.data
        require(not gone[x].any(), "two neighbours go at once")
        partner = x == own[at, 1]
        total, most = np.zeros(len(own), dtype=np.int64), np.zeros(len(own), dtype=np.int64)
        np.add.at(total, at, np.abs(w))
        most[at[partner]] = w[partner]
        require(bool((2 * np.abs(most) >= total).all()), "an edge weighs less than half")
        require(bool((most != 0).all()), "a node goes with none of its neighbours")
        require(np.array_equal(most > 0, own[:, 2] == 1), "a node goes to the wrong side")
        return np.column_stack([own[at, 0], x, w]).astype(np.int64)

    def contract(self, edges: Told, step: np.ndarray) -> int:
        """Put the nodes of a step [k, 3] to their neighbours; edges: all that they have. What that gains."""
        partner, apart = np.full(self.n, -1, dtype=np.int64), np.zeros(self.n, dtype=bool)
        partner[step[:, 0]], apart[step[:, 0]] = step[:, 1], step[:, 2] == 1
        gone, table = partner >= 0, self.table
        table.data[gone[table.indices]] = 0
        table.data[np.repeat(gone[self.lo : self.hi], np.diff(table.indptr))] = 0
        table.eliminate_zeros()
        u, x, w = edges.T
        v, turned = partner[u], apart[u]
        moved, w = x != v, np.where(turned, -w, w)
        row, col = np.concatenate([v[moved], x[moved]]), np.concatenate([x[moved], v[moved]])
        own = (row >= self.lo) & (row < self.hi)
        both = np.tile(w[moved], 2)[own]
        if len(both):
            self.table = table + csr_array((both, (row[own] - self.lo, col[own])), shape=table.shape)
            self.table.eliminate_zeros()
        return -int(w[turned].sum())

    def equals(self, reduced: CutsReduced) -> bool:
        """Whether these are the rows that are left, in any order of their columns."""
        rows, mine = reduced.rows, self.table
        mine.sort_indices()
        return all(np.array_equal(getattr(mine, name), getattr(rows, name)) for name in PARTS)
