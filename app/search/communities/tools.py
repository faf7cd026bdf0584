"""The toolbox of communities: joins, a quick start, a local search, bounds."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from app.bounds.communities.bounds import CommunityBounds
from app.bounds.communities.witness import CommunityProof
from app.graphs.contracted import numbered
from app.graphs.graph import Graph
from app.graphs.quality import quality_of
from app.search.communities.baselines import COMMUNITY_BASELINES, LOUVAIN, MOST_MERGED, by_moves
from app.search.communities.kernel import CommunityKernel
from app.search.communities.search import CommunitySearch
from app.search.core_bounds import InnerBounds
from app.search.label_tools import LabelTools, in_order
from app.toolbox import Baseline, Bounds, Instance, Search

STEPS = 100_000  # of a search, or this many for each node:
STEPS_PER_NODE = 20
CHECK_SECONDS = 1.2e-7  # of the check of a round of them, and of what is left, likewise
ROUND_SECONDS = 2.5e-7  # of the reductions, for each node and entry, about


class CommunityTools(LabelTools):
    """Partitions of one graph into communities, worth as much as may be."""

    words, sense = "partition", "maximise"
    every = "all nodes are in communities, none inside or outside"
    baseline_costs: ClassVar = {"louvain": 4e-7}
    start_share = 0.9

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        self.asked = quality_of(self.graph, instance.asked.null, instance.asked.resolution)
        self.unit = self.asked.unit
        self.weights = self.asked.quality.weights if instance.asked.null == "none" else None
        self.kernel = CommunityKernel(self.asked.quality, instance.compiled)
        self._begun: np.ndarray | None = None  # what Louvain's method makes, where it came to its end

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def usual_steps(self) -> int:
        """Of a search where a case sets no limit."""
        return max(STEPS, STEPS_PER_NODE * self.kernel.core.n)

    @property
    def reduce_seconds(self) -> float:
        """An estimate of what a round of `reduce` takes."""
        return ROUND_SECONDS * self._size

    @property
    def core(self) -> Graph:
        """What is left to decide, without weights: see `kernel.core`."""
        core = self.kernel.core
        edges = len(core.indices) // 2
        return Graph(self.graph.name, core.n, 0, core.n, core.indptr, core.indices, edges)

    @property
    def reduction_steps(self) -> int:
        """Rounds of joins."""
        return self.kernel.steps

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Join what is together in all best communities."""
        kernel = self.kernel
        kernel.reduce(look, most)
        return (
            f"reduced to {kernel.core.n} of {self.graph.n} nodes, {len(kernel.core.indices) // 2} of"
            f" {self.graph.edges} edges (joined {self.graph.n - kernel.joined_core.n},"
            f" decided {kernel.joined_core.n - kernel.core.n}"
            f"{'' if self.asked.exact else '; weights are rounded'})"
        )

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] int64, the communities that those of the core stand for, in the order of nodes."""
        return numbered(self.kernel.lift(core_solution)).astype(np.int64)

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """Communities of the core that follow those of the graph."""
        return in_order(self.kernel.restrict(solution))

    def value_of_core(self, value: int) -> int:
        """What communities of the graph are worth, for those (a bound on those) of the core."""
        return value + self.kernel.own + self.asked.constant

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return value - self.kernel.own - self.asked.constant

    def value(self, solution: np.ndarray) -> int:
        """In whole numbers, see app/graphs/quality.py."""
        return self.asked.quality.value(solution) + self.asked.constant

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """Louvain's method, as far as it comes."""
        begun, whole = by_moves(self.kernel.core, self.instance.compiled, self.look)
        self._begun = begun if whole else None
        return begun.copy()

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Regions clustered anew; none where nothing is left."""
        core = self.kernel.core
        return CommunitySearch(core, start, seed, self.instance.compiled) if core.n else None

    def bounds(self) -> Bounds | None:
        """Star inequalities and semidefinite matrices."""
        return KernelBounds(self)

    def prove(self, proof: CommunityProof) -> int:
        """Check the joins round by round, and the witness of each part."""
        return proof.proved(self.asked.quality) + self.asked.constant

    @property
    def left_out(self) -> str:
        """Merges, on large graphs."""
        return "" if len(self.graph.indices) <= MOST_MERGED else "greedy"

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name."""
        given = self.instance
        asked = {"compiled": given.compiled, "null": given.asked.null, "resolution": given.asked.resolution}
        named = {name: rule for name, rule in COMMUNITY_BASELINES.items() if name != self.left_out}
        rules = {name: partial(rule, self.graph, **asked) for name, rule in named.items()}
        if self._begun is not None and self.kernel.core is self.asked.quality:  # it is there
            rules["louvain"] = lambda: (self.lift(self._begun), LOUVAIN)
        return rules

    def seconds_of(self, baseline: str) -> float:
        """That of the start is known where no node was joined before."""
        known = baseline == "louvain" and self._begun is not None and self.kernel.core is self.asked.quality
        return 0.0 if known else super().seconds_of(baseline)


class KernelBounds(InnerBounds):
    """Upper bounds on the core, and how its nodes are called in proofs."""

    def __init__(self, tools: CommunityTools) -> None:
        self.kernel = tools.kernel
        given, self.graph = tools.instance, tools.graph
        super().__init__(CommunityBounds(self.kernel.core, given.most_bytes, given.compiled))

    @property
    def method(self) -> str:
        """How it was found."""
        return "reductions" if not self.kernel.core.n else self.inner.method

    @property
    def check_seconds(self) -> float:
        """An estimate of what the check of the joins takes, and of the pairs that are left."""
        graph = self.graph
        return CHECK_SECONDS * (len(self.kernel.rounds) + 1) * (graph.n + len(graph.indices))

    def proof(self) -> CommunityProof:
        """The joins, and the witness of each part that was worked on."""
        kernel = self.kernel
        ptr = np.cumsum([0, *map(len, kernel.rounds)]).astype(np.int64)
        joined = np.concatenate([np.zeros((0, 2), dtype=np.int64), *kernel.rounds])
        parts = tuple(replace(part, nodes=kernel.nodes[part.nodes]) for part in self.inner.parts)
        return CommunityProof(ptr, joined, parts, True)
