"""Cuts of a row of blocks that make the heaviest rank as light as can be: binary search on partial sums."""

import numpy as np

HALVINGS = 64  # of the interval that holds the least maximum: more would not change a double


def best_cuts(costs: np.ndarray, ranks: int) -> np.ndarray:
    """Cuts with the least possible maximum of a rank's cost; among those, borders near equal shares.

    costs     [blocks] non-negative float64
    returns   [ranks+1] int64, first block of each rank; a rank may own no block
    """
    total = np.concatenate([[0.0], np.cumsum(np.asarray(costs, dtype=np.float64))])
    limit = least_maximum(total, ranks)
    latest = _fill_from_the_end(total, ranks, limit)
    cuts = np.zeros(ranks + 1, dtype=np.int64)
    for rank in range(1, ranks):
        goal = total[-1] * rank / ranks
        # From the border before, no further than the limit allows; what is left must fit the ranks behind.
        most = _reach(total, cuts[rank - 1], limit)
        cuts[rank] = min(max(_nearest(total, goal), latest[rank], cuts[rank - 1]), most)
    cuts[ranks] = len(total) - 1
    return cuts


def least_maximum(total: np.ndarray, ranks: int) -> float:
    """The least limit under which `ranks` consecutive parts hold all blocks; total [blocks+1] sums."""
    low, high = total[-1] / ranks, total[-1]
    if _fits(total, ranks, low):
        return low
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if _fits(total, ranks, middle):
            high = middle
        else:
            low = middle
    return high


def _fits(total: np.ndarray, ranks: int, limit: float) -> bool:
    at = 0
    for _ in range(ranks):
        at = _reach(total, at, limit)
    return at == len(total) - 1


def _reach(total: np.ndarray, at: int, limit: float) -> int:
    """The last border that a part which begins at border `at` can end at."""
    return int(np.searchsorted(total, total[at] + limit, side="right")) - 1


def _fill_from_the_end(total: np.ndarray, ranks: int, limit: float) -> list[int]:
    """For each rank the first border it can begin at, so that it and those behind it hold all the rest."""
    begins = [0] * ranks + [len(total) - 1]
    for rank in range(ranks - 1, 0, -1):
        # The first border from which the part reaches the next one, by the sum that _reach makes.
        begins[rank] = int(np.searchsorted(total + limit, total[begins[rank + 1]], side="left"))
    return begins


def _nearest(total: np.ndarray, goal: float) -> int:
    """The border whose partial sum is nearest to a goal; the lower one of two."""
    after = int(np.searchsorted(total, goal, side="left"))
    before = max(after - 1, 0)
    after = min(after, len(total) - 1)
    return before if goal - total[before] <= total[after] - goal else after
