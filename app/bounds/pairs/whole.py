"""Matrices and multipliers of programs over pairs of nodes in whole numbers, and proofs from them."""

import math

import numpy as np

from app.bounds.certificate import BadCertificate
from app.bounds.factor import dense_factor, margin

MOST_PLACES = 62
LARGEST = 1 << 52  # below this, whole numbers are exact in float64
FULL = 1 << 60  # of sums


def room(most: int, size: float) -> int:
    """How many binary places sums of this size may have, below `most` with something to spare."""
    return most.bit_length() - 3 - math.frexp(size)[1] if size else MOST_PLACES


def semidefinite(matrix: np.ndarray) -> np.ndarray:
    """[k, k] int64, a semidefinite matrix in whole numbers, with enough on its diagonal that it is proved to
    be so.
    """
    k = len(matrix)
    whole = np.rint((matrix + matrix.T) / 2).astype(np.int64)
    whole[np.diag_indices(k)] += k + math.ceil(2 * margin(k, float(np.trace(matrix)) + k * k))
    return whole


def check_semidefinite(matrix: np.ndarray, k: int, what: str) -> None:
    """Prove that [k, k] int64 is symmetric and positive semidefinite, and small. Raises BadCertificate."""
    fits = matrix.shape == (k, k) and float(np.abs(matrix.astype(np.float64)).sum()) < FULL
    if not fits or np.abs(matrix).max() >= LARGEST or (matrix != matrix.T).any():
        raise BadCertificate(f"{what}: not a symmetric matrix of a part's nodes")
    diagonal = np.diagonal(matrix)
    taken = math.ceil(margin(k, float(diagonal.sum(dtype=np.float64))))
    less = matrix.astype(np.float64)
    less[np.diag_indices(k)] = diagonal - taken
    if (diagonal <= taken).any() or not dense_factor(less):
        raise BadCertificate(f"{what}: a matrix is not proved positive semidefinite")
