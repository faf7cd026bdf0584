"""The functions of cover_swap.c without the library: the same draws, numbers and order of the nodes.

`s` is an app.search.cover.swap.Swap throughout.
"""

from typing import Any

import numpy as np

from app.search.cover.independent_plain import (
    DRAW,
    bind,
    chosen,
    degree,
    enlist,
    keep_best,
    row,
    set_free,
    strike,
    take_up,
    weight_against,
    worth,
)  # fmt: skip
from app.search.set_plain import below, bits

WIDEST = 512  # nodes that a swap looks for pairs among
LOOKS = 8  # of them, whose partner is looked for
TRIES = 20  # draws for a node of few neighbours in the set
ELDEST = 4  # such nodes, of which the one enters that left first
TIGHT = 2  # few neighbours
ANY = 16  # once in so many steps, any node
MOST = 1 << 30

Search = Any


# ---- the set -----------------------------------------------------------------------------------------------


def _push(s: Search, v: int) -> None:
    if s.queued[v]:
        return
    s.queued[v] = 1
    s.queue[s.queue_size] = v
    s.queue_size += 1


def _record(s: Search, entry: int) -> None:
    """Write down a change, to be undone; more than n of them cannot be."""
    if s.journal_size < 0:
        return
    if s.journal_size == s.n:
        s.journal_size = -1
        return
    s.journal[s.journal_size] = entry
    s.journal_size += 1


def _join(s: Search, v: int) -> None:
    """A free node enters."""
    enlist(s, v)
    for u in row(s, v):
        s.owner[u] ^= v
        if s.tight[u] == 0:
            bind(s, u)
        s.tight[u] += 1
        if s.against is not None:
            s.against[u] += worth(s, v)


def _leave(s: Search, v: int, ask: bool) -> None:
    """A node of the set leaves, and is free. With `ask`, nodes that may do better now are queued."""
    strike(s, v)
    for u in row(s, v):
        s.owner[u] ^= v
        if s.against is not None:
            s.against[u] -= worth(s, v)
        s.tight[u] -= 1
        if s.tight[u] == 0:
            set_free(s, u)
        elif ask and s.tight[u] == 1:
            _push(s, int(s.owner[u]))
        if ask and s.against is not None and s.against[u] < worth(s, u):
            _push(s, u)


def _bring(s: Search, v: int) -> None:
    _join(s, v)
    _record(s, v)
    _push(s, v)


def _drop(s: Search, v: int) -> None:
    _leave(s, v, True)
    _record(s, ~v)
    s.since[v] = s.steps


def _force(s: Search, v: int) -> None:
    """A node from outside enters, its neighbours leave."""
    for u in row(s, v):
        if s.tight[v] == 0:
            break
        if chosen(s, u):
            _drop(s, u)
    _bring(s, v)


def _fill(s: Search) -> None:
    while s.free_size:
        _bring(s, int(s.order[s.size + below(s, s.free_size)]))


def _undo(s: Search) -> None:
    while s.journal_size > 0:
        s.journal_size -= 1
        entry = int(s.journal[s.journal_size])
        if entry >= 0:
            _leave(s, entry, False)
        else:
            _join(s, ~entry)


# ---- local search ------------------------------------------------------------------------------------------


def _partner(s: Search, x: int, v: int, candidates: list[int]) -> int:
    """A candidate that is no neighbour of v and outweighs x together with it, or -1."""
    near = set(row(s, v))
    s.work += degree(s, v) + len(candidates)
    first = below(s, len(candidates))
    for w in candidates[first:] + candidates[:first]:
        if w != v and w not in near and worth(s, v) + worth(s, w) > worth(s, x):
            return w
    return -1


def _swap(s: Search, x: int) -> bool:
    """Two nodes whose only neighbour in the set is x enter for it, if looks find such a pair."""
    candidates = [u for u in row(s, x) if s.tight[u] == 1][:WIDEST]
    s.work += degree(s, x)
    if len(candidates) < 2:
        return False
    first = below(s, len(candidates))
    for i in range(min(len(candidates) - 1, LOOKS)):
        v = candidates[(first + i) % len(candidates)]
        w = _partner(s, x, v, candidates)
        if w < 0:
            continue
        _drop(s, x)
        _bring(s, v)
        _bring(s, w)
        return True
    return False


def _improve(s: Search) -> None:
    """Swaps, and with node weights nodes that outweigh their neighbours, until the queue is empty."""
    _fill(s)
    while s.queue_size:
        i = below(s, s.queue_size)
        s.work += DRAW
        v = int(s.queue[i])
        s.queue_size -= 1
        s.queue[i] = s.queue[s.queue_size]
        s.queued[v] = 0
        if chosen(s, v):
            if _swap(s, v):
                _fill(s)
        elif s.against is not None and s.against[v] < worth(s, v):
            _force(s, v)
            _fill(s)


def go_back(s: Search) -> None:
    """Go on from the best set, made better where it can be."""
    rows = np.repeat(np.arange(s.n), np.diff(s.indptr))
    inside = s.best_set[s.indices] == 1
    s.tight[:] = np.bincount(rows[inside], minlength=s.n)
    s.owner[:] = 0
    np.bitwise_xor.at(s.owner, rows[inside], s.indices[inside])
    take_up(s, s.tight)
    nodes = s.order[: s.size].tolist()
    if s.against is not None:
        s.against[:] = weight_against(s)
        nodes += np.flatnonzero((s.tight > 0) & (s.against < s.node_weight)).tolist()
    for v in nodes:
        _push(s, v)
    s.journal_size = -1
    _improve(s)
    keep_best(s)


# ---- steps -------------------------------------------------------------------------------------------------


def _outsider(s: Search, most: int) -> int:
    """A node from outside, with at most `most` neighbours in the set if some draws find one."""
    v = 0
    for _ in range(TRIES):
        s.work += DRAW
        v = int(s.order[s.size + below(s, s.n - s.size)])
        if s.tight[v] <= most:
            break
    return v


def _eldest(s: Search, most: int) -> int:
    """The one of several draws that left the set first."""
    found = _outsider(s, most)
    for _ in range(1, ELDEST):
        v = _outsider(s, most)
        if s.since[v] < s.since[found]:
            found = v
    return found


def _neighbour(s: Search, v: int) -> int:
    near = row(s, v)
    return near[below(s, len(near))]


def _perturb(s: Search) -> None:
    """A node is forced in; rarely also some that are two edges away."""
    more = 0
    if below(s, 2 * s.size) == 0:
        more = 1
        while bits(s) & 1:
            more += 1
    most = TIGHT if below(s, ANY) else MOST
    v = _outsider(s, most) if more else _eldest(s, most)
    _force(s, v)
    for _ in range(more):
        u = _neighbour(s, _neighbour(s, v))
        if not chosen(s, u) and s.tight[u] > 0:
            _force(s, u)


def _passes(s: Search, loss: int, distance: int) -> bool:
    """Whether to go on from a set that lost weight: once in 1 + loss (distance to the best)."""
    odds = loss / s.unit * (distance / s.unit)
    return below(s, 1 + int(odds) if odds < MOST else MOST) == 0


def _step(s: Search) -> None:
    before = s.value
    if s.size == s.n:
        return
    s.journal_size = 0
    _perturb(s)
    _improve(s)
    keep_best(s)
    if s.value < before and not _passes(s, before - s.value, s.best - s.value):
        _undo(s)


def run(s: Search, steps: int) -> None:
    """So many steps."""
    for _ in range(steps):
        s.steps += 1
        _step(s)
