"""The check of domination reductions on row partitions, by each rank on its own rows."""

import numpy as np
from scipy.sparse import csr_array

from app.comm.group import Group
from app.comm.guard import raise_together
from app.graphs.graph import Graph, holds_entries
from app.reductions.domination.reducer import CHOSEN, COLUMNS, ROWS, Step
from app.solver.rows.dominations import DominationsReduced
from app.solver.rows.kinds import require
from app.solver.rows.own import everywhere

FALL = 0.5  # of the nodes that count, for entries to go


def check_dominations(
    group: Group, graph: Graph, weights: np.ndarray | None, reduced: DominationsReduced
) -> None:
    """Prove that some best dominating set is `chosen` and a best one of what is left.

    Step by step, each node by the owner of the one row that proves it, from the graph's rows.

    graph    own rows of the graph     weights   [n] int64 of all nodes, or None: all one
    Ranks    all call. Raises LockstepError on all
    """
    held = _Held(group, graph, weights)
    for step in reduced.steps:
        with raise_together(group, "checking the reductions"):
            held.prove(step)
        held.follow(step)
    with raise_together(group, "checking the reductions"):
        for name in ("chosen", "needed", "allowed"):
            same = np.array_equal(getattr(held, name), getattr(reduced, name))
            require(same, f"other nodes are {name}")
        left = np.flatnonzero(held.needed | held.allowed)
        require(np.array_equal(left, reduced.nodes), "other nodes are left")
        require(held.equals(reduced), "what is left is not what the steps leave")


class _Held:
    """The own rows of what still counts, and what all nodes are.

    table   [n_own, n] CSR of ones: edges between a node that is needed and one that is allowed, or was before
            the last steps
    """

    def __init__(self, group: Group, graph: Graph, weights: np.ndarray | None) -> None:
        self.group, self.n, self.lo, self.hi, self.weights = group, graph.n, graph.lo, graph.hi, weights
        self.graph = graph
        ones = np.ones(len(graph.indices), dtype=np.int32)
        shape = (graph.hi - graph.lo, graph.n)
        self.table = csr_array((ones, graph.indices.copy(), graph.indptr.copy()), shape=shape)
        self.chosen = np.zeros(graph.n, dtype=bool)
        self.needed, self.allowed = np.ones(graph.n, dtype=bool), np.ones(graph.n, dtype=bool)
        self._size = 2 * graph.n  # of both, when entries went last
        if weights is not None:
            self._take(np.flatnonzero(weights == 0))
            self._sift()

    def _count(self, mask: np.ndarray) -> np.ndarray:
        """[n_own] how many in `mask` [n] bool there are next to each own node."""
        return self.table @ mask.astype(np.int32)

    def prove(self, step: Step) -> None:
        """Raises LockstepError where the step is none of the rules', as far as own rows tell."""
        nodes, by = step.nodes, step.by
        both, goes = np.concatenate([nodes, by]), np.zeros(self.n, dtype=bool)
        require(not len(both) or 0 <= int(both.min()) <= int(both.max()) < self.n, "an unknown node")
        goes[nodes] = True
        require(len(nodes) == len(by) == np.count_nonzero(goes), "a node twice")
        if step.rule == CHOSEN:
            own = self._own(by)
            require(bool(self.needed[by].all() and self.allowed[nodes].all()), "a node is done with")
            count = self._count(self.allowed) + self.allowed[self.lo : self.hi]
            require(bool((count[by[own] - self.lo] == 1).all()), "a node has more than one to dominate it")
            apart = own & (nodes != by)
            require(self._joined(by[apart], nodes[apart]), "another node is the only one")
            return
        require(step.rule in (ROWS, COLUMNS), "no rule")
        require(not goes[by].any(), "two nodes may speak for each other")
        speaker, other = (by, nodes) if step.rule == ROWS else (nodes, by)
        asked = self.needed if step.rule == ROWS else self.allowed
        require(bool(asked[nodes].all() and asked[by].all()), "a node is done with")
        if step.rule == COLUMNS and self.weights is not None:
            require(bool((self.weights[by] <= self.weights[nodes]).all()), "a dearer node stands for another")
        across = self.allowed if step.rule == ROWS else self.needed
        own = self._own(speaker)
        count = self._count(across)[speaker[own] - self.lo] - across[other[own]]
        require(bool((count == 0).all()), "a node has more neighbours that count")
        require(self._joined(speaker[own], other[own]), "two nodes are not joined")

    def _own(self, nodes: np.ndarray) -> np.ndarray:
        return (nodes >= self.lo) & (nodes < self.hi)

    def _joined(self, u: np.ndarray, v: np.ndarray) -> bool:
        """Whether own nodes u are next to v, in the graph."""
        graph = self.graph
        return bool(holds_entries(graph.indptr, graph.indices, u - self.lo, v).all())

    def follow(self, step: Step) -> None:
        """Do what the step says. Ranks: all call."""
        if step.rule == CHOSEN:
            self._take(step.nodes)
        elif step.rule == ROWS:
            self.needed[step.nodes] = False
        else:
            self.allowed[step.nodes] = False
        self._sift()

    def _take(self, nodes: np.ndarray) -> None:
        """Choose nodes. Ranks: all call."""
        taken = np.zeros(self.n, dtype=bool)
        taken[nodes] = True
        self.chosen |= taken
        self.allowed &= ~taken
        met = (self._count(taken) > 0) | taken[self.lo : self.hi]
        self.needed[everywhere(self.group, np.flatnonzero(met) + self.lo)] = False

    def _sift(self) -> None:
        """Nobody is chosen to dominate nothing. Ranks: all call."""
        useless = (self._count(self.needed) == 0) & ~self.needed[self.lo : self.hi]
        self.allowed[everywhere(self.group, np.flatnonzero(useless) + self.lo)] = False
        size = int(np.count_nonzero(self.needed)) + int(np.count_nonzero(self.allowed))
        if size <= FALL * self._size:
            self._size = size
            self._drop()

    def _drop(self) -> None:
        """Entries that count no more go. What is asked of rows does not depend on it."""
        table, own = self.table, slice(self.lo, self.hi)
        degrees = np.diff(table.indptr)
        counts = np.repeat(self.needed[own], degrees) & self.allowed[table.indices]
        counts |= np.repeat(self.allowed[own], degrees) & self.needed[table.indices]
        table.data[~counts] = 0
        table.eliminate_zeros()

    def equals(self, reduced: DominationsReduced) -> bool:
        """Whether these are the rows that are left, in their order."""
        self._drop()
        own, rows = np.flatnonzero((self.needed | self.allowed)[self.lo : self.hi]), reduced.own
        return (
            np.array_equal(rows.nodes, own + self.lo)
            and np.array_equal(np.diff(rows.indptr), np.diff(self.table.indptr)[own])
            and np.array_equal(rows.indices, self.table.indices)
        )


def check_values(
    group: Group, reduced: DominationsReduced, weights: np.ndarray | None, values: np.ndarray, one: int
) -> None:
    """Prove that sets of what is left, whose rows were checked, cost at least the values [k] over `one`.

    Ranks    all call. Raises LockstepError on all
    """
    with raise_together(group, "checking the bound"):
        nodes, rows = reduced.nodes, reduced.own
        require(len(values) == len(nodes) and bool((values >= 0).all()), "a value below 0")
        require(not values[~reduced.needed[nodes]].any(), "a node has a value that need not be dominated")
        price = np.ones(len(nodes), dtype=np.int64) if weights is None else weights[nodes]
        limit = 2.0 * float(price.sum()) * one
        require(float(values.sum(dtype=np.float64)) <= limit <= 2.0**62, "values are not exact")
        spread = np.zeros(rows.n, dtype=np.int64)
        spread[nodes] = values
        place = np.searchsorted(nodes, rows.nodes)
        shape = (len(rows.nodes), rows.n)
        table = csr_array(
            (np.ones(len(rows.indices), dtype=np.int64), rows.indices, rows.indptr), shape=shape
        )
        load = table @ spread + values[place]
        over = (load > price[place] * one) & reduced.allowed[rows.nodes]
        require(not over.any(), "values add up to more than a price")
