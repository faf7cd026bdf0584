"""The functions of dismantle.c without the library: the same draws, numbers and order of the nodes.

`s` is an app.search.dismantle.search.DismantleSearch throughout.
"""

import heapq
from typing import Any

import numpy as np

from app.graphs.joined import root_of
from app.graphs.sized import SizedGraph
from app.search.annealing import anneal, passes
from app.search.set_plain import below, bits, into_set, keep_best, out_of_set, worth

CHOICES = 64  # components that a node is kept apart from, of so many
SHIFT, SELDOM = 12, 20  # bits of a draw that say which comes first, and whether a node is taken
CHECKS = 64  # looks at the components while nodes are put in order

Search = Any


def _size(s: Search, v: int) -> int:
    return 1 if s.size is None else int(s.size[v])


def _row(s: Search, v: int) -> list[int]:
    return s.indices[s.indptr[v] : s.indptr[v + 1]].tolist()


# ---- components --------------------------------------------------------------------------------------------


def _relabel(s: Search, start: int, old: int, number: int) -> int:
    """All that is joined with `start` in component `old` gets another number; returns its size."""
    s.label[start] = number
    queue = [start]
    for v in queue:
        for u in _row(s, v):
            if s.label[u] == old:
                s.label[u] = number
                queue.append(u)
    return sum(_size(s, v) for v in queue)


def _gather(s: Search, v: int) -> dict[int, int]:
    """What the neighbours of v weigh in each component next to it, in their order."""
    contact: dict[int, int] = {}
    for u in _row(s, v):
        if (c := int(s.label[u])) >= 0:
            contact[c] = contact.get(c, 0) + worth(s, u)
    return contact


def _give_back(s: Search, number: int) -> None:
    s.spare[s.spares] = number
    s.spares += 1


def _spare(s: Search) -> int:
    s.spares -= 1
    return int(s.spare[s.spares])


def _enter(s: Search, v: int) -> None:
    """v is no longer taken: it joins the components next to it, in the number of the largest."""
    near = _gather(s, v)
    if near:
        into = max(near, key=lambda c: int(s.total[c]))
    else:
        into = _spare(s)
        s.total[into] = 0
    for u in _row(s, v):
        c = int(s.label[u])
        if c >= 0 and c != into:
            s.total[into] += _relabel(s, u, c, into)
            _give_back(s, c)
    s.label[v] = into
    s.total[into] += _size(s, v)
    out_of_set(s, v)


def _leave(s: Search, v: int) -> None:
    """v is taken: what it held together falls into pieces."""
    old = int(s.label[v])
    s.label[v] = -1
    s.total[old] -= _size(s, v)
    near = [u for u in _row(s, v) if s.label[u] == old]
    if len(near) > 1:
        for u in near:
            if s.total[old] and s.label[u] == old:
                number = _spare(s)
                s.total[number] = _relabel(s, u, old, number)
                s.total[old] -= s.total[number]
    if not s.total[old]:
        _give_back(s, old)
    into_set(s, v)


def _fits(s: Search, v: int) -> bool:
    """Whether v joins nothing that becomes too large."""
    return sum(int(s.total[c]) for c in _gather(s, v)) + _size(s, v) <= s.most


def go_back(s: Search) -> None:
    """Go on from the best set, without nodes that it does not need, from a drawn one on."""
    n = s.n
    if not n:
        return
    shift = below(s, n)
    taken = np.flatnonzero(s.best_left == 0)
    s.order[:] = [*taken.tolist(), *np.flatnonzero(s.best_left)[::-1].tolist()]
    s.place[s.order] = np.arange(n)
    s.label[:] = np.where(s.best_left, n, -1)
    s.taken, components = len(taken), 0
    for v in range(n):
        if s.label[v] == n:
            s.total[components] = _relabel(s, v, n, components)
            components += 1
    s.spares = n - components
    s.spare[: s.spares] = np.arange(n - 1, components - 1, -1)
    s.cost, s.moved_size = s.best, 0
    for v in [*range(shift, n), *range(shift)]:
        if s.label[v] < 0 and _fits(s, v):
            _enter(s, v)
    keep_best(s)
    s.moved_size = 0


# ---- steps -------------------------------------------------------------------------------------------------


def _keep_apart(s: Search, contact: dict[int, int], room: int, first: int) -> list[int] | None:
    """Components that a node is kept apart from, so that what it joins is small, the one of number `first`
    before others; None: too many to choose from.
    """
    total = {c: int(s.total[c]) for c in contact}
    left = sum(total.values())
    if left <= room:
        return []
    if len(contact) > CHOICES or room < 0:
        return None
    chosen: list[int] = []
    while left > room:
        best = list(contact)[first] if not chosen and first < len(contact) else -1
        for c in contact if best < 0 else ():
            if c not in chosen and (best < 0 or contact[c] * total[best] < contact[best] * total[c]):
                best = c
        left -= total[best]
        chosen.append(best)
    apart = []
    for c in reversed(chosen):
        if left + total[c] <= room:
            left += total[c]
        else:
            apart.append(c)
    return apart


def _take(s: Search, coldness: int, draw: int) -> None:
    """A node that is left is taken, if that is let pass."""
    left = s.n - s.taken
    if not left:
        return
    v = int(s.order[s.taken + ((draw >> 32) * left >> 32)])
    if not passes(s, worth(s, v), coldness, draw):
        return
    keep_best(s)
    _leave(s, v)


def _propose(s: Search, coldness: int) -> None:
    """A node that is taken is left instead of its neighbours in some components, if that is let pass."""
    if not s.taken:
        return
    draw = bits(s)
    if not draw >> SELDOM & 15:
        _take(s, coldness, draw)
        return
    v = int(s.order[(draw >> 32) * s.taken >> 32])
    contact = _gather(s, v)
    apart = _keep_apart(s, contact, s.most - _size(s, v), draw >> SHIFT & CHOICES - 1)
    if apart is None:
        return
    loss = sum(contact[c] for c in apart) - worth(s, v)
    if loss > 0:
        if not passes(s, loss, coldness, draw):
            return
        keep_best(s)
    leaving = [u for u in _row(s, v) if int(s.label[u]) in apart]
    for u in leaving:
        _leave(s, u)
    _enter(s, v)
    for u in leaving:
        if _fits(s, u):
            _enter(s, u)


def run(s: Search, steps: int) -> None:
    """So many steps."""
    anneal(s, steps, _propose, go_back, keep_best)


# ---- greedy rules ------------------------------------------------------------------------------------------


def _rows(core: SizedGraph) -> list[list[int]]:
    ptr, columns = core.indptr.tolist(), core.indices.tolist()
    return [columns[ptr[v] : ptr[v + 1]] for v in range(core.n)]


def trees(core: SizedGraph, chosen: np.ndarray) -> np.ndarray:
    """[n] bool as lk_dismantle_trees has it."""
    near, total, taken = _rows(core), core.size.tolist(), chosen.tolist()
    above, queue, read = [-2] * core.n, [], 0
    for first in range(core.n):
        if taken[first] or above[first] != -2:
            continue
        above[first] = -1
        queue.append(first)
        while read < len(queue):
            v = queue[read]
            read += 1
            for u in near[v]:
                if not taken[u] and above[u] == -2:
                    above[u] = v
                    queue.append(u)
    for v in reversed(queue):
        if total[v] > core.most:
            taken[v] = True
        elif above[v] >= 0:
            total[above[v]] += total[v]
    return np.array(taken, dtype=bool)


def reinsert(core: SizedGraph, chosen: np.ndarray, gain: list[int], top: int, limit: int) -> list[int]:
    """The nodes that lk_dismantle_reinsert puts back, in their order."""
    n, near, taken = core.n, _rows(core), chosen.tolist()
    part, total = list(range(n)), core.size.tolist()
    for v in range(n):
        for u in near[v]:
            if u < v and not taken[u] and not taken[v]:
                r, own = root_of(part, u), root_of(part, v)
                if r != own:
                    total[own] += total[r]
                    part[r] = own

    def joined(v: int) -> int:
        return int(core.size[v]) + sum(total[r] for r in {root_of(part, u) for u in near[v] if not taken[u]})

    sums = {v: joined(v) for v in range(n) if taken[v]}
    heap = [value * top // gain[v] * n + v for v, value in sums.items() if value <= core.most]
    heapq.heapify(heap)
    order: list[int] = []
    looked = 0
    while heap:
        rank, v = divmod(heapq.heappop(heap), n)
        value = joined(v)
        if value > core.most:
            continue
        if value * top // gain[v] != rank and looked <= limit:
            looked += len(near[v])
            heapq.heappush(heap, value * top // gain[v] * n + v)
            continue
        taken[v] = False
        order.append(v)
        for u in near[v]:
            if not taken[u]:
                part[root_of(part, u)] = v
        total[v] = value
    return order


def ordered(core: SizedGraph, gain: list[int], radius: int, scale: int, limit: int) -> list[int] | None:
    """The nodes that lk_dismantle_order puts in order; None: more than `limit` entries were looked at."""
    n, near, degree, work = core.n, _rows(core), core.degrees().tolist(), 0

    def ball(v: int, reach: int) -> tuple[list[int], int]:
        nonlocal work
        nodes, met, edge, read = [v], {v}, 0, 0
        for _ in range(reach):
            end = len(nodes)
            for at in nodes[read:end]:
                work += len(near[at])
                for u in near[at]:
                    if degree[u] >= 0 and u not in met:
                        met.add(u)
                        nodes.append(u)
            read = edge = end
        return nodes, edge

    def influence(v: int) -> int:
        if not radius or degree[v] < 1:
            return degree[v]
        nodes, edge = ball(v, radius)
        return (degree[v] - 1) * sum(degree[u] - 1 for u in nodes[edge:]) * scale + degree[v]

    value = [influence(v) * gain[v] for v in range(n)]
    heap = [v - value[v] * n for v in range(n)]
    heapq.heapify(heap)
    order: list[int] = []
    while heap and work <= limit:
        if len(order) % (n // CHECKS + 1) == 0 and core.without(np.array(degree) < 0)[0].apart(False):
            break
        v = -1
        while heap and v < 0:
            key = heapq.heappop(heap)
            at = key % n
            if degree[at] >= 0 and value[at] == (at - key) // n:
                v = at
        if v < 0:
            break
        reached, _ = ball(v, radius + 1)
        for u in near[v]:
            degree[u] -= degree[u] >= 0
        degree[v] = -1
        order.append(v)
        for u in reached[1:]:
            now = influence(u) * gain[u]
            if now != value[u]:
                value[u] = now
                heapq.heappush(heap, u - now * n)
    return None if work > limit else order
