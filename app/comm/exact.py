"""Sums of floating-point numbers over ranks that do not depend on who holds which: as whole numbers."""

import numpy as np

from app.comm.group import Group

BITS = 62  # of a sum of whole numbers
LOWEST = -(1 << 20)  # below the exponent of any number


def sum_exactly(group: Group, rows_own: np.ndarray) -> np.ndarray:
    """The sums of columns over the rows of all ranks, each row rounded to a common step first.

    rows_own   [k, w] float64, finite; k may differ by rank
    returns    [w] float64, the same bits however rows are shared out: each column is counted in steps of 2^-e
               of its largest magnitude, where e = 62 less the binary digits of the number of rows
    Ranks      all call; result identical on all
    """
    largest = np.abs(rows_own).max(axis=0, initial=0)
    exponent = np.where(largest > 0, np.frexp(largest)[1], LOWEST).astype(np.int64)
    top = group.max_integers(exponent)
    count = int(group.sum_integers(np.array([len(rows_own)], dtype=np.int64))[0])
    places = np.where(top > LOWEST, BITS - count.bit_length() - top, 0).astype(np.int64)
    whole = np.rint(np.ldexp(rows_own, places)).astype(np.int64)
    return np.ldexp(group.sum_integers(whole.sum(axis=0)).astype(np.float64), -places)
