"""Upper bounds on the cut that get better with time, each proved before it counts."""

import math
import time
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from app.bounds.cut.cycles import CycleCertificate
from app.bounds.cut.packing import CutPacking
from app.bounds.cut.relaxation import round_seconds
from app.bounds.cut.sdp import MixingMethod, smallest_eigenvalue
from app.bounds.cut.triangles import CutTriangles
from app.bounds.cut.verify import (
    CutCertificate,
    TriangleCertificate,
    can_factor,
    dual_value,
    least_factor,
    positive_semidefinite,
)
from app.bounds.factor import ROOM
from app.bounds.sliced import SlicedBounds
from app.graphs.fixed_point import integer_weights
from app.graphs.graph import Graph

BATCH = 10  # sweeps between two looks at what they gain
SETTLED = 1e-7  # the relaxation has converged when a batch gains less than this share
TRIES = 6  # shifts tried until a factorisation ends
FLOPS = 1.5e10  # of a factorisation, per second
MOST_EDGES = 10_000_000  # of a packing of odd cycles
MOST_PER_NODE = 8  # edges; with more the packing is weak, and worth its time only where
LONG = 5.0  # s: a factorisation takes more
LONGEST_SHARE = 0.15  # of a time limit: the relaxation is left to odd cycles where one step takes more
ROUNDS, ROUNDS_SHARE = 6, 0.25  # of triangles, which are left out where so many take more of a time limit,
MOST_DENSE = 3_000  # nodes; or where there are more
LARGE = 1 << 20  # entries: from here on to find an order of the rows for a factor waits for the first call
READY_SECONDS, READY_SHARE = 4e-7, 0.15  # for each node and entry, before work on a bound; of the time left
END = object()
Witness = CutCertificate | CycleCertificate | TriangleCertificate


class CutBounds(SlicedBounds):
    """First the sum of the positive weights, then the eigenvalue bound, then by turns, as long as each gains,
    the semidefinite relaxation, which is good on dense graphs, and odd cycles, which are on sparse ones. The
    relaxation goes on with triangle inequalities where the graph is small enough.

    upper    the best bound proved so far, in units of integer_weights
    method   how it was found
    """

    def __init__(self, graph: Graph, compiled: bool = True, cycles: bool = True) -> None:
        """cycles   False: the relaxation alone."""
        self._graph, self._compiled = graph, compiled
        self._weights, _ = integer_weights(graph)
        positive = int(self._weights[self._weights > 0].sum()) // 2
        self._best: Witness = CutCertificate(positive, "sum of the positive weights")
        worth = graph.edges <= MOST_PER_NODE * graph.n or self._factor_seconds > LONG
        self._with_cycles = cycles and worth and 0 < graph.edges <= MOST_EDGES
        self._possible = len(graph.indices) > 0 and least_factor(graph) <= ROOM
        if len(graph.indices) < LARGE:
            self._possible = self._possible and can_factor(graph)
        self._with_triangles = graph.n <= MOST_DENSE
        self._made_ready = self._too_late = False
        self._mixing: MixingMethod | None = None
        self._value, self._swept = 0.0, 0
        self._cycles: CutPacking | None = None
        self._slices: Iterator[None] | None = None
        self._triangles: CutTriangles | None = None
        self._spent = {"relaxation": 0.0, "cycles": 0.0, "triangles": 0.0}

    @cached_property
    def _matrix(self) -> sp.csr_array:
        """The weights."""
        graph = self._graph
        entries = self._weights.astype(np.float64), graph.indices, graph.indptr
        return sp.csr_array(entries, shape=(graph.n, graph.n))

    @cached_property
    def _places(self) -> int:
        """Binary places of a certificate's entries."""
        return _places(self._matrix)

    def _make_ready(self) -> None:
        """What the first call of `improve` begins with: seconds for a graph of millions of edges."""
        self._made_ready = True
        self._possible = self._possible and can_factor(self._graph)
        self._with_triangles = self._with_triangles and self._possible and self._places >= 0
        if self._with_cycles:
            self._cycles = CutPacking(self._graph, self._weights, self._compiled)
            self._slices = self._cycles.slices()

    @property
    def upper(self) -> int:
        """The best bound proved so far."""
        return self._best.upper

    @property
    def method(self) -> str:
        """How the best bound was found."""
        return self._best.method

    @property
    def _factor_seconds(self) -> float:
        """An estimate of one Cholesky factorisation, as if it were dense."""
        return self._graph.n**3 / 3 / FLOPS

    @property
    def least_seconds(self) -> float:
        """An estimate of the shortest call of `improve`, where it may be a factorisation or a round, or there
        is much to make ready for the time that is left.
        """
        if self._triangles is not None:
            return round_seconds(self._graph.n) + self._factor_seconds
        before = self._ready_seconds if self._too_late and not self._made_ready else 0.0
        return before + (self._factor_seconds if self._possible else 0.0)

    @property
    def closing(self) -> bool:
        """Whether odd cycles are at work, which often meet the best cut of a sparse graph."""
        return self._slices is not None or (self._with_cycles and not self._made_ready)

    @property
    def _ready_seconds(self) -> float:
        """An estimate of what `_make_ready` takes."""
        return READY_SECONDS * (self._graph.n + len(self._graph.indices))

    @property
    def check_seconds(self) -> float:
        """An estimate of what a check of the best bound takes."""
        factored = isinstance(self._best, TriangleCertificate) or getattr(self._best, "y", None) is not None
        return self._factor_seconds if factored else 0.0

    def expect(self, seconds: float) -> None:
        """The time limit of the run: no factorisation that takes much of it is waited for."""
        if self._with_cycles and self._factor_seconds > LONGEST_SHARE * seconds:
            self._possible = self._with_triangles = False
        if ROUNDS * round_seconds(self._graph.n) > ROUNDS_SHARE * seconds:
            self._with_triangles = False

    def until(self, clock: float) -> None:
        """When, by time.perf_counter(), all has to be over: work that takes much to make ready is not begun
        where little time is left.
        """
        self._too_late = self._ready_seconds > READY_SHARE * (clock - time.perf_counter())

    @property
    def sides(self) -> np.ndarray | None:
        """[n] bool, the cut that the last prices of odd cycles lead to; None at first, or without."""
        return None if self._cycles is None else self._cycles.sides

    def certificate(self) -> Witness:
        """The best bound with its witness."""
        return self._best

    def improve(self, seconds: float, lower: int | None = None) -> bool:
        """Work for about `seconds` and prove what was gained; returns whether there is more to gain.

        A call makes one step at least; its last proof (one Cholesky factorisation) comes on top of `seconds`.
        lower   a cut that is known: a bound that meets it ends the work
        """
        stop, swept = time.perf_counter() + seconds, False
        if self._goes_on(lower) and not self._made_ready:
            self._make_ready()
        while self._goes_on(lower):
            begun = time.perf_counter()
            turn = self._turn()
            if turn == "cycles":
                self._separate()
            elif turn == "triangles":
                self._round()
            else:
                swept = self._relax(stop, lower)
            self._spent[turn] += time.perf_counter() - begun
            if time.perf_counter() >= stop:
                break
        if swept and self._mixing is not None:
            begun = time.perf_counter()
            self._prove(self._mixing.y, "semidefinite relaxation")
            self._spent["relaxation"] += time.perf_counter() - begun
        return self._goes_on(lower)

    def _goes_on(self, lower: int | None) -> bool:
        """Whether there is something left to do, and to gain."""
        return bool(self._at_work()) and (lower is None or self.upper > lower)

    def _at_work(self) -> list[str]:
        """What has more to do."""
        parts = {
            "relaxation": self._possible,
            "triangles": self._triangles is not None,
            "cycles": self.closing,
        }
        return [name for name, more in parts.items() if more]

    def _turn(self) -> str:
        """Who works next: the one that has had least time."""
        return min(self._at_work(), key=self._spent.get)

    def _round(self) -> None:
        """A round of triangles, and the proof of what it gained."""
        self._triangles.round()
        found = self._triangles.certificate(self._places, self.upper)
        self._best = found or self._best
        if self._triangles.settled:
            self._triangles = None

    def _separate(self) -> None:
        """A slice of the odd cycles."""
        if next(self._slices, END) is END:
            self._slices = None
        best = self._cycles.best
        if best is not None and best.upper < self.upper:
            self._best = best

    def _relax(self, stop: float, lower: int | None) -> bool:
        """The eigenvalue bound, or a batch of sweeps; True where sweeps are to be proved."""
        if self._mixing is None:
            # All entries of W + Diag(y) add up to the same in every row.
            self._prove(-np.asarray(self._matrix.sum(axis=1)).ravel(), "largest eigenvalue of the Laplacian")
            self._mixing = MixingMethod(self._matrix, self._graph)
            if lower is not None and self.upper <= lower:
                return False
        self._possible = not self._sweeps(stop)
        if not self._possible and self._with_triangles:
            self._triangles = CutTriangles(self._graph, self._weights, self._mixing.y, self._compiled)
        return True

    def _sweeps(self, stop: float) -> bool:
        """Sweeps until a batch of them is whole or it is time to stop; True where one gained next to nothing.

        A batch goes on in the next call: short calls end, too.
        """
        while True:
            value = self._mixing.sweep()
            self._swept += 1
            if self._swept % BATCH == 0:
                gained, self._value = value - self._value, value
                return gained <= SETTLED * value
            if time.perf_counter() >= stop:
                return False

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
