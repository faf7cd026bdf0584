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
    corner = np.array([[0, 0], [side, 0], [side, side], [0, side]], dtype=np.float64)
    upper = points[:, 1] > points[:, 0]
    start, end = corner[np.where(upper, 2, 0)], corner[np.where(upper, 0, 2)]
    angle = corner[np.where(upper, 3, 1)]
    key = upper.astype(np.int64)
    for _ in range(CURVE_BITS):
        middle = (start + end) / 2
        later = ((points - start) ** 2).sum(axis=1) > ((points - end) ** 2).sum(axis=1)
        key = 2 * key + later
        start, end = np.where(later[:, None], angle, start), np.where(later[:, None], end, angle)
        angle = middle
    return key
