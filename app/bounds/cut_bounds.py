"""Upper bounds on the cut that get better with time, each proved before it counts."""

import math
import time

import numpy as np
import scipy.sparse as sp

from app.bounds.cut_sdp import MixingMethod, smallest_eigenvalue
from app.bounds.cut_verify import CutCertificate, can_factor, dual_value, positive_semidefinite
from app.graphs.fixed_point import integer_weights
from app.graphs.graph import Graph

BATCH = 10  # sweeps between two looks at the clock
SETTLED = 1e-7  # the relaxation has converged when a batch gains less than this share
TRIES = 6  # shifts tried until a factorisation ends
FLOPS = 1.5e10  # of a factorisation, per second


class CutBounds:
    """First the sum of the positive weights, then the eigenvalue bound, then the semidefinite relaxation.

    upper    the best bound proved so far, in units of integer_weights
    method   how it was found
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._weights, _ = integer_weights(graph)
        positive = int(self._weights[self._weights > 0].sum()) // 2
        self._best = CutCertificate(positive, "sum of the positive weights")
        self._possible = len(graph.indices) > 0 and can_factor(graph)
        self._matrix = sp.csr_array(
            (self._weights.astype(np.float64), graph.indices, graph.indptr), shape=(graph.n, graph.n)
        )
        self._mixing: MixingMethod | None = None
        self._value = 0.0
        self._places = _places(self._matrix)

    @property
    def upper(self) -> int:
        """The best bound proved so far."""
        return self._best.upper

    @property
    def method(self) -> str:
        """How the best bound was found."""
        return self._best.method

    @property
    def least_seconds(self) -> float:
        """An estimate of the shortest call of `improve`: one Cholesky factorisation, as if it were dense."""
        return self._graph.n**3 / 3 / FLOPS if self._possible else 0.0

    check_seconds = least_seconds

    def certificate(self) -> CutCertificate:
        """The best bound with its witness."""
        return self._best

    def improve(self, seconds: float, lower: int | None = None) -> bool:
        """Work for about `seconds` and prove what was gained; returns whether there is more to gain.

        A call makes one step at least; its last proof (one Cholesky factorisation) comes on top of `seconds`.
        lower   a cut that is known: a bound that meets it ends the work
        """
        if not self._possible or (lower is not None and self.upper <= lower):
            return False
        stop = time.perf_counter() + seconds
        if self._mixing is None:
            # The eigenvalue bound: all entries of W + Diag(y) add up to the same in every row.
            self._prove(-np.asarray(self._matrix.sum(axis=1)).ravel(), "largest eigenvalue of the Laplacian")
            if lower is not None and self.upper <= lower:
                return False
            self._mixing = MixingMethod(self._matrix, self._graph)
        while not (settled := self._sweeps(stop)) and time.perf_counter() < stop:
            pass
        self._prove(self._mixing.y, "semidefinite relaxation")
        self._possible = not settled
        return not settled and (lower is None or self.upper > lower)

    def _sweeps(self, stop: float) -> bool:
        """A batch of sweeps, cut short at the time `stop`; True where a whole one gained next to nothing."""
        for _ in range(BATCH):
            value = self._mixing.sweep()
            if time.perf_counter() >= stop:
                return False
        gained, self._value = value - self._value, value
        return gained <= SETTLED * value

    def _prove(self, y: np.ndarray, method: str) -> None:
        """Shift y until W + Diag(y) is proved semidefinite, and keep the bound where it is better."""
        least = smallest_eigenvalue(self._matrix, y)
        size = float(np.abs(y - least).max(initial=1.0))
        slack = size * 2.0**-20
        for _ in range(TRIES):
            fixed = np.ceil(np.ldexp(y - least + slack, self._places)).astype(np.int64)
            upper = dual_value(self._weights, fixed, self._places)
            if upper >= self.upper:
                return
            if positive_semidefinite(self._graph, self._weights, fixed, self._places):
                self._best = CutCertificate(upper, method, fixed, self._places)
                return
            slack *= 4


def _places(matrix: sp.csr_array) -> int:
    """Binary places of a certificate's entries: none of them reaches 2^52 units."""
    largest = float(np.abs(matrix).sum(axis=1).max()) if matrix.nnz else 1.0
    return min(30, 48 - math.frexp(largest)[1])
