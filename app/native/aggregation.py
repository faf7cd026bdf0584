"""The compiled aggregators (aggregate.c): those of app/numerics/aggregation.py row by row."""

import ctypes
from typing import Any

import numpy as np

from app.native.attention import Entries, rows_of
from app.native.library import function
from app.numerics.aggregation import PARTS, Aggregation

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ADD = function("lk_aggregate_add", Entries, Long, *(Pointer,) * 3)
BACK = function("lk_aggregate_back", Entries, Long, *(Pointer,) * 4)
FINISH = function("lk_aggregate_finish", Long, Long, *(Pointer,) * 2)
PACK = function("lk_aggregate_pack", Long, Long, *(Pointer,) * 4)


def available() -> bool:
    """True where the library was built."""
    return None not in (ADD, BACK, FINISH, PACK)


class HostAggregation(Aggregation):
    """Aggregators by kernels where the device has them; arrays are then float32 and row-major."""

    native: Any
    attention_pattern: Any

    def aggregation_pattern(self, A: Any) -> Any:
        """That of attention."""
        return self.attention_pattern(A)

    def aggregate_add(self, pattern: Any, E_ext: np.ndarray, V: np.ndarray, T: np.ndarray) -> None:
        """Hear every entry."""
        if not self.native:
            return super().aggregate_add(pattern, E_ext, V, T)
        ADD(pattern, E_ext.shape[1] - 1, *rows_of(E_ext, V, T))

    def aggregate_finish(self, V: np.ndarray, T: np.ndarray) -> None:
        """Deviations in the place of squares."""
        if not self.native:
            return super().aggregate_finish(V, T)
        FINISH(len(V), V.shape[1] // PARTS, *rows_of(V, T))

    def aggregate_pack(self, D: np.ndarray, V: np.ndarray, T: np.ndarray, F: np.ndarray) -> None:
        """What entries need of a row for the gradients by theirs."""
        if not self.native:
            return super().aggregate_pack(D, V, T, F)
        PACK(len(V), V.shape[1] // PARTS, *rows_of(D, V, T, F))

    def aggregate_back(
        self, pattern: Any, F_ext: np.ndarray, S: np.ndarray, names: np.ndarray, dS: np.ndarray
    ) -> None:
        """Add every entry's part of the gradients by S_j."""
        if not self.native:
            return super().aggregate_back(pattern, F_ext, S, names, dS)
        BACK(pattern, S.shape[1], *rows_of(F_ext, S, names, dS))
