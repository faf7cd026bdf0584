"""The toolbox of maximum clique: reductions, then independent sets of the kernel's complement.

A clique is an independent set of the complement. Of a dense kernel the complement is made, and everything
that vertex covers have works on it (CoverTools). A large sparse kernel, whose complement would be huge, is
searched root by root (app/bounds/clique/roots.py): the search is exact, and its steps are amounts of work.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from app.bounds.certificate import BadCertificate
from app.bounds.clique.degeneracy import CliqueBound, coloured
from app.bounds.clique.roots import METHOD, RootSearch
from app.errors import FixedNodesError
from app.graphs.derived import complement, induced
from app.graphs.graph import Graph
from app.graphs.keys import union, without
from app.proofs.kinds import CliqueProof, CoverProof
from app.search.clique.baselines import by_core
from app.search.clique.kernel import SPARSE, CliqueKernel
from app.search.cover.tools import CoverTools
from app.search.node_tools import NodeTools
from app.search.shared_tree import CliqueTree
from app.toolbox import Baseline, Bounds, Instance, Peeler, Search, Tree

COMPLEMENT_EDGES = 1 << 23  # of a complement that is made
NODE_BYTES, EDGE_BYTES = 100, 120  # of a graph with what searches and bounds hold of it
LARGEST_DENSE = 3000  # nodes of a sparse kernel whose complement is made
STEP = 1024  # words of bit sets that a step of the search of a sparse kernel goes through
COLOUR_SECONDS = 2e-7  # of a colouring, for each node and entry
LARGE, ROOTS_SECONDS = (
    1 << 20,
    2.5e-7,
)  # entries; for each and each node, of what a search by roots begins with


class CliqueTools(NodeTools):
    """Cliques of one graph, the heaviest where nodes have weights.

    Fixed nodes are settled first: the clique holds `inside`, and all else of it is next to them and not
    `outside`. A core solution is a set of nodes of the body's core: the cover of a complement, or a clique.
    One that stands for a lighter clique than the best the reductions know stands for that one.
    """

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        graph = self.graph
        worthless = without(np.flatnonzero(self.weightless()), instance.inside)
        outside = union(instance.outside, worthless).astype(np.int64)
        self._names = _allowed(graph, instance.inside, outside)  # of the rest, in the graph
        rest = induced(graph, self._names)
        weights = None if self.weights is None else self.weights[self._names]
        self.kernel = CliqueKernel(rest, weights, instance.compiled)
        if len(instance.known):
            self.kernel.offer(self._mask(instance.known)[self._names])
        self._inside = self.value(self._mask(instance.inside))
        self._body: _Complement | _Sparse | None = None

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def body(self) -> "_Complement | _Sparse":
        """What works on the kernel, made when it is first asked for."""
        if self._body is None:
            fits = _fits(self.kernel.core, self.instance.most_bytes)
            kind = _Complement if fits and self._dense else _Sparse
            self._body = kind(self.kernel, self.instance, self.problem)
        return self._body

    @property
    def _dense(self) -> bool:
        return self.kernel.core.n <= LARGEST_DENSE or self.kernel.density >= SPARSE

    @property
    def core(self) -> Graph:
        """The reduced complement of the kernel, or the kernel."""
        return self.body.core

    @property
    def core_minimises(self) -> bool:
        """Core solutions of a complement are covers."""
        return self.body.core_minimises

    @property
    def peels(self) -> bool:
        """Reduce and peel works on complements."""
        return self.body.core_minimises

    @property
    def unasked(self) -> str:
        """The policy sees rows of the complement."""
        return self.body.unasked

    @property
    def reduction_steps(self) -> int:
        """Of the complement's reductions so far."""
        return self.body.reduction_steps

    @property
    def search_seconds(self) -> float:
        """An estimate of what the search of a large sparse kernel begins with."""
        return self.body.search_seconds

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Take off what no heavier clique can hold, and of a complement what its reductions settle."""
        self.kernel.reduce(look)
        core = self.kernel.core
        said = f"reduced to {core.n} of {self.graph.n} nodes, {core.edges} of {self.graph.edges} edges"
        said += f" ({self.kernel.method or 'no node goes'}; a clique of {self._known})"
        return f"{said}{self.body.reduce(look, most)}"

    @property
    def _known(self) -> int:
        """The value of the heaviest clique that the reductions know."""
        return self._inside + self.kernel.best

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] bool, the clique of a core solution, or a heavier one that is known."""
        chosen = self.body.lift(core_solution)
        mine = self.kernel.clique.copy()
        if self._value_of(chosen) > self.kernel.best:
            mine[:] = False
            mine[self.kernel.nodes[chosen]] = True
        clique = self._mask(self._names[mine])
        clique[self.instance.inside] = True
        return clique

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A core solution that follows a set of nodes where the core has them."""
        return self.body.restrict(solution[self._names][self.kernel.nodes])

    def value_of_core(self, value: int) -> int:
        """The instance's value (bound) for a value (bound) of the core."""
        return max(self._inside + self.body.weight_of(value), self._known)

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return self.body.weight_of(value - self._inside)

    def _value_of(self, chosen: np.ndarray) -> int:
        """The weight of nodes [k] bool of the kernel."""
        weights = self.kernel.weights
        return int(np.count_nonzero(chosen) if weights is None else weights[chosen].sum())

    def _mask(self, nodes: np.ndarray) -> np.ndarray:
        mask = np.zeros(self.graph.n, dtype=bool)
        mask[nodes] = True
        return mask

    # ---- tools ---------------------------------------------------------------------------------------------

    def prove(self, proof: CliqueProof) -> int:
        """Check what was peeled off, and the witness for the rest."""
        nodes = self.kernel.without(proof.peeled, proof.least)
        upper = self._prove_rest(proof.rest, nodes)
        return self._inside + (max(upper, proof.least) if len(proof.peeled) else upper)

    def _prove_rest(self, proof: CoverProof | CliqueBound, nodes: np.ndarray) -> int:
        """No clique of some nodes [k] weighs more. Raises BadCertificate."""
        weights = None if self.weights is None else self.weights[self._names[nodes]]
        rest = induced(self.kernel.graph, nodes)
        if isinstance(proof, CliqueBound):
            ones = np.ones(len(nodes), dtype=np.int64)
            bound = replace(proof, weights=ones if weights is None else weights)
            bound.check(rest)
            return bound.upper
        if not _fits(rest, self.instance.most_bytes):
            raise BadCertificate(
                f"{self.graph.name}: the complement of {rest.n} nodes is too large to be made"
            )
        mine = self._body if isinstance(self._body, _Complement) else None
        if mine is None or not np.array_equal(nodes, self.kernel.nodes):
            return _complement_tools(rest, weights, self.instance, self.problem).prove(proof)
        return mine.tools.prove(proof)

    def start(self) -> np.ndarray:
        """Greedy on the core."""
        return self.body.start()

    def peeler(self) -> Peeler:
        """Reduce and peel on the core of a complement."""
        return self.body.tools.peeler()

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Edge-weighting local search on a complement, branch and bound by roots on a sparse kernel."""
        return self.body.search(seed, start)

    def tree(self, rank: int, ranks: int) -> Tree | None:
        """The exact search that ranks share: on a complement, or where more than one rank is there."""
        return self.body.tree(rank, ranks)

    def bounds(self) -> Bounds:
        """Bounds of covers on a complement, colourings and branch and bound on a sparse kernel."""
        return self.body.bounds()

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics, by weight; none where nodes are fixed."""
        named = super().baselines()
        if self.weights is None:
            return named
        return {name: partial(rule, weights=self.weights) for name, rule in named.items()}


def _allowed(graph: Graph, inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """[k] nodes next to all of `inside`, none `outside`; ValueError where `inside` is no clique."""
    met = np.zeros(graph.n, dtype=np.int64)
    for node in inside.tolist():
        met[graph.indices[graph.indptr[node] : graph.indptr[node + 1]]] += 1
    apart = inside[met[inside] < len(inside) - 1]
    if len(apart):
        words = "{} is not adjacent to all others that are to be inside the clique"
        raise FixedNodesError(words, apart[0])
    free = met == len(inside)
    free[outside] = free[inside] = False
    return np.flatnonzero(free)


def _complement_edges(graph: Graph) -> int:
    return graph.n * (graph.n - 1) // 2 - graph.edges


def _fits(graph: Graph, most_bytes: float) -> bool:
    """Whether the complement may be made."""
    edges = _complement_edges(graph)
    return edges <= COMPLEMENT_EDGES and NODE_BYTES * graph.n + EDGE_BYTES * edges <= most_bytes


def _complement_tools(
    graph: Graph, weights: np.ndarray | None, instance: Instance, problem: Any
) -> CoverTools:
    """Cliques of a graph as independent sets of its complement."""
    inner = Instance(
        complement(graph), compiled=instance.compiled, whole_weights=weights, most_bytes=instance.most_bytes
    )
    return CoverTools(inner, problem)


class _Complement:
    """A kernel by way of its complement: core solutions are covers of what reductions leave of that."""

    core_minimises, unasked, search_seconds = True, "", 0.0

    def __init__(self, kernel: CliqueKernel, instance: Instance, problem: Any) -> None:
        self.kernel = kernel
        self.tools = _complement_tools(kernel.core, kernel.weights, instance, problem)
        self.lift, self.restrict, self.start = self.tools.lift, self.tools.restrict, self.tools.start
        self.search = self.tools.search

    @property
    def core(self) -> Graph:
        return self.tools.core

    def weight_of(self, value: int) -> int:
        """The weight of a clique of the kernel from the cost of a cover of the core, and the reverse."""
        return self.tools.value_of_core(value)

    @property
    def reduction_steps(self) -> int:
        return self.tools.reduction_steps

    def reduce(self, look: Callable[[], Any], most: int) -> str:
        if not self.kernel.core.n:
            return ""
        return f"; the complement {self.tools.reduce(look, most)}"

    def tree(self, rank: int, ranks: int) -> Tree | None:
        tree = self.tools.tree(rank, ranks)
        if tree is not None:
            tree.method = ", ".join(each for each in (self.kernel.method, METHOD) if each)
        return tree

    def bounds(self) -> Bounds:
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


class _Sparse:
    """A kernel as it is: core solutions are cliques of it."""

    core_minimises = False

    def __init__(self, kernel: CliqueKernel, instance: Instance, problem: Any) -> None:
        self.kernel, self.core, self._compiled = kernel, kernel.core, instance.compiled
        self._here: RootsSearch | None = None  # a search of this rank

    @property
    def unasked(self) -> str:
        """Its rows would be those of the complement."""
        entries = 2 * _complement_edges(self.core)
        return f"the complement of {self.core.n} nodes has {entries:.2g} entries"

    reduction_steps = 0

    @property
    def search_seconds(self) -> float:
        """An estimate of what RootsSearch begins with, where it is long."""
        entries = len(self.core.indices)
        return ROOTS_SECONDS * (self.core.n + entries) if entries >= LARGE else 0.0

    def reduce(self, look: Callable[[], Any], most: int) -> str:
        return ""

    def weight_of(self, value: int) -> int:
        return value

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        return core_solution

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """The nodes of a set in order, without those that are not next to all taken before."""
        free, clique = solution.copy(), np.zeros(self.core.n, dtype=bool)
        for node in np.flatnonzero(solution).tolist():
            if free[node]:
                clique[node] = True
                near = np.zeros(self.core.n, dtype=bool)
                near[self.core.indices[self.core.indptr[node] : self.core.indptr[node + 1]]] = True
                free &= near
        return clique

    def start(self) -> np.ndarray:
        return by_core(self.core, self._compiled, self.kernel.weights)[0]

    def search(self, seed: int, start: np.ndarray) -> "RootsSearch":
        self._here = RootsSearch(self.kernel, start, seed, self._compiled)
        return self._here

    def tree(self, rank: int, ranks: int) -> Tree | None:
        if ranks == 1 or not self.core.n:  # the search does it
            return None
        return CliqueTree(self.core, self.kernel.weights, rank, ranks, compiled=self._compiled)

    def bounds(self) -> Bounds:
        return _SparseBounds(self.kernel, self._here, self._compiled)


class RootsSearch(Search):
    """Branch and bound by roots as a search: its steps are amounts of work, each STEP words of bit sets.

    kernel   its graph, and the weight of the best clique known
    start    [n] bool, a clique of it
    """

    def __init__(self, kernel: CliqueKernel, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        weights = kernel.weights
        value = int(np.count_nonzero(start) if weights is None else weights[start].sum())
        self._start, self.steps = start.astype(bool), 0
        self.roots = RootSearch(kernel.core, weights, max(value, kernel.best), seed, compiled)

    @property
    def best(self) -> int:
        """Weight of the heaviest clique known."""
        return self.roots.best

    @property
    def found_at(self) -> int:
        """The step at which it was found."""
        return -(-self.roots.found_at // STEP)

    @property
    def done(self) -> bool:
        """Whether no clique is heavier."""
        return self.roots.done

    def run(self, steps: int) -> None:
        """So many more steps."""
        self.steps += steps
        self.roots.run(self.steps * STEP)

    def solution(self) -> np.ndarray:
        """[n] bool, the heaviest clique found, else the start."""
        found = self.roots.found()
        if found is None:
            return self._start.copy()
        clique = np.zeros(len(self._start), dtype=bool)
        clique[found] = True
        return clique


class _SparseBounds(Bounds):
    """Upper bounds on the cliques of a sparse kernel: a colouring, and what its search leaves open."""

    def __init__(self, kernel: CliqueKernel, here: RootsSearch | None, compiled: bool) -> None:
        self.kernel, self._compiled = kernel, compiled
        self._here = None if here is None else here.roots
        self._coloured: CliqueBound | None = None

    @property
    def least_seconds(self) -> float:
        """Of a colouring."""
        done = self._coloured is not None
        return 0.0 if done else COLOUR_SECONDS * (self.kernel.core.n + len(self.kernel.core.indices))

    @property
    def _searched(self) -> int:
        """No clique weighs more, by branch and bound."""
        return self.kernel.upper if self._here is None else min(self.kernel.upper, self._here.upper)

    @property
    def value(self) -> int:
        """No clique of the kernel that is heavier than the best known weighs more."""
        return self._searched if self._coloured is None else min(self._searched, self._coloured.upper)

    @property
    def method(self) -> str:
        """How that was found."""
        if self._coloured is not None and self._coloured.upper <= self._searched:
            return ", ".join(each for each in (self.kernel.method, self._coloured.method) if each)
        return METHOD if self._here is not None or self.kernel.searched else ""

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """A colouring; the search goes on by itself."""
        if self._coloured is None:
            self._coloured = coloured(self.kernel.core, self.kernel.weights, self._compiled)
        return False

    def proof(self) -> CliqueProof | None:
        """The colouring, where no search has led to the kernel."""
        peeling = self.kernel.peeling
        if peeling is None or self._coloured is None:
            return None
        return CliqueProof(*peeling, self._coloured, self._coloured.upper <= self._searched)
