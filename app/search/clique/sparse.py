"""A large sparse kernel of cliques as it is: an exact search, root by root, and colourings beside it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.bounds.clique.degeneracy import CliqueBound, coloured
from app.bounds.clique.roots import METHOD, RootSearch
from app.proofs.kinds import CliqueProof
from app.search.clique.baselines import by_core
from app.search.clique.complement import complement_edges
from app.search.clique.kernel import CliqueKernel
from app.search.shared_tree import CliqueTree
from app.toolbox import Bounds, Instance, Search, Tree

STEP = 1024  # words of bit sets that a step of the search of a sparse kernel goes through
COLOUR_SECONDS = 2e-7  # of a colouring, for each node and entry
LARGE, ROOTS_SECONDS = (
    1 << 20,
    2.5e-7,
)  # entries; for each and each node, of what a search by roots begins with


class Sparse:
    """A kernel as it is: core solutions are cliques of it."""

    core_minimises = False

    def __init__(self, kernel: CliqueKernel, instance: Instance, problem: Any) -> None:
        self.kernel, self.core, self._compiled = kernel, kernel.core, instance.compiled
        self._here: RootsSearch | None = None  # a search of this rank

    @property
    def unasked(self) -> str:
        """Its rows would be those of the complement."""
        entries = 2 * complement_edges(self.core)
        return f"the complement of {self.core.n} nodes has {entries:.2g} entries"

    reduction_steps = 0

    @property
    def search_seconds(self) -> float:
        """An estimate of what RootsSearch begins with, where it is long."""
        entries = len(self.core.indices)
        return ROOTS_SECONDS * (self.core.n + entries) if entries >= LARGE else 0.0

    def reduce(self, look: Callable[[], Any], most: int) -> str:
        """The kernel stays as it is."""
        return ""

    def weight_of(self, value: int) -> int:
        """The value itself."""
        return value

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """The clique itself."""
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
        """Greedy by core numbers."""
        return by_core(self.core, self._compiled, self.kernel.weights)[0]

    def search(self, seed: int, start: np.ndarray) -> "RootsSearch":
        """Branch and bound by roots on this rank."""
        self._here = RootsSearch(self.kernel, start, seed, self._compiled)
        return self._here

    def tree(self, rank: int, ranks: int) -> Tree | None:
        """The same shared out, where there is more than one rank."""
        if ranks == 1 or not self.core.n:  # the search does it
            return None
        return CliqueTree(self.core, self.kernel.weights, rank, ranks, compiled=self._compiled)

    def bounds(self) -> Bounds:
        """A colouring, and what the search leaves open."""
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
