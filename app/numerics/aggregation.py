"""Several aggregators of the rows that a node hears, in one pass: mean, largest, smallest, deviation.

One pattern of stored entries (i, j) at a time is gone through, in its order, and what it adds goes on from
what is there: so a row is one chain over its entries in global order however its columns are cut into tiles.
Of the c-th entry x of a row, by columns (Welford 1962),

    d = x - m     m = m + d (1/c)     q = q + d (x - m)     max, min: x where it is beyond what is there

so that after the last one m is the mean and q / c the variance, without the cancellation of mean squares less
squared means. Of equal largest entries the first one counts, and its name is kept. Every function is a fixed
sequence of IEEE-exact operations: the same bits on every device and in the compiled kernels.
"""

from typing import Any

import numpy as np

from app.numerics.attention import Rounds

Array = Any
PARTS = 4  # of V: mean | largest | smallest | deviation
BACK = 7  # of F, see aggregate_pack
EPSILON = 1e-5  # added to a variance before its root is taken
FIRST_NAME = 1 << 30  # row i is called by the normal number of the bits FIRST_NAME + i
MOST_ROWS = (1 << 30) - (1 << 23)  # that have such names
MOST_ENTRIES = 1 << 24  # of a row, which are counted in float32


def row_names(first: int, count: int) -> np.ndarray:
    """[count] float32, names of the rows first, first + 1, ...: different normal numbers, to be compared."""
    return (np.arange(first, first + count, dtype=np.int64) + FIRST_NAME).astype(np.int32).view(np.float32)


class Aggregation:
    """Operations on entries, of a device that has `xp`; *_ext are rows that a pattern's columns number."""

    xp: Any

    def aggregation_pattern(self, A: Any) -> Any:
        """What the functions below need of a CSR matrix, made once."""
        return Rounds(self, *(np.asarray(self.get(part)) for part in (A.indptr, A.indices)))

    def aggregate_begin(self, V: Array, T: Array) -> None:
        """Nothing heard: V [n, 4 k] = [0 | -infinity | infinity | 0], T [n, 2 k + 1] = 0."""
        k = V.shape[1] // PARTS
        V[...] = 0
        V[:, k : 2 * k] = -np.inf
        V[:, 2 * k : 3 * k] = np.inf
        T[...] = 0

    def aggregate_add(self, pattern: Any, E_ext: Array, V: Array, T: Array) -> None:
        """Hear every entry.

        E_ext [*, k + 1]     columns S | name of the row
        V     [n, 4 k]       columns m | max | min | q
        T     [n, 2 k + 1]   columns name of the largest | of the smallest | count
        """
        xp, k = self.xp, V.shape[1] // PARTS
        v, t = V[pattern.order], T[pattern.order]
        for size, columns, _ in pattern.each():
            x, name = E_ext[columns][:, :k], E_ext[columns][:, k:]
            m, high, low, q = (v[:size, part * k : (part + 1) * k] for part in range(PARTS))
            count = t[:size, 2 * k :] + np.float32(1)
            d = x - m
            mean = m + d * (1 / count)
            square = q + d * (x - mean)
            above, below = x > high, x < low
            t[:size, :k] = xp.where(above, name, t[:size, :k])
            t[:size, k : 2 * k] = xp.where(below, name, t[:size, k : 2 * k])
            t[:size, 2 * k :] = count
            v[:size, k : 2 * k] = xp.where(above, x, high)
            v[:size, 2 * k : 3 * k] = xp.where(below, x, low)
            v[:size, :k], v[:size, 3 * k :] = mean, square
        V[pattern.order], T[pattern.order] = v, t

    def aggregate_finish(self, V: Array, T: Array) -> None:
        """Deviations in the place of q: sqrt(q / count + EPSILON); rows that hear nothing are zero."""
        xp, k = self.xp, V.shape[1] // PARTS
        count = T[:, 2 * k :]
        some = count > 0
        V[:, 3 * k :] = xp.sqrt(V[:, 3 * k :] / xp.where(some, count, np.float32(1)) + np.float32(EPSILON))
        V[...] = xp.where(some, V, np.float32(0))

    def aggregate_pack(self, D: Array, V: Array, T: Array, F: Array) -> None:
        """What entries need of a row for the gradients by theirs.

        D   [n, 4 k]   dV     V, T as aggregate_finish left them
        F   [n, 7 k]   gets D_mean / c | D_dev / (c dev) | mean | D_max | D_min | names of max and min
        """
        xp, k = self.xp, V.shape[1] // PARTS
        some = T[:, 2 * k :] > 0
        count = xp.where(some, T[:, 2 * k :], np.float32(1))
        spread = count * xp.where(some, V[:, 3 * k :], np.float32(1))
        F[:, :k] = xp.where(some, D[:, :k] / count, np.float32(0))
        F[:, k : 2 * k] = xp.where(some, D[:, 3 * k :] / spread, np.float32(0))
        F[:, 2 * k : 3 * k], F[:, 3 * k : 5 * k] = V[:, :k], D[:, k : 3 * k]
        F[:, 5 * k :] = T[:, : 2 * k]

    def aggregate_back(self, pattern: Any, F_ext: Array, S: Array, names: Array, dS: Array) -> None:
        """Add every entry's part of the gradients by S_j, row j of the pattern with columns i.

        F_ext [*, 7 k] as in aggregate_pack     S, dS [n, k]     names [n] of the rows j
        """
        xp, k = self.xp, S.shape[1]
        x, own, g = S[pattern.order], names[pattern.order][:, None], dS[pattern.order]
        for size, columns, _ in pattern.each():
            mean, dev, center, high, low, top, bottom = (
                F_ext[columns][:, part * k : (part + 1) * k] for part in range(BACK)
            )
            part = mean + dev * (x[:size] - center)
            part = part + xp.where(top == own[:size], high, np.float32(0))
            part = part + xp.where(bottom == own[:size], low, np.float32(0))
            g[:size] += part
        dS[pattern.order] = g
