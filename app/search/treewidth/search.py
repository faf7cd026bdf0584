"""Local search for tree decompositions: pieces of the tree are eliminated anew, in orders that are better.

A state is the tree of an elimination order (orders.py). A move takes a node with a heaviest bag (for fill-in
any node), goes up from it some steps and down again to some of the nodes below: a piece, of 8 to some hundred
nodes. The bags above it hold a clique of the piece's border, those below cliques of their own; whatever the
order of the nodes in the piece, all other bags stay as they are. They are eliminated anew by least degree,
fewest new edges or the sum of both, with more or less noise, and the new order stands where its heaviest bag
is no heavier, and there are no more of these (fill-in: where all bags together are no larger). Where nothing
gets better for PATIENCE moves the state is again the best one, and a piece of it, anywhere, is made anew
whatever comes of it.

Source   pieces of tree decompositions made anew: Tamaki, A heuristic for listing almost-clique minimal
         separators of a graph (PACE 2020) and A Heuristic Approach to Treewidth Computation (2019); scores:
         Bodlaender and Koster, Treewidth computations I, Information and Computation 2010
Differs  a piece is a set of nodes that hang together in the elimination tree, so that the order, not the
         bags, is what moves; its cost is that of the piece, whatever the size of the graph
"""

import ctypes
from typing import Any

import numpy as np

from app.bounds.treewidth.orders import by_parents, rows_of, tree_of
from app.graphs.graph import Graph
from app.native.library import function
from app.native.state import KernelState
from app.search.treewidth import plain
from app.toolbox import Search

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GIVEN = ("indptr", "indices", "weight", "parent", "child", "next", "prev", "bag", "top", "at", "best_parent")
NUMBERS = ("tops", "worth", "best", "steps", "found_at", "stale", "lost")
LEVELS = 6  # pieces have up to 8, 16, ... 256 nodes
MOST_JOINED = 1 << 28  # words that the longest moves read: pieces of large bags are smaller
SCORED = 30  # binary places of scores


class _Tree(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("n", "fill", "levels", "shift")),
        *((name, Pointer) for name in GIVEN),
        *((name, Long) for name in NUMBERS),
        ("random", ctypes.c_uint64),
        ("lists", Pointer),
    )


T = ctypes.POINTER(_Tree)
LOAD, RUN, FREE = (
    function(f"lk_tree_{name}", T, *more) for name, more in (("load", ()), ("run", (Long,)), ("free", ()))
)


def _levels(size: int) -> int:
    """Sizes of pieces where bags have up to `size` nodes.

    Each of k nodes is scored up to k times, by the pairs of up to `size` neighbours, 64 at once.
    """
    read = size * (size // 64 + 1)
    return next((each for each in range(LEVELS, 1, -1) if (4 << each) ** 2 * read <= MOST_JOINED), 1)


class TreeSearch(KernelState, Search):
    """A search for an order whose heaviest bag, or all bags together, is light; a function of graph, start,
    seed, what it hears, and steps made.

    start     [n] an order
    weights   [n] int64, above 0, or None: all one
    fill      whether all bags count, without their own nodes: `best` is then their sum

    steps     moves made so far
    best      the weight of the heaviest bag, found_at the step it was found in
    done      False: bounds say so

    parent [n] int32, the tree; child, next, prev [n] int32, its lists of children; bag [n] int64, weights;
    top, at [n] int32, the heaviest bags; best_parent [n] int32, the best tree; first   start, and its tree
    """

    hears = True
    numbers = (*NUMBERS, "random")
    done = False

    def __init__(
        self, graph: Graph, start: np.ndarray, seed: int, weights: np.ndarray | None = None,
        fill: bool = False, compiled: bool = True,
    ) -> None:  # fmt: skip
        self.graph, self.n, self.fill = graph, graph.n, int(fill)
        self.compiled = compiled and RUN is not None
        self.indptr, self.indices = rows_of(graph)
        self.weight = None if weights is None else np.ascontiguousarray(weights, dtype=np.int64)
        total = self.n if weights is None else int(weights.sum())
        self.shift = max(total.bit_length() - SCORED, 0)
        for name in ("child", "next", "prev", "top", "at"):
            setattr(self, name, np.full(self.n, -1, dtype=np.int32))
        self.bag = np.zeros(self.n, dtype=np.int64)
        self.parent, sizes = tree_of(graph, start, None, compiled)
        self.levels = _levels(int(sizes.max(initial=0)))
        self.best_parent, self.first = self.parent.copy(), (start, self.parent.copy())
        self.tops = self.worth = self.steps = self.found_at = self.stale = self.lost = 0
        self.random, self.best = seed & ((1 << 64) - 1), 0
        if self.compiled:
            self._hold(_Tree(self.n, self.fill, self.levels, self.shift), GIVEN)
        self._load()
        self.best = self.worth

    def __del__(self) -> None:
        if getattr(self, "_record", None) is not None:
            FREE(self._record)

    def solution(self) -> np.ndarray:
        """[n] int64, the best order; where that has the tree of `start`, `start`."""
        start, parent = self.first
        return start if np.array_equal(self.best_parent, parent) else by_parents(self.best_parent)

    def hear(self, solution: np.ndarray) -> None:
        """An order from elsewhere, to go on from where it is better."""
        parent, bag = tree_of(self.graph, solution, self.weight, self.compiled)
        worth = int((bag - 1).sum() if self.fill else bag.max(initial=0))
        if worth < self.best:
            self.parent[:] = self.best_parent[:] = parent
            self.best, self.found_at, self.stale = worth, self.steps, 0
            self._load()

    def run(self, steps: int) -> None:
        """So many moves. Raises MemoryError."""
        if self.compiled:
            self._call(RUN, steps)
        else:
            plain.run(self, steps)

    def _load(self) -> None:
        """The state is that of `parent`."""
        if self.compiled:
            self._call(LOAD)
        else:
            plain.load(self)

    def _call(self, kernel: Any, *arguments: int) -> None:
        """Run a kernel on the state. Raises MemoryError."""
        super()._call(kernel, *arguments)
        if self.lost:
            raise MemoryError("bags of a tree decomposition")
