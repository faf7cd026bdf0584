"""The functions of coverage.c without the library: the same draws, choices and numbers.

`s` is an app.search.coverage.search.CoverageSearch throughout.
"""

import heapq
from typing import Any

import numpy as np

from app.graphs.family import Family
from app.rng import SplitMix

PAIRS = 7  # two sets leave where these bits of a draw are 0

Search = Any


def _cost(s: Search, a: int) -> int:
    return 1 if s.cost is None else int(s.cost[a])


# ---- sets come and go --------------------------------------------------------------------------------------


def _add(s: Search, a: int) -> None:
    for v in s.elements[s.set_ptr[a] : s.set_ptr[a + 1]].tolist():
        if s.times[v] == 0:
            s.score[s.sets[s.element_ptr[v] : s.element_ptr[v + 1]]] -= s.weight[v]
            s.score[a] += s.weight[v]
        elif s.times[v] == 1:
            s.score[s.who[v]] -= s.weight[v]
        s.times[v] += 1
        s.who[v] ^= a
    s.chosen[a], s.place[a] = 1, s.size
    s.inside[s.size] = a
    s.size += 1
    s.spent += _cost(s, a)
    s.value += int(s.score[a])


def _take_out(s: Search, a: int) -> None:
    for v in s.elements[s.set_ptr[a] : s.set_ptr[a + 1]].tolist():
        s.times[v] -= 1
        s.who[v] ^= a
        if s.times[v] == 0:
            s.score[s.sets[s.element_ptr[v] : s.element_ptr[v + 1]]] += s.weight[v]
            s.score[a] -= s.weight[v]
        elif s.times[v] == 1:
            s.score[s.who[v]] += s.weight[v]
    s.size -= 1
    last = int(s.inside[s.size])
    s.inside[s.place[a]] = last
    s.place[last] = s.place[a]
    s.chosen[a] = 0
    s.spent -= _cost(s, a)
    s.value -= int(s.score[a])


def _save(s: Search) -> None:
    s.best_chosen[:] = 0
    s.best_chosen[s.inside[: s.size]] = 1
    s.unsaved = 0


# ---- steps -------------------------------------------------------------------------------------------------


def _leaving(s: Search, draws: SplitMix) -> int:
    found, least = -1, 0.0
    for _ in range(s.sample):
        a = int(s.inside[draws.below(s.size)])
        loss = float(s.score[a]) if s.cost is None else float(s.score[a]) / float(s.cost[a])
        if found < 0 or loss < least or (loss == least and s.free_at[a] < s.free_at[found]):
            found, least = a, loss
    return found


def _coming(s: Search, dense: bool) -> int:
    room = s.budget - s.spent
    open_ = (s.chosen == 0) & (s.score > 0) & (s.free_at <= s.steps)
    if s.cost is not None:
        open_ &= s.cost <= room
    elif room < 1:
        return -1
    sets = np.flatnonzero(open_)
    if not len(sets):
        return -1
    gain = s.score[sets] / s.cost[sets] if s.cost is not None and dense else s.score[sets]
    sets = sets[gain == gain.max()]
    return int(sets[s.free_at[sets].argmin()])


def _exchange(s: Search) -> None:
    s.steps += 1
    draws = SplitMix(s.random)
    draw = draws.bits()
    gone = 1 if draw >> 32 & PAIRS else 2
    if s.unsaved and s.size:
        _save(s)
    while gone and s.size:
        a = _leaving(s, draws)
        _take_out(s, a)
        s.free_at[a] = s.steps + 1 + draws.below(s.tenure)
        gone -= 1
    s.random = draws.state
    while s.spent < s.budget and (a := _coming(s, bool(draw & 1))) >= 0:
        _add(s, a)
        s.free_at[a] = s.steps
    if s.value > s.best:
        s.best, s.found_at, s.unsaved = s.value, s.steps, 1


def run(s: Search, steps: int) -> None:
    """So many exchanges."""
    for _ in range(steps):
        _exchange(s)
    if s.unsaved:
        _save(s)


def load(s: Search, chosen: list[int]) -> None:
    """From nothing chosen to these sets."""
    s.chosen[:] = s.times[:] = s.who[:] = 0
    s.size = s.spent = s.value = 0
    s.score[:] = s.family.values(s.weight)
    for a in chosen:
        _add(s, a)


# ---- greedy choices ----------------------------------------------------------------------------------------


def greedy(family: Family, dense: bool, covered: np.ndarray, budget: int) -> list[int]:
    """What lk_coverage_greedy chooses; covered [n] bool, what is held already, follows."""
    ptr, cost = family.set_ptr.tolist(), family.cost.tolist()

    def gain(a: int) -> float:
        held = family.elements[ptr[a] : ptr[a + 1]]
        found = float(family.weight[held[~covered[held]]].sum())
        return found / cost[a] if dense else found

    heap = [(-key, a) for a in range(family.m) if (key := gain(a)) > 0]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        key, a = heapq.heappop(heap)
        found = gain(a) if cost[a] <= budget else 0.0
        if 0 < found < -key:
            heapq.heappush(heap, (-found, a))
        elif found > 0:
            order.append(a)
            budget -= cost[a]
            covered[family.elements[ptr[a] : ptr[a + 1]]] = True
    return order
