"""Regions of maximum cuts on row partitions (app/solver/rows/regions.py).

What lies around a region keeps its sides, and pulls at the nodes next to it: the weight of a node's edges to
one side of what stays, less that to the other one, is an edge to one more node, which is on side 0. So a
region is a cut of its own. Two nodes next to each other may not change at once, each by what the other one
was before: nodes stay that are next to a free one in a region of higher number.
"""

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph, build_rows, index_type
from app.search.cut.search import FIRST_SWEEPS
from app.solver.rows.own import OwnRows, everywhere
from app.solver.rows.regions import COUNT, FREE, NONE, Regions, beside, grow, packed, row_entries
from app.toolbox import Instance

SWEEPS = FIRST_SWEEPS  # trials of a node: one round from the sides that it has


class CutRegions(Regions):
    """solution   [n+1] bool, the sides of what is left; the last one, of what stays, is 0

    rows     of nodes that have an edge     weights   [m] int64 of their entries, none 0
    """

    steps = SWEEPS

    def __init__(
        self, group: Group, rows: OwnRows, weights: np.ndarray, solution: np.ndarray, compiled: bool
    ) -> None:
        super().__init__(group, rows, np.append(solution, False))
        self.weights, self.compiled = weights, compiled
        self._sides = self.solution  # before the round
        self._label = np.empty(0, dtype=np.int8)

    def open(self) -> np.ndarray:
        """All nodes."""
        return self.nodes

    def near(self, v: np.ndarray, label: np.ndarray, closed: np.ndarray) -> np.ndarray:
        """All neighbours."""
        return everywhere(self.group, beside(self.rows, v, label, ~closed))

    def settle(self, solution: np.ndarray, draws: np.random.Generator, size: int) -> None:
        """From the last region to the first, each without what is next to a later one."""
        rows, label = self.rows, grow(self.group, self, draws, size)
        for region in range(COUNT - 2, -1, -1):
            at = np.flatnonzero(label[rows.nodes] == region)
            of, entries = row_entries(rows, at)
            met = np.bincount(of[label[rows.indices[entries]] > region], minlength=len(at)) > 0
            label[everywhere(self.group, rows.nodes[at[met]])] = NONE
        self._sides, self._label = solution, label

    def part(self, region: int) -> tuple[np.ndarray, np.ndarray]:
        """Each edge by the owner of its lower end; those to what stays, the last node, by their owners."""
        rows, label = self.rows, self._label
        at = np.flatnonzero(label[rows.nodes] == region)
        of, entries = row_entries(rows, at)
        u, v, w = rows.nodes[at][of], rows.indices[entries].astype(np.int64), self.weights[entries]
        free = label[v] == region
        inside = free & (u < v)
        pull = np.where(free, 0, np.where(self._sides[v], -w, w))
        pull = np.bincount(of, weights=pull, minlength=len(at)).astype(np.int64)  # exact: below 2^52
        pulled = pull != 0
        last = np.full(np.count_nonzero(pulled), rows.n)
        edges = np.concatenate(
            [
                np.stack([u[inside], v[inside], w[inside]], axis=1),
                np.stack([rows.nodes[at[pulled]], last, pull[pulled]], axis=1),
            ]
        )
        return packed(rows.n, rows.nodes[at], np.full(len(at), FREE)), edges

    def kinds(self, told: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """With what stays."""
        return np.append(told[:, 0], self.rows.n), np.append(told[:, 1], 0)

    def graph(self, nodes: np.ndarray, edges: np.ndarray) -> Graph:
        """With weights, which are whole numbers."""
        k, (u, v) = len(nodes), np.searchsorted(nodes, edges[:, :2]).T
        both = np.concatenate([u, v]), np.concatenate([v, u])
        indptr, indices, weights = build_rows(*both, np.tile(edges[:, 2].astype(np.float64), 2), 0, k)
        return Graph("a region", k, 0, k, indptr, indices.astype(index_type(k)), len(edges), weights)

    def instance(self, graph: Graph, nodes: np.ndarray, kinds: np.ndarray) -> Instance:
        """What stays is on side 0."""
        return Instance(graph, compiled=self.compiled, outside=np.flatnonzero((kinds & FREE) == 0))
