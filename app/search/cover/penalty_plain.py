"""The functions of cover_penalty.c without the library: the same choices, numbers and order of the list.

`s` is an app.search.cover.penalty.PenaltySearch throughout.
"""

from typing import Any

import numpy as np

from app.rng import SplitMix

BLOCK, NONE = 64, 0xFFFF
RANDOM, PENALTY, DEGREE = range(3)
LENGTH = (50, 50, 100)  # iterations of each phase

Search = Any


# ---- passes over the nodes ---------------------------------------------------------------------------------


def update(s: Search, into: int, out: int) -> None:
    """Conflicts after `into` entered and `out` left (n: none), and the least costs."""
    s.conflicts += s.near[into]
    s.conflicts -= s.near[out]
    s.free_cost = int(s.cost[s.conflicts == 0].min(initial=NONE))
    s.swap_cost = int(s.cost[s.conflicts == 1].min(initial=NONE))


def _below(s: Search, bound: int) -> int:
    draws = SplitMix(s.random)
    value = draws.below(bound)
    s.random = draws.state
    return value


def _pick(s: Search, conflicts: int, cost: int) -> int:
    """A random one of the nodes with so many conflicts and this cost."""
    nodes = np.flatnonzero((s.conflicts == conflicts) & (s.cost == cost))
    return int(nodes[_below(s, len(nodes))])


def reset_costs(s: Search) -> None:
    """All nodes outside the set may enter again, at the costs of the phase."""
    s.cost[: s.n] = (0, s.penalty[: s.n], s.rank[: s.n])[s.phase]
    s.cost[s.members[: s.size]] = NONE


# ---- the set -----------------------------------------------------------------------------------------------


def _worth(s: Search, v: int) -> int:
    return 1 if s.node_weight is None else int(s.node_weight[v])


def _enlist(s: Search, v: int) -> None:
    s.member_at[v] = s.size
    s.members[s.size] = v
    s.size += 1
    s.value += _worth(s, v)
    s.cost[v] = NONE
    s.last = v


def _strike(s: Search, v: int) -> None:
    s.size -= 1
    last, at = s.members[s.size], s.member_at[v]
    s.members[at] = last
    s.member_at[last] = at
    s.member_at[v] = -1
    s.value -= _worth(s, v)
    s.cost[v] = NONE


def keep_best(s: Search) -> None:
    """Save the set if none of its weight was found before."""
    if s.value <= s.best:
        return
    s.best, s.found_at = s.value, s.steps
    s.best_set[:] = 0
    s.best_set[s.members[: s.size]] = 1


# ---- steps -------------------------------------------------------------------------------------------------


def _enter(s: Search) -> None:
    v = _pick(s, 0, s.free_cost)
    _enlist(s, v)
    update(s, v, s.n)


def _swap(s: Search) -> None:
    v = _pick(s, 1, s.swap_cost)
    members = s.members[: s.size]
    if s.overlap < 0:
        s.anchor[members] = s.iteration
        s.overlap = s.size
    out = int(members[np.flatnonzero(s.near[v, members])[0]])
    s.overlap -= int(s.anchor[out] == s.iteration)
    _strike(s, out)
    _enlist(s, v)
    s.overlap += int(s.anchor[v] == s.iteration)
    update(s, v, out)


def _penalise(s: Search) -> None:
    """Penalties of the set grow; all fall when `delay` iterations have passed, and the delay adapts."""
    members = s.members[: s.size]
    s.penalty[members] += s.penalty[members] < NONE - 1
    s.cycle += 1
    if s.cycle < s.delay:
        return
    s.cycle = 0
    s.penalty -= s.penalty > 0
    if 4 * int((s.penalty > 0).sum()) < 3 * s.n:
        s.delay += 1
    elif s.delay > 1:
        s.delay -= 1


def _reduce(s: Search) -> None:
    """Only the last node stays."""
    v = s.last
    while s.size:
        _strike(s, int(s.members[s.size - 1]))
    s.conflicts[:] = 0
    _enlist(s, v)


def _disturb(s: Search) -> int:
    """A random node enters, its neighbours leave; returns the node, n if it was in the set."""
    v = _below(s, s.n)
    if s.member_at[v] >= 0:
        return s.n
    for i in range(s.size - 1, -1, -1):
        out = int(s.members[i])
        if s.near[v, out]:
            _strike(s, out)
            update(s, s.n, out)
    _enlist(s, v)
    return v


def _next_iteration(s: Search) -> None:
    """The end of an iteration: penalties, the next phase when its turn has come, a new set to go on from."""
    reducing = s.phase == PENALTY and s.delay > 1 and s.size > 0
    if s.phase == PENALTY:
        _penalise(s)
    if reducing:
        into = s.last
        _reduce(s)
    else:
        into = _disturb(s)
    s.left -= 1
    if s.left == 0:
        s.phase = (s.phase + 1) % len(LENGTH)
        s.left = LENGTH[s.phase]
    s.iteration += 1
    s.overlap = -1
    reset_costs(s)
    update(s, into, s.n)


def run(s: Search, steps: int) -> None:
    """So many steps."""
    for _ in range(steps):
        s.steps += 1
        if s.free_cost != NONE:
            _enter(s)
        elif s.swap_cost != NONE and s.overlap != 0:
            _swap(s)
        else:
            _next_iteration(s)
        keep_best(s)
