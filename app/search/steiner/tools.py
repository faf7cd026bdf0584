"""The toolbox of Steiner trees: reductions, a quick start, a search, bounds."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from app.bounds.feasible import fault_of_tree
from app.bounds.steiner.bounds import SteinerBounds
from app.bounds.steiner.witness import SteinerBound
from app.errors import CaseError
from app.graphs.graph import Graph
from app.graphs.keys import union
from app.graphs.steiner import canonical_tree, rooted
from app.proofs.kinds import SteinerProof
from app.reductions.steiner.reducer import SteinerReducer, Untouched
from app.reductions.steiner.verify import verify_log
from app.search.kernel_tools import KernelTools, ReducedBounds
from app.search.steiner.baselines import STEINER_BASELINES, fewest_edges, grown, joined, nearly_joined
from app.search.steiner.search import SteinerSearch
from app.toolbox import Baseline, Bounds, Instance, Search

STEPS = 10_000_000  # of a search, or so many for each entry:
STEPS_PER_ENTRY = 100
GROWN_SECONDS, GROWN_SHARE = 3e-7, 0.8  # of the start, for each node and entry, about; of a time limit
NEARLY_SECONDS = 1.8e-7  # the same of a tree by ways that are nearly shortest
SEARCH_SECONDS = 2e-7  # of making a search, for each node and entry of the core, about
REDUCE_SECONDS = 2e-5  # for each node and entry, about


class SteinerTools(KernelTools):
    """Trees of one graph that hold all terminals, as short as may be.

    A solution is [n] int64, the parents of a tree (app/graphs/steiner.py); of the core as well.
    """

    words, sense, _joins = "tree", "minimise", True
    baseline_costs: ClassVar = {"shortest_paths": 2.7e-7, "distance_network": 3e-7}

    def __init__(self, instance: Instance, problem: Any) -> None:
        self._refuse_fixed(instance, problem)
        self.instance, self.problem, self.graph = instance, problem, instance.graph
        self.terminals = instance.beside.terminals
        (self.asked, self.unit), near = rooted(self.graph, self.terminals)
        self.weights = self.asked.lengths
        most = GROWN_SHARE * instance.seconds
        self.unready = GROWN_SECONDS * self.entries > most
        self._hurried = 0 < most < NEARLY_SECONDS * self.entries  # a replay is told so by its looks
        if near.min(initial=0) < 0:
            self.reducer = Untouched(self.asked, near)
            self.kernel = self.reducer.kernel()

    @staticmethod
    def _refuse_fixed(instance: Instance, problem: Any) -> None:
        if len(instance.inside) or len(instance.outside):
            right = "terminals are inside: leave search.inside and search.outside out"
            raise CaseError(f"{problem.name}: {right}")

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def usual_steps(self) -> int:
        """Of a search where a case sets no limit."""
        return max(STEPS, STEPS_PER_ENTRY * len(self.inner.indices))

    @property
    def core(self) -> Graph:
        """What is left to decide, without lengths: see `inner`."""
        core = self.inner
        return Graph(self.graph.name, core.n, 0, core.n, core.indptr, core.indices, core.edges)

    @property
    def reduce_seconds(self) -> float:
        """An estimate of what `reduce` takes."""
        return REDUCE_SECONDS * self.entries

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Leave out what a shortest tree does without, and take what it has."""
        self._reduce(SteinerReducer(self.asked, self.instance.compiled), look, most)
        return self._said()

    def _said(self) -> str:
        """What is left, for the log."""
        core = self.inner
        return self._reduced(core.edges, f", {len(core.terminals)} of {len(self.terminals)} terminals")

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] int64, the tree that one of the core stands for."""
        if self.kernel is None:
            return canonical_tree(core_solution)
        return self.reducer.lift(self.kernel, core_solution)

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A tree of the core that follows one of the graph: shortest paths join its nodes."""
        nodes = np.flatnonzero(solution >= 0)
        if self.kernel is not None:
            nodes = self.reducer.places(self.kernel, nodes)
        if not self.inner.n:
            return np.zeros(0, dtype=np.int64)
        return joined(self.inner, union(nodes, self.inner.terminals), self.instance.compiled)

    def as_solution(self, numbers: np.ndarray) -> np.ndarray:
        """Parents as they are."""
        return numbers

    def value(self, solution: np.ndarray) -> int:
        """The length of a tree, in units."""
        return self.asked.length(solution)

    def fault(self, solution: np.ndarray) -> str | None:
        """What makes it no tree of the graph that holds all terminals."""
        fault = fault_of_tree(self.graph, solution, self.terminals)
        return None if fault is None else f"the {self.words} {fault}"

    # ---- tools ---------------------------------------------------------------------------------------------

    @cached_property
    def _start(self) -> np.ndarray:
        rule = grown
        if self.unready:
            rule = fewest_edges if self._hurried or self.look() else nearly_joined
        return rule(self.inner, self.instance.compiled) if self.inner.n else np.zeros(0, dtype=np.int64)

    @property
    def search_seconds(self) -> float:
        """An estimate of what making a search takes."""
        return SEARCH_SECONDS * (self.inner.n + len(self.inner.indices))

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Perturbed and combined trees; none where one terminal is left."""
        if len(self.inner.terminals) < 2:
            return None
        return SteinerSearch(self.inner, start, seed, self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Dual ascent, directed cuts, cases."""
        inner = SteinerBounds(self.inner, self.instance.compiled)
        decided = "one terminal" if len(self.inner.terminals) < 2 else ""
        return ReducedBounds(self, inner, decided, SteinerProof, SteinerBound)

    def prove(self, proof: SteinerProof) -> int:
        """Check the reductions entry by entry, and the witness of what they leave."""
        return self._proved(proof, verify_log)

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name, on the whole graph."""
        asked, compiled = self.asked, self.instance.compiled
        return {name: partial(rule, asked, compiled) for name, rule in STEINER_BASELINES.items()}
