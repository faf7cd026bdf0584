"""Degrees as features, of nodes of which nothing else is known: other graphs have the same columns."""

import numpy as np
from scipy.sparse import csr_array

RANGES = 64
ALONE = 32  # degrees below it have a column each, larger ones a quarter of an octave


def degree_ranges(degrees: np.ndarray) -> np.ndarray:
    """[k] int64 0..RANGES-1, the column of each degree [k]: the degree below ALONE, above it by quarters
    between powers of two, the last for all from 7/8 of 2^13 on."""
    large = np.maximum(degrees, ALONE).astype(np.int64)
    octave = np.frexp(large.astype(np.float64))[1].astype(np.int64) - 1  # 2^octave <= degree, exactly
    quarter = (large >> (octave - 2)) & 3
    columns = ALONE + 4 * (octave - (ALONE.bit_length() - 1)) + quarter
    return np.where(degrees < ALONE, degrees, np.minimum(columns, RANGES - 1))


def degree_features(degrees: np.ndarray, nodes: np.ndarray, rows: int) -> csr_array:
    """[rows, RANGES] float32, a one in each node's row, in the column of its degree; other rows are zero.

    degrees, nodes   [k] of the first k rows: their degrees, and [k] bool, which of them are nodes
    """
    held = np.zeros(rows, dtype=bool)
    held[: len(nodes)] = nodes
    indptr = np.concatenate([[0], np.cumsum(held)]).astype(np.int32)
    columns = degree_ranges(degrees[nodes]).astype(np.int32)
    return csr_array((np.ones(len(columns), dtype=np.float32), columns, indptr), shape=(rows, RANGES))
