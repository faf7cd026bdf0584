"""The toolbox of minimum feedback vertex set: reductions, a greedy start, a search, bounds."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from app.bounds.feasible import node_of_cycle
from app.bounds.fvs.bounds import FeedbackBounds
from app.bounds.fvs.witness import FeedbackBound
from app.errors import FixedNodesError
from app.graphs.multigraph import multigraph_of
from app.proofs.kinds import FeedbackProof
from app.reductions.fvs.reducer import FeedbackReducer
from app.reductions.fvs.verify import verify_log
from app.search.fvs.baselines import FEEDBACK_BASELINES, LARGEST, greedy_order, pruned
from app.search.fvs.search import FeedbackSearch
from app.search.kernel_tools import KernelSetTools, ReducedBounds
from app.toolbox import Baseline, Bounds, Instance, Search

SEARCH_SECONDS = 2.2e-7  # of making a search, for each node and entry of the core, about
REDUCE_SECONDS = 4e-6  # for each node and entry, about
REDUCE_BYTES = 250  # the same of memory


class FeedbackTools(KernelSetTools):
    """Feedback vertex sets of one graph. The core is the multigraph of what reductions leave."""

    baseline_costs: ClassVar = {"core_hd": 1.6e-7}

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        if self.outside.any() and (node := node_of_cycle(self.graph, ~self.outside)) is not None:
            words = "a cycle through {} is to be outside the feedback vertex set: nothing would break it"
            raise FixedNodesError(words, node)
        self._ask(multigraph_of(self.graph, self._prices()))

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def reduce_seconds(self) -> float:
        """An estimate of what `reduce` takes."""
        return REDUCE_SECONDS * self.entries

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Apply exact reductions, all or as many as there is time for, where memory is enough for them."""
        if REDUCE_BYTES * self.entries > self.instance.most_bytes:
            return ""
        self._reduce(FeedbackReducer(self.asked), look, most)
        return self._reduced(int(self.inner.edges()[2].sum()))

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A core solution that follows a set [n] bool; nodes that cycles need join it, others leave."""
        own = self._followed(solution)
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
        kept = self.core_outside
        if kept[order].any():
            others = ~kept
            others[order] = False
            order = np.concatenate([order[~kept[order]], self._by_weight(others)])
        return pruned(self.inner, order, self.instance.compiled)

    # ---- tools ---------------------------------------------------------------------------------------------

    @cached_property
    def _start(self) -> np.ndarray:
        return self._pruned(greedy_order(self.inner, self.instance.compiled))

    @property
    def search_seconds(self) -> float:
        """An estimate of what making a search takes."""
        return SEARCH_SECONDS * (self.inner.n + len(self.inner.indices))

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Annealing; none where no cycle is left."""
        if not self.inner.cycles(self.instance.compiled):
            return None
        return FeedbackSearch(self.inner, start, seed, self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Degrees and cycles, inequalities of subgraphs, cases."""
        compiled = self.instance.compiled
        decided = "" if self.inner.cycles(compiled) else "no cycle"
        return ReducedBounds(
            self, FeedbackBounds(self.inner, compiled), decided, FeedbackProof, FeedbackBound
        )

    def prove(self, proof: FeedbackProof) -> int:
        """Check the reductions entry by entry, and the witness of what they leave."""
        return self._proved(proof, verify_log)

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name, on the whole graph; none where nodes are fixed."""
        rules = {name: rule for name, rule in FEEDBACK_BASELINES.items() if name not in self._left_out()}
        return self._by_rules(rules)

    @property
    def left_out(self) -> str:
        """Baselines that the instance is too large for."""
        return ", ".join(self._left_out())

    def _left_out(self) -> list[str]:
        return ["local_ratio"] if self.graph.n + len(self.graph.indices) > LARGEST else []
