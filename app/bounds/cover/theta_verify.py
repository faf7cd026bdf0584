"""Certificates of upper bounds on independent sets, proved from multipliers of pairs of nodes alone."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from app.bounds.certificate import BadCertificate
from app.bounds.factor import ROOM, ROUNDOFF, dense_factor, margin
from app.graphs.graph import Graph

BLOCK = 256  # rows of a matrix that are made at a time


@dataclass(frozen=True, eq=False)
class ThetaCertificate:
    """No independent set weighs more than `upper`; `method` says how it was found.

    With W the sum of the weights w, the unit vector q[i] = sqrt(w[i]/W), and multipliers B[i, j] of pairs of
    nodes, any numbers for edges, none above 0 for other pairs: where M = d I + B - qq' is positive
    semidefinite, an independent set S has, by z[i] = sqrt(w[i]) on S and 0 elsewhere,

        0 <= z'Mz = d w(S) + sum of B[i, j] z[i] z[j] over pairs of S - w(S)^2/W <= d w(S) - w(S)^2/W,

    so w(S) <= d W, and the next whole number below (the dual of Schrijver's theta': Schrijver 1979; Lovasz
    1979 has no multipliers of pairs that are no edges).

    share        d, a float
    multipliers  [n, n] float32: what is below the diagonal counts, twice
    """

    upper: int
    method: str
    share: float
    multipliers: np.ndarray

    def check(self, graph: Graph, weights: np.ndarray | None = None) -> None:
        """Prove the bound from the witness and the graph alone; raises BadCertificate where that fails.

        weights   [n] int64, at least 0, or None: all one
        """
        n, B = graph.n, self.multipliers
        if weights is not None and (
            weights.shape != (n,) or weights.dtype != np.int64 or (weights < 0).any()
        ):
            raise BadCertificate(f"{self.method}: needs [{n}] int64 weights of at least 0")
        if B.shape != (n, n) or B.dtype != np.float32 or n * n > ROOM:
            raise BadCertificate(f"{self.method}: needs [{n}, {n}] float32, got {B.shape} {B.dtype}")
        total = n if weights is None else sum(weights.tolist())  # Python's integers do not overflow
        if total <= 0 or not 0 < self.share < 2:
            raise BadCertificate(f"{self.method}: {self.share} of a weight of {total} is no bound")
        pair = _pair_above_zero(graph, B)
        if pair is not None:
            raise BadCertificate(f"{self.method}: the multiplier of {pair[0]}-{pair[1]}, no edge, is above 0")
        if not semidefinite(B, self.share, unit_vector(n, weights)):
            raise BadCertificate(f"{self.method}: d I + B - qq' is not proved positive semidefinite")
        proved = int(Fraction(self.share) * total)
        if proved > self.upper:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.upper}"
            )


def unit_vector(n: int, weights: np.ndarray | None) -> np.ndarray:
    """q [n] float64, every entry within 3 units of roundoff: sqrt(w/W)."""
    if weights is None:
        return np.full(n, np.sqrt(1 / n))
    return np.sqrt(weights.astype(np.float64) / float(sum(weights.tolist())))


def _pair_above_zero(graph: Graph, B: np.ndarray) -> tuple[int, int] | None:
    """The first pair below the diagonal that is no edge and whose multiplier is not at most 0, or None."""
    for lo in range(0, graph.n, BLOCK):
        hi = min(lo + BLOCK, graph.n)
        bad = np.tril(~(B[lo:hi] <= 0), lo - 1)  # NaN is not at most 0
        first, last = graph.indptr[lo], graph.indptr[hi]
        own = np.repeat(np.arange(hi - lo), np.diff(graph.indptr[lo : hi + 1]))
        bad[own, graph.indices[first:last]] = False
        if bad.any():
            row, column = np.argwhere(bad)[0].tolist()
            return lo + row, column
    return None


def semidefinite(B: np.ndarray, share: float, q: np.ndarray) -> bool:
    """True only where share I + B - qq' is proved positive semidefinite; B counts below its diagonal.

    What is factored differs from that matrix by the rounding of q (each entry by 3u of itself, so each of
    qq' by 7u), of the difference (u of each entry) and of the diagonal. As qq' has norm 1, all of it has a
    norm of at most 9u + u|B| + u d; 32u (1 + |B| + d) are taken off the diagonal, and what the factorisation
    may lose itself (factor.margin).
    """
    n = len(q)
    M = np.empty((n, n), order="F")
    square = 0.0
    for lo in range(0, n, BLOCK):
        below = np.tril(B[lo : lo + BLOCK], lo - 1).astype(np.float64)
        square += 2 * float(np.square(below).sum())
        M[lo : lo + BLOCK] = below - q[lo : lo + BLOCK, None] * q
    lost = 32 * ROUNDOFF * (1 + np.sqrt(square) + share) + margin(n, n * share)
    diagonal = share - q * q - lost
    if not np.isfinite(square) or not (diagonal > 0).all():
        return False
    np.fill_diagonal(M, diagonal)
    return dense_factor(M)
