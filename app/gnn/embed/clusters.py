"""Clusters of vectors by k-means: the same ones on any number of ranks.

Source    Lloyd 1982; first centres: Arthur and Vassilvitskii 2007 (k-means++)
Ranks     rows partitioned, centres replicated. A row's distances depend on that row and the centres alone;
          sums over the nodes of a cluster are products with its 0/1 rows, by row blocks; draws are of whole
          numbers, as which distances are counted.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.ordered import sum_tree
from app.gnn.engine import Engine
from app.rng import stream

Array = Any
ROUNDS = 100  # at most, of one start
UNITS = 1 << 31  # in which the largest distance is counted


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of the own nodes.

    of_own    [n_own] int32, from 0; -1 of rows that are no nodes
    centres   [k, d] float32
    spread    sum of the squared distances of nodes from their centres
    """

    of_own: np.ndarray
    centres: np.ndarray
    spread: float


def cluster(engine: Engine, X: Array, real: np.ndarray, k: int, seed: int, starts: int) -> Clusters:
    """The clusters of the best of some starts, by their spread; of equal ones the first.

    engine   whose statistics are over the rows that are nodes (Engine.counted), real [n_own] bool
    X        [n_own, d] on the device, zero in other rows
    Ranks    all call
    """
    found = [_lloyd(engine, X, real, _first_centres(engine, X, real, k, seed, i)) for i in range(starts)]
    return min(found, key=lambda each: each.spread)


def to_length_one(device: Any, X_own: np.ndarray) -> Array:
    """Rows [n_own, d] on the device, each divided by its length; rows of zeros stay."""
    X = device.put(X_own)
    lengths = np.sqrt(np.array(device.get(device.row_dots(X, X))))
    return device.put((X_own / np.where(lengths > 0, lengths, np.float32(1))[:, None]).astype(np.float32))


def _lloyd(engine: Engine, X: Array, real: np.ndarray, centres: np.ndarray) -> Clusters:
    """Nodes to the nearest centre, centres to the mean of their nodes, until no node moves. A cluster
    without nodes keeps its centre."""
    group, of_own = engine.group, np.full(len(real), -1, dtype=np.int32)
    for _ in range(ROUNDS):
        nearest, spread = _nearest(engine, X, centres)
        nearest[~real] = -1
        moved = int(group.sum_integers(np.array([np.count_nonzero(nearest != of_own)]))[0])
        of_own = nearest
        if not moved:
            break
        centres = _means(engine, X, of_own, centres)
    return Clusters(of_own, centres, spread)


def _nearest(engine: Engine, X: Array, centres: np.ndarray) -> tuple[np.ndarray, float]:
    """[n_own] int32 the nearest centre of each row, of equally near ones the first, and the sum of squared
    distances. Ranks: all call (one sum)."""
    device, xp = engine.device, engine.device.xp
    W = device.put(np.ascontiguousarray(centres.T))
    half = device.put(np.array([0.5 * _square(c) for c in centres], dtype=np.float32))
    S = device.chains(X, W) - half  # (|x|^2 - |x - c|^2) / 2
    nearest, best = device.argmax_rows(S), S.max(axis=1)
    squares = device.row_dots(X, X) - np.float32(2) * best
    squares = xp.where(engine.counted != 0, squares, np.float32(0))
    roots = device.column_roots(squares[:, None], engine.starts, engine.spans)
    total = sum_tree(engine.group, roots, engine.cuts, engine.blocks)
    return np.array(device.get(nearest)), float(device.get(total)[0])


def _means(engine: Engine, X: Array, of_own: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """[k, d] the means of clusters. Ranks: all call (two sums)."""
    device, k = engine.device, len(centres)
    flags = (of_own[:, None] == np.arange(k)).astype(np.float32)
    (means,) = engine.mean_grams([(device.put(flags), X)])
    counts = engine.group.sum_integers(np.bincount(of_own[of_own >= 0], minlength=k).astype(np.int64))
    share = engine.counted_rows / np.maximum(counts, 1)
    found = (np.array(device.get(means)).astype(np.float64) * share[:, None]).astype(np.float32)
    return np.where(counts[:, None] > 0, found, centres)


def _first_centres(engine: Engine, X: Array, real: np.ndarray, k: int, seed: int, start: int) -> np.ndarray:
    """[k, d] vectors of nodes, each drawn with a probability as its squared distance from those before.

    Ranks   all call (for each centre a maximum, a gather of numbers and one of a row)
    """
    device, centres = engine.device, np.zeros((k, X.shape[1]), dtype=np.float32)
    norms = np.array(device.get(device.row_dots(X, X))).astype(np.float64)
    away, draws = np.ones(len(real)), stream(seed, "embed/centres", start)
    for i in range(k):
        centres[i] = _drawn(engine, X, np.where(real, away, 0), draws)
        product = np.array(device.get(device.chains(X, device.put(centres[i][:, None].copy()))))[:, 0]
        squares = np.maximum(norms - 2 * product.astype(np.float64) + _square(centres[i]), 0)
        away = squares if i == 0 else np.minimum(away, squares)
    return centres


def _square(vector: np.ndarray) -> float:
    """The squared length of a vector, added up exactly."""
    return math.fsum((vector.astype(np.float64) ** 2).tolist())


def _drawn(engine: Engine, X: Array, away: np.ndarray, draws: np.random.Generator) -> np.ndarray:
    """[d] the row of a node that is drawn with a probability as `away` [n_own] >= 0, in whole steps; where
    all are zero, zeros. Ranks: all call."""
    group, device = engine.group, engine.device
    top = group.max_integer(int(away.max(initial=0).view(np.int64)))  # of positive numbers the order of bits
    largest = float(np.int64(top).view(np.float64))
    steps = np.floor(away * (UNITS / largest)).astype(np.int64) if largest > 0 else np.zeros(len(away), int)
    sums = group.gather_integers(np.array([int(steps.sum())]))[:, 0]
    total, before = int(sums.sum()), int(sums[: group.rank].sum())
    at = int(draws.integers(total)) - before if total else -1
    row = np.zeros((1, X.shape[1]), dtype=np.float32)
    if 0 <= at < int(sums[group.rank]):
        place = int(np.searchsorted(np.cumsum(steps), at, side="right"))
        row[0] = device.get(X[place : place + 1])[0]
    return np.array(device.get(group.merge_rows(device.put(row))))[0]
