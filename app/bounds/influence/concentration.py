"""What shares of reverse reachable sets say of expected spreads, with a probability that is asked for.

Of `sets` independent sets each holds a seed with probability spread / n. Where a choice of seeds does not
depend on the sets that judge it, at_least(hits) is above its spread with probability delta at most. The
seeds of largest spread do not depend on the sets that others are chosen by, and hit no more of them than
any seeds can: with a bound of that, at_most(bound) is below the largest spread with probability delta at
most.

Source   Tang, Tang, Xiao and Yuan 2018 (OPIM-C): eqs. 5 and 8, by the martingale bounds of Tang et al. 2015
"""

import math


def at_least(hits: int, sets: int, n: int, delta: float) -> float:
    """A lower bound of the spread of seeds that hit so many sets, which had no part in choosing them."""
    a = math.log(1 / delta)
    root = math.sqrt(hits + 2 * a / 9) - math.sqrt(a / 2)
    return max((root * root - a / 18) * n / sets, 0.0) if root > 0 else 0.0


def at_most(bound: int, sets: int, n: int, delta: float) -> float:
    """An upper bound of the largest spread, where no seeds hit more than `bound` of the sets."""
    a = math.log(1 / delta)
    return min((math.sqrt(bound + a / 2) + math.sqrt(a / 2)) ** 2 * n / sets, float(n))
