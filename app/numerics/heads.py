"""Heads of edges: hidden units from the rows of both ends, and their gradients to the rows of one end.

The rows of a node are three parts of h columns, [p q r] (gnn/edge_level/head.py has the derivation). Every
function is a fixed sequence of operations for each element, and what entries add to a row is one chain in
their order: the same bits on every device and in the compiled kernels.
"""

from typing import Any

import numpy as np

Array = Any


class HeadProducts:
    """Operations on entries (u, v), of a device that has Products and `spmm_add`."""

    xp: Any

    def head_units(
        self, Z: Array, X: Array, row: Array, column: Array, bias: Array | None, U: Array, begun: bool
    ) -> None:
        """U = relu(p_u + p_v + q_u * q_v + |r_u - r_v| + U + b), of entries in any order; NaN stays.

        Z [n, 3h], X [*, 3h]   rows of the first and of the second ends, row, column [k] int32 their numbers
        bias [h] or None       U [k, h]     begun   U holds something that is added; else it is only written
        """
        xp, h = self.xp, U.shape[1]
        A, B = xp.take(Z, row, axis=0), xp.take(X, column, axis=0)
        M = A[:, :h] + B[:, :h]
        M += A[:, h : 2 * h] * B[:, h : 2 * h]
        M += xp.abs(A[:, 2 * h :] - B[:, 2 * h :])
        if begun:
            M += U
        if bias is not None:
            M += bias
        U[...] = xp.where(M <= 0, np.float32(0), M)

    def head_back(
        self, Z: Array, X: Array, row: Array, column: Array, U: Array, G: Array, D: Array, first: int,
        ones: Any,
    ) -> None:  # fmt: skip
        """G becomes 0 where U is; D_u += [g, g * q_v, g * sign(r_u - r_v)], entry after entry.

        U, G [k, h], of entries whose rows ascend     D [m, 3h] rows first .. first+m-1
        ones    matrix [m, k] that adds up the entries of each row
        """
        xp, h = self.xp, U.shape[1]
        A, B = xp.take(Z[:, 2 * h :], row, axis=0), xp.take(X, column, axis=0)
        G[...] = xp.where(U > 0, G, np.float32(0))
        away = A - B[:, 2 * h :]
        signed = xp.where(away > 0, G, xp.where(away < 0, -G, np.float32(0)))
        self.spmm_add(ones, xp.concatenate([G, G * B[:, h : 2 * h], signed], axis=1), D)
