"""Weights as integers, so that sums of them are exact and equal on all machines."""

import numpy as np

FRACTION_BITS = 20


def integer_weights(weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights [k] float32 as int64 and their unit: weight = integer * unit.

    Whole numbers have unit 1; others are rounded to multiples of 2^-20 (of less than 1 in all: to a finer
    power of two, so that the largest keeps 20 bits).
    """
    wide = np.asarray(weights, dtype=np.float64)
    if not len(wide) or (wide == np.rint(wide)).all():
        return wide.astype(np.int64), 1.0
    largest = float(np.abs(wide).max())
    exponent = FRACTION_BITS - min(0, int(np.frexp(largest)[1]))
    return np.rint(np.ldexp(wide, exponent)).astype(np.int64), float(np.ldexp(1.0, -exponent))
