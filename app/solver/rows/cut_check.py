"""The check of cut reductions on row partitions, by each rank on its own rows, not by what made them."""

import numpy as np

from app.comm.group import Group
from app.comm.guard import raise_together
from app.graphs.graph import Graph
from app.solver.rows.cuts import CutsReduced
from app.solver.rows.kinds import require
from app.solver.rows.own import everywhere

Told = np.ndarray  # [k, 3] int64: node, neighbour, weight


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
            told = _edges_of(held, graph.n, step)
        edges = everywhere(group, told)
        gained += held.contract(edges, step)
    with raise_together(group, "checking the reductions"):
        require(gained == reduced.gained, f"cuts gain {gained}, not {reduced.gained}")
        require(held.equals(reduced), "what is left is not what the steps leave")
    own = np.unique(held.row)
    require(np.array_equal(everywhere(group, own), reduced.nodes), "other nodes are left")


class _Held:
    """The entries of own rows, in order: row [m] and col [m] in numbers of the graph, weight [m] int64."""

    def __init__(self, graph: Graph, weights: np.ndarray) -> None:
        self.n, self.lo, self.hi = graph.n, graph.lo, graph.hi
        kept = weights != 0
        self.row, self.col, self.weight = graph.row_of()[kept], graph.indices[kept], weights[kept]

    def keep(self, kept: np.ndarray) -> None:
        """Only some entries [m] bool."""
        self.row, self.col, self.weight = self.row[kept], self.col[kept], self.weight[kept]

    def contract(self, edges: Told, step: np.ndarray) -> int:
        """Put the nodes of a step [k, 3] to their neighbours; edges: all that they have. What that gains."""
        partner, apart = np.full(self.n, -1, dtype=np.int64), np.zeros(self.n, dtype=bool)
        partner[step[:, 0]], apart[step[:, 0]] = step[:, 1], step[:, 2] == 1
        gone = partner >= 0
        self.keep(~gone[self.row] & ~gone[self.col])
        u, x, w = edges.T
        v, turned = partner[u], apart[u]
        moved, w = x != v, np.where(turned, -w, w)
        new = np.concatenate(
            [np.stack([v[moved], x[moved], w[moved]]), np.stack([x[moved], v[moved], w[moved]])], axis=1
        )
        self._add(*new[:, (new[0] >= self.lo) & (new[0] < self.hi)])
        return -int(w[turned].sum())

    def _add(self, row: np.ndarray, col: np.ndarray, weight: np.ndarray) -> None:
        """Entries more [k]: where there is one already, the sum; none of weight 0."""
        if not len(row):
            return
        keys, place = np.unique(row * self.n + col, return_inverse=True)
        sums = np.zeros(len(keys), dtype=np.int64)
        np.add.at(sums, place.reshape(-1), weight)
        mine = self.row.astype(np.int64) * self.n + self.col  # ascending
        at = np.searchsorted(mine, keys)
        there = at < len(mine)
        there[there] = mine[at[there]] == keys[there]
        self.weight = self.weight.copy()
        self.weight[at[there]] += sums[there]
        new, at = keys[~there], at[~there]
        self.row = np.insert(self.row, at, new // self.n)
        self.col = np.insert(self.col, at, new % self.n)
        self.weight = np.insert(self.weight, at, sums[~there])
        self.keep(self.weight != 0)

    def equals(self, reduced: CutsReduced) -> bool:
        """Whether these are the rows that are left, in their order."""
        rows = reduced.rows
        counts = np.bincount(self.row - self.lo, minlength=self.hi - self.lo)
        return (
            np.array_equal(counts, np.diff(rows.indptr))
            and np.array_equal(self.col, rows.indices)
            and np.array_equal(self.weight, rows.data)
        )


def _edges_of(held: _Held, n: int, step: np.ndarray) -> Told:
    """The edges of the own nodes of a step [k, 3], which the rule may take."""
    partner, apart = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=bool)
    require(bool(((step >= 0) & (step < max(n, 2))).all()), "an unknown node")
    partner[step[:, 0]], apart[step[:, 0]] = step[:, 1], step[:, 2] == 1
    require(int(np.count_nonzero(partner >= 0)) == len(step), "a node goes twice")
    at = np.flatnonzero(partner[held.row] >= 0)
    u, x, w = held.row[at], held.col[at], held.weight[at]
    require(bool((partner[x] < 0).all()), "two neighbours go at once")
    best = x == partner[u]
    total, most = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    np.add.at(total, u, np.abs(w))
    most[u[best]] = w[best]
    own = step[(step[:, 0] >= held.lo) & (step[:, 0] < held.hi), 0]
    require(bool((2 * np.abs(most[own]) >= total[own]).all()), "an edge weighs less than half")
    require(bool((most[own] != 0).all()), "a node goes with none of its neighbours")
    require(bool(((most[own] > 0) == apart[own]).all()), "a node goes to the wrong side")
    return np.column_stack([u, x, w]).astype(np.int64)
