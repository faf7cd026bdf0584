"""Minimum feedback vertex set: the fewest (lightest) nodes without which a graph is a forest."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from app.bounds.feasible import node_of_cycle
from app.graphs.graph import Graph
from app.graphs.multigraph import Multigraph, multigraph_of
from app.problems.problem import FIXED_POINT
from app.problems.residual import ResidualProblem
from app.problems.sets import FewestNodes
from app.search.fvs.baselines import FEEDBACK_BASELINES, core_hd_bare
from app.search.fvs.tools import FeedbackTools
from app.toolbox import Instance

Array = Any


def of_graph(
    rule: Callable[[Multigraph, bool], tuple[np.ndarray, str]], graph: Graph, compiled: bool = True
) -> tuple[np.ndarray, str]:
    """A plain heuristic on a whole graph whose nodes all count one."""
    return rule(multigraph_of(graph, np.ones(graph.n, dtype=np.int64)), compiled)


class FeedbackVertexSet(FewestNodes, ResidualProblem):
    """State: the 2-core of the graph without the chosen nodes. Every node of it may be chosen.

    A solution is [n] bool, the nodes that are taken out; what is left is a largest induced forest. Nodes
    taken at once may be adjacent, or break the same cycles: what no cycle needs goes back in the end.

    Reward     -1 for each chosen node
    Shaping    "caro_wei": + Phi(s') - Phi(s) with Phi = -sum_v (1 - (3/(1+d_v))^(1/2)) over the nodes of the
               core. A node of degree two counts nothing: the edges that meet there may be joined to one. An
               induced forest of at least sum 2/(1+d_v) nodes exists (Alon, Kahn and Seymour, Large induced
               degenerate subgraphs, 1987), but that sum leads less well: greedily by the gain of potential
               five BA, five ER and five sparse ER graphs (50 to 82 nodes, mean degrees about 8, 10 and 3.5)
               need 103, 178 and 70 nodes with it, 101, 172 and 71 with 3/(1+d) and as many with its square
               root, which is nearer to what is really left; CoreHD, the largest degree in the core, needs
               101, 176 and 70
    """

    name = "fvs"
    sense = "minimise"
    solution = "feedback vertex set"
    dynamics = "core"
    closed = False
    adjacent = True
    redundancy = "forest"
    lowest = 2  # in a 2-core
    baselines: ClassVar = {
        name: partial(of_graph, rule)
        for name, rule in ({"core_hd_bare": core_hd_bare} | FEEDBACK_BASELINES).items()
    }
    bounds: ClassVar = {}
    known = False

    def worth(self, degree: np.ndarray) -> np.ndarray:
        """[k] int64, floor(2^30 * sqrt(3 / (1 + degree))) of nodes of the core, 0 of others."""
        square = 3 * FIXED_POINT**2 // (1 + degree.astype(np.int64))
        # The square root of float64 rounds exactly.
        return np.where(degree > 0, np.sqrt(square.astype(np.float64)).astype(np.int64), 0)

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """A cycle of which no node is taken, of a graph that is held whole; of a part of the rows nothing:
        whether their edges close cycles is told by all ranks together (app/rl/forest.py).
        """
        if graph_rows.lo > 0 or graph_rows.hi < graph_rows.n:
            return None
        node = node_of_cycle(graph_rows, solution_all)
        return None if node is None else f"leaves a cycle through node {graph_rows.called(node)}"

    def toolbox(self, instance: Instance) -> FeedbackTools:
        """Reductions, a greedy start, a search, bounds."""
        return FeedbackTools(instance, self)
