"""The compiled operations on entries with rows of their own (edges.c): those of app/numerics/edges.py."""

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np

from app.errors import NumericsError
from app.native.library import address, aligned, function
from app.numerics.edges import EdgeEntries, EdgeSums

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GROUP, VECTOR = 48, 16  # of edges.c: entries of a group, at most; W has whole vectors of columns


class _Edges(ctypes.Structure):
    _fields_ = (
        ("n", Long), ("wide", Long), ("indptr", Pointer), ("indices", Pointer), ("k", Long), ("each", Long),
        ("kinds", Long), ("E", Pointer), ("C", Pointer),
    )  # fmt: skip


class _Message(ctypes.Structure):
    _fields_ = (
        ("f", Long), ("mp", Long), ("W", Pointer), ("b", Pointer), ("none", Pointer), ("Q", Pointer),
    )  # fmt: skip


Entries, Given = ctypes.POINTER(_Edges), ctypes.POINTER(_Message)
ADD = function("lk_edge_add", Entries, Given, Pointer, Pointer, Long)
BACK = function("lk_edge_back", Entries, Given, Pointer, Long, Pointer, Pointer, Long, Long, Pointer, Pointer)


def available() -> bool:
    """True where the library was built."""
    return None not in (ADD, BACK)


class HostEdgeSums(EdgeSums):
    """Messages by kernels where the device has them and its sums are chains; arrays are float32 rows."""

    native: Any
    portable: bool

    def edge_entries(self, A: Any, values: np.ndarray, width: int) -> EdgeEntries:
        """The entries with the addresses of the matrix and of their rows, which are kept."""
        entries = super().edge_entries(A, np.ascontiguousarray(values), width)
        if not self.native:
            return entries
        n, _, wide, indptr, indices, _ = A.record
        at, kinds = address(entries.values), entries.kinds
        places = (0, at) if kinds else (at, 0)
        record = _Edges(n, wide, indptr, indices, width, entries.values.shape[1], kinds, *places)
        return replace(entries, record=record)

    def edge_add(
        self, entries: EdgeEntries, W: np.ndarray, b: np.ndarray | None, X_ext: np.ndarray, Y: np.ndarray
    ) -> None:
        """Y_i += relu(X_j + E_ij W + b) for every entry, in order."""
        if not (self.native and self.portable):
            return super().edge_add(entries, W, b, X_ext, Y)
        f = W.shape[1]
        ADD(entries.record, message(entries, W, b), _rows(f, X_ext), *_columns(f, Y))

    def edge_back(
        self, entries: EdgeEntries, W: np.ndarray, b: np.ndarray | None, H: np.ndarray, D_ext: np.ndarray,
        dH: np.ndarray, starts: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """dH, and by row block the sums that make the gradients of W and b."""
        if not (self.native and self.portable):
            return super().edge_back(entries, W, b, H, D_ext, dH, starts)
        f, starts = W.shape[1], np.ascontiguousarray(starts, dtype=np.int64)
        out = np.empty((len(starts) - 1, (entries.width + 1) * f), dtype=np.float32)
        rows = *_columns(f, H), _rows(f, D_ext), *_columns(f, dH)
        BACK(entries.record, message(entries, W, b), *rows, len(out), address(starts), address(out))
        return out


def message(entries: EdgeEntries, W: np.ndarray, b: np.ndarray | None, rows: int = GROUP) -> _Message:
    """W in whole vectors, b or zeros, and room for a group of some rows; the arrays are kept."""
    (k, f), mp = W.shape, -(-W.shape[1] // VECTOR) * VECTOR
    if k != entries.width or (b is not None and b.size != f):
        raise NumericsError(f"edges: W of {W.shape} does not fit rows of {entries.width} numbers")
    wide, room = aligned((k + 2, mp)), aligned((rows, f))
    wide[...] = 0
    wide[:k, :f] = W
    if b is not None:
        wide[k, :f] = b.reshape(-1)
    at, row = address(wide), 4 * mp
    made = _Message(f, mp, at, at + k * row, at + (k + 1) * row, address(room))
    made.kept = wide, room
    return made


def _rows(f: int, X: np.ndarray) -> int:
    """The address of row-major float32 rows of f columns."""
    if not X.flags.c_contiguous:
        raise NumericsError("edges: rows of other ranks must be row-major, without gaps")
    return _columns(f, X)[0]


def _columns(f: int, X: np.ndarray) -> tuple[int, int]:
    """The address of float32 rows of f columns, and the numbers from one to the next."""
    step, inside = X.strides
    if X.dtype != np.float32 or X.shape[1] != f or (X.size and f > 1 and inside != 4) or step % 4:
        raise NumericsError(f"edges: operands must be float32, row-major and of {f} columns")
    return address(X), step // 4
