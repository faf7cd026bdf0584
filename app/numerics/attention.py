"""Attention over the neighbours of a node: sampled dense-dense products and the softmax over a row.

One pattern of stored entries (i, j) at a time is gone through, in its order, and what it adds goes on from
what is there: so a row is one chain over its entries in global order however its columns are cut into tiles.
With h heads of k columns each, and for every entry and head

    s_ij = l_i + r_j     e_ij = s_ij where positive, else SLOPE s_ij     w_ij = exp(e_ij - m_i)

where m_i is at least every e_ij of the row, and one of them (layers/gat.py has the derivation). Every
function is a fixed sequence of IEEE-exact operations: the same bits on every device and in the compiled
kernels.
"""

from typing import Any

import numpy as np

from app.numerics.elementary import exp

Array = Any
SLOPE = 0.2  # of leaky relu below 0 (Velickovic et al. 2018, section 2.1)


class Rounds:
    """The stored entries of a CSR matrix, round by round: the first of every row, then every second one, ...

    order     [n] device, the rows by their number of entries, the fullest first
    columns   [nnz] device, the column of each entry: those of round 0 in that order of rows, then of round 1
    places    [nnz] device, which stored entry each is, where entries have rows of their own; else None
    sizes     how many rows have an entry in each round: the first ones
    """

    def __init__(
        self, device: Any, indptr: np.ndarray, columns: np.ndarray, with_places: bool = False
    ) -> None:
        """indptr [n+1], columns [nnz]   on the host"""
        counts = np.diff(indptr)
        order = np.argsort(-counts, kind="stable")
        rounds = np.arange(int(counts.max(initial=0)))
        self.sizes = (len(counts) - np.searchsorted(counts[order[::-1]], rounds, side="right")).tolist()
        places = [indptr[order[:size]] + k for k, size in enumerate(self.sizes)]
        flat = np.concatenate(places) if places else np.empty(0, dtype=np.int64)
        self.order, self.columns = device.put(order), device.put(columns[flat])
        self.places = device.put(flat) if with_places else None

    def each(self) -> Any:
        """(rows in this round, their columns, which entries these are or None) of every round."""
        at = 0
        for size in self.sizes:
            some = slice(at, at + size)
            yield size, self.columns[some], None if self.places is None else self.places[some]
            at += size


class Attention:
    """Operations on entries, of a device that has `xp`; *_ext are rows that a pattern's columns number.

    Where entries have rows of their own, these bring what is added to r_j, z [nnz, h] by stored entries
    (numerics/edge_attention.py): then r_j + z_ij, rounded once, stands for r_j.
    """

    xp: Any

    def attention_pattern(self, A: Any) -> Any:
        """What the functions below need of a CSR matrix, made once."""
        return Rounds(self, *(np.asarray(self.get(part)) for part in (A.indptr, A.indices)))

    def attention_top(self, pattern: Any, R_ext: Array, T: Array, z: Array | None = None) -> None:
        """T[:, :h] = the largest r_j of the row's entries and of itself.

        R_ext [*, h]     T [n, 3 h]
        """
        xp, h = self.xp, R_ext.shape[1]
        top = T[:, :h][pattern.order]
        for size, columns, places in pattern.each():
            top[:size] = xp.maximum(top[:size], plus(R_ext[columns], z, places))
        T[pattern.order, :h] = top

    def attention_begin(self, L: Array, T: Array, V: Array) -> None:
        """m from the largest r, and sums of nothing: T = [m | 0 | 0], V = 0. L [n, h]."""
        h = L.shape[1]
        T[:, :h] = _leaky(self.xp, L + T[:, :h])
        T[:, h:] = 0
        V[...] = 0

    def attention_add(
        self, pattern: Any, E_ext: Array, L: Array, T: Array, V: Array, z: Array | None = None
    ) -> None:
        """Add every entry's w and w S_j, and both times the slope of e there.

        E_ext [*, h k + h]   columns S | r      L [n, h]
        T     [n, 3 h]       columns m | sum of w | sum of w slope
        V     [n, 2 h k]     columns sum of w S_j | sum of w slope S_j
        """
        xp, h = self.xp, L.shape[1]
        width = V.shape[1] // 2
        l_i, t = L[pattern.order], T[pattern.order]
        v = V[pattern.order].reshape(-1, 2, h, width // h)
        for size, columns, places in pattern.each():
            rows = E_ext[columns]
            S = rows[:, :width].reshape(size, h, width // h)
            s = l_i[:size] + plus(rows[:, width:], z, places)
            w = exp(xp, _leaky(xp, s) - t[:size, :h])
            low = xp.where(s > 0, w, w * np.float32(SLOPE))
            t[:size, h : 2 * h] += w
            t[:size, 2 * h :] += low
            v[:size, 0] += w[:, :, None] * S
            v[:size, 1] += low[:, :, None] * S
        T[pattern.order] = t
        V[pattern.order] = v.reshape(-1, 2 * width)

    def attention_finish(self, T: Array, V: Array) -> None:
        """Divide by the sum of w: T = [m | u | q], u its inverse, and V by heads, all times u."""
        n, h = T.shape[0], T.shape[1] // 3
        u = 1 / T[:, h : 2 * h]
        T[:, h : 2 * h] = u
        T[:, 2 * h :] *= u
        shape = n, 2, h, V.shape[1] // (2 * h)
        V[...] = (V.reshape(shape) * u[:, None, :, None]).reshape(V.shape)

    def attention_pack(self, D: Array, L: Array, T: Array, V: Array, F: Array, dL: Array) -> None:
        """What other rows need of a row for their gradient, and its own dl.

        D    [n, h k]         dZ     L [n, h]     T, V as attention_finish left them
        F    [n, h k + 4 h]   gets D | l | m | u | c, c = D Z by heads
        dL   [n, h]           gets D P - c q, P the second half of V
        """
        (n, h), width = L.shape, D.shape[1]
        shape = n, h, width // h
        heads = D.reshape(shape)
        c = head_dots(self.xp, heads, V[:, :width].reshape(shape))
        dL[...] = head_dots(self.xp, heads, V[:, width:].reshape(shape)) - c * T[:, 2 * h :]
        F[:, :width], F[:, width : width + h] = D, L
        F[:, width + h : width + 3 * h], F[:, width + 3 * h :] = T[:, : 2 * h], c

    def attention_back(
        self, pattern: Any, F_ext: Array, S: Array, R: Array, dS: Array, dR: Array, z: Array | None = None
    ) -> None:
        """Add every entry's part of the gradients by S_j and r_j, row j of the pattern with columns i.

        w = exp(e_ij - m_i) u_i     dS_j += w D_i     dr_j += w (D_i S_j - c_i) slope

        F_ext [*, h k + 4 h] as in attention_pack     S, dS [n, h k]     R, dR [n, h]
        z, where given, becomes the gradient by it: what each entry adds to dr
        """
        xp, (n, h), width = self.xp, R.shape, S.shape[1]
        k = width // h
        order = pattern.order
        S_j, r_j, dr = S[order].reshape(n, h, k), R[order], dR[order]
        ds = dS[order].reshape(n, h, k)
        for size, columns, places in pattern.each():
            rows = F_ext[columns]
            D = rows[:, :width].reshape(size, h, k)
            l_i, m, u, c = (rows[:, width + a * h : width + (a + 1) * h] for a in range(4))
            s = l_i + plus(r_j[:size], z, places)
            w = exp(xp, _leaky(xp, s) - m) * u
            g = w * (head_dots(xp, D, S_j[:size]) - c)
            ds_ij = xp.where(s > 0, g, g * np.float32(SLOPE))
            dr[:size] += ds_ij
            if z is not None:
                z[places] = ds_ij
            ds[:size] += w[:, :, None] * D
        dS[order] = ds.reshape(n, width)
        dR[order] = dr

    def row_dots(self, X: Array, D: Array) -> Array:
        """[rows], each the chain from 0 over the columns of X * D, both [rows, m]."""
        return head_dots(self.xp, X[:, None], D[:, None])[:, 0]


def plus(X: Array, rows: Array | None, places: Array | None) -> Array:
    """X and the rows of some entries; X alone where entries have none."""
    return X if rows is None else X + rows[places].reshape(X.shape)


def _leaky(xp: Any, s: Array) -> Array:
    return xp.where(s > 0, s, s * np.float32(SLOPE))


def head_dots(xp: Any, X: Array, Y: Array) -> Array:
    """[n, h], the products of rows of [n, h, k] arrays, or of [h, k] with such, each a chain from 0 over its
    columns."""
    total = xp.zeros(Y.shape[:2], dtype=Y.dtype)
    for j in range(Y.shape[2]):
        total += X[..., j] * Y[:, :, j]
    return total
