"""Annealing rounds and settled parts of cuts, compiled; search/cut/plain.py and search.py do the same."""

import ctypes

import numpy as np

from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p


class _State(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("n", "free", "down", "up")),
        *((name, Pointer) for name in ("indptr", "indices", "weights", "order", "logs")),
        *((name, Pointer) for name in ("sides", "best_sides", "gain", "number")),
    )


BEGIN = function("lk_cut_begin", ctypes.POINTER(_State))
PERFECT = function("lk_cut_perfect", Long, *(Pointer,) * 9)
ANNEAL = function("lk_cut_anneal", ctypes.POINTER(_State), Long, returns=Long)


def available() -> bool:
    """True where the library was built."""
    return None not in (BEGIN, ANNEAL, PERFECT)


def perfect_sides(
    rows: tuple[np.ndarray, np.ndarray, np.ndarray], fixed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """settled, sides [n] bool: see app/search/cut/search.py.

    rows   indptr [n+1] int64, indices [nnz] int32, weights [nnz] int64; fixed [n] int8
    """
    n = len(fixed)
    above, marks = np.empty(n + 1, dtype=np.int32), np.empty((2, n + 1), dtype=np.uint8)
    found = np.empty((2, n), dtype=np.uint8)
    PERFECT(n, *(address(array) for array in (*rows, fixed, above, *marks, *found)))
    return found[0].astype(bool), found[1].astype(bool)


def bind(
    arrays: dict[str, np.ndarray], constants: dict[str, np.ndarray], shifts: tuple[int, int]
) -> ctypes.Structure:
    """The structure of cut_search.c on these arrays, which the caller keeps alive.

    arrays     sides, best_sides [n] uint8, gain [n] int64, number [10] int64
    constants  indptr, weights, logs int64; indices, order int32
    shifts     (down, up) of a threshold
    """
    state = _State(len(arrays["sides"]), len(constants["order"]), *shifts)
    for name, array in (arrays | constants).items():
        setattr(state, name, address(array))
    return state
