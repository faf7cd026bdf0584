"""Cliques as bounds on colours: greedy ones, then the largest of the graph, in slices of work."""

import numpy as np

from app.bounds.clique.roots import RootSearch
from app.graphs.derived import induced
from app.graphs.graph import Graph

SLICE, PLAIN_SLICE = 1 << 18, 1 << 12  # words of bit sets, with the kernel and without
SET_BITS = 3  # sets of a root's later neighbours, by pairs of which the search takes so many bits


class Cliques:
    """The largest clique known.

    nodes   [k] ascending
    begun   the search has begun     done    no more is to be tried
    """

    def __init__(
        self, graph: Graph, core: np.ndarray, place: np.ndarray, compiled: bool, most_bytes: float
    ) -> None:
        """core [n] core numbers     place [n] in a degeneracy order     most_bytes: of the search"""
        self._graph, self._core, self._compiled, self._most_bytes = graph, core, compiled, most_bytes
        self._slice = SLICE if compiled else PLAIN_SLICE
        self.begun = self.done = False
        self._search: RootSearch | None = None
        found = [grown(graph, rank) for rank in (place, graph.degrees())]
        self.nodes = max(found, key=len)

    def step(self) -> None:
        """A slice of the search for a larger one."""
        if self._search is None and not self._begin():
            return
        search = self._search
        search.run(search.work + self._slice)
        if search.best > len(self.nodes):
            self.nodes = self._kept[search.found()]
        self.done = search.done or search.stuck
        if self.done:
            self._search = None

    def _begin(self) -> bool:
        """The search, among nodes that a larger clique may hold; False where there is none."""
        self.begun = True
        self._kept = np.flatnonzero(self._core >= len(self.nodes))
        most = int(self._core.max(initial=0))
        self.done = not len(self._kept) or SET_BITS * most * most / 8 > self._most_bytes
        if not self.done:
            part = induced(self._graph, self._kept)
            self._search = RootSearch(part, None, len(self.nodes), compiled=self._compiled)
        return not self.done


def grown(graph: Graph, rank: np.ndarray) -> np.ndarray:
    """[k] nodes of a clique that no node can join: the node of largest rank [n], time after time."""
    chosen, free = [], np.arange(graph.n)
    while len(free):
        node = int(free[rank[free].argmax()])
        chosen.append(node)
        free = np.intersect1d(
            free, graph.indices[graph.indptr[node] : graph.indptr[node + 1]], assume_unique=True
        )
    return np.sort(np.array(chosen, dtype=np.int64))
