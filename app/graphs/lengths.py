"""Distances of TSPLIB between points in the plane, in space and on the globe, as whole numbers.

Source   TSPLIB 95 (Reinelt 1995): nint(x) is floor(x + 0.5); GEO has pi = 3.141592, a radius of 6378.388 km;
         FLOOR_2D as in LKH-3 (Helsgaun 2017)
"""

import numpy as np

PLANE = (
    "EUC_2D",
    "CEIL_2D",
    "FLOOR_2D",
    "ATT",
)  # a length in the plane, rounded: what is shorter is not rounded to more
# Kinds of points whose distances are always kept as a table; the digit is the number of coordinates.
EUCLIDEAN = ("EUC_2D", "CEIL_2D", "FLOOR_2D", "EUC_3D")  # Euclid's lengths, rounded
TABLED = ("GEO", "MAN_2D", "MAX_2D", "EUC_3D", "MAN_3D", "MAX_3D")
COORDINATE_KINDS = (*PLANE, *TABLED)
LARGEST_COORDINATE = 5e8  # so that every distance fits 31 bits
LARGEST_SUMMED = 3.5e8  # likewise of MAN_3D, a sum of three differences
EARTH_RADIUS, GEO_PI = 6378.388, 3.141592


def dimensions(kind: str) -> int:
    """How many coordinates a point has."""
    return 3 if kind.endswith("3D") else 2


def largest_coordinate(kind: str) -> float:
    """What no coordinate may exceed, so that every distance fits 31 bits."""
    return LARGEST_SUMMED if kind == "MAN_3D" else LARGEST_COORDINATE


def lengths(kind: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Distances (int64) between points a and b [..., coordinates]; kind is one of COORDINATE_KINDS."""
    if kind == "GEO":
        return _geographical(a, b)
    if kind not in PLANE:
        return _in_steps(kind[:3], np.abs(a - b))
    return rounded_length(kind, a[..., 0] - b[..., 0], a[..., 1] - b[..., 1])


def rounded_length(kind: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Lengths (int64) of steps in the plane; kind is one of PLANE."""
    square = x * x + y * y
    if kind == "EUC_2D":
        return np.floor(np.sqrt(square) + 0.5).astype(np.int64)
    if kind == "CEIL_2D":
        return np.ceil(np.sqrt(square)).astype(np.int64)
    if kind == "FLOOR_2D":
        return np.sqrt(square).astype(np.int64)
    root = np.sqrt(square / 10.0)
    whole = np.floor(root + 0.5)
    return (whole + (whole < root)).astype(np.int64)


def _in_steps(kind: str, steps: np.ndarray) -> np.ndarray:
    """Lengths (int64) of differences [..., coordinates]: MAN: their sum, MAX: the largest, EUC: Euclid's."""
    if kind == "MAX":
        return np.floor(steps + 0.5).astype(np.int64).max(axis=-1)
    total = np.zeros(steps.shape[:-1])
    for at in range(steps.shape[-1]):  # in this order, which decides the last bit
        total += steps[..., at] if kind == "MAN" else steps[..., at] * steps[..., at]
    return np.floor((total if kind == "MAN" else np.sqrt(total)) + 0.5).astype(np.int64)


def squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances in the plane, or in space."""
    x, y = a[..., 0] - b[..., 0], a[..., 1] - b[..., 1]
    if a.shape[-1] == 2:
        return x * x + y * y
    z = a[..., 2] - b[..., 2]
    return x * x + y * y + z * z


def _geographical(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Kilometres on the globe, rounded down; coordinates are latitude and longitude as DDD.MM."""
    a, b = _radians(a), _radians(b)
    q1 = np.cos(a[..., 1] - b[..., 1])
    q2 = np.cos(a[..., 0] - b[..., 0])
    q3 = np.cos(a[..., 0] + b[..., 0])
    cosine = np.clip(0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3), -1.0, 1.0)
    return (EARTH_RADIUS * np.arccos(cosine) + 1.0).astype(np.int64)


def _radians(points: np.ndarray) -> np.ndarray:
    """Degrees and minutes DDD.MM to radians, the degrees cut off towards zero."""
    degrees = np.trunc(points)
    return GEO_PI * (degrees + 5.0 * (points - degrees) / 3.0) / 180.0
