"""The functions of domination.c without the library: the same choices and numbers.

`s` is an app.search.domination.search.DominationSearch throughout.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.rng import SplitMix

FREE, OUTSIDE, WEIGHED, DOMINATED = 0, 2, 8, 1 << 30

Search = Any


def _closed(s: Search, v: int) -> Iterator[int]:
    """v and its neighbours."""
    yield v
    yield from s.indices[s.indptr[v] : s.indptr[v + 1]].tolist()


def _dominates(s: Search, v: int) -> Iterator[int]:
    """Of v and its neighbours those that are not dominated anyway."""
    return (u for u in _closed(s, v) if s.times[u] != DOMINATED)


def _price(s: Search, v: int) -> int:
    return 1 if s.price is None else int(s.price[v])


# ---- moves -------------------------------------------------------------------------------------------------


def _open(s: Search, u: int) -> None:
    s.open_at[u], s.open[s.open_size] = s.open_size, u
    s.open_size += 1


def _close(s: Search, u: int) -> None:
    s.open_size -= 1
    last = s.open[s.open_size]
    s.open[s.open_at[u]] = last
    s.open_at[last] = s.open_at[u]


def _offer(s: Search, u: int, weight: int) -> None:
    """u, which nobody dominates, is worth its weight to all that could; or no longer."""
    for x in _closed(s, u):
        s.score[x] += weight


def _add(s: Search, v: int) -> None:
    gain = int(s.score[v])
    s.tick += 1
    for u in _dominates(s, v):
        if s.times[u] == 0:
            _close(s, u)
            _offer(s, u, -int(s.weight[u]))
        elif s.times[u] == 1:
            s.score[s.who[u]] += s.weight[u]
        s.times[u] += 1
        s.who[u] ^= v
        s.touched[u] = s.tick
    s.score[v], s.chosen[v], s.stamp[v] = -gain, 1, s.tick
    s.cost += _price(s, v)
    s.heap_size += int(s.fixed[v] == FREE)


def _take_out(s: Search, v: int) -> None:
    loss = int(s.score[v])
    s.tick += 1
    for u in _dominates(s, v):
        s.times[u] -= 1
        s.who[u] ^= v
        s.touched[u] = s.tick
        if s.times[u] == 0:
            _open(s, u)
            _offer(s, u, int(s.weight[u]))
        elif s.times[u] == 1:
            s.score[s.who[u]] -= s.weight[u]
    s.score[v], s.chosen[v], s.stamp[v] = -loss, 0, s.tick
    s.cost -= _price(s, v)
    s.heap_size -= 1


# ---- choices -----------------------------------------------------------------------------------------------


def _rank(s: Search, v: int, other: int) -> tuple[int, int, int]:
    """What decides between v and another node: the smaller, the better."""
    return -int(s.score[v]) * _price(s, other), int(s.stamp[v]), v


def _better(s: Search, a: int, b: int) -> bool:
    """Whether moving a is better than moving b: the score by price, then the age, then the number."""
    return b < 0 or _rank(s, a, b) < _rank(s, b, a)


def _choose_loss(s: Search, kept: int) -> int:
    """The chosen node that leaves, never `kept` unless it is the only one; -1 where none can."""
    best = -1
    for v in np.flatnonzero((s.chosen == 1) & (s.fixed == FREE)).tolist():
        if (v != kept or s.heap_size == 1) and _better(s, v, best):
            best = v
    return best


def _is_fresh(s: Search, v: int) -> bool:
    """Whether something has changed around a node since it left."""
    return any(s.touched[u] > s.stamp[v] for u in _closed(s, v))


def _choose_gain(s: Search, u: int) -> int:
    """The node that shall dominate u: the best fresh one, or the best of all; -1 where all are outside."""
    best = stale = -1
    for x in _closed(s, u):
        if s.fixed[x] != OUTSIDE and _better(s, x, best):
            if _is_fresh(s, x):
                best = x
            elif _better(s, x, stale):
                stale = x
    return stale if best < 0 else best


def _drawn(s: Search) -> int:
    draws = SplitMix(s.random)
    node = int(s.open[draws.below(s.open_size)])
    s.random = draws.state
    return node


# ---- steps -------------------------------------------------------------------------------------------------


def _shrink(s: Search) -> None:
    """Save a dominating set, then take nodes out until one is undominated and the cost is below `best`."""
    while True:
        if not s.open_size and s.cost < s.best:
            s.best, s.found_at = s.cost, s.steps
            s.best_chosen[:] = s.chosen
        if not s.heap_size or (s.open_size and s.cost < s.best):
            return
        _take_out(s, _choose_loss(s, -1))


def _weigh(s: Search) -> None:
    """One more for each undominated node, or where there are more than WEIGHED for so many drawn."""
    few = s.open_size <= WEIGHED
    for i in range(s.open_size if few else WEIGHED):
        u = int(s.open[i]) if few else _drawn(s)
        s.weight[u] += 1
        _offer(s, u, 1)


def _exchange(s: Search) -> None:
    out = _choose_loss(s, s.last_in)
    if out >= 0:
        _take_out(s, out)
    more = True
    while more:
        into = _choose_gain(s, _drawn(s))
        if into < 0 or s.cost + _price(s, into) >= s.best:
            break
        _add(s, into)
        s.last_in = into
        more = s.price is not None and s.open_size > 0
    _weigh(s)
    if not s.open_size:
        _shrink(s)


def load(s: Search, nodes: list[int]) -> None:
    """Choose nodes, then leave out those that are not needed, and more: see _shrink."""
    for v in nodes:
        _add(s, v)
    _shrink(s)


def run(s: Search, steps: int) -> None:
    """`steps` exchanges."""
    for _ in range(steps):
        if s.best <= s.least:
            return
        s.steps += 1
        _exchange(s)
