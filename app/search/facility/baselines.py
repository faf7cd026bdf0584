"""Plain choices of facilities: what searches have to beat, and where they begin.

Each returns [m] bool, facilities of a question; ties go to the lowest number. A choice that leaves a customer
without a path to a facility is told by its value, at least `far`.
"""

import heapq

import numpy as np

from app.graphs.facility import PIECE, Sites
from app.rng import stream


def greedy(sites: Sites) -> np.ndarray:
    """The facility that saves most, again and again: as long as more may be opened, or it saves anything.

    Savings only fall, so that one is looked at again only where it may be the largest (Minoux 1978).
    Source   greedy addition: Cornuejols, Fisher and Nemhauser 1977; Kuehn and Hamburger 1963
    """
    chosen, count = sites.forced.copy(), int(np.count_nonzero(sites.forced))
    if not sites.n:
        return chosen
    least = sites.least(chosen)
    heap = [
        (int(fee) - saved, f, count)
        for f, (fee, saved) in enumerate(zip(sites.opening, _saved(sites, least)))
    ]
    heap = [each for each in heap if not chosen[each[1]]]
    heapq.heapify(heap)
    while heap and count < sites.most:
        key, f, seen = heapq.heappop(heap)
        if seen != count:
            key = int(sites.opening[f]) - int(np.maximum(least - sites.cost[f], 0).sum())
            if heap and (key, f) > heap[0][:2]:
                heapq.heappush(heap, (key, f, count))
                continue
        if key >= 0 and count:
            break
        chosen[f], count = True, count + 1
        np.minimum(least, sites.cost[f], out=least)
    return chosen


def _saved(sites: Sites, least: np.ndarray) -> list[int]:
    """What each facility would save, of customers that cost `least` [n]."""
    size, found = max(1, PIECE // sites.n), []
    for at in range(0, sites.m, size):
        found += np.maximum(least - sites.cost[at : at + size], 0).sum(axis=1).tolist()
    return found


def farthest_first(sites: Sites) -> np.ndarray:
    """The facility nearest to the customer that costs most, again and again.

    Where every node may be a facility, and distances are of a metric, the radius is at most twice the least
    (Gonzalez 1985). The first one is that of the least radius by itself.
    """
    chosen, count = sites.forced.copy(), int(np.count_nonzero(sites.forced))
    if not sites.n:
        return chosen
    if not count and sites.m:
        chosen[sites.cost.max(axis=1).argmin()], count = True, 1
    least = sites.least(chosen)
    while count < sites.most and least.max() > 0:
        here = np.where(chosen, np.iinfo(np.int64).max, sites.cost[:, least.argmax()])
        f = int(here.argmin())
        if sites.cost[f, least.argmax()] >= least.max():
            break
        chosen[f], count = True, count + 1
        np.minimum(least, sites.cost[f], out=least)
    return chosen


def central(sites: Sites) -> np.ndarray:
    """The facilities that all customers together are nearest to, each by itself (closeness)."""
    return _best_prefix(sites, np.argsort(sites.cost.sum(axis=1), kind="stable"))


def random_order(sites: Sites) -> np.ndarray:
    """Facilities in a random order."""
    return _best_prefix(sites, stream(0, "facility").permutation(sites.m))


def _best_prefix(sites: Sites, order: np.ndarray) -> np.ndarray:
    """The first facilities of an order, as many as cost least together, after the forced ones."""
    chosen, count = sites.forced.copy(), int(np.count_nonzero(sites.forced))
    if not sites.n:
        return chosen
    order = order[~chosen[order]][: sites.most - count]
    if sites.largest or not sites.opening.any():
        chosen[order] = True
        return chosen
    least, fees = sites.least(chosen), int(sites.opening[chosen].sum())
    values = [int(least.sum()) + fees if count else np.inf]
    for f in order.tolist():
        np.minimum(least, sites.cost[f], out=least)
        fees += int(sites.opening[f])
        values.append(int(least.sum()) + fees)
    chosen[order[: int(np.argmin(values))]] = True
    return chosen


OF_SUMS = {
    "greedy": (greedy, "greedy"),
    "central": (central, "most central"),
    "random": (random_order, "random order"),
}
OF_RADII = {
    "farthest_first": (farthest_first, "farthest first"),
    "central": (central, "most central"),
    "random": (random_order, "random order"),
}
