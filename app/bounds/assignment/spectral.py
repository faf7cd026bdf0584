"""Bounds on quadratic assignments by eigenvalues of one part and rows of the other, safe against rounding.

Let <A, B> be the sum of a_ij b_ij, and X the matrix of a permutation: X B X' has the entries b_p(i)p(j). For
any split A = A1 + A2 the cost is <A1, XBX'> + <A2 + Diag(g), XBX'> + <L, X> + constant, g any diagonal, as B
has none.

Rows         <A1, XBX'> is at least <M, X>, m_ix the least sum of products of row i of A1 and row x of B
             (Gilmore 1962, Lawler 1963). A1 need not be symmetric.
Hermitian    H(A) = (A + A')/2 + i (A - A')/2 has <A, XBX'> = <H(A), X H(B) X'>, so let A2 and B be Hermitian.
Projection   With Q = I - ee'/n, r = A2 e, q = B e: <A2, XBX'> = <A', XB'X'> + 2/n Re <conj(r) q', X>
             - (e'r)(e'q)/n^2 for A' = QA2Q and B' = QBQ, since Q and X commute.
Eigenvalues  With A' = P diag(d) P*, B' = U diag(e) U* and Z = P* X U, <A', XB'X'> is the sum of d_i e_j
             |z_ij|^2, and rows and columns of |z_ij|^2 add up to 1. So for numbers s, t with w_ij = d_i e_j -
             s_i - t_j >= 0 it is sum(s) + sum(t) plus the sum of w_ij |z_ij|^2.
Tangent      |z|^2 >= 2 Re(conj(y) z) - |y|^2 at any y: the sum is at least linear in X. y = P* X0 U for some
             X0, the nearer to the least convex value over doubly stochastic X the better.

What is linear in X is bounded by multipliers of rows, in whole numbers. What is computed in float64 has its
error bounded: residuals of A' and B', and how far their vectors are from orthonormal, are measured, and
rounding is bounded a priori, with room to spare.

Source   Hadley, Rendl and Wolkowicz, A new lower bound via projection for the quadratic assignment problem,
         1992, and Nonsymmetric quadratic assignment problems and the Hoffman-Wielandt inequality, 1992;
         Anstreicher and Brixius, A new bound for the quadratic assignment problem based on convex quadratic
         programming, 2001
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from app.bounds.assignment.witness import EXACT_FLOAT, by_rows, row_products
from app.bounds.certificate import BadCertificate, Proof
from app.graphs.pairing import Quadratic, tidy

METHOD = "eigenvalues and rows"
NEAR_PARTS = 1 << 30  # of an entry of X0
EPS = 2.0**-52  # twice what rounding is off by
LOOSE = 1e-3  # what vectors may be off by from orthonormal
WHOLE = 1 << 58  # of linear costs that are added up as int64
LEAST_NODES = 3


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Of a Hermitian matrix M of whole numbers: what is left of it beside e = (1, ..., 1), diagonalised.

    values [n-1] ascending, vectors [n, n-1]   M' = QMQ is vectors diag(values) vectors* but for
    residual, loose     in the norm of Frobenius: what that is off by, at most; what e/sqrt(n) and the vectors
                        are off by from orthonormal, at most
    norm      that of M', at most      sums [n] of rows of M, total of all
    """

    values: np.ndarray
    vectors: np.ndarray
    residual: float
    loose: float
    norm: float
    sums: np.ndarray
    total: int


def spectrum_of(matrix: np.ndarray) -> Spectrum:
    """The spectrum of a Hermitian matrix [n, n] of whole numbers, whose sums are below 2^53, n > 1."""
    n = len(matrix)
    sums, share = matrix.sum(axis=1), matrix.sum(axis=1) / n
    total = int(sums.real.sum())
    rest = matrix - share[:, None] - share.conj()[None, :] + total / n**2
    lift = _complement(n)
    values, inner = np.linalg.eigh(lift.T @ rest @ lift)
    vectors = lift @ inner
    size = float(np.linalg.norm(matrix)) + 2 * math.sqrt(n) * float(np.linalg.norm(share)) + abs(total) / n
    made = _rounding(n) * (float(np.abs(values).sum()) * 2 + size)
    residual = float(np.linalg.norm(rest - (vectors * values) @ vectors.conj().T)) * (1 + EPS * n**2) + made
    basis = np.column_stack([np.full(n, 1 / math.sqrt(n)), vectors])
    gram = basis.conj().T @ basis
    loose = float(np.linalg.norm(gram - np.eye(n))) * (1 + EPS * n**2) + _rounding(n) * 2 * n
    norm = float(np.linalg.norm(rest)) * (1 + EPS * n**2) + EPS * 16 * size
    return Spectrum(values, vectors, residual, loose, norm, sums, total)


def _complement(n: int) -> np.ndarray:
    """[n, n-1] an orthonormal basis of what is orthogonal to e, by a reflection that takes it to an axis."""
    v = np.full(n, 1 / math.sqrt(n))
    v[0] += 1
    return (np.eye(n) - np.outer(v, v) / v[0])[:, 1:]


def _rounding(n: int) -> float:
    """A bound on what a sum of n complex products is off by, for each unit that their sizes add up to."""
    return 8 * (n + 8) * EPS


def multipliers(d: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """s, t [m] with s_i + t_j <= d_i e_j, equal where i = j, but for rounding: d ascending, e descending."""
    s = np.concatenate([[0.0], np.cumsum(np.diff(d) * (e[1:] + e[:-1]) / 2)])
    return s, d * e - s


@dataclass(frozen=True, eq=False)
class Tangent:
    """<A2, XBX'> is at least <linear, X> + value - error for each permutation X.

    linear [n, n]
    """

    linear: np.ndarray
    value: Fraction
    error: float


def tangent_of(first: Spectrum, second: Spectrum, near: np.ndarray) -> Tangent:
    """By the spectra of A2 and B, at X0 [n, n]."""
    n = len(near)
    d, e = first.values, second.values[::-1]
    P, U = first.vectors, second.vectors[:, ::-1]
    s, t = multipliers(d, e)
    w = np.outer(d, e) - s[:, None] - t[None, :]
    large = float(np.abs(d).max() * np.abs(e).max() + np.abs(s).max() + np.abs(t).max())
    slack = max(-float(w.min()), 0.0) + 4 * EPS * large
    w = np.maximum(w, 0.0)
    y = P.conj().T @ near @ U
    bent = w * y
    linear = 2 * ((P @ bent) @ U.conj().T).real
    curved = float((w * (y.real**2 + y.imag**2)).sum())
    r, q = first.sums, second.sums
    flat = (2 / n) * (np.outer(r.real, q.real) + np.outer(r.imag, q.imag))
    value = Fraction(math.fsum(s)) + Fraction(math.fsum(t)) - Fraction(curved)
    value -= Fraction(first.total * second.total, n * n)
    loose = 3 * (first.loose + second.loose)
    error = first.residual * second.norm + (first.norm + first.residual) * second.residual
    error += loose * float(np.abs(s).sum() + np.abs(t).sum()) + slack * n * (1 + loose)
    error += 4 * _rounding(n) * n * math.sqrt(n) * float(np.linalg.norm(bent))
    error += EPS * n * (n + 8) * curved + 16 * EPS * n * float(np.abs(flat).max(initial=0.0))
    error += 4 * EPS * float(np.abs(s).sum() + np.abs(t).sum())
    near_one = first.loose + second.loose < LOOSE
    return Tangent(linear + flat, value, error * (1 + 2.0**-20) if near_one else math.inf)


# ---- certificates ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SplitBound(Proof):
    """A bound on the cost of every assignment, `lower`.

    turned     whether A and B have changed places: it is the cost of the inverse permutation
    one        parts of a unit in which A1, g and multipliers are
    part       [k, k] int64, A1       diagonal [k] int64, g      near [k, k] int64, X0 in 2^-30
    top        [k] int64, multipliers of rows of what is linear
    """

    lower: int
    method: str
    turned: bool
    one: int
    part: np.ndarray
    diagonal: np.ndarray
    near: np.ndarray
    top: np.ndarray
    checked: bool = True

    def check(self, core: Quadratic) -> None:
        """Prove the bound from the question alone; raises BadCertificate."""
        k, core = core.k, turned(core) if self.turned else core
        if k < LEAST_NODES or not self.part.shape == self.near.shape == (k, k):
            raise BadCertificate(f"{self.method}: the split is not one of {k} nodes")
        if not self.diagonal.shape == self.top.shape == (k,):
            raise BadCertificate(f"{self.method}: needs {k} multipliers of rows and of a diagonal")
        if self.one < 1 or _reaches(self.near, 2 * NEAR_PARTS) or _reaches(self.top, WHOLE):
            raise BadCertificate(f"{self.method}: numbers out of range")
        a, b, linear = core.tables
        if not fits(a, b, linear, self.one, (self.part, self.diagonal)):
            raise BadCertificate(f"{self.method}: parts that are too small")
        costs, value, error = costs_of(core, self.one, self.part, self.diagonal, self.near, second_of(core))
        proved = math.floor(by_rows(costs, self.top) + value - error)
        if -(-proved // (core.scale * self.one)) * core.scale < self.lower:
            raise BadCertificate(f"{self.method}: proves {proved / self.one:g}, not {self.lower}")


def turned(core: Quadratic) -> Quadratic:
    """The same with the places to be put on nodes: the least cost is equal."""
    return replace(core, a=core.b, b=core.a, linear=tidy(core.linear.T), rows=core.columns, columns=core.rows)


def _reaches(values: np.ndarray, most: int) -> bool:
    """Whether some are as large."""
    return bool(((values >= most) | (values <= -most)).any())


def fits(
    a: np.ndarray, b: np.ndarray, linear: np.ndarray, one: int, others: tuple[np.ndarray, ...] = ()
) -> bool:
    """Whether sums of all products have room: in float64 exactly, and as int64."""
    k = len(a)
    if one > WHOLE or any(_reaches(each, EXACT_FLOAT) for each in others):
        return False
    sizes = [max(int(np.abs(each).max(initial=0)), 1) for each in (a, b, linear, *others)]
    largest = max(one * sizes[0], *sizes[3:]) if others else one * sizes[0]
    return 16 * k * k * largest * sizes[1] <= EXACT_FLOAT and one * sizes[2] * k < WHOLE


def costs_of(
    core: Quadratic, one: int, part: np.ndarray, diagonal: np.ndarray, near: np.ndarray, second: Spectrum
) -> tuple[np.ndarray, Fraction, Fraction]:
    """Linear costs [k, k] int64 and a constant, in parts of a unit, that bound the cost of all permutations
    but for an error.

    second   by second_of
    """
    _, b, linear = core.tables
    rest = rest_of(core, one, part, diagonal)
    tangent = tangent_of(spectrum_of(rest), second, near / NEAR_PARTS)
    told = np.floor(tangent.linear / 4)  # of twice A2 and twice B
    if not (np.abs(told).max() < WHOLE / core.k and math.isfinite(tangent.error)):
        raise BadCertificate(f"{METHOD}: numbers out of range")
    costs = row_products(part, b) + told.astype(np.int64) + one * linear
    return costs, tangent.value / 4 + one * core.constant, Fraction(tangent.error) / 4


def second_of(core: Quadratic) -> Spectrum:
    """The spectrum of 2 H(B)."""
    b = core.tables[1]
    even = (b + b.T).astype(np.float64)
    return spectrum_of(even if core.symmetric else even + 1j * (b - b.T))


def rest_of(core: Quadratic, one: int, part: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """[k, k] 2 H(A2 + Diag(g)) in parts, float64 where B is symmetric: it meets nothing else of A2 then."""
    rest = one * core.tables[0] - part + np.diag(diagonal)
    even = (rest + rest.T).astype(np.float64)
    return even if core.symmetric else even + 1j * (rest - rest.T)
