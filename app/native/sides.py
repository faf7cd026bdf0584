"""Compiled steps and codes of states with two sides that one rank holds whole; see sides.c."""

import ctypes

import numpy as np

from app.errors import NumericsError
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p


class _Sides(ctypes.Structure):
    _fields_ = (
        ("wide", Long),
        *((name, Pointer) for name in ("indptr", "indices", "units", "mark", "mark_ext", "field", "parts")),
        ("listed", Pointer),
        *((name, Long) for name in ("grain", "per_grain", "most")),
        ("change", Long * 3),
    )  # fmt: skip


class _Codes(ctypes.Structure):
    _fields_ = (("ages", Long), ("parts", Long), ("code_of", Pointer))


STEP = function("lk_sides_step", ctypes.POINTER(_Sides), Pointer, Long, Pointer, returns=Long)
CODES = function("lk_sides_codes", ctypes.POINTER(_Codes), Long, *(Pointer,) * 3, Long, Long, Pointer)


def available() -> bool:
    """True where the library was built."""
    return None not in (STEP, CODES)


class SideCodes:
    """How codes follow from ages, gains and sides: code_of [ages + 1, 2 parts + 1, 2] int32."""

    def __init__(self, code_of: np.ndarray) -> None:
        self.code_of = code_of
        ages, parts, _ = code_of.shape
        self._struct = _Codes(ages - 1, parts // 2, address(code_of))

    def codes(
        self, mark: np.ndarray, parts: np.ndarray, moved: np.ndarray, clock: int, rest: int
    ) -> np.ndarray:
        """[n] int32; mark, parts, moved [n] int32."""
        code = np.empty(len(mark), dtype=np.int32)
        CODES(self._struct, len(mark), *map(address, (mark, parts, moved)), clock, rest, address(code))
        return code


class SideSteps:
    """Steps of one environment, whose arrays must stay where they are and are changed in place.

    indptr, indices   rows of the whole graph, both int32 or both int64
    units             [entries] int64 weights, or None: all one
    mark, parts [n] int32, mark_ext [n] int8, field [n] int64; grain, per_grain, most: see app/rl/sides.py
    """

    def __init__(
        self,
        rows: tuple[np.ndarray, np.ndarray],
        units: np.ndarray | None,
        arrays: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
        grain: tuple[int, int, int],
    ) -> None:
        indptr, indices = rows
        if indptr.dtype != indices.dtype or indptr.dtype not in (np.int32, np.int64):
            raise NumericsError("sides: row offsets and columns must have one type, int32 or int64")
        self._touched = np.empty(len(arrays[0]), dtype=np.int64)
        self._held = indptr, indices, units, *arrays, np.zeros(len(arrays[0]), dtype=np.uint8)
        self._struct = _Sides(int(indptr.itemsize == 8), *map(address, self._held), *grain)

    def step(self, nodes: np.ndarray) -> tuple[list[int], np.ndarray]:
        """Distinct nodes [k] int64 move to their other sides.

        returns   the change of the sum of the fields, of nodes with one above zero, and of those of them on
                  the first side; [m] int64, the nodes whose fields changed, ascending
        """
        self._struct.change[:] = (0, 0, 0)
        listed = STEP(self._struct, address(nodes), len(nodes), address(self._touched))
        return self._struct.change[:], np.sort(self._touched[:listed])
