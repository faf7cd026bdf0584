"""The compiled operations of attention that reads rows of entries (attention.c, dynamic.c): those of
app/numerics/edge_attention.py row by row."""

import ctypes
from typing import Any

import numpy as np

from app.native.attention import heads_of, rows_of
from app.native.dynamic import heads_beside
from app.native.edges import Entries, Given, message
from app.native.library import address, function
from app.numerics.edge_attention import EdgeAttention
from app.numerics.edges import EdgeEntries

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
EDGE_ROWS = 64  # WINDOW of edge_window.h: entries whose rows are made at a time, at most
BLOCKS = Long, Pointer, Pointer
TOP = function("lk_attention_top_edges", Entries, Given, Long, Pointer, Pointer)
ADD = function("lk_attention_add_edges", Entries, Given, Long, Long, *(Pointer,) * 4)
BACK = function("lk_attention_back_edges", Entries, Given, Long, Long, *(Pointer,) * 5, *BLOCKS)
DYNAMIC_ADD = function("lk_dynamic_add_edges", Entries, Given, Long, Long, *(Pointer,) * 5)
BACK_ROWS = function("lk_dynamic_back_rows_edges", Entries, Given, Long, Long, *(Pointer,) * 5, *BLOCKS)
BACK_COLUMNS = function("lk_dynamic_back_columns_edges", Entries, Given, Long, Long, *(Pointer,) * 4)


def available() -> bool:
    """True where the library was built."""
    return None not in (TOP, ADD, BACK, DYNAMIC_ADD, BACK_ROWS, BACK_COLUMNS)


class HostEdgeAttention(EdgeAttention):
    """Attention with rows of entries by kernels where the device has them and its sums are chains; arrays are
    then float32 and row-major."""

    native: Any
    portable: bool

    def edge_attention_top(
        self, entries: EdgeEntries, W: np.ndarray, R_ext: np.ndarray, T: np.ndarray
    ) -> None:
        """T[:, :h] = the largest r_j + z_ij of the row's entries and of itself."""
        if not (self.native and self.portable):
            return super().edge_attention_top(entries, W, R_ext, T)
        TOP(entries.record, _message(entries, W), R_ext.shape[1], *rows_of(R_ext, T))

    def edge_attention_add(
        self, entries: EdgeEntries, W: np.ndarray, E_ext: np.ndarray, L: np.ndarray, T: np.ndarray,
        V: np.ndarray,
    ) -> None:  # fmt: skip
        """Add every entry's w and w S_j, and both times the slope of e there."""
        if not (self.native and self.portable):
            return super().edge_attention_add(entries, W, E_ext, L, T, V)
        heads = heads_of(L, V.shape[1] // 2)[1:]
        ADD(entries.record, _message(entries, W), *heads, *rows_of(E_ext, L, T, V))

    def edge_attention_back(
        self, entries: EdgeEntries, W: np.ndarray, F_ext: np.ndarray, S: np.ndarray, R: np.ndarray,
        dS: np.ndarray, dR: np.ndarray, starts: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Add every entry's part of the gradients by S_j and r_j; by block the gradient by W."""
        if not (self.native and self.portable):
            return super().edge_attention_back(entries, W, F_ext, S, R, dS, dR, starts)
        operands = *heads_of(R, S.shape[1])[1:], *rows_of(F_ext, S, R, dS, dR)
        return _by_blocks(BACK, entries, W, operands, starts)

    def edge_dynamic_add(
        self, entries: EdgeEntries, W: np.ndarray, S_ext: np.ndarray, T: np.ndarray, a: np.ndarray,
        M: np.ndarray, V: np.ndarray,
    ) -> None:  # fmt: skip
        """Add every entry's w and w S_j."""
        if not (self.native and self.portable):
            return super().edge_dynamic_add(entries, W, S_ext, T, a, M, V)
        heads = heads_of(M[:, ::2], V.shape[1])[1:]
        DYNAMIC_ADD(entries.record, _message(entries, W), *heads, *rows_of(S_ext, T, a, M, V))

    def edge_dynamic_back_rows(
        self, entries: EdgeEntries, W: np.ndarray, S_ext: np.ndarray, F: np.ndarray, a: np.ndarray,
        dT: np.ndarray, G: np.ndarray, starts: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Add every entry's part of the gradients by T_i, and by a as far as it is row i's; by block the
        gradient by W."""
        if not (self.native and self.portable):
            return super().edge_dynamic_back_rows(entries, W, S_ext, F, a, dT, G, starts)
        operands = *heads_beside(F, dT), *rows_of(S_ext, F, a, dT, G)
        return _by_blocks(BACK_ROWS, entries, W, operands, starts)

    def edge_dynamic_back_columns(
        self, entries: EdgeEntries, W: np.ndarray, F_ext: np.ndarray, S: np.ndarray, a: np.ndarray,
        dS: np.ndarray,
    ) -> None:  # fmt: skip
        """Add every entry's part of the gradient by S_j."""
        if not (self.native and self.portable):
            return super().edge_dynamic_back_columns(entries, W, F_ext, S, a, dS)
        operands = *heads_beside(F_ext, dS), *rows_of(F_ext, S, a, dS)
        BACK_COLUMNS(entries.record, _message(entries, W), *operands)


def _message(entries: EdgeEntries, W: np.ndarray) -> Any:
    return message(entries, W, None, EDGE_ROWS)


def _by_blocks(
    kernel: Any, entries: EdgeEntries, W: np.ndarray, operands: tuple[int, ...], starts: np.ndarray
) -> np.ndarray:
    """[blocks, width f] what a kernel makes of the gradient by W [width, f], block by block."""
    starts = np.ascontiguousarray(starts, dtype=np.int64)
    out = np.empty((len(starts) - 1, W.size), dtype=np.float32)
    kernel(entries.record, _message(entries, W), *operands, len(out), address(starts), address(out))
    return out
