"""Local search for linear arrangements: annealing in rounds, by moves of a node to another place.

Of length, cutwidth, separation and profile, what an order pays depends on the sets before its gaps
(app/graphs/arrangement.py). A node that moves over d others changes d gaps, and what these become follows
from the gaps beside them and the node's own edges: with v from place i to j > i the set before gap g becomes
that of gap g + 1 without v. So all places on the way are judged together, in time d and the edges of v (of
fronts also those of its neighbours); the best of them is taken where one gains, else the last where the heat
allows. Every so often the best order of some consecutive nodes is found by a program over their subsets.

Of cutwidth and separation the sum of what gaps have above a limit is searched, of bandwidth that of the
edges, by swaps: the limit is one less than the best order has, and what is above it is looked at first. Where
nothing is, the order is better.

A round cools from its heat to none, and begins from the best order. Heats follow each other by turns, every
fourth round is twice as long. Components have places of their own, from `low` to below `high`.

Source   annealing: Petit, Experiments on the minimum linear arrangement problem, JEA 2003; Torres-Jimenez et
         al., A dual representation simulated annealing algorithm for the bandwidth minimization problem,
         Information Sciences 2015; windows: Held and Karp's program on the sets before gaps
"""

import ctypes

import numpy as np

from app.graphs.arrangement import BANDWIDTH, PROFILE, SUMS, WEIGHTED, Arrangement
from app.native.library import function
from app.native.state import KernelState
from app.rng import SplitMix
from app.search.annealing import escapes
from app.search.arrangement import plain
from app.search.arrangement.plain import CUT, FRONT, REACH, SPAN, WINDOW
from app.toolbox import Search

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GIVEN = ("ptr", "near", "weight", "escape", "heats", "shares", "low", "high")
ARRAYS = ("at", "place", "value", "fresh", "critical", "where", "journal", "best_order", "table")
NUMBERS = (
    "criticals", "entries", "known", "whole", "cost", "limit", "soft", "best", "steps", "found_at", "turn",
    "turns", "round",
)  # fmt: skip
ONE = 16  # binary places of -log of uniform numbers
HEAT = 8  # binary places of heats
HOTTEST = 1 << 42  # times 2^20 below 2^63
SUM_HEATS = (1.0, 8.0, 32.0, 2.0)  # of rounds, in degrees of a node; of profiles in nodes:
PROFILE_HEATS = (0.25, 1.0, 4.0, 0.5)
LARGEST_HEATS = (1.0, 0.5, 2.0, 0.25)
GAP_SHARES, SPAN_SHARES = (64, 0, 128, 16), (0, 0, 0, 0)  # of the limit, in 256ths
TURNS, TURNS_PER_NODE = 100_000, 50  # of the first round, at least


class _Search(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("n", "gap", "largest")),
        *((name, Pointer) for name in (*GIVEN, *ARRAYS)),
        *((name, Long) for name in NUMBERS),
        ("random", ctypes.c_uint64),
    )


S = ctypes.POINTER(_Search)
RUN, LOAD, SETTLE = (
    function(f"lk_arrange_{name}", S, *more)
    for name, more in (("run", (Long,)), ("load", ()), ("settle", ()))
)


class ArrangementSearch(KernelState, Search):
    """A search for an order of least value; a function of question, start, seed, what it hears, and steps.

    asked      a question of which each node has an edge
    start      [n] an order, component by component
    seed       an integer, taken modulo 2^64
    compiled   False: the same without the compiled kernels

    steps      moves tried so far
    best       value of the best order, found_at the step it was found in
    done       False: bounds say so

    at, place  [n] int32, the node of each place, the place of each node; of profiles in reverse
    value      [n] int64, of the gap behind each place
    critical, where   [n] int32, gaps (of bandwidth nodes) above `limit`, and where each is among them
    journal    [2n] int32, moves since the best order: those before `known` lead to a better one
    """

    hears = True
    numbers = (*NUMBERS, "random")
    done = False

    def __init__(self, asked: Arrangement, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        n = self.n = asked.n
        self.asked, self.compiled = asked, compiled and None not in (RUN, LOAD, SETTLE)
        self.gap = SPAN if asked.kind == BANDWIDTH else CUT if asked.kind in WEIGHTED else FRONT
        self.largest = int(asked.kind not in SUMS)
        self.ptr, self.near, self.weight = asked.indptr, asked.indices, asked.weights
        self.escape = escapes(1 << ONE)
        label = asked.parts(compiled)
        ends = np.cumsum(np.bincount(label)).astype(np.int32)
        self._label = label
        self.high = ends[label]
        self.low = (ends - np.bincount(label).astype(np.int32))[label]
        for name in ("at", "place", "critical", "where", "best_order"):
            setattr(self, name, np.zeros(n, dtype=np.int32))
        self.journal = np.zeros(2 * n, dtype=np.int32)
        self.value, self.fresh = np.zeros(n, dtype=np.int64), np.zeros(REACH + 1, dtype=np.int64)
        self.table = np.zeros(2 << WINDOW, dtype=np.int64)
        for name in NUMBERS:
            setattr(self, name, 0)
        self.whole, self.turns = 1, max(TURNS, TURNS_PER_NODE * n)
        self.heats = self._heats()
        self.shares = np.array(SPAN_SHARES if self.gap == SPAN else GAP_SHARES, dtype=np.int64)
        self.random = SplitMix(seed).state
        self._hold(_Search(n, self.gap, self.largest), (*GIVEN, *ARRAYS))
        self._take(start)

    def _heats(self) -> np.ndarray:
        """[4] int64, of rounds by turns, in units of what orders pay, with HEAT binary places."""
        if self.gap == CUT:
            one = int(self.weight.sum()) / max(self.n, 1)
            one = max(one, 1.0) if not self.largest else max(int(self.weight.sum()) / len(self.weight), 1.0)
        else:
            one = 1.0
        shares = LARGEST_HEATS if self.largest else SUM_HEATS if self.gap == CUT else PROFILE_HEATS
        return np.array([min(int(share * one * (1 << HEAT)), HOTTEST) for share in shares], dtype=np.int64)

    def _turned(self, order: np.ndarray) -> np.ndarray:
        """An order as the state has it: profiles are fronts of the reverse, component by component."""
        if self.asked.kind == PROFILE:
            order = order[::-1]
        return order[np.argsort(self._label[order], kind="stable")]

    def _take(self, order: np.ndarray) -> None:
        """Begin from an order, which is the best."""
        self.at[:] = self.best_order[:] = self._turned(order)
        self.best, self.found_at = self.asked.value(order), self.steps
        self.limit = self.best - 1
        self.entries, self.known, self.whole = 0, 0, 1
        if self.compiled:
            self._call(LOAD)
        else:
            plain.load(self)

    def hear(self, solution: np.ndarray) -> None:
        """An order from elsewhere, to go on from where it is better."""
        if self.asked.value(solution) < self.best:
            self._take(solution)

    def solution(self) -> np.ndarray:
        """[n] int64, the best order, a copy."""
        found = self.best_order.astype(np.int64)
        return self._turned(found) if self.asked.kind == PROFILE else found

    def run(self, steps: int) -> None:
        """So many moves, fewer where nothing is paid."""
        if self.compiled:
            self._call(RUN, steps)
            self._call(SETTLE)
        else:
            plain.run(self, steps)
