"""Plain choices of sets for a budget: what searches have to beat, and where they begin.

Each returns [m] bool, chosen sets of a family. Ties go to the lowest number.
"""

import ctypes

import numpy as np

from app.graphs.family import Family
from app.native.library import address, function
from app.rng import stream
from app.search.coverage import plain

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
GREEDY = function(
    "lk_coverage_greedy", Long, *(Pointer,) * 4, Long, Long, *(Pointer,) * 4, returns=Long
)  # fmt: skip


def greedy(family: Family, compiled: bool = True) -> np.ndarray:
    """By gain; where costs differ the best of that, by gain for the cost, and the best single set.

    At least 1 - 1/e of the optimum where sets cost alike (Nemhauser, Wolsey and Fisher 1978), else (1 - 1/e)
    / 2 (Khuller, Moss and Naor 1999, theorem 2, with their remark on sets that no longer fit: these are
    passed over). Gains are looked at again only where they may be the largest (Minoux 1978).
    """
    found = [by_gain(family, False, compiled)]
    if not family.uniform and family.m:
        found += [by_gain(family, True, compiled), _single(family, compiled)]
    return max(found, key=family.value)


def by_gain(
    family: Family, dense: bool, compiled: bool = True, begun: np.ndarray | None = None
) -> np.ndarray:
    """[m] bool, the set of the largest gain (dense: for its cost) that fits, again and again.

    begun   [m] bool, sets that are chosen already
    """
    chosen = np.zeros(family.m, dtype=bool) if begun is None else begun.copy()
    chosen[order_by_gain(family, dense, compiled, begun)] = True
    return chosen


def order_by_gain(
    family: Family, dense: bool, compiled: bool = True, begun: np.ndarray | None = None
) -> np.ndarray:
    """[k] int32, the sets that `by_gain` adds, in their order."""
    chosen = np.zeros(family.m, dtype=bool) if begun is None else begun
    covered, budget = family.covered(chosen), family.budget - int(family.cost[chosen].sum())
    if not (compiled and GREEDY is not None and family.m):
        return np.array(plain.greedy(family, dense, covered, budget), dtype=np.int32)
    key = np.empty(family.m, dtype=np.float64)
    heap, order = (np.empty(family.m, dtype=np.int32) for _ in range(2))
    given = family.set_ptr, family.elements, family.weight, family.cost
    count = GREEDY(
        family.m, *map(address, given), budget, int(dense), address(covered), address(key), address(heap),
        address(order),
    )  # fmt: skip
    return order[:count]


def _single(family: Family, compiled: bool) -> np.ndarray:
    """The set of most weight that the budget pays for, and what then fits beside it."""
    value = np.where(family.cost <= family.budget, family.values(family.weight), -1)
    chosen = np.zeros(family.m, dtype=bool)
    if (value >= 0).any():
        chosen[value.argmax()] = True
    return by_gain(family, False, compiled, chosen)


def largest(family: Family, compiled: bool = True) -> np.ndarray:
    """The sets of most weight as they follow, each that fits: what overlaps counts twice."""
    return _in_order(family, np.argsort(-family.values(family.weight), kind="stable"))


def random_order(family: Family, compiled: bool = True) -> np.ndarray:
    """Sets in a random order, each that fits."""
    return _in_order(family, stream(0, "coverage").permutation(family.m))


def _in_order(family: Family, order: np.ndarray) -> np.ndarray:
    """The sets of an order, each that what is left of the budget pays for."""
    chosen = np.zeros(family.m, dtype=bool)
    if family.uniform:
        chosen[order[: family.budget]] = True
        return chosen
    left, cost = family.budget, family.cost.tolist()
    for a in order.tolist():
        if cost[a] <= left:
            chosen[a] = True
            left -= cost[a]
    return chosen


COVERAGE_BASELINES = {
    "greedy": (greedy, "greedy"),
    "largest": (largest, "largest sets"),
    "random": (random_order, "random order"),
}
