"""Local search for orders of little weight backward: iterated, in rounds that cross the best orders.

A node is *settled* by moving it to where the order pays least with it, which sums of its own arcs tell: only
right behind a neighbour, or right before one, can it be better off than between. A local optimum has all
nodes settled. A trial kicks one or a few nodes to the other side of a neighbour, settles whoever was passed
until nobody gains, and is taken back unless it has come to something as good, or nearly; so it costs what it
touches, not what the graph has. Every so often a trial orders some consecutive nodes as well as possible, by
dynamic programming over their subsets, in place of a kick.

A round ends when so many trials have found nothing better. The next begins from a cross of two of the best
orders known: those of half of the places of the one, in the order of the other. Nodes have labels, which
ascend along the order, so that places are compared at once; where there is no room between two, the labels
behind them are spread.

Source   insertion, iterated local search and crosses by order: Schiavinotto and Stuetzle, The linear ordering
         problem: instances, search space analysis and algorithms, JMMA 2004. Labels: Dietz and Sleator 1987
"""

import ctypes

import numpy as np

from app.graphs.ordering import NetArcs
from app.graphs.orders import places_of
from app.native.library import address, function
from app.native.state import KernelState
from app.rng import SplitMix
from app.search.annealing import escapes
from app.search.ordering import plain
from app.search.ordering.plain import MOVES, WINDOW
from app.toolbox import Search

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GIVEN = ("ptr", "near", "pull", "dense", "escape")
ARRAYS = (
    "label", "next", "before", "queue", "queued", "moves", "best_order", "best_next", "best_before", "since",
    "scratch", "table",
)  # fmt: skip
NUMBERS = (
    "head", "size", "made", "cost", "current", "best", "steps", "found_at", "unsaved", "descending", "stale",
    "patience", "trials", "heat", "shift", "kicks", "every", "listed", "kept", "passed",
)  # fmt: skip
ONE = 16  # binary places of -log of uniform numbers
HOTTEST = 1 << 43  # a product of one, up to 9.1 * 2^16, with less than that is below 2^63
DENSE, SHARE = 1024, 0.25  # nodes, at most, and arcs of all pairs, at least, of what has a table
EVERY = 64  # trials between two windows
KICKS = 3  # of a trial, at most
PATIENCE, LEAST_PATIENCE = 60, 2000  # trials of a round without a better order, for each node, and at least
KNOWN = 8  # best orders that are kept
LEAST_MEETING = 1 << 20


class _Search(ctypes.Structure):
    _fields_ = (
        ("n", Long),
        *((name, Pointer) for name in (*GIVEN, *ARRAYS)),
        *((name, Long) for name in NUMBERS),
        ("random", ctypes.c_uint64),
    )


S = ctypes.POINTER(_Search)
RUN = function("lk_order_run", S, Long, returns=Long)
LOAD = function("lk_order_load", S, Pointer)


def available() -> bool:
    """True where the library was built."""
    return None not in (RUN, LOAD)


class OrderingSearch(KernelState, Search):
    """A search for an order of least cost; a function of arcs, start, seed, what it hears, and steps made.

    net        every node has an arc
    start      [n] an order
    seed       an integer, taken modulo 2^64
    compiled   False: the same without the compiled kernels

    steps      nodes settled and trials begun so far
    best       cost of the best order, found_at the step it was found in
    done       nothing is paid

    label      [n+1] int64, ascending along the order; label[n] = 0
    next, before   [n+1] int32, the order as a ring with n for both ends
    best_next, best_before   [n+1] int32, that of the best order, during a call of kernels, which make up for
               the moves `since` [2 (n + MOVES)] int32, in the place of a copy of all for each better order
    queue      [n] int32, a ring of nodes that are to be settled, from `head` on `size` of them
    """

    hears = True
    numbers = (*NUMBERS, "random")

    def __init__(self, net: NetArcs, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        n = self.n = self.placed = net.n
        self.compiled, self._net = compiled and available(), net
        self.ptr, self.near, self.pull = net.both_ways
        self.dense = self._table() if self.compiled else None
        self.escape = escapes(1 << ONE)
        self.label = np.zeros(n + 1, dtype=np.int64)
        self.next, self.before = (np.zeros(n + 1, dtype=np.int32) for _ in range(2))
        self.best_next, self.best_before = (np.zeros(n + 1, dtype=np.int32) for _ in range(2))
        self.since = np.zeros(2 * (n + MOVES), dtype=np.int32)
        self.queue, self.queued = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.uint8)
        self.moves = np.zeros(3 * MOVES, dtype=np.int32)
        self.best_order = start.astype(np.int32)
        self.scratch = np.zeros(3 * int(np.diff(self.ptr).max(initial=0)), dtype=np.int64)
        self.table = np.zeros((WINDOW + 1) << WINDOW, dtype=np.int64)
        for name in NUMBERS:
            setattr(self, name, 0)
        self.patience = max(PATIENCE * n, LEAST_PATIENCE)
        self.kicks, self.every = KICKS, EVERY
        # By turns a trial may be worse by these, times -log of a uniform number.
        self._heats = int(net.weights.sum()) // max(net.arcs, 1), int(np.median(net.weights)), 0
        self._rounds = 0
        self._warm()
        self.random = SplitMix(seed).state
        self._draws = SplitMix(seed ^ 0x5EED)
        self._hold(_Search(n), (*GIVEN, *ARRAYS))
        self._guests: list[tuple[int, np.ndarray]] = []
        self._known: list[tuple[int, tuple[int, ...]]] = []
        self._round: tuple[int, np.ndarray] | None = None
        self.best = net.cost(start)
        self._load(start)

    def _table(self) -> np.ndarray | None:
        """[n, n] int64, pulls of all pairs, where most have an arc."""
        n = self.n
        if n > DENSE or self._net.arcs < SHARE * n * (n - 1) / 2:
            return None
        found = np.zeros((n, n), dtype=np.int64)
        found[np.repeat(np.arange(n), np.diff(self.ptr)), self.near] = self.pull
        return found

    @property
    def done(self) -> bool:
        """Nothing is paid."""
        return not self.best

    @property
    def meeting_steps(self) -> int:
        """Steps between two meetings of several searches."""
        return max(LEAST_MEETING, 64 * self.n)

    def news(self) -> np.ndarray:
        """[1, n] int32, the best order."""
        return self.best_order[None, :].copy()

    def meet(self, others: list[np.ndarray]) -> None:
        """The best orders of the other searches."""
        for each in others:
            self.hear(each[0])

    def hear(self, solution: np.ndarray) -> None:
        """An order from elsewhere, that a round may begin from: the best are kept, of each cost one."""
        cost = self._net.cost(solution)
        if cost not in [each for each, _ in self._guests]:
            self._guests.append((cost, solution.astype(np.int32)))
            self._guests.sort(key=lambda guest: guest[0])
            del self._guests[KNOWN:]

    def solution(self) -> np.ndarray:
        """[n] int64, the best order, a copy."""
        return self.best_order.astype(np.int64)

    def run(self, steps: int) -> None:
        """Make so many steps, fewer only when done."""
        while steps > 0 and not self.done:
            steps -= self._run(steps)
            if self.stale >= self.patience and not self.size:
                self._end_round()

    def _run(self, count: int) -> int:
        return self._call(RUN, count) if self.compiled else plain.run(self, count)

    def _load(self, order: np.ndarray) -> None:
        order = np.ascontiguousarray(order, dtype=np.int32)
        if self.compiled:
            self._call(LOAD, address(order))
        else:
            plain.load(self, order)

    # ---- rounds --------------------------------------------------------------------------------------------

    def _end_round(self) -> None:
        """The next round: from a better order that was heard of, or a cross of two of the best."""
        found = [(self.cost, self._current()), (self.best, self.best_order.copy())]
        found += self._guests
        self._guests = []
        least = min(found, key=lambda each: each[0])
        if least[0] < self.best:
            self.best, self.found_at = least[0], self.steps
            self.best_order[:] = least[1]
        for cost, order in found:
            self._keep(cost, order)
        self._rounds += 1
        self._warm()
        self._load(self._crossed())

    def _warm(self) -> None:
        """By how much trials of this round may be worse."""
        self.heat, self.shift = self._heats[self._rounds % len(self._heats)], ONE
        if self.heat >= HOTTEST:
            self.heat, self.shift = self.heat >> ONE, 0

    def _current(self) -> np.ndarray:
        """[n] int32, the order of the state."""
        return np.argsort(self.label[: self.n], kind="stable").astype(np.int32)

    def _keep(self, cost: int, order: np.ndarray) -> None:
        """Among the best orders known, of each cost one."""
        if cost not in [each for each, _ in self._known]:
            self._known.append((cost, tuple(order.tolist())))
            self._known.sort()
            del self._known[KNOWN:]

    def _crossed(self) -> np.ndarray:
        """[n] int32, one of the best orders, half of whose places have their nodes as another has them."""
        first = self._draws.below(len(self._known))
        second = self._draws.below(len(self._known))
        order, other = (np.array(self._known[i][1], dtype=np.int32) for i in (first, second))
        places = np.array([self._draws.bits() >> 63 for _ in range(self.n)], dtype=bool)
        if first == second:  # nothing to cross with: drawn places in drawn order
            keys = np.array([self._draws.bits() for _ in range(self.n)], dtype=np.uint64)
            other = np.argsort(keys, kind="stable").astype(np.int32)
            places &= np.array([not self._draws.below(8) for _ in range(self.n)], dtype=bool)
        rank = places_of(other)
        order[places] = order[places][np.argsort(rank[order[places]], kind="stable")]
        return order
