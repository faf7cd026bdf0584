"""Basis decomposition of first-layer weights that are stored by node: rows of W_r = sum_b a_rb V_b, and back.

Only rows (j, r) that an edge uses are ever made (Schlichtkrull et al. 2018, eq. 3, row by row).
Arrays: V [nodes, B, h] rows of nodes; a [R, B]; rows of W in the order (node, relation), row p belonging to
node[p] and relation[p].
"""

from typing import Any

import numpy as np

Array = Any
ROWS_AT_ONCE = 1 << 14


def compose(device: Any, V: Array, a: Array, node: Array, relation: Array) -> Array:
    """[rows, h]: W_p = sum_b a[relation_p, b] V[node_p, b], one chain over b.

    node, relation   [rows] int32 on the device
    """
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

    dW       [rows, h]      starts   [nodes + 1] host: rows of each node      relation   [rows] int32
    """
    xp, nodes = device.xp, len(starts) - 1
    (rows, h), bases = dW.shape, a.shape[1]
    share = xp.take(a, relation, axis=0)
    dV = device.zeros((nodes, bases, h))
    if rows:
        for b in range(bases):
            dV[:, b] = device.fold(starts, share[:, b : b + 1] * dW)
    return dV


def row_products(device: Any, V: Array, dW: Array, node: Array) -> Array:
    """[rows, B]: <V[node_p, b], dW_p>, each a chain over the columns."""
    xp = device.xp
    rows, h = dW.shape
    out = device.zeros((rows, V.shape[1]))
    for lo in range(0, rows, ROWS_AT_ONCE):
        part = slice(lo, min(lo + ROWS_AT_ONCE, rows))
        sums, near = out[part], xp.take(V, node[part], axis=0)
        for k in range(h):
            sums += near[:, :, k] * dW[part, k : k + 1]
    return out
