"""Dynamic attention over the neighbours of a node: scores of both ends' rows together, softmax over a row.

As app/numerics/attention.py, whose patterns these are: stored entries (i, j) in their order, and what a
pattern adds goes on from what is there. With h heads of k columns each, a vector a of all heads' columns, and
for every entry, column c and head

    s_ijc = T_ic + S_jc     y_ijc = s_ijc where positive, else SLOPE s_ijc
    e_ij = sum over the head's columns of a_c y_ijc, one chain     w_ij = exp(e_ij - m_i)

m_i is the largest e so far: where an entry has a larger one, the sums so far are multiplied by the
exponential of the difference (Milakov and Gimelshein 2018), so that rows travel once. layers/gatv2.py has the
derivation. Where entries have rows of their own (numerics/edge_attention.py), these bring what is added to s,
Q [nnz, h k] by stored entries: s_ijc = (T_ic + S_jc) + Q_ijc. Every function is a fixed sequence of
IEEE-exact operations: the same bits on every device and in the compiled kernels.
"""

from typing import Any

import numpy as np

from app.numerics.attention import SLOPE, head_dots, plus
from app.numerics.elementary import exp

Array = Any


class DynamicAttention:
    """Operations on entries, of a device that has `xp`; *_ext are rows that a pattern's columns number.

    a   [h k], the attention vectors of all heads
    """

    xp: Any

    def dynamic_begin(self, M: Array, V: Array) -> None:
        """Sums of nothing: M [n, 2 h] = [-infinity | 0], V [n, h k] = 0."""
        M[:, : M.shape[1] // 2], M[:, M.shape[1] // 2 :] = -np.inf, 0
        V[...] = 0

    def dynamic_add(
        self, pattern: Any, S_ext: Array, T: Array, a: Array, M: Array, V: Array, Q: Array | None = None
    ) -> None:
        """Add every entry's w and w S_j.

        S_ext [*, h k]     T [n, h k]     M [n, 2 h] columns m | sum of w     V [n, h k] sum of w S_j
        """
        xp, h, order = self.xp, M.shape[1] // 2, pattern.order
        t, m, v = (_by_heads(X[order], h) for X in (T, M, V))
        vector = a.reshape(h, -1)
        top, total = m.reshape(len(m), 2, h)[:, 0], m.reshape(len(m), 2, h)[:, 1]
        for size, columns, places in pattern.each():
            S = _by_heads(S_ext[columns], h)
            e = head_dots(xp, vector, _leaky(xp, plus(t[:size] + S, Q, places)))
            new = xp.where(e > top[:size], e, top[:size])
            old, w = exp(xp, top[:size] - new), exp(xp, e - new)
            top[:size] = new
            total[:size] = total[:size] * old + w
            v[:size] = v[:size] * old[:, :, None] + w[:, :, None] * S
        M[order] = xp.concatenate([top, total], axis=1)
        V[order] = v.reshape(V.shape)

    def dynamic_finish(self, M: Array, V: Array) -> None:
        """Divide by the sum of w: M = [m | u], u its inverse, and V by heads times u."""
        h = M.shape[1] // 2
        M[:, h:] = 1 / M[:, h:]
        V[...] = (_by_heads(V, h) * M[:, h:, None]).reshape(V.shape)

    def dynamic_pack(self, D: Array, T: Array, M: Array, V: Array, F: Array) -> None:
        """What entries need of a row for gradients, F [n, 2 h k + 3 h] = D | T | m | u | c.

        D [n, h k] dZ     M, V as dynamic_finish left them     c = D Z by heads
        """
        width, h = D.shape[1], M.shape[1] // 2
        F[:, :width], F[:, width : 2 * width], F[:, 2 * width : 2 * width + 2 * h] = D, T, M
        F[:, 2 * width + 2 * h :] = head_dots(self.xp, _by_heads(D, h), _by_heads(V, h))

    def dynamic_back_rows(
        self, pattern: Any, S_ext: Array, F: Array, a: Array, dT: Array, G: Array, Q: Array | None = None
    ) -> None:
        """Add every entry's part of the gradients by T_i, and by a as far as it is row i's.

        w = exp(e_ij - m_i) u_i     g = w (D_i S_j - c_i)     dT_ic += g a_c slope_ijc     G_ic += g y_ijc

        S_ext [*, h k]     F [n, 2 h k + 3 h] as dynamic_pack made it     dT, G [n, h k]
        Q, where given, becomes the gradient by it: what each entry adds to dT
        """
        xp, order, width = self.xp, pattern.order, dT.shape[1]
        h = (F.shape[1] - 2 * width) // 3
        own, vector = _unpacked(F[order], width, h), a.reshape(h, -1)
        dt, gs = _by_heads(dT[order], h), _by_heads(G[order], h)
        for size, columns, places in pattern.each():
            S, some = _by_heads(S_ext[columns], h), [each[:size] for each in own]
            s, y, _, g = _gradients(xp, some, S, vector, Q, places)
            ds_ij = _sloped(xp, s, g[:, :, None] * vector)
            dt[:size] += ds_ij
            gs[:size] += g[:, :, None] * y
            if Q is not None:
                Q[places] = ds_ij.reshape(size, width)
        dT[order], G[order] = dt.reshape(dT.shape), gs.reshape(G.shape)

    def dynamic_back_columns(
        self, pattern: Any, F_ext: Array, S: Array, a: Array, dS: Array, Q: Array | None = None
    ) -> None:
        """Add every entry's part of the gradient by S_j, row j of the pattern with columns i.

        dS_jc += w D_ic, then g a_c slope_ijc     of w and g as above

        F_ext [*, 2 h k + 3 h]     S, dS [n, h k]
        """
        xp, order, width = self.xp, pattern.order, S.shape[1]
        h = (F_ext.shape[1] - 2 * width) // 3
        own, vector = _by_heads(S[order], h), a.reshape(h, -1)
        ds = _by_heads(dS[order], h)
        for size, columns, places in pattern.each():
            others = _unpacked(F_ext[columns], width, h)
            s, _, w, g = _gradients(xp, others, own[:size], vector, Q, places)
            ds[:size] += w[:, :, None] * others[0]
            ds[:size] += _sloped(xp, s, g[:, :, None] * vector)
        dS[order] = ds.reshape(dS.shape)


def _by_heads(X: Array, h: int) -> Array:
    """[n, h, k] of [n, h k]."""
    return X.reshape(X.shape[0], h, X.shape[1] // h)


def _unpacked(F: Array, width: int, h: int) -> list[Array]:
    """D and T [n, h, k]; m, u and c [n, h]."""
    rest = F[:, 2 * width :]
    heads = [rest[:, i * h : (i + 1) * h] for i in range(3)]
    return [_by_heads(F[:, :width], h), _by_heads(F[:, width : 2 * width], h), *heads]


def _gradients(
    xp: Any, of_rows: list[Array], S: Array, vector: Array, Q: Array | None, places: Array | None
) -> tuple[Array, Array, Array, Array]:
    """s and y [n, h, k], w and g [n, h] of entries, from D, T, m, u, c of rows and S of columns."""
    D, T, m, u, c = of_rows
    s = plus(T + S, Q, places)
    y = _leaky(xp, s)
    w = exp(xp, head_dots(xp, vector, y) - m) * u
    return s, y, w, w * (head_dots(xp, D, S) - c)


def _leaky(xp: Any, s: Array) -> Array:
    return _sloped(xp, s, s)


def _sloped(xp: Any, s: Array, x: Array) -> Array:
    """x where s is positive, else SLOPE x."""
    return xp.where(s > 0, x, x * np.float32(SLOPE))
