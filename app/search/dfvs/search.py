"""Local search for minimum directed feedback vertex sets: annealing of orders without backward arcs.

A state is an order of some nodes in which all arcs between them lead forward; the others are the set, for a
digraph without directed cycles has such an order of all. In a trial a node drawn from the set comes into the
order, right after the last node with an arc to it or right before the first that it has an arc to; nodes on
the wrong side of it leave the order. What that costs is let pass by the temperature. Nodes of the order have
labels, which ascend, so that places are compared at once; where there is no room between two, the labels
after them are spread.

Rounds of annealing follow each other, each twice as long as the last, up to a limit; all but the first begin
warm, from the best set known.

Source   Galinier, Lemamou and Bouzidi, Applying local search to the feedback vertex set problem, Journal of
         Heuristics 2013. Labels: Dietz and Sleator, Two algorithms for maintaining order in a list, 1987
"""

import ctypes

import numpy as np

from app.graphs.digraph import Digraph
from app.native.library import address, function
from app.native.state import KernelState
from app.rng import SplitMix
from app.search.annealing import escapes
from app.search.dfvs import plain
from app.toolbox import Search

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GIVEN = ("out_ptr", "in_ptr", "out", "into", "price", "escape", "heats")
ARRAYS = ("label", "next", "before", "apart", "place", "best_set")
NUMBERS = (
    "levels", "shift", "at", "length", "apart_size", "cost", "best", "steps", "found_at", "unsaved",
)  # fmt: skip
LEVELS = 256
ONE = 1 << 16  # of temperatures and of -log of uniform numbers, in fixed point
# Temperatures in multiples of 2^-16 of a mean price, and the factor of a level, in 2^-16, to 0.2 at the end.
HOT, WARM = (32768, 65302), (26214, 65359)
HOTTEST = 1 << 42  # of temperatures, for which products with -log of uniform numbers have room
FIRST_SWEEPS, MOST_SWEEPS = 64, 1 << 14  # trials of a round for each node of the core
PATIENCE = 3  # rounds of the greatest length without a better set, after which one begins hot
LEAST_MEETING = 1 << 20


class _Search(ctypes.Structure):
    _fields_ = (
        ("n", Long),
        *((name, Pointer) for name in (*GIVEN, *ARRAYS)),
        *((name, Long) for name in NUMBERS),
        ("random", ctypes.c_uint64),
    )


S = ctypes.POINTER(_Search)
ANNEAL = function("lk_dfvs_anneal", S, Long)
LOAD = function("lk_dfvs_load", S, Pointer, Long)
ORDER = function("lk_dfvs_order", Long, *(Pointer,) * 7, returns=Long)


def available() -> bool:
    """True where the library was built."""
    return None not in (ANNEAL, LOAD, ORDER)


def order_without(digraph: Digraph, chosen: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[k] int32, the nodes outside a set [n] bool in an order without backward arcs: first come, first
    served. Fewer than these where they have a directed cycle.
    """
    chosen = np.ascontiguousarray(chosen, dtype=np.uint8)
    if not (compiled and available()):
        return plain.order_without(digraph, chosen)
    degree, order = np.zeros(digraph.n, dtype=np.int32), np.zeros(digraph.n, dtype=np.int32)
    arrays = digraph.out_ptr, digraph.out, digraph.in_ptr, digraph.into, chosen, degree, order
    return order[: ORDER(digraph.n, *map(address, arrays))]


class DirectedFeedbackSearch(KernelState, Search):
    """A search for a set of least cost; a function of digraph, start, seed, what it hears, and steps made.

    start      [n] bool, a set that leaves no directed cycle
    seed       an integer, taken modulo 2^64
    price      [n] int64, above 0, or None: all one
    compiled   False: the same without the compiled kernels

    steps      trials made so far
    best       cost of the best set, found_at the step it was found in
    done       no node is left in the set

    label      [n+1] int64, ascending along the order, -1 in the set; label[n] = 0
    next, before   [n+1] int32, the order as a ring with n for both ends
    apart, place   [n] int32, the set as a list; places in it
    """

    hears = True
    numbers = (*NUMBERS, "random")

    def __init__(
        self, digraph: Digraph, start: np.ndarray, seed: int, price: np.ndarray | None = None,
        compiled: bool = True,
    ) -> None:  # fmt: skip
        n = digraph.n
        self.n, self.compiled, self._digraph = n, compiled and available(), digraph
        for name in ("out_ptr", "in_ptr", "out", "into"):
            setattr(self, name, np.ascontiguousarray(getattr(digraph, name)))
        self.price = None if price is None else np.ascontiguousarray(price, dtype=np.int64)
        self.escape = escapes(ONE)
        mean = 1 if self.price is None else max(int(self.price.sum()) // n, 1)
        self._places = max(min(16, HOTTEST.bit_length() - mean.bit_length() - 1), 0)  # of temperatures
        self._mean, self.levels, self.shift = mean << self._places, LEVELS, 16 + self._places
        self.heats = np.zeros(LEVELS, dtype=np.int64)
        self.label = np.zeros(n + 1, dtype=np.int64)
        self.next, self.before = (np.zeros(n + 1, dtype=np.int32) for _ in range(2))
        self.apart, self.place = (np.zeros(n, dtype=np.int32) for _ in range(2))
        self.best_set = start.astype(np.uint8)
        self.at = self.length = self.apart_size = self.cost = 0
        self.best = self.steps = self.found_at = self.unsaved = 0
        self.random = SplitMix(seed).state
        self._hold(_Search(n), (*GIVEN, *ARRAYS))
        self._guests: list[np.ndarray] = []
        self._sweeps, self._stale, self._before = FIRST_SWEEPS, 0, 0
        self._load(start)
        self.best = self._before = self.cost
        self._begin(HOT)

    @property
    def placed(self) -> int:
        """How many nodes the order has."""
        return self.n - self.apart_size

    @property
    def done(self) -> bool:
        """No node is in the set."""
        return not self.best

    @property
    def meeting_steps(self) -> int:
        """Trials between two meetings of several searches."""
        return max(LEAST_MEETING, 64 * self.n)

    def news(self) -> np.ndarray:
        """[1, n] uint8, the best set."""
        return self.best_set[None, :].copy()

    def meet(self, others: list[np.ndarray]) -> None:
        """The best sets of the other searches."""
        self._guests += [each[0].astype(bool) for each in others]

    def hear(self, solution: np.ndarray) -> None:
        """A set from elsewhere, for the next round to begin from."""
        self._guests.append(solution.astype(bool))

    def solution(self) -> np.ndarray:
        """[n] bool, the best set, a copy."""
        return self.best_set.astype(bool)

    def run(self, steps: int) -> None:
        """Make so many trials, fewer only when done."""
        while steps > 0 and not self.done:
            if self.at == self.length:
                self._end_round()
            part = min(steps, self.length - self.at)
            if self.compiled:
                self._call(ANNEAL, part)
            else:
                plain.anneal(self, part)
            steps -= part

    def _load(self, chosen: np.ndarray) -> None:
        """Go on from a set [n] bool."""
        order = order_without(self._digraph, chosen, self.compiled)
        if self.compiled:
            self._call(LOAD, address(order), len(order))
        else:
            plain.load(self, order)

    def _begin(self, hot: tuple[int, int]) -> None:
        """A round from a temperature, and with the factor of each level."""
        self.at, self.length = 0, self._sweeps * self.n
        heat, factor = hot[0] * self._mean >> 16, hot[1]
        for level in range(LEVELS):
            self.heats[level] = min(heat, HOTTEST)
            heat = heat * factor >> 16

    def _end_round(self) -> None:
        """The next round, from the best set known."""
        self._stale = 0 if self.best < self._before else self._stale + 1
        if self._guests:
            costs = [
                int(each.sum() if self.price is None else self.price[each].sum()) for each in self._guests
            ]
            cost = min(costs)
            if cost < self.best:
                self.best, self.found_at = cost, self.steps
                self.best_set[:] = self._guests[costs.index(cost)]
            self._guests = []
        self._before = self.best
        self._sweeps = min(2 * self._sweeps, MOST_SWEEPS)
        hot = self._sweeps == MOST_SWEEPS and self._stale >= PATIENCE
        if hot:
            self._stale = 0
        self._load(self.best_set.astype(bool))
        self._begin(HOT if hot else WARM)
