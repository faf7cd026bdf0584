"""Regions of vertex covers and independent sets on row partitions (app/solver/rows/regions.py).

A node may leave the cover where all its neighbours out of it can come in: it is free where these are all in
one region. So a region grows by nodes out of the cover alone, and by those first for which nodes of the cover
wait that have but one neighbour out of it beyond the region; on graphs that grow fast around each node few
nodes would else be free. What is free in a region is a graph of its own, of which any cover will do. Of an
edge between free nodes of two regions, both in the cover, the end in the region of lower number stays.
"""

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.solver.rows.own import OwnRows, everywhere, row_least
from app.solver.rows.regions import (
    BEYOND,
    COUNT,
    FREE,
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

MISSING = 1  # neighbours out of the cover beyond a region, for which it is to grow by them


class CoverRegions(Regions):
    """solution   [n] bool, a cover, or with `independent` a set that no edge joins, of what is left."""

    def __init__(
        self, group: Group, rows: OwnRows, solution: np.ndarray, weights: np.ndarray | None,
        independent: bool, compiled: bool,
    ) -> None:  # fmt: skip
        super().__init__(group, rows, solution)
        self.weights, self.independent, self.compiled = weights, independent, compiled
        self._in_cover = np.zeros(rows.n, dtype=bool)  # of `nodes`, before the round
        self._free = np.empty(0, dtype=np.int8)

    def open(self) -> np.ndarray:
        """The nodes out of the cover."""
        return self.nodes[~self._in_cover[self.nodes]]

    def near(self, v: np.ndarray, label: np.ndarray, closed: np.ndarray) -> np.ndarray:
        """What nodes of the cover wait for that but for so few are next to a region alone."""
        rows = self.rows
        told = everywhere(self.group, beside(rows, v, label, self._in_cover))
        at, here = own_places(rows, told[:, 0])
        of, u = self._columns(at)
        region = told[here, 1]
        waits = ~self._in_cover[u] & (label[u] != region[of])
        of, u = of[waits], u[waits]
        never = np.bincount(of, weights=closed[u], minlength=len(at)) > 0
        soon = ~never & (np.bincount(of, minlength=len(at)) <= MISSING)
        of, u = of[soon[of]], u[soon[of]]
        return everywhere(self.group, np.stack([u, region[of]], axis=1))

    def settle(self, solution: np.ndarray, draws: np.random.Generator, size: int) -> None:
        """Half of the size is for nodes out of the cover."""
        rows, group = self.rows, self.group
        self._in_cover[self.nodes] = (~solution if self.independent else solution)[self.nodes]
        label = grow(group, self, draws, size // 2)
        lowest, highest = self._met(label)
        mine = self._in_cover[rows.nodes] & (lowest == highest) & (lowest != NONE)
        told = everywhere(group, np.stack([lowest[mine], rows.nodes[mine]], axis=1))
        region, u = told[np.argsort(told[:, 0], kind="stable")].T
        held = label[self.nodes]
        used = np.bincount(held[held != NONE], minlength=COUNT) + np.bincount(
            held[held != NONE], weights=self.degrees[self.nodes[held != NONE]], minlength=COUNT
        )
        fits = fitting(region, self.degrees[u] + 1, size - used)
        label[u[fits]] = region[fits]
        self._free = label
        label[everywhere(group, self._staying(label))] = NONE

    def _met(self, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[k] int8, the lowest and the highest region of the neighbours out of the cover of own nodes; BEYOND
        and NONE where there are none.
        """
        rows = self.rows
        lowest = row_least(rows.indptr, np.where(self._in_cover, BEYOND, label)[rows.indices], BEYOND)
        other = np.where(self._in_cover, BEYOND, ~label)  # ~x = -1 - x falls as x grows
        return lowest, ~row_least(rows.indptr, other[rows.indices], BEYOND)

    def _staying(self, label: np.ndarray) -> np.ndarray:
        """[k] own nodes that are free, and stay for a neighbour in a region of higher number."""
        rows = self.rows
        at = np.flatnonzero(self._in_cover[rows.nodes] & (label[rows.nodes] != NONE))
        of, v = self._columns(at)
        later = self._in_cover[v] & (label[v] > label[rows.nodes[at]][of])
        return rows.nodes[at[np.bincount(of[later], minlength=len(at)) > 0]]

    def _columns(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The neighbours of own rows [j]: [m] which row each is of, and [m] int64 the node."""
        of, entries = row_entries(self.rows, at)
        return of, self.rows.indices[entries].astype(np.int64)

    def part(self, region: int) -> tuple[np.ndarray, np.ndarray]:
        """Each edge by the owner of its lower end."""
        rows = self.rows
        at = np.flatnonzero(self._free[rows.nodes] == region)
        of, v = self._columns(at)
        u = rows.nodes[at][of]
        inside = (self._free[v] == region) & (u < v)
        nodes = packed(rows.n, rows.nodes[at], np.full(len(at), FREE | NEEDED))
        return nodes, packed(rows.n, u[inside], v[inside])

    def instance(self, graph: Graph, nodes: np.ndarray, kinds: np.ndarray) -> Instance:
        """The nodes that are free."""
        weights = None if self.weights is None else self.weights[nodes]
        return Instance(graph, compiled=self.compiled, whole_weights=weights)
