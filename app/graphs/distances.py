"""Distances between all pairs of points that are in memory: a matrix, or a complete NetworkX graph."""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.metric import LARGEST_DIGITS, MOST_DIRECTED, MOST_TABLE_POINTS, Metric, directed, explicit
from app.graphs.points import stream_of_metric
from app.graphs.stream import EdgeStream

LARGEST_DISTANCE = 2**31 - 1
DIGITS, DIRECTED_DIGITS = 7, 6  # of decimal distances: the largest is 10^this to 10^(this + 1) units
LEAST_LARGEST, LARGEST_SUM = 1e-300, sys.float_info.max  # of decimal distances, so that no length is lost
SAME = 1e-9  # of the largest distance: what the two directions of a pair may differ by where they are decimal

Named = Callable[[Any], str]


def stream_of_distances(given: Any, labels: list[Any] | None = None) -> tuple[EdgeStream, list[Any] | None]:
    """The metric of distances as a stream, and the labels of its points in row order.

    given   [n, n] numbers, from the point of the row to that of the column, whose diagonal plays no part; or
            a complete NetworkX graph, whose edge attribute `weight` is the distance
    labels  of the points of an array, by which errors name them; None: their numbers
    Whole numbers up to 2^31-1 are what they are; others are counted in a power of ten that makes the largest
    10^7 to 10^8 units, 10^6 to 10^7 where they differ by direction. Raises GraphError.
    """
    name = "distances"
    if hasattr(given, "adj") and hasattr(given, "edges"):
        name, labels, found = str(given.name or name), list(given.nodes), _of_networkx(given)
    elif isinstance(given, np.ndarray):
        found = _of_array(given)
    else:
        right = "for a tour distances [n, n] or coordinates [n, 2] as a NumPy array, a DataFrame of these, or"
        raise GraphError(f"graph: found {type(given)}; {right} a complete NetworkX graph would be right")
    at = np.arange(len(found)) if labels is None else labels
    metric = metric_of_distances(name, found, lambda i: repr(at[i]) if labels is not None else str(i))
    return stream_of_metric(metric, "", "memory", 0), labels


def metric_of_distances(name: str, found: np.ndarray, called: Named = str) -> Metric:
    """The metric of a matrix [n, n] of real numbers, which it may change.

    called   names a point in an error; raises GraphError
    """
    np.fill_diagonal(found, 0)

    def refuse_where(wrong: np.ndarray, right: str) -> None:
        if wrong.any():
            i, j = np.unravel_index(int(wrong.argmax()), wrong.shape)
            distance = f"the distance from {called(i)} to {called(j)} is {found[i, j]:.12g}"
            raise GraphError(f"graph: {distance}; {right} would be right")

    refuse_where(~np.isfinite(found), "a finite number")
    refuse_where(found < 0, "0 or more")
    largest = found.max(initial=0)
    whole = found.dtype.kind in "iu" or bool(
        (largest <= LARGEST_DISTANCE) and (found == np.rint(found)).all()
    )
    if whole:
        refuse_where(found > LARGEST_DISTANCE, f"at most {LARGEST_DISTANCE}, or numbers as floats,")
    unlike = np.abs(found - found.T) > SAME * largest if not whole else found != found.T
    by_direction = bool(unlike.any())
    if by_direction and len(found) > MOST_DIRECTED:
        told = f"graph: found distances of {len(found)} points that differ by direction"
        raise GraphError(f"{told}; at most {MOST_DIRECTED} points would be right")
    if whole:
        return (directed if by_direction else explicit)(name, found)
    if not (largest >= LEAST_LARGEST and math.isfinite(float(largest) * len(found))):
        told = f"graph: the largest distance is {largest:.12g}"
        raise GraphError(f"{told}; from {LEAST_LARGEST:g} to {LARGEST_SUM / len(found):.3g} would be right")
    return _scaled(name, found, float(largest), by_direction)


def _scaled(name: str, found: np.ndarray, largest: float, by_direction: bool) -> Metric:
    """The metric of decimal distances [n, n], the largest above 0."""
    wanted = DIRECTED_DIGITS if by_direction else DIGITS
    digits = wanted - math.floor(math.log10(largest))
    plain = abs(digits) < LARGEST_DIGITS
    found *= 10.0**digits if plain else 10.0**wanted / largest
    units, unit = np.floor(found + 0.5), 10.0**-digits if plain else largest / 10.0**wanted
    if by_direction:
        return replace(directed(name, units), unit=unit)
    upper = np.triu(units, 1)  # the two directions may have been rounded apart
    return replace(explicit(name, upper + upper.T), unit=unit)


def _refuse_size(n: int) -> None:
    if not 1 <= n <= MOST_TABLE_POINTS:
        raise GraphError(f"graph: found distances of {n} points; 1 to {MOST_TABLE_POINTS} would be right")


def _of_array(given: np.ndarray) -> np.ndarray:
    if given.ndim != 2 or given.shape[0] != given.shape[1] or given.dtype.kind not in "iuf":
        found = f"an array of {given.dtype} of shape {given.shape}"
        raise GraphError(f"graph: found {found}; distances [n, n] would be right")
    if isinstance(given, np.ma.MaskedArray):
        raise GraphError("graph: found a masked array; distances [n, n] of all pairs would be right")
    given = np.asarray(given)  # of a matrix too
    _refuse_size(len(given))
    if given.dtype == np.uint64:
        return np.minimum(given, np.uint64(LARGEST_DISTANCE + 1)).astype(np.int64)
    return given.astype(np.float64 if given.dtype.kind == "f" else np.int64)


def _of_networkx(graph: Any) -> np.ndarray:
    """[n, n] float64 from the edges of a complete graph."""
    labels = list(graph.nodes)
    n, number = len(labels), {label: i for i, label in enumerate(labels)}
    _refuse_size(n)
    found, known = np.zeros((n, n)), np.eye(n, dtype=bool)
    directed = graph.is_directed()
    for u, v, weight in graph.edges(data="weight"):
        i, j = number[u], number[v]
        if i == j:
            continue
        if not isinstance(weight, Real) or isinstance(weight, bool):
            missing = "has no weight" if weight is None else f"has the weight {repr(weight)[:60]}"
            raise GraphError(f"graph: edge {u!r}-{v!r} {missing}; a number, its length, would be right")
        if known[i, j] and found[i, j] != weight:
            raise GraphError(f"graph: edge {u!r}-{v!r} is there twice; one would be right")
        try:
            length = float(weight)
        except OverflowError:  # a whole number of more than 308 digits
            length = math.inf
        for a, b in ((i, j),) if directed else ((i, j), (j, i)):
            found[a, b], known[a, b] = length, True
    if not known.all():
        i, j = np.unravel_index(int((~known).argmax()), known.shape)
        pair = f"there is no edge {labels[i]!r}-{labels[j]!r}"
        raise GraphError(f"graph: {pair}; a tour needs the distance of every pair, as in a complete graph")
    return found
