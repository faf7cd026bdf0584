"""The functions of feedback.c without the library: the same draws, numbers and order of the nodes.

`s` is an app.search.fvs.search.FeedbackSearch throughout.
"""

import heapq
from collections import deque
from typing import Any

import numpy as np

from app.graphs.joined import root_of
from app.search.annealing import anneal, passes
from app.search.set_plain import below, bits, into_set, keep_best, out_of_set, worth

TOP = 1 << 62  # labels are below

Search = Any


def _row(s: Search, v: int) -> list[tuple[int, bool]]:
    """The neighbours of a node, and whether by a double edge."""
    own = slice(s.indptr[v], s.indptr[v + 1])
    near = s.indices[own].tolist()
    return list(zip(near, [False] * len(near) if s.twice is None else s.twice[own].astype(bool).tolist()))


def _inside(s: Search, v: int) -> bool:
    return bool(s.label[v] >= 0)


# ---- the forest --------------------------------------------------------------------------------------------


def _spread(s: Search) -> None:
    """Even labels, from the first to the last."""
    gap = TOP // (s.n - s.taken + 2)
    label, v = 0, int(s.next[s.n])
    while v != s.n:
        label += gap
        s.label[v] = label
        v = int(s.next[v])


def _label_behind(s: Search, at: int) -> int:
    """The label of a node that comes right behind `at`; n: before all."""
    while True:
        low, after = int(s.label[at]), int(s.next[at])
        high = TOP if after == s.n else int(s.label[after])
        if high - low > 1:
            return low + (high - low) // 2
        _spread(s)


def _enter(s: Search, v: int, at: int) -> None:
    """v enters behind `at`; its neighbours in the forest beside `at` have no earlier one."""
    after, label = int(s.next[at]), _label_behind(s, at)
    s.label[v] = label
    s.next[at] = s.before[after] = v
    s.next[v], s.before[v] = after, at
    s.earlier[v] = at != s.n
    for u, _ in _row(s, v):
        if s.label[u] > label:
            s.earlier[u] += 1
    out_of_set(s, v)


def _leave(s: Search, v: int) -> None:
    label = int(s.label[v])
    s.next[s.before[v]] = s.next[v]
    s.before[s.next[v]] = s.before[v]
    s.label[v] = -1
    for u, _ in _row(s, v):
        if s.label[u] > label:
            s.earlier[u] -= 1
    into_set(s, v)


# ---- the best forest, made as large as it can be, in a new order -------------------------------------------


def _joins(s: Search, v: int) -> bool:
    """Whether v closes no cycle with a forest; then it is one of its trees."""
    near = [(u, double) for u, double in _row(s, v) if s.best_left[u]]
    if any(double for _, double in near):
        return False
    roots = [root_of(s.part, u) for u, _ in near]
    if len(set(roots)) < len(roots):
        return False
    for each in roots:
        s.part[each] = v
    return True


def go_back(s: Search) -> None:
    """Go on from the best forest."""
    if not s.n:
        return
    n = s.n
    shift = below(s, n)
    turned = [*range(shift, n), *range(shift)]
    s.part[:] = np.arange(n)
    s.label[:n] = -1
    for v in np.flatnonzero(s.best_left).tolist():
        for u, _ in _row(s, v):
            if u < v and s.best_left[u]:
                s.part[root_of(s.part, u)] = root_of(s.part, v)
    for v in turned:
        if not s.best_left[v] and _joins(s, v):
            s.best_left[v] = 1
            s.best -= worth(s, v)
            s.found_at = s.steps
    _line_up(s, turned)
    s.cost, s.moved_size = s.best, 0


def _line_up(s: Search, turned: list[int]) -> None:
    """The list: trees, root first."""
    queue: list[int] = []
    read, last = 0, s.n
    s.label[s.n] = 0
    for first in turned:
        if not s.best_left[first] or _inside(s, first):
            continue
        s.label[first] = s.earlier[first] = 0
        queue.append(first)
        while read < len(queue):
            v = queue[read]
            read += 1
            s.next[last], s.before[v] = v, last
            last = v
            for u, _ in _row(s, v):
                if s.best_left[u] and not _inside(s, u):
                    s.label[u], s.earlier[u] = 0, 1
                    queue.append(u)
    s.next[last], s.before[s.n] = s.n, last
    s.taken = s.n - len(queue)
    s.order[:] = [*np.flatnonzero(s.best_left == 0).tolist(), *queue]
    s.place[s.order] = np.arange(s.n)
    _spread(s)


# ---- steps -------------------------------------------------------------------------------------------------


def _leaves(s: Search, u: int, double: bool, parent: int) -> bool:
    """Whether a neighbour u of the forest leaves where a node enters behind `parent`."""
    return double or (u != parent and bool(s.earlier[u] or s.label[u] < s.label[parent]))


def _loss_behind(s: Search, v: int, near: list[tuple[int, bool]], parent: int) -> int:
    """What leaves where v enters behind `parent`, less v."""
    leaving = (u for u, double in near if _inside(s, u) and _leaves(s, u, double, parent))
    return sum(worth(s, u) for u in leaving) - worth(s, v)


def _propose(s: Search, coldness: int) -> None:
    """A node outside enters behind the first of its neighbours, or with weights behind a drawn one where less
    leaves for it, if that is let pass.
    """
    if not s.taken:
        return
    draw = bits(s)
    v = int(s.order[(draw >> 32) * s.taken >> 32])
    near = _row(s, v)
    start = (draw & 0xFFFFFFFF) * len(near) >> 32
    single = [u for u, double in near if _inside(s, u) and not double]
    turned = [u for u, double in near[start:] + near[:start] if _inside(s, u) and not double]
    parent = min(single, key=lambda u: int(s.label[u]), default=s.n)
    other = turned[0] if turned else s.n
    loss = _loss_behind(s, v, near, parent)
    if s.weight is not None and loss > 0:
        instead = _loss_behind(s, v, near, other)
        if instead < loss:
            loss, parent = instead, other
    if loss > 0:
        if not passes(s, loss, coldness, draw):
            return
        keep_best(s)
    for u, double in near:
        if _inside(s, u) and _leaves(s, u, double, parent):
            _leave(s, u)
    _enter(s, v, parent)


def run(s: Search, steps: int) -> None:
    """So many steps."""
    anneal(s, steps, _propose, go_back, keep_best)


# ---- the greedy set ----------------------------------------------------------------------------------------


def greedy(core: Any, price: list[int]) -> list[int]:
    """The nodes of lk_feedback_greedy in their order."""
    n, degree = core.n, core.degrees().tolist()
    ptr, columns, twice = core.indptr.tolist(), core.indices.tolist(), core.twice.tolist()
    heap = [price[v] // (degree[v] - 1) * n + v for v in range(n) if degree[v] >= 2]
    heapq.heapify(heap)
    waiting = deque(v for v in range(n) if degree[v] < 2)
    for v in waiting:
        degree[v] = -1
    order: list[int] = []
    while True:
        while waiting:
            v = waiting.pop()
            for j in range(ptr[v], ptr[v + 1]):
                u = columns[j]
                if degree[u] < 0:
                    continue
                degree[u] -= 1 + twice[j]
                if degree[u] < 2:
                    waiting.append(u)
                    degree[u] = -1
        if not heap:
            return order
        rank, v = divmod(heapq.heappop(heap), n)
        if degree[v] < 0:
            continue
        if price[v] // (degree[v] - 1) != rank:
            heapq.heappush(heap, price[v] // (degree[v] - 1) * n + v)
            continue
        order.append(v)
        degree[v] = -1
        waiting.append(v)


def needed(core: Any, chosen: np.ndarray, order: list[int]) -> np.ndarray:
    """[n] bool as lk_feedback_needed has it."""
    left, part = chosen.copy(), list(range(core.n))
    ptr, columns, twice = core.indptr.tolist(), core.indices.tolist(), core.twice.tolist()
    for u, v, _ in zip(*(each.tolist() for each in core.edges())):
        if not left[u] and not left[v]:
            part[root_of(part, u)] = root_of(part, v)
    for v in reversed(order):
        if not left[v]:
            continue
        entries = [j for j in range(ptr[v], ptr[v + 1]) if not left[columns[j]]]
        roots = [root_of(part, columns[j]) for j in entries]
        if len(set(roots)) == len(roots) and not any(twice[j] for j in entries):
            left[v] = False
            for each in roots:
                part[each] = v
    return left
