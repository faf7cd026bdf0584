"""Bounds of vehicle routes: routing_bounds.c."""

import ctypes
from typing import Any

import numpy as np

from app.native.library import address, function

Long, Real, Pointer = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
NUMBERS = ("n", "width", "capacity", "room", "top")
ARRAYS = (
    "begin", "to", "carried", "block", "load", "cost", "out", "dominant", "least", "head", "value", "before",
    "next", "customer", "memory", "ends", "length",
)  # fmt: skip


TIMED_NUMBERS = (*NUMBERS, "opens_at", "closes_at")
TIMED_ARRAYS = (
    "begin", "to", "carried", "block", "load", "cost", "out", "step", "away", "home", "opens", "closes",
    "dominant", "value", "time", "before", "customer", "memory", "carries", "heap", "ends", "length",
    "closed",
)  # fmt: skip


class _Routes(ctypes.Structure):
    _fields_ = (*((name, Long) for name in NUMBERS), *((name, Pointer) for name in ARRAYS))


class _TimedRoutes(ctypes.Structure):
    _fields_ = (*((name, Long) for name in TIMED_NUMBERS), *((name, Pointer) for name in TIMED_ARRAYS))


GROW = function("lk_grow_sets", Long, *(Pointer,) * 5, Long, Real, Long, Pointer, Long, *(Pointer,) * 5)
ROUTES = function("lk_ng_routes", ctypes.POINTER(_Routes), returns=Long)
TIMED = function("lk_timed_routes", ctypes.POINTER(_TimedRoutes), returns=Long)


def available() -> bool:
    """True where the library was built."""
    return None not in (GROW, ROUTES, TIMED)


def grow_sets(
    begin: np.ndarray, to: np.ndarray, x: np.ndarray, degree: np.ndarray, demand: np.ndarray, capacity: int,
    rate: float, seeds: np.ndarray, longest: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """(order [seeds, longest], size, excess [seeds]) of the best set from each seed, see routing_bounds.c."""
    n, count = len(degree), len(seeds)
    order, size = np.zeros((count, longest), dtype=np.int32), np.zeros(count, dtype=np.int32)
    excess, joins, state = np.zeros(count), np.zeros(n), np.zeros(n, dtype=np.uint8)
    point = (address(array) for array in (begin, to, x, degree, demand))
    found = (address(array) for array in (order, size, excess, joins, state))
    GROW(n, *point, capacity, rate, count, address(seeds), longest, *found)
    return order, size, excess


def ng_routes(owner: Any) -> int:
    """Fill the arrays of `owner`, which has all that Routes of routing_bounds.c names."""
    given = {name: int(getattr(owner, name)) for name in NUMBERS}
    return ROUTES(_Routes(**given, **{name: address(getattr(owner, name)) for name in ARRAYS}))


def timed_routes(owner: Any) -> int:
    """Fill the arrays of `owner`, which has all that TimedRoutes of routing_bounds.c names."""
    given = {name: int(getattr(owner, name)) for name in TIMED_NUMBERS}
    return TIMED(_TimedRoutes(**given, **{name: address(getattr(owner, name)) for name in TIMED_ARRAYS}))
