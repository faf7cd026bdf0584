"""Products of small arrays that all ranks hold alike, whatever their number of rows."""

from typing import Any

import numpy as np

Array = Any


def small_product(device: Any, X: Array, W: Array) -> Array:
    """X W, X [S, k], W [k, m]."""
    rows, W = X.shape[0], device.xp.ascontiguousarray(W)
    if rows % 8 == 0 and X.flags.c_contiguous:
        return device.row_product(X, W)
    return device.row_product(_padded(device.xp, X), W)[:rows]


def small_gram(device: Any, X: Array, D: Array) -> Array:
    """X^T D flat, X [S, k], D [S, m], as one block."""
    X, D = _padded(device.xp, X), _padded(device.xp, D)
    return device.block_gram(X, D, np.array([[0, X.shape[0]]]))[0]


def _padded(xp: Any, X: Array) -> Array:
    """A row-major copy with rows of zeros up to a multiple of 8."""
    out = xp.zeros((-(-X.shape[0] // 8) * 8, X.shape[1]), dtype=np.float32)
    out[: X.shape[0]] = X
    return out
