"""The semidefinite relaxation of the maximum cut with triangle inequalities, for small dense problems."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from app.bounds.cover.kernels import triangles

SIGNS = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=np.float64)  # of each kind
FIRST, LEAST = 0.1, 1e-4  # of the smoothing, in units of the mean weight
SHRINK = 0.3
ITERATIONS, FEWER, LARGE = 40, 15, 400  # of one minimisation, at most; of one of so many nodes or more
# Seconds of a value and its gradient: calls, for each pair of nodes, for each node to the power of three.
EVALUATION = 2e-4, 1e-7, 5e-11
SPARE = 1.15  # values for each iteration, about
MARGIN = 0.05  # inequalities violated by less are not looked for
NEW = 10  # new inequalities of a round, at most, for each node
CLEAN = 0.3  # violated by less: the smoothing shrinks
GAIN = 1e-3  # of the mean weight: a round that gains less with the least smoothing is the last
USED = 1e-8  # multipliers of inequalities that are kept
ROUNDING = 2.0**-50  # of an eigenvalue, for each row and the matrix's norm


@dataclass
class Multipliers:
    """A point of the dual.

    y          [n] float64, of the diagonal
    triangles  [k, 4] int32: i < j < k and the kind (kernels.triangles)
    g          [k] float64 >= 0, of those inequalities
    smoothing  with which it was reached
    """

    y: np.ndarray
    triangles: np.ndarray
    g: np.ndarray
    smoothing: float


class TriangleRelaxation:
    """Upper bounds on -x'Wx/4 over signs x, which is the cut less half the sum of all edges.

    With C = -W/4 and X = xx', every sign vector obeys X[i, i] = 1 and for each i < j < k
    s1 X[i, j] + s2 X[i, k] + s3 X[j, k] >= -1 where s1 s2 s3 = 1. Let T(g) hold s/2 times g at the places of
    each inequality, so that <T(g), X> is the sum of g times its left side. Then for any y, g >= 0 and a > 0,
    with M = C + T(g) - Diag(y) and its part [M]+ of positive eigenvalues,

        <C, X> <= sum(y) + sum(g) + <M, X>
               <= sum(y) + sum(g) + n max(0, largest eigenvalue of M)           (trace X = n)
               <= sum(y) + sum(g) + |[M]+|^2 / 2a + a n^2 / 2                   (Frobenius norm)

    The second is the bound. The third is smooth and convex in y and g, with gradients 1 - Z[i, i] and
    1 + s1 Z[i, j] + s2 Z[i, k] + s3 Z[j, k] for Z = [M]+/a, which tends to the best X: it is minimised by
    L-BFGS-B for ever smaller a. Between two minimisations inequalities that Z violates come in, others leave.

    Source   Krislock, Malick, Roupin 2014, "Improved semidefinite bounding procedure for solving max-cut
             problems to optimality" (BiqCrunch); triangles: Barahona and Mahjoub 1986
    Differs  the second bound counts, not the third, which is never smaller; what rounding may take is added
    W        [n, n] float64, whole numbers, symmetric, zeros on the diagonal
    bound    the best so far, in units of W
    at       multipliers of that bound
    X        [n, n] the last Z
    settled  nothing more is to be gained
    """

    def __init__(
        self, W: np.ndarray, start: Multipliers | None = None, unit: float = 0.0, compiled: bool = True
    ) -> None:
        """start: where to begin, of a problem like this one and of the same unit; unit: 0: mean_size."""
        self._compiled, n = compiled, len(W)
        self.unit = unit or mean_size(W)
        self.C = W / (-4 * self.unit)
        if start is None:
            none = np.zeros((0, 4), dtype=np.int32)
            start = Multipliers(np.abs(self.C).sum(axis=1), none, np.zeros(0), FIRST)
        self._now = self.at = start
        self.bound, self.settled = np.inf, False
        self.X = np.eye(n)
        self._norm = float(np.abs(self.C).sum())

    def round(self) -> None:
        """One minimisation, and the inequalities for the next."""
        from scipy.optimize import Bounds, minimize  # a fair share of a program's start, for few runs

        now, n = self._now, len(self.C)
        self.prepare(now.triangles)
        z = np.concatenate([now.y, now.g])
        bounds = Bounds(np.repeat([-np.inf, 0.0], [n, len(now.g)]), np.inf)
        most = iterations(n)
        options = {"maxiter": most, "maxfun": 2 * most, "gtol": max(now.smoothing, 1e-3), "ftol": 0}
        before = self.bound
        z = minimize(self.value, z, now.smoothing, "L-BFGS-B", jac=True, bounds=bounds, options=options).x
        self.value(z, now.smoothing)  # X and what is violated are of the last point
        kept = z[n:] > USED
        now = Multipliers(z[:n].copy(), now.triangles[kept], z[n:][kept], now.smoothing)
        new, worst = self._violated(now.triangles)
        last = now.smoothing <= LEAST
        if worst < CLEAN or len(new) < n:
            now.smoothing = max(SHRINK * now.smoothing, LEAST)
        self.settled = last and (not len(new) or before - self.bound < GAIN * self.unit)
        now.triangles = np.concatenate([now.triangles, new])
        now.g = np.concatenate([now.g, np.zeros(len(new))])
        self._now = now

    def prepare(self, of: np.ndarray) -> None:
        """The inequalities [k, 4] that `value` is asked about from now on."""
        self._flat, self._signs = entries(of, len(self.C))

    def value(self, z: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
        """The third bound without its last term, and its gradient; the second bound counts."""
        n, k = len(self.C), len(z) - len(self.C)
        M = self.C + spread(self._flat, self._signs, z[n:], n) if k else self.C.copy()
        M[np.diag_indices(n)] -= z[:n]
        values, Q = positive_part(M)
        Z = (Q * (values / smoothing)) @ Q.T
        linear, square = float(z.sum()), float(values @ values) / (2 * smoothing)
        largest = float(values.max(initial=0.0))
        rounding = n * n * ROUNDING * (self._norm + float(np.abs(z).sum()))
        bound, self.X = self.unit * (linear + n * largest + rounding), Z
        if bound < self.bound:
            self.bound = bound
            self.at = Multipliers(z[:n].copy(), self._now.triangles, z[n:].copy(), smoothing)
        slack = 1 + (self._signs * Z.ravel()[self._flat]).reshape(3, k).sum(axis=0)
        return linear + square, np.concatenate([1 - np.diag(Z), slack])

    def _violated(self, known: np.ndarray) -> tuple[np.ndarray, float]:
        """New inequalities [k, 4] that X violates, and by how much the worst does."""
        n = len(self.C)
        found = triangles(self.X, MARGIN, NEW * n, self._compiled)
        found = found[~np.isin(_keys(found, n), _keys(known, n))]
        if not len(found):
            return found, 0.0
        flat, signs = entries(found, n)
        return found, -1 - float((signs * self.X.ravel()[flat]).reshape(3, -1).sum(axis=0).min())


def iterations(n: int) -> int:
    """Of one minimisation of n nodes, at most."""
    return ITERATIONS if n < LARGE else FEWER


def round_seconds(n: int) -> float:
    """An estimate of a round with n nodes."""
    calls, pairs, cube = EVALUATION
    return SPARE * iterations(n) * (calls + pairs * n**2 + cube * n**3)


def mean_size(W: np.ndarray) -> float:
    """The mean of the sizes of the entries that are not zero; 1 where all are."""
    return float(np.abs(W).sum()) / max(np.count_nonzero(W), 1) or 1.0


def entries(triangles: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the three entries of inequalities [k, 4] lie in an [n, n] matrix, and their signs; both [3k]."""
    i, j, k = triangles.T[:3].astype(np.int64)
    return np.concatenate([i * n + j, i * n + k, j * n + k]), SIGNS[triangles[:, 3]].T.ravel()


def spread(flat: np.ndarray, signs: np.ndarray, g: np.ndarray, n: int) -> np.ndarray:
    """T(g) [n, n] of inequalities with these entries."""
    upper = np.bincount(flat, signs * np.tile(g / 2, 3), n * n).reshape(n, n)
    return upper + upper.T


def lifted(W: np.ndarray, at: Multipliers, unit: float) -> np.ndarray:
    """[n, n] C + T(g)."""
    return W / (-4 * unit) + spread(*entries(at.triangles, len(W)), at.g, len(W))


def _keys(of: np.ndarray, n: int) -> np.ndarray:
    """A number for each inequality."""
    i, j, k, kind = of.astype(np.int64).T
    return ((i * n + j) * n + k) * 4 + kind


def positive_part(M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positive eigenvalues [k] and vectors [n, k] of a symmetric matrix.

    LAPACK's method for a part of them gives up on some matrices of equal ones; that for all does not.
    """
    try:
        return eigh(M, subset_by_value=(0.0, np.inf), driver="evr", check_finite=False)
    except np.linalg.LinAlgError:
        values, Q = eigh(M, driver="evd", check_finite=False)
        positive = values > 0
        return values[positive], np.ascontiguousarray(Q[:, positive])
