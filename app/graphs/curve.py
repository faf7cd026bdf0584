"""Points in the order of a Sierpinski curve: what is near in the plane is mostly near in the order, too.

Source   Platzman and Bartholdi 1989
"""

import numpy as np

CURVE_BITS = 40  # halvings of the square
WORTH_ORDERING = 5000  # points; arrays of fewer are near in memory anyway


def along_curve(points: np.ndarray) -> np.ndarray:
    """[n] int32, the points [n, 2] in the order of a closed curve through the square around them."""
    if not len(points):
        return np.zeros(0, dtype=np.int32)
    moved = points - points.min(axis=0)
    key = _sierpinski(moved, float(moved.max()) or 1.0)
    return np.argsort(key, kind="stable").astype(np.int32)


def _sierpinski(points: np.ndarray, side: float) -> np.ndarray:
    """[n] int64, the place of points in the square of this side on the curve.

    The square's two halves are right-angled triangles; the curve goes through one from `start` to `end`. Cut
    from the right angle to the middle of the long side, it is two such triangles, passed one after the other.
    """
    x, y = np.ascontiguousarray(points[:, 0]), np.ascontiguousarray(points[:, 1])
    upper, zero = y > x, np.zeros(len(points))
    start, end = (np.where(upper, side, 0.0),) * 2, (np.where(upper, 0.0, side),) * 2
    angle = np.where(upper, zero, side), np.where(upper, side, zero)
    key = upper.astype(np.int64)
    for _ in range(CURVE_BITS):
        middle = tuple((a + b) / 2 for a, b in zip(start, end))
        later = _squares(x, y, *start) > _squares(x, y, *end)
        key = 2 * key + later
        start, end = (
            tuple(np.where(later, a, b) for a, b in zip(angle, start)),
            tuple(np.where(later, a, b) for a, b in zip(end, angle)),
        )
        angle = middle
    return key


def _squares(x: np.ndarray, y: np.ndarray, from_x: np.ndarray, from_y: np.ndarray) -> np.ndarray:
    """[n] the squares of the distances between points."""
    return (x - from_x) ** 2 + (y - from_y) ** 2
