"""The toolbox of minimum vertex cover and maximum independent set: each is the other's complement.

The core is what exact reductions leave of the graph, and its solutions are vertex covers for both problems.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from app.bounds.certificate import BadCertificate
from app.bounds.cover.bounds import CoverBounds
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set, union, without
from app.proofs.kinds import CoverProof
from app.reductions.cover import verify_compiled
from app.reductions.cover.reducer import CoverReducer
from app.reductions.cover.verify import verify_log
from app.search.core_bounds import CoreBounds
from app.search.cover.baselines import one_hop_rounds, one_hop_single, one_hop_work
from app.search.cover.search import HEAVIEST, CoverSearch
from app.search.cover.start import greedy_cover, without_redundant
from app.search.node_tools import NodeTools
from app.search.shared_tree import CoverTree, suits
from app.toolbox import Bounds, Instance, Peeler, Search, Tree

FEW = 8  # neighbours: with so few at some node reductions are tried whatever they take
LARGE = 1 << 20  # entries of a core in which the search takes long to make up for a worse start
START_WORK = 1e8  # additions of the one-hop formula one node at a time, at most: some tenths of a second
ONE_IN = 20  # of its nodes in a round of the one-hop formula: as good as 100, as fast as the greedy start
REDUCE_SECONDS = 6e-8  # of reductions that find nothing, for each node and entry


class CoverTools(NodeTools):
    """Vertex covers of one graph, or the independent sets that they leave out (where the problem maximises).

    Reductions app/reductions/cover/reducer.py, Search search.py, Bounds app/bounds/cover/bounds.py
    """

    peels = core_minimises = bounds_follow = True  # a SAT solver is asked once the best cover is near
    baseline_costs: ClassVar = {"max_degree": 1e-7, "min_degree": 1.5e-7, "one_hop": 4.5e-7}

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        graph = self.graph
        self.independent = problem.sense == "maximise"
        free = np.flatnonzero(self.weightless())
        self.total = (graph.n if self.weights is None else int(self.weights.sum())) + instance.granted
        inside, outside = instance.inside, instance.outside
        if self.independent:
            inside, outside = outside, inside
        # A node of weight 0 costs covers nothing. Reductions want weights above 0: 1, taken off later.
        free = without(free, outside)
        self.inside, self.outside = union(inside, free).astype(np.int64), outside  # of the cover
        self.price, free = None if self.weights is None else np.maximum(self.weights, 1), len(free)
        self.beside = -free if self.independent else instance.granted - free  # of the reducer's offset
        self.reducer = CoverReducer(graph, self.price, self.inside, outside, instance.compiled)
        self.settled = False  # whether rules are no longer to look at the core
        self.shares = False  # whether all ranks search the tree of the core together
        self._take_kernel()

    def _take_kernel(self) -> None:
        """The core as the reducer leaves it."""
        self.core, self.names, self.core_weights = self.reducer.kernel()
        self.offset = int(self.reducer.offset) + self.beside

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def hopeless_seconds(self) -> float:
        """Rules ask for nodes with few neighbours, or for neighbours of a node that share all but a few."""
        graph = self.graph
        if not graph.n or graph.degrees().min() <= FEW:
            return 0.0
        return REDUCE_SECONDS * (graph.n + len(graph.indices))

    @property
    def reduction_steps(self) -> int:
        """Of the reductions so far."""
        return self.reducer.steps

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Apply exact reductions, all or as many as there is time for; without nodes nothing is said."""
        self.reducer.reduce(look, most)
        self._take_kernel()
        self.settled = True
        used = ", ".join(f"{name} {count}" for name, count in self.reducer.counts.items() if count)
        if not self.graph.n:
            return ""
        return (
            f"reduced to {self.core.n} of {self.graph.n} nodes, {self.core.edges} of {self.graph.edges} edges"
            f" ({used or 'no rule applies'})"
        )

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] bool from a cover of the core."""
        in_cover = self.reducer.lift(core_solution)
        return ~in_cover if self.independent else in_cover

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A cover of the core that agrees with a solution where the core has its nodes."""
        in_cover = ~solution if self.independent else solution
        known = self.names < self.graph.n
        mask = np.zeros(self.core.n, dtype=bool)
        mask[known] = in_cover[self.names[known]]
        return _repaired(self.core, mask)

    def value_of_core(self, value: int) -> int:
        """The instance's value for the value (bound) of a cover of the core."""
        cover = self.offset + value
        return self.total - cover if self.independent else cover

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return (self.total - value if self.independent else value) - self.offset

    # ---- tools ---------------------------------------------------------------------------------------------

    def prove(self, proof: CoverProof) -> int:
        """Check the reductions step by step, and the witness of the kernel's bound."""
        fixed = self.inside, self.outside
        proved = verify_log(self.graph, self.price, proof.log, *fixed, self.instance.compiled)
        bound = proof.bound_with(proved.weights)
        bound.check(proved.kernel)
        if bound.claims:
            raise BadCertificate(f"{bound.method}: claims are no proof")
        cover = proved.offset + self.beside + bound.lower
        return self.total - cover if self.independent else cover

    def start(self) -> np.ndarray:
        """Greedy by degree, of large cores without weights also by the one-hop formula, where there is time;
        none is redundant.
        """
        core, compiled = self.core, self.instance.compiled
        found = greedy_cover(core, self.core_weights, compiled, self.look)
        if self.core_weights is not None or len(core.indices) < LARGE or self.look():
            return found
        rounds = one_hop_work(core) > START_WORK
        other = one_hop_rounds(core, compiled, ONE_IN) if rounds else one_hop_single(core, compiled)
        other = without_redundant(core, other, compiled=compiled)
        return min(found, other, key=np.count_nonzero)

    def peeler(self) -> Peeler:
        """Reduce and peel on the core."""
        return CoverPeeler(
            self.core, self.core_weights, self.independent, self.instance.compiled, self.settled
        )

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Local search; none of cores without edges or with weights that kernels cannot hold."""
        heaviest = 0 if self.core_weights is None else int(self.core_weights.max(initial=0))
        if not self.core.edges or heaviest > HEAVIEST:
            return None
        return CoverSearch(self.core, seed, start, self.core_weights, compiled=self.instance.compiled)

    def tree(self, rank: int, ranks: int) -> Tree | None:
        """The exact search of a dense core, for all ranks together; bounds then do without their own."""
        self.shares = self.instance.compiled and suits(self.core)
        if not self.shares:
            return None
        reduced = "reductions" if self.core.n < self.graph.n else ""
        return CoverTree(self.core, self.core_weights, rank, ranks, reduced)

    def bounds(self) -> Bounds:
        """Lower bounds on covers of the core."""
        return KernelBounds(self)


class KernelBounds(CoreBounds):
    """Lower bounds on the covers of what reductions leave."""

    @property
    def check_seconds(self) -> float:
        """The reductions are replayed; the witness is looked up."""
        graph = self.tools.graph
        size = graph.n + len(graph.indices)
        witness = self.inner.check_seconds
        if verify_compiled.available(graph):
            return witness + 8e-8 * size + 2e-7 * self.log_words
        met = min(size, self.log_words * (size // max(graph.n, 1)))
        return witness + 1e-7 * graph.n + 1.5e-8 * size + 5e-7 * met + 2e-6 * self.log_words

    def __init__(self, tools: CoverTools) -> None:
        large = len(tools.core.indices) >= LARGE
        inner = CoverBounds(
            tools.core, tools.core_weights, tools.instance.compiled,
            tools.reducer.partners() if large and tools.settled else None, not tools.shares,
            tools.instance.most_bytes,
        )  # fmt: skip
        super().__init__(inner, "lower")
        self.tools, self.log_words = tools, len(tools.reducer.log())

    @property
    def method(self) -> str:
        """How the bound was found, reductions included."""
        if not self.tools.core.n:
            return "reductions"
        reduced = self.tools.core.n < self.tools.graph.n
        return f"reductions, {self.inner.method}" if reduced and self.inner.method else self.inner.method

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so many seconds; a cover lets each component close by itself."""
        return self.inner.improve(seconds, best, solution)

    def proof(self) -> CoverProof:
        """The reductions, and the witness of the kernel's bound."""
        return CoverProof(self.tools.reducer.log(), self.inner.witnessed(), self.inner.checked)


class CoverPeeler(Peeler):
    """Nodes put into the cover (or the independent set) one part at a time, with reductions in between."""

    def __init__(
        self, core: Graph, weights: np.ndarray | None, independent: bool, compiled: bool, settled: bool
    ) -> None:
        """settled   no reduction applies to the core"""
        self.reducer = CoverReducer(core, weights, compiled=compiled, settled=settled)
        self.independent, self.compiled = independent, compiled
        self.reducer.reduce()

    @property
    def rest(self) -> Graph | None:
        """What is left, or None."""
        if not self.reducer.edges:
            return None
        self._rest, self._names, _ = self.reducer.kernel()
        return self._rest

    def take(self, nodes: np.ndarray) -> None:
        """Cover by these nodes; of independent sets: by all their neighbours."""
        if self.independent:
            rest = self._rest
            rows = [rest.indices[rest.indptr[v] : rest.indptr[v + 1]] for v in nodes.tolist()]
            nodes = sorted_set(np.concatenate(rows))
        self.reducer.take(self._names[nodes])
        self.reducer.reduce()

    def solution(self) -> np.ndarray:
        """The cover of the core; what is left to decide is covered greedily."""
        rest, _, weights = self.reducer.kernel()
        return self.reducer.lift(greedy_cover(rest, weights, self.compiled))


def _repaired(graph: Graph, in_cover: np.ndarray) -> np.ndarray:
    """A cover with more nodes where edges were left: the end of larger degree of each, in order."""
    rows = graph.row_of()
    bare = np.flatnonzero(~(in_cover[rows] | in_cover[graph.indices]) & (rows < graph.indices))
    degree = graph.degrees()
    for u, v in zip(rows[bare].tolist(), graph.indices[bare].tolist()):
        if not (in_cover[u] or in_cover[v]):
            in_cover[u if degree[u] >= degree[v] else v] = True
    return in_cover
