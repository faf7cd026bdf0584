"""HeavySets: heavy independent sets of a small graph, by exchanges from every node on.

From each node on, so many rounds: the node of the largest gain, its weight less that of its neighbours in the
set, comes in, of equal ones the first; those neighbours leave and stay away for AWAY rounds. Gains may be
negative. The heaviest set of each course counts.

Source   tabu search after Friden, Hertz and de Werra, Computing 1989
"""

import ctypes

import numpy as np

from app.graphs.graph import Graph
from app.native.library import address, function, give_arrays

AWAY = 7  # native/heavy_sets.c
Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ARRAYS = ("indptr", "indices", "weights", "inside", "best", "cost", "until")


class _Course(ctypes.Structure):
    _fields_ = (*((name, Long) for name in ("n", "rounds")), *((name, Pointer) for name in ARRAYS))


HEAVY_SETS = function("lk_heavy_sets", ctypes.POINTER(_Course), Pointer, Pointer)


class HeavySets:
    """Courses through the independent sets of one whole graph, of at most some thousand nodes."""

    best = None  # the kernel's own

    def __init__(self, graph: Graph, rounds: int, compiled: bool = True) -> None:
        self.n, self.rounds = graph.n, rounds
        self._compiled = compiled and HEAVY_SETS is not None
        self.indptr = np.ascontiguousarray(graph.indptr, dtype=np.int64)
        self.indices = np.ascontiguousarray(graph.indices, dtype=np.int32)
        self.inside = np.empty(self.n, dtype=np.uint8)
        self.cost, self.until = (np.empty(self.n, dtype=np.int32) for _ in range(2))

    def heavier(self, weights: np.ndarray, least: int) -> dict[bytes, int]:
        """Sets heavier than `least`, by their nodes as bytes of 0 and 1, [n] each: their weights.

        weights   [n] int64, not negative, adding up to less than 2^31
        """
        sets, totals = self._compiled_sets(weights) if self._compiled else self._plain_sets(weights)
        heavy = np.flatnonzero(totals > least).tolist()
        return {sets[course].tobytes(): int(totals[course]) for course in heavy}

    def _compiled_sets(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[n, n] uint8, the heaviest set of each course, and [n] int64, what it weighs."""
        self.weights = weights.astype(np.int32)
        sets, totals = np.empty((self.n, self.n), dtype=np.uint8), np.empty(self.n, dtype=np.int64)
        course = _Course(self.n, self.rounds)
        give_arrays(self, course, ARRAYS)
        HEAVY_SETS(course, address(sets), address(totals))
        return sets, totals

    def _plain_sets(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same without the kernel."""
        near = np.zeros((self.n, self.n), dtype=bool)
        near[np.repeat(np.arange(self.n), np.diff(self.indptr)), self.indices] = True
        sets, totals = np.empty((self.n, self.n), dtype=np.uint8), np.empty(self.n, dtype=np.int64)
        for first in range(self.n):
            sets[first], totals[first] = self._plain_course(near, weights, first)
        return sets, totals

    def _plain_course(self, near: np.ndarray, weights: np.ndarray, first: int) -> tuple[np.ndarray, int]:
        """[n] uint8 and what it weighs: the heaviest set of the course that begins at node `first`."""
        inside, until = np.zeros(self.n, dtype=bool), np.zeros(self.n, dtype=np.int64)
        inside[first] = True
        best, most = inside.astype(np.uint8), int(weights[first])
        for round_ in range(self.rounds):
            allowed = ~inside & (until <= round_)
            if not allowed.any():
                break
            gains = weights - near[:, inside] @ weights[inside]
            node = int(np.where(allowed, gains, np.iinfo(np.int64).min).argmax())
            out = inside & near[node]
            until[out] = round_ + AWAY
            inside[out], inside[node] = False, True
            if (total := int(weights[inside].sum())) > most:
                best, most = inside.astype(np.uint8), total
        return best, most
