"""Proofs that matrices are positive semidefinite: Cholesky factorisations, and a margin for rounding."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cholesky, cholesky_banded

ROOM = 1 << 26  # float64 of a factor: 512 MB
ROUNDOFF = 2.0**-53


def margin(n: int, trace: float) -> float:
    """What to take off the diagonal of A [n, n] so that a Cholesky factor of the rest proves A semidefinite.

    A Cholesky factorisation of B that runs to its end in floating point has R'R = B + E with
    |E[i, j]| <= g/(1 - g) sqrt(b[i, i] b[j, j]), g = (n + 1)u / (1 - (n + 1)u), in any order of its sums
    (Higham 2002, Theorem 10.3 and Demmel's bound after it; Rump 2006, "Verification of positive
    definiteness"). The norm of E is at most g/(1 - g) trace(B), so B plus that much is semidefinite. Twice as
    much is taken, which covers the rounding of this formula and underflow.
    """
    g = (n + 1) * ROUNDOFF / (1 - (n + 1) * ROUNDOFF)
    return 2 * g / (1 - g) * trace


def dense_factor(matrix: np.ndarray) -> bool:
    """Whether a Cholesky factorisation of [n, n] float64 runs to its end, by the lower half."""
    return _runs(lambda: np.diagonal(cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)))


def banded_factor(matrix: np.ndarray) -> bool:
    """The same of a matrix by its diagonals [band + 1, n], the main one first."""
    return _runs(lambda: cholesky_banded(matrix, lower=True, overwrite_ab=True, check_finite=False)[0])


def _runs(pivots: Callable[[], np.ndarray]) -> bool:
    """Whether there are pivots [n], and all are positive: some LAPACKs go on beyond one that is no number."""
    try:
        return bool((pivots() > 0).all())
    except LinAlgError:  # a pivot that is not positive
        return False
