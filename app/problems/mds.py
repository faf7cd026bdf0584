"""Minimum dominating set: the fewest nodes such that every other node is next to one of them."""

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from app.bounds.domination.packing import DOMINATION_BOUNDS
from app.bounds.feasible import undominated_node
from app.graphs.graph import Graph
from app.numerics.elementary import log
from app.problems.problem import FIRST_ALIVE, FIXED_POINT, coarse, inverse_root, room_for_features
from app.problems.sets import FewestNodes, SetProblem
from app.search.domination.baselines import most_gain, most_gain_pruned
from app.search.domination.tools import DominationTools
from app.toolbox import Instance, Toolbox

Array = Any


class DominationTotals(NamedTuple):
    """The totals of a state.

    alive         nodes that would dominate at least one more
    gain_sum      sum over nodes of how many more they would dominate
    undominated   nodes still to dominate
    price         sum over these of floor(2^30 / sqrt(gain))
    """

    alive: int
    gain_sum: int
    undominated: int
    price: int

    @property
    def candidates(self) -> int:
        """Every node that gains something may be chosen."""
        return self.alive


class MinimumDominatingSet(FewestNodes, SetProblem):
    """State: the marks m of undominated nodes. gain(v) = m(v) + sum of m over the neighbours of v.

    Choosing v takes the marks of v and its neighbours. A candidate has gain > 0; nodes without gain have no
    part in what is left, so they have no embedding. Its code is 2 + 2 (gain - m) + m.

    Reward     -1 for each chosen node
    Shaping    "caro_wei": + Phi(s') - Phi(s) with Phi = -sum over undominated u of gain(u)^(-1/2), which
               grows with what is left as the Caro-Wei sum does for covers. The exponent is measured:
               greedily by the gain of potential five BA and five ER graphs of 50-90 nodes need 50 and 50
               nodes with exponent 0 (most gain), 48 and 45 with -1/2, 69 and 48 with -1
    """

    name = "mds"
    sense = "minimise"
    solution = "dominating set"
    dynamics = "field"
    compiled_field = "domination"
    closed = True
    ordered = False
    adjacent = True
    redundancy = "domination"
    first_candidate = 3
    degree_codes = False
    sized_codes = True
    own_degree = False
    mirrors = False
    totals = DominationTotals
    feature_counts: ClassVar = {"scale_free": 9}
    baselines: ClassVar = {"most_gain": most_gain, "most_gain_pruned": most_gain_pruned}
    bounds: ClassVar = DOMINATION_BOUNDS
    known = False

    def toolbox(self, instance: Instance) -> Toolbox:
        """Reductions, a greedy start, a local search."""
        return DominationTools(instance, self)

    def shares(self, mark: np.ndarray, field: np.ndarray) -> np.ndarray:
        """Nodes with gain, their gains, undominated nodes, their prices."""
        gain = mark + field
        price = self.worth(gain * mark)
        return np.array([np.count_nonzero(gain), gain.sum(), mark.sum(), price.sum()], dtype=np.int64)

    def worth(self, gain: np.ndarray) -> np.ndarray:
        """[k] int64, floor(2^30 / sqrt(gain)), 0 without gain."""
        return inverse_root(gain)

    def mark_change(self, mark: np.ndarray) -> np.ndarray:
        """Chosen nodes and their neighbours are dominated."""
        return -mark

    def mark(self, xp: Any, count: Array, near: Array) -> Array:
        """One for nodes neither chosen nor next to a chosen one."""
        return (count + near == 0).astype(np.float32)

    def code(self, xp: Any, mark: Array, field: Array, real: Array | None = None) -> Array:
        """2 + 2 * field + mark where a node gains something; only these have an embedding."""
        gains = (mark + field) > 0
        return (gains * (FIRST_ALIVE + 2 * field + mark)).astype(np.int32)

    def plain(self, code: np.ndarray) -> np.ndarray:
        """The nodes that each would dominate."""
        return (code - 1) // 2

    def neighbours(self, code: np.ndarray) -> np.ndarray:
        """Those that it would dominate; others have an embedding, too, where they border on some."""
        return np.maximum(code - FIRST_ALIVE, 0) // 2

    def entries(self, max_degree: int) -> int:
        """Fields 0..max_degree with both marks, after the two codes of no embedding."""
        return FIRST_ALIVE + 2 * (max_degree + 1)

    def state(self, totals: DominationTotals) -> tuple[float, ...]:
        """What neighbour sums are measured by, and the mean gain of the candidates.

        A candidate has gain_sum / alive undominated nodes around it, these have gain_sum / undominated
        candidates: sums are divided by the geometric mean.
        """
        both = math.isqrt(totals.alive * totals.undominated)
        return coarse(totals.gain_sum, both), coarse(totals.gain_sum, totals.alive)

    def features(self, kind: str, xp: Any, code: Array, state: Array) -> Array:
        """1, log(1 + g/s), r = min(s/g, 8), r^2/4, m, [g=1], m*r, 1/s, 1/t of gain g, mark m, mean gain s.

        code    [..., 1]    state [..., 2], t and s
        """
        scale, state = state[..., 0:1], state[..., 1:2]
        number = xp.maximum(code - FIRST_ALIVE, 0)
        field = xp.floor(number * 0.5)
        mark = number - 2 * field
        gain = xp.maximum(mark + field, 1)
        ratio = xp.minimum(state / gain, 8)
        x = room_for_features(xp, code, state, 9)
        x[..., 0:1] = 1
        x[..., 1:2] = log(xp, 1 + gain / state)
        x[..., 2:3] = ratio
        x[..., 3:4] = ratio * ratio * 0.25
        x[..., 4:5] = mark
        x[..., 5:6] = gain == 1
        x[..., 6:7] = mark * ratio
        x[..., 7:8] = 1 / state
        x[..., 8:9] = 1 / scale
        x *= number > 0
        return x

    def potential(self, totals: DominationTotals) -> float:
        """Minus an estimate of the nodes still to choose."""
        return -totals.price / FIXED_POINT

    def done(self, totals: DominationTotals) -> bool:
        """True when every node is dominated."""
        return totals.undominated == 0

    def left(self, totals: DominationTotals) -> tuple[int, str]:
        """Nodes not dominated yet."""
        return totals.undominated, "undominated nodes"

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """A node that is neither chosen nor next to one that is."""
        node = undominated_node(graph_rows, solution_all)
        return None if node is None else f"leaves node {graph_rows.called(node)} undominated"
