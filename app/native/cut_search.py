"""Annealing rounds for the maximum cut, compiled; app/search/cut_plain.py is the same without kernels."""

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
ANNEAL = function("lk_cut_anneal", ctypes.POINTER(_State), Long, returns=Long)


def available() -> bool:
    """True where the library was built."""
    return None not in (BEGIN, ANNEAL)


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
