"""Local search for the heaviest sets of exactly k nodes: exchanges, with the gain of every node kept.

The gain of a node is the weight of its edges to chosen nodes. In a step the chosen node of least gain leaves,
then the node outside of largest gain comes, which sees that the other has gone; what has moved stays where it
is for a drawn number of steps (tabu, Glover 1989; constrained exchanges as in Wu and Hao 2013). After STALE
steps without a better set it begins anew, by turns: from an end of a drawn edge, to which nodes of most gain
are added one by one; from the best set, of which as many nodes as the times it has stalled, at least two and
at most half of them, are exchanged for drawn ones."""

import ctypes

import numpy as np

from app.graphs.dense import DenseGraph
from app.native.library import function
from app.native.state import KernelState
from app.rng import SplitMix
from app.search.dense import plain
from app.search.mask_search import MaskSearch

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GIVEN = ("indptr", "indices", "weight", "fixed")
ARRAYS = ("chosen", "best_chosen", "gain", "free_at", "list", "place")
NUMBERS = ("size", "value", "best", "steps", "found_at", "unsaved", "tenure")
TENURE = 12  # steps for which a node stays, at most
STALE = 2_000
LEAST_MEETING = 1 << 14


class _Swaps(ctypes.Structure):
    _fields_ = (
        ("n", Long),
        *((name, Pointer) for name in (*GIVEN, *ARRAYS)),
        *((name, Long) for name in NUMBERS),
        ("random", ctypes.c_uint64),
    )


S = ctypes.POINTER(_Swaps)
SWAP = function("lk_dense_swap", S, Long)
LOAD = function("lk_dense_load", S)
SHAKE = function("lk_dense_shake", S, Long)
REGROW = function("lk_dense_regrow", S, Long)


class SwapSearch(KernelState, MaskSearch):
    """A search for sets of most weight; a function of graph, start, seed, what it hears, and steps made.

    start      [n] bool, a set of as many nodes as are asked for
    fixed      [n] bool, nodes that stay, in it or outside
    seed       an integer, taken modulo 2^64
    compiled   False: the same without the compiled kernels

    steps      exchanges made so far
    best       weight inside the best set, found_at the step it was found in
    done       there is nothing to exchange
    """

    least_meeting = LEAST_MEETING
    numbers = (*NUMBERS, "random")

    def __init__(
        self, graph: DenseGraph, start: np.ndarray, fixed: np.ndarray, seed: int, compiled: bool = True
    ) -> None:
        n = graph.n
        self.graph, self.compiled = graph, compiled and None not in (SWAP, LOAD, SHAKE, REGROW)
        self.indptr, self.indices, self.weight = graph.indptr, graph.indices, graph.weight
        self.fixed = fixed.astype(np.uint8)
        self.chosen, self.best_chosen = np.zeros(n, dtype=np.uint8), start.astype(np.uint8)
        self.gain, self.free_at = (np.zeros(n, dtype=np.int64) for _ in range(2))
        self.list, self.place = (np.zeros(n, dtype=np.int32) for _ in range(2))
        self.size, self.tenure = int(np.count_nonzero(start)), TENURE
        self.value = self.steps = self.found_at = self.unsaved = 0
        self.random = SplitMix(seed).state
        self.done = not ((start & ~fixed).any() and (~start & ~fixed).any())
        self._turn, self._stalls = STALE, 0  # the step at which it looks whether it has stalled; how often
        self._hold(_Swaps(n), (*GIVEN, *ARRAYS))
        self.best = graph.inside(start)[0]
        self._load()

    def run(self, steps: int) -> None:
        """So many exchanges, fewer only when done."""
        while steps > 0 and not self.done:
            part = min(steps, self._turn - self.steps)
            if self.compiled:
                self._call(SWAP, part)
            else:
                plain.run(self, part)
            steps -= part
            if self.steps == self._turn:
                self._look()
                self._turn += STALE

    def _look(self) -> None:
        """Where nothing better has been found for long: anew, or from the best set, some nodes exchanged."""
        if self.steps - self.found_at < STALE:
            self._stalls = 0
            return
        self._stalls += 1
        self._load()
        entries = len(self.indices)
        if self._stalls % 2 and 0 < entries < 1 << 32:
            if self.compiled:
                self._call(REGROW, entries)
            else:
                plain.regrow(self, entries)
            return
        count = max(2, min(self._stalls, self.size // 2))
        if self.compiled:
            self._call(SHAKE, count)
        else:
            plain.shake(self, count)

    def _load(self) -> None:
        """Go on from the best set."""
        if self.compiled:
            self._call(LOAD)
        else:
            plain.load(self)
        self.unsaved = 0

    def solution(self) -> np.ndarray:
        """[n] bool, the best set, a copy."""
        return self.best_chosen.astype(bool)

    # ---- what others found ---------------------------------------------------------------------------------

    def hear(self, solution: np.ndarray) -> None:
        """A set from elsewhere; where it is better the search goes on from it."""
        value = self.graph.inside(solution)[0]
        if value > self.best:
            self.best, self.found_at, self._stalls = value, self.steps, 0
            self.best_chosen[:] = solution
            self._load()
