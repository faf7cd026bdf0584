"""Sweeps of annealing over the own rows of a cut, compiled; solver/rows/cut_sweeps.py does the same."""

import ctypes

import numpy as np

from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p


class _State(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("down", "up")),
        *((name, Pointer) for name in ("indptr", "indices", "weights", "ids", "logs", "sides", "gain")),
    )


SWEEP = function("lk_cut_sweep", ctypes.POINTER(_State), Long, Long, Long, ctypes.c_uint64)
TOLD = function("lk_cut_told", ctypes.POINTER(_State), Long, Long, Pointer)


def available() -> bool:
    """True where the library was built."""
    return None not in (SWEEP, TOLD)


def bind(arrays: dict[str, np.ndarray], shifts: tuple[int, int]) -> ctypes.Structure:
    """The structure of cut_sweep.c on these arrays, which the caller keeps alive; shifts: (down, up)."""
    state = _State(*shifts)
    for name, array in arrays.items():
        setattr(state, name, address(array))
    return state


def told(state: ctypes.Structure, first: int, last: int, sides: np.ndarray) -> None:
    """The sides [last-first] uint8 of nodes of other ranks."""
    TOLD(state, first, last, address(sides))
