"""KernelTools: toolboxes whose core is what a reducer with a log leaves; those of sets of nodes; bounds."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from app.errors import CaseError
from app.graphs.graph import Graph
from app.reductions.replay import CHECK_SECONDS, WORD_SECONDS
from app.search.core_bounds import LoggedBounds
from app.search.node_tools import NodeTools
from app.toolbox import Baseline, Bounds, Instance, Toolbox

HEAVIEST = 1 << 60  # of all weights together
Check = Callable[[Any, np.ndarray], tuple[Any, int]]  # of a log: what it leaves, what it takes


class KernelTools(Toolbox):
    """What is asked as a graph of the problem's kind, and what reductions leave of it.

    asked    has n and indices                       reducer   that works on it, or None
    kernel   what the reducer leaves of it; None: it is the core itself
    offset   what is in each solution beside what is asked
    _joins   whether a log, an empty one, too, leaves no more than one part of what is asked
    """

    bounds_follow = True
    asked: Any
    offset: int = 0
    reducer: Any = None
    kernel: Any = None
    _joins = False

    @property
    def inner(self) -> Any:
        """The core."""
        return self.asked if self.kernel is None else self.kernel.core

    @property
    def entries(self) -> int:
        """Nodes and entries of what is asked."""
        return self.asked.n + len(self.asked.indices)

    @property
    def reduction_steps(self) -> int:
        """What the reductions have looked at so far."""
        return 0 if self.reducer is None else self.reducer.steps

    def _reduce(self, reducer: Any, look: Callable[[], Any], most: int) -> None:
        """Apply exact reductions, all or as many as there is time for."""
        self.reducer = reducer
        reducer.reduce(look, most)
        self.kernel = reducer.kernel()

    def _reduced(self, edges: int, more: str = "") -> str:
        """What they leave, and more of it; for the log."""
        graph = self.graph
        left = f"reduced to {self.inner.n} of {graph.n} nodes, {edges} of {graph.edges} edges{more}"
        return f"{left} ({self.reducer.used})"

    def value_of_core(self, value: int) -> int:
        """The instance's value for the value (bound) of a core solution."""
        return value + self.offset + (0 if self.kernel is None else self.kernel.paid)

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return value - self.value_of_core(0)

    def start(self) -> np.ndarray:
        """A greedy solution, which is made once."""
        return self._start.copy()

    @property
    @abstractmethod
    def _start(self) -> np.ndarray: ...

    def _proved(self, proof: Any, verify_log: Check) -> int:
        """The bound that a proof shows, its reductions entry by entry, and the witness of what they leave."""
        left, paid = verify_log(self.asked, proof.log) if self._joins or len(proof.log) else (self.asked, 0)
        proof.bound.check(left)
        return self.offset + paid + proof.bound.lower


class KernelSetTools(KernelTools, NodeTools):
    """Those of sets of nodes of one graph, of least total weight where nodes have weights.

    Nodes inside, and those of weight 0, are in the set from the start; nodes outside weigh more than all
    others together.

    names   [k] int64, the nodes of what is asked by their numbers in the graph
    """

    usual_steps = 20_000

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        self.inside, self.outside = self.sides()

    def _ask(self, whole: Any) -> None:
        """Of a whole graph what the nodes that are not taken at the start leave."""
        every = np.arange(self.graph.n)
        self.asked, self.names = whole.without(self.inside) if self.inside.any() else (whole, every)
        self.offset = self.value(self.inside)

    def _prices(self) -> np.ndarray:
        """[n] int64, weights above 0; a node outside weighs more than all others together."""
        graph = self.graph
        weights = np.ones(graph.n, dtype=np.int64) if self.weights is None else np.maximum(self.weights, 1)
        if self.outside.any():
            dear = int(weights[~self.outside].sum()) + 1
            if dear * (np.count_nonzero(self.outside) + 1) > HEAVIEST:
                right = "smaller weights, or fewer nodes, would be right"
                raise CaseError(f"{graph.name}: weights are too large for nodes outside; {right}")
            weights = np.where(self.outside, dear, weights)
        return weights

    @property
    def core(self) -> Graph:
        """Which nodes of what is left are joined: see `inner`."""
        return self.inner.pattern(self.graph.name)

    @property
    def shown(self) -> Graph:
        """The core as a graph that the policy sees: what single edges and nodes do not say has nodes of its
        own, n, n + 1, ... (`simple` of the core)."""
        return self.inner.simple(self.graph.name)[0]

    def told(self, solution: np.ndarray) -> np.ndarray:
        """[k] bool, of a solution of `shown`, a node of the core in the place of such a node."""
        chosen, ends = solution[: self.inner.n].copy(), self.inner.simple(self.graph.name)[1]
        chosen[ends[solution[self.inner.n :]]] = True
        return chosen

    @property
    def core_outside(self) -> np.ndarray:
        """[k] bool, nodes of the core that are outside."""
        return self.outside[self.names if self.kernel is None else self.names[self.kernel.nodes]]

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] bool, with the nodes that are in the set beside the core."""
        own = core_solution if self.kernel is None else self.reducer.lift(self.kernel, core_solution)
        return self._with_inside(own)

    def _with_inside(self, own: np.ndarray) -> np.ndarray:
        """[n] bool, the set that one of what was asked stands for."""
        solution = self.inside.copy()
        solution[self.names[own]] = True
        return solution

    def _followed(self, solution: np.ndarray) -> np.ndarray:
        """[k] bool, nodes of the core that follow a set [n] bool, without those outside."""
        own = (solution & ~self.outside)[self.names]
        return own if self.kernel is None else self.reducer.moved(self.kernel, own)

    def _by_rules(self, rules: dict[str, Callable[..., tuple[np.ndarray, str]]]) -> dict[str, Baseline]:
        """Plain heuristics of what is asked, on the whole graph; none where nodes are fixed."""
        if len(self.instance.inside) or len(self.instance.outside):
            return {}
        return {name: partial(self._whole, rule) for name, rule in rules.items()}

    def _whole(self, rule: Callable[..., tuple[np.ndarray, str]]) -> tuple[np.ndarray, str]:
        own, name = rule(self.asked, self.instance.compiled)
        return self._with_inside(own), name


class ReducedBounds(LoggedBounds):
    """Bounds of a kernel, with the log."""

    def __init__(self, tools: KernelTools, inner: Bounds, decided: str, proof: type, bound: type) -> None:
        """proof, bound   of the problem: what is made of the log and of what the kernel's bounds prove"""
        super().__init__(inner, tools.reducer, decided)
        self._kinds = proof, bound
        # s, of a check, about; of an empty log it is none
        self._replay = CHECK_SECONDS * tools.entries + WORD_SECONDS * len(self.log) if len(self.log) else 0.0

    @property
    def least_seconds(self) -> float:
        """An estimate of the shortest call of `improve`."""
        return 0.0 if self.decided else self.inner.least_seconds

    @property
    def check_seconds(self) -> float:
        """The reductions are replayed."""
        return self._replay + (0.0 if self.decided else self.inner.check_seconds)

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long."""
        return False if self.decided else self.inner.improve(seconds, best, solution)

    def optimum(self) -> np.ndarray | None:
        """A solution of the core that is as good as the bound."""
        return None if self.decided else self.inner.optimum()

    def pieces(self) -> np.ndarray | None:
        """A better solution of the core than the best known."""
        return None if self.decided else self.inner.pieces()

    def proof(self) -> Any:
        """The log of the reductions, and the witness of the core's bound."""
        proof, bound = self._kinds
        return proof(self.log, bound(0, self.method) if self.decided else self.inner.proof())
