"""Sums of floating-point numbers over ranks that do not depend on who holds which: as whole numbers."""

from collections.abc import Callable, Iterable

import numpy as np

from app.comm.group import Group

BITS = 62  # of a sum of whole numbers
LOWEST = -(1 << 20)  # below the exponent of any number


def sum_exactly(group: Group, pieces_own: Callable[[], Iterable[np.ndarray]], width: int) -> np.ndarray:
    """The sums of columns over the rows of all ranks, each number rounded to a step of its column first.

    pieces_own   makes this rank's rows some at a time, [k, width] float64, finite; called twice
    returns      [width] float64, the same bits however rows are shared out: a column is counted in steps of
                 2^-e of its largest magnitude, where e = 62 less the binary digits of the number of rows
    Ranks        all call; result identical on all
    """
    top, count = np.full(width, LOWEST, dtype=np.int64), 0
    for rows in pieces_own():
        largest = np.abs(rows).max(axis=0, initial=0)
        top = np.where(largest > 0, np.maximum(top, np.frexp(largest)[1]), top)
        count += len(rows)
    top = group.max_integers(top)
    count = int(group.sum_integers(np.array([count], dtype=np.int64))[0])
    places = np.where(top > LOWEST, BITS - count.bit_length() - top, 0).astype(np.int64)
    sums = np.zeros(width, dtype=np.int64)
    for rows in pieces_own():
        sums += np.rint(np.ldexp(rows, places)).astype(np.int64).sum(axis=0)
    return np.ldexp(group.sum_integers(sums).astype(np.float64), -places)
