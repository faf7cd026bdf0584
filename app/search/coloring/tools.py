"""The toolbox of graph colouring: reductions, a greedy or learned start, a local search, bounds."""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.bounds.coloring.bounds import ColoringBounds
from app.errors import CaseError
from app.graphs.derived import induced
from app.graphs.graph import Graph
from app.proofs.kinds import ColoringProof
from app.search.coloring.baselines import COLORING_BASELINES, dsatur, largest_first, scans
from app.search.coloring.kernel import ColoringKernel
from app.search.coloring.search import ColoringSearch
from app.search.coloring.walk import walk_bytes
from app.search.core_bounds import CoreBounds
from app.toolbox import Baseline, Bounds, Instance, Peeler, Search, Toolbox, rule_of


class ColoringTools(Toolbox):
    """Colourings of one graph, with as few colours as may be.

    A solution is [n] int64, the colour of each node, from 0 on; of the core as well. A colouring of the core
    with k colours stands for one of the graph with k, or with as many as the largest clique known has nodes.
    """

    words, sense = "coloring", "minimise"
    usual_steps = 200_000  # moves
    peels = True
    bounds_follow = True

    def __init__(self, instance: Instance, problem: Any) -> None:
        if len(instance.inside) or len(instance.outside):
            right = "leave search.inside and search.outside out"
            raise CaseError(f"{problem.name}: every node has a colour, none is inside or outside; {right}")
        self.instance, self.problem, self.graph = instance, problem, instance.graph
        self.kernel = ColoringKernel(self.graph, instance.compiled)

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def core(self) -> Graph:
        """What reductions leave."""
        return self.kernel.core

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Take off what needs no colour of its own."""
        kernel = self.kernel
        kernel.reduce(look)
        used = ", ".join(f"{kind} {count}" for kind, count in kernel.counts.items() if count)
        return (
            f"reduced to {kernel.core.n} of {self.graph.n} nodes, {kernel.core.edges} of {self.graph.edges}"
            f" edges ({used or 'no node goes'}; a clique of {kernel.least})"
        )

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] int64, the colouring that one of the core stands for, its colours in the order of nodes."""
        return in_order(self.kernel.lift(core_solution))

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A colouring of the core that follows one of the graph, repaired where that has conflicts."""
        core, colors = self.core, solution[self.kernel.nodes]
        wrong = np.unique(core.row_of()[colors[core.row_of()] == colors[core.indices]])
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

    def as_solution(self, numbers: np.ndarray) -> np.ndarray:
        """Colours as they are."""
        return numbers

    def value(self, solution: np.ndarray) -> int:
        """The number of different colours."""
        return len(np.unique(solution))

    def fault(self, solution: np.ndarray) -> str | None:
        """Two adjacent nodes of one colour."""
        wrong = self.problem.violation(self.graph, solution)
        return None if wrong is None else f"the {self.words} {wrong}"

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """DSATUR or recursive largest first, whichever takes fewer colours."""
        rules = (dsatur, largest_first) if scans(self.core) else (dsatur,)
        found = [rule(self.core, self.instance.compiled)[0] for rule in rules]
        return min(found, key=lambda colors: int(colors.max(initial=-1)))

    def peeler(self) -> Peeler:
        """Class by class, each an independent set of the policy's."""
        return ClassPeeler(self.core, self.instance.compiled)

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Walks over colourings with conflicts; none where nothing is left, or memory does not hold one."""
        core, colors = self.core, int(start.max(initial=-1)) + 1
        if not core.n or walk_bytes(core, colors) > self.instance.most_bytes:
            return None
        return ColoringSearch(core, start, seed, self.kernel.least, self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Cliques, fractional colourings, an exact search."""
        return KernelBounds(self)

    def prove(self, proof: ColoringProof) -> int:
        """Check that the nodes of a clique are adjacent."""
        proof.check(self.graph)
        return len(proof.clique)

    @property
    def left_out(self) -> str:
        """Recursive largest first, on large graphs."""
        return "" if scans(self.graph) else "largest_first"

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name."""
        named = {name: rule for name, rule in COLORING_BASELINES.items() if name != self.left_out}
        return {name: rule_of(self.instance, rule) for name, rule in named.items()}


class KernelBounds(CoreBounds):
    """Lower bounds on the colours of the core, and what reductions know of the whole graph."""

    def __init__(self, tools: ColoringTools) -> None:
        instance = tools.instance
        super().__init__(ColoringBounds(tools.core, instance.compiled, instance.most_bytes), "lower")
        self.tools = tools

    @property
    def value(self) -> int:
        """The best bound so far."""
        return max(super().value, self.tools.kernel.least)

    @property
    def method(self) -> str:
        """How it was found."""
        found = self.inner.method
        return found if found and super().value >= self.tools.kernel.least else "clique"

    def proof(self) -> ColoringProof:
        """The largest clique known."""
        kernel, inner = self.tools.kernel, self.inner.witness()
        clique = kernel.nodes[inner] if len(inner) > kernel.least else kernel.clique
        return ColoringProof(np.asarray(clique, dtype=np.int64), len(clique) >= self.value)


class ClassPeeler(Peeler):
    """Colour classes one after the other: independent sets of the nodes without a colour.

    colors   [n] int64 so far, -1 for none     free  [n] bool, nodes that may join the class at hand
    """

    def __init__(self, graph: Graph, compiled: bool = True) -> None:
        self._graph, self._compiled = graph, compiled
        self.colors, self._class = np.full(graph.n, -1, dtype=np.int64), 0
        self.free = np.ones(graph.n, dtype=bool)
        self._look()

    @property
    def rest(self) -> Graph | None:
        """The free nodes with free neighbours."""
        return self._rest

    def take(self, nodes: np.ndarray) -> None:
        """Nodes of `rest` join the class, best first, but those next to one that did."""
        graph = self._graph
        for node in self._nodes[nodes].tolist():
            if self.free[node]:
                self.colors[node], self.free[node] = self._class, False
                self.free[graph.indices[graph.indptr[node] : graph.indptr[node + 1]]] = False
        self._look()

    def solution(self) -> np.ndarray:
        """The colouring; what has no colour gets further ones by DSATUR."""
        colors = self.colors.copy()
        nodes = np.flatnonzero(colors < 0)
        if len(nodes):
            rest = dsatur(induced(self._graph, nodes), self._compiled)[0]
            colors[nodes] = rest + colors.max(initial=-1) + 1
        return in_order(colors)

    def _look(self) -> None:
        """What is left to decide: free nodes without free neighbours join, and a full class is closed."""
        graph, rows = self._graph, self._graph.row_of()
        while True:
            inside = self.free[rows] & self.free[graph.indices]
            near = np.zeros(graph.n, dtype=bool)
            near[rows[inside]] = True
            self.colors[self.free & ~near] = self._class
            if near.any():
                self._nodes = np.flatnonzero(near)
                self._rest = induced(graph, self._nodes)
                return
            self.free = self.colors < 0
            if not self.free.any():
                self._rest = None
                return
            self._class += 1


def in_order(colors: np.ndarray) -> np.ndarray:
    """[n] int64, the same classes, numbered from 0 on as nodes come to them."""
    _, first, number = np.unique(colors, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return place[number.reshape(-1)]
