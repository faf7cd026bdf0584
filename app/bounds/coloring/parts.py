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

    colours   [n] int32, from 0
    core      [n] core numbers     place [n] in a degeneracy order
    """

    def __init__(self, graph: Graph, compiled: bool = True) -> None:
        self._graph, self._compiled = graph, compiled
        self._order, self.core = core_order(graph, compiled)
        self.place = np.empty(graph.n, dtype=np.int64)
        self.place[self._order] = np.arange(graph.n)
        self._label = np.full(graph.n, -1, dtype=np.int64)
        self._lower = 0
        self.colours = greedy_colours(graph, self._order[::-1], compiled)

    @property
    def upper(self) -> int:
        """How many colours."""
        return int(self.colours.max(initial=-1)) + 1

    def parts(self, lower: int) -> list[Part]:
        """The components of the `lower`-core with more than `lower` colours, those of most colours first.

        lower   1 or more, never less than before
        """
        self._lower = lower
        nodes = np.flatnonzero(self.core >= lower)
        core = induced(self._graph, nodes)
        matrix = sp.csr_array(
            (np.ones(len(core.indices), dtype=np.int8), core.indices, core.indptr), shape=(core.n, core.n)
        )
        count, label = connected_components(matrix, directed=False)
        self._label[:] = -1
        self._label[nodes] = label
        upper = self._uppers(self.colours)
        wanted = np.flatnonzero(upper > lower)
        ends = np.cumsum(np.bincount(label, minlength=count))[:-1]
        groups = np.split(np.argsort(label, kind="stable"), ends)
        groups = [groups[i] for i in wanted.tolist()]
        self.colours = self._completed(self.colours)
        parts = [
            Part(part, nodes[group], int(each))
            for part, group, each in zip(closed_parts(core, groups), groups, upper[wanted])
        ]
        return sorted(parts, key=lambda part: -part.upper)

    def take(self, part: Part, colours: np.ndarray) -> None:
        """A colouring [k] of one part."""
        both = self.colours.copy()
        both[part.nodes] = colours
        self.colours = self._completed(both)
        part.upper = int(self.colours[part.nodes].max()) + 1

    def hear(self, colours: np.ndarray) -> None:
        """A colouring of the whole graph [n]: of each component the better one stays."""
        other = greedy_colours(self._graph, np.argsort(colours, kind="stable"), self._compiled)
        better = self._uppers(other) < self._uppers(self.colours)
        both = np.where((self._label >= 0) & np.append(better, False)[self._label], other, self.colours)
        self.colours = self._completed(both)

    def count(self, part: Part) -> int:
        """The colours of a part."""
        return int(self.colours[part.nodes].max()) + 1

    def _uppers(self, colours: np.ndarray) -> np.ndarray:
        """How many colours each component has."""
        inside = self._label >= 0
        upper = np.zeros(int(self._label.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(upper, self._label[inside], colours[inside] + 1)
        return upper

    def _completed(self, colours: np.ndarray) -> np.ndarray:
        """[n] int32, a colouring as good in the core, which takes `lower` colours or no more than that."""
        first = np.where(self.core >= self._lower, colours, self._graph.n)
        order = np.lexsort((-self.place, first))
        return greedy_colours(self._graph, order, self._compiled)
