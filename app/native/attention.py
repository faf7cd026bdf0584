"""The compiled operations on stored entries (attention.c): those of app/numerics/attention.py row by row."""

import ctypes
from typing import Any

import numpy as np

from app.errors import NumericsError
from app.native.library import address, function
from app.numerics.attention import Attention

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GROUP = 256  # of attention.c: a head's numbers of one entry must fit


class _Pattern(ctypes.Structure):
    _fields_ = (("n", Long), ("wide", Long), ("indptr", Pointer), ("indices", Pointer))


Entries = ctypes.POINTER(_Pattern)
TOP = function("lk_attention_top", Entries, Long, Pointer, Pointer)
BEGIN = function("lk_attention_begin", Long, Long, Long, Pointer, Pointer, Pointer)
ADD = function("lk_attention_add", Entries, Long, Long, *(Pointer,) * 4)
FINISH = function("lk_attention_finish", Long, Long, Long, Pointer, Pointer)
PACK = function("lk_attention_pack", Long, Long, Long, *(Pointer,) * 6)
BACK = function("lk_attention_back", Entries, Long, Long, *(Pointer,) * 5)
ROW_DOTS = function("lk_row_dots", Long, Long, *(Pointer,) * 3)


def available() -> bool:
    """True where the library was built."""
    return None not in (TOP, BEGIN, ADD, FINISH, PACK, BACK, ROW_DOTS)


class HostAttention(Attention):
    """Attention by kernels where the device has them; arrays are then float32 and row-major."""

    native: Any

    def attention_pattern(self, A: Any) -> Any:
        """The addresses of a matrix, which is kept."""
        if not self.native:
            return super().attention_pattern(A)
        n, _, wide, indptr, indices, _ = A.record
        pattern = _Pattern(n, wide, indptr, indices)
        pattern.kept = A
        return pattern

    def attention_top(self, pattern: Any, R_ext: np.ndarray, T: np.ndarray) -> None:
        """T[:, :h] = the largest r_j of the row's entries and of itself."""
        if not self.native:
            return super().attention_top(pattern, R_ext, T)
        TOP(pattern, R_ext.shape[1], *rows_of(R_ext, T))

    def attention_begin(self, L: np.ndarray, T: np.ndarray, V: np.ndarray) -> None:
        """T = [m | 0 | 0], V = 0."""
        if not self.native:
            return super().attention_begin(L, T, V)
        BEGIN(*heads_of(L, V.shape[1] // 2), *rows_of(L, T, V))

    def attention_add(
        self, pattern: Any, E_ext: np.ndarray, L: np.ndarray, T: np.ndarray, V: np.ndarray
    ) -> None:
        """Add every entry's w and w S_j, and both times the slope of e there."""
        if not self.native:
            return super().attention_add(pattern, E_ext, L, T, V)
        ADD(pattern, *heads_of(L, V.shape[1] // 2)[1:], *rows_of(E_ext, L, T, V))

    def attention_finish(self, T: np.ndarray, V: np.ndarray) -> None:
        """Divide by the sum of w."""
        if not self.native:
            return super().attention_finish(T, V)
        n, h = T.shape[0], T.shape[1] // 3
        FINISH(n, h, V.shape[1] // (2 * h), *rows_of(T, V))

    def attention_pack(
        self, D: np.ndarray, L: np.ndarray, T: np.ndarray, V: np.ndarray, F: np.ndarray, dL: np.ndarray
    ) -> None:
        """What other rows need of a row for their gradient, and its own dl."""
        if not self.native:
            return super().attention_pack(D, L, T, V, F, dL)
        PACK(*heads_of(L, D.shape[1]), *rows_of(D, L, T, V, F, dL))

    def attention_back(
        self, pattern: Any, F_ext: np.ndarray, S: np.ndarray, R: np.ndarray, dS: np.ndarray, dR: np.ndarray
    ) -> None:
        """Add every entry's part of the gradients by S_j and r_j."""
        if not self.native:
            return super().attention_back(pattern, F_ext, S, R, dS, dR)
        BACK(pattern, *heads_of(R, S.shape[1])[1:], *rows_of(F_ext, S, R, dS, dR))

    def row_dots(self, X: np.ndarray, D: np.ndarray) -> np.ndarray:
        """[rows], each the chain from 0 over the columns of X * D."""
        if not self.native:
            return super().row_dots(X, D)
        out = np.empty(len(X), dtype=np.float32)
        ROW_DOTS(*X.shape, *rows_of(X, D, out))
        return out


def heads_of(L: np.ndarray, width: int) -> tuple[int, int, int]:
    """Rows, heads, columns of a head."""
    n, h = L.shape
    if h > GROUP:
        raise NumericsError(f"attention: {h} heads, at most {GROUP} would be right")
    return n, h, width // h


def rows_of(*operands: np.ndarray) -> list[int]:
    """The addresses of row-major float32 arrays."""
    for X in operands:
        if X.dtype != np.float32 or not X.flags.c_contiguous:
            raise NumericsError("attention: operands must be float32 and row-major")
    return [address(X) for X in operands]
