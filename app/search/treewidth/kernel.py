"""EliminationKernel: what is left of a graph once nodes are eliminated that lose nothing.

With a lower bound `low` of the heaviest bag known, a node v is eliminated, its neighbours joined, where

- simplicial: its neighbours are adjacent to each other. Then N[v] is a clique, which some bag holds whole, so
  low >= w(N[v]); what is left is part of the graph. Islets and twigs are such nodes. Also of fill-in: v is
  in no new edge of a smallest completion (Rose, Tarjan and Lueker 1976), and none are made.
- almost simplicial: all but one neighbour u are, w(N[v]) <= low, and w(v) >= w(u). What is left is then
  the minor in which v is contracted into u, which weighs min(w(v), w(u)) = w(u): its width is no larger.
  Series and triangle are such nodes. Not of fill-in.
- buddies: two nodes of degree 3 with the same neighbours a, b, c, low >= 4, without weights. One
  contracted into a and one into b make a, b, c adjacent. Not of fill-in.
- cube: a node v of degree 3 with neighbours x, y, z of degree 3 that have a, b; a, c; and b, c as their
  others, low >= 4, without weights. x into a, y into c, z and v into b make a, b, c and nothing else
  adjacent. Not of fill-in.

So what is left is a minor of the graph, and a minor of it proves a bound of the graph's width.

Source   Bodlaender, Koster, van den Eijkhof and van der Gaag, Pre-processing for triangulation of
         probabilistic networks, UAI 2001; Bodlaender, Koster and van den Eijkhof, Preprocessing rules for
         triangulation of probabilistic networks, Computational Intelligence 2005
"""

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np

from app.bounds.treewidth.minors import contracted
from app.bounds.treewidth.plain_orders import neighbours
from app.graphs.graph import Graph, from_edges

LOOKS = 1024  # nodes that are looked at between two looks at the clock
CONTRACTED = 100_000  # nodes and entries of a graph that contractions begin with
MOST_DEGREE = 64  # of nodes that are looked at, of which all pairs of neighbours are
DELETED = -1
CUBE = 3


def _row(graph: Graph, v: int) -> list[int]:
    """The neighbours of v."""
    return graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist()


class EliminationKernel:
    """The core of a graph's eliminations; a function of the graph, its weights and what is asked.

    gone    nodes eliminated, in order      nodes  [k] those of the core, ascending
    core    the graph on them, with the edges that eliminations have made
    low     no order has a lighter heaviest bag; 0 of fill-in
    counts  nodes eliminated, by rule
    """

    def __init__(self, graph: Graph, weights: np.ndarray | None, fill: bool) -> None:
        self.graph, self.fill = graph, fill
        self.unit_weights = weights is None
        self.weight = [1] * graph.n if weights is None else weights.tolist()
        self.gone: list[int] = []
        self.into: dict[int, int] = {}  # what a node that went was contracted into; DELETED: nothing
        self.nodes, self.core = np.arange(graph.n), graph
        self.low, self._clique, self._then = 0, [], 0  # a clique of what was left after `then` nodes
        self._begun: np.ndarray | None = None  # the minor that `low` began with
        self.counts = dict.fromkeys(("simplicial", "almost simplicial", "buddies", "cube"), 0)

    def reduce(self, look: Callable[[], Any], most: int = 0) -> None:
        """All of it, or as far as `most` nodes lead.

        look   called every now and then, after the same work on all ranks; where it is true after the first
               node there are no more
        """
        if not self.fill:
            self._begin()
        if self.graph.n and np.diff(self.graph.indptr).min() > MOST_DEGREE:
            return  # no node is looked at: all is left as it is
        self._near = near = neighbours(self.graph)
        waiting, queued, looked = list(range(self.graph.n)), [True] * self.graph.n, 0
        waiting.sort(key=lambda v: (-len(near[v]), -v))
        while waiting:
            v = waiting.pop()
            queued[v] = False
            looked += 1
            if (looked % LOOKS == 0 and look() and self.gone) or (most and len(self.gone) >= most):
                break
            if near[v] is None or len(near[v]) > MOST_DEGREE:
                continue
            rule = self._rule(v)
            if rule is None:
                continue
            again = set()
            for node, name in rule:
                again |= self._eliminate(node, name)
            again |= set().union(*(near[u] for u in again if near[u] is not None), set())
            for u in sorted(again, reverse=True):
                if near[u] is not None and not queued[u]:
                    queued[u] = True
                    waiting.append(u)
        self._leave()

    def _begin(self) -> None:
        """`low` by contractions, of large graphs by what is left as the lightest bags go, one by one."""
        graph = self.graph
        if graph.n + len(graph.indices) <= CONTRACTED:
            weights = None if self.unit_weights else np.array(self.weight, dtype=np.int64)
            self.low, self._begun = contracted(graph, weights)
            return
        bag = [self.weight[v] + sum(self.weight[u] for u in _row(graph, v)) for v in range(graph.n)]
        heap = [(bag[v], v) for v in range(graph.n)]
        heapq.heapify(heap)
        order, kept, there = [], 0, [True] * graph.n
        while heap:
            worth, v = heapq.heappop(heap)
            if not there[v] or worth != bag[v]:
                continue
            if worth > self.low:
                self.low, kept = worth, len(order)
            order.append(v)
            there[v] = False
            for u in _row(graph, v):
                if there[u]:
                    bag[u] -= self.weight[v]
                    heapq.heappush(heap, (bag[u], u))
        label = np.full(graph.n, -1, dtype=np.int64)
        label[np.sort(np.array(order[kept:], dtype=np.int64))] = np.arange(graph.n - kept)
        self._begun = label

    # ---- rules ---------------------------------------------------------------------------------------------

    def _rule(self, v: int) -> list[tuple[int, str]] | None:
        """The nodes that a rule eliminates at v, in order, and its name; None: no rule does."""
        near, own = self._near, self._near[v]
        lacks = {u: len(own - near[u]) - 1 for u in own}
        missing = sum(lacks.values())
        if not missing:
            self._raise(v)
            return [(v, "simplicial")]
        if self.fill or self.weight[v] + sum(self.weight[u] for u in own) > self.low:
            return None
        for u in sorted(own):
            if 2 * lacks[u] == missing and self.weight[u] <= self.weight[v]:
                self.into[v] = u
                return [(v, "almost simplicial")]
        if len(own) == CUBE and self.unit_weights:
            return self._buddies(v) or self._cube(v)
        return None

    def _raise(self, v: int) -> None:
        """N[v] is a clique."""
        worth = self.weight[v] + sum(self.weight[u] for u in self._near[v])
        self.into[v] = DELETED
        if not self.fill and worth > self.low:
            self.low, self._clique, self._then = worth, [v, *self._near[v]], len(self.gone)

    def _buddies(self, v: int) -> list[tuple[int, str]] | None:
        near, (a, b, _) = self._near, sorted(self._near[v])
        for u in sorted(near[a] & near[b]):
            if u != v and near[u] == near[v]:
                self.into[v], self.into[u] = a, b
                return [(v, "buddies"), (u, "buddies")]
        return None

    def _cube(self, v: int) -> list[tuple[int, str]] | None:
        near, three = self._near, sorted(self._near[v])
        if any(len(near[x]) != CUBE for x in three):
            return None
        others = [near[x] - {v} for x in three]
        corners = set().union(*others)
        if (
            len(corners) != CUBE
            or corners & set(three)
            or any(a == b for a, b in zip(others, others[1:] + others[:1]))
        ):
            return None
        x, y, z = three
        (a,), (b,), (c,) = others[0] & others[1], others[0] & others[2], others[1] & others[2]
        self.into[x], self.into[y], self.into[z], self.into[v] = a, c, b, b
        return [(x, "cube"), (y, "cube"), (z, "cube"), (v, "cube")]

    def _eliminate(self, v: int, rule: str) -> set[int]:
        """v goes, its neighbours are joined; they are returned."""
        near, own = self._near, self._near[v]
        for u in own:
            near[u] |= own
            near[u] -= {u, v}
        near[v] = None
        self.gone.append(v)
        self.counts[rule] += 1
        return own

    def _leave(self) -> None:
        """The core of what is left."""
        near = self._near
        left = [v for v in range(self.graph.n) if near[v] is not None]
        self.nodes = np.array(left, dtype=np.int64)
        number = np.full(self.graph.n, -1, dtype=np.int64)
        number[self.nodes] = np.arange(len(left))
        ends = np.array([(v, u) for v in left for u in sorted(near[v]) if v < u], dtype=np.int64).reshape(
            -1, 2
        )
        self.core = from_edges(len(left), number[ends[:, 0]], number[ends[:, 1]], name=self.graph.name)
        del self._near

    # ---- what they prove -----------------------------------------------------------------------------------

    def minor(self, core_label: np.ndarray) -> np.ndarray:
        """[n] int64, the minor of the graph that one of the core [k] is."""
        return self._label(dict(zip(self.nodes.tolist(), core_label.tolist())), len(self.gone))

    def low_minor(self) -> np.ndarray:
        """[n] int64, the minor that proves `low`."""
        if self._clique:
            return self._label({v: i for i, v in enumerate(self._clique)}, self._then)
        return np.zeros(self.graph.n, dtype=np.int64) - 1 if self._begun is None else self._begun

    def _label(self, known: dict[int, int], then: int) -> np.ndarray:
        """The parts of what was left after `then` nodes, with all that was contracted into them."""
        label = np.full(self.graph.n, -1, dtype=np.int64)
        for v, part in known.items():
            label[v] = part
        for v in reversed(self.gone[:then]):
            into = self.into[v]
            label[v] = -1 if into == DELETED else label[into]
        return label
