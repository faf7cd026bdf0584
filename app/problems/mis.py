"""Maximum independent set: the most nodes of which no two are adjacent."""

from typing import ClassVar, NamedTuple

import numpy as np

from app.bounds.cover.table import BOUNDS
from app.bounds.feasible import edge_inside
from app.graphs.graph import Graph
from app.problems.problem import FIXED_POINT, coarse, inverse_root
from app.problems.residual import ResidualProblem
from app.search.cover.baselines import Baseline, max_degree, min_degree, one_hop_formula


class SetTotals(NamedTuple):
    """The totals of a residual graph of which the nodes without edges belong to the set.

    alive, degree_sum   as in Totals
    worth    sum over alive nodes of floor(2^30 / sqrt(1 + degree))
    free     nodes neither chosen nor ruled out that have no live edge
    """

    alive: int
    degree_sum: int
    worth: int
    free: int

    @property
    def candidates(self) -> int:
        """Every node with a live edge may be chosen; free ones need no choice."""
        return self.alive

    def mean_degree(self) -> float:
        """Mean degree of the alive nodes, kept to four leading binary digits."""
        return coarse(self.degree_sum, self.alive)


def _complement(cover: Baseline) -> Baseline:
    """What a heuristic for vertex cover leaves out: no edge has both ends outside a cover."""

    def independent_set(graph: Graph) -> tuple[np.ndarray, str]:
        in_cover, label = cover(graph)
        return ~in_cover, label

    return independent_set


class MaximumIndependentSet(ResidualProblem):
    """State: the residual graph without the chosen nodes and their neighbours, which are ruled out.

    A candidate has at least one live edge; nodes without one are free, and in the set once all is done.

    Reward     +1 for each chosen node
    Shaping    "caro_wei": + Phi(s') - Phi(s) with Phi = sum_v (1+d_v)^(-1/2) over the nodes neither chosen
               nor ruled out, a free one counting 1. The Caro-Wei sum itself, with exponent -1, estimates the
               set of a dense graph too low against that of a sparse one: with a short horizon a choice that
               rules out many nodes at once would look good for that alone (greedily by the gain of potential
               145 and 103 nodes on five BA and five ER graphs of 60-92 nodes, with -1/2 157 and 110, least
               degree 157 and 106)
    """

    name = "mis"
    sense = "maximise"
    solution = "independent set"
    closed = True
    adjacent = False
    redundancy = ""
    totals = SetTotals
    baselines: ClassVar = {
        "max_degree": _complement(max_degree),
        "min_degree": _complement(min_degree),
        "one_hop": _complement(one_hop_formula),
    }
    bounds = BOUNDS
    known = True

    def worth(self, degree: np.ndarray) -> np.ndarray:
        """[k] int64, floor(2^30 / sqrt(1 + degree)) of nodes with live edges, 0 of others."""
        return np.where(degree > 0, inverse_root(1 + degree), 0)

    def shares(self, mark: np.ndarray, field: np.ndarray) -> np.ndarray:
        """Those of a residual graph, then free nodes."""
        free = np.count_nonzero((field == 0) & (mark > 0))
        return np.append(super().shares(mark, field), free)

    def node_shares(self, mark: np.ndarray, field: np.ndarray) -> list[np.ndarray]:
        """Those of a residual graph, then free nodes."""
        return [*super().node_shares(mark, field), (field == 0) & (mark > 0)]

    def potential(self, totals: SetTotals) -> float:
        """An estimate of the nodes still to gain."""
        return totals.worth / FIXED_POINT + totals.free

    def reward(self, before: SetTotals, after: SetTotals, chosen: int, shaping: str) -> float:
        """+1 for each node that has joined the set, or chosen plus the gain of potential when shaped."""
        if shaping == "caro_wei":
            return chosen + self.potential(after) - self.potential(before)
        return float(chosen + after.free - before.free)

    def objective(self, chosen: int, totals: SetTotals) -> int:
        """The nodes chosen, and those that are free."""
        return chosen + totals.free

    def solution_of(self, chosen_at: np.ndarray) -> np.ndarray:
        """The nodes not ruled out."""
        return chosen_at >= -1

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """An edge with both ends in the set."""
        edge = edge_inside(graph_rows, solution_all)
        return None if edge is None else f"holds both ends of edge {graph_rows.called(*edge)}"

    def bound(self, n: int, lower: int) -> int:
        """An upper bound: the nodes outside a vertex cover form an independent set, and the reverse."""
        return n - lower
