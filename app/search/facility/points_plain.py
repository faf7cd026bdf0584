"""The functions of facility_points.c without the library: the same draws, moves and numbers.

`s` is an app.search.facility.points.PointSearch throughout. Lists of customers (head, next, prev) are told by
`first` here.
"""

from typing import Any

import numpy as np

from app.search.facility.open_list import load_open, relist

SLACK = 4  # more than rounding takes from a triangle's sides

Search = Any


# ---- customers and their facilities ------------------------------------------------------------------------


def _costs(s: Search, away: np.ndarray) -> np.ndarray:
    return s.sites.costs(away)


def _sum_up(s: Search) -> None:
    """value, loss and reach of what is open."""
    before, after = _costs(s, s.d1), _costs(s, s.d2)
    s.value = int(before.sum()) + int(s.opening[s.inside[: s.size]].sum())
    at = s.slot[s.first]
    s.loss[: s.size] = s.reach[: s.size] = 0
    np.add.at(s.loss, at, after - before)
    np.maximum.at(s.reach, at, s.d1 + s.d2 + SLACK)


def _locate(s: Search, customers: np.ndarray) -> None:
    open_ = np.sort(s.inside[: s.size])
    away = s.sites.away(open_[:, None], customers[None, :])
    order = np.argsort(away, axis=0, kind="stable")[:2]
    every = np.arange(len(customers))
    s.first[customers], s.d1[customers] = open_[order[0]], away[order[0], every]
    s.second[customers], s.d2[customers] = s.m, s.never
    if s.size > 1:
        s.second[customers], s.d2[customers] = open_[order[1]], away[order[1], every]


def _offer(s: Search, customers: np.ndarray, f: int) -> None:
    away = s.sites.away(np.int64(f), customers)
    for u, here in zip(customers.tolist(), away.tolist()):
        if (here, f) < (s.d1[u], s.first[u]):
            s.second[u], s.d2[u], s.first[u], s.d1[u] = s.first[u], s.d1[u], f, here
        elif (here, f) < (s.d2[u], s.second[u]):
            s.second[u], s.d2[u] = f, here


# ---- moves -------------------------------------------------------------------------------------------------


def move(s: Search, out: int, in_: int) -> None:
    """Close one, open one; -1: none."""
    every = np.arange(s.n)
    lost = (s.first == out) | (s.second == out) if out >= 0 else np.zeros(s.n, dtype=bool)
    nearer = (s.sites.away(np.int64(in_), every) < s.d2) & ~lost if in_ >= 0 else np.zeros(s.n, dtype=bool)
    relist(s, out, in_)
    _locate(s, np.flatnonzero(lost))
    if in_ >= 0:
        _offer(s, np.flatnonzero(nearer), in_)
    _sum_up(s)


def saved_by(s: Search, f: int) -> int:
    """What opening a place saves, and in `extra` how much less closing a facility costs then."""
    away = s.sites.away(np.int64(f), np.arange(s.n))
    hit = away < s.d2
    before, here, after = _costs(s, s.d1), _costs(s, away), _costs(s, s.d2)
    nearer = away < s.d1
    s.extra[:] = 0
    np.add.at(s.extra, s.slot[s.first[hit]], (after - np.where(nearer, before, here))[hit])
    return int((before - here)[nearer].sum()) - int(s.opening[f])


def place_at(s: Search, k: np.ndarray | int) -> np.ndarray | int:
    """Places of the window."""
    return (s.begin + k) % s.m


def served(s: Search) -> np.ndarray:
    """[n] int64, what customers cost."""
    return _costs(s, s.d1)


def look_near(s: Search, u: int) -> None:
    """The window is around the place beside a customer."""
    s.begin = (int(s.beside[u]) + s.m - s.width // 2) % s.m


def load(s: Search) -> None:
    """From nothing to the open facilities of the best solution."""
    load_open(s)
    _locate(s, np.arange(s.n))
    _sum_up(s)
