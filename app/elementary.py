"""Elementary functions made of IEEE-exact operations: the same bits on every device and library."""

from typing import Any

Array = Any
LN2 = 0.6931471805599453
SQRT_HALF = 0.7071067811865476


def log(xp: Any, x: Array) -> Array:
    """Natural logarithm of positive float32 values, relative error below 1e-6.

    With x = m 2^e and s = (m-1)/(m+1): log m = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172 for m in [0.707,
    1.414). Library logarithms differ in the last bits between processors; these operations do not.
    """
    m, e = xp.frexp(x)
    low = m < x.dtype.type(SQRT_HALF)
    m = xp.where(low, m + m, m)
    e = e.astype(x.dtype) - low
    s = (m - 1) / (m + 1)
    t = s * s
    series = ((t * (1 / 9) + 1 / 7) * t + 1 / 5) * t + 1 / 3
    return e * x.dtype.type(LN2) + 2 * s * (1 + t * series)
