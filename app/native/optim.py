"""The compiled form of an optimiser's step (optim.c), with the same bits."""

import ctypes

import numpy as np

from app.errors import NumericsError
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


class AdamSteps:
    """Steps of weights w [size] and moments m, v [size], in place; the arrays must stay where they are."""

    def __init__(self, w: np.ndarray, m: np.ndarray, v: np.ndarray) -> None:
        self.w, self.m, self.v, self._step = w, m, v, _Adam()
        self._at, *self._moments = map(address, (w, m, v))

    def are_of(self, w: np.ndarray, m: np.ndarray, v: np.ndarray) -> bool:
        """Whether these are the arrays."""
        return self.w is w and self.m is m and self.v is v

    def __call__(self, scalars: tuple[float, ...], gradient: np.ndarray) -> None:
        """One step; scalars in the order of the fields of optim.c's struct. Raises NumericsError."""
        w, step = self.w, self._step
        if gradient.size != w.size or gradient.dtype != w.dtype or not gradient.flags.c_contiguous:
            raise NumericsError(f"adam: {gradient.dtype} {gradient.shape} is no gradient of {w.shape}")
        step.__init__(*scalars)
        ADAM(w.size, step, self._at, address(gradient), *self._moments)
