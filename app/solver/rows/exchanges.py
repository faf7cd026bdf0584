"""Local search on row partitions: steps that many nodes of a solution make at once and that do not meet.

Independent sets, and with them covers: free nodes join, and a node x of the set gives way to two others, or
to a heavier one, next to which x alone is in the set (the (1,2)-swaps of Andrade, Resende and Werneck 2012).
Dominating sets: nodes go that they do not need. Cuts: nodes change sides where that gains something.

In every round each rank looks at its own rows; all are told what it has found and decide alike which of it
holds at once, so that a round is the same on any number of ranks.
"""

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph, holds_entries
from app.graphs.keys import sorted_set
from app.solver.rows.own import (
    LEAST_SHARE,
    NO_KEY,
    OwnRows,
    Rounds,
    everywhere,
    keyed,
    pieces,
    row_counts,
    row_sums,
)

NONE = -1
SCALE = 1 << 16  # steps between the lightest and the heaviest node, of which keys tell


def exchange(
    group: Group, graph: Graph, weights: np.ndarray | None, inside: np.ndarray, rounds: Rounds
) -> np.ndarray:
    """An independent set [n] bool at least as heavy as `inside`, and maximal where a round was left for it.

    graph    own rows of the graph
    weights  [n] int64 of all nodes, at least 0; None: all one
    Ranks    all call
    """
    held = _Held(group, graph, weights, inside.copy())
    while rounds.another():
        before = held.weight()
        held.fill(rounds.made)
        held.swap(rounds.made)
        held.fill(rounds.made)
        if held.weight() - before <= LEAST_SHARE * LEAST_SHARE * before:
            break
    return held.inside


class _Held:
    """An independent set as rows see it.

    inside   [n] bool     price   [n] int64
    """

    def __init__(self, group: Group, graph: Graph, weights: np.ndarray | None, inside: np.ndarray) -> None:
        self.group, self.rows, self.inside = group, OwnRows.of(graph), inside
        self.price = np.ones(graph.n, dtype=np.int64) if weights is None else weights
        self.rank = None if weights is None else _light(weights)

    def weight(self) -> int:
        """Of the set."""
        return int(self.price[self.inside].sum())

    def fill(self, salt: int) -> None:
        """Free nodes join, each before those next to it that have a larger key."""
        rows = self.rows
        free = np.zeros(rows.n, dtype=bool)
        own = ~self.inside[rows.nodes] & (row_counts(rows.indptr, self.inside[rows.indices]) == 0)
        free[everywhere(self.group, rows.nodes[own])] = True
        free &= self.price > 0
        some = rows.among(free)
        while free.any():
            rank = 0 if self.rank is None else self.rank
            keys = np.where(free, keyed(np.arange(rows.n), rank, salt), NO_KEY)
            joins = some.nodes[keys[some.nodes] < some.least(keys)]
            joining = everywhere(self.group, joins)
            self.inside[joining] = True
            near = np.zeros(rows.n, dtype=bool)
            near[joining] = True
            gone = some.nodes[row_counts(some.indptr, near[some.indices]) > 0]
            free[joining] = False
            free[everywhere(self.group, gone)] = False
            some = some.among(free)

    def swap(self, salt: int) -> None:
        """One node gives way to two others, or to a heavier one, wherever that is possible at once."""
        only = self._only()
        one = self._wanted(only, salt)  # [s, 2] x and the node u that comes for it
        both = everywhere(self.group, self._partners(only, one, salt))
        both = both[np.argsort(keyed(both[:, 0], 0, salt))]  # the same on any number of ranks
        x, u, v = both.T
        gain = self.price[u] + np.where(v == NONE, 0, self.price[v]) - self.price[x]
        x, u, v = both[gain > 0].T
        kept = self._apart(u, v)
        self.inside[x[kept]] = False
        self.inside[u[kept]] = True
        self.inside[v[kept & (v != NONE)]] = True

    def _only(self) -> np.ndarray:
        """[n] int64: the one node of the set that is next to a node; NONE of others."""
        rows = self.rows
        held = self.inside[rows.indices]
        count = row_counts(rows.indptr, held)
        one = (count == 1) & ~self.inside[rows.nodes]
        held &= np.repeat(one, rows.degrees())
        only = np.full(rows.n, NONE, dtype=np.int64)
        only[everywhere(self.group, rows.nodes[one])] = everywhere(
            self.group, rows.indices[held].astype(np.int64)
        )
        return only

    def _wanted(self, only: np.ndarray, salt: int) -> np.ndarray:
        """[s, 2] nodes x of the set and one node of those next to x alone that two may come with, or that is
        heavier: the one of the least key. Ranks: all call; the same on all.
        """
        rows = self.rows
        mine = only[rows.nodes]
        some = mine != NONE
        same = only[rows.indices] == np.repeat(mine, rows.degrees())
        same &= np.repeat(some, rows.degrees())
        beside = row_counts(rows.indptr, same)
        of = np.bincount(only[only != NONE], minlength=rows.n)
        fits = some & (beside < of[np.where(some, mine, 0)] - 1)
        fits |= some & (self.price[rows.nodes] > self.price[np.where(some, mine, 0)])
        told = everywhere(self.group, np.stack([mine[fits], rows.nodes[fits]], axis=1).astype(np.int64))
        keys = keyed(told[:, 1], 0 if self.rank is None else self.rank[told[:, 1]], salt)
        told = told[np.lexsort((keys, told[:, 0]))]
        return told[np.unique(told[:, 0], return_index=True)[1]]

    def _partners(self, only: np.ndarray, one: np.ndarray, salt: int) -> np.ndarray:
        """[s_own, 3] of pairs x, u [s, 2] those whose u is here, and the node of the least key that can come
        with u; NONE: there is none.
        """
        rows = self.rows
        if not len(rows.nodes):
            return np.empty((0, 3), dtype=np.int64)
        here = one[(one[:, 1] >= rows.nodes[0]) & (one[:, 1] <= rows.nodes[-1])]
        members = np.flatnonzero(only != NONE)
        keys = keyed(members, 0 if self.rank is None else self.rank[members], salt)
        members = members[np.lexsort((keys, only[members]))]
        first = np.searchsorted(only[members], here[:, 0])
        lengths = np.searchsorted(only[members], here[:, 0], side="right") - first
        at = np.repeat(np.arange(len(here)), lengths)
        other = members[np.arange(len(at)) - np.repeat(np.cumsum(lengths) - lengths - first, lengths)]
        u = here[at, 1]
        apart = (other != u) & ~holds_entries(rows.indptr, rows.indices, u - rows.nodes[0], other)
        at, other = at[apart], other[apart]
        which, place = np.unique(at, return_index=True)
        partner = np.full(len(here), NONE, dtype=np.int64)
        partner[which] = other[place]
        return np.column_stack([here, partner])

    def _apart(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """[s] bool: the swaps that come before all others with a node next to one of theirs. Ranks: all
        call.
        """
        rows, swap = self.rows, np.full(self.rows.n, NONE, dtype=np.int64)
        swap[u] = np.arange(len(u))
        second = v != NONE
        swap[v[second]] = np.flatnonzero(second)
        coming = rows.among(swap != NONE)
        mine = np.repeat(swap[coming.nodes], coming.degrees())
        later = np.maximum(mine, swap[coming.indices])[mine != swap[coming.indices]]
        kept = np.ones(len(u), dtype=bool)
        kept[everywhere(self.group, sorted_set(later))] = False
        return kept


def _light(weights: np.ndarray) -> np.ndarray:
    """[n] int64, ranks by weight, the heaviest first, coarse where weights are large."""
    return (int(weights.max(initial=0)) - weights) * SCALE // max(int(weights.max(initial=0)), 1)


def drop_dominators(
    group: Group, graph: Graph, weights: np.ndarray | None, chosen: np.ndarray, rounds: Rounds
) -> np.ndarray:
    """A dominating set [n] bool without nodes that it does not need: with enough rounds a minimal one.

    Each node keeps one of those that dominate it where all of them might go: a cheap one. All others that
    might go do.
    Ranks    all call
    """
    rows, chosen = OwnRows.of(graph), chosen.copy()
    rank = 0 if weights is None else SCALE - _light(weights)
    while rounds.another():
        times = _around(rows, chosen)
        once = _marked(group, rows, times == 1)
        spare = _marked(group, rows, chosen[rows.nodes] & (_around(rows, once) == 0))
        if not spare.any():
            break
        keys = np.where(spare, keyed(np.arange(rows.n), rank, rounds.made), NO_KEY)
        least = np.minimum(rows.least(keys), keys[rows.nodes])
        last = (times == _around(rows, spare)) & (least != NO_KEY)
        keeps = _key_holders(group, keys, least[last])
        chosen &= ~spare | keeps
    return chosen


def flip_sides(
    group: Group, rows: OwnRows, weights: np.ndarray, sides: np.ndarray, rounds: Rounds
) -> np.ndarray:
    """[n] bool, the sides of a cut at least as heavy: with enough rounds no node gains by the other side.

    Of nodes that gain and are next to each other those change that gain most, as far as keys tell.

    rows     of nodes that have an edge     weights   [m] int64 of their entries
    Ranks    all call
    """
    sides = sides.copy()
    while rounds.another():
        gains_own = _gains(rows, weights, sides)
        some = gains_own > 0
        nodes, gains = (everywhere(group, each[some]) for each in (rows.nodes, gains_own))
        if not len(nodes):
            break
        keys = np.full(rows.n, NO_KEY)
        keys[nodes] = keyed(nodes, _light(gains), rounds.made)
        sides[everywhere(group, rows.nodes[keys[rows.nodes] < rows.least(keys)])] ^= True
    return sides


def _gains(rows: OwnRows, weights: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """[k] int64, what each own node adds to a cut by changing its side."""
    found = np.zeros(len(rows.nodes), dtype=np.int64)
    for first, last in pieces(rows.indptr):
        low, high = rows.indptr[[first, last]]
        ends, w = rows.indptr[first : last + 1] - low, weights[low:high]
        across = sides[rows.indices[low:high]] != np.repeat(sides[rows.nodes[first:last]], np.diff(ends))
        found[first:last] = row_sums(ends, np.where(across, -w, w))
    return found


def _around(rows: OwnRows, mask: np.ndarray) -> np.ndarray:
    """[k] how many of `mask` [n] bool are in the closed neighbourhood of each own node."""
    return row_counts(rows.indptr, mask[rows.indices]) + mask[rows.nodes]


def _marked(group: Group, rows: OwnRows, mask_own: np.ndarray) -> np.ndarray:
    """[n] bool of all nodes, from those of own ones. Ranks: all call."""
    found = np.zeros(rows.n, dtype=bool)
    found[everywhere(group, rows.nodes[mask_own])] = True
    return found


def _key_holders(group: Group, keys: np.ndarray, told: np.ndarray) -> np.ndarray:
    """[n] bool, the nodes whose keys [n] are among those that ranks tell. Ranks: all call."""
    return np.isin(keys, everywhere(group, sorted_set(told)))
