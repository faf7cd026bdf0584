"""Regions of dominating sets on row partitions (app/solver/rows/regions.py).

A node of the set may leave where all that it alone dominates finds another one, and any node may come in
without a loss to others. So a region is made of nodes of the set, no two regions share one; it has to
dominate what these alone do, with whatever nodes there are next to that. Of what nodes of several regions
dominate, and none that stays, the region of lowest number has to.
"""

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set
from app.solver.rows.dominations import DominationsReduced
from app.solver.rows.own import everywhere, row_least
from app.solver.rows.regions import (
    BEYOND,
    COUNT,
    FREE,
    HUB,
    NEEDED,
    NONE,
    Regions,
    beside,
    fitting,
    grow,
    own_places,
    packed,
    row_entries,
)
from app.toolbox import Instance


class DominationRegions(Regions):
    """solution   [n] bool, nodes of those allowed that dominate all that are needed."""

    def __init__(
        self, group: Group, left: DominationsReduced, solution: np.ndarray, weights: np.ndarray | None,
        compiled: bool,
    ) -> None:  # fmt: skip
        super().__init__(group, left.own, solution)
        self.left, self.weights, self.compiled = left, weights, compiled
        self._chosen = solution  # before the round
        self._label = np.empty(0, dtype=np.int8)  # of nodes of the set
        self._asked = np.empty(0, dtype=np.int8)  # [own rows], the region that has to dominate it

    def open(self) -> np.ndarray:
        """All nodes: of those of the set few dominate something together."""
        return self.nodes

    def near(self, v: np.ndarray, label: np.ndarray, closed: np.ndarray) -> np.ndarray:
        """All neighbours."""
        return everywhere(self.group, beside(self.rows, v, label, ~closed))

    def _closed(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Closed neighbourhoods of own rows [j]: [m] which row each node is of, and [m] int64 the node."""
        of, entries = row_entries(self.rows, at)
        nodes = np.concatenate([self.rows.indices[entries], self.rows.nodes[at]]).astype(np.int64)
        return np.concatenate([of, np.arange(len(at))]), nodes

    def _dominators(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same of the nodes of the set."""
        of, u = self._closed(at)
        chosen = self._chosen[u]
        return of[chosen], u[chosen]

    def settle(self, solution: np.ndarray, draws: np.random.Generator, size: int) -> None:
        """Nodes of the set stay where what they dominate alone would be too much for a region."""
        rows, group = self.rows, self.group
        self._chosen = solution
        self._label = np.where(solution, grow(group, self, draws, size), np.int8(NONE))
        self._asked = self._ask()
        mine = np.flatnonzero(self._asked != NONE)
        told = np.stack([self._asked[mine].astype(np.int64), rows.nodes[mine]], axis=1)
        told = everywhere(group, told)
        region, x = told[np.argsort(told[:, 0], kind="stable")].T
        large = self.degrees[x] > size // HUB
        fits = np.zeros(len(x), dtype=bool)
        fits[~large] = fitting(region[~large], self.degrees[x[~large]] + 1, np.full(COUNT, size))
        if fits.all():
            return
        _, u = self._dominators(own_places(rows, x[~fits])[0])
        self._label[everywhere(group, u)] = NONE
        self._asked = self._ask()

    def _ask(self) -> np.ndarray:
        """[k] int8, the region that has to dominate each of the own nodes; NONE: it is sure to be."""
        rows, by = self.rows, np.where(self._chosen, self._label, BEYOND)
        least = np.minimum(row_least(rows.indptr, by[rows.indices], BEYOND), by[rows.nodes])
        return np.where(self.left.needed[rows.nodes], least, np.int8(NONE))

    def part(self, region: int) -> tuple[np.ndarray, np.ndarray]:
        """Each edge by the owner of the node that has to be dominated, to the nodes that may."""
        rows = self.rows
        asked = self._asked == region
        mine = self._label[rows.nodes] == region
        may = self.left.allowed[rows.nodes] & ~self._chosen[rows.nodes]
        some = asked | mine
        kinds = (mine | (asked & may)) * FREE + asked * NEEDED
        at = np.flatnonzero(asked)
        of, entries = row_entries(rows, at)
        x, u = rows.nodes[at][of], rows.indices[entries]
        inside = self.left.allowed[u] & (~self._chosen[u] | (self._label[u] == region))
        return packed(rows.n, rows.nodes[some], kinds[some]), packed(rows.n, x[inside], u[inside])

    def kinds(self, told: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """With the nodes that may come in."""
        nodes = sorted_set(np.concatenate([told[:, 0], edges[:, 1]]))
        kinds = np.zeros(len(nodes), dtype=np.int64)
        kinds[np.searchsorted(nodes, told[:, 0])] = told[:, 1]
        kinds[np.searchsorted(nodes, edges[:, 1])] |= FREE
        return nodes, kinds

    def instance(self, graph: Graph, nodes: np.ndarray, kinds: np.ndarray) -> Instance:
        """Nodes that may be chosen, nodes that have to be dominated, or both."""
        weights = None if self.weights is None else self.weights[nodes]
        return Instance(
            graph, compiled=self.compiled, whole_weights=weights, needed=(kinds & NEEDED) > 0,
            outside=np.flatnonzero((kinds & FREE) == 0),
        )  # fmt: skip
