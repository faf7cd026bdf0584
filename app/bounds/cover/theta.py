"""The theta function of a graph: upper bounds on its independent sets by semidefinite programming."""

import math
import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from app.bounds.cover.theta_verify import BLOCK, ThetaCertificate, semidefinite, unit_vector
from app.bounds.cut.relaxation import positive_part
from app.graphs.graph import Graph
from app.rng import stream

EIGENVALUE, THETA = "eigenvalues", "theta function"  # methods
MOST = 5_000  # nodes: matrices of float32 take 100 MB each
BYTES = 36  # of all matrices, for each pair of nodes in each order
DENSE = 200  # nodes up to which all of a matrix is asked for its least eigenvalue
SIGMA = 0.1  # the penalty of the augmented Lagrangian
RELAXATION = 1.6  # of the step of X: anything below (1 + sqrt 5)/2 converges
LOOK = 5  # steps between two looks at the bound
GAIN = 1e-4  # share of the bound: looks that gain less in all are the last,
PATIENCE = 8  # so many where bound and program agree
CLOSE = 2e-3  # as well as this,
LEAP = 30  # so many before: bounds fall by leaps
HOPELESS = 16  # looks that gain less than 1 / SLOW of what a rival leads by are the last, too
SLOW = 2.0
TRIES = 4  # larger bounds tried until a factorisation ends
# Seconds of a step: calls, for each pair of nodes in each order, for each node to the power of three.
CALLS, PAIRS, CUBE = 1e-3, 1.5e-8, 1e-10
PROOF = 1.2e-11  # s of a proof, for each node to the power of three
START_PAIRS = 6e-8  # s of the start, for each pair of nodes in each order: products of Lanczos's method
START_SHARE = 0.07  # of a time limit: a start that takes more is not made
LEAST_STEPS, LONGEST_SHARE = 12, 0.5  # no step is made where so many take more of a time limit


def bytes_of(n: int) -> float:
    """What a graph of n nodes takes; infinite where that is beyond what is tried."""
    return BYTES * n * n if 1 < n <= MOST else math.inf


class Theta:
    """Schrijver's theta' of a graph with node weights w, from above.

    The greatest weight of an independent set is at most, with q[i] = sqrt(w[i]/W) and W the sum of weights,

        W max { q'Xq : trace X = 1, X[i, j] = 0 for edges, X[i, j] >= 0 for other pairs, X >= 0 }
      = W min { d : d I + B - qq' >= 0, B[i, j] any number for edges, at most 0 for other pairs }
      = W min { largest eigenvalue of qq' - B }.

    (X = zz'/w(S) of an independent set S, z[i] = sqrt(w[i]) on S, has q'Xq = w(S)/W.) The second program is
    solved by alternating directions on its augmented Lagrangian with the penalty s: with Z for the slack
    d I + B - qq' and U = X/s, a step chooses d and B, which have no constraint in common,

        B[i, j]  =  (qq' + Z + U)[i, j], for pairs that are no edges at most 0
        d        =  (trace(qq' + Z + U) - 1/s) / n

    and divides V = d I + B - qq' - U into Z - Y, its positive and negative parts; then U goes to Y, a bit
    further. Below the diagonal V is Z where there is an edge and min(Z, -(qq' + U)) elsewhere. Any B is a
    bound, by the third line: after every few steps its eigenvalue is looked at, and a better one proved.

    Source   Povh, Rendl, Wiegele 2006, "A boundary point method to solve semidefinite programs"; Malick,
             Povh, Rendl, Wiegele 2009; the longer step: Wen, Goldfarb, Yin 2010; the sign constraints:
             Schrijver 1979. The start is the best multiple of the edges' weighted adjacency matrix: Hoffman's
             bound (Lovasz 1979, Theorem 9)
    Differs  single precision: what is proved is proved in double precision from the multipliers as they are

    best     ThetaCertificate or None: proved, and better than what the caller had
    upper    the best bound that is known, the caller's or this
    steps    taken
    """

    def __init__(
        self, graph: Graph, weights: np.ndarray | None, upper: int, seconds: float = math.inf
    ) -> None:
        """weights [n] int64, at least 0, or None: all one. upper: only a bound below that counts.

        seconds   the time limit of the run: steps that take too much of it are not made
        """
        self._graph = graph
        self._total = graph.n if weights is None else sum(weights.tolist())
        self._q = unit_vector(graph.n, weights if self._total else None)
        self.best: ThetaCertificate | None = None
        self.upper, self.steps = upper, 0
        self._positive = graph.n  # eigenvalues of V
        self._limit, self._took = seconds, [CALLS + PAIRS * graph.n**2 + CUBE * graph.n**3]  # s, of steps
        self._bounds: list[float] = []  # the least so far, at each look
        self._value, self._apart = 0.0, np.inf  # d W at the last one, and how far from the bound
        self._vector = stream(0, "theta").standard_normal(graph.n).astype(np.float32)

    def slices(self) -> Iterator[bool]:
        """The start, then a step at a time, until nothing is gained any more or time does not allow it."""
        if self._total > 0 and self._graph.edges and self.next_seconds <= START_SHARE * self._limit:
            self._start()
            yield True
            while self._goes_on():
                self._step()
                yield True

    @property
    def next_seconds(self) -> float:
        """An estimate of the next slice."""
        n = self._graph.n
        if not self._bounds:
            return START_PAIRS * n**2 + PROOF * n**3
        return self._step_seconds + PROOF * n**3 if self._goes_on() else 0.0

    @property
    def _step_seconds(self) -> float:
        """What steps take, looks apart."""
        return float(np.median(self._took))

    def _goes_on(self) -> bool:
        """Whether steps are worth it, and there is time for enough of them."""
        return not self._settled() and LEAST_STEPS * self._step_seconds <= LONGEST_SHARE * self._limit

    def rival(self, upper: int) -> None:
        """Another bound that is known."""
        self.upper = min(self.upper, upper)

    # ---- the iteration -------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Z of the best B that is the same for all edges, c q[i] q[j] n; U = 0."""
        graph, n = self._graph, self._graph.n
        self._pairs = np.zeros((n, n), dtype=bool)  # edges
        self._pairs[graph.row_of(), graph.indices] = True
        q = self._q.astype(np.float32)
        self._q32, self._diagonal = q, np.diag_indices(n)
        A = self._pairs * (n * q[:, None] * q).astype(np.float32)
        least, _ = _smallest(A, self._vector)
        c = 1 / max(float(q @ (A @ q)) - least, 1e-30)
        B = np.float32(c) * A
        self._U = np.zeros((n, n), dtype=np.float32)
        bound = self._look(B, EIGENVALUE)
        self._Z = B
        self._Z -= q[:, None] * q
        self._Z[self._diagonal] += np.float32(bound / self._total)

    def _step(self) -> None:
        """One of the iteration, and every few a look at the bound."""
        Z, U, q = self._Z, self._U, self._q
        begun = time.perf_counter()
        V = self._divided()
        spent = time.perf_counter() - begun
        trace = float(Z[self._diagonal].sum(dtype=np.float64) + U[self._diagonal].sum(dtype=np.float64))
        d = (1 + trace - 1 / SIGMA) / len(q)
        if self.steps % LOOK == LOOK - 1:
            bound = self._look(V + U + self._q32[:, None] * self._q32, THETA)
            self._value = d * self._total
            self._apart = abs(bound - self._value) / bound
        begun = time.perf_counter()
        V[self._diagonal] = (d - q * q - U[self._diagonal]).astype(np.float32)
        self._Z, Y = self._parts(V)
        Y -= U
        U += np.float32(RELAXATION) * Y
        self.steps += 1
        self._took.append(spent + time.perf_counter() - begun)

    def _divided(self) -> np.ndarray:
        """V [n, n] but for its diagonal: Z at edges, min(Z, -(qq' + U)) at other pairs."""
        V = np.empty_like(self._Z)
        for lo in range(0, len(V), BLOCK):
            rows = slice(lo, lo + BLOCK)
            other = -self._U[rows] - self._q32[rows, None] * self._q32
            np.minimum(other, self._Z[rows], out=V[rows])
            np.copyto(V[rows], self._Z[rows], where=self._pairs[rows])
        return V

    def _parts(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The positive and the negative part of V [n, n], both semidefinite: V = first - second."""
        # Of few eigenvalues' vectors the part is made sooner; how many are positive changes slowly.
        sign = 1 if 2 * self._positive <= len(V) else -1
        values, Q = positive_part(V if sign > 0 else -V)
        self._positive = len(values) if sign > 0 else len(V) - len(values)
        part = (Q * values) @ Q.T
        rest = part - V if sign > 0 else part + V
        return (part, rest) if sign > 0 else (rest, part)

    # ---- bounds --------------------------------------------------------------------------------------------

    def _look(self, B: np.ndarray, method: str) -> float:
        """The bound of multipliers B [n, n], what is on the diagonal apart; proved where it is better."""
        np.minimum(B, 0, out=B, where=~self._pairs)  # but for rounding it is
        B[self._diagonal] = 0
        least, self._vector = _smallest(B, self._vector, self._q32)
        bound = max(-least, 0.0) * self._total
        self._bounds.append(min([bound, *self._bounds[-1:]]))
        for i in range(TRIES):
            upper = int(bound * (1 + 1e-6 * 10**i))
            if upper >= self.upper:
                break
            share = (upper + 0.999) / self._total
            upper = int(Fraction(share) * self._total)  # of large weights a share is not so fine
            if upper < self.upper and semidefinite(B, share, self._q):
                self.best, self.upper = ThetaCertificate(upper, method, share, B.copy()), upper
                break
        return bound

    def _settled(self) -> bool:
        """Whether looks have stopped to gain, or gain too little to overtake a better bound."""
        bounds, lead = self._bounds, self._bounds[-1] - self.upper - 1
        if _gained(bounds, HOPELESS) * SLOW < lead:
            return True
        close = self._apart < CLOSE
        if close and int((1 - CLOSE) * self._value) >= self.upper:  # no whole number lies between
            return True
        patience = PATIENCE if close else LEAP
        return _gained(bounds, patience) < GAIN * bounds[-1]


def _gained(bounds: list[float], looks: int) -> float:
    """What so many last looks gained; infinite where there are not so many."""
    return bounds[-1 - looks] - bounds[-1] if len(bounds) > looks else np.inf


def _smallest(B: np.ndarray, start: np.ndarray, q: np.ndarray | None = None) -> tuple[float, np.ndarray]:
    """The smallest eigenvalue of B - qq' (of B without q), and its vector [n]: estimates."""
    n = len(B)
    if n > DENSE:

        def product(v: np.ndarray) -> np.ndarray:
            v = v.ravel()
            return B @ v if q is None else B @ v - q * (q @ v)

        matrix = LinearOperator((n, n), matvec=product, dtype=np.float32)
        try:
            values, vectors = eigsh(matrix, 1, which="SA", v0=start, tol=1e-5, ncv=20, maxiter=100)
            return float(values[0]), vectors[:, 0]
        except ArpackError:  # not converged
            pass
    matrix = B if q is None else B - q[:, None] * q
    try:
        values, vectors = eigh(matrix, subset_by_index=[0, 0], check_finite=False)
    except np.linalg.LinAlgError:  # as in positive_part
        values, vectors = eigh(matrix, driver="evd", check_finite=False)
    return float(values[0]), vectors[:, 0]
