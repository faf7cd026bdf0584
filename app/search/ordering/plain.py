"""The functions of ordering.c without the library: the same choices and numbers.

`s` is an app.search.ordering.search.OrderingSearch throughout, or has the same arrays.
"""

import heapq
from typing import Any

import numpy as np

from app.rng import SplitMix
from app.search.labels import cut_out, link_all, link_behind

WINDOW, MOVES = 10, 8192  # nodes that are ordered at once; moves of a trial, at most

Search = Any


# ---- the order ---------------------------------------------------------------------------------------------


def _place(s: Search, v: int, p: int) -> None:
    """v goes behind p, which is another node, n being the beginning."""
    if s.before[v] == p:
        return
    cut_out(s, v)
    link_behind(s, v, p)


def _push(s: Search, v: int) -> None:
    if not s.queued[v]:
        s.queue[(s.head + s.size) % s.n] = v
        s.size += 1
        s.queued[v] = 1


def _pop(s: Search) -> int:
    v = int(s.queue[s.head])
    s.head = (s.head + 1) % s.n
    s.size -= 1
    s.queued[v] = 0
    return v


def _move(s: Search, v: int, p: int) -> None:
    if not s.descending:
        s.moves[3 * s.made : 3 * s.made + 3] = v, s.before[v], p
        s.made += 1
    _place(s, v, p)


def _undo(s: Search) -> None:
    for i in reversed(range(s.made)):
        _place(s, int(s.moves[3 * i]), int(s.moves[3 * i + 1]))


def _keep(s: Search) -> None:
    """The state before this trial is the best."""
    _undo(s)
    v = int(s.next[s.n])
    for i in range(s.n):
        s.best_order[i], v = v, int(s.next[v])
    for i in range(s.made):
        _place(s, int(s.moves[3 * i]), int(s.moves[3 * i + 2]))
    s.unsaved = 0


# ---- steps -------------------------------------------------------------------------------------------------


def _near(s: Search, v: int) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """(label, pull, node) of the neighbours behind v, and of those before it, nearest first."""
    cut = slice(int(s.ptr[v]), int(s.ptr[v + 1]))
    near = [(int(s.label[u]), int(p), u) for u, p in zip(s.near[cut].tolist(), s.pull[cut].tolist())]
    label = int(s.label[v])
    behind = sorted(each for each in near if each[0] > label)
    return behind, sorted((each for each in near if each[0] < label), reverse=True)


def _settle(s: Search, v: int) -> None:
    """v goes to where it gains most, of such places to the nearest, behind rather than before; those that it
    passes wait.
    """
    most, passed, at = 0, [], -1
    for sign, side in zip((1, -1), _near(s, v)):
        gain = 0
        for i, (_, pull, u) in enumerate(side):
            gain += sign * pull
            if gain > most:
                most, passed = gain, side[: i + 1]
                at = u if sign > 0 else int(s.before[u])
    if most:
        _move(s, v, at)
        s.cost -= most
        for _, _, u in passed:
            _push(s, u)


def _kick(s: Search, v: int, u: int) -> None:
    """v goes to the other side of a neighbour, to be next to it."""
    from_, to, loss = int(s.label[v]), int(s.label[u]), 0
    for i in range(int(s.ptr[v]), int(s.ptr[v + 1])):
        w = int(s.near[i])
        label = int(s.label[w])
        if from_ < label <= to if from_ < to else to <= label < from_:
            loss -= int(s.pull[i]) if from_ < to else -int(s.pull[i])
            _push(s, w)
    _move(s, v, u if from_ < to else int(s.before[u]))
    s.cost += loss
    _push(s, v)


def _window(s: Search, draws: SplitMix) -> None:
    """The best order of some nodes that follow each other: Held and Karp's program of subsets."""
    v = draws.below(s.n)
    first, node = int(s.before[v]), []
    while v != s.n and len(node) < WINDOW:
        node.append(v)
        v = int(s.next[v])
    k, number = len(node), {v: i for i, v in enumerate(node)}
    above = [[0] * k for _ in range(k)]
    for i, v in enumerate(node):
        for j in range(int(s.ptr[v]), int(s.ptr[v + 1])):
            u = int(s.near[j])
            if s.pull[j] > 0 and u in number:
                above[i][number[u]] = int(s.pull[j])
    now = sum(above[i][j] for i in range(k) for j in range(i + 1, k))
    if not now:
        return
    behind, least = [[0] * (1 << k) for _ in range(k)], [0] * (1 << k)
    for some in range(1, 1 << k):
        low = (some & -some).bit_length() - 1
        for i in range(k):
            behind[i][some] = behind[i][some & (some - 1)] + above[low][i]
        least[some] = min(least[some ^ 1 << i] + behind[i][some ^ 1 << i] for i in range(k) if some >> i & 1)
    some = (1 << k) - 1
    saved = least[some] - now
    if saved >= 0:
        return
    order = []
    for _ in range(k):
        i = max(
            i for i in range(k)
            if some >> i & 1 and least[some] == least[some ^ 1 << i] + behind[i][some ^ 1 << i]
        )  # fmt: skip
        order.append(node[i])
        some ^= 1 << i
    p = first
    for v in reversed(order):
        if s.before[v] != p:
            _move(s, v, p)
        _push(s, v)
        p = v
    s.cost += saved


def _judge(s: Search, draws: SplitMix) -> None:
    """Whether what a trial has come to is taken; else all is as before it."""
    if s.descending:
        s.descending = 0
    elif s.made:
        if s.cost < s.best:
            s.best, s.found_at, s.unsaved, s.stale = s.cost, s.steps, 1, 0
        else:
            slack = s.heat * int(s.escape[draws.bits() % len(s.escape)]) >> s.shift
            s.stale += 1
            if s.cost > s.current + slack or s.made >= MOVES - WINDOW - s.kicks:
                _undo(s)
                s.cost = s.current
            elif s.unsaved:
                _keep(s)
    s.made = 0
    s.current = s.cost


def _begin(s: Search, draws: SplitMix) -> None:
    s.trials += 1
    if s.trials % s.every == 0:
        _window(s, draws)
        return
    kicks, v = 1 + draws.below(s.kicks), draws.below(s.n)
    for _ in range(kicks):
        first, last = int(s.ptr[v]), int(s.ptr[v + 1])
        u = int(s.near[first + draws.below(last - first)])
        _kick(s, v, u)
        v = u


def run(s: Search, count: int) -> int:
    """At most `count` steps, each a node that is settled or a trial that is begun; fewer where a round is
    over. Returns how many.
    """
    draws, done = SplitMix(s.random), 0
    while done < count:
        if not s.size:
            _judge(s, draws)
            if s.stale >= s.patience:
                break
        done += 1
        s.steps += 1
        if not s.size:
            _begin(s, draws)
            continue
        _settle(s, _pop(s))
        if s.descending and s.cost < s.best:
            s.best, s.found_at, s.unsaved = s.cost, s.steps, 1
        if s.made >= MOVES - WINDOW - s.kicks:  # a trial as long as that is given up
            while s.size:
                _pop(s)
    if s.unsaved:
        _keep(s)
    s.random = draws.state
    return done


def load(s: Search, order: np.ndarray) -> None:
    """Go on from an order [n], from which every node is settled first."""
    while s.size:
        _pop(s)
    link_all(s, order)
    rows = np.repeat(np.arange(s.n), np.diff(s.ptr))
    s.cost = int(s.pull[(s.pull > 0) & (s.label[s.near] > s.label[rows])].sum())
    for v in order.tolist():
        _push(s, v)
    s.descending, s.made, s.stale, s.current = 1, 0, 0, s.cost


def greedy(n: int, ptr: np.ndarray, near: np.ndarray, pull: np.ndarray) -> np.ndarray:
    """[n] int32, see baselines.eades_lin_smyth."""
    begins, ends, weights = ptr.tolist(), near.tolist(), pull.tolist()
    outs, ins, gap = [0] * n, [0] * n, [0] * n
    for v in range(n):
        own = weights[begins[v] : begins[v + 1]]
        ins[v] = sum(each > 0 for each in own)
        outs[v], gap[v] = len(own) - ins[v], -sum(own)
    heap = [(-gap[v], v) for v in range(n)]
    heapq.heapify(heap)
    waiting = [v for v in reversed(range(n)) if not outs[v] or not ins[v]]
    gone, first, last = [False] * n, [], []
    while len(first) + len(last) < n:
        v = -1
        while waiting and v < 0:
            v = waiting.pop()
            v = -1 if gone[v] else v
        queued = v >= 0
        while v < 0:
            key, u = heapq.heappop(heap)
            v = u if not gone[u] and gap[u] == -key else -1
        gone[v] = True
        (last if queued and not outs[v] else first).append(v)
        for i in range(begins[v], begins[v + 1]):
            u, weight = ends[i], weights[i]
            if gone[u]:
                continue
            gap[u] -= weight
            side = outs if weight > 0 else ins
            side[u] -= 1
            if not side[u]:
                waiting.append(u)
            else:
                heapq.heappush(heap, (-gap[u], u))
    return np.array([*first, *reversed(last)], dtype=np.int32)
