"""A lower bound of vertex covers on row partitions, where no rank holds what reductions leave.

A cover pays for every edge of a matching, and two for a triangle. Edges are matched round by round: each node
that is free proposes to the free neighbour that has fewest free neighbours itself (Karp and Sipser 1981: low
degrees first), and who propose to each other are a pair. Then matched edges that have a free node at both
ends, two different ones, give way to two edges, and those with a common one become triangles. Nodes with
weights pay the lesser weight of a pair and keep the rest (Bar-Yehuda and Even 1981: local ratio).

A rank holds some numbers for each node that is left, beside its rows.
"""

from dataclasses import dataclass

import numpy as np

from app.bounds.cover.packing import Columns, Packing
from app.bounds.cover.witness import CoverBound
from app.comm.group import Group
from app.graphs.graph import Graph, holds_entries
from app.proofs.kinds import CoverProof
from app.solver.rows.cover_check import check_packed, check_rows
from app.solver.rows.covers import RowsReduced
from app.solver.rows.kinds import RowBound
from app.solver.rows.own import (
    LEAST_SHARE,
    NO_KEY,
    OwnRows,
    Rounds,
    everywhere,
    keyed,
    keyed_node,
    renumbered,
)

METHOD = "reductions, packing on rows"
AUGMENTATIONS = 16  # rounds of these, at most
NONE = -1


@dataclass(frozen=True, eq=False)
class CoverRowBound(RowBound):
    """Cliques of what reductions leave, [k, 2] and [t, 3] by their place among its nodes, that share no more
    of a node than its weight; pays [k] of the pairs, one of a triangle.
    """

    value: int
    reduced: RowsReduced
    pairs: np.ndarray
    pays: np.ndarray
    triangles: np.ndarray
    method: str = METHOD

    @property
    def lower(self) -> int:
        """What covers of the rest pay."""
        return int(self.pays.sum()) + 2 * len(self.triangles)

    @property
    def proof(self) -> CoverProof:
        """The log of the reductions, and the cliques as a packing."""
        k, t = len(self.pairs), len(self.triangles)
        sizes = np.repeat([2, 3], [k, t])
        ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        nodes = np.concatenate([self.pairs.reshape(-1), self.triangles.reshape(-1)]).astype(np.int32)
        values = np.concatenate([self.pays, np.ones(t, dtype=np.int64)])
        weights = self.reduced.weights
        packing = Packing(
            self.lower, METHOD, Columns(ptr, nodes, np.ones(k + t, dtype=bool)), values, 1,
            None if weights is None else weights[self.reduced.nodes],
        )  # fmt: skip
        return CoverProof(self.reduced.log(), CoverBound(self.lower, METHOD, packing), True)

    def check(self, group: Group, graph: Graph) -> None:
        """By cliques of the graph. Ranks: all call."""
        check_rows(group, graph, self.reduced)
        check_packed(group, graph, self.reduced, self.pairs, self.pays, self.triangles)


def bound_covers(group: Group, reduced: RowsReduced, sense: str, rounds: Rounds) -> CoverRowBound:
    """A bound of the graph of which `reduced` is left: of covers at least, of independent sets at most so
    much. Ranks: all call; the same on any number of ranks where no clock ends the rounds.
    """
    nodes, weights = reduced.nodes, reduced.weights
    rows = renumbered(reduced.own, nodes)
    left = np.ones(len(nodes), dtype=np.int64) if weights is None else weights[nodes].copy()
    pairs, pays = _paired(group, rows, left, rounds)
    triangles = np.empty((0, 3), dtype=np.int64)
    if weights is None:
        mate = np.full(len(nodes), NONE, dtype=np.int64)
        mate[pairs], mate[pairs[:, ::-1]] = pairs[:, ::-1], pairs
        _augment(group, rows, mate, rounds)
        triangles = _triangles(group, rows, mate)
        mate[triangles] = NONE
        first = np.flatnonzero(mate > np.arange(len(mate)))
        pairs, pays = np.stack([first, mate[first]], axis=1), np.ones(len(first), dtype=np.int64)
    lower = reduced.taken + int(pays.sum()) + 2 * len(triangles)
    total = len(reduced.covered) if weights is None else int(weights.sum())
    value = total - lower if sense == "maximise" else lower
    return CoverRowBound(value, reduced, pairs, pays, triangles)


def _paired(group: Group, rows: OwnRows, left: np.ndarray, rounds: Rounds) -> tuple[np.ndarray, np.ndarray]:
    """[k, 2] edges and [k] what they pay of what nodes have `left` [n], which is taken off."""
    pairs, pays, every = [np.empty((0, 2), dtype=np.int64)], [np.empty(0, dtype=np.int64)], np.arange(rows.n)
    while rounds.another():
        rows = rows.among(left > 0)
        degrees = np.zeros(rows.n, dtype=np.int64)
        degrees[everywhere(group, rows.nodes)] = everywhere(group, rows.degrees())
        best = rows.least(keyed(every, degrees, rounds.made))
        own = np.where(best == NO_KEY, NONE, keyed_node(best, rounds.made))
        proposed = np.full(rows.n, NONE, dtype=np.int64)
        proposed[everywhere(group, rows.nodes)] = everywhere(group, own)
        first = np.flatnonzero((proposed > every) & (proposed[proposed] == every))
        second = proposed[first]
        pay = np.minimum(left[first], left[second])
        left[first] -= pay
        left[second] -= pay
        pairs.append(np.stack([first, second], axis=1))
        pays.append(pay)
        if len(first) <= LEAST_SHARE * np.count_nonzero(degrees) or not len(first):
            break
    return np.concatenate(pairs), np.concatenate(pays)


def _augment(group: Group, rows: OwnRows, mate: np.ndarray, rounds: Rounds) -> None:
    """Two edges for one where both ends have a free neighbour, two different ones; `mate` [n] changes."""
    every = np.arange(rows.n)
    for salt in range(AUGMENTATIONS):
        if not rounds.another():
            return
        free = mate == NONE
        keys = np.where(free, keyed(every, 0, salt), NO_KEY)
        best = rows.least(keys)
        near = np.full(rows.n, NONE, dtype=np.int64)
        near[everywhere(group, rows.nodes)] = everywhere(
            group, np.where(best == NO_KEY, NONE, keyed_node(best, salt))
        )
        first = np.flatnonzero((mate > every) & (near != NONE))
        second = mate[first]
        two = (near[second] != NONE) & (near[second] != near[first])
        first, second = first[two], second[two]
        taken = _unshared(rows.n, np.stack([near[first], near[second]], axis=1))
        for a in (first[taken], second[taken]):
            mate[a], mate[near[a]] = near[a], a
        if np.count_nonzero(taken) <= LEAST_SHARE * np.count_nonzero(free):
            return


def _unshared(n: int, ends: np.ndarray) -> np.ndarray:
    """[k] bool: the first of those pairs [k, 2] that have a node, at both of their nodes."""
    first, order = np.full(n, len(ends)), np.arange(len(ends))
    np.minimum.at(first, ends, order[:, None])
    return (first[ends] == order[:, None]).all(axis=1)


def _triangles(group: Group, rows: OwnRows, mate: np.ndarray) -> np.ndarray:
    """[t, 3] free nodes and matched edges of which both ends are next to them, none in two triangles."""
    own = np.flatnonzero((mate[rows.nodes] == NONE) & (rows.degrees() > 0))
    found = [np.empty((0, 3), dtype=np.int64)]
    lengths = rows.degrees()[own]
    row = np.repeat(own, lengths)
    place = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + rows.indptr[row]
    near = rows.indices[place].astype(np.int64)
    matched = mate[near] > near
    row, near = row[matched], near[matched]
    closed = holds_entries(rows.indptr, rows.indices, row, mate[near])
    row, near = row[closed], near[closed]
    at = np.unique(row, return_index=True)[1]
    found.append(np.stack([rows.nodes[row[at]], near[at], mate[near[at]]], axis=1))
    told = everywhere(group, np.concatenate(found))
    return told[np.sort(np.unique(told[:, 1], return_index=True)[1])]
