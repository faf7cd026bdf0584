"""The compiled form of an optimiser's step (optim.c), with the same bits."""

import ctypes

import numpy as np

from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p


class _Adam(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_float)
        for name in ("beta1", "rest1", "beta2", "rest2", "correction2", "epsilon", "rate")
    )


ADAM = function("lk_adam", Long, ctypes.POINTER(_Adam), *(Pointer,) * 4)


def fits(*arrays: object) -> bool:
    """True where the library was built and these are row-major float32 arrays of the host."""
    return ADAM is not None and all(
        isinstance(a, np.ndarray) and a.dtype == np.float32 and a.flags.c_contiguous for a in arrays
    )


def adam(scalars: tuple[float, ...], w: np.ndarray, g: np.ndarray, m: np.ndarray, v: np.ndarray) -> None:
    """One step in place; scalars in the order of the fields of optim.c's struct."""
    ADAM(w.size, ctypes.byref(_Adam(*scalars)), address(w), address(g), address(m), address(v))
