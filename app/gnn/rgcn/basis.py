"""Basis decomposition of first-layer weights that are stored by node: rows of W_r = sum_b a_rb V_b, and back.

Only rows (j, r) that an edge uses are ever made (Schlichtkrull et al. 2018, eq. 3, row by row).
Arrays: V [nodes, B, h]; a [R, B]; rows of W in the order (node, relation), row p belonging to node[p] and
relation[p]. The compiled kernels of app/native/basis.py have the same bits.
"""

from typing import Any

import numpy as np

from app.native import basis as compiled

Array = Any
ROWS_AT_ONCE = 1 << 14


def compose(device: Any, V: Array, a: Array, node: Array, relation: Array) -> Array:
    """[rows, h]: W_p = sum_b a[relation_p, b] V[node_p, b], one chain over b.

    node, relation   [rows] int32 on the device
    """
    if _compiled(device):
        return compiled.compose(V, a, node, relation)
    xp, rows, (_, bases, h) = device.xp, node.shape[0], V.shape
    W = device.zeros((rows, h))
    for lo in range(0, rows, ROWS_AT_ONCE):
        part = slice(lo, min(lo + ROWS_AT_ONCE, rows))
        sums, share, at = W[part], xp.take(a, relation[part], axis=0), node[part]
        for b in range(bases):
            sums += share[:, b : b + 1] * V[at, b]
    return W


def node_gradient(device: Any, dW: Array, a: Array, starts: np.ndarray, relation: Array) -> Array:
    """[nodes, B, h]: dV_jb = sum_r a_rb dW_jr, one chain over the rows of a node in their order.

    dW       [rows, h]      starts   [nodes + 1] int64 host: rows of each node      relation   [rows] int32
    """
    if _compiled(device):
        return compiled.node_gradient(dW, a, starts, relation)
    xp, nodes = device.xp, len(starts) - 1
    (rows, h), bases = dW.shape, a.shape[1]
    share = xp.take(a, relation, axis=0)
    dV = device.zeros((nodes, bases, h))
    if rows:
        for b in range(bases):
            dV[:, b] = device.fold(starts, share[:, b : b + 1] * dW)
    return dV


class ShareSums:
    """Sums over rows of the products <V_jb, dW_p> that make up the gradient of a; made once for some nodes.

    starts   [nodes + 1] int64 host: rows of each node
    at       [rows] int64 host: the sum that each row counts in, of `sums`
    """

    def __init__(self, device: Any, starts: np.ndarray, at: np.ndarray, sums: int) -> None:
        self.device, self._starts, self._at = device, starts, at
        if not _compiled(device):
            order = np.argsort(at, kind="stable").astype(np.int32)
            indptr = np.zeros(sums + 1, dtype=np.int32)
            np.cumsum(np.bincount(at, minlength=sums), out=indptr[1:])
            self._add = device.csr(indptr, order, None, (sums, len(at)))
            nodes = np.arange(len(starts) - 1, dtype=np.int32)
            self._node = device.put(np.repeat(nodes, np.diff(starts)))

    def add(self, V: Array, dW: Array, sums: Array) -> None:
        """sums[at[p], b] += <V[j, b], dW[p]>: a chain over columns for each row, then a chain over rows.

        V   [nodes, B, h]     dW   [rows, h]     sums   [sums, B]
        """
        if _compiled(self.device):
            compiled.add_shares(V, dW, self._starts, self._at, sums)
            return
        xp, (rows, h) = self.device.xp, dW.shape
        products = self.device.zeros((rows, V.shape[1]))
        for lo in range(0, rows, ROWS_AT_ONCE):
            part = slice(lo, min(lo + ROWS_AT_ONCE, rows))
            into, near = products[part], xp.take(V, self._node[part], axis=0)
            for k in range(h):
                into += near[:, :, k] * dW[part, k : k + 1]
        self.device.spmm_add(self._add, products, sums)


def _compiled(device: Any) -> bool:
    """True where the device takes the compiled kernels."""
    return getattr(device, "native", None) is not None and compiled.available()
