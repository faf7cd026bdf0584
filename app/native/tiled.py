"""The tiled form of a matrix (tiled.h): a second copy of its entries, for products that are made often."""

import ctypes

import numpy as np

from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
BAND, LOOK_AHEAD = 8192, 8  # as in tiled.h
LEAST_COLUMNS = 16  # of the other operand
NOT_ASCENDING, NO_MEMORY = 1, 2
RUNS = 32  # of a tile, about: rows with equally many entries


class _Tiled(ctypes.Structure):
    _fields_ = (
        ("n", Long), ("m", Long), ("height", Long), ("tiles", Pointer), ("runs", Pointer), ("rows", Pointer),
        ("entries", Pointer), ("values", Pointer),
    )  # fmt: skip


tiled_height = function("lk_tiled_height", *(Long,) * 4, returns=Long)
panel_columns = function("lk_tiled_panel", returns=Long)
TILE = function(
    "lk_tile", Long, Long, ctypes.c_int, *(Pointer,) * 3, Long, *(Pointer,) * 6, returns=ctypes.c_int
)
PRODUCT = function("lk_tiled", ctypes.POINTER(_Tiled), Long, Pointer, Pointer, Long, Pointer)


def expected_bytes(shape: tuple[int, int], entries: int, weighted: bool, height: int) -> int:
    """About what the tiled form of a matrix takes, with `height` columns in a tile."""
    tiles, bands = -(-shape[1] // height), -(-shape[0] // BAND)
    cells, runs = min(shape[0] * tiles, entries), RUNS * bands * tiles
    return (6 if weighted else 2) * entries + 2 * cells + 8 * min(runs, cells) + 24 * (bands * tiles + 1)


class TiledMatrix:
    """A matrix, tile by tile of its columns; `times` gives the bits of the product by rows.

    nbytes   of the copy
    """

    def __init__(self, record: tuple[int, ...], height: int, runs: int, cells: int, entries: int) -> None:
        """record   of the matrix (NativeProducts.record), whose arrays are read here and not later."""
        rows, columns = record[:2]
        tiles = -(-rows // BAND) * -(-columns // height)
        self._arrays = (
            np.empty((tiles + 1, 3), dtype=np.int64), np.empty((runs, 2), dtype=np.uint32),
            np.empty(cells + LOOK_AHEAD, dtype=np.uint16), np.empty(entries, dtype=np.uint16),
            np.empty(entries, dtype=np.float32) if record[5] else None,
        )  # fmt: skip
        self.nbytes = sum(array.nbytes for array in self._arrays if array is not None)
        addresses = [address(array) for array in self._arrays]
        sizes = np.zeros(2, dtype=np.int64)
        if TILE(*record, height, *addresses, address(sizes)):
            raise MemoryError
        self._struct = ctypes.pointer(_Tiled(rows, columns, height, *addresses))

    def times(self, X: np.ndarray, Y: np.ndarray, row_length: int, live: int) -> None:
        """Y += A X: operands and addresses as NativeProducts.spmm_add has checked them."""
        PRODUCT(self._struct, X.shape[1], address(X), address(Y), row_length, live)


def lay_out(record: tuple[int, ...], height: int, entries: int) -> TiledMatrix | None:
    """The tiled form of a matrix; None where the columns of a row do not ascend."""
    sizes = np.zeros(2, dtype=np.int64)
    found = TILE(*record, height, *(None,) * 5, address(sizes))
    if found == NO_MEMORY:
        raise MemoryError
    return None if found == NOT_ASCENDING else TiledMatrix(record, height, *sizes.tolist(), entries)
