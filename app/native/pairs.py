"""The compiled operations on pairs of nodes (pairs.c): those of app/numerics/pairs.py row by row."""

import ctypes
from typing import Any

import numpy as np

from app.errors import NumericsError
from app.native.attention import Entries
from app.native.library import address, function
from app.numerics.pairs import PairProducts

Long, Pointer, Float = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float
ADD = function("lk_pair_add", Entries, Long, Pointer, Pointer, Float, Float, Pointer, Pointer)
RANK = function("lk_rank_add", Entries, Long, Long, Pointer, Pointer, Float, Pointer, Pointer)
DOTS = function("lk_pair_dots", Long, Long, *(Pointer,) * 3)


def available() -> bool:
    """True where the library was built."""
    return None not in (ADD, RANK, DOTS)


class HostPairs(PairProducts):
    """Operations on pairs by kernels where the device has them; arrays are then float32 and row-major."""

    native: Any

    def pair_add(
        self, pattern: Any, X_ext: np.ndarray, Z: np.ndarray, target: float, weight: float,
        Y: np.ndarray, losses: np.ndarray,
    ) -> None:  # fmt: skip
        """Add every entry's loss to that of its row, and the gradient by z_u to the row of Y."""
        if not self.native:
            return super().pair_add(pattern, X_ext, Z, target, weight, Y, losses)
        rows, z, y, total = _rows(X_ext, Z, Y, losses)
        ADD(pattern, Z.shape[1], rows, z, target, weight, y, total)

    def rank_add(
        self, pattern: Any, X_ext: np.ndarray, Z: np.ndarray, d: int, weight: float, Y: np.ndarray,
        losses: np.ndarray,
    ) -> None:  # fmt: skip
        """Add every entry's gradient by z_u and by t_u to the row of Y, and what it loses."""
        if not self.native:
            return super().rank_add(pattern, X_ext, Z, d, weight, Y, losses)
        rows, z, y, total = _rows(X_ext, Z, Y, losses)
        RANK(pattern, d, Z.shape[1] - d, rows, z, weight, y, total)

    def pair_dots(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """[k], the scores of pairs by their rows."""
        if not self.native:
            return super().pair_dots(X, Y)
        out = np.empty(len(X), dtype=np.float32)
        DOTS(*X.shape, *_rows(X, Y, out))
        return out


def _rows(*operands: np.ndarray) -> list[int]:
    """The addresses of row-major float32 arrays."""
    for X in operands:
        if X.dtype != np.float32 or not X.flags.c_contiguous:
            raise NumericsError("pairs: operands must be float32 and row-major")
    return [address(X) for X in operands]
