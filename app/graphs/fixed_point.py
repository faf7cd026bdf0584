"""Weights of edges and nodes as whole numbers, so that sums are exact and the same in any order."""

import math
from collections.abc import Callable

import numpy as np

from app.errors import GraphError
from app.graphs.graph import Graph

ROUNDING = 1e-9  # of a number: what is less is not worth a word
LARGEST = 2**52  # the sum of all |weights|, in units: exact in int64 and in float64


def integer_weights(graph: Graph) -> tuple[np.ndarray, float]:
    """[nnz] int64 edge weights aligned with graph.indices, and their unit; all one where there are none."""
    if graph.weights is None:
        return np.ones(len(graph.indices), dtype=np.int64), 1.0
    return whole_numbers(graph.weights, f"{graph.name}: an edge weight")


def whole_numbers(weights: np.ndarray, what: str, largest: int = LARGEST) -> tuple[np.ndarray, float]:
    """Weights [k] float32 as whole numbers and their unit: weight = integer * unit.

    Whole weights have unit 1. Otherwise the unit is the largest power of two of
    which every weight is a multiple: every float32 is a whole multiple of some power of two, so nothing is
    rounded. Only where the sum of |weights| would pass `largest` units is the unit the smallest power of two
    that keeps it below, and each weight is then rounded to the nearest unit (ties to even).

    what     what a weight is called in an error
    largest  more than there are weights, at most LARGEST
    returns  [k] int64, and the unit (a power of two)
    """
    if 2 * len(weights) <= largest and (weights == 1).all():
        return np.ones(len(weights), dtype=np.int64), 1.0
    weights = np.asarray(weights).astype(np.float64)
    if not np.isfinite(weights).all():
        raise GraphError(f"{what} is not a finite number")
    total = float(np.abs(weights).sum())
    if not total:
        return np.zeros(len(weights), dtype=np.int64), 1.0
    # Sum <= largest units also after every weight was rounded up by half a unit.
    coarsest = math.ceil(math.log2(total / (largest - len(weights))))
    whole = np.array_equal(np.rint(weights), weights)
    unit = 2.0 ** max(0 if whole else min(_exact_exponent(weights), 0), coarsest)
    return (weights if whole and unit == 1 else np.rint(weights / unit)).astype(np.int64), unit


def refuse_vanished(numbers: np.ndarray, given: np.ndarray, called: Callable[[int], str]) -> None:
    """Refuse numbers [k] of a unit that are 0, where those given [k] are not. Raises GraphError.

    called   what the i-th one is called, with its file's or graph's name: "g: the weight of node 7"
    """
    lost = np.flatnonzero((numbers == 0) & (given != 0))
    if len(lost):
        first = int(lost[0])
        told = f"{called(first)}, {float(given[first]):g}, counts as 0 beside others of up to"
        raise GraphError(f"{told} {float(np.abs(given).max()):g}; larger or 0 would be right")


def vanished_words(given: np.ndarray | None, unit: float, what: str = "weights of edges") -> str:
    """What a log says of numbers given [k] (None: all one) that are not 0 and, in a unit, are; "": none is.

    For terms of sums, which are all rounded alike, by half a unit at most; what decides by itself is refused.
    """
    size = np.zeros(0) if given is None else np.abs(given)
    lost = size[(size > 0) & (size <= unit / 2)]
    if not len(lost):
        return ""
    return f"{what} of up to {lost.max():g} count as 0 beside others of up to {size.max():g}"


def rounded_words(numbers: np.ndarray, given: np.ndarray | None, unit: float, what: str) -> str:
    """What a log says of numbers [k] of a unit that are not quite those given [k], above 0; "": they are.

    For terms of ratios, where little room is left for them.
    """
    off = np.zeros(0) if given is None else np.abs(numbers * unit - given.astype(np.float64)) / given
    if not (off > ROUNDING).any():
        return ""
    return f"{what} count as multiples of {unit:g}, by which they change by up to {100 * off.max():.2g} %"


def _exact_exponent(weights: np.ndarray) -> int:
    """The largest k such that every weight [k] float64 (from float32, not all 0) is a multiple of 2^k."""
    mantissa, exponent = np.frexp(weights[weights != 0])
    whole = (mantissa * 2.0**24).astype(np.int64)  # a float32 has 24 bits
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return int((exponent - 24 + lowest).min())
