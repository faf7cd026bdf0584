"""Chains of dense products where there is no compiled kernel: multiply and add, rounded once.

That is IEEE 754's fusedMultiplyAdd. A product of two float32 numbers is exact in float64. Its sum with a
third is rounded to 53 bits, and then to 24. One rounding would give the same unless the first one ended
halfway between two float32 numbers, or in their denormal range: there it is done once more, rounded to odd
(Boldo and Melquiond 2008), after which the second rounding is right.
"""

from itertools import pairwise

import numpy as np

LOW_BITS, HALFWAY = (
    np.uint64((1 << 29) - 1),
    np.uint64(1 << 28),
)  # of float64: what float32 has not, and half of its last place
SIZE = np.uint64((1 << 63) - 1)  # all bits of float64 but the sign
DENORMAL = np.float64(2.0**-125).view(np.uint64) - np.uint64(
    1
)  # below 2^-125 float32 has, or nearly, fewer bits
ONE = np.uint64(1)
PIECE = 1 << 15  # outputs of a product that are made at a time: they stay in the cache


class Chains:
    """Float32 sums that are followed link by link.

    sums   [...] float32, changed in place
    """

    def __init__(self, sums: np.ndarray) -> None:
        self.sums = sums
        self._total = np.empty(sums.shape, dtype=np.float64)
        self._bits = np.empty(sums.shape, dtype=np.uint64)

    def add(self, a: np.ndarray, b: np.ndarray) -> None:
        """sums = a b + sums, rounded once; a and b float64 arrays of float32 numbers, broadcast to sums."""
        total = np.multiply(a, b, out=self._total)
        total += self.sums
        halfway = np.bitwise_and(total.view(np.uint64), LOW_BITS, out=self._bits) == HALFWAY
        size = np.bitwise_and(total.view(np.uint64), SIZE, out=self._bits)
        size -= ONE  # so that zero, which is exact, is the largest
        if halfway.any() or (size < DENORMAL).any():
            total = _to_odd(np.broadcast_to(a, total.shape) * b, self.sums, total)
        with np.errstate(over="ignore"):
            self.sums[...] = total


def _to_odd(product: np.ndarray, c: np.ndarray, total: np.ndarray) -> np.ndarray:
    """product + c in float64, rounded to odd where it is not exact; total is the sum rounded to nearest."""
    with np.errstate(invalid="ignore"):
        rest = total - product  # Knuth's exact error of a sum
        error = (product - (total - rest)) + (c - rest)
    even = (total.view(np.int64) & 1) == 0
    nudged = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where(even & (error != 0) & np.isfinite(error), nudged, total)


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a b + c, rounded once; float32 arrays that are broadcast to each other."""
    a, b, c = np.broadcast_arrays(*(np.asarray(each, dtype=np.float32) for each in (a, b, c)))
    chains = Chains(c.copy())
    chains.add(a.astype(np.float64), b.astype(np.float64))
    return chains.sums


def chained_product(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """X W, each element one chain over the columns of X. X [r, k], W [k, m]; returns [r, m] float32."""
    (rows, k), m = X.shape, W.shape[1]
    out = np.zeros((rows, m), dtype=np.float32)
    W, piece = W.astype(np.float64), max(PIECE // max(m, 1), 1)
    for lo in range(0, rows, piece):
        chains = Chains(out[lo : lo + piece])
        columns = np.ascontiguousarray(X[lo : lo + piece].T, dtype=np.float64)[:, :, None]
        for j in range(k):
            chains.add(columns[j], W[j])
    return out


def chained_gram(X: np.ndarray, D: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """X^T D by row blocks, each element one chain over the rows of its block, graph by graph.

    X [r, k]   D [r, m]   starts [graphs, blocks+1]: see Products.gram
    returns    [blocks, k*m] float32
    """
    k, m, blocks = X.shape[1], D.shape[1], starts.shape[1] - 1
    out = np.zeros((blocks, k * m), dtype=np.float32)
    X, D = X.astype(np.float64)[:, :, None], D.astype(np.float64)[:, None, :]
    piece = max(PIECE // max(k * m, 1), 1)
    for lo in range(0, blocks, piece):
        sums = np.zeros((min(piece, blocks - lo), k, m), dtype=np.float32)
        for own in starts[:, lo : lo + piece + 1]:
            _add_graph(sums, X, D, own)
        out[lo : lo + piece] = sums.reshape(len(sums), k * m)
    return out


def _add_graph(sums: np.ndarray, X: np.ndarray, D: np.ndarray, starts: np.ndarray) -> None:
    """The rows of one graph, the next one of each block at a time; blocks without one are left out then."""
    count = np.diff(starts)
    marks = np.unique(np.concatenate([[0], count]))
    for first, end in pairwise(marks.tolist()):
        which = np.flatnonzero(count >= end)
        chains = Chains(sums[which])
        for t in range(first, end):
            rows = starts[which] + t
            chains.add(X[rows], D[rows])
        sums[which] = chains.sums
