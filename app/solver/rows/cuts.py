"""Reductions of maximum cut on row partitions: nodes with one neighbour, or two, are put with one of them.

Whatever the others do, such a node is best on the side of the neighbour to which its edge weighs most, or on
the other side where that weight is above 0 (MERGE of app/reductions/cut/log.py). With one neighbour nothing
else changes; with two the edges of a chain become one, whose weight is added to that between its ends.

In every round each rank tells of its nodes with at most two neighbours, and all decide alike which go: those
that come first, in an order that mixes all numbers, among the neighbours that might go, too. So no two of
them are neighbours, each is as the rule wants it whatever the others of the round do, and of a long chain
every third node or so goes at once.

Source   Lange, Andres and Swoboda 2019 ("dominant edges"); app/reductions/cut/log.py has all rules
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from app.comm.group import Group
from app.graphs.graph import Graph
from app.reductions.cut.log import MERGE
from app.solver.rows.own import LEAST_SHARE, Rounds, everywhere

NONE = -1  # in the place of a second neighbour


@dataclass(frozen=True, eq=False)
class CutsReduced:
    """What is left of a graph, the same on all ranks but for the rows.

    steps   [k, 3] int64 each, of a round: node u, the neighbour v it goes with, whether on the other side (1)
    gained  what a lifted cut is worth beyond that of what is left, in units
    nodes   [k] int64, ascending, those that have an edge left; edges   among them
    rows    CSR int64 [n_own, n] of the own rows that are left, in units
    """

    steps: tuple[np.ndarray, ...]
    gained: int
    nodes: np.ndarray
    edges: int
    rows: csr_array

    def log(self) -> np.ndarray:
        """[words] int64, the steps as entries of app/reductions/cut/log.py."""
        heads = ((np.broadcast_to(np.array([MERGE, 3]), (len(step), 2)), step) for step in self.steps)
        return np.concatenate(
            [np.empty(0, dtype=np.int64), *(np.concatenate(each, axis=1).reshape(-1) for each in heads)]
        )

    def lift(self, sides_rest: np.ndarray) -> np.ndarray:
        """[n] bool, the cut of the graph that belongs to a cut [k] bool of what is left."""
        sides = np.zeros(self.rows.shape[1], dtype=bool)
        sides[self.nodes] = sides_rest
        for step in reversed(self.steps):
            sides[step[:, 0]] = sides[step[:, 1]] ^ (step[:, 2] == 1)
        return sides


def reduce_cuts(group: Group, graph: Graph, weights: np.ndarray, rounds: Rounds | None = None) -> CutsReduced:
    """Put nodes with at most two neighbours together with one of them, until few go.

    graph    own rows of the graph
    weights  [nnz] int64 of its stored entries, in units
    Ranks    all call; the same reductions on any number of ranks
    """
    rows = own_matrix(graph, weights)
    rounds, goes_on = Rounds() if rounds is None else rounds, True
    steps, gained = [], 0
    while goes_on and rounds.another():
        alive = int(group.sum_integers(np.array([np.count_nonzero(np.diff(rows.indptr))]))[0])
        found = _chosen(graph.n, everywhere(group, _candidates(rows, graph.lo)))
        apart = found[:, 2] > 0
        gained += int(found[apart][:, [2, 4]].sum())
        steps.append(np.column_stack([found[:, :2], apart]))
        rows = contracted(rows, graph.lo, found, apart)
        goes_on = len(found) > LEAST_SHARE * alive
    nodes = everywhere(group, np.flatnonzero(np.diff(rows.indptr)) + graph.lo)
    edges = int(group.sum_integers(np.array([rows.nnz]))[0]) // 2
    return CutsReduced(tuple(steps), gained, nodes, edges, rows)


def own_matrix(graph: Graph, weights: np.ndarray) -> csr_array:
    """CSR int64 [n_own, n] of weights [nnz] int64 at the entries of own rows, without those of weight 0."""
    shape = (graph.hi - graph.lo, graph.n)
    rows = csr_array((weights.copy(), graph.indices.copy(), graph.indptr.copy()), shape=shape)
    rows.eliminate_zeros()
    return rows


def _candidates(rows: csr_array, lo: int) -> np.ndarray:
    """[k, 5] int64: own nodes u with one or two neighbours, the one v to whose edge most weight has, w(uv),
    the other x, w(ux); NONE and 0 where there is no other. Of equal weights the lower number is v.
    """
    degrees = np.diff(rows.indptr)
    at = np.flatnonzero((degrees == 1) | (degrees == 2))
    first = rows.indptr[at].astype(np.int64)
    second = first + degrees[at] - 1
    two = second > first
    swap = two & (np.abs(rows.data[second]) > np.abs(rows.data[first]))
    v, x = np.where(swap, second, first), np.where(swap, first, second)
    other, weight = np.where(two, rows.indices[x], NONE), np.where(two, rows.data[x], 0)
    return np.column_stack([at + lo, rows.indices[v], rows.data[v], other, weight]).astype(np.int64)


def _chosen(n: int, found: np.ndarray) -> np.ndarray:
    """Those of candidates [k, 5] that come before all candidates next to them."""
    order = np.full(n, np.iinfo(np.uint64).max, dtype=np.uint64)  # no candidate
    order[found[:, 0]] = mixed(found[:, 0])
    near = np.where(found[:, 3] == NONE, found[:, 1], found[:, 3])
    mine = order[found[:, 0]]
    return found[(mine < order[found[:, 1]]) & (mine < order[near])]


def mixed(nodes: np.ndarray) -> np.ndarray:
    """[k] uint64, different numbers of nodes [k] in no order (the finaliser of SplitMix64, which is 1:1)."""
    x = nodes.astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def contracted(rows: csr_array, lo: int, found: np.ndarray, apart: np.ndarray) -> csr_array:
    """The own rows once the nodes of steps [k, 5], as `_candidates` tells them, have gone, and the edges of
    chains are one.
    """
    gone = np.zeros(rows.shape[1], dtype=bool)
    gone[found[:, 0]] = True
    hi = lo + rows.shape[0]
    stays = ~gone[rows.indices]
    stays &= np.repeat(~gone[lo:hi], np.diff(rows.indptr))
    rows.data[~stays] = 0
    rows.eliminate_zeros()
    chains = found[:, 3] != NONE
    v, x, weight = found[chains, 1], found[chains, 3], np.where(apart, -found[:, 4], found[:, 4])[chains]
    ends, others = np.concatenate([v, x]), np.concatenate([x, v])
    own = (ends >= lo) & (ends < hi)
    if not own.any():
        return rows
    more = csr_array(
        (np.concatenate([weight, weight])[own], (ends[own] - lo, others[own])), shape=rows.shape
    )  # of equal places the sum
    rows = rows + more
    rows.eliminate_zeros()
    rows.sort_indices()
    return rows
