"""The functions of facility_moves.h without the library: the same draws, moves and numbers.

`s` is an app.search.facility.tableless.TablelessSearch throughout, `how` the module of its kind, which has
`move`, `saved_by`, `served`, `place_at` and `look_near`.
"""

from typing import Any

import numpy as np

from app.rng import SplitMix
from app.search.facility.open_list import save_open

SPREAD, MORE = 2, 8  # of a shake's width

Search = Any


def _cheapest_out(s: Search, number: int) -> tuple[int, int]:
    inside = s.inside[: s.size]
    fits = (s.forced[inside] == 0) & (s.stamp[inside] != number)
    if not fits.any():
        return -1, 0
    net = s.opening[inside] - s.loss[: s.size] + s.extra[: s.size]
    a = int(np.where(fits, net, np.iinfo(np.int64).min).argmax())
    return int(inside[a]), int(net[a])


def _best_move(s: Search, how: Any, f: int) -> tuple[int, int, int]:
    best, out, in_ = 0, -1, -1
    if s.slot[f] < 0:
        gain = how.saved_by(s, f)
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


def _made(s: Search, how: Any, out: int, in_: int) -> None:
    how.move(s, out, in_)
    s.journal[2 * s.noted : 2 * s.noted + 2] = out, in_
    s.noted += 1
    if s.value < s.best:
        s.best = s.base = s.value
        s.found_at, s.noted = s.steps, 0
        save_open(s)


# ---- the search --------------------------------------------------------------------------------------------


def _closed_from(s: Search, how: Any, at: int) -> int:
    window = how.place_at(s, (at + np.arange(s.width)) % s.width)
    closed = s.slot[window] < 0
    return int(window[closed.argmax()]) if closed.any() else -1


def _shake(s: Search, how: Any, draws: SplitMix) -> None:
    kind = (0 if s.size < s.most else 2) if s.counted else draws.below(3)
    in_, out = _closed_from(s, how, draws.below(s.width)), -1
    if in_ < 0 or (kind == 0 and s.size == s.most):
        return
    if kind:
        s.extra[:] = 0
        if kind == 2:
            how.saved_by(s, in_)
        out = _cheapest_out(s, s.shakes)[0]
        if out < 0 or (kind == 1 and s.size < 2):
            return
        if kind == 1:
            in_ = -1
    if in_ >= 0:
        s.stamp[in_] = s.shakes
    _made(s, how, out, in_)


def _turn(s: Search, how: Any, draws: SplitMix) -> None:
    if s.value <= s.base:
        s.base, s.noted = s.value, 0
    while s.noted:
        s.noted -= 1
        out, in_ = s.journal[2 * s.noted : 2 * s.noted + 2].tolist()
        how.move(s, in_, out)
    s.shakes += 1
    u = draws.below(s.n)
    if s.radius:
        left = np.roll(how.served(s), -u)
        u = (u + int(left.argmax())) % s.n
    s.shaking = 1 + draws.below(s.strongest)
    if s.radius and draws.bits() & 1:
        s.shaking = 0
    s.width = min((SPREAD + s.shaking) * (s.m // s.size) + MORE, s.m)
    how.look_near(s, u)
    s.at, s.left = 0, s.width


def run(s: Search, how: Any, steps: int) -> None:
    """So many places that are looked at, or moves of shakes."""
    draws = SplitMix(s.random)
    for _ in range(steps):
        if s.radius and not s.best:
            break
        s.steps += 1
        if s.shaking:
            s.shaking -= 1
            _shake(s, how, draws)
            continue
        if not s.left or s.noted + s.strongest >= s.room:
            _turn(s, how, draws)
            continue
        at = s.at * s.stride % s.m if s.width == s.m else s.at
        f = int(how.place_at(s, at))
        s.at = s.at + 1 if s.at + 1 < s.width else 0
        s.left -= 1
        gain, out, in_ = _best_move(s, how, f)
        if gain > 0:
            _made(s, how, out, in_)
            s.left = s.width
    s.random = draws.state
