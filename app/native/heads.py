"""The compiled operations of heads of edges (heads.c): those of app/numerics/heads.py entry by entry."""

import ctypes
from typing import Any

import numpy as np

from app.errors import NumericsError
from app.native.library import address, function
from app.numerics.heads import HeadProducts

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
UNITS = function("lk_head_units", Long, Long, *(Pointer,) * 5, Long, Pointer)
BACK = function("lk_head_back", Long, Long, *(Pointer,) * 7, Long)


def available() -> bool:
    """True where the library was built."""
    return None not in (UNITS, BACK)


class HostHeads(HeadProducts):
    """Operations of heads by kernels where the device has them; arrays are then float32 and row-major."""

    native: Any

    def head_units(
        self, Z: np.ndarray, X: np.ndarray, row: np.ndarray, column: np.ndarray, bias: np.ndarray | None,
        U: np.ndarray, begun: bool,
    ) -> None:  # fmt: skip
        """U = relu(p_u + p_v + q_u * q_v + |r_u - r_v| + U + b)."""
        if not self.native:
            return super().head_units(Z, X, row, column, bias, U, begun)
        _check(Z, X, row, column, U)
        more = None if bias is None else _address(np.ascontiguousarray(bias).reshape(-1))
        UNITS(*U.shape, *_entries(row, column), _address(Z), _address(X), more, begun, _address(U))

    def head_back(
        self, Z: np.ndarray, X: np.ndarray, row: np.ndarray, column: np.ndarray, U: np.ndarray,
        G: np.ndarray, D: np.ndarray, first: int, ones: Any,
    ) -> None:  # fmt: skip
        """G becomes 0 where U is; D_u += [g, g * q_v, g * sign(r_u - r_v)], entry after entry."""
        if not self.native:
            return super().head_back(Z, X, row, column, U, G, D, first, ones)
        _check(Z, X, row, column, U)
        if G.shape != U.shape or D.shape[1] != Z.shape[1]:
            raise NumericsError(f"head: gradients {G.shape}, {D.shape} do not fit {U.shape}, {Z.shape}")
        parts = (_address(each) for each in (Z, X, U, G, D))
        BACK(*U.shape, *_entries(row, column), *parts, first)


def _check(Z: np.ndarray, X: np.ndarray, row: np.ndarray, column: np.ndarray, U: np.ndarray) -> None:
    """Refuse rows that do not fit each other."""
    wide = Z.shape[1] == X.shape[1] == 3 * U.shape[1]
    if not wide or not len(row) == len(column) == len(U):
        found = f"{Z.shape}, {X.shape}, {row.shape}, {column.shape} do not fit {U.shape}"
        raise NumericsError(f"head: {found}")


def _entries(row: np.ndarray, column: np.ndarray) -> list[int]:
    """The addresses of entries' ends."""
    for each in (row, column):
        if each.dtype != np.int32 or not each.flags.c_contiguous:
            raise NumericsError("head: numbers of rows must be int32, one after the other")
    return [address(each) for each in (row, column)]


def _address(X: np.ndarray) -> int:
    """That of a row-major float32 array."""
    if X.dtype != np.float32 or not X.flags.c_contiguous:
        raise NumericsError("head: operands must be float32 and row-major")
    return address(X)
