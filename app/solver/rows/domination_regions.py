"""Regions of dominating sets on row partitions (app/solver/rows/regions.py).

What a region may change are the nodes that it holds, what it has to dominate are those that nothing else is
sure to: of all nodes, within or next to it, that chosen nodes of regions alone dominate each is asked of one
region, the one of lowest number that dominates it now. So regions need not be apart.
"""

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.solver.rows.dominations import DominationsReduced
from app.solver.rows.own import everywhere
from app.solver.rows.regions import FREE, NEEDED, NONE, Regions, grow, packed, row_entries
from app.toolbox import Instance

BEYOND = np.int8(127)  # no region


class DominationRegions(Regions):
    """solution   [n] bool, nodes of those allowed that dominate all that are needed."""

    per_node = 64

    def __init__(
        self, group: Group, left: DominationsReduced, solution: np.ndarray, weights: np.ndarray | None,
        compiled: bool,
    ) -> None:  # fmt: skip
        super().__init__(group, left.own, solution)
        self.left, self.weights, self.compiled = left, weights, compiled
        self._free = self._asked = np.empty(0, dtype=np.int8)

    def settle(self, solution: np.ndarray, draws: np.random.Generator, size: int) -> None:
        """What is asked of which region."""
        rows, label = self.rows, grow(self.group, self, draws, size)
        self._free = np.where(self.left.allowed, label, np.int8(NONE))
        # Of each node of the set the region that may take it out; NONE of those that stay; then of each node
        # that has to be dominated the least of these, where none of them stays.
        by = np.where(solution, self._free, BEYOND)
        least = by[rows.nodes]
        some = np.diff(rows.indptr) > 0
        if some.any():
            near = np.minimum.reduceat(by[rows.indices], rows.indptr[:-1][some])
            least[some] = np.minimum(least[some], near)
        asks = self.left.needed[rows.nodes] & (least != NONE)
        self._asked = np.full(rows.n, NONE, dtype=np.int8)
        self._asked[everywhere(self.group, rows.nodes[asks])] = everywhere(self.group, least[asks])

    def part(self, region: int) -> tuple[np.ndarray, np.ndarray]:
        """Each edge by the owner of the node that has to be dominated."""
        rows = self.rows
        free, asked = self._free[rows.nodes] == region, self._asked[rows.nodes] == region
        at = np.flatnonzero(asked)
        of, entries = row_entries(rows, at)
        u, v = rows.nodes[at][of], rows.indices[entries]
        inside = self._free[v] == region
        some = free | asked
        kinds = free * FREE + asked * NEEDED
        return packed(rows.n, rows.nodes[some], kinds[some]), packed(rows.n, u[inside], v[inside])

    def instance(self, graph: Graph, nodes: np.ndarray, kinds: np.ndarray) -> Instance:
        """Nodes that may be chosen, nodes that have to be dominated, or both."""
        weights = None if self.weights is None else self.weights[nodes]
        return Instance(
            graph, compiled=self.compiled, whole_weights=weights, needed=(kinds & NEEDED) > 0,
            outside=np.flatnonzero((kinds & FREE) == 0),
        )  # fmt: skip
