"""The independent check of reductions of maximum coverage: replays their log, and proves each entry."""

import numpy as np

from app.graphs.family import Family
from app.reductions.replay import require

PAIR_SECONDS = 1e-6  # of a check, for each element of a set that went, about


def left_by(family: Family, log: np.ndarray) -> np.ndarray:
    """[m] bool, the sets that a log [words] int64 leaves (app/reductions/coverage/reducer.py).

    Raises BadReduction.
    """
    there = np.ones(family.m, dtype=bool)
    require(len(log) % 2 == 0, "half an entry")
    held: dict[int, set[int]] = {}

    def elements_of(a: int) -> set[int]:
        if a not in held:
            held[a] = set(family.elements[family.set_ptr[a] : family.set_ptr[a + 1]].tolist())
        return held[a]

    for a, b in log.reshape(-1, 2).tolist():
        require(0 <= a < family.m and 0 <= b < family.m and a != b, f"sets {a} and {b} are not two sets")
        require(bool(there[a]) and bool(there[b]), f"set {a} or {b} has gone before")
        require(bool(family.cost[b] <= family.cost[a]), f"set {b} is dearer than {a}")
        require(elements_of(a) <= elements_of(b), f"set {b} lacks an element of {a}")
        there[a] = False
    return there
