"""Network dismantling: the fewest (lightest) nodes without which no component is large."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from app.bounds.feasible import node_of_large_component
from app.graphs.graph import Graph
from app.graphs.sized import SizedGraph, largest_component, sized_of
from app.problems.problem import FIXED_POINT, coarse, room_for_features
from app.problems.residual import ResidualProblem
from app.problems.sets import FewestNodes
from app.search.dismantle.baselines import DISMANTLE_BASELINES, core_hd_bare, high_degree
from app.search.dismantle.tools import DismantleTools
from app.toolbox import Instance

Array = Any
Rule = Callable[[SizedGraph, bool], tuple[np.ndarray, str]]
RULES: dict[str, Rule] = {"high_degree": high_degree, "core_hd_bare": core_hd_bare} | DISMANTLE_BASELINES
SHARE = 0.01  # of all nodes, as problem.component has it
FINEST = 8  # nodes of the components that a policy plays on to, where larger ones may stay


class PartTotals(NamedTuple):
    """The totals of the large components of a graph.

    alive        nodes in them
    degree_sum   sum of live degrees: twice the live edges
    worth        sum over alive nodes of Dismantling.worth
    most         nodes that a component may have that is not large (Dismantling.finest)
    """

    alive: int
    degree_sum: int
    worth: int
    most: int

    @property
    def candidates(self) -> int:
        """Every alive node may be chosen."""
        return self.alive

    def mean_degree(self) -> float:
        """Mean degree of the alive nodes, kept to four leading binary digits."""
        return coarse(self.degree_sum, self.alive)


class Dismantling(FewestNodes, ResidualProblem):
    """State: the components of more than k = min(K, FINEST) nodes of the graph without the chosen ones. Every
    node of them may be chosen. A solution is [n] bool, the nodes that are taken out (component order
    connectivity, K-vertex separator); those without which components stay small go back in the end.

    Reward     -1 for each chosen node
    Shaping    "caro_wei": + Phi(s') - Phi(s) with Phi = -sum_v (1 - (2/(1+d_v))^(1/2) + 1/(k+1)) over alive
               nodes; the root is at most 1. The first part is near to what breaks cycles (FeedbackVertexSet),
               the second to what breaks trees, of which a node leaves parts of k. Greedily by the gain of
               potential, with nodes put back, 32 graphs of 50 and 66 nodes (BA of mean degrees 4 and 8, ER of
               3.5 and p = 0.15) need 1036 nodes at K = 0.03 n and 653 at 0.1 n, with 3 in the place of 2 1037
               and 653, with the first part alone 1079 and 643; CoreHD needs 1046 and 654, the largest degree
               1066 and 714

    Where components of K > FINEST nodes may stay a policy plays on to components of FINEST nodes; then as
    many nodes go back as may, the one that makes the smallest component first. Stopped at K it would leave
    these little to choose from

    component  nodes that a component may have at the end, or that share of all of them
    """

    name = "dismantle"
    sense = "minimise"
    solution = "dismantling set"
    dynamics = "parts"
    closed = False
    adjacent = True
    redundancy = "parts"
    plays_on = True
    totals = PartTotals
    feature_counts: ClassVar = {"paper": 1, "scale_free": 9}
    bounds: ClassVar = {}
    known = False

    def __init__(self, component: float = SHARE) -> None:
        self.component = component

    def largest(self, n: int) -> int:
        """Nodes that a component of a graph of n nodes may have at the end."""
        return largest_component(n, self.component)

    def finest(self, n: int) -> int:
        """Nodes that a component of a graph of n nodes has at most where a policy's episode ends."""
        return min(self.largest(n), FINEST)

    def limited(self, most: int) -> "Dismantling":
        """The same problem, components of `most` nodes at the end, whatever the graph."""
        return Dismantling(float(most))

    def limits(self, n: int) -> tuple[int, ...]:
        """How large components may be."""
        return (self.largest(n),)

    @property
    def baselines(self) -> dict[str, Any]:
        """The plain heuristics of a graph whose nodes all count one."""
        return {name: partial(self._of_graph, rule) for name, rule in RULES.items()}

    def _of_graph(self, rule: Rule, graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
        return rule(sized_of(graph, np.ones(graph.n, dtype=np.int64), self.largest(graph.n)), compiled)

    def worth(self, degree: np.ndarray) -> np.ndarray:
        """[k] int64, floor(2^30 * min(1, sqrt(2 / (1 + degree)))) of alive nodes, 0 of others."""
        square = 2 * FIXED_POINT**2 // (1 + degree.astype(np.int64))
        # The square root of float64 rounds exactly.
        return np.where(degree > 0, np.sqrt(square.astype(np.float64)).astype(np.int64), 0)

    def shares(self, mark: np.ndarray, field: np.ndarray) -> np.ndarray:
        """Alive nodes, their degrees, their worth; of K nothing."""
        return np.append(super().shares(mark, field), 0)

    def potential(self, totals: PartTotals) -> float:
        """Minus about the nodes still to choose."""
        return totals.worth / FIXED_POINT - totals.alive - totals.alive / (totals.most + 1)

    def state(self, totals: PartTotals) -> tuple[float, ...]:
        """The mean degree, k beside what is left, and k."""
        return totals.mean_degree(), coarse(totals.most, totals.alive), float(totals.most)

    def features(self, kind: str, xp: Any, code: Array, state: Array) -> Array:
        """Node features [..., F].

        paper        x_v = 1 for chosen nodes and nodes of small components (RL4GO eq. 1)
        scale_free   the seven of residual graphs, of the mean degree, then min(k / nodes left, 1) and 1/k;
                     zero outside large components
        code         [..., 1], 2 + the live degree     state [..., 3], see `state`
        """
        if kind == "paper":
            return super().features(kind, xp, code, state[..., :1])
        x = room_for_features(xp, code, state, 9)
        x[..., :7] = super().features(kind, xp, code, state[..., :1])
        x[..., 7:8] = xp.minimum(state[..., 1:2], 1) * x[..., 0:1]
        x[..., 8:9] = x[..., 0:1] / xp.maximum(state[..., 2:3], 1)
        return x

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """A component that is too large, of a graph that is held whole; of a part of the rows nothing: how
        large components are is told by all ranks together (app/rl/forest.py).
        """
        if graph_rows.lo > 0 or graph_rows.hi < graph_rows.n:
            return None
        most = self.largest(graph_rows.n)
        found = node_of_large_component(graph_rows, solution_all, most) if graph_rows.n else None
        return None if found is None else f"leaves a component of {found[1]} nodes; at most {most} may be"

    def toolbox(self, instance: Instance) -> DismantleTools:
        """Reductions, a greedy start, a search, bounds."""
        return DismantleTools(instance, self)
