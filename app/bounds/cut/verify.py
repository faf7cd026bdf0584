"""Certificates of upper bounds on the cut, proved from a vector of diagonal entries alone."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from app.bounds.certificate import BadCertificate, Proof
from app.bounds.factor import ROOM, banded_factor, dense_factor, margin
from app.graphs.fixed_point import integer_weights
from app.graphs.graph import Graph

FULL = 2**62  # of sums of int64
MOST_PLACES = 64  # binary places before and behind the point
LARGEST = 2**52  # below this, multiples of the certificate's unit are exact in float64


@dataclass(frozen=True, eq=False)
class CutCertificate(Proof):
    """No cut weighs more than `upper`, in the units of integer_weights; `method` says how it was found.

    With the weight matrix W and signs x in {-1, 1}, a cut is (sum of all edges)/2 - x'Wx/4. Where
    W + Diag(y) is positive semidefinite, x'Wx >= -sum(y), so the cut is at most
    (sum of all edges)/2 + sum(y)/4, and the next whole number below (the dual of the semidefinite relaxation;
    Delorme and Poljak 1993 write it as an eigenvalue). Without y: the sum of the positive weights.

    y    [n] int64 multiples of 2^-places, or None
    """

    upper: int
    method: str
    y: np.ndarray | None = None
    places: int = 0

    def check(self, graph: Graph) -> None:
        """Prove the bound from y and the graph alone; raises BadCertificate where that fails."""
        weights, _ = integer_weights(graph)
        if self.y is None:
            proved = int(weights[weights > 0].sum()) // 2
        else:
            if self.y.shape != (graph.n,) or self.y.dtype != np.int64:
                raise BadCertificate(f"{self.method}: needs [{graph.n}] int64, got {self.y.shape}")
            _check_places(self.method, self.places)
            if not positive_semidefinite(graph, weights, self.y, self.places):
                raise BadCertificate(f"{self.method}: W + Diag(y) is not proved positive semidefinite")
            proved = dual_value(weights, self.y, self.places)
        if proved > self.upper:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.upper}"
            )


KIND_SIGNS = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))  # of x[i]x[j], x[i]x[k] and x[j]x[k]


@dataclass(frozen=True, eq=False)
class TriangleCertificate(Proof):
    """As CutCertificate, with multipliers g >= 0 of triangle inequalities.

    For signs x and s1 s2 s3 = 1, s1 x[i]x[j] + s2 x[i]x[k] + s3 x[j]x[k] >= -1 for any three nodes: not all
    three terms are -1, for their product is 1. D has s/2 times g at the places of each inequality, so
    x'Dx >= -sum(g); where W - D + Diag(y) is positive semidefinite, x'Wx >= -sum(y) - sum(g).

    y          [n] int64 multiples of 2^-places
    triangles  [k, 4] int32: i < j < k, and which of KIND_SIGNS
    g          [k] int64, even multiples of 2^-places
    """

    upper: int
    method: str
    y: np.ndarray
    places: int
    triangles: np.ndarray
    g: np.ndarray

    def check(self, graph: Graph) -> None:
        """Prove the bound from the witness and the graph alone; raises BadCertificate where that fails."""
        n, (i, j, k, kind) = graph.n, self.triangles.T
        shapes = self.y.shape == (n,) and self.triangles.shape == (len(self.g), 4)
        if not (shapes and self.y.dtype == self.g.dtype == np.int64):
            raise BadCertificate(f"{self.method}: needs [{n}] int64 and one multiplier for each inequality")
        if ((i < 0) | (i >= j) | (j >= k) | (k >= n) | (kind < 0) | (kind > 3)).any():
            raise BadCertificate(f"{self.method}: not triangles of {n} nodes")
        if (self.g < 0).any() or (self.g % 2).any():
            raise BadCertificate(f"{self.method}: multipliers must be even, and none of them negative")
        _check_places(self.method, self.places)
        weights, _ = integer_weights(graph)
        if not self.semidefinite(graph, weights):
            raise BadCertificate(f"{self.method}: W - D + Diag(y) is not proved positive semidefinite")
        proved = dual_value(weights, np.concatenate([self.y, self.g]), self.places)
        if proved > self.upper:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.upper}"
            )

    def semidefinite(self, graph: Graph, weights: np.ndarray) -> bool:
        """True only where W - D + Diag(y) is proved positive semidefinite."""
        n, one = graph.n, 2 ** max(self.places, 0)
        most = one * int(np.abs(weights).max(initial=0)) + sum(self.g.tolist())
        if n * n > ROOM or self.places < 0 or most > FULL or (self.y < 0).any():
            return False  # too large, or not semidefinite
        matrix = np.zeros((n, n), dtype=np.int64)
        i, j, k, kind = self.triangles.T
        signs = np.array(KIND_SIGNS)[kind]
        for place, (a, b) in enumerate(((i, j), (i, k), (j, k))):
            np.subtract.at(matrix, (a, b), signs[:, place] * (self.g // 2))
        matrix += matrix.T
        matrix[graph.row_of(), graph.indices] += weights * one
        if max(int(np.abs(each).max(initial=0)) for each in (matrix, self.y)) >= LARGEST:
            return False  # not exact in float64
        taken = math.ceil(margin(n, float(self.y.sum(dtype=np.float64))))
        matrix[np.diag_indices(n)] = self.y - taken
        return not (self.y <= taken).any() and dense_factor(matrix * 2.0**-self.places)


def _check_places(method: str, places: int) -> None:
    if not abs(places) <= MOST_PLACES:
        raise BadCertificate(f"{method}: values in multiples of 2^-{places}")


def dual_value(weights: np.ndarray, y: np.ndarray, places: int) -> int:
    """The whole number below (sum of all edges)/2 + sum(y)/4, exact.

    weights  [nnz] int64, every edge twice; y [n] int64 multiples of 2^-places
    """
    total = sum(y.tolist())  # Python's integers do not overflow
    return math.floor(Fraction(int(weights.sum()), 4) + Fraction(total, 4) / Fraction(2) ** places)


def factor_size(graph: Graph) -> tuple[int, np.ndarray]:
    """Half bandwidth of the rows in Cuthill and McKee's order, and that order [n]; n - 1 where it is wide."""
    pattern = sp.csr_array(
        (np.ones(len(graph.indices), dtype=np.int8), graph.indices, graph.indptr), shape=(graph.n, graph.n)
    )
    order = reverse_cuthill_mckee(sp.csr_matrix(pattern), symmetric_mode=True)
    place = np.empty(graph.n, dtype=np.int64)
    place[order] = np.arange(graph.n)
    band = int(np.abs(place[graph.row_of()] - place[graph.indices]).max(initial=0))
    return (band, order) if 2 * (band + 1) < graph.n else (graph.n - 1, np.arange(graph.n))


def can_factor(graph: Graph) -> bool:
    """True where the factor that a proof needs fits in 512 MB."""
    return 0 < least_factor(graph) <= ROOM and (factor_size(graph)[0] + 1) * graph.n <= ROOM


def least_factor(graph: Graph) -> int:
    """Entries that the factor has in any order of the rows: a band is as wide as half the entries of a row,
    and holds all edges. An order takes seconds where there are millions of them.
    """
    widest = int(graph.degrees().max(initial=0)) // 2
    return max(graph.n * (widest + 1), graph.n + graph.edges)


def positive_semidefinite(graph: Graph, weights: np.ndarray, y: np.ndarray, places: int) -> bool:
    """True only where W + Diag(y 2^-places) is proved positive semidefinite.

    weights  [nnz] int64, aligned with graph.indices; y [n] int64
    """
    if (y < 0).any():
        return False  # the diagonal of a semidefinite matrix is not; and |-2^63| is no int64
    scale = 2.0**-places
    sizes = (y.max(initial=0), math.ldexp(float(np.abs(weights).max(initial=0)), places))
    band, order = factor_size(graph)
    if max(sizes) >= LARGEST or (band + 1) * graph.n > ROOM:
        return False  # not exact in float64, or too large
    # Whole multiples of the unit: the subtraction is exact.
    taken = math.ceil(margin(graph.n, float(y.sum(dtype=np.float64)) * scale) / scale)
    diagonal = (y - taken) * scale
    if (diagonal <= 0).any():
        return False
    factor = _banded if band < graph.n - 1 else _dense
    return factor(graph, weights.astype(np.float64), diagonal, band, order)


def _dense(graph: Graph, weights: np.ndarray, diagonal: np.ndarray, _: int, __: np.ndarray) -> bool:
    matrix = np.zeros((graph.n, graph.n), order="F")
    matrix[graph.row_of(), graph.indices] = weights
    np.fill_diagonal(matrix, diagonal)
    return dense_factor(matrix)


def _banded(graph: Graph, weights: np.ndarray, diagonal: np.ndarray, band: int, order: np.ndarray) -> bool:
    place = np.empty(graph.n, dtype=np.int64)
    place[order] = np.arange(graph.n)
    rows, cols = place[graph.row_of()], place[graph.indices]
    below = rows > cols
    matrix = np.zeros((band + 1, graph.n), order="F")
    matrix[0] = diagonal[order]
    matrix[(rows - cols)[below], cols[below]] = weights[below]
    return banded_factor(matrix)
