"""Edge weights of a row-partitioned graph as whole numbers: one unit on all ranks, exact sums."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

from app.comm.group import Group
from app.errors import GraphError
from app.graphs.fixed_point import LARGEST
from app.sparse.rowblock import RowBlock

EXACT_IN_FLOAT32 = 1 << 23  # and twice as much
LEAST_EXPONENT = -149  # of the last bit of a float32
EXPONENTS = 278  # further ones, up to that of the last bit of the largest


@dataclass(frozen=True)
class WholeWeights:
    """The weights of the stored entries of one rank, in units.

    unit      weight = integer * unit, as app/graphs/fixed_point.py chooses it
    matrix    CSC int64 [n_own, n_ext]; None where all weights of all ranks are one and `exact`
    total     sum of |weights| of both directions, all ranks     signed: sum of the weights
    exact     sums over a node's neighbours, and twice these, are exact in float32
    """

    unit: float
    matrix: csc_matrix | None
    total: int
    signed: int
    exact: bool


def whole_weights(group: Group, block: RowBlock) -> WholeWeights:
    """The block's weights, made at the first call and kept with it. Ranks: all call."""
    if "whole_weights" not in block.kept:
        block.kept["whole_weights"] = _make(group, block)
    return block.kept["whole_weights"]


def _make(group: Group, block: RowBlock) -> WholeWeights:
    if not block.weighted and block.max_degree < EXACT_IN_FLOAT32:
        entries = int(group.sum_integers(np.array([block.degrees_own().sum()]))[0])
        return WholeWeights(1.0, None, entries, entries, True)
    counts, columns, weights = block.extended_rows(np.arange(block.n_own))
    if weights is None:
        weights = np.ones(len(columns), dtype=np.float32)
    unit = common_unit(group, block.name, weights)
    whole = np.rint(weights.astype(np.float64) / unit).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    rows = csr_matrix((whole, columns, offsets), shape=(block.n_own, block.n_ext))
    sums = np.asarray(abs(rows).sum(axis=1), dtype=np.int64).reshape(-1)
    total, signed = group.sum_integers(np.array([sums.sum(), whole.sum()])).tolist()
    largest = group.max_integer(int(sums.max(initial=0)))
    return WholeWeights(unit, rows.tocsc(), total, signed, largest < EXACT_IN_FLOAT32)


def common_unit(group: Group, name: str, weights: np.ndarray) -> float:
    """The unit that fixed_point.whole_numbers chooses for the weights of all ranks. Ranks: all call.

    name      of the graph, for an error
    weights   [nnz] float32
    The sum of |weights| is taken exactly, by powers of two, so that the order cannot matter.
    """
    finite = int(np.isfinite(weights).all())
    if group.max_integer(1 - finite):
        raise GraphError(f"{name}: an edge weight is not a finite number")
    mantissa, exponent = np.frexp(np.abs(weights[weights != 0]).astype(np.float64))
    digits = (mantissa * 2.0**24).astype(np.int64)
    trailing = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    digits >>= trailing
    power = exponent - 24 + trailing - LEAST_EXPONENT
    # Sums of integers below 2^24: exact in float64 for 2^29 entries of a rank.
    local = np.bincount(power, weights=digits, minlength=EXPONENTS).astype(np.int64)
    by_power = group.sum_integers(np.append(local, len(weights))).tolist()
    entries = by_power.pop()
    if not any(by_power):
        return 1.0
    lowest = next(i for i, digit in enumerate(by_power) if digit)
    whole = sum(digit << i for i, digit in enumerate(by_power))
    # The whole number over 2^149 is the sum; a quotient of integers is rounded correctly whatever their size.
    coarsest = math.ceil(math.log2(whole / (LARGEST - entries)) + LEAST_EXPONENT)
    return 2.0 ** max(min(lowest + LEAST_EXPONENT, 0), coarsest)
