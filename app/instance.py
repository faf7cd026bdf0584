"""Instance: what the solver is given: a whole graph, what is given beside it, what is asked for."""

import math
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from app.errors import CaseError
from app.graphs.graph import Graph


def _none() -> np.ndarray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Asked:
    """What problems are asked for: keys of [problem] by their names, of which each reads its own.

    null, resolution   of communities (app/graphs/quality.py)
    parts, imbalance   of balanced partitions (app/graphs/balance.py)
    component   what a component may have that dismantling leaves (app/graphs/sized.py)
    budget      what chosen sets may cost together, each one where costs are not given
    facility    which facilities are sought: median, center or uncapacitated (app/graphs/facility.py)
    eliminate   what elimination orders are judged by: width or fill
    arrange     what linear arrangements are judged by (app/graphs/arrangement.py)
    dense       which dense subgraphs are sought: average or size; size: of how many nodes
    """

    null: str = "degrees"
    resolution: float = 1.0
    parts: int = 2
    imbalance: float = 0.03
    component: float = 0.01
    budget: float = 10.0
    facility: str = "median"
    eliminate: str = "width"
    arrange: str = "length"
    dense: str = "average"
    size: int = 10

    @classmethod
    def of(cls, keys: Any) -> "Asked":
        """Of the table [problem] of a case."""
        return cls(**{each.name: getattr(keys, each.name) for each in fields(cls)})


@dataclass(frozen=True, eq=False)
class Beside:
    """What is given beside the graph of an instance, each of it to one problem.

    terminals   nodes that a Steiner tree has to hold, ascending
    prizes      [n] float32, what a Steiner tree loses of nodes that it leaves out; None: nothing
    heaviest    prizes are weights of any sign, and the connected subgraph that weighs most is sought
    deliveries  what vehicles deliver to the nodes (app/graphs/deliveries.py), for routes; None elsewhere
    demands     what nodes need (app/graphs/facility.py: Demands), for facilities; None: all one
    pairing     what the nodes are put on (app/graphs/pairing.py: Pairing); None elsewhere
    spreading   how news spreads (app/graphs/diffusion.py: Spreading), for influence; None: as by default
    """

    terminals: np.ndarray = field(default_factory=_none)
    prizes: np.ndarray | None = None
    heaviest: bool = False
    deliveries: Any = None
    demands: Any = None
    pairing: Any = None
    spreading: Any = None


NOTHING_ASKED, NOTHING_BESIDE = Asked(), Beside()  # beyond the defaults


@dataclass(frozen=True, eq=False)
class Instance:
    """One whole instance, the same on every rank.

    graph      all rows
    metric     distances between all pairs of nodes, for tours; None elsewhere
    inside     nodes that a user wants in the solution (of a cut: on side 1); outside: not in it (side 0)
    compiled   whether kernels may be used; the answers are equal
    whole_weights   [n] int64 node weights in a unit of a caller's, in the place of the graph's; or None
    most_bytes      what a graph that tools make of this one may take on a rank
    asked       what a problem is asked for
    beside      what is given beside the graph
    granted     what a solution is worth beside its nodes, where the graph is what is left of a larger one
    needed      [n] bool, nodes that a dominating set has to dominate; None: all
    known       nodes of a clique that is known: no answer is lighter
    whole_unit  that of whole_weights; of cuts, that of the graph's weights, which are whole numbers
    seconds     of a time limit, in which what takes too long is not made ready; infinite: there is none
    places      binary places of the unit of cut reductions; None: by the weights, and the core is the graph
                where nothing is reduced
    """

    graph: Graph
    metric: Any = None
    inside: np.ndarray = field(default_factory=_none)
    outside: np.ndarray = field(default_factory=_none)
    compiled: bool = True
    whole_weights: np.ndarray | None = None
    most_bytes: float = math.inf
    asked: Asked = NOTHING_ASKED
    beside: Beside = NOTHING_BESIDE
    granted: int = 0
    needed: np.ndarray | None = None
    known: np.ndarray = field(default_factory=_none)
    whole_unit: float = 1.0
    places: int | None = None
    seconds: float = math.inf

    def refuse_sides(self, problem: Any, why: str) -> None:
        """Raises CaseError where a user wants nodes in solutions or not; why none can be asked for."""
        if len(self.inside) or len(self.outside):
            raise CaseError(f"{problem.name}: {why}; leave search.inside and search.outside out")

    def misplaced(self, solution: np.ndarray) -> tuple[int, str] | None:
        """The first fixed node that a set [n] bool has on the wrong side, and where it is fixed; or None."""
        for nodes, side in ((self.inside, True), (self.outside, False)):
            lost = nodes[solution[nodes] != side] if len(nodes) else nodes
            if len(lost):
                return int(lost[0]), "inside" if side else "outside"
        return None
