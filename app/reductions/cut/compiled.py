"""The residual graph of app/native/reduce_cut.c."""

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from app.native.library import address, function
from app.reductions.cut.log import PASSES, RULES

Long, Pointer, Int = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int
NEW = function("lk_cut_reduce_new", Long, Pointer, Pointer, Pointer, returns=Pointer)
FREE = function("lk_cut_reduce_free", Pointer)
TIE = function("lk_cut_reduce_tie", Pointer, Long, Long, Long)
RUN = function("lk_cut_reduce_run", Pointer, Long, Long, returns=Int)
STEPS = function("lk_cut_reduce_steps", Pointer, returns=Long)
TOTALS = function("lk_cut_reduce_totals", Pointer, Pointer)
LOG = function("lk_cut_reduce_log", Pointer, Pointer)
KERNEL = function("lk_cut_reduce_kernel", Pointer, Pointer, Pointer, Pointer, Pointer)
LIFT = function("lk_cut_lift", Pointer, Long, Pointer, Pointer)

SLICE = 100_000  # nodes looked at in a call, which takes milliseconds, so that signals are heard
MOST_EDGES = 1 << 30  # half-edges are numbered by 32 bits


def available() -> bool:
    """True where the library was built."""
    return None not in (NEW, FREE, TIE, RUN, STEPS, TOTALS, LOG, KERNEL, LIFT)


class CompiledCutResidual:
    """What is left of a graph; arguments, fields and results are PlainCutResidual's."""

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray) -> None:
        self.n = len(indptr) - 1
        self._state = NEW(self.n, address(indptr), address(indices), address(weights))
        if not self._state:
            raise MemoryError(f"no memory to reduce a graph of {self.n} nodes and {indptr[-1] // 2} edges")
        weakref.finalize(self, FREE, self._state)
        self._read_totals()

    def _read_totals(self) -> None:
        totals = np.zeros(4 + len(RULES), dtype=np.int64)
        TOTALS(self._state, address(totals))
        self._alive, self._edges, self.offset, self._words, *counts = totals.tolist()
        self.counts = dict(zip(RULES, counts))

    def tie(self, u: int, v: int, apart: bool) -> None:
        """Put u where v is, or opposite."""
        TIE(self._state, u, v, int(apart))

    @property
    def steps(self) -> int:
        """Looks at a node so far, and passes over all."""
        return STEPS(self._state)

    def reduce(self, look: Callable[[], Any] = lambda: False, most: int = 0) -> None:
        """See CutReducer.reduce."""
        code = wanted = min(SLICE, most - self.steps) if most else SLICE
        while wanted > 0 and (code := RUN(self._state, wanted, PASSES)) > 0 and not look():
            wanted = min(SLICE, most - self.steps) if most else SLICE
        if code < 0:
            raise MemoryError(f"no memory left while reducing a graph of {self.n} nodes")
        self._read_totals()

    def kernel(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """indptr int64, indices int32, weights int64, nodes int64 of the nodes that have edges."""
        indptr = np.zeros(self._alive + 1, dtype=np.int64)
        indices, weights = (np.empty(2 * self._edges, dtype=kind) for kind in (np.int32, np.int64))
        nodes = np.empty(self._alive, dtype=np.int64)
        KERNEL(self._state, *map(address, (indptr, indices, weights, nodes)))
        return indptr, indices, weights, nodes

    def log(self) -> np.ndarray:
        """[words] int64, see log.py."""
        log = np.empty(self._words, dtype=np.int64)
        LOG(self._state, address(log))
        return log


def lift(log: np.ndarray, entries: int, sides: np.ndarray) -> None:
    """As cut_log.lift, of a log of so many entries."""
    ends, found = np.empty(entries, dtype=np.int64), sides.astype(np.uint8)
    LIFT(address(log), len(log), address(ends), address(found))
    sides[:] = found.astype(bool)
