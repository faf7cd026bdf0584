"""The functions of directed_feedback.c without the library: the same choices and numbers.

`s` is an app.search.dfvs.search.DirectedFeedbackSearch throughout, or has the same arrays.
"""

from typing import Any

import numpy as np

from app.rng import SplitMix
from app.search.labels import TOP, cut_out, link_all, link_behind

Search = Any


def _price(s: Search, v: int) -> int:
    return 1 if s.price is None else int(s.price[v])


# ---- the order ---------------------------------------------------------------------------------------------


def _insert(s: Search, v: int, p: int) -> None:
    """v comes after p, n being the beginning."""
    link_behind(s, v, p)
    s.apart_size -= 1
    last = int(s.apart[s.apart_size])
    s.apart[s.place[v]] = last
    s.place[last] = s.place[v]
    s.cost -= _price(s, v)


def _take_out(s: Search, v: int) -> None:
    cut_out(s, v)
    s.label[v], s.place[v] = -1, s.apart_size
    s.apart[s.apart_size] = v
    s.apart_size += 1
    s.cost += _price(s, v)


def _save(s: Search) -> None:
    s.best_set[:] = 0
    s.best_set[s.apart[: s.apart_size]] = 1
    s.unsaved = 0


# ---- steps -------------------------------------------------------------------------------------------------


def _trial(s: Search, heat: int) -> None:
    """A node outside comes in after the last node with an arc to it, or before the first that it has one to;
    those on the wrong side of it go, where they are worth little enough.
    """
    draws = SplitMix(s.random)
    draw = draws.bits()
    s.random = draws.state
    v, late = int(s.apart[((draw >> 32) * s.apart_size) >> 32]), bool(draw >> 12 & 1)
    most = _price(s, v) + (heat * int(s.escape[draw % len(s.escape)]) >> s.shift)
    heads = s.out[s.out_ptr[v] : s.out_ptr[v + 1]].tolist()
    tails = s.into[s.in_ptr[v] : s.in_ptr[v + 1]].tolist()
    near, far = (heads, tails) if late else (tails, heads)
    at, limit, loss = s.n, TOP if late else 0, 0
    for u in near:
        label = int(s.label[u])
        if label >= 0 and (label < limit if late else label > limit):
            at, limit = u, label
    gone = []
    for u in far:
        label = int(s.label[u])
        if label >= 0 and (label >= limit if late else label <= limit):
            gone.append(u)
            loss += _price(s, u)
    if loss > most:
        return
    if s.unsaved and loss >= _price(s, v):
        _save(s)
    _insert(s, v, int(s.before[at]) if late else at)
    for u in gone:
        _take_out(s, u)
    if s.cost < s.best:
        s.best, s.found_at, s.unsaved = s.cost, s.steps, 1


def anneal(s: Search, count: int) -> None:
    """`count` trials of a round."""
    for _ in range(count):
        if not s.apart_size:
            break
        s.steps += 1
        _trial(s, int(s.heats[s.at * s.levels // s.length]))
        s.at += 1
    if s.unsaved:
        _save(s)


def load(s: Search, order: np.ndarray) -> None:
    """The order of some nodes, without backward arcs; all others are outside it."""
    s.label[:] = -1
    link_all(s, order)
    apart = np.flatnonzero(s.label[: s.n] < 0)
    s.apart[: len(apart)] = apart
    s.place[apart] = np.arange(len(apart))
    s.apart_size = len(apart)
    s.cost = sum(_price(s, v) for v in apart.tolist())


def order_without(s: Search, chosen: np.ndarray) -> np.ndarray:
    """[k] int32, the nodes outside a set [n] uint8 without backward arcs; fewer where these have a cycle."""
    left = chosen == 0
    tails = np.repeat(np.arange(s.n), np.diff(s.out_ptr))
    inside = left[tails] & left[s.out]
    degree = np.bincount(s.out[inside], minlength=s.n)
    order = np.flatnonzero(left & (degree == 0)).tolist()
    for v in order:
        for u in s.out[s.out_ptr[v] : s.out_ptr[v + 1]].tolist():
            if left[u]:
                degree[u] -= 1
                if not degree[u]:
                    order.append(u)
    return np.array(order, dtype=np.int32)
