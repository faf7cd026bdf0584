"""The residual graph of app/native/reduce.c."""

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from app.native.library import address, function
from app.reductions.cover.log import RULES

Long, Pointer, Int = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int
NEW = function("lk_reduce_new", Long, Pointer, Pointer, Pointer, Int, Int, returns=Pointer)
FREE = function("lk_reduce_free", Pointer)
RUN = function("lk_reduce_run", Pointer, Long, returns=Int)
TAKE = function("lk_reduce_take", Pointer, Pointer, Long, returns=Int)
TOTALS = function("lk_reduce_totals", Pointer, Pointer)
LOG = function("lk_reduce_log", Pointer, Pointer)
DEGREES = function("lk_reduce_degrees", Pointer, Pointer)
KERNEL = function("lk_reduce_kernel", Pointer, Pointer, Pointer, Pointer, Pointer)
STEPS = function("lk_reduce_steps", Pointer, returns=Long)
PARTNERS = function("lk_reduce_partners", Pointer, Pointer, Pointer, returns=Int)
LIFT = function("lk_reduce_lift", Pointer, Pointer, Pointer)

SLICE = 50_000  # nodes of the queues per call: a call takes milliseconds, so that signals are heard


def available() -> bool:
    """True where the library was built."""
    return None not in (NEW, FREE, RUN, TAKE, TOTALS, LOG, DEGREES, KERNEL, STEPS, PARTNERS, LIFT)


class CompiledResidual:
    """What is left of a graph; fields and results are PlainResidual's.

    indptr, indices, weight [n]   the graph to start from; unit: all weights are one
    settled                       no rule applies to it
    """

    def __init__(
        self, indptr: np.ndarray, indices: np.ndarray, weight: np.ndarray, unit: bool, settled: bool = False
    ) -> None:
        self.n = len(weight)
        arrays = address(indptr), address(indices), address(weight)
        self._state = NEW(self.n, *arrays, int(unit), int(settled))
        if not self._state:
            raise MemoryError(f"no memory to reduce a graph of {self.n} nodes and {indptr[-1] // 2} edges")
        weakref.finalize(self, FREE, self._state)
        self._totals = np.zeros(5 + len(RULES), dtype=np.int64)
        self._read_totals()

    def _read_totals(self) -> None:
        TOTALS(self._state, address(self._totals))
        self.alive, self.edges, self.offset, exact, self._log_words, *counts = self._totals.tolist()
        self.exact, self.counts = bool(exact), dict(zip(RULES, counts))

    def _check(self, code: int) -> int:
        if code < 0:
            raise MemoryError(f"no memory left while reducing a graph of {self.n} nodes")
        return code

    @property
    def steps(self) -> int:
        """Nodes that came to the rules so far, and relaxations."""
        return STEPS(self._state)

    def reduce(self, look: Callable[[], Any] = lambda: False, most: int = 0) -> None:
        """See CoverReducer.reduce."""
        wanted = min(SLICE, most - self.steps) if most else SLICE
        while wanted > 0 and self._check(RUN(self._state, wanted)) and not look():
            wanted = min(SLICE, most - self.steps) if most else SLICE
        self._read_totals()

    def take(self, nodes: np.ndarray) -> None:
        """Put nodes [k] int64 into the cover, those without an edge excepted."""
        self._check(TAKE(self._state, address(nodes), len(nodes)))
        self._read_totals()

    def kernel(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """indptr int64, indices int32, nodes int64, weights int64 of the nodes that have edges."""
        indptr = np.zeros(self.alive + 1, dtype=np.int64)
        indices = np.empty(2 * self.edges, dtype=np.int32)
        nodes, weight = (np.empty(self.alive, dtype=np.int64) for _ in range(2))
        KERNEL(self._state, address(indptr), address(indices), address(nodes), address(weight))
        return indptr, indices, nodes, weight

    def partners(self) -> np.ndarray | None:
        """See CoverReducer.partners."""
        number, partner = np.empty(self.n, dtype=np.int32), np.empty(self.alive, dtype=np.int64)
        return partner if PARTNERS(self._state, address(number), address(partner)) else None

    def degrees(self) -> np.ndarray:
        """[n] int64."""
        degrees = np.empty(self.n, dtype=np.int64)
        DEGREES(self._state, address(degrees))
        return degrees

    def log(self) -> np.ndarray:
        """[words] int64, see app/reductions/cover/log.py."""
        log = np.empty(self._log_words, dtype=np.int64)
        LOG(self._state, address(log))
        return log

    def lift(self, in_cover: np.ndarray) -> None:
        """Complete a cover of what is left, in_cover [n] bool."""
        ends = np.empty(sum(self.counts.values()), dtype=np.int64)
        LIFT(self._state, address(ends), address(in_cover))
