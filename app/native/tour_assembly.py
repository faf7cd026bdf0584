"""Edge assembly crossovers and new first tours for tour_assembly.c and tour_start.c."""

import ctypes
from typing import Any

import numpy as np

from app.native.library import address, function
from app.native.tour import Long, M, NativeMetric, Pointer

ROOM = (
    ("link", 2),
    ("other", 2),
    ("loose", 4),
    ("left", 2),
    ("trail", 3),
    ("at", 2),
    ("cycles", 2),
    ("first", 2),
    ("cuts", 1),
    ("label", 1),
    ("root", 1),
    ("size", 1),
    ("entry", 1),
    ("drawn", 1),
    ("joins", 4),
)  # arrays of int32, and their numbers a city; fmt: skip


class _Assembly(ctypes.Structure):
    _fields_ = (
        ("metric", M),
        *((name, Long) for name in ("n", "k")),
        *((name, Pointer) for name in ("near", "order", "place", *(name for name, _ in ROOM))),
        *(
            (name, Long)
            for name in ("count", "next", "gain", "best", "gaining", "segments", "subtours", "joined")
        ),
        ("random", ctypes.c_uint64),
    )


A = ctypes.POINTER(_Assembly)
BEGIN = function("lk_assembly_begin", A)
MERGE = function("lk_assembly_merge", A, Long, returns=Long)
DRAW = function("lk_assembly_draw", A, Long, returns=Long)
TAKE = function("lk_assembly_take", A)
PIECES = function("lk_tour_pieces", Long, Long, *(Pointer,) * 6)


def available() -> bool:
    """True where the library was built."""
    return None not in (BEGIN, MERGE, DRAW, TAKE, PIECES)


class NativeAssembly:
    """State of tour_assembly.c; `struct` has its counters, `order` [n] int32 is the tour A, changed in place.

    near [n, k] int32: candidates, nearest first
    """

    def __init__(self, metric: Any, near: np.ndarray, random: int) -> None:
        n, k = near.shape
        self.metric = NativeMetric(metric)
        self.order = np.empty(n, dtype=np.int32)
        self._near, self._place = near, np.empty(n, dtype=np.int32)
        self._room = {name: np.empty(n * times, dtype=np.int32) for name, times in ROOM}
        self.struct = _Assembly(self.metric.pointer, n, k)
        arrays = {"near": near, "order": self.order, "place": self._place, **self._room}
        for name, array in arrays.items():
            setattr(self.struct, name, address(array))
        self.struct.random = random

    def begin(self, other: np.ndarray) -> None:
        """Split the difference of `order` and of the tour other [n] into cycles."""
        links = self._room["other"].reshape(-1, 2)
        links[other, 0], links[other, 1] = np.roll(other, 1), np.roll(other, -1)
        BEGIN(self.struct)

    def merge(self, most: int) -> int:
        """Make up to `most` children; with the last of all take over what gains. Returns how many."""
        return MERGE(self.struct, most)

    def draw(self, most: int) -> int:
        """Make up to `most` children of cycles drawn; returns how many."""
        return DRAW(self.struct, most)

    def take(self) -> None:
        """Make `order` the best child drawn."""
        TAKE(self.struct)


def pieces(edges: np.ndarray, base: np.ndarray, state: int) -> tuple[np.ndarray, int]:
    """A new first tour, and the generator's state: see random_greedy (app/search/tour/start.py)."""
    n, random = len(base), ctypes.c_uint64(state)
    links, far, order = (np.empty(size, dtype=np.int32) for size in (2 * n, n, n))
    given = address(edges), address(base), ctypes.addressof(random)
    PIECES(n, len(edges), *given, *(address(array) for array in (links, far, order)))
    return order, random.value
