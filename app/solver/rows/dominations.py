"""Reductions of dominating sets on row partitions: graphs too large for one rank become as small as they can.

As in app/reductions/domination/reducer.py a row of the table is a node that has to be dominated, a column one
that may be chosen. Here only nodes speak that have at most one neighbour of a kind left, so that their own
row tells all of it:

ROWS      u has to be dominated, and but for itself at most v may be chosen for that: whatever dominates u
          dominates v, which need not be asked for any more.
COLUMNS   u may be chosen, and dominates but for itself at most v: v, where it may be chosen and is no dearer,
          dominates as much. Where u dominates itself alone any neighbour that may be chosen does.
CHOSEN    nobody else may be chosen to dominate u.

All ranks are told of what is found, and decide alike: in a step no node goes by one that goes. A rank holds
three bytes for each node of the graph beside its rows, and a number for each while rows are compared.
"""

from dataclasses import dataclass

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.reductions.domination.reducer import CHOSEN, COLUMNS, ROWS, Step
from app.solver.rows.own import LEAST_SHARE, OwnRows, Rounds, everywhere, row_any, row_sums


@dataclass(frozen=True, eq=False)
class DominationsReduced:
    """What is left of a graph, the same on all ranks but for the rows.

    steps    in order, as app/reductions/domination/reducer.py has them
    chosen   [n] bool, nodes that are in the set; all of weight 0 among them
    needed   [n] bool, nodes that are still to be dominated
    allowed  [n] bool, nodes of which some have to be chosen for that
    nodes    [k] int64, ascending, both of these
    edges    between one that is needed and one that is allowed
    own      rows of this rank's share of `nodes`, in order, of such edges
    """

    steps: tuple[Step, ...]
    chosen: np.ndarray
    needed: np.ndarray
    allowed: np.ndarray
    nodes: np.ndarray
    edges: int
    own: OwnRows


def reduce_dominations(
    group: Group, graph: Graph, weights: np.ndarray | None = None, rounds: Rounds | None = None
) -> DominationsReduced:
    """Apply the rules to the rows of a graph until too little comes of it. Nodes of weight 0 come first.

    graph    own rows of the graph
    weights  [n] int64 of all nodes, at least 0, on all ranks; None: all one
    Ranks    all call; the same reductions on any number of ranks
    """
    free = np.zeros(graph.n, dtype=bool) if weights is None else weights == 0
    table = _Table(group, OwnRows.of(graph), weights, free, np.ones(graph.n, dtype=bool), ~free)
    if free.any():
        table.dominate(free)
    return _reduced(group, table, Rounds() if rounds is None else rounds)


def reduce_further(
    group: Group, before: DominationsReduced, weights: np.ndarray | None, nodes: np.ndarray, rounds: Rounds
) -> DominationsReduced:
    """What is left once more nodes [k], each allowed, are chosen; its steps are the new ones. Ranks: all
    call.
    """
    taken = np.zeros(len(before.chosen), dtype=bool)
    taken[nodes] = True
    table = _Table(
        group, before.own, weights, before.chosen | taken, before.needed.copy(), before.allowed & ~taken
    )
    table.dominate(taken)
    return _reduced(group, table, rounds)


def _reduced(group: Group, table: "_Table", rounds: Rounds) -> DominationsReduced:
    """Round after round. Ranks: all call."""
    goes_on = True
    while goes_on and rounds.another():
        before = table.size()
        table.drop_rows()
        table.drop_columns()
        table.choose()
        goes_on = before - table.size() > LEAST_SHARE * before
    nodes = everywhere(group, table.own.nodes)
    edges = table.own.count(group)[1]
    return DominationsReduced(
        tuple(table.steps), table.chosen, table.needed, table.allowed, nodes, edges, table.own
    )


class _Table:
    """The own rows that are left, and what all nodes are. Ranks: all call all."""

    def __init__(
        self, group: Group, own: OwnRows, price: np.ndarray | None, chosen: np.ndarray, needed: np.ndarray,
        allowed: np.ndarray,
    ) -> None:  # fmt: skip
        self.group, self.own, self.steps, self.price = group, own, list[Step](), price
        self.chosen, self.needed, self.allowed = chosen, needed, allowed

    def size(self) -> int:
        """Rows and columns."""
        return int(np.count_nonzero(self.needed)) + int(np.count_nonzero(self.allowed))

    def drop_rows(self) -> None:
        """ROWS wherever it holds."""
        count, other = self._others(self.allowed)
        mine, size = self.own.nodes, self._spread(count + self.allowed[self.own.nodes])
        speaks = self.needed[mine] & (count == 1) & self.needed[other]
        speaks &= (size[mine] < size[other]) | ((size[mine] == size[other]) & (mine < other))
        nodes, by = self._told(other[speaks], mine[speaks])
        if len(nodes):
            self.steps.append(Step(ROWS, nodes, by))
            self.needed[nodes] = False
            self._leave_out()

    def drop_columns(self) -> None:
        """COLUMNS wherever it holds."""
        count, other = self._others(self.needed)
        mine = self.own.nodes
        size = self._spread(count + self.needed[mine])
        goes = self.allowed[mine] & (count <= 1)
        alone = goes & (count == 0)
        other = np.where(alone, self._first(self.allowed), other)
        goes &= (other >= 0) & self.allowed[other]
        same = size[mine] == size[other]
        goes &= (size[mine] < size[other]) | (same & (other < mine)) | self._cheaper(other, mine)
        goes &= ~self._cheaper(mine, other)
        nodes, by = self._told(mine[goes], other[goes])
        if len(nodes):
            self.steps.append(Step(COLUMNS, nodes, by))
            self.allowed[nodes] = False
            self._leave_out()

    def choose(self) -> None:
        """CHOSEN wherever it holds."""
        count, other = self._others(self.allowed)
        mine = self.own.nodes
        only = self.needed[mine] & (count + self.allowed[mine] == 1)
        nodes, by = self._told(np.where(self.allowed[mine], mine, other)[only], mine[only], apart=False)
        if len(nodes):
            self.steps.append(Step(CHOSEN, nodes, by))
            self.chosen[nodes] = True
            self.allowed[nodes] = False
            taken = np.zeros(len(self.chosen), dtype=bool)
            taken[nodes] = True
            self.dominate(taken)

    def _cheaper(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """[k] bool: of nodes a and b, -1 among them, a is the cheaper one."""
        return np.zeros(len(a), dtype=bool) if self.price is None else self.price[a] < self.price[b]

    def _told(self, nodes: np.ndarray, by: np.ndarray, apart: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of all ranks, ascending, each of `nodes` once; where `apart` without those of which `by` goes
        by another pair.
        """
        pairs = everywhere(self.group, np.stack([nodes, by], axis=1).astype(np.int64))
        nodes, by = pairs[np.unique(pairs[:, 0], return_index=True)[1]].T
        if apart:
            goes = np.zeros(len(self.chosen), dtype=bool)
            goes[nodes] = True
            nodes, by = nodes[~goes[by]], by[~goes[by]]
        return nodes, by

    def _others(self, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[k] how many neighbours in `mask` [n] bool the own nodes have, and where there is one, that one;
        else -1.
        """
        rows = self.own
        held = mask[rows.indices]
        count = row_sums(rows.indptr, held)
        held &= np.repeat(count == 1, rows.degrees())
        other = np.full(len(count), -1, dtype=np.int64)
        other[count == 1] = rows.indices[held]
        return count, other

    def _first(self, mask: np.ndarray) -> np.ndarray:
        """[k] the first neighbour in `mask` [n] bool of the own nodes; -1: none."""
        rows = self.own
        place = np.flatnonzero(mask[rows.indices])
        at = np.searchsorted(place, rows.indptr[:-1])
        some = at < len(place)
        some[some] = place[at[some]] < rows.indptr[1:][some]
        found = np.full(len(rows.nodes), -1, dtype=np.int64)
        found[some] = rows.indices[place[at[some]]]
        return found

    def _spread(self, values: np.ndarray) -> np.ndarray:
        """[n] int64 of all nodes, from those of own ones [k]."""
        found = np.zeros(len(self.chosen), dtype=np.int64)
        found[everywhere(self.group, self.own.nodes)] = everywhere(self.group, values)
        return found

    def dominate(self, taken: np.ndarray) -> None:
        """The nodes `taken` [n] bool, and those next to them, need nothing more."""
        rows = self.own
        met = row_any(rows.indptr, taken[rows.indices]) | taken[rows.nodes]
        self.needed[everywhere(self.group, rows.nodes[met])] = False
        self._leave_out()

    def _leave_out(self) -> None:
        """Columns without rows, and entries that are in no row any more."""
        rows = self.own
        useful = row_any(rows.indptr, self.needed[rows.indices]) | self.needed[rows.nodes]
        self.allowed[everywhere(self.group, rows.nodes[~useful])] = False
        # An entry stays where one of its ends has to be dominated and the other one may be chosen.
        asks, may = self.needed.astype(np.uint8), self.allowed.astype(np.uint8)
        stays = np.repeat((asks + 2 * may)[rows.nodes], rows.degrees())
        stays &= (2 * asks + may)[rows.indices]
        stays = stays > 0
        kept = self.needed[rows.nodes] | self.allowed[rows.nodes]
        degrees = row_sums(rows.indptr, stays)[kept]
        indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
        self.own = OwnRows(rows.n, rows.nodes[kept], indptr, rows.indices[stays])
