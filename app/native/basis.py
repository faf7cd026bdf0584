"""The compiled form of app/gnn/rgcn/basis.py (basis_lanes.h), with the same bits."""

import ctypes

import numpy as np

from app.native.library import address, aligned, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
LANES = 16

ROWS = function("lk_basis_rows", Long, Long, Long, *(Pointer,) * 5)
NODES = function("lk_basis_nodes", Long, Long, Long, *(Pointer,) * 5)
SHARES = function("lk_basis_shares", Long, Long, Long, *(Pointer,) * 6)


def available() -> bool:
    """True where the library was built."""
    return None not in (ROWS, NODES, SHARES)


def compose(V: np.ndarray, a: np.ndarray, node: np.ndarray, relation: np.ndarray) -> np.ndarray:
    """[rows, h], see app/gnn/rgcn/basis.py; arrays are row-major float32 and int32."""
    _, bases, h = V.shape
    W = aligned((len(node), h))
    ROWS(len(node), bases, h, address(V), address(a), address(node), address(relation), address(W))
    return W


def node_gradient(dW: np.ndarray, a: np.ndarray, starts: np.ndarray, relation: np.ndarray) -> np.ndarray:
    """[nodes, B, h], see app/gnn/rgcn/basis.py; starts int64."""
    nodes, bases, h = len(starts) - 1, a.shape[1], dW.shape[1]
    dV = aligned((nodes, bases, h))
    NODES(nodes, bases, h, address(starts), address(a), address(relation), address(dW), address(dV))
    return dV


def add_shares(V: np.ndarray, dW: np.ndarray, starts: np.ndarray, at: np.ndarray, sums: np.ndarray) -> None:
    """sums[at[p], b] += <V[j, b], dW[p]> for the rows p of every node j; starts and at int64."""
    nodes, bases, h = V.shape
    turned = aligned((h, -(-bases // LANES) * LANES))
    rest = (address(dW), address(at), address(turned), address(sums))
    SHARES(nodes, bases, h, address(starts), address(V), *rest)
