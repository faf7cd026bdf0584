"""Local search for minimum dominating set, by exchange with weights of undominated nodes.

A state is a set of chosen nodes cheaper than the best dominating set, with nodes that none of them dominates.
A step takes one node out of the set and puts one in that dominates an undominated node, drawn at random (with
node weights several, while the set stays cheaper than the best). Nodes carry weights that grow while they are
undominated; the score of a node is the change, to the better, of the total weight of undominated nodes if it
moved. Where nothing has changed around a node since it left, it does not come back, and the one that has just
come in does not leave at once. Of many undominated nodes only a few, drawn, gain weight in a step: on a graph
of 300,000 nodes the first 50,000 steps otherwise took 300 us each, and came to less.

Source   a dominating set is a cover of nodes by closed neighbourhoods; weights, ages and the checks of what
         may move: RWLS, Gao, Weise and Li, Engineering Optimization 2015, for set covering of unit costs.
         Scores by node weight: as in FastWVC, Cai, Hou, Lin and Li 2018
"""

import ctypes

import numpy as np

from app.graphs.graph import Graph
from app.native.library import address, function
from app.native.state import KernelState
from app.search.domination import plain as plain
from app.search.domination.baselines import near_any, near_counts
from app.toolbox import Search

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
FREE, INSIDE, OUTSIDE = 0, 1, 2
GIVEN = ("indptr", "price", "indices", "fixed")
ARRAYS = (
    "chosen", "best_chosen", "times", "who", "weight", "score", "stamp", "touched",
    "open", "open_at",
)  # fmt: skip
HEAP = ("heap", "heap_at")
NUMBERS = ("heap_size", "open_size", "cost", "best", "steps", "found_at", "last_in", "tick")


class _Search(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("n", "least")),
        *((name, Pointer) for name in (*GIVEN, *ARRAYS, *HEAP)),
        *((name, Long) for name in NUMBERS),
        ("random", ctypes.c_uint64),
    )


S = ctypes.POINTER(_Search)
LOAD = function("lk_domination_load", S, Long, Pointer)
EXCHANGE = function("lk_domination_exchange", S, Long)


def available() -> bool:
    """True where the library was built."""
    return None not in (LOAD, EXCHANGE)


class DominationSearch(KernelState, Search):
    """A search for a dominating set of least cost; a function of graph, start, seed and steps made.

    graph      whole; edge weights are not read
    start      [n] bool, a dominating set that holds to `fixed`
    seed       an integer, taken modulo 2^64
    price      [n] int64 positive node weights, or None: all one
    fixed      [n] uint8, 1 for nodes that have to be chosen, 2 for those that must not be, 0 for others
    compiled   False: the same without the compiled kernels
    dominated  [n] bool, nodes that are dominated anyway; None: none

    steps      exchanges made so far
    best       cost of the best set found, found_at the step it was found in
    done       True when no set can cost less; then run() does nothing

    chosen, best_chosen   [n] uint8
    times, who            [n] int32, by how many nodes a node is dominated, and their numbers xored; where
                          it is anyway DOMINATED and 0
    weight, score         [n] int64; scores are at most 0 in the set, at least 0 outside
    stamp, touched        [n] int64, `tick` of a node's last move, and of the last change of `times`
    open                  [n] int32, undominated nodes as a list; open_at: places in it
    heap                  [n] int32, the free chosen nodes by who leaves next; heap_at: places. Kernels only
    """

    numbers = (*NUMBERS, "random")

    def __init__(
        self,
        graph: Graph,
        start: np.ndarray,
        seed: int,
        price: np.ndarray | None = None,
        fixed: np.ndarray | None = None,
        compiled: bool = True,
        dominated: np.ndarray | None = None,
    ) -> None:
        n = graph.n
        needed = np.ones(n, dtype=bool) if dominated is None else ~dominated
        self.n, self.compiled = n, compiled and available()
        self.indptr = np.ascontiguousarray(graph.indptr, dtype=np.int64)
        self.indices = np.ascontiguousarray(graph.indices, dtype=np.int32)
        self.price = None if price is None else np.ascontiguousarray(price, dtype=np.int64)
        self.fixed = np.zeros(n, dtype=np.uint8) if fixed is None else fixed
        self.chosen, self.best_chosen = np.zeros(n, dtype=np.uint8), start.astype(np.uint8)
        self.times = np.where(needed, 0, plain.DOMINATED).astype(np.int32)
        self.who = np.zeros(n, dtype=np.int32)
        self.weight, self.score = np.ones(n, dtype=np.int64), near_counts(graph, needed)
        self.stamp, self.touched = np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)
        self.heap, self.heap_at = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
        self.open, self.open_at = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
        self.open_size = int(np.count_nonzero(needed))
        self.open[: self.open_size] = np.flatnonzero(needed)
        self.open_at[needed] = np.arange(self.open_size)
        self.heap_size, self.cost = 0, 0
        self.steps = self.found_at = 0
        self.last_in, self.tick, self.random = -1, 1, seed & (1 << 64) - 1
        self.best = (n if self.price is None else int(self.price.sum())) + 1
        self.least = self._least(graph, needed)
        self._hold(_Search(n, self.least), (*GIVEN, *ARRAYS, *HEAP))
        nodes = np.flatnonzero(start).astype(np.int32)
        if self.compiled:
            self._call(LOAD, len(nodes), address(nodes))
        else:
            plain.load(self, nodes.tolist())

    @property
    def done(self) -> bool:
        """True when no set can cost less."""
        return self.best <= self.least

    def _least(self, graph: Graph, needed: np.ndarray) -> int:
        """What the nodes inside cost, and one more where they leave a node undominated."""
        inside = self.fixed == INSIDE
        price = np.ones(self.n, dtype=np.int64) if self.price is None else self.price
        left = (needed & ~(inside | near_any(graph, inside))).any()
        more = int(price[self.fixed == FREE].min(initial=int(price.sum()))) if left else 0
        return int(price[inside].sum()) + more

    def run(self, steps: int) -> None:
        """`steps` exchanges, fewer only when done."""
        if self.compiled:
            self._call(EXCHANGE, steps)
        else:
            plain.run(self, steps)

    def solution(self) -> np.ndarray:
        """[n] bool, the best dominating set found, a copy."""
        return self.best_chosen.astype(bool)
