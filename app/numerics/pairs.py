"""Pairs of nodes scored by the product of their rows: losses of many pairs, and their gradients.

One pattern of stored entries (u, v) at a time is gone through, in its order, and what it adds goes on from
what is there: so a row is one chain over its entries in global order however its columns are cut into tiles.
For every entry, with t = 1 where the two are joined and 0 where not,

    s = z_u x_v     loss = max(s, 0) - s t + log(1 + exp(-|s|))     g = (sigmoid(s) - t) w

Where a node's partners are ranked, u has scores t_u [k] of its own pairs apart, and the entry (u, v) counts

    loss = sum over r of h(t_ur - s), h(x) = max(x, 0) + log(1 + exp(-|x|))     g_ur = sigmoid(t_ur - s) w

and as much with t_v: s is to be larger than every t. The gradient by s is -(sum of g_ur + sum of g_vr), that
by t_ur the sum of g_ur over the entries of u. A t of -inf counts nothing.

A product of two rows is LANES chains over every LANES-th column, added up in halves; every function is a
fixed sequence of IEEE-exact operations: the same bits on every device and in the compiled kernels.
"""

from typing import Any

import numpy as np

from app.numerics.elementary import exp, log

Array = Any
LANES = 16


class PairProducts:
    """Operations on pairs, of a device that has `xp`; X_ext are the rows that a pattern's columns number.

    Patterns are those of `Attention.attention_pattern`.
    """

    xp: Any

    def pair_add(
        self, pattern: Any, X_ext: Array, Z: Array, target: float, weight: float, Y: Array, losses: Array
    ) -> None:
        """Add every entry's loss to that of its row, and g x_v, the gradient by z_u, to the row of Y.

        X_ext [*, d]     Z, Y [n, d]     losses [n], without the weight
        target   1 or 0, of all entries     weight   w
        """
        xp, order = self.xp, pattern.order
        z, y, total = Z[order], Y[order], losses[order]
        target, weight = np.float32(target), np.float32(weight)
        for size, columns, _ in pattern.each():
            x = X_ext[columns]
            s = lane_dots(xp, z[:size], x)
            e = exp(xp, -xp.abs(s))
            below = 1 + e
            total[:size] += (xp.where(s > 0, s, np.float32(0)) - s * target) + log(xp, below)
            g = (xp.where(s < 0, e, np.float32(1)) / below - target) * weight
            y[:size] += g[:, None] * x
        Y[order], losses[order] = y, total

    def rank_add(
        self, pattern: Any, X_ext: Array, Z: Array, d: int, weight: float, Y: Array, losses: Array
    ) -> None:
        """Add the gradient by z_u of every entry to the row of Y, and beside it that by t_u; losses likewise.

        X_ext [*, d + k], Z, Y [n, d + k]   rows of d columns and, beside them, the scores t
        losses [n, k]                       without the weight     weight   w
        """
        xp, order = self.xp, pattern.order
        z, y, total = Z[order], Y[order], losses[order]
        weight = np.float32(weight)
        for size, columns, _ in pattern.each():
            x = X_ext[columns]
            s, c = lane_dots(xp, z[:size, :d], x[:, :d]), xp.zeros(size, dtype=np.float32)
            for r in range(Z.shape[1] - d):
                g, term = _behind(xp, z[:size, d + r] - s, weight)
                c += g
                y[:size, d + r] += g
                total[:size, r] += term
            for r in range(Z.shape[1] - d):
                c += _behind(xp, x[:, d + r] - s, weight)[0]
            y[:size, :d] += -c[:, None] * x[:, :d]
        Y[order], losses[order] = y, total

    def pair_dots(self, X: Array, Y: Array) -> Array:
        """[k], the scores of pairs by their rows X, Y [k, d]: the bits of s in `pair_add`."""
        return lane_dots(self.xp, X, Y)


def _behind(xp: Any, x: Array, weight: np.float32) -> tuple[Array, Array]:
    """sigmoid(x) w, and h(x)."""
    e = exp(xp, -xp.abs(x))
    below = 1 + e
    g = xp.where(x < 0, e, np.float32(1)) / below * weight
    return g, xp.where(x > 0, x, np.float32(0)) + log(xp, below)


def lane_dots(xp: Any, X: Array, Y: Array) -> Array:
    """[k], the products of rows of X and Y [k, d]."""
    lanes = xp.zeros((X.shape[0], LANES), dtype=np.float32)
    for lo in range(0, X.shape[1], LANES):
        width = min(LANES, X.shape[1] - lo)
        lanes[:, :width] += X[:, lo : lo + width] * Y[:, lo : lo + width]
    half = LANES // 2
    while half:
        lanes = lanes[:, :half] + lanes[:, half : 2 * half]
        half //= 2
    return lanes[:, 0]
