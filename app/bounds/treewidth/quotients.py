"""Elimination orders of least degree, in memory that is linear in the graph.

What is left of a graph is a quotient graph. Its variables are nodes that are left, together where they are
near the same: such nodes are adjacent to each other and have the same bag, and one goes right after the
other. Its elements are nodes that are gone: all that are near an element are adjacent to each other. Where a
variable p goes it becomes an element, near to what was near p and near the elements of p. These elements are
not needed any more, nor are others that are near nothing else, nor edges between two that are near p: lists
never grow.

Elements of a variable v may have nodes in common, which its degree counts once. It is bounded instead: with p
the newest element, |.| nodes, A the variables near v and E its elements,

    |bag of v|  <=  min(nodes left,  |bag of v| before + |p| - |v|,  |p| + |A| + sum over e in E of |e - p|),

and that of the last two is the degree itself while v has at most one element beside p (Amestoy, Davis and
Duff, theorem 4.1). The next variable is that of the lowest rank, of these that of the least bound of nodes in
its bag that are not its own, then of the lowest number. Where its own nodes count, too, widths of random
graphs are smaller, and those of meshes larger.

Source   George and Liu, The evolution of the minimum degree ordering algorithm, SIAM Review 1989; Amestoy,
         Davis and Duff, An approximate minimum degree ordering algorithm, SIAM J. Matrix Anal. Appl. 1996
"""

import ctypes
import heapq
from collections.abc import Callable
from typing import Any

import numpy as np

from app.bounds.treewidth.plain_orders import neighbours
from app.graphs.graph import Graph
from app.native.library import function
from app.native.state import KernelState

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
NUMBERS = ("end", "left", "made", "count", "work", "tick")
GIVEN = (
    "pool", "start", "length", "elements", "kind", "many", "bag", "next", "last", "outside", "inside", "mark",
    "slot", "bucket", "chain", "key", "rank", "heap", "place", "order",
)  # fmt: skip
SLICE = 1 << 19  # entries that are looked at between two looks at the clock


class _Quotient(ctypes.Structure):
    _fields_ = (
        ("n", Long),
        ("room", Long),
        ("own", Long),
        *((name, Long) for name in NUMBERS),
        *((name, Pointer) for name in GIVEN),
    )


Q = ctypes.POINTER(_Quotient)
LOAD, RUN, END = (
    function(f"lk_quotient_{name}", Q, *more, returns=returned)
    for name, more, returned in (("load", (), None), ("run", (Long,), Long), ("end", (), None))
)


def least_degree(
    graph: Graph,
    look: Callable[[], Any],
    compiled: bool = True,
    rank: np.ndarray | None = None,
    own: bool = False,
    share: int = SLICE,
) -> tuple[np.ndarray, bool]:
    """An order [n] int64, and whether all of it is by degree.

    rank    [n] integers, those of lower rank go first, by degree within each; None: all are 0
    own     whether a variable's own nodes count, too: bags are then as small as may be, and not degrees
    look    called after each `share` of work, the same on all ranks; where it is true the rest follows by the
            degrees that it has
    """
    rank = np.zeros(graph.n, dtype=np.int32) if rank is None else rank
    made = _Compiled(graph, rank, own) if compiled and RUN else _Plain(graph, rank, own)
    most = share
    while made.left and not (made.work and look()):
        made.run(most)
        most += share
    whole = not made.left
    made.end_here()
    return np.array(made.order[: graph.n], dtype=np.int64), whole


class _Compiled(KernelState):
    """The state of the kernel (app/native/quotient.c)."""

    numbers = NUMBERS

    def __init__(self, graph: Graph, rank: np.ndarray, own: bool) -> None:
        n, entries = graph.n, len(graph.indices)
        degree = np.diff(graph.indptr).astype(np.int32)
        self.end, self.left, self.made, self.count, self.work, self.tick = entries, n, 0, 0, 0, 0
        self.pool = np.zeros(
            entries + entries // 2 + n + 1, dtype=np.int32
        )  # lists, the newest element, more
        self.pool[:entries] = graph.indices
        self.start = np.array(graph.indptr, dtype=np.int64)
        self.length = np.append(degree, np.int32(0))
        for name in ("elements", "kind", "outside", "slot", "heap", "place", "order"):
            setattr(self, name, np.zeros(n + 1, dtype=np.int32))
        for name in ("next", "inside", "bucket", "chain"):
            setattr(self, name, np.full(n + 1, -1, dtype=np.int32))
        self.many, self.last = np.ones(n + 1, dtype=np.int32), np.arange(n + 1, dtype=np.int32)
        self.bag, self.mark = self.length + np.int32(1), np.zeros(n + 1, dtype=np.int64)
        first = self.bag if own else self.length
        self.key = (first.astype(np.int64) << 32) | np.arange(n + 1)
        self.rank = np.append(rank, 0).astype(np.int32)
        self._hold(_Quotient(n=n, room=len(self.pool), own=int(own)), GIVEN)
        self._call(LOAD)

    def run(self, most: int) -> None:
        """Up to so much work in all. Raises MemoryError."""
        if self._call(RUN, most) < 0:
            raise MemoryError("order of least degree")

    def end_here(self) -> None:
        """The rest follows."""
        self._call(END)


class _Plain:
    """The same with sets, of small graphs.

    near, elements   of each variable, those near it, in sets; of each element its variables in `near`
    """

    def __init__(self, graph: Graph, rank: np.ndarray, own: bool) -> None:
        self.rank, self.own = rank.tolist(), own
        self.near, self.elements = neighbours(graph), [set() for _ in range(graph.n)]
        self.nodes = [[v] for v in range(graph.n)]
        self.bag = [len(own) + 1 for own in self.near]
        self.size = [0] * graph.n  # of elements
        self.there = set(range(graph.n))
        self.heap = [(*self._score(v), v) for v in range(graph.n)]
        heapq.heapify(self.heap)
        self.left, self.work, self.order = graph.n, 0, []

    def _weight(self, variables: set[int]) -> int:
        return sum(len(self.nodes[v]) for v in variables)

    def _score(self, v: int) -> list[int]:
        return [self.rank[v], self.bag[v] - (0 if self.own else len(self.nodes[v]))]

    def _next(self) -> int:
        """The next variable, which is no longer there."""
        while True:
            *score, v = heapq.heappop(self.heap)
            if v in self.there and score == self._score(v):
                self.there.discard(v)
                self.order += sorted(self.nodes[v])
                return v

    def run(self, most: int) -> None:
        """Up to so much work in all."""
        while self.there and self.work < most:
            self._eliminate(self._next())

    def end_here(self) -> None:
        """The rest follows."""
        while self.there:
            self._next()

    def _eliminate(self, p: int) -> None:
        gone = self.elements[p]
        own = self.near[p].union(*(self.near[e] for e in gone)) & self.there
        self.left -= len(self.nodes[p])
        self.near[p], self.size[p] = own, self._weight(own)
        others = set().union(*(self.elements[v] for v in own)) - gone
        outside = {e: self.size[e] - self._weight(self.near[e] & own) for e in others}
        for v in own:
            self.elements[v] = {e for e in self.elements[v] if outside.get(e)}
            self.near[v] = (self.near[v] & self.there) - own
            bag = self.size[p] + sum(outside[e] for e in self.elements[v]) + self._weight(self.near[v])
            known = self.bag[v] + self.size[p] - len(self.nodes[v])
            self.bag[v] = min(bag, known, self.left)
            self.elements[v].add(p)
            self.work += 1 + len(self.elements[v]) + len(self.near[v])
        first: dict[Any, int] = {}
        for v in sorted(own):
            alike = self.rank[v], frozenset(self.near[v]), frozenset(self.elements[v])
            u = first.setdefault(alike, v)
            if u != v:
                self.nodes[u] += self.nodes[v]
                self.bag[u] = min(self.bag[u], self.bag[v])
                self.there.discard(v)
        own &= self.there
        for v in own:
            heapq.heappush(self.heap, (*self._score(v), v))
