"""A kernel of cliques by way of its complement, on which everything works that vertex covers have."""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.bounds.clique.roots import METHOD
from app.graphs.derived import complement
from app.graphs.graph import Graph
from app.proofs.kinds import CliqueProof
from app.search.clique.kernel import CliqueKernel
from app.search.cover.tools import CoverTools
from app.toolbox import Bounds, Instance, Tree

COMPLEMENT_EDGES = 1 << 23  # of a complement that is made
NODE_BYTES, EDGE_BYTES = 100, 120  # of a graph with what searches and bounds hold of it


def complement_edges(graph: Graph) -> int:
    return graph.n * (graph.n - 1) // 2 - graph.edges


def fits(graph: Graph, most_bytes: float) -> bool:
    """Whether the complement may be made."""
    edges = complement_edges(graph)
    return edges <= COMPLEMENT_EDGES and NODE_BYTES * graph.n + EDGE_BYTES * edges <= most_bytes


def complement_tools(
    graph: Graph, weights: np.ndarray | None, instance: Instance, problem: Any
) -> CoverTools:
    """Cliques of a graph as independent sets of its complement."""
    inner = Instance(
        complement(graph), compiled=instance.compiled, whole_weights=weights, most_bytes=instance.most_bytes
    )
    return CoverTools(inner, problem)


class Complement:
    """A kernel by way of its complement: core solutions are covers of what reductions leave of that."""

    core_minimises, unasked, search_seconds = True, "", 0.0

    def __init__(self, kernel: CliqueKernel, instance: Instance, problem: Any) -> None:
        self.kernel = kernel
        self.tools = complement_tools(kernel.core, kernel.weights, instance, problem)
        self.lift, self.restrict, self.start = self.tools.lift, self.tools.restrict, self.tools.start
        self.search = self.tools.search

    @property
    def core(self) -> Graph:
        """What reductions leave of the complement."""
        return self.tools.core

    def weight_of(self, value: int) -> int:
        """The weight of a clique of the kernel from the cost of a cover of the core, and the reverse."""
        return self.tools.value_of_core(value)

    @property
    def reduction_steps(self) -> int:
        """Of the complement's reductions so far."""
        return self.tools.reduction_steps

    def reduce(self, look: Callable[[], Any], most: int) -> str:
        """Reduce the complement; the line for the log, from where that of the kernel ends."""
        if not self.kernel.core.n:
            return ""
        return f"; the complement {self.tools.reduce(look, most)}"

    def tree(self, rank: int, ranks: int) -> Tree | None:
        """The exact search of covers that ranks share."""
        tree = self.tools.tree(rank, ranks)
        if tree is not None:
            tree.method = ", ".join(each for each in (self.kernel.method, METHOD) if each)
        return tree

    def bounds(self) -> Bounds:
        """Those of covers."""
        return _ComplementBounds(self.kernel, self.tools)


class _ComplementBounds(Bounds):
    """Bounds on the covers of a kernel's complement, and what made the kernel."""

    def __init__(self, kernel: CliqueKernel, tools: CoverTools) -> None:
        self.kernel, self.inner = kernel, tools.bounds()
        self.least = tools.core_value(kernel.upper)  # no cover of the core costs less

    def expect(self, seconds: float) -> None:
        self.inner.expect(seconds)

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        return self.inner.improve(seconds, best, solution)

    def optimum(self) -> np.ndarray | None:
        return self.inner.optimum()

    def pieces(self) -> np.ndarray | None:
        return self.inner.pieces()

    @property
    def gaining(self) -> bool:
        return self.inner.gaining

    @property
    def least_seconds(self) -> float:
        return self.inner.least_seconds

    @property
    def check_seconds(self) -> float:
        return self.inner.check_seconds

    @property
    def _from_kernel(self) -> bool:
        """Whether the search of the kernel's roots has proved more."""
        return self.least > self.inner.value

    @property
    def value(self) -> int:
        return max(self.inner.value, self.least)

    @property
    def method(self) -> str:
        if not self.kernel.core.n:
            return self.kernel.method or "no node is left"
        inner = "" if self._from_kernel else self.inner.method
        of_complement = f"{inner} of the complement" if inner else ""
        return ", ".join(each for each in (self.kernel.method, of_complement) if each)

    def proof(self) -> CliqueProof | None:
        peeling, inner = self.kernel.peeling, self.inner.proof()
        if peeling is None:
            return None
        return CliqueProof(*peeling, inner, inner.checked and not self._from_kernel)
