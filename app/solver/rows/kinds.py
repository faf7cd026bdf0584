"""Reductions on row partitions, problem by problem, as a solve asks for them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from app.comm.group import Group
from app.errors import LockstepError
from app.graphs.graph import Graph
from app.solver.rows.cut_sweeps import CutSweeps
from app.solver.rows.own import OwnRows, Rounds
from app.solver.rows.regions import Regions
from app.tables import Table

ROW_KINDS = Table(
    {
        "mvc": "app.solver.rows.cover_kind:CoverRows",
        "mis": "app.solver.rows.cover_kind:CoverRows",
        "clique": "app.solver.rows.clique_kind:CliqueRows",
        "fvs": "app.solver.rows.feedback_kind:FeedbackRows",
        "mds": "app.solver.rows.domination_kind:DominationRows",
        "maxcut": "app.solver.rows.cut_kind:CutRows",
        "maxcut_once": "app.solver.rows.cut_kind:CutRows",
    }
)


class RowKind(ABC):
    """What reductions leave of a graph of which each rank has its rows, the same on all ranks.

    sense         of the problem, "minimise" or "maximise"
    weights       [n] int64 of all nodes, in units, where they count; None: all one
    fits          whether a whole graph of so many nodes and edges is small enough for one rank
    most_bytes    what work on one may take there
    compiled      whether kernels may be used; the results are equal

    unit          of values, where they count weights of edges
    method        what a bound of the rest is after, in words
    nodes, edges  what is left, once `reduce` was called: [k] int64 ascending, and how many
    """

    nodes: np.ndarray
    edges: int
    unit: float | None = None
    method = "reductions"

    def __init__(
        self, sense: str, weights: np.ndarray | None, fits: Callable[[int, int], bool], most_bytes: float,
        compiled: bool,
    ) -> None:  # fmt: skip
        self.sense, self.weights, self.compiled = sense, weights, compiled
        self.fits, self.most_bytes = fits, most_bytes

    @abstractmethod
    def reduce(self, group: Group, graph: Graph, rounds: Rounds) -> None:
        """Apply the rules to the own rows of a graph, until too little comes of it. Ranks: all call."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What was done how often, for the log."""

    @abstractmethod
    def rest(self, group: Group, name: str) -> Graph:
        """What is left as a graph of its own on every rank, nodes in order. Ranks: all call."""

    def instance(self) -> dict[str, Any]:
        """What tools of the rest are told beside it (fields of Instance)."""
        return {}

    @abstractmethod
    def lift(self, solution_rest: np.ndarray) -> np.ndarray:
        """The solution of the graph that one of what is left stands for."""

    @abstractmethod
    def check(self, group: Group, graph: Graph) -> None:
        """Prove what was reduced, by code that did not do it. Ranks: all call. Raises LockstepError."""

    @abstractmethod
    def value(self, group: Group, graph: Graph, solution: np.ndarray) -> int:
        """What a solution of the graph is worth, in units. Ranks: all call."""

    @abstractmethod
    def proof(self, proof: Any) -> Any:
        """What proves a bound of the graph, from what proves that of the rest; None: nothing does."""

    def chosen(self) -> np.ndarray | None:
        """[k] int64, the nodes in the solution before a policy is asked; None: it begins anew."""
        return None

    # ---- what is left is too large: a policy chooses until the rest is not (app/solver/rows/peel.py) -------

    peels = False
    follows = False  # else the policy answers by itself, and that is made better on the rows

    @property
    def own(self) -> OwnRows:
        """This rank's rows of what is left."""
        raise NotImplementedError

    def marks(self) -> np.ndarray | None:
        """[k] int32 of the nodes left, as the problem's environment has them; None: a fresh state."""
        return None

    def size(self, totals: Any) -> tuple[int, int]:
        """Nodes and edges that a state has left, about, by its totals; never more than the state before."""
        raise NotImplementedError

    def take(self, group: Group, nodes: np.ndarray, rounds: Rounds) -> None:
        """Put nodes [k] left, a choice, into the solution; reduce what then is left. Ranks: all call.

        From then on `rest`, `instance`, `lift` are of that; `check` and `bound` stay those of the reductions
        before, as a choice proves nothing.
        """
        raise NotImplementedError

    def allowed(self, nodes: np.ndarray) -> np.ndarray:
        """[j] int64, what stands for nodes [k] left in a solution of the rest: themselves, as a rule."""
        return nodes

    def bound(self, group: Group, rounds: Rounds) -> "RowBound | None":
        """A bound of the graph by the rows of what reductions leave; None: none is known. Ranks: all call."""
        return None

    def improve(self, group: Group, graph: Graph, solution: np.ndarray, rounds: Rounds) -> np.ndarray:
        """A solution at least as good as one of the graph, by steps on its rows. Ranks: all call."""
        return solution

    def sweeps(self, group: Group, solution: np.ndarray, seed: int) -> CutSweeps | None:
        """A solution of the graph as one of what reductions leave, to be annealed there; None: that is not
        done. Ranks: all call.
        """
        return None

    def annealed(self, sweeps: CutSweeps) -> np.ndarray:
        """The solution of the graph that the present one of `sweeps` stands for. Ranks: all call."""
        raise NotImplementedError

    def regions(self, group: Group, solution: np.ndarray) -> Regions | None:
        """A solution of the graph as one of what reductions leave, of which regions may be searched again;
        None: that is not done. Ranks: all call.
        """
        return None

    def joined(self, regions: Regions) -> np.ndarray:
        """The solution of the graph that one of `regions` stands for."""
        raise NotImplementedError

    def alone(self, group: Group, rounds: Rounds) -> "Alone | None":
        """An answer where what is left is too large for one rank; None: there is none. Ranks: all call."""
        return None

    def _weight(self, chosen: np.ndarray) -> int:
        """That of the nodes that are chosen [n] bool."""
        return int(np.count_nonzero(chosen) if self.weights is None else self.weights[chosen].sum())


class RowBound(ABC):
    """A bound that rows have proved.

    value   on the objective, in units
    proof   for a certificate
    """

    value: int
    method: str
    proof: Any

    @abstractmethod
    def check(self, group: Group, graph: Graph) -> None:
        """Prove it, from the graph's rows. Ranks: all call. Raises LockstepError on all."""


class Alone(ABC):
    """An answer that reductions have on their own."""

    solution: np.ndarray
    bound: int
    source: str
    method: str
    proof: Any

    @abstractmethod
    def check(self, group: Group, graph: Graph) -> None:
        """Prove the bound. Ranks: all call. Raises LockstepError on all."""


def require(holds: bool, otherwise: str) -> None:
    """Raises LockstepError, a line, where something does not hold."""
    if not holds:
        raise LockstepError(f"reductions on rows: {otherwise}")
