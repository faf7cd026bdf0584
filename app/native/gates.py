"""The compiled gates (gates.c): those of app/numerics/gates.py in one pass."""

import ctypes
from typing import Any

import numpy as np

from app.errors import NumericsError
from app.native.library import address, function
from app.numerics.gates import Gates

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
STEP = function("lk_gru_step", Long, Long, *(Pointer,) * 6)
BACK = function("lk_gru_back", Long, Long, *(Pointer,) * 5)
GLU = function("lk_glu", Long, Long, *(Pointer,) * 2)
GLU_BACK = function("lk_glu_back", Long, Long, *(Pointer,) * 2)


def available() -> bool:
    """True where the library was built."""
    return None not in (STEP, BACK, GLU, GLU_BACK)


class HostGates(Gates):
    """Gates by kernels where the device has them; arrays are then float32 and row-major."""

    native: Any

    def gru_step(
        self, X: np.ndarray, G: np.ndarray, bias: np.ndarray, H: np.ndarray, Q: np.ndarray, out: np.ndarray
    ) -> None:
        """One step of a recurrent unit."""
        if not self.native:
            return super().gru_step(X, G, bias, H, Q, out)
        STEP(*H.shape, *_places(H.shape, (X, 3), (G, 3), (bias, 0), (H, 1), (Q, 1), (out, 1)))

    def gru_back(self, X: np.ndarray, Q: np.ndarray, H: np.ndarray, D: np.ndarray, G: np.ndarray) -> None:
        """Back through one step."""
        if not self.native:
            return super().gru_back(X, Q, H, D, G)
        BACK(*H.shape, *_places(H.shape, (X, 3), (Q, 1), (H, 1), (D, 1), (G, 3)))

    def glu(self, X: np.ndarray, out: np.ndarray) -> None:
        """A gated linear unit."""
        if not self.native:
            return super().glu(X, out)
        GLU(*out.shape, *_places(out.shape, (X, 2), (out, 1)))

    def glu_back(self, X: np.ndarray, D: np.ndarray) -> None:
        """Back through it."""
        if not self.native:
            return super().glu_back(X, D)
        GLU_BACK(*D.shape, *_places(D.shape, (X, 2), (D, 1)))


def _places(shape: tuple[int, int], *given: tuple[np.ndarray, int]) -> list[int]:
    """The addresses of arrays that have so many parts of [m, h] side by side each; 0: of one [h]."""
    m, h = shape
    for array, parts in given:
        fits = array.shape == ((m, parts * h) if parts else (h,))
        if not fits or array.dtype != np.float32 or not array.flags.c_contiguous:
            raise NumericsError(f"gates: {array.dtype} {array.shape} does not fit rows {shape}")
    return [address(array) for array, _ in given]
