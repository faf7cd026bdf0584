"""The toolbox of graph colouring: reductions, a greedy start, a local search, bounds."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from app.bounds.coloring.bounds import ColoringBounds
from app.bounds.coloring.witness import ColoringProof
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set
from app.search.coloring.baselines import COLORING_BASELINES, by_degree, dsatur, largest_first, scans
from app.search.coloring.kernel import ColoringKernel
from app.search.coloring.search import ColoringSearch, search_bytes
from app.search.core_bounds import InnerBounds
from app.search.label_tools import LabelTools, in_order
from app.toolbox import Baseline, Bounds, Instance, Search, rule_of

REDUCE_SECONDS = 2e-7  # for each node and entry, about
START_SHARE = 0.8  # of a time limit


class ColoringTools(LabelTools):
    """Colourings of one graph, with as few colours as may be.

    A colouring of the core with k colours stands for one of the graph with k, or with as many as the largest
    clique known has nodes.
    """

    words, sense, every = "coloring", "minimise", "every node has a colour, none is inside or outside"
    usual_steps = 200_000  # moves
    baseline_costs: ClassVar = {"dsatur": 2e-7, "smallest_last": 1e-7}
    reduce_share = 1.0  # cliques that they find bound the colours, too

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        self.kernel = ColoringKernel(self.graph, instance.compiled)

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def core(self) -> Graph:
        """What reductions leave."""
        return self.kernel.core

    @property
    def reduction_steps(self) -> int:
        """Rules that were applied."""
        return self.kernel.rules

    @property
    def reduce_seconds(self) -> float:
        """An estimate of what `reduce` takes at least: its cliques."""
        return REDUCE_SECONDS * self._size

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Take off what needs no colour of its own."""
        kernel = self.kernel
        kernel.reduce(look, most)
        used = ", ".join(f"{kind} {count}" for kind, count in kernel.counts.items() if count)
        return (
            f"reduced to {kernel.core.n} of {self.graph.n} nodes, {kernel.core.edges} of {self.graph.edges}"
            f" edges ({used or 'no node goes'}; a clique of {len(kernel.clique)}"
            f"{', an odd cycle' * bool(len(kernel.walk))})"
        )

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] int64, the colouring that one of the core stands for, its colours in the order of nodes."""
        return in_order(self.kernel.lift(core_solution))

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A colouring of the core that follows one of the graph, repaired where that has conflicts."""
        core, colors = self.core, in_order(solution[self.kernel.nodes])
        wrong = sorted_set(core.row_of()[colors[core.row_of()] == colors[core.indices]])
        free = colors.max(initial=-1) + 1
        for node in wrong.tolist():  # in order: of two that clash the second one stays
            near = colors[core.indices[core.indptr[node] : core.indptr[node + 1]]]
            if (near == colors[node]).any():
                colors[node] = np.setdiff1d(np.arange(free + 1), near)[0]
                free = max(free, colors[node] + 1)
        return in_order(colors)

    def value_of_core(self, value: int) -> int:
        """Colours of the graph, for those (a bound on those) of the core."""
        return max(value, self.kernel.least)

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return value

    def value(self, solution: np.ndarray) -> int:
        """The number of different colours."""
        return len(sorted_set(solution))

    @property
    def unready(self) -> bool:
        """Whether there is no time for DSATUR."""
        size = self.core.n + len(self.core.indices)
        return self.baseline_costs["dsatur"] * size > START_SHARE * self.instance.seconds

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """DSATUR or recursive largest first, whichever takes fewer colours; by degree where both take longer
        than a time limit.
        """
        if self.unready:
            return by_degree(self.core, self.instance.compiled)[0]
        rules = (dsatur, largest_first) if scans(self.core) else (dsatur,)
        found = [rule(self.core, self.instance.compiled)[0] for rule in rules]
        return min(found, key=lambda colors: int(colors.max(initial=-1)))

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Walks over colourings with conflicts; none where nothing is left, or memory does not hold one."""
        core, colors = self.core, int(start.max(initial=-1)) + 1
        if not core.n or search_bytes(core, colors) > self.instance.most_bytes:
            return None
        return ColoringSearch(core, start, seed, self.kernel.least, self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Cliques, fractional colourings, an exact search."""
        return KernelBounds(self)

    def prove(self, proof: ColoringProof) -> int:
        """Check a clique, a walk of odd length, and values."""
        proof.check(self.graph)
        return proof.lower

    @property
    def left_out(self) -> str:
        """Recursive largest first, on large graphs."""
        return "" if scans(self.graph) else "largest_first"

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name."""
        named = {name: rule for name, rule in COLORING_BASELINES.items() if name != self.left_out}
        return {name: rule_of(self.instance, rule) for name, rule in named.items()}


class KernelBounds(InnerBounds):
    """Lower bounds on the colours of the core, and what reductions know of the whole graph."""

    def __init__(self, tools: ColoringTools) -> None:
        self.kernel = tools.kernel
        super().__init__(ColoringBounds(tools.core, tools.instance.compiled, tools.instance.most_bytes))

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long; nothing is left to try where the best colouring is optimal."""
        more = self.inner.improve(seconds, best, solution)
        return more and self.value < best

    @property
    def value(self) -> int:
        """The best bound so far."""
        return max(self.inner.value, self.kernel.least)

    @property
    def method(self) -> str:
        """How it was found: what the reductions know is known before the first call."""
        return self.kernel.method if self.inner.value < self.kernel.least else self.inner.method

    def optimum(self) -> np.ndarray | None:
        """A colouring of the core with as few colours as the bound."""
        found = self.inner.optimum()
        return found if found is not None and self.inner.value >= self.kernel.least else None

    def proof(self) -> ColoringProof:
        """The largest clique known, a walk of odd length, and values of the best fractional colouring."""
        kernel, inner = self.kernel, self.inner.witness()
        clique = kernel.nodes[inner] if len(inner) > len(kernel.clique) else kernel.clique
        nodes, values, most = self.inner.values() or (np.empty(0, np.int64), np.empty(0, np.int64), 0)
        clique, nodes = (np.asarray(each, dtype=np.int64) for each in (clique, kernel.nodes[nodes]))
        proof = ColoringProof(clique, kernel.walk, nodes, values, most, False)
        return replace(proof, checked=proof.lower >= self.value)
