"""Elementary functions made of IEEE-exact operations: the same bits on every device and library."""

import math
from typing import Any

import numpy as np

Array = Any
LN2 = 0.6931471805599453
LN2_FIRST, LN2_SECOND = 0.693359375, -2.1219444005469057e-4  # of few digits, and what is left of ln 2
SQRT_HALF = 0.7071067811865476
EXP_LEAST, EXP_MOST = -87.0, 88.7228  # all results between are normal numbers
EXP_TERMS = 7  # powers of r in a float32


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


def exp(xp: Any, x: Array) -> Array:
    """Exponential of float32 values, relative error below 3e-7; 0 up to -87, infinity from 88.7228 on.

    With x = n ln 2 + r, |r| < 0.35: exp x = 2^n (1 + r + r^2/2 + ...). ln 2 is taken off in two parts, of
    which n times the first is exact. NaN stays NaN. Float64 has the same limits, and more terms.
    """
    inside = (x > EXP_LEAST) & (x < EXP_MOST)
    t = xp.where(inside, x, 0)
    n = xp.floor(t * (1 / LN2) + 0.5)
    r = (t - n * LN2_FIRST) - n * LN2_SECOND
    terms = EXP_TERMS if x.dtype == np.float32 else 2 * EXP_TERMS
    p = xp.full_like(r, 1 / math.factorial(terms))
    for k in range(terms - 1, -1, -1):
        p = p * r + 1 / math.factorial(k)
    p = xp.ldexp(p, n.astype(np.int32))
    return xp.where(inside, p, xp.where(x <= EXP_LEAST, 0, xp.where(x >= EXP_MOST, np.inf, x)))
