"""The functions of facility.c without the library: the same draws, moves and numbers.

`s` is an app.search.facility.search.FacilitySearch throughout.
"""

from typing import Any

import numpy as np

from app.rng import SplitMix
from app.search.facility.open_list import load_open, relist, save_open

LOCAL, SPREAD, MORE = 3, 2, 4  # a shake is anywhere where these bits of a draw are 0; its width

Search = Any


# ---- facilities open and close -----------------------------------------------------------------------------


def _contribute(s: Search, u: int, sign: int) -> None:
    a, d1, d2 = int(s.slot[s.first[u]]), int(s.d1[u]), int(s.d2[u])
    s.loss[a] += sign * (d2 - d1)
    count = int(np.searchsorted(s.ordered[u], d2))
    near, costs = s.near[u, :count], s.ordered[u, :count]
    s.gain[near] += sign * np.maximum(d1 - costs, 0)
    s.extra[near, a] += sign * (d2 - np.maximum(costs, d1))


def _locate(s: Search, u: int) -> None:
    open_ = np.flatnonzero(s.slot[s.near[u]] >= 0)[:2]
    s.first[u], s.d1[u] = s.near[u, open_[0]], s.ordered[u, open_[0]]
    s.second[u], s.d2[u] = -1, s.far
    if len(open_) > 1:
        s.second[u], s.d2[u] = s.near[u, open_[1]], s.ordered[u, open_[1]]


def _move(s: Search, out: int, in_: int) -> None:
    hit = np.zeros(s.n, dtype=bool)
    if out >= 0:
        hit |= (s.first == out) | (s.second == out)
    if in_ >= 0:
        hit |= s.cost[in_] < s.d2
    touched = np.flatnonzero(hit).tolist()
    for u in touched:
        _contribute(s, u, -1)
        s.value -= int(s.d1[u])
    a, last = relist(s, out, in_), s.size
    if in_ < 0 and a != last:
        s.extra[:, a], s.loss[a] = s.extra[:, last], s.loss[last]
        s.extra[:, last], s.loss[last] = 0, 0
    for u in touched:
        _locate(s, u)
        s.value += int(s.d1[u])
        _contribute(s, u, 1)


# ---- moves -------------------------------------------------------------------------------------------------


def _best_move(s: Search) -> tuple[int, int, int]:
    """The gain of the best move, what closes, what opens."""
    inside, best, out, in_ = s.inside[: s.size], 0, -1, -1
    free = s.forced[inside] == 0
    net = np.where(free, s.opening[inside] - s.loss[: s.size], -s.far)
    if s.size > 1 and free.any():
        a = int(np.where(free, net, np.iinfo(np.int64).min).argmax())
        best, out = (int(net[a]), int(inside[a])) if net[a] > 0 else (0, -1)
    dearest = int(s.opening[inside[free]].max(initial=0))
    for f in np.flatnonzero(s.slot < 0).tolist():
        gain = int(s.gain[f] - s.opening[f])
        if gain + dearest <= best:
            continue
        if s.size < s.most and gain > best:
            best, out, in_ = gain, -1, f
        here = np.where(free, gain + s.extra[f, : s.size] + net, np.iinfo(np.int64).min)
        a = int(here.argmax())
        if here[a] > best:
            best, out, in_ = int(here[a]), int(inside[a]), f
    return best, out, in_


def _go_back(s: Search) -> None:
    best = s.best_open != 0
    ins, outs = np.flatnonzero(best & (s.slot < 0)).tolist(), np.flatnonzero(~best & (s.slot >= 0)).tolist()
    for i in range(max(len(ins), len(outs))):
        _move(s, outs[i] if i < len(outs) else -1, ins[i] if i < len(ins) else -1)


def _in_order(s: Search, near: np.ndarray | None, at: int) -> np.ndarray:
    every = np.arange(s.m) if near is None else near
    return np.roll(every, -at)


def _first(nodes: np.ndarray, fits: np.ndarray) -> int:
    return int(nodes[fits.argmax()]) if fits.any() else -1


def _closed_from(s: Search, near: np.ndarray | None, at: int) -> int:
    nodes = _in_order(s, near, at)
    return _first(nodes, s.slot[nodes] < 0)


def _open_from(s: Search, near: np.ndarray | None, at: int) -> int:
    nodes = _in_order(s, near, at)
    return _first(nodes, (s.slot[nodes] >= 0) & (s.forced[nodes] == 0) & (s.stamp[nodes] != s.shakes))


def _cheapest_out(s: Search, in_: int) -> int:
    inside = s.inside[: s.size]
    fits = (s.forced[inside] == 0) & (s.stamp[inside] != s.shakes)
    if not fits.any():
        return -1
    here = s.opening[inside] - s.loss[: s.size] + s.extra[in_, : s.size]
    return int(inside[np.where(fits, here, np.iinfo(np.int64).min).argmax()])


def _shake(s: Search, draws: SplitMix) -> None:
    draw = draws.bits()
    near = None if s.around < 0 else s.near[s.around]
    width = s.m if near is None else s.width
    kind = (0 if s.size < s.most else 2) if s.counted else draws.below(3)
    in_ = out = -1
    if kind != 1 and (s.size < s.most or kind == 2):
        in_ = _closed_from(s, near, draws.below(width))
    if kind == 2 and in_ >= 0 and draw & 1:
        out = _cheapest_out(s, in_)
    elif kind != 0:
        out = _open_from(s, near, draws.below(width))
    if (kind == 2 and (in_ < 0 or out < 0)) or (in_ < 0 and (out < 0 or s.size < 2)):
        return
    if in_ >= 0:
        s.stamp[in_] = s.shakes
    _move(s, out, in_)


def _note(s: Search) -> None:
    if s.value < s.best:
        s.best, s.found_at = s.value, s.steps
        save_open(s)


def run(s: Search, steps: int) -> None:
    """So many moves."""
    draws = SplitMix(s.random)
    for _ in range(steps):
        s.steps += 1
        if s.shaking:
            s.shaking -= 1
            _shake(s, draws)
            _note(s)
            continue
        gain, out, in_ = _best_move(s)
        if gain > 0:
            _move(s, out, in_)
            _note(s)
            continue
        if s.value == s.best:
            save_open(s)
        else:
            _go_back(s)
        s.shakes += 1
        s.shaking = 1 + draws.below(s.strongest)
        s.around = draws.below(s.n) if draws.bits() & LOCAL else -1
        s.width = min(SPREAD * s.shaking * (s.m // s.size) + MORE, s.m)
    s.random = draws.state


def load(s: Search) -> None:
    """From nothing to the open facilities of the best solution."""
    s.gain[:], s.loss[:], s.extra[:] = 0, 0, 0
    load_open(s)
    s.value = int(s.opening[s.inside[: s.size]].sum())
    for u in range(s.n):
        _locate(s, u)
        s.value += int(s.d1[u])
        _contribute(s, u, 1)
