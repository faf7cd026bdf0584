"""ColoringKernel: what is left of a graph once nodes are taken off that need no colour of their own.

With a clique of w nodes known, every colouring has w colours or more (3 where w is 2 and the graph is not
bipartite), and a node may go where it can have one of so many, or the colour of another node, whatever the
others have:

- peeled: fewer than w neighbours are left (nodes outside the w-core);
- dominated: all its neighbours are next to another node, whose colour it can have;
- settled: the nodes of a component that a greedy colouring gives at most w colours.

Source   Lin, Cai, Luo and Su, A reduction based method for coloring very large graphs, IJCAI 2017 (peeling);
         dominated nodes: Cheeseman, Kanefsky and Taylor, IJCAI 1991
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from app.bounds.clique.degeneracy import peel
from app.bounds.coloring.bounds import CLIQUE
from app.bounds.coloring.witness import ODD, odd_walk
from app.bounds.cover.kernels import Rows
from app.graphs.derived import induced
from app.graphs.graph import Graph
from app.native.library import address, function
from app.search.clique.kernel import CliqueKernel
from app.search.coloring.baselines import dsatur

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
EXTEND = function("lk_coloring_extend", Long, Pointer, Pointer, Long, Pointer, Pointer, returns=Long)
MOST_PAIRS = 1 << 23  # of nodes two edges apart, up to which dominated ones are looked for


@dataclass(frozen=True)
class Step:
    """Nodes that went together, numbered as in the graph.

    nodes   [k] in the order in which they went
    by      dominated: [k] the nodes whose colours they have; settled: [k] their colours; peeled: None
    """

    kind: str
    nodes: np.ndarray
    by: np.ndarray | None = None


class ColoringKernel:
    """The core of a graph's colourings; a function of the graph alone.

    graph    whole
    clique   [k] nodes, ascending, every two of them adjacent: the largest clique known
    walk     [m] nodes of a closed walk of odd length, where the clique has 2 nodes and there is one
    least    no colouring has fewer colours
    nodes    [k] those of the core, ascending; core: the graph on them
    counts   nodes taken off, by the kind of step
    rules    that were applied
    """

    def __init__(self, graph: Graph, compiled: bool = True) -> None:
        self.graph, self.compiled = graph, compiled
        self.nodes, self.core = np.arange(graph.n), graph
        self.clique, self.walk = np.arange(min(graph.n, 1)), np.empty(0, dtype=np.int64)
        self._steps: list[Step] = []
        self.rules = 0
        self.counts = dict.fromkeys(("peeled", "dominated", "settled"), 0)

    @property
    def least(self) -> int:
        """No colouring has fewer colours."""
        return max(len(self.clique), ODD if len(self.walk) else 0)

    @property
    def method(self) -> str:
        """What says so, in words."""
        return CLIQUE if len(self.clique) == self.least else "odd cycle"

    def reduce(self, look: Callable[[], Any], most: int = 0) -> None:
        """All of it, or as far as `most` rules lead.

        look   called every now and then, after the same work on all ranks; where it is true after the first
               rule there are no more
        """
        cliques = CliqueKernel(self.graph, None, self.compiled)
        cliques.reduce(look)
        if cliques.best > self.least:
            self.clique = np.flatnonzero(cliques.clique)
        if len(self.clique) < ODD:
            look()
            self.walk = odd_walk(self.graph)
        rules, idle = (self._peel, self._settle, self._dominate), 0
        for rule in cycle(rules):
            if (look() and self.rules) or self.rules == (most or -1):
                return
            before = self.core.n
            rule()
            self.rules += 1
            idle = idle + 1 if self.core.n == before else 0
            if idle == len(rules):
                return

    def _off(self, kind: str, nodes: np.ndarray, by: np.ndarray | None = None) -> None:
        """Take off nodes [k] of the core; by: see Step, nodes of the core."""
        if not len(nodes):
            return
        named = None if by is None else self.nodes[by] if kind == "dominated" else by
        self._steps.append(Step(kind, self.nodes[nodes], named))
        self.counts[kind] += len(nodes)
        kept = np.ones(self.core.n, dtype=bool)
        kept[nodes] = False
        kept = np.flatnonzero(kept)
        self.core, self.nodes = induced(self.core, kept), self.nodes[kept]

    def _peel(self) -> None:
        """Nodes with fewer than `least` neighbours left."""
        ones = np.ones(self.core.n, dtype=np.int64)
        self._off("peeled", peel(self.core, ones, self.least, self.compiled))

    def _settle(self) -> None:
        """Components that take no more than `least` colours."""
        if not self.core.n:
            return
        colors = dsatur(self.core, self.compiled)[0]
        count, piece = connected_components(_matrix(self.core), directed=False)
        most = np.zeros(count, dtype=np.int64)
        np.maximum.at(most, piece, colors)
        done = np.flatnonzero(most[piece] < self.least)
        self._off("settled", done, colors[done])

    def _dominate(self) -> None:
        """Nodes whose neighbours are all next to another node that stays, in order."""
        degrees = self.core.degrees()
        if not self.core.n or int((degrees * degrees).sum()) > MOST_PAIRS:
            return
        near = _matrix(self.core)
        both = (near @ near).tocoo()
        held = (both.data == degrees[both.row]) & (both.row != both.col)
        gone, nodes, by = np.zeros(self.core.n, dtype=bool), [], []
        for node, other in sorted(zip(both.row[held].tolist(), both.col[held].tolist())):
            if not (gone[node] or gone[other]):
                gone[node] = True
                nodes.append(node)
                by.append(other)
        self._off("dominated", np.array(nodes, dtype=np.int64), np.array(by, dtype=np.int64))

    def lift(self, colors: np.ndarray) -> np.ndarray:
        """[n] int64, the colouring of the graph that one of the core [k] stands for."""
        color = np.full(self.graph.n, -1, dtype=np.int32)
        color[self.nodes] = colors
        for step in reversed(self._steps):
            if step.kind == "peeled":
                extend(self.graph, color, step.nodes[::-1], self.compiled)
            elif step.kind == "settled":
                color[step.nodes] = step.by
            else:  # the other one may have gone later in the same step
                for node, other in zip(step.nodes[::-1].tolist(), step.by[::-1].tolist()):
                    color[node] = color[other]
        return color.astype(np.int64)


def _matrix(graph: Graph) -> Any:
    """A graph as a SciPy matrix of ones."""
    ones = np.ones(len(graph.indices), dtype=np.int64)
    return sparse.csr_matrix((ones, graph.indices, graph.indptr), shape=(graph.n, graph.n))


def extend(graph: Graph, color: np.ndarray, order: np.ndarray, compiled: bool = True) -> None:
    """Give nodes in an order [k] the least colour that no neighbour has; color [n] int32, -1 for none yet."""
    if compiled and EXTEND:
        rows, order = Rows(graph), np.ascontiguousarray(order, dtype=np.int32)
        arrays = (address(rows.indptr), address(rows.indices), len(order), address(order), address(color))
        if EXTEND(graph.n, *arrays) < 0:
            raise MemoryError("colouring")
        return
    for node in order.tolist():
        met = set(color[graph.indices[graph.indptr[node] : graph.indptr[node + 1]]].tolist())
        color[node] = next(c for c in range(graph.n) if c not in met)
