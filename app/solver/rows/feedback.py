"""Reductions of feedback vertex sets on row partitions: leaves go, and chains become edges.

No cycle goes through a node with at most one edge. One that goes through a node with two edges has both its
neighbours, and so that node goes, too, where it is no lighter than one of them: its edges become one (LEAF
and PATH of app/reductions/fvs/log.py). Where its neighbours are joined already that would be a second edge
between them; such nodes stay until the rest is on one rank.

In every round each rank tells of its nodes with at most two edges, and all decide alike which go, as in cuts
(app/solver/rows/cuts.py): those that come first among their neighbours, and one at most between two nodes.

Source   Bafna, Berman and Fujito 1999; app/reductions/fvs/reducer.py has all rules
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from app.comm.group import Group
from app.graphs.graph import Graph, holds_entries
from app.reductions.fvs.log import LEAF, PATH
from app.solver.rows.cuts import NONE, contracted, mixed, own_matrix
from app.solver.rows.own import LEAST_SHARE, OwnRows, Rounds, everywhere

LAST = np.iinfo(np.uint64).max  # in an order: no candidate


@dataclass(frozen=True, eq=False)
class FeedbackReduced:
    """What is left of a graph, the same on all ranks but for the rows.

    steps   [k, 3] int64 each, of a round: node v that goes, its neighbours a and b; NONE where there are none
    nodes   [k] int64, ascending, those that are left, none of weight 0; edges   among them
    own     rows of this rank's share of `nodes`, in order
    """

    steps: tuple[np.ndarray, ...]
    nodes: np.ndarray
    edges: int
    own: OwnRows

    def log(self) -> np.ndarray:
        """[words] int64, the steps as entries of app/reductions/fvs/log.py."""
        every = np.concatenate([np.empty((0, 3), dtype=np.int64), *self.steps])
        return np.column_stack([np.where(every[:, 2] == NONE, LEAF, PATH), every[:, 0]]).reshape(-1)


def reduce_feedback(
    group: Group, graph: Graph, weights: np.ndarray | None = None, rounds: Rounds | None = None
) -> FeedbackReduced:
    """Take off leaves and nodes of chains, until few go.

    graph    own rows of the graph
    weights  [n] int64 of all nodes, at least 0, on all ranks: those of weight 0 are taken; None: all one
    Ranks    all call; the same reductions on any number of ranks
    """
    left = np.ones(graph.n, dtype=bool) if weights is None else weights > 0
    rows, rounds, steps = rows_among(graph, left), Rounds() if rounds is None else rounds, []
    goes_on = True
    while goes_on and rounds.another():
        found = _chosen(graph.n, _candidates(group, rows, graph.lo, left, weights))
        steps.append(found)
        rows = joined_rows(rows, graph.lo, found)
        goes_on = len(found) > LEAST_SHARE * np.count_nonzero(left)
        left[found[:, 0]] = False
    own = np.flatnonzero(left[graph.lo : graph.hi])
    indptr = np.append(rows.indptr[own], rows.indptr[-1]).astype(np.int64)
    mine = OwnRows(graph.n, own + graph.lo, indptr, rows.indices)
    return FeedbackReduced(tuple(steps), np.flatnonzero(left), mine.count(group)[1], mine)


def rows_among(graph: Graph, left: np.ndarray) -> csr_array:
    """CSR int64 [n_own, n], 1 at the entries of own rows between nodes that are left [n] bool."""
    ones = left[graph.indices] & np.repeat(left[graph.lo : graph.hi], np.diff(graph.indptr))
    return own_matrix(graph, ones.astype(np.int64))


def joined_rows(rows: csr_array, lo: int, step: np.ndarray) -> csr_array:
    """The own rows once the nodes of a step [k, 3] have gone, and the two edges of some are one."""
    ones = np.ones(len(step), dtype=np.int64)
    found = np.column_stack([step[:, :2], ones, step[:, 2], ones])
    return contracted(rows, lo, found, np.zeros(len(step), dtype=bool))


def _candidates(
    group: Group, rows: csr_array, lo: int, left: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """[k, 3] int64, nodes with at most two edges that may go, and their neighbours. Ranks: all call; the same
    on all.
    """
    degrees = np.diff(rows.indptr)
    at = np.flatnonzero((degrees <= 2) & left[lo : lo + len(degrees)])
    first, last = rows.indptr[at].astype(np.int64), rows.indptr[at + 1].astype(np.int64) - 1
    indices = np.append(rows.indices, NONE).astype(np.int64)
    a = np.where(degrees[at] > 0, indices[first], NONE)
    b = np.where(degrees[at] > 1, indices[last], NONE)
    light = np.ones(len(at), dtype=bool)
    if weights is not None:
        light = (b == NONE) | (np.minimum(weights[a], weights[b]) <= weights[at + lo])
    told = everywhere(group, np.column_stack([at + lo, a, b])[light])
    mine = np.flatnonzero((told[:, 2] != NONE) & (told[:, 1] >= lo) & (told[:, 1] < lo + len(degrees)))
    met = holds_entries(rows.indptr, rows.indices, told[mine, 1] - lo, told[mine, 2])
    free = np.ones(len(told), dtype=bool)
    free[everywhere(group, mine[met])] = False
    return told[free]


def _chosen(n: int, found: np.ndarray) -> np.ndarray:
    """Those of candidates [k, 3] that come before all candidates next to them, and before others between the
    same two.
    """
    order = np.full(n + 1, LAST, dtype=np.uint64)  # the last place is that of NONE
    order[found[:, 0]] = mixed(found[:, 0])
    mine = order[found[:, 0]]
    found = found[(mine < order[found[:, 1]]) & (mine < order[found[:, 2]])]
    pairs = np.where(found[:, 2] == NONE, -1 - found[:, 0], found[:, 1] * n + found[:, 2])
    return found[np.unique(pairs, return_index=True)[1]]
