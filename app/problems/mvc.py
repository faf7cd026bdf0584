"""Minimum vertex cover: the fewest nodes that touch every edge (RL4GO section 4)."""

import numpy as np

from app.bounds.cover.table import BOUNDS
from app.bounds.cover.verify import uncovered_edge
from app.graphs.graph import Graph
from app.problems.residual import ResidualProblem
from app.problems.sets import FewestNodes
from app.search.cover.baselines import BASELINES


class MinimumVertexCover(FewestNodes, ResidualProblem):
    """State: the residual graph without the chosen nodes. A candidate has at least one live edge.

    Reward     -1 for each chosen node (RL4GO section 4.1), so that a return is minus the cover still to pay
    Shaping    "caro_wei": + Phi(s') - Phi(s) with Phi = -(alive - sum_v 1/(1+d_v)). Caro and Wei: an
               independent set of at least sum 1/(1+d_v) nodes exists, so Phi estimates minus what is left to
               pay. A potential leaves the optimal policy unchanged (Ng et al. 1999), and takes the constant
               part out of Q, in which one wrong choice would drown.
    """

    name = "mvc"
    sense = "minimise"
    solution = "cover"
    closed = False
    adjacent = True
    redundancy = "cover"
    baselines = BASELINES
    bounds = BOUNDS
    known = True

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """An edge without an end in the cover."""
        edge = uncovered_edge(graph_rows, solution_all)
        return None if edge is None else f"leaves edge {graph_rows.called(*edge)} uncovered"
