"""The toolbox of maximum clique: reductions, then independent sets of the kernel's complement.

A clique is an independent set of the complement. Of a dense kernel the complement is made, and everything
that vertex covers have works on it (complement.py). A large sparse kernel, whose complement would be huge, is
searched root by root (sparse.py, app/bounds/clique/roots.py): the search is exact, and its steps are amounts
of work.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from app.bounds.certificate import BadCertificate
from app.bounds.clique.degeneracy import CliqueBound
from app.errors import FixedNodesError
from app.graphs.derived import induced
from app.graphs.graph import Graph
from app.graphs.keys import union, without
from app.proofs.kinds import CliqueProof, CoverProof
from app.search.clique.complement import Complement, complement_tools, fits
from app.search.clique.kernel import SPARSE, CliqueKernel
from app.search.clique.sparse import Sparse
from app.search.node_tools import NodeTools
from app.toolbox import Baseline, Bounds, Instance, Peeler, Search, Tree

LARGEST_DENSE = 3000  # nodes of a sparse kernel whose complement is made


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
        self._body: Complement | Sparse | None = None

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def body(self) -> "Complement | Sparse":
        """What works on the kernel, made when it is first asked for."""
        if self._body is None:
            made = self._dense and fits(self.kernel.core, self.instance.most_bytes)
            kind = Complement if made else Sparse
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
        if not fits(rest, self.instance.most_bytes):
            raise BadCertificate(
                f"{self.graph.name}: the complement of {rest.n} nodes is too large to be made"
            )
        mine = self._body if isinstance(self._body, Complement) else None
        if mine is None or not np.array_equal(nodes, self.kernel.nodes):
            return complement_tools(rest, weights, self.instance, self.problem).prove(proof)
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
