"""The smallest eigenvalue of a symmetric matrix, about, in a fixed number of products."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh_tridiagonal

NOTHING = 1e-12  # of a vector that is left: what was spanned is all there is to see


def smallest(
    times: Callable[[np.ndarray], np.ndarray], start: np.ndarray, steps: int
) -> tuple[float, np.ndarray]:
    """The least eigenvalue in the space of start, M start, M^2 start, ... and its vector [n].

    It is not below that of M. Where many are as small, ARPACK takes many times as long to be sure of one.

    times   M times a vector [n]     start   [n], not zero: the better, the fewer steps are needed
    Source  Lanczos 1950, with all vectors kept orthogonal
    """
    Q = np.zeros((steps, len(start)))
    diagonal, beside = np.zeros(steps), np.zeros(steps)
    next_one, count = start / np.linalg.norm(start), 0
    for j in range(min(steps, len(start))):
        Q[j], count = next_one, j + 1
        rest = times(Q[j])
        diagonal[j] = Q[j] @ rest
        for _ in range(2):
            rest = rest - (Q[:count] @ rest) @ Q[:count]
        beside[j] = np.linalg.norm(rest)
        if beside[j] < NOTHING:
            break
        next_one = rest / beside[j]
    values, vectors = eigh_tridiagonal(diagonal[:count], beside[: count - 1], select="i", select_range=(0, 0))
    return float(values[0]), vectors[:, 0] @ Q[:count]
