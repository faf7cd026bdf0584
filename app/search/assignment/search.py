"""Local search for quadratic assignments: swaps of two places.

Where the tables are small, or full, what every swap would add to the cost is kept, and followed in constant
time for pairs that a swap leaves alone. In a step the best swap is made of those that put one of both nodes
where it was not for a drawn number of steps, or that are better than all before (robust tabu search). Where
a phase has found nothing better for `span` steps, its best places go among the elites, and the next phase
begins where two of these are crossed: at places that both have, else at those of either; while there are too
few, or these are alike, at the best places shaken; and one in eight times anywhere.

Large sparse graphs are annealed: a step proposes swaps of a drawn node with the one whose place is next to
that of a neighbour of the first, or with any, by sums over neighbours alone. A swap is made if it costs
nothing, else with probability exp(-coldness loss / unit); the coldness rises linearly in a cycle of steps,
each cycle takes twice as many as the one before and begins at the best places.

Source   Taillard, Robust taboo search for the quadratic assignment problem, 1991 (the table and its bars);
         Benlic and Hao, Memetic search for the quadratic assignment problem, 2015 (phases of tabu search
         between elites that are crossed uniformly)
"""

import ctypes
import math
from typing import Any

import numpy as np

from app.graphs.pairing import Quadratic
from app.native.library import function
from app.native.state import KernelState
from app.rng import SplitMix
from app.search.annealing import CONSTANTS, set_course
from app.search.assignment import plain
from app.toolbox import Search

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ELITES, PHASE, LEAST_PHASE = 10, 20, 100  # elites; steps of a phase without gain, for each node and at least
SHAKEN = 8  # one node in so many is shaken, or four times as many
TABLED, DENSE, MOST_TABLED = 160, 0.2, 3000  # nodes with a table; beyond, entries of both graphs, and at most
HOT = (1.5, 2.5)  # coldness at the start of even cycles, of odd ones
MEETING = 1 << 14

TABU_GIVEN = ("a", "b", "linear")
TABU_ARRAYS = (
    "delta", "free_at", "ea", "eb", "fa", "fb", "pool_cost", "p", "best_p", "phase_p", "used", "pool",
)  # fmt: skip
TABU_FIXED = ("symmetric", "low", "width", "span", "elites", "shake")
TABU_NUMBERS = ("cost", "best", "phase_best", "phase_end", "steps", "found_at", "filled")
WALK_PTRS = tuple(f"{name}_ptr" for name in ("a", "b", "at", "bt", "linear"))
WALK_DATA = tuple(f"{name}_data" for name in ("a", "b", "at", "bt", "linear"))
WALK_NEAR = tuple(f"{name}_near" for name in ("a", "b", "at", "bt", "linear"))
WALK_ARRAYS = ("hot", "escape", "mark_x", "mark_y", *WALK_NEAR, "p", "q", "best_p")
WALK_NUMBERS = ("cost", "best", "steps", "found_at", "cycle", "at")


def _struct(arrays: tuple[str, ...], numbers: tuple[str, ...]) -> type[ctypes.Structure]:
    fields = [("n", Long), *((name, Pointer) for name in arrays), *((name, Long) for name in numbers)]
    return type("State", (ctypes.Structure,), {"_fields_": [*fields, ("random", ctypes.c_uint64)]})


TABU = _struct((*TABU_GIVEN, *TABU_ARRAYS), (*TABU_FIXED, *TABU_NUMBERS))
WALK = _struct((*WALK_PTRS, *WALK_DATA, *WALK_ARRAYS), ("symmetric", *WALK_NUMBERS, *CONSTANTS))
RUN_TABU = function("lk_assignment_tabu", ctypes.POINTER(TABU), Long)
LOAD = function("lk_assignment_load", ctypes.POINTER(TABU))
ANNEAL = function("lk_assignment_anneal", ctypes.POINTER(WALK), Long)
RETURN = function("lk_assignment_return", ctypes.POINTER(WALK))


def is_tabled(core: Quadratic) -> bool:
    """Whether a search keeps a table of all swaps: few nodes, or both graphs nearly full."""
    full = min(core.a.nnz, core.b.nnz) >= DENSE * core.k**2
    return core.k <= TABLED or (full and core.k <= MOST_TABLED)


class _Swaps(KernelState, Search):
    """What both searches share; functions of core, start, seed, what they hear, and steps made.

    p, best_p   [k] int32, places of the nodes, and the best ones      best   their cost, with the constant
    """

    hears = True
    meeting_steps = MEETING

    def __init__(self, core: Quadratic, start: np.ndarray, seed: int, compiled: bool) -> None:
        """start   [k] int64, a permutation      seed   an integer, taken modulo 2^64
        compiled   False: the same without the compiled kernels
        """
        self.core, self.n, self.symmetric = core, core.k, int(core.symmetric)
        self.compiled = compiled and None not in (RUN_TABU, LOAD, ANNEAL, RETURN)
        self.p, self.best_p = start.astype(np.int32), start.astype(np.int32)
        self.steps = self.found_at = 0
        self.random = SplitMix(seed).state

    @property
    def done(self) -> bool:
        """Whether there is nothing to swap."""
        return self.n < 2

    def solution(self) -> np.ndarray:
        """[k] int64, the best places, a copy."""
        return self.best_p.astype(np.int64)

    # ---- what others found ---------------------------------------------------------------------------------

    def news(self) -> np.ndarray:
        """[1, k] int64, the best places."""
        return self.solution()[None, :]

    def meet(self, others: list[np.ndarray]) -> None:
        """The best places of the other searches: where these are better the search goes on from them."""
        for each in others:
            self.hear(each[0])


class TabuSearch(_Swaps):
    """Robust tabu search in phases between elites, by a table of all swaps.

    delta      [k, k] int64, above the diagonal: what a swap adds        free_at   [k, k] int64, see above
    pool, pool_cost   [ELITES, k] int32, [ELITES] int64, the elites      phase_p   the best places of a phase
    """

    numbers = (*TABU_NUMBERS, "random")

    def __init__(self, core: Quadratic, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        super().__init__(core, start, seed, compiled)
        n = self.n
        self.a, self.b, self.linear = core.tables
        self.delta, self.free_at = (np.zeros((n, n), dtype=np.int64) for _ in range(2))
        self.ea, self.eb, self.fa, self.fb = (np.zeros(n, dtype=np.int64) for _ in range(4))
        self.phase_p, self.used = (np.zeros(n, dtype=np.int32) for _ in range(2))
        self.pool, self.pool_cost = np.zeros((ELITES, n), dtype=np.int32), np.zeros(ELITES, dtype=np.int64)
        self.low, self.width = max(1, 9 * n // 10), max(1, n // 5 + 1)
        self.span, self.elites, self.shake = max(LEAST_PHASE, PHASE * n), ELITES, max(1, n // SHAKEN)
        self.cost = self.phase_best = self.phase_end = self.filled = 0
        self.best = core.cost(start)
        self._hold(TABU(n), (*TABU_GIVEN, *TABU_ARRAYS), TABU_FIXED)
        if self.n > 1:
            self._load()

    def _call(self, kernel: Any, *arguments: int) -> None:
        """Run a kernel on the state; it knows nothing of the constant."""
        self._shift(-self.core.constant)
        super()._call(kernel, *arguments)
        self._shift(self.core.constant)

    def _shift(self, by: int) -> None:
        """Costs with the constant, or without."""
        self.best += by
        self.cost += by
        self.phase_best += by
        self.pool_cost[: self.filled] += by

    def _load(self) -> None:
        """Go on from the best places."""
        self.p[:] = self.best_p
        if self.compiled:
            self._call(LOAD)
        else:
            self._plain(plain.load)

    def _plain(self, twin: Any, *arguments: int) -> None:
        self._shift(-self.core.constant)
        twin(self, *arguments)
        self._shift(self.core.constant)

    def run(self, steps: int) -> None:
        """So many swaps."""
        if self.done:
            return
        if self.compiled:
            self._call(RUN_TABU, steps)
        else:
            self._plain(plain.run, steps)

    def hear(self, solution: np.ndarray) -> None:
        """Places from elsewhere; where they are better a phase begins there."""
        cost = self.core.cost(solution)
        if cost < self.best:
            self.best, self.found_at, self.best_p[:] = cost, self.steps, solution
            self._load()


class WalkSearch(_Swaps):
    """Annealing of swaps by neighbours alone.

    q   [k] int32, the node at each place
    *_ptr, *_near, *_data   rows of a, b and what is linear, and columns of a and b (at, bt)
    mark_x, mark_y, hot, escape, ...   scratch, and the course (app/search/annealing.py)
    """

    numbers = (*WALK_NUMBERS, "random")

    def __init__(self, core: Quadratic, start: np.ndarray, seed: int, compiled: bool = True) -> None:
        super().__init__(core, start, seed, compiled)
        matrices = (core.a, core.b, *core.columnwise, core.linear)
        for name, matrix in zip(("a", "b", "at", "bt", "linear"), matrices):
            setattr(self, f"{name}_ptr", matrix.indptr.astype(np.int64))
            setattr(self, f"{name}_near", np.append(matrix.indices, 0).astype(np.int32))
            setattr(self, f"{name}_data", np.append(matrix.data, 0).astype(np.int64))
        self.q, (self.mark_x, self.mark_y) = (
            np.argsort(start).astype(np.int32),
            np.zeros((2, self.n), np.int64),
        )
        self.unit = _unit(core)
        set_course(self, HOT)
        self.best = self.cost = core.cost(start)
        self._hold(WALK(self.n), (*WALK_PTRS, *WALK_DATA, *WALK_ARRAYS), ("symmetric", *CONSTANTS))

    def run(self, steps: int) -> None:
        """So many steps of 32 proposals."""
        if self.done:
            return
        if self.compiled:
            self._call(ANNEAL, steps)
        else:
            plain.anneal_places(self, steps)

    def hear(self, solution: np.ndarray) -> None:
        """Places from elsewhere; where they are better the next cycle begins there."""
        cost = self.core.cost(solution)
        if cost < self.best:
            self.best, self.found_at, self.best_p[:] = cost, self.steps, solution


def _squares(numbers: np.ndarray) -> int:
    """The sum of the squares of whole numbers, exactly."""
    most = int(np.abs(numbers).max(initial=0))
    if most * most * len(numbers) < 1 << 63:
        return int(np.dot(numbers, numbers))
    return sum(x * x for x in numbers.tolist())


def _unit(core: Quadratic) -> int:
    """A loss that is told apart: what one edge on another counts, by root mean squares of both weights."""
    means = [math.isqrt(_squares(each.data) // each.nnz) if each.nnz else 0 for each in (core.a, core.b)]
    edge = means[0] * means[1] * (2 if core.symmetric else 1)
    return edge or max(int(np.abs(core.linear.data).max(initial=1)), 1)
