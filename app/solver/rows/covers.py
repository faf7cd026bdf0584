"""Reductions of vertex covers on row partitions: graphs too large for one rank become as small as they can.

In every round each rank looks at its own rows for nodes v with one neighbour, or with two that are
adjacent, none heavier than v: an optimal cover holds these neighbours and not v (the rule of degree 1, and
the triangle; in app/reductions/cover/log.py both are NEIGHBOURS). What is found is told to all ranks, which
decide alike what of it holds at once, and take it out of their rows. What is left of large sparse networks
after some rounds is often a small part, or nothing.

Three numbers travel for each v to every rank, and a rank holds a byte for each node of the graph beside its
rows. The rules that make new edges (folding), or look further than a neighbour's row, wait until what is
left is whole on every rank.
"""

from dataclasses import dataclass

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph, holds_entries
from app.reductions.cover.log import NEIGHBOURS
from app.solver.rows.own import LEAST_SHARE, OwnRows, Rounds, everywhere, row_sums


@dataclass(frozen=True, eq=False)
class RowsReduced:
    """What is left of a graph, the same on all ranks but for the rows.

    steps         [k, 2 or 3] int64 each, nodes and all their neighbours of then, one after the other
    covered       [n] bool, nodes that those put into the cover: the neighbours; and all of weight 0
    nodes         [k] int64, ascending, those that have an edge left
    edges         left
    own           rows of this rank's share of `nodes`, in order
    rounds        it took
    weights       [n] int64 of all nodes, at least 0; None: all one
    """

    steps: tuple[np.ndarray, ...]
    covered: np.ndarray
    nodes: np.ndarray
    edges: int
    own: OwnRows
    rounds: int
    weights: np.ndarray | None = None

    @property
    def taken(self) -> int:
        """The weight in the cover so far: what any cover of the graph has beside one of the rest."""
        return self.weight(self.covered)

    def weight(self, chosen: np.ndarray) -> int:
        """That of the nodes that are chosen [n] bool."""
        return int(np.count_nonzero(chosen) if self.weights is None else self.weights[chosen].sum())

    def log(self) -> np.ndarray:
        """[words] int64, the steps as entries of app/reductions/cover/log.py."""
        return np.concatenate([np.empty(0, dtype=np.int64), *(_entries(nodes) for nodes in self.steps)])

    def lift(self, in_cover_rest: np.ndarray) -> np.ndarray:
        """[n] bool, the cover of the graph that belongs to a cover [k] bool of what is left."""
        in_cover = self.covered.copy()
        in_cover[self.nodes] = in_cover_rest
        return in_cover

    def rest(self, group: Group, name: str) -> Graph:
        """What is left as a graph of its own on every rank, nodes in order. Ranks: all call."""
        return self.own.whole(group, name)[0]


def reduce_rows(
    group: Group, graph: Graph, weights: np.ndarray | None = None, rounds: Rounds | None = None
) -> RowsReduced:
    """Apply both rules to the rows of a graph until too little comes of it. Nodes of weight 0 go first.

    graph    own rows lo..hi-1 of the graph
    weights  [n] int64 of all nodes, at least 0, on all ranks; None: all one
    rounds   how many there may be; None: MOST_ROUNDS
    Ranks    all call; the same reductions on any number of ranks
    """
    left, covered = _Left(OwnRows.of(graph), weights), np.zeros(graph.n, dtype=bool)
    if weights is not None:
        covered |= weights == 0
        left.drop(covered)
    return _reduced(group, left, covered, weights, Rounds() if rounds is None else rounds)


def reduce_further(group: Group, before: RowsReduced, covered: np.ndarray, rounds: Rounds) -> RowsReduced:
    """What is left once more nodes are put into the cover [n] bool, by choice; all steps are the new ones.

    Ranks    all call; the same reductions on any number of ranks
    """
    left, covered = _Left(before.own, before.weights), covered | before.covered
    left.drop(covered)
    return _reduced(group, left, covered, before.weights, rounds)


def _reduced(
    group: Group, left: "_Left", covered: np.ndarray, weights: np.ndarray | None, rounds: Rounds
) -> RowsReduced:
    """Round after round. Nodes that go are added to `covered`. Ranks: all call."""
    steps: list[np.ndarray] = []
    goes_on = True
    while goes_on and rounds.another():
        alive = int(group.sum_integers(np.array([len(left.nodes)]))[0])
        leaves, triangles = _round(group, left, covered)
        steps += [leaves, triangles]
        left.drop(covered)
        goes_on = len(leaves) + 2 * len(triangles) > LEAST_SHARE * alive
    edges = int(group.sum_integers(np.array([len(left.indices)]))[0]) // 2
    nodes = everywhere(group, left.nodes)
    own = OwnRows(len(covered), left.nodes, left.indptr, left.indices)
    return RowsReduced(tuple(steps), covered, nodes, edges, own, rounds.made, weights)


def _round(group: Group, left: "_Left", covered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The steps of one round: [k, 2] and [k, 3] nodes. Their neighbours are added to `covered` [n] bool.

    Leaves come first; triangles hold where none of their nodes has gone with a leaf's neighbour.
    """
    leaves = _first_leaves(everywhere(group, left.leaves()), covered)
    covered[leaves[:, 1]] = True
    triangles = everywhere(group, left.corners())
    joined = group.sum_integers(left.joins(triangles[:, 1], triangles[:, 2]).astype(np.int64)) > 0
    left.forget(triangles[~joined, 0])
    triangles = _apart(triangles[joined & ~covered[triangles].any(axis=1)])
    covered[triangles[:, 1:]] = True
    return leaves, triangles


def _entries(nodes: np.ndarray) -> np.ndarray:
    """[words] int64, the entries of the log of v and its neighbours, nodes [k, 2 or 3]."""
    head = np.broadcast_to(np.array([NEIGHBOURS, nodes.shape[1]]), (len(nodes), 2))
    return np.concatenate([head, nodes], axis=1).reshape(-1)


def _first_leaves(pairs: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Of leaves and their neighbours [k, 2], ascending by leaf, the first of each neighbour. Of two that are
    each other's neighbours the first is the leaf, where both may be.

    marks   [n] bool, no leaf marked; as it was afterwards
    """
    marks[pairs[:, 0]] = True
    pairs = pairs[~marks[pairs[:, 1]] | (pairs[:, 0] < pairs[:, 1])]
    marks[pairs] = False
    first = np.unique(pairs[:, 1], return_index=True)[1]
    return pairs[np.sort(first)]


def _apart(triangles: np.ndarray) -> np.ndarray:
    """Of triangles [k, 3], ascending by their first node, some that share no node: whichever comes before all
    that share one with it, then the same among those that share none with these, to the end.
    """
    taken = [triangles[:0]]
    while len(triangles):
        nodes, place = np.unique(triangles, return_inverse=True)
        place = place.reshape(triangles.shape)
        first = np.full(len(nodes), len(triangles))
        order = np.arange(len(triangles))
        np.minimum.at(first, place, order[:, None])
        leads = (first[place] == order[:, None]).all(axis=1)
        taken.append(triangles[leads])
        gone = np.zeros(len(nodes), dtype=bool)
        gone[place[leads]] = True
        triangles = triangles[~gone[place].any(axis=1)]
    return np.concatenate(taken)


class _Left:
    """The own rows that have an edge left.

    nodes    [k] int64, ascending numbers of the graph; indptr [k+1], indices: their rows
    """

    def __init__(self, rows: OwnRows, weights: np.ndarray | None) -> None:
        self._weights = weights
        self._lo, self._hi = (int(rows.nodes[0]), int(rows.nodes[-1]) + 1) if len(rows.nodes) else (0, 0)
        self._apart = np.zeros(self._hi - self._lo, dtype=bool)  # the two neighbours are not adjacent
        self.nodes, self.indptr, self.indices = rows.nodes, rows.indptr, rows.indices
        self._keep(rows.degrees())

    def leaves(self) -> np.ndarray:
        """[l, 2] int64: nodes with one neighbour, not heavier, and that one."""
        at = np.flatnonzero(np.diff(self.indptr) == 1)
        return self._light(self.nodes[at], self.indices[self.indptr[at]])

    def corners(self) -> np.ndarray:
        """[l, 3] int64: nodes with two neighbours, not heavier, and those; none it was told to forget."""
        at = np.flatnonzero((np.diff(self.indptr) == 2) & ~self._apart[self.nodes - self._lo])
        first = self.indptr[at]
        return self._light(self.nodes[at], self.indices[first], self.indices[first + 1])

    def _light(self, *nodes: np.ndarray) -> np.ndarray:
        """[l, c] int64, nodes and their neighbours, where none of these is heavier."""
        found = np.stack(nodes, axis=1).astype(np.int64)
        if self._weights is None:
            return found
        weight = self._weights[found]
        return found[(weight[:, 1:] <= weight[:, :1]).all(axis=1)]

    def joins(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """[l] bool: u is here, and v one of its neighbours."""
        place = np.searchsorted(self.nodes, u)
        here = np.flatnonzero(place < len(self.nodes))
        here = here[self.nodes[place[here]] == u[here]]
        found = np.zeros(len(u), dtype=bool)
        found[here] = holds_entries(self.indptr, self.indices, place[here], v[here])
        return found

    def forget(self, nodes: np.ndarray) -> None:
        """The two neighbours of these nodes are not adjacent: they will never be."""
        own = nodes[(nodes >= self._lo) & (nodes < self._hi)]
        self._apart[own - self._lo] = True

    def drop(self, covered: np.ndarray) -> None:
        """Take the nodes that are covered [n] bool out of rows and columns, and the nodes without an edge."""
        kept = ~covered[self.indices]
        kept &= np.repeat(~covered[self.nodes], np.diff(self.indptr))
        degrees = row_sums(self.indptr, kept)
        self.indices = self.indices[kept]
        self._keep(degrees)

    def _keep(self, degrees: np.ndarray) -> None:
        """The rows [k] that have entries, of which `indices` holds no others."""
        some = degrees > 0
        self.nodes = self.nodes[some]
        self.indptr = np.concatenate([[0], np.cumsum(degrees[some])]).astype(np.int64)
