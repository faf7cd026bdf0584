"""Messages that are multiplied by a mask, and the gradients by it: what explanations ask of attention.

The entries (i, j) of a small matrix, i hears j, have a number m_ij each, one for all layers and heads. Layers
of sums multiply by m A in place of A, so that they need nothing new (network.py). Attention weighs messages
by alpha_ij, a softmax of scores that know nothing of m, and hears m_ij alpha_ij S_j; a node hears itself
unmasked:

    GAT     Z_i = sum_j m_ij alpha_ij S_j     P_i = sum_j m_ij alpha_ij slope_ij S_j     c_i = D_i Z_i
            dl_i = sum_j alpha_ij slope_ij (m_ij D_i S_j - c_i) = D_i P_i - c_i q_i     (layers/gat.py)
            dr_j = sum_i alpha_ij slope_ij (m_ij D_i S_j - c_i)     dS_j = sum_i m_ij alpha_ij D_i + ...
    GATv2   g_ij = alpha_ij (m_ij D_i S_j - c_i), the gradient by e_ij; all else as in layers/gatv2.py
    both    dm_ij = sum over heads of alpha_ij D_i S_j

so that what happens before and after the entries are gone through stays what it is.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.numerics.attention import SLOPE, head_dots
from app.numerics.elementary import exp


@dataclass(eq=False)
class MaskedEntries:
    """Entries by rows, of A or of A^T.

    rows, columns   [e] int64, rows ascending
    mask            [e] float32, which may change from call to call; None: all ones
    found           [e] float64, to which the gradients by the mask are added; None: nobody asks
    add             [n, e] sparse, which adds up the entries of each row, in their order
    """

    rows: np.ndarray
    columns: np.ndarray
    n: int
    mask: np.ndarray | None = None
    found: np.ndarray | None = None

    def __post_init__(self) -> None:
        starts = np.searchsorted(self.rows, np.arange(self.n + 1))
        ones, places = np.ones(len(self.rows), dtype=np.float32), np.arange(len(self.rows))
        self.add = sp.csr_array((ones, places, starts), shape=(self.n, len(self.rows)))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """[n, ...] float32, the sums of values [e, ...] of the entries of each row."""
        shape = values.shape[1:]
        return (self.add @ values.reshape(len(values), math.prod(shape))).reshape(self.n, *shape)

    def largest(self, values: np.ndarray, least: np.ndarray) -> np.ndarray:
        """[n, h], the largest of values [e, h] of each row and of least [n, h]."""
        top = least.copy()
        np.maximum.at(top, self.rows, values)
        return top

    def masked(self, values: np.ndarray) -> np.ndarray:
        """Values [e, ...] times the mask."""
        if self.mask is None:
            return values
        return values * self.mask.reshape(-1, *[1] * (values.ndim - 1))

    def learn(self, weights: np.ndarray, dots: np.ndarray) -> None:
        """Add the gradients by the mask, of alpha [e, h] and D_i S_j [e, h]."""
        if self.found is not None:
            self.found += (weights.astype(np.float64) * dots).sum(axis=1)


class MaskedAttention:
    """Attention over `MaskedEntries`, before a host device's own among the bases of a class.

    Of readouts that device's operations serve, whose patterns are others.
    """

    def attention_top(self, pattern: Any, R_ext: np.ndarray, T: np.ndarray) -> None:
        """See Attention.attention_top; patterns of a readout are those of any device."""
        if not isinstance(pattern, MaskedEntries):
            return super().attention_top(pattern, R_ext, T)
        h = R_ext.shape[1]
        T[:, :h] = pattern.largest(R_ext[pattern.columns], T[:, :h])

    def attention_add(
        self, pattern: Any, E_ext: np.ndarray, L: np.ndarray, T: np.ndarray, V: np.ndarray
    ) -> None:
        """See Attention.attention_add: of masked messages."""
        h, width = L.shape[1], V.shape[1] // 2
        rows = E_ext[pattern.columns]
        s = L[pattern.rows] + rows[:, width:]
        w = exp(np, _sloped(s, s) - T[pattern.rows, :h])
        low = _sloped(s, w)
        heard = pattern.masked(_by_heads(rows[:, :width], h))
        T[:, h : 2 * h] += pattern.sums(w)
        T[:, 2 * h :] += pattern.sums(low)
        V[:, :width] += pattern.sums(w[:, :, None] * heard).reshape(-1, width)
        V[:, width:] += pattern.sums(low[:, :, None] * heard).reshape(-1, width)

    def attention_back(
        self,
        pattern: Any,
        F_ext: np.ndarray,
        S: np.ndarray,
        R: np.ndarray,
        dS: np.ndarray,
        dR: np.ndarray,
    ) -> None:
        """See Attention.attention_back: of masked messages; adds the gradients by the mask."""
        (_, h), width = R.shape, S.shape[1]
        rows = F_ext[pattern.columns]
        D = _by_heads(rows[:, :width], h)
        l_i, m, u, c = (rows[:, width + i * h : width + (i + 1) * h] for i in range(4))
        s = l_i + R[pattern.rows]
        w = exp(np, _sloped(s, s) - m) * u
        dots = head_dots(np, D, _by_heads(S, h)[pattern.rows])
        pattern.learn(w, dots)
        dR += pattern.sums(_sloped(s, w * (pattern.masked(dots) - c)))
        dS += pattern.sums(pattern.masked(w[:, :, None] * D)).reshape(dS.shape)

    def dynamic_add(
        self,
        pattern: Any,
        S_ext: np.ndarray,
        T: np.ndarray,
        a: np.ndarray,
        M: np.ndarray,
        V: np.ndarray,
    ) -> None:
        """See DynamicAttention.dynamic_add: of masked messages."""
        h = M.shape[1] // 2
        S = _by_heads(S_ext[pattern.columns], h)
        s = _by_heads(T, h)[pattern.rows] + S
        e = head_dots(np, a.reshape(h, -1), _sloped(s, s))
        top = pattern.largest(e, M[:, :h])
        old, w = exp(np, M[:, :h] - top), exp(np, e - top[pattern.rows])
        M[:, h:] = M[:, h:] * old + pattern.sums(w)
        M[:, :h] = top
        heard = pattern.sums(w[:, :, None] * pattern.masked(S))
        V[...] = (_by_heads(V, h) * old[:, :, None] + heard).reshape(V.shape)

    def dynamic_back_rows(
        self,
        pattern: Any,
        S_ext: np.ndarray,
        F: np.ndarray,
        a: np.ndarray,
        dT: np.ndarray,
        G: np.ndarray,
    ) -> None:
        """See DynamicAttention.dynamic_back_rows: of masked messages; adds the gradients by the mask. G, of
        the vector a, is left as it is."""
        of_rows, of_columns = F[pattern.rows], S_ext[pattern.columns]
        s, w, dots, g, _ = _dynamic(pattern, of_rows, of_columns, a, dT.shape[1])
        pattern.learn(w, dots)
        dT += pattern.sums(_sloped(s, g[:, :, None] * a.reshape(g.shape[1], -1))).reshape(dT.shape)

    def dynamic_back_columns(
        self, pattern: Any, F_ext: np.ndarray, S: np.ndarray, a: np.ndarray, dS: np.ndarray
    ) -> None:
        """See DynamicAttention.dynamic_back_columns: of masked messages."""
        of_rows, of_columns = F_ext[pattern.columns], S[pattern.rows]
        s, w, _, g, D = _dynamic(pattern, of_rows, of_columns, a, S.shape[1])
        back = _sloped(s, g[:, :, None] * a.reshape(g.shape[1], -1))
        dS += pattern.sums(pattern.masked(w[:, :, None] * D) + back).reshape(dS.shape)


def _dynamic(
    pattern: MaskedEntries, of_rows: np.ndarray, of_columns: np.ndarray, a: np.ndarray, width: int
) -> tuple[np.ndarray, ...]:
    """s [e, h, k]; alpha, D_i S_j and g [e, h]; D [e, h, k], from D | T | m | u | c of i and S of j."""
    h = (of_rows.shape[1] - 2 * width) // 3
    D, T, S = (_by_heads(each, h) for each in (of_rows[:, :width], of_rows[:, width : 2 * width], of_columns))
    m, u, c = (of_rows[:, 2 * width + i * h : 2 * width + (i + 1) * h] for i in range(3))
    s = T + S
    w = exp(np, head_dots(np, a.reshape(h, -1), _sloped(s, s)) - m) * u
    dots = head_dots(np, D, S)
    return s, w, dots, w * (pattern.masked(dots) - c), D


def _by_heads(X: np.ndarray, h: int) -> np.ndarray:
    """[n, h, k] of [n, h k]."""
    return X.reshape(len(X), h, X.shape[1] // h)


def _sloped(s: np.ndarray, x: np.ndarray) -> np.ndarray:
    """x where s is positive, else SLOPE x."""
    return np.where(s > 0, x, x * np.float32(SLOPE))
