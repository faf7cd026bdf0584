"""What makes a graph need more than so many colours: the parts of its core, and a colouring of each.

Nodes of core number below k find a colour among k once all others have theirs, last ones of a degeneracy
order first; so a graph has a colouring with k colours where each component of its k-core has one.

Source   cores: Seidman 1983, Matula and Beck 1983; recolouring by classes: Culberson 1992
"""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.bounds.clique.degeneracy import core_order, greedy_colours
from app.bounds.clique.roots import RootSearch
from app.graphs.derived import closed_parts, induced
from app.graphs.graph import Graph

CLIQUE_WORK = 1 << 18  # words, on a clique of a part
MOST_PARTS = 1000  # that are worked on at a time


@dataclass(eq=False)
class Part:
    """A component of the core that is coloured with more colours than are known to be needed.

    graph   of its own     nodes   [k] of the whole graph, ascending     upper   its colours
    """

    graph: Graph
    nodes: np.ndarray
    upper: int
    _clique: np.ndarray | None = field(default=None, init=False)

    def clique(self, compiled: bool) -> np.ndarray:
        """[k] nodes of its own graph, a large clique."""
        if self._clique is None:
            search = RootSearch(self.graph, None, 0, compiled=compiled)
            search.run(CLIQUE_WORK)
            self._clique = search.found()
        return self._clique


class Colouring:
    """The best colouring known of a whole graph, component by component of its core.

    core    [n] core numbers     place [n] in a degeneracy order
    lower   what `parts` was last called with     waiting   parts that it has left out
    """

    def __init__(self, graph: Graph, compiled: bool = True) -> None:
        self._graph, self._compiled = graph, compiled
        order, self.core = core_order(graph, compiled)
        self.place = np.empty(graph.n, dtype=np.int64)
        self.place[order] = np.arange(graph.n)
        self.lower, self.waiting = 0, 0
        self._label = np.full(graph.n, -1, dtype=np.int64)  # the component of the core, -1: none
        self._colours = greedy_colours(graph, order[::-1], compiled)  # good in the core
        self._upper = np.array([self._colours.max(initial=-1) + 1], dtype=np.int64)  # of each component

    @property
    def upper(self) -> int:
        """How many colours."""
        return max(self.lower, int(self._upper.max(initial=0)))

    def parts(self, lower: int) -> list[Part]:
        """The components of the `lower`-core with more than `lower` colours, those of most colours first, and
        no more than MOST_PARTS of them.

        lower   colours that are needed, 1 or more, never less than before
        """
        colours = self.colours()
        nodes = np.flatnonzero(self.core >= lower)
        core = induced(self._graph, nodes)
        matrix = sp.csr_array(
            (np.ones(len(core.indices), dtype=np.int8), core.indices, core.indptr), shape=(core.n, core.n)
        )
        count, label = connected_components(matrix, directed=False)
        self.lower, self._colours = lower, colours
        self._label[:] = -1
        self._label[nodes] = label
        self._upper = self._uppers(colours)
        wanted = np.flatnonzero(self._upper > lower)
        wanted = wanted[np.argsort(-self._upper[wanted], kind="stable")]
        self.waiting = max(len(wanted) - MOST_PARTS, 0)
        order, ends = np.argsort(label, kind="stable"), np.cumsum(np.bincount(label, minlength=count))
        groups = [order[(ends[i - 1] if i else 0) : ends[i]] for i in wanted[:MOST_PARTS].tolist()]
        return [
            Part(part, nodes[group], int(self._upper[label[group[0]]]))
            for part, group in zip(closed_parts(core, groups), groups)
        ]

    def take(self, part: Part, colours: np.ndarray) -> None:
        """A colouring [k] of one part."""
        self._colours[part.nodes] = colours
        part.upper = self._upper[self._label[part.nodes[0]]] = int(colours.max()) + 1

    def hear(self, colours: np.ndarray) -> None:
        """A colouring of the whole graph [n]: of each component the better one stays."""
        other = greedy_colours(self._graph, np.argsort(colours, kind="stable"), self._compiled)
        better = self._uppers(other) < self._upper
        taken = (self._label >= 0) & np.append(better, False)[self._label]
        self._colours[taken] = other[taken]
        self._upper = self._uppers(self._colours)

    def of(self, part: Part) -> np.ndarray:
        """[k] the colours of a part."""
        return self._colours[part.nodes]

    def count(self, part: Part) -> int:
        """How many those are."""
        return int(self._upper[self._label[part.nodes[0]]])

    def colours(self) -> np.ndarray:
        """[n] int32, 0..upper-1: those of the core, others what they find, the last of the order first."""
        first = np.where(self.core >= self.lower, self._colours, self._graph.n)
        order = np.lexsort((-self.place, first))
        return greedy_colours(self._graph, order, self._compiled)

    def _uppers(self, colours: np.ndarray) -> np.ndarray:
        """How many colours each component has."""
        inside = self._label >= 0
        upper = np.zeros(int(self._label.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(upper, self._label[inside], colours[inside] + 1)
        return upper
