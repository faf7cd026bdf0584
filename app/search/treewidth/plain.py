"""The search for tree decompositions without compiled kernels: the same moves (app/native/treewidth.c)."""

from typing import Any

import numpy as np

from app.bounds.treewidth.plain_orders import eliminate, missing
from app.rng import SplitMix

MOST_NODES, PATIENCE = 4096, 400
NOISE = (0, 0, 7, 31)
ENDLESS = (1 << 63) - 1

State = Any


def _bits(s: State) -> int:
    draws = SplitMix(s.random)
    value = draws.bits()
    s.random = draws.state
    return value


def _below(s: State, bound: int) -> int:
    return (_bits(s) >> 32) * bound >> 32


def _near(s: State, v: int) -> list[int]:
    return s.indices[s.indptr[v] : s.indptr[v + 1]].tolist()


def _weight(s: State, v: int) -> int:
    return 1 if s.weight is None else int(s.weight[v])


def _hang(s: State, v: int, p: int) -> None:
    s.parent[v] = p
    s.prev[v] = s.next[v] = -1
    if p < 0:
        return
    s.next[v] = s.child[p]
    if s.child[p] >= 0:
        s.prev[s.child[p]] = v
    s.child[p] = v


def _unhang(s: State, v: int) -> None:
    if s.prev[v] >= 0:
        s.next[s.prev[v]] = s.next[v]
    elif s.parent[v] >= 0:
        s.child[s.parent[v]] = s.next[v]
    if s.next[v] >= 0:
        s.prev[s.next[v]] = s.prev[v]


def _children(s: State, v: int) -> list[int]:
    found, c = [], int(s.child[v])
    while c >= 0:
        found.append(c)
        c = int(s.next[c])
    return found


def _find_tops(s: State) -> None:
    s.worth = int(s.bag.max(initial=0))
    heaviest = np.flatnonzero(s.bag == s.worth)
    s.tops = len(heaviest)
    s.at[:] = -1
    s.top[: s.tops] = heaviest
    s.at[heaviest] = np.arange(s.tops)


def _untop(s: State, v: int) -> None:
    if s.at[v] < 0:
        return
    s.tops -= 1
    last = s.top[s.tops]
    s.top[s.at[v]] = last
    s.at[last] = s.at[v]
    s.at[v] = -1


def load(s: State) -> None:
    """The tree of `parent`: its children, bags, and what it is worth."""
    s.child[:] = s.next[:] = s.prev[:] = -1
    for v in range(s.n - 1, -1, -1):
        _hang(s, v, int(s.parent[v]))
    post: list[int] = []
    stack = [(v, False) for v in np.flatnonzero(s.parent < 0)[::-1].tolist()]
    while stack:
        v, seen = stack.pop()
        if seen:
            post.append(v)
            continue
        stack.append((v, True))
        stack += [(c, False) for c in _children(s, v)[::-1]]
    s.at[post] = np.arange(s.n)
    s.plain_lists = [set() for _ in range(s.n)]
    for i, v in enumerate(post):
        own = {u for u in _near(s, v) if s.at[u] > i}
        for c in _children(s, v):
            own |= s.plain_lists[c]
        s.plain_lists[v] = own - {v}
        s.bag[v] = len(own - {v}) if s.fill else _weight(s, v) + sum(_weight(s, u) for u in own - {v})
    s.worth = int(s.bag.sum())
    if not s.fill:
        _find_tops(s)


def _grow(s: State, v: int) -> tuple[list[int], int]:
    """Nodes of a piece around v, and the highest of them."""
    limit = 8 << _below(s, s.levels)
    up, own = _below(s, limit // 2 + 1), [v]
    while up > 0 and s.parent[v] >= 0:
        v, up = int(s.parent[v]), up - 1
        own.append(v)
    held = set(own)
    for node in own:
        if len(own) >= limit:
            break
        for c in _children(s, node):
            if len(own) >= limit:
                break
            if c not in held and _bits(s) >> 62:
                held.add(c)
                own.append(c)
    return own, v


def _join(s: State, own: list[int], high: int) -> list[set[int]]:
    """The graph of a piece: neighbours of its nodes, and of those of its border, by node."""
    held, border = set(own), s.plain_lists[high]
    inside = held | border
    near = {v: set() for v in inside}
    for v in border:
        near[v] |= border
    for v in own:
        for u in _near(s, v):
            if u in inside:
                near[v].add(u)
                near[u].add(v)
        for c in _children(s, v):
            if c not in held:
                for u in s.plain_lists[c]:
                    near[u] |= s.plain_lists[c]
    for v in inside:
        near[v].discard(v)
    return near


def _load_of(s: State, near: Any, v: int) -> int:
    return len(near[v]) if s.fill else _weight(s, v) + sum(_weight(s, u) for u in near[v])


def _score(s: State, near: Any, v: int, rule: int) -> int:
    degree = 0 if rule == 1 else _load_of(s, near, v) >> s.shift
    return degree + (missing(near, v) // 2 if rule else 0)


def _order_anew(
    s: State, near: Any, own: list[int], rule: int, noise: int, most: int, often: int
) -> tuple[list[int], dict[int, int]] | None:
    """A new order of a piece and its bags' weights, or None where that is worth more."""
    left, order, loads, total, seen = list(own), [], {}, 0, 0
    while left:
        best, chosen = ENDLESS, -1
        for v in left:
            draw = _bits(s)
            key = ((_score(s, near, v, rule) + 1) * (64 + ((draw >> 32) & noise)) << 16) | (
                draw >> 16 & 65535
            )
            if key < best:
                best, chosen = key, v
        loads[chosen] = worth = _load_of(s, near, chosen)
        order.append(chosen)
        total += worth
        seen += worth == most
        if (total > most) if s.fill else (worth > most or seen > often):
            return None
        left.remove(chosen)
        eliminate(near, chosen)
    return order, loads


def _take(s: State, near: Any, own: list[int], order: list[int], loads: dict[int, int], high: int) -> None:
    """The tree with a piece in a new order."""
    above, place = int(s.parent[high]), {v: i for i, v in enumerate(order)}
    below: list[int] = []
    for v in own:
        below += [c for c in _children(s, v) if c not in place]
    _unhang(s, high)
    s.child[own] = -1
    for v in own:
        s.plain_lists[v] = set(near[v])
        first = min((place[u] for u in near[v] if u in place), default=len(order))
        _hang(s, v, order[first] if first < len(order) else above)
        if s.fill:
            s.worth += loads[v] - int(s.bag[v])
        else:
            _untop(s, v)
        s.bag[v] = loads[v]
    for c in reversed(below):
        _hang(s, c, order[min(place[u] for u in s.plain_lists[c] if u in place)])
    if s.fill:
        return
    for v in own:
        if s.bag[v] == s.worth:
            s.at[v], s.top[s.tops] = s.tops, v
            s.tops += 1
    if any(s.bag[v] > s.worth for v in own) or not s.tops:
        _find_tops(s)


def _move(s: State, kick: bool) -> None:
    """One move; kick: at a node anywhere, whatever comes of it."""
    v = _below(s, s.n) if kick or s.fill else int(s.top[_below(s, s.tops)])
    own, high = _grow(s, v)
    rule = _below(s, 3)
    noise = 63 if kick else NOISE[_below(s, 4)]
    loads = s.bag[own]
    most = int(loads.sum() if s.fill else loads.max())
    often = int(np.count_nonzero(loads == most))
    if kick:
        most = often = ENDLESS
    if len(own) + len(s.plain_lists[high]) > MOST_NODES:
        return
    near = _join(s, own, high)
    found = _order_anew(s, near, own, rule, noise, most, often)
    if found is not None:
        before, tops = s.worth, s.tops
        _take(s, near, own, *found, high)
        if s.worth < before or (not s.fill and s.worth == before and s.tops < tops):
            s.stale = 0


def run(s: State, steps: int) -> None:
    """So many moves."""
    for _ in range(steps):
        s.steps += 1
        s.stale += 1
        kick = s.stale > PATIENCE
        if kick and s.worth > s.best:
            s.parent[:] = s.best_parent
            load(s)
        if kick:
            s.stale = 0
        _move(s, kick)
        if s.worth < s.best:
            s.best, s.found_at = s.worth, s.steps
            s.best_parent[:] = s.parent
