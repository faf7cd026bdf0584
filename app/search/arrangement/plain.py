"""The search of arrangement.c without the library: the same choices and numbers.

`s` is an app.search.arrangement.search.ArrangementSearch throughout, or has the same arrays. The best order
is copied where it is found; the kernel keeps the moves that lead to it.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from app.rng import SplitMix

CUT, FRONT, SPAN = range(3)
WINDOW, EVERY, NEAR_MOVE, REACH, MOST_DOUBLED = 8, 128, 8, 512, 32

Search = Any


def _penalty(s: Search, x: int) -> int:
    return max(x - s.soft, 0) if s.largest else x


def _mark(s: Search, i: int, wanted: bool) -> None:
    """Put i among what is critical, or take it out."""
    at = int(s.where[i])
    if wanted == (at >= 0):
        return
    if wanted:
        s.where[i] = s.criticals
        s.critical[s.criticals] = i
        s.criticals += 1
        return
    s.criticals -= 1
    last = int(s.critical[s.criticals])
    s.critical[at], s.where[last] = last, at
    s.where[i] = -1


def _near(s: Search, v: int) -> list[int]:
    return s.near[s.ptr[v] : s.ptr[v + 1]].tolist()


def _weights(s: Search, v: int) -> Iterable[tuple[int, int]]:
    return zip(_near(s, v), s.weight[s.ptr[v] : s.ptr[v + 1]].tolist())


def _span(s: Search, v: int) -> int:
    p = int(s.place[v])
    return max((abs(p - int(s.place[x])) for x in _near(s, v)), default=0)


# ---- the state from its order ------------------------------------------------------------------------------


def _gaps(s: Search) -> None:
    now = 0
    steps = [0] * (s.n + 1)
    for g in range(s.n):
        v = int(s.at[g])
        if s.gap == CUT:
            now += sum(w if s.place[x] > g else -w for x, w in _weights(s, v))
            s.value[g] = now
        else:
            steps[g] += 1
            steps[max([g, *(int(s.place[x]) for x in _near(s, v))])] -= 1
    if s.gap == FRONT:
        s.value[:] = np.cumsum(steps[: s.n])


def _weigh(s: Search) -> None:
    s.cost = s.criticals = 0
    s.soft = s.limit - (s.limit * int(s.shares[s.round & 3]) >> 8)
    s.where[:] = -1
    for i in range(s.n):
        if s.gap == SPAN:
            ahead = (int(s.place[x]) - int(s.place[i]) for x in _near(s, i))
            s.cost += sum(_penalty(s, d) for d in ahead if d > 0)
            if _span(s, i) > s.limit:
                _mark(s, i, True)
        else:
            s.cost += _penalty(s, int(s.value[i]))
            if s.largest and s.value[i] > s.limit:
                _mark(s, i, True)


def _largest(s: Search) -> int:
    return max(_span(s, v) for v in range(s.n)) if s.gap == SPAN else int(s.value.max())


def load(s: Search) -> None:
    """The state is that of `at`."""
    s.place[s.at] = np.arange(s.n)
    if s.gap != SPAN:
        _gaps(s)
    _weigh(s)


def _judge(s: Search) -> None:
    if not s.largest:
        if s.cost < s.best:
            s.best, s.found_at = s.cost, s.steps
            s.best_order[:] = s.at
        return
    while not s.criticals and s.best > 0:
        s.best, s.found_at = _largest(s), s.steps
        s.limit = s.best - 1
        s.best_order[:] = s.at
        _weigh(s)


# ---- moves -------------------------------------------------------------------------------------------------


def _last_but(s: Search, x: int, v: int) -> int:
    return max([int(s.place[x]), *(int(s.place[u]) for u in _near(s, x) if u != v)])


def _foresee(s: Search, v: int, i: int, j: int) -> list[int]:
    """What the gaps from min(i, j) on are worth where v goes from place i to j."""
    first, end = min(i, j), max(i, j)
    steps = [0] * (end - first)

    def begin(g: int, amount: int) -> None:
        if max(g, first) < end:
            steps[max(g, first) - first] += amount

    if s.gap == CUT:
        now = (-1 if i < j else 1) * sum(w for _, w in _weights(s, v))
        for x, w in _weights(s, v):
            begin(int(s.place[x]) + (-1 if i < j else 1), 2 * w if i < j else -2 * w)
    else:
        last = max((int(s.place[x]) for x in _near(s, v)), default=-1)
        for x in _near(s, v):
            if i < j and s.place[x] <= end:
                begin(_last_but(s, x, v) - 1, 1)
            elif i > j and s.place[x] < end:
                begin(_last_but(s, x, v) + 1, -1)
        now = (-1 if last > i + 1 else 0) if i < j else int(last >= first)
        if now:
            begin(last - 1 if i < j else last + 1, -now)
    fresh = []
    for k, change in enumerate(steps):
        beside = first + k + (1 if i < j else -1)
        now += change
        fresh.append((0 if beside < 0 else int(s.value[beside])) + now)
    return fresh


def _put(s: Search, i: int, j: int) -> None:
    v, first, end = int(s.at[i]), min(i, j), max(i, j)
    block = s.at[i + 1 : j + 1].copy() if i < j else s.at[j:i].copy()
    s.at[first : first + len(block)] = block
    if i > j:
        s.at[j + 1 : i + 1] = block
    s.at[j] = v
    s.place[s.at[first : end + 1]] = np.arange(first, end + 1)


def _set_value(s: Search, g: int, value: int) -> None:
    s.cost += _penalty(s, value) - _penalty(s, int(s.value[g]))
    s.value[g] = value
    if s.largest:
        _mark(s, g, value > s.limit)


def _slack(s: Search, draws: SplitMix) -> int:
    cool = ((s.turns - s.turn) << 10) // s.turns
    draw = int(s.escape[draws.bits() % len(s.escape)])
    return ((int(s.heats[s.round & 3]) * cool * cool) >> 20) * draw >> 24


def _insert(s: Search, v: int, j: int, draws: SplitMix) -> None:
    i = int(s.place[v])
    first, fresh = min(i, j), _foresee(s, v, i, j)
    change = least = stop = 0
    way = [i + k if i < j else i - 1 - k for k in range(abs(i - j))]
    for k, g in enumerate(way):
        change += _penalty(s, fresh[g - first]) - _penalty(s, int(s.value[g]))
        if change < least:
            least, stop = change, k + 1
    if not stop:
        if change > _slack(s, draws):
            return
        stop = len(way)
    for g in way[:stop]:
        _set_value(s, g, fresh[g - first])
    _put(s, i, i + stop if i < j else i - stop)
    _judge(s)


def _swap(s: Search, v: int, j: int, draws: SplitMix) -> None:
    i, u = int(s.place[v]), int(s.at[j])
    change = 0
    for own, other, from_, to in ((v, u, i, j), (u, v, j, i)):
        for x in _near(s, own):
            if x != other:
                p = int(s.place[x])
                change += _penalty(s, abs(p - to)) - _penalty(s, abs(p - from_))
    if change > 0 and change > _slack(s, draws):
        return
    s.cost += change
    s.at[i], s.at[j], s.place[u], s.place[v] = u, v, i, j
    for own in (v, u):
        for x in (own, *_near(s, own)):
            _mark(s, x, _span(s, x) > s.limit)
    _judge(s)


def _worth_of_sets(s: Search, first: int, end: int, node: list[int]) -> list[int]:
    """What the gap is worth behind the places before a window and some of its nodes, as bits."""
    k, all_ = end - first, 1 << (end - first)
    base = int(s.value[first - 1]) if first else 0
    number = {v: a for a, v in enumerate(node)}
    worth = [base] * all_
    if s.gap == CUT:
        own = [sum(-w if s.place[x] < first else w for x, w in _weights(s, v)) for v in node]
        inner = [{number[x]: w for x, w in _weights(s, v) if x in number} for v in node]
        for some in range(1, all_):
            low = (some & -some).bit_length() - 1
            rest = some & (some - 1)
            inside = sum(w for b, w in inner[low].items() if rest >> b & 1)
            worth[some] = worth[rest] + own[low] - 2 * inside
        return worth
    ahead = {x for v in node for x in _near(s, v) if s.place[x] < first}
    closed = []  # of nodes before the window without neighbours behind it: those within it
    for x in ahead:
        places = [int(s.place[u]) for u in _near(s, x)]
        if max(places) < end:
            closed.append(sum(1 << (p - first) for p in places if p >= first))
    near = [sum(1 << number[x] for x in _near(s, v) if x in number) for v in node]
    beyond = [any(s.place[x] >= end for x in _near(s, v)) for v in node]
    for some in range(all_):
        worth[some] -= sum(not seen & ~some for seen in closed)
        worth[some] += sum(bool(some >> a & 1 and (beyond[a] or near[a] & ~some)) for a in range(k))
    return worth


def _window(s: Search, draws: SplitMix) -> None:
    first = draws.below(s.n)
    end = min(int(s.high[s.at[first]]), first + WINDOW)
    k = end - first
    if k < 3:
        return
    node = s.at[first:end].tolist()
    worth = _worth_of_sets(s, first, end, node)
    least = [0] * (1 << k)
    for some in range(1, 1 << k):
        before = min(least[some ^ 1 << a] for a in range(k) if some >> a & 1)
        least[some] = before + _penalty(s, worth[some])
    some = (1 << k) - 1
    if least[some] >= sum(_penalty(s, x) for x in s.value[first:end].tolist()):
        return
    wanted = []
    for g in range(end - 1, first - 1, -1):
        own = _penalty(s, worth[some])
        a = next(a for a in range(k) if some >> a & 1 and least[some] == least[some ^ 1 << a] + own)
        wanted.append(node[a])
        _set_value(s, g, worth[some])
        some ^= 1 << a
    s.at[first:end] = wanted[::-1]
    s.place[s.at[first:end]] = np.arange(first, end)
    _judge(s)


# ---- steps -------------------------------------------------------------------------------------------------


def _clamped(j: int, low: int, high: int) -> int:
    return low if j < low else min(j, high)


def _beside(s: Search, v: int, draws: SplitMix) -> int:
    return int(s.place[s.near[s.ptr[v] + draws.below(int(s.ptr[v + 1] - s.ptr[v]))]])


def _aim(s: Search, v: int, way: int, draws: SplitMix) -> int:
    i = int(s.place[v])
    if way == 0:
        d = draws.below(2 * NEAR_MOVE)
        return i - 1 - d if d < NEAR_MOVE else i + 1 + d - NEAR_MOVE
    j = _beside(s, v, draws)
    if way == 1:
        j = (j + _beside(s, v, draws)) >> 1
    return j + draws.below(5) - 2


def _step_gap(s: Search, draws: SplitMix) -> None:
    draw = draws.bits()
    if s.largest and s.criticals and draw & 3:
        g = int(s.critical[draws.below(s.criticals)])
        u = s.at[g]
        d = draws.below(2 * NEAR_MOVE)
        p = g - d if d < NEAR_MOVE else g + 1 + d - NEAR_MOVE
        v = int(s.at[_clamped(p, int(s.low[u]), int(s.high[u]) - 1)])
    else:
        v = draws.below(s.n)
    i = int(s.place[v])
    j = _clamped(_aim(s, v, draw >> 2 & 3, draws), int(s.low[v]), int(s.high[v]) - 1)
    j = _clamped(j, i - REACH, i + REACH)
    if i != j:
        _insert(s, v, j, draws)


def _step_span(s: Search, draws: SplitMix) -> None:
    draw = draws.bits()
    v = int(s.critical[draws.below(s.criticals)]) if s.criticals and draw & 7 else draws.below(s.n)
    places = [int(s.place[x]) for x in _near(s, v)]
    first, last = min(places), max(places)
    from_, to = last - s.limit, first + s.limit
    if from_ <= to and draw >> 3 & 3:
        j = from_ + draws.below(to - from_ + 1)
    else:
        j = ((first + last) >> 1) + draws.below(2 * NEAR_MOVE + 1) - NEAR_MOVE
    j = _clamped(j, int(s.low[v]), int(s.high[v]) - 1)
    if j != s.place[v]:
        _swap(s, v, j, draws)


def _end_round(s: Search) -> None:
    s.at[:] = s.best_order
    s.turn = 0
    s.round += 1
    if s.round <= MOST_DOUBLED and not s.round & 3:
        s.turns *= 2
    load(s)


def run(s: Search, steps: int) -> None:
    """Make so many steps."""
    draws = SplitMix(s.random)
    for _ in range(steps):
        if s.best <= 0:
            break
        s.steps += 1
        if s.gap == SPAN:
            _step_span(s, draws)
        elif s.steps % EVERY == 0:
            _window(s, draws)
        else:
            _step_gap(s, draws)
        s.turn += 1
        if s.turn == s.turns:
            _end_round(s)
    s.random = draws.state
