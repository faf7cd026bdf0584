"""Messages that are multiplied by a mask, and the gradients by it: what explanations ask of attention, of
aggregators, and of layers that read features of edges.

The entries (i, j) of a small matrix, i hears j, have a number m_ij each, one for all layers and heads. Layers
of sums multiply by m A in place of A, so that they need nothing new (network.py). Attention weighs messages
by alpha_ij, a softmax of scores that know nothing of m, and hears m_ij alpha_ij S_j; a node hears itself
unmasked:

    GAT     Z_i = sum_j m_ij alpha_ij S_j     P_i = sum_j m_ij alpha_ij slope_ij S_j     c_i = D_i Z_i
            dl_i = sum_j alpha_ij slope_ij (m_ij D_i S_j - c_i) = D_i P_i - c_i q_i     (layers/gat.py)
            dr_j = sum_i alpha_ij slope_ij (m_ij D_i S_j - c_i)     dS_j = sum_i m_ij alpha_ij D_i + ...
    GATv2   g_ij = alpha_ij (m_ij D_i S_j - c_i), the gradient by e_ij; all else as in layers/gatv2.py
    both    dm_ij = sum over heads of alpha_ij D_i S_j

so that what happens before and after the entries are gone through stays what it is. Aggregators of a node
(layers/pna.py) are of the messages x_ij = m_ij S_j to it, of which there are as many: without edges all
messages are zero, and a message that is taken out is heard as zero. By columns, of the parts G, X, N and Y
of dV:

    PNA     d_ij = G_i / c_i + Y_i (x_ij - mean_i) / (c_i dev_i) + X_i [j is the first max of i]
                   + N_i [j is the first min of i]     dS_j = sum_i m_ij d_ij     dm_ij = S_j d_ij

Where entries have rows
E_ij (layers/gine.py, edge_gat.py, edge_gatv2.py), scores read these, which the mask leaves alone, and

    GINE    Y_v = (1 + eps) S_v + sum_u m_uv relu(S_u + Q_uv)     dm_uv = relu(S_u + Q_uv) dY_v
            dQ_uv = m_uv R_uv * dY_v     dE_uv = dQ_uv W_e^T
    GAT     dE_ij = dz_ij B^T, dz_ij by heads what an entry adds to dr_j
    GATv2   dE_ij = ds_ij W_e^T

so also for the loop of a node, whose row is the mean of the rows of the edges that it hears.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.numerics.aggregation import BACK, PARTS
from app.numerics.attention import SLOPE, head_dots
from app.numerics.elementary import exp


@dataclass(eq=False)
class MaskedEntries:
    """Entries by rows, of A or of A^T.

    rows, columns   [e] int64, rows ascending
    mask            [e] float32, which may change from call to call; None: all ones
    found           [e] float64, to which the gradients by the mask are added; None: nobody asks
    add             [n, e] sparse, which adds up the entries of each row, in their order
    counts          [n] int64, entries of each row
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
        self.counts = np.diff(starts)

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


@dataclass(eq=False)
class FieldEdges:
    """The entries of a side of a field with their rows, as EdgeEntries of numerics/edges.py has them.

    pattern   the entries     given    [e, k] float32 their rows, of categories zeros and ones
    found     [e, k] float64, to which the gradients by the rows are added
    values    [e, k] float32, what is read of the rows: `share` of them
    """

    pattern: MaskedEntries
    given: np.ndarray

    def __post_init__(self) -> None:
        self.found, self.values = np.zeros(self.given.shape), self.given.copy()

    @property
    def width(self) -> int:
        """Columns of the rows."""
        return self.given.shape[1]

    def put_share(self, share: float) -> None:
        """Let `share` of the rows be read."""
        np.multiply(self.given, np.float32(share), out=self.values)

    def rows(self, xp: Any, lo: int, hi: int) -> np.ndarray:
        """See EdgeEntries.rows."""
        out = np.zeros((hi - lo, self.width), dtype=np.float32)
        some = self.values[lo:hi]
        out[: len(some)] = some
        return out

    def learn(self, G: np.ndarray, W: np.ndarray) -> None:
        """Add the gradients by the rows from those G [e, f] by rows W."""
        self.found += np.einsum("ef,kf->ek", G, W, dtype=np.float64)

    def contributions(self) -> np.ndarray:
        """[k] float64, by column the rows times the gradients by them."""
        return np.einsum("ek,ek->k", self.given, self.found, dtype=np.float64)


class MaskedAttention:
    """Attention over `MaskedEntries`, before a host device's own among the bases of a class.

    Of readouts that device's operations serve, whose patterns are others.
    """

    def attention_top(
        self, pattern: Any, R_ext: np.ndarray, T: np.ndarray, z: np.ndarray | None = None
    ) -> None:
        """See Attention.attention_top; patterns of a readout are those of any device."""
        if not isinstance(pattern, MaskedEntries):
            return super().attention_top(pattern, R_ext, T)
        h = R_ext.shape[1]
        T[:, :h] = pattern.largest(_plus(R_ext[pattern.columns], z), T[:, :h])

    def attention_add(
        self, pattern: Any, E_ext: np.ndarray, L: np.ndarray, T: np.ndarray, V: np.ndarray,
        z: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """See Attention.attention_add: of masked messages."""
        h, width = L.shape[1], V.shape[1] // 2
        rows = E_ext[pattern.columns]
        s = L[pattern.rows] + _plus(rows[:, width:], z)
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
        z: np.ndarray | None = None,
    ) -> None:
        """See Attention.attention_back: of masked messages; adds the gradients by the mask."""
        (_, h), width = R.shape, S.shape[1]
        rows = F_ext[pattern.columns]
        D = _by_heads(rows[:, :width], h)
        l_i, m, u, c = (rows[:, width + i * h : width + (i + 1) * h] for i in range(4))
        s = l_i + _plus(R[pattern.rows], z)
        w = exp(np, _sloped(s, s) - m) * u
        dots = head_dots(np, D, _by_heads(S, h)[pattern.rows])
        pattern.learn(w, dots)
        back = _sloped(s, w * (pattern.masked(dots) - c))
        dR += pattern.sums(back)
        if z is not None:
            z[...] = back
        dS += pattern.sums(pattern.masked(w[:, :, None] * D)).reshape(dS.shape)

    def dynamic_add(
        self,
        pattern: Any,
        S_ext: np.ndarray,
        T: np.ndarray,
        a: np.ndarray,
        M: np.ndarray,
        V: np.ndarray,
        Q: np.ndarray | None = None,
    ) -> None:
        """See DynamicAttention.dynamic_add: of masked messages."""
        h = M.shape[1] // 2
        S = _by_heads(S_ext[pattern.columns], h)
        s = _plus(_by_heads(T, h)[pattern.rows] + S, Q)
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
        Q: np.ndarray | None = None,
    ) -> None:
        """See DynamicAttention.dynamic_back_rows: of masked messages; adds the gradients by the mask. G, of
        the vector a, is left as it is."""
        of_rows, of_columns = F[pattern.rows], S_ext[pattern.columns]
        s, w, dots, g, _ = _dynamic(pattern, of_rows, of_columns, a, dT.shape[1], Q)
        pattern.learn(w, dots)
        back = _sloped(s, g[:, :, None] * a.reshape(g.shape[1], -1))
        dT += pattern.sums(back).reshape(dT.shape)
        if Q is not None:
            Q[...] = back.reshape(Q.shape)

    def dynamic_back_columns(
        self, pattern: Any, F_ext: np.ndarray, S: np.ndarray, a: np.ndarray, dS: np.ndarray,
        Q: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """See DynamicAttention.dynamic_back_columns: of masked messages."""
        of_rows, of_columns = F_ext[pattern.columns], S[pattern.rows]
        s, w, _, g, D = _dynamic(pattern, of_rows, of_columns, a, S.shape[1], Q)
        back = _sloped(s, g[:, :, None] * a.reshape(g.shape[1], -1))
        dS += pattern.sums(pattern.masked(w[:, :, None] * D) + back).reshape(dS.shape)


class MaskedAggregation:
    """The operations of numerics/aggregation.py on `MaskedEntries`, likewise."""

    def aggregate_add(self, pattern: MaskedEntries, E_ext: np.ndarray, V: np.ndarray, T: np.ndarray) -> None:
        """See Aggregation.aggregate_add: of masked messages, all entries of a row at once."""
        k, some = V.shape[1] // PARTS, np.maximum(pattern.counts, 1).astype(np.float32)[:, None]
        rows = E_ext[pattern.columns]
        x = pattern.masked(rows[:, :k])
        V[:, :k] = mean = pattern.sums(x) / some
        for part, sign in enumerate((1, -1), start=1):
            top = pattern.largest(sign * x, np.full_like(mean, -np.inf))
            V[:, part * k : (part + 1) * k] = sign * top
            T[:, (part - 1) * k : part * k] = _first(pattern, sign * x == top[pattern.rows], rows[:, k])
        V[:, 3 * k :] = pattern.sums((x - mean[pattern.rows]) ** 2)
        T[:, 2 * k] = pattern.counts

    def aggregate_back(
        self, pattern: MaskedEntries, F_ext: np.ndarray, S: np.ndarray, names: np.ndarray, dS: np.ndarray
    ) -> None:
        """See Aggregation.aggregate_back: of masked messages; adds the gradients by the mask."""
        F = F_ext[pattern.columns]
        mean, dev, center, high, low, top, bottom = np.split(F, BACK, axis=1)
        heard, own = S[pattern.rows], names[pattern.rows][:, None]
        part = mean + dev * (pattern.masked(heard) - center)
        part += np.where(top == own, high, np.float32(0))
        part += np.where(bottom == own, low, np.float32(0))
        pattern.learn(part, heard)
        dS += pattern.sums(pattern.masked(part))


def _first(pattern: MaskedEntries, found: np.ndarray, names: np.ndarray) -> np.ndarray:
    """[n, k] float32, of each row the name of the first of its entries that are found [e, k]; 0 of none."""
    place = np.where(found, np.arange(len(found))[:, None], len(found))
    least = np.full((pattern.n, found.shape[1]), len(found))
    np.minimum.at(least, pattern.rows, place)
    return np.append(names, np.float32(0))[least]


class MaskedEdgeSums:
    """The operations of numerics/edges.py and numerics/edge_attention.py on `FieldEdges`, of a device that
    has MaskedAttention. No gradient by a weight is made: zeros stand for the addends."""

    def edge_add(
        self, entries: FieldEdges, W: np.ndarray, b: np.ndarray | None, X_ext: np.ndarray, Y: np.ndarray
    ) -> None:
        """See EdgeSums.edge_add: of masked messages."""
        pattern = entries.pattern
        M = X_ext[pattern.columns] + self._rows_of(entries, W, b)
        Y += pattern.sums(pattern.masked(np.where(M <= 0, np.float32(0), M)))

    def edge_back(
        self, entries: FieldEdges, W: np.ndarray, b: np.ndarray | None, H: np.ndarray, D_ext: np.ndarray,
        dH: np.ndarray, starts: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """See EdgeSums.edge_back: of masked messages; adds the gradients by the mask and by the rows."""
        pattern = entries.pattern
        M, D = H[pattern.rows] + self._rows_of(entries, W, b), D_ext[pattern.columns]
        pattern.learn(np.where(M > 0, M, np.float32(0)), D)
        G = pattern.masked(np.where(M > 0, D, np.float32(0)))
        dH += pattern.sums(G)
        entries.learn(G, W)
        return np.zeros((len(starts) - 1, (entries.width + 1) * W.shape[1]), dtype=np.float32)

    def edge_attention_top(
        self, entries: FieldEdges, W: np.ndarray, R_ext: np.ndarray, T: np.ndarray
    ) -> None:
        """See EdgeAttention.edge_attention_top."""
        self.attention_top(entries.pattern, R_ext, T, self._rows_of(entries, W))

    def edge_attention_add(
        self, entries: FieldEdges, W: np.ndarray, E_ext: np.ndarray, L: np.ndarray, T: np.ndarray,
        V: np.ndarray,
    ) -> None:  # fmt: skip
        """See EdgeAttention.edge_attention_add."""
        self.attention_add(entries.pattern, E_ext, L, T, V, self._rows_of(entries, W))

    def edge_attention_back(
        self, entries: FieldEdges, W: np.ndarray, F_ext: np.ndarray, S: np.ndarray, R: np.ndarray,
        dS: np.ndarray, dR: np.ndarray, starts: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """See EdgeAttention.edge_attention_back; adds the gradients by the mask and by the rows."""
        z = self._rows_of(entries, W)
        self.attention_back(entries.pattern, F_ext, S, R, dS, dR, z)
        return self._learned(entries, z, W, starts)

    def edge_dynamic_add(
        self, entries: FieldEdges, W: np.ndarray, S_ext: np.ndarray, T: np.ndarray, a: np.ndarray,
        M: np.ndarray, V: np.ndarray,
    ) -> None:  # fmt: skip
        """See EdgeAttention.edge_dynamic_add."""
        self.dynamic_add(entries.pattern, S_ext, T, a, M, V, self._rows_of(entries, W))

    def edge_dynamic_back_rows(
        self, entries: FieldEdges, W: np.ndarray, S_ext: np.ndarray, F: np.ndarray, a: np.ndarray,
        dT: np.ndarray, G: np.ndarray, starts: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """See EdgeAttention.edge_dynamic_back_rows; adds the gradients by the mask and by the rows."""
        Q = self._rows_of(entries, W)
        self.dynamic_back_rows(entries.pattern, S_ext, F, a, dT, G, Q)
        return self._learned(entries, Q, W, starts)

    def edge_dynamic_back_columns(
        self, entries: FieldEdges, W: np.ndarray, F_ext: np.ndarray, S: np.ndarray, a: np.ndarray,
        dS: np.ndarray,
    ) -> None:  # fmt: skip
        """See EdgeAttention.edge_dynamic_back_columns."""
        self.dynamic_back_columns(entries.pattern, F_ext, S, a, dS, self._rows_of(entries, W))

    def _rows_of(self, entries: FieldEdges, W: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
        """[e, f] E W + b."""
        return self._edge_rows(entries, 0, len(entries.given), W, b)

    def _learned(self, entries: FieldEdges, G: np.ndarray, W: np.ndarray, starts: np.ndarray) -> np.ndarray:
        entries.learn(G, W)
        return np.zeros((len(starts) - 1, W.size), dtype=np.float32)


def _dynamic(
    pattern: MaskedEntries, of_rows: np.ndarray, of_columns: np.ndarray, a: np.ndarray, width: int,
    Q: np.ndarray | None = None,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """s [e, h, k]; alpha, D_i S_j and g [e, h]; D [e, h, k], from D | T | m | u | c of i and S of j."""
    h = (of_rows.shape[1] - 2 * width) // 3
    D, T, S = (_by_heads(each, h) for each in (of_rows[:, :width], of_rows[:, width : 2 * width], of_columns))
    m, u, c = (of_rows[:, 2 * width + i * h : 2 * width + (i + 1) * h] for i in range(3))
    s = _plus(T + S, Q)
    w = exp(np, head_dots(np, a.reshape(h, -1), _sloped(s, s)) - m) * u
    dots = head_dots(np, D, S)
    return s, w, dots, w * (pattern.masked(dots) - c), D


def _plus(X: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
    """X and the rows of the entries; X alone where entries have none."""
    return X if rows is None else X + rows.reshape(X.shape)


def _by_heads(X: np.ndarray, h: int) -> np.ndarray:
    """[n, h, k] of [n, h k]."""
    return X.reshape(len(X), h, X.shape[1] // h)


def _sloped(s: np.ndarray, x: np.ndarray) -> np.ndarray:
    """x where s is positive, else SLOPE x."""
    return np.where(s > 0, x, x * np.float32(SLOPE))
