"""The compiled operations of dynamic attention (dynamic.c): those of app/numerics/dynamic.py row by row."""

import ctypes
from typing import Any

import numpy as np

from app.native.attention import Entries, heads_of, rows_of
from app.native.library import function
from app.numerics.dynamic import DynamicAttention

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
BEGIN = function("lk_dynamic_begin", Long, Long, Long, Pointer, Pointer)
ADD = function("lk_dynamic_add", Entries, Long, Long, *(Pointer,) * 5)
FINISH = function("lk_dynamic_finish", Long, Long, Long, Pointer, Pointer)
PACK = function("lk_dynamic_pack", Long, Long, Long, *(Pointer,) * 5)
BACK_ROWS = function("lk_dynamic_back_rows", Entries, Long, Long, *(Pointer,) * 5)
BACK_COLUMNS = function("lk_dynamic_back_columns", Entries, Long, Long, *(Pointer,) * 4)


def available() -> bool:
    """True where the library was built."""
    return None not in (BEGIN, ADD, FINISH, PACK, BACK_ROWS, BACK_COLUMNS)


class HostDynamicAttention(DynamicAttention):
    """Dynamic attention by kernels where the device has them; arrays are then float32 and row-major."""

    native: Any

    def dynamic_begin(self, M: np.ndarray, V: np.ndarray) -> None:
        """Sums of nothing."""
        if not self.native:
            return super().dynamic_begin(M, V)
        BEGIN(*heads_of(M[:, ::2], V.shape[1]), *rows_of(M, V))

    def dynamic_add(
        self, pattern: Any, S_ext: np.ndarray, T: np.ndarray, a: np.ndarray, M: np.ndarray, V: np.ndarray
    ) -> None:
        """Add every entry's w and w S_j."""
        if not self.native:
            return super().dynamic_add(pattern, S_ext, T, a, M, V)
        ADD(pattern, *heads_of(M[:, ::2], V.shape[1])[1:], *rows_of(S_ext, T, a, M, V))

    def dynamic_finish(self, M: np.ndarray, V: np.ndarray) -> None:
        """Divide by the sum of w."""
        if not self.native:
            return super().dynamic_finish(M, V)
        FINISH(*heads_of(M[:, ::2], V.shape[1]), *rows_of(M, V))

    def dynamic_pack(self, D: np.ndarray, T: np.ndarray, M: np.ndarray, V: np.ndarray, F: np.ndarray) -> None:
        """What entries need of a row for its gradients and those of others."""
        if not self.native:
            return super().dynamic_pack(D, T, M, V, F)
        PACK(*heads_of(M[:, ::2], V.shape[1]), *rows_of(D, T, M, V, F))

    def dynamic_back_rows(
        self, pattern: Any, S_ext: np.ndarray, F: np.ndarray, a: np.ndarray, dT: np.ndarray, G: np.ndarray
    ) -> None:
        """Add every entry's part of the gradients by T_i, and by a as far as it is row i's."""
        if not self.native:
            return super().dynamic_back_rows(pattern, S_ext, F, a, dT, G)
        BACK_ROWS(pattern, *heads_beside(F, dT), *rows_of(S_ext, F, a, dT, G))

    def dynamic_back_columns(
        self, pattern: Any, F_ext: np.ndarray, S: np.ndarray, a: np.ndarray, dS: np.ndarray
    ) -> None:
        """Add every entry's part of the gradient by S_j."""
        if not self.native:
            return super().dynamic_back_columns(pattern, F_ext, S, a, dS)
        BACK_COLUMNS(pattern, *heads_beside(F_ext, dS), *rows_of(F_ext, S, a, dS))


def heads_beside(F: np.ndarray, dX: np.ndarray) -> tuple[int, int]:
    """Heads, and columns of a head, from what `dynamic_pack` made beside rows [n, h k]."""
    width = dX.shape[1]
    return heads_of(F[:, 2 * width :: 3], width)[1:]
