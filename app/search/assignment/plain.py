"""The searches of assignment.c without the library: the same draws, numbers and order of the nodes.

`s` is a TabuSearch, or a WalkSearch, of app/search/assignment/search.py throughout.
"""

from typing import Any

import numpy as np

from app.search.annealing import DRAWS, anneal, passes
from app.search.set_plain import below, bits

Search = Any
LARGEST = (1 << 63) - 1


# ---- tabu search -------------------------------------------------------------------------------------------


def _gains(s: Search, i: int) -> np.ndarray:
    """[k] int64, what swapping the places of i and each node adds to the cost."""
    p, x = s.p.astype(np.int64), int(s.p[i])
    a, at = s.a, s.b[p][:, p]  # b as the nodes see it
    others = np.arange(s.n)
    rows = ((a[i] - a) * (at - at[i])).sum(axis=1)
    rows += a[:, i] * at[:, i] + a[i] * at[i]
    if s.symmetric:
        total = 2 * rows
    else:
        columns = ((a[:, [i]] - a) * (at - at[:, [i]])).sum(axis=0)
        columns += a[i] * at[i] + a[:, i] * at[:, i]
        total = rows + columns + (a[i] - a[:, i]) * (at[:, i] - at[i])
    linear = s.linear
    return total + linear[i, p] - linear[i, x] + linear[others, x] - linear[others, p]


def load(s: Search) -> None:
    """The cost of the places, the table, and no node barred from anywhere."""
    p = s.p.astype(np.int64)
    cost = int((s.a * s.b[p][:, p]).sum()) + int(s.linear[np.arange(s.n), p].sum())
    s.cost, s.free_at[:] = cost, 0
    for i in range(s.n):
        s.delta[i, i + 1 :] = _gains(s, i)[i + 1 :]
    s.phase_best, s.phase_p[:], s.phase_end = cost, s.p, s.steps + s.span
    if cost < s.best:
        s.best, s.found_at, s.best_p[:] = cost, s.steps, s.p


def _swap(s: Search, r: int, t: int) -> None:
    """Swap the places of r < t, and follow it in the table."""
    s.cost += int(s.delta[r, t])
    s.p[[r, t]] = s.p[[t, r]]
    p = s.p.astype(np.int64)
    pairs = [(s.a[:, r] - s.a[:, t], s.b[p, p[r]] - s.b[p, p[t]], 2 if s.symmetric else 1)]
    if not s.symmetric:
        pairs.append((s.a[r] - s.a[t], s.b[p[r], p] - s.b[p[t], p], 1))
    for a, b, times in pairs:
        s.delta += np.triu(times * (a[:, None] - a[None]) * (b[None] - b[:, None]), 1)
    for v in (r, t):
        gains = _gains(s, v)
        s.delta[:v, v], s.delta[v, v + 1 :] = gains[:v], gains[v + 1 :]


def _enter(s: Search) -> None:
    """Put the best of a phase among the elites."""
    for e in range(s.filled):
        if s.pool_cost[e] == s.phase_best and (s.pool[e] == s.phase_p).all():
            return
    at = s.filled
    if s.filled < s.elites:
        s.filled += 1
    else:
        at = int(s.pool_cost.argmax())
        if s.pool_cost[at] <= s.phase_best:
            return
    s.pool_cost[at], s.pool[at] = s.phase_best, s.phase_p


def _shake(s: Search, count: int) -> None:
    for _ in range(count):
        r, t = below(s, s.n), below(s, s.n)
        s.p[[r, t]] = s.p[[t, r]]


def _cross(s: Search, one: np.ndarray, other: np.ndarray) -> None:
    """The places of two elites, crossed."""
    used = np.zeros(s.n, dtype=bool)
    s.p[:] = np.where(one == other, one, -1)
    used[s.p[s.p >= 0]] = True
    for i in np.flatnonzero(one != other).tolist():
        pair = (int(one[i]), int(other[i])) if bits(s) >> 63 else (int(other[i]), int(one[i]))
        to = next((x for x in pair if not used[x]), -1)
        s.p[i] = to
        if to >= 0:
            used[to] = True
    spare = np.flatnonzero(~used).tolist()
    for i in np.flatnonzero(s.p < 0).tolist():
        at = below(s, len(spare))
        s.p[i] = spare[at]
        spare[at] = spare[-1]
        spare.pop()


def _next_phase(s: Search) -> None:
    """Where the next phase begins."""
    _enter(s)
    s.p[:] = s.best_p
    if not bits(s) >> 61:
        _shake(s, 2 * s.n)
    elif s.filled == s.elites:
        e, f = below(s, s.elites), below(s, s.elites - 1)
        one, other = s.pool[e].copy(), s.pool[f + (f >= e)].copy()
        _cross(s, one, other)
        if (s.p == one).all() or (s.p == other).all():
            _shake(s, s.shake)
    else:
        _shake(s, s.shake * (1 + below(s, 4)))
    load(s)


def _move(s: Search) -> None:
    """One swap: the best of those that are free, or better than all of the phase."""
    n, p = s.n, s.p.astype(np.int64)
    there = s.free_at[:, p] > s.steps  # [i, j]: i is barred from the place of j
    barred = there & there.T & (s.cost + s.delta >= s.phase_best)
    open_ = np.triu(~barred, 1)
    if not open_.any():
        return
    r, t = divmod(int(np.where(open_, s.delta, LARGEST).argmin()), n)
    for v in (r, t):
        s.free_at[v, p[v]] = s.steps + s.low + below(s, s.width)
    _swap(s, r, t)
    if s.cost >= s.phase_best:
        return
    s.phase_best, s.phase_p[:], s.phase_end = s.cost, s.p, s.steps + s.span
    if s.cost < s.best:
        s.best, s.found_at, s.best_p[:] = s.cost, s.steps, s.p


def run(s: Search, steps: int) -> None:
    """So many swaps."""
    for _ in range(steps):
        s.steps += 1
        _move(s)
        if s.steps >= s.phase_end:
            _next_phase(s)


# ---- annealing ---------------------------------------------------------------------------------------------


def _row(s: Search, name: str, i: int) -> dict[int, int]:
    ptr = getattr(s, f"{name}_ptr")
    part = slice(ptr[i], ptr[i + 1])
    return dict(zip(getattr(s, f"{name}_near")[part].tolist(), getattr(s, f"{name}_data")[part].tolist()))


def _by_rows(s: Search, a: str, b: str, r: int, t: int, pair: bool) -> int:
    """What swapping the places of r and t adds, by rows of a and b; pair: with what they have together."""
    x, y = int(s.p[r]), int(s.p[t])
    at_x, at_y = _row(s, b, x), _row(s, b, y)
    turned, total = (at_y.get(x, 0) - at_x.get(y, 0) if pair else 0), 0
    for v, other, sign in ((r, t, 1), (t, r, -1)):
        for u, weight in _row(s, a, v).items():
            z = int(s.p[u])
            total += sign * weight * (turned if u == other else at_y.get(z, 0) - at_x.get(z, 0))
    return total


def _change(s: Search, r: int, t: int) -> int:
    """What swapping the places of r and t adds to the cost."""
    total = _by_rows(s, "a", "b", r, t, not s.symmetric)
    total = 2 * total if s.symmetric else total + _by_rows(s, "at", "bt", r, t, False)
    x, y = int(s.p[r]), int(s.p[t])
    for v, sign in ((r, 1), (t, -1)):
        row = _row(s, "linear", v)
        total += sign * (row.get(y, 0) - row.get(x, 0))
    return total


def _guided(s: Search, r: int) -> int:
    """The node at a place that is next to that of a neighbour of r; -1: there is none."""
    first, end = int(s.a_ptr[r]), int(s.a_ptr[r + 1])
    if first == end:
        return -1
    z = int(s.p[s.a_near[first + below(s, end - first)]])
    first, end = int(s.bt_ptr[z]), int(s.bt_ptr[z + 1])
    return int(s.q[s.bt_near[first + below(s, end - first)]]) if first < end else -1


def _propose(s: Search, coldness: int) -> None:
    draw = bits(s)
    r = (draw >> 32) * s.n >> 32
    t = _guided(s, r) if draw >> 12 & 3 else -1
    t = below(s, s.n) if t < 0 else t
    if t == r:
        return
    loss = _change(s, r, t)
    if loss > 0:
        if not passes(s, loss, coldness, draw % DRAWS):
            return
        _keep(s)
    s.p[[r, t]] = s.p[[t, r]]
    s.q[s.p[r]], s.q[s.p[t]] = r, t
    s.cost += loss


def _keep(s: Search) -> None:
    if s.cost < s.best:
        s.best, s.found_at, s.best_p[:] = s.cost, s.steps, s.p


def _go_back(s: Search) -> None:
    s.p[:], s.cost = s.best_p, s.best
    s.q[s.p] = np.arange(s.n, dtype=np.int32)


def anneal_places(s: Search, steps: int) -> None:
    """So many steps of 32 proposals."""
    anneal(s, steps, _propose, _go_back, _keep)
