"""The toolbox of minimum feedback vertex set: reductions, a greedy start, a search, bounds."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from app.bounds.feasible import node_of_cycle
from app.bounds.fvs.bounds import FeedbackBounds
from app.bounds.fvs.witness import FeedbackBound
from app.errors import CaseError, FixedNodesError
from app.graphs.graph import Graph
from app.graphs.multigraph import Multigraph, multigraph_of
from app.proofs.kinds import FeedbackProof
from app.reductions.fvs.reducer import FeedbackReducer
from app.reductions.fvs.verify import verify_log
from app.reductions.replay import CHECK_SECONDS, WORD_SECONDS
from app.reductions.woken import Kernel
from app.search.core_bounds import ReducedBounds
from app.search.fvs.baselines import FEEDBACK_BASELINES, LARGEST, greedy_order, pruned
from app.search.fvs.search import FeedbackSearch
from app.search.node_tools import NodeTools
from app.toolbox import Baseline, Bounds, Instance, Search

REDUCE_SECONDS = 4e-6  # for each node and entry, about
REDUCE_BYTES = 250  # the same of memory
HEAVIEST = 1 << 60  # of all weights together


class FeedbackTools(NodeTools):
    """Feedback vertex sets of one graph, of least total weight where nodes have weights.

    The core is the multigraph of what reductions leave. Nodes inside, and those of weight 0, are in the set
    from the start; nodes outside weigh more than all others together.

    asked    what the nodes that are not taken at the start leave      names   [k] int64, its nodes in the
             graph
    offset   what those weigh that are
    """

    bounds_follow = True
    usual_steps = 20_000

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        graph = self.graph
        free = self.weightless()
        self.inside, self.outside = (np.zeros(graph.n, dtype=bool) for _ in range(2))
        self.inside[instance.inside] = self.outside[instance.outside] = True
        if self.outside.any() and (node := node_of_cycle(graph, ~self.outside)) is not None:
            words = "a cycle through {} is to be outside the feedback vertex set: nothing would break it"
            raise FixedNodesError(words, node)
        self.inside |= free & ~self.outside
        whole = multigraph_of(graph, self._prices())
        self.asked, self.names = (
            whole.without(self.inside) if self.inside.any() else (whole, np.arange(graph.n))
        )
        self.offset = self.value(self.inside)
        self.reducer: FeedbackReducer | None = None
        self.kernel: Kernel | None = None  # None: the core is what was asked

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
    def inner(self) -> Multigraph:
        """The core."""
        return self.asked if self.kernel is None else self.kernel.core

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def core(self) -> Graph:
        """Which nodes of what is left are joined: see `inner`."""
        return self.inner.pattern(self.graph.name)

    @property
    def shown(self) -> Graph:
        """The core, its double edges led through nodes of their own."""
        return self.inner.simple(self.graph.name)[0]

    def told(self, solution: np.ndarray) -> np.ndarray:
        """[k] bool, an end of a double edge in the place of such a node."""
        chosen, ends = solution[: self.inner.n].copy(), self.inner.simple(self.graph.name)[1]
        chosen[ends[solution[self.inner.n :]]] = True
        return chosen

    @property
    def reduce_seconds(self) -> float:
        """An estimate of what `reduce` takes."""
        return REDUCE_SECONDS * (self.asked.n + len(self.asked.indices))

    @property
    def reduction_steps(self) -> int:
        """Nodes that the reductions have looked at so far."""
        return 0 if self.reducer is None else self.reducer.steps

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Apply exact reductions, all or as many as there is time for, where memory is enough for them."""
        asked = self.asked
        if REDUCE_BYTES * (asked.n + len(asked.indices)) > self.instance.most_bytes:
            return ""
        self.reducer = FeedbackReducer(asked)
        self.reducer.reduce(look, most)
        self.kernel = self.reducer.kernel()
        core = self.inner
        edges, before = int(core.edges()[2].sum()), self.graph.edges
        return f"reduced to {core.n} of {self.graph.n} nodes, {edges} of {before} edges ({self.reducer.used})"

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] bool, with the nodes that are in the set beside the core."""
        own = core_solution if self.kernel is None else self.reducer.lift(self.kernel, core_solution)
        solution = self.inside.copy()
        solution[self.names[own]] = True
        return solution

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A core solution that follows a set [n] bool; nodes that cycles need join it, others leave."""
        own = (solution & ~self.outside)[self.names]
        if self.kernel is not None:
            own = self.reducer.moved(self.kernel, own)
        left, nodes = self.inner.without(own)
        more = nodes[greedy_order(left, self.instance.compiled)]
        return self._pruned(np.concatenate([more, self._by_weight(own)]))

    def _by_weight(self, nodes: np.ndarray) -> np.ndarray:
        """The nodes [k] bool of the core, light ones first."""
        found = np.flatnonzero(nodes)
        return found[np.argsort(self.inner.weights[found], kind="stable")]

    def _pruned(self, order: np.ndarray) -> np.ndarray:
        """[k] bool, a core solution named in some order without those that no cycle needs, the last first; a
        node outside, which a greedy set may have for its many edges, gives way to others.
        """
        kept = self.outside[self.names if self.kernel is None else self.names[self.kernel.nodes]]
        if kept[order].any():
            others = ~kept
            others[order] = False
            order = np.concatenate([order[~kept[order]], self._by_weight(others)])
        return pruned(self.inner, order, self.instance.compiled)

    def value_of_core(self, value: int) -> int:
        """The instance's value for the value (bound) of a core solution."""
        return value + self.offset + (0 if self.kernel is None else self.kernel.paid)

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return value - self.value_of_core(0)

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """The greedy set."""
        return self._start.copy()

    @cached_property
    def _start(self) -> np.ndarray:
        return self._pruned(greedy_order(self.inner, self.instance.compiled))

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Annealing; none where no cycle is left."""
        if not self.inner.cycles():
            return None
        return FeedbackSearch(self.inner, start, seed, self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Degrees and cycles, inequalities of subgraphs, cases."""
        return KernelBounds(self)

    def prove(self, proof: FeedbackProof) -> int:
        """Check the reductions entry by entry, and the witness of what they leave."""
        left, paid = verify_log(self.asked, proof.log)
        proof.bound.check(left)
        return self.offset + paid + proof.bound.lower

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name, on the whole graph; none where nodes are fixed."""
        if len(self.instance.inside) or len(self.instance.outside):
            return {}
        rules = {name: rule for name, rule in FEEDBACK_BASELINES.items() if name not in self._left_out()}
        return {name: partial(self._whole, rule) for name, rule in rules.items()}

    @property
    def left_out(self) -> str:
        """Baselines that the instance is too large for."""
        return ", ".join(self._left_out())

    def _left_out(self) -> list[str]:
        return ["local_ratio"] if self.graph.n + len(self.graph.indices) > LARGEST else []

    def _whole(self, rule: Callable[..., tuple[np.ndarray, str]]) -> tuple[np.ndarray, str]:
        """What a rule finds, with the nodes that weigh nothing."""
        own, name = rule(self.asked, self.instance.compiled)
        solution = self.inside.copy()
        solution[self.names[own]] = True
        return solution, name


class KernelBounds(ReducedBounds):
    """Lower bounds on the sets of what reductions leave, with the reductions that prove them of the
    graph's.
    """

    def __init__(self, tools: FeedbackTools) -> None:
        log = [] if tools.reducer is None else tools.reducer.log
        replay = CHECK_SECONDS * (tools.asked.n + len(tools.asked.indices)) + WORD_SECONDS * len(log)
        decided = not tools.inner.cycles()
        super().__init__(FeedbackBounds(tools.inner), log, decided, "no cycle", replay)

    def proof(self) -> FeedbackProof:
        """The log of the reductions, and the witness of the core's bound."""
        bound = FeedbackBound(0, self.method, ()) if self.decided else self.inner.proof()
        return FeedbackProof(self.log, bound)
