"""CliqueKernel: what is left of a graph once nodes are taken off that no heavier clique can hold."""

from collections.abc import Callable

import numpy as np

from app.bounds.clique.degeneracy import CORES, check_peeling, peel
from app.bounds.clique.roots import METHOD, RootSearch
from app.graphs.derived import induced
from app.graphs.graph import Graph
from app.search.clique.baselines import CLIQUE_BASELINES

SPARSE = 0.3  # share of the pairs that are edges: of denser graphs roots are not searched here
WORK, LOOK = 1 << 26, 1 << 23  # words of bit sets that the roots may cost: about two seconds; between looks


class CliqueKernel:
    """Exact reductions of maximum clique, with and without node weights.

    Two greedy cliques come first. Then nodes go whose weight with all neighbours, of those that are left, is
    at most that of the best clique: without weights those of smaller core numbers. What is left of a sparse
    graph is searched root by root (app/bounds/clique/roots.py), each for a limited time; roots that are still
    open leave a kernel of themselves and their later neighbours. The result is a function of the graph alone.

    graph     whole         weights   [n] int64, above 0, or None: all one

    nodes     [k] the kernel's nodes, ascending: every clique heavier than `best` lies in it
    core      the graph on them, `weights` theirs or None
    clique    [n] bool, the heaviest clique known, of weight `best`
    upper     no clique weighs more
    searched  whether roots were searched
    """

    def __init__(self, graph: Graph, weights: np.ndarray | None, compiled: bool = True) -> None:
        self.graph, self._weights, self._compiled = graph, weights, compiled
        self.nodes, self.core, self.weights = np.arange(graph.n), graph, weights
        self.clique, self.best = np.zeros(graph.n, dtype=bool), 0
        self.upper = int(self._whole_weights(weights, graph.n).sum())
        self._peeled, self._least, self.searched = np.empty(0, dtype=np.int64), 0, False

    @property
    def density(self) -> float:
        """Edges of the kernel, over its pairs of nodes."""
        pairs = self.core.n * (self.core.n - 1) // 2
        return self.core.edges / pairs if pairs else 0.0

    @property
    def method(self) -> str:
        """What has made it: "" where it is the graph."""
        peeled = [CORES] * bool(len(self._peeled))
        return ", ".join([*peeled, *[METHOD] * self.searched])

    def reduce(self, look: Callable[[], None]) -> None:
        """All of it. look: called every now and then, after the same work on all ranks."""
        for rule in CLIQUE_BASELINES.values():
            self.offer(rule(self.graph, self._compiled, self._weights)[0])
        look()
        self._peel()
        look()
        if self.core.n and self.density < SPARSE:
            self._search(look)

    @property
    def peeling(self) -> tuple[int, np.ndarray] | None:
        """A weight, and the nodes [k] that no heavier clique holds, in order: all that are gone; None where
        finished searches say so of some.
        """
        return None if self.searched else (self._least, self._peeled)

    def without(self, peeled: np.ndarray, least: int) -> np.ndarray:
        """[k] the nodes but those `peeled`; proves that no clique heavier than `least` holds one of these."""
        check_peeling(self.graph, self._whole_weights(self._weights, self.graph.n), least, peeled)
        kept = np.ones(self.graph.n, dtype=bool)
        kept[peeled] = False
        return np.flatnonzero(kept)

    def offer(self, clique: np.ndarray) -> None:
        """A clique [n] bool, which counts where it is the heaviest so far."""
        value = int(np.count_nonzero(clique) if self._weights is None else self._weights[clique].sum())
        if value > self.best:
            self.best, self.clique = value, clique

    @staticmethod
    def _whole_weights(weights: np.ndarray | None, n: int) -> np.ndarray:
        return np.ones(n, dtype=np.int64) if weights is None else weights

    def _keep(self, kept: np.ndarray) -> None:
        """Of the kernel's nodes only some [k], ascending."""
        self.core, self.nodes = induced(self.core, kept), self.nodes[kept]
        self.weights = None if self.weights is None else self.weights[kept]

    def _peel(self) -> None:
        gone = peel(self.core, self._whole_weights(self.weights, self.core.n), self.best, self._compiled)
        if not self.searched:
            self._peeled, self._least = self.nodes[gone], self.best
        kept = np.ones(self.core.n, dtype=bool)
        kept[gone] = False
        self._keep(np.flatnonzero(kept))

    def _search(self, look: Callable[[], None]) -> None:
        """The first pass over all roots."""
        roots = RootSearch(self.core, self.weights, self.best, compiled=self._compiled)
        while not roots.first_pass(min(roots.work + LOOK, WORK)) and roots.work < WORK:
            look()
        found, self.searched, self.upper = roots.found(), True, roots.upper
        if found is not None:
            clique = np.zeros(self.graph.n, dtype=bool)
            clique[self.nodes[found]] = True
            self.offer(clique)
        self._keep(roots.open_nodes())
        self._peel()
