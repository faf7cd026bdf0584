"""The functions of facility_points.c without the library: the same draws, moves and numbers.

`s` is an app.search.facility.points.PointSearch throughout. Lists of customers (head, next, prev) are told by
`first` here.
"""

from typing import Any

import numpy as np

from app.graphs.facility_points import NEVER
from app.rng import SplitMix

SPREAD, MORE, SLACK = 2, 8, 4  # of a shake's width; more than rounding takes from a triangle's sides

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
    s.second[customers], s.d2[customers] = s.m, NEVER
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


def _move(s: Search, out: int, in_: int) -> None:
    every = np.arange(s.n)
    lost = (s.first == out) | (s.second == out) if out >= 0 else np.zeros(s.n, dtype=bool)
    nearer = (s.sites.away(np.int64(in_), every) < s.d2) & ~lost if in_ >= 0 else np.zeros(s.n, dtype=bool)
    if out >= 0 and in_ >= 0:
        s.slot[in_] = s.slot[out]
        s.inside[s.slot[in_]] = in_
    elif in_ >= 0:
        s.slot[in_], s.inside[s.size] = s.size, in_
        s.size += 1
    else:
        s.size -= 1
        a = int(s.slot[out])
        s.inside[a] = s.inside[s.size]
        s.slot[s.inside[a]] = a
    if out >= 0:
        s.slot[out] = -1
    _locate(s, np.flatnonzero(lost))
    if in_ >= 0:
        _offer(s, np.flatnonzero(nearer), in_)
    _sum_up(s)


def _saved_by(s: Search, f: int) -> int:
    away = s.sites.away(np.int64(f), np.arange(s.n))
    hit = away < s.d2
    before, here, after = _costs(s, s.d1), _costs(s, away), _costs(s, s.d2)
    nearer = away < s.d1
    s.extra[:] = 0
    np.add.at(s.extra, s.slot[s.first[hit]], (after - np.where(nearer, before, here))[hit])
    return int((before - here)[nearer].sum()) - int(s.opening[f])


def _cheapest_out(s: Search, number: int) -> tuple[int, int]:
    inside = s.inside[: s.size]
    fits = (s.forced[inside] == 0) & (s.stamp[inside] != number)
    if not fits.any():
        return -1, 0
    net = s.opening[inside] - s.loss[: s.size] + s.extra[: s.size]
    a = int(np.where(fits, net, np.iinfo(np.int64).min).argmax())
    return int(inside[a]), int(net[a])


def _best_move(s: Search, f: int) -> tuple[int, int, int]:
    best, out, in_ = 0, -1, -1
    if s.slot[f] < 0:
        gain = _saved_by(s, f)
        if s.size < s.most and gain > best:
            best, in_ = gain, f
        other, net = _cheapest_out(s, -1)
        if other >= 0 and gain + net > best:
            best, out, in_ = gain + net, other, f
    s.extra[:] = 0
    if not s.counted and s.size > 1:
        other, net = _cheapest_out(s, -1)
        if other >= 0 and net > best:
            best, out, in_ = net, other, -1
    return best, out, in_


def _made(s: Search, out: int, in_: int) -> None:
    _move(s, out, in_)
    s.journal[2 * s.noted : 2 * s.noted + 2] = out, in_
    s.noted += 1
    if s.value < s.best:
        s.best = s.base = s.value
        s.found_at, s.noted = s.steps, 0
        s.best_open[:] = s.slot >= 0


# ---- the search --------------------------------------------------------------------------------------------


def _closed_from(s: Search, at: int) -> int:
    window = (s.begin + (at + np.arange(s.width)) % s.width) % s.m
    closed = s.slot[window] < 0
    return int(window[closed.argmax()]) if closed.any() else -1


def _shake(s: Search, draws: SplitMix) -> None:
    kind = (0 if s.size < s.most else 2) if s.counted else draws.below(3)
    in_, out = _closed_from(s, draws.below(s.width)), -1
    if in_ < 0 or (kind == 0 and s.size == s.most):
        return
    if kind:
        s.extra[:] = 0
        if kind == 2:
            _saved_by(s, in_)
        out = _cheapest_out(s, s.shakes)[0]
        if out < 0 or (kind == 1 and s.size < 2):
            return
        if kind == 1:
            in_ = -1
    if in_ >= 0:
        s.stamp[in_] = s.shakes
    _made(s, out, in_)


def _turn(s: Search, draws: SplitMix) -> None:
    if s.value <= s.base:
        s.base, s.noted = s.value, 0
    while s.noted:
        s.noted -= 1
        out, in_ = s.journal[2 * s.noted : 2 * s.noted + 2].tolist()
        _move(s, in_, out)
    s.shakes += 1
    u = draws.below(s.n)
    if s.radius:
        left = np.roll(_costs(s, s.d1), -u)
        u = (u + int(left.argmax())) % s.n
    s.shaking = 1 + draws.below(s.strongest)
    if s.radius and draws.bits() & 1:
        s.shaking = 0
    s.width = min((SPREAD + s.shaking) * (s.m // s.size) + MORE, s.m)
    s.begin = (int(s.beside[u]) + s.m - s.width // 2) % s.m
    s.at, s.left = 0, s.width


def run(s: Search, steps: int) -> None:
    """So many places that are looked at, or moves of shakes."""
    draws = SplitMix(s.random)
    for _ in range(steps):
        if s.radius and not s.best:
            break
        s.steps += 1
        if s.shaking:
            s.shaking -= 1
            _shake(s, draws)
            continue
        if not s.left or s.noted + s.strongest >= s.room:
            _turn(s, draws)
            continue
        at = s.at * s.stride % s.m if s.width == s.m else s.at
        f = (s.begin + at) % s.m
        s.at = s.at + 1 if s.at + 1 < s.width else 0
        s.left -= 1
        gain, out, in_ = _best_move(s, f)
        if gain > 0:
            _made(s, out, in_)
            s.left = s.width
    s.random = draws.state


def load(s: Search) -> None:
    """From nothing to the open facilities of the best solution."""
    open_ = np.flatnonzero(s.best_open)
    s.slot[:], s.size = -1, len(open_)
    s.slot[open_], s.inside[: s.size] = np.arange(s.size), open_
    _locate(s, np.arange(s.n))
    _sum_up(s)
