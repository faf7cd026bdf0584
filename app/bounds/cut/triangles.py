"""The bound of triangle inequalities on the cut, with its witness."""

import numpy as np
from scipy.linalg import eigvalsh

from app.bounds.cut.relaxation import Multipliers, TriangleRelaxation, lifted, mean_size
from app.bounds.cut.verify import TriangleCertificate, dual_value
from app.graphs.graph import Graph

METHOD = "semidefinite relaxation with triangles"
SMOOTHING = 3e-3  # to begin with: the relaxation without triangles is solved
TRIES = 6  # shifts tried until a factorisation ends


class CutTriangles:
    """The semidefinite relaxation of a graph's cuts with triangle inequalities, a round at a time.

    settled  nothing more is to be gained
    """

    def __init__(self, graph: Graph, weights: np.ndarray, y: np.ndarray, compiled: bool = True) -> None:
        """weights [nnz] int64 of its entries; y [n] of the dual without triangles: W + Diag(y) >= 0."""
        self._graph, self._weights = graph, weights
        self._W = np.zeros((graph.n, graph.n))
        self._W[graph.row_of(), graph.indices] = weights
        self._scale = 4 * mean_size(self._W)
        none = np.zeros((0, 4), dtype=np.int32)
        start = Multipliers(y / self._scale, none, np.zeros(0), SMOOTHING)
        self._relaxation = TriangleRelaxation(self._W, start, compiled=compiled)

    @property
    def settled(self) -> bool:
        """Whether the work is done."""
        return self._relaxation.settled

    def round(self) -> None:
        """Work for about triangles.round_seconds."""
        self._relaxation.round()

    def certificate(self, places: int, upper: int) -> TriangleCertificate | None:
        """The bound proved, where it is below `upper`; multiples of 2^-places."""
        if self._weights.sum() / 4 + self._relaxation.bound >= upper:
            return None
        at = self._relaxation.at
        M = lifted(self._W, at, self._scale / 4) - np.diag(at.y)
        last = len(M) - 1
        least = -self._scale * float(eigvalsh(M, subset_by_index=[last, last])[0])
        y, used = self._scale * at.y - least, at.g > 0
        half = np.floor(np.ldexp(self._scale * at.g[used] / 2, places)).astype(np.int64)
        slack = max(float(np.abs(y).max()), 1.0) * 2.0**-20
        for _ in range(TRIES):
            fixed = np.ceil(np.ldexp(y + slack, places)).astype(np.int64)
            proved = dual_value(self._weights, np.concatenate([fixed, 2 * half]), places)
            found = TriangleCertificate(proved, METHOD, fixed, places, at.triangles[used], 2 * half)
            if proved >= upper:
                return None
            if found.semidefinite(self._graph, self._weights):
                return found
            slack *= 4
        return None
