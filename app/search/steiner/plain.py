"""What app/native/steiner_search.c does, without kernels: the same trees, slowly."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from app.graphs.joined import root_of

if TYPE_CHECKING:
    from app.search.steiner.trees import Trees

GONE, SETTLED, CHOSEN, OTHER = 1, 2, 4, 8  # bits of `state`


# ---- the tree ----------------------------------------------------------------------------------------------


def hang(s: Trees, x: int, p: int, weight: int) -> None:
    """x, the root of its own tree, goes below p."""
    s.parent[x], s.up[x] = p, weight
    s.before[x], s.next[x] = -1, s.child[p]
    if s.child[p] >= 0:
        s.before[s.child[p]] = x
    s.child[p] = x
    s.degree[x] += 1
    s.degree[p] += 1
    s.total += int(weight)


def cut(s: Trees, x: int) -> None:
    """x becomes the root of what hangs on it."""
    p, a, b = s.parent[x], s.before[x], s.next[x]
    if a >= 0:
        s.next[a] = b
    else:
        s.child[p] = b
    if b >= 0:
        s.before[b] = a
    s.parent[x] = x
    s.degree[x] -= 1
    s.degree[p] -= 1
    s.total -= int(s.up[x])


def evert(s: Trees, a: int) -> None:
    """Make a the root of its tree."""
    x, p, weight = a, int(s.parent[a]), int(s.up[a])
    if p == a:
        return
    cut(s, a)
    while True:
        above, more = int(s.parent[p]), int(s.up[p])
        if above != p:
            cut(s, p)
        hang(s, p, x, weight)
        s.work += 1
        if above == p:
            return
        x, p, weight = p, above, more


def join(s: Trees, a: int, b: int, weight: int) -> None:
    """Join two trees by an edge; the root stays one."""
    x, y = a, b
    while s.parent[x] != x and s.parent[y] != y:  # the end that is nearer to its root tells
        x, y = int(s.parent[x]), int(s.parent[y])
        s.work += 1
    if x == s.root if s.parent[x] == x else y != s.root:
        a, b = b, a
    evert(s, a)
    hang(s, a, b, weight)


def enter(s: Trees, x: int) -> None:
    """x becomes a tree of its own."""
    s.parent[x], s.degree[x] = x, 0
    s.child[x] = s.next[x] = s.before[x] = -1


def drop(s: Trees, x: int) -> None:
    """x, on which nothing hangs, goes."""
    if s.parent[x] != x:
        cut(s, x)
    s.parent[x] = -1


def crucial(s: Trees, x: int) -> bool:
    """Whether x is a terminal, or the tree branches there."""
    return bool(s.terminal[x]) or s.degree[x] >= 3


def weight_of(s: Trees, x: int, y: int) -> int:
    """The weight of an edge."""
    row = s.indices[s.indptr[x] : s.indptr[x + 1]]
    at = int(np.flatnonzero(row == y)[0])
    s.work += at + 1
    return int(s.weights[s.indptr[x] + at])


def load(s: Trees) -> None:
    """The lists and weights of the tree that `parent` tells."""
    s.total = 0
    s.child[:] = s.next[:] = s.before[:] = -1
    s.degree[:] = 0
    for x, p in enumerate(s.parent.tolist()):
        if p == x:
            s.root = x
        elif p >= 0:
            hang(s, x, p, weight_of(s, x, p))


# ---- whole trees -------------------------------------------------------------------------------------------


def _none(s: Trees, root: int) -> None:
    s.parent[:] = s.label[:] = -1
    s.total, s.root = 0, root
    enter(s, root)
    s.dist[root] = 0


def _take_path(s: Trees, x: int) -> list[int]:
    """The nodes from x to the tree, which enter it."""
    path = []
    while s.parent[x] < 0:
        path.append(x)
        x = int(s.pred[x])
    for y, p in zip(path[::-1], [x, *path[:0:-1]]):
        enter(s, y)
        hang(s, y, p, weight_of(s, y, p))
    return path


def _row(s: Trees, x: int) -> zip[tuple[int, int]]:
    """(neighbour, weight) of a node."""
    cut_ = slice(s.indptr[x], s.indptr[x + 1])
    return zip(s.indices[cut_].tolist(), s.weights[cut_].tolist())


def grow(s: Trees, root: int) -> int:
    """From the root on the nearest terminal is joined by a shortest path, and so on; the terminals joined."""
    joined = int(s.terminal[root])
    _none(s, root)
    heap = [(0, root)]
    while heap and joined < s.terminals:
        cost, x = heapq.heappop(heap)
        if cost > s.dist[x]:
            continue
        if s.terminal[x] and s.parent[x] < 0:
            joined += 1
            for y in _take_path(s, x):
                s.dist[y] = 0
                heapq.heappush(heap, (0, y))
            continue
        for y, weight in _row(s, x):
            d = int(s.dist[x]) + weight
            s.work += 1
            if s.parent[y] >= 0 or (s.label[y] >= 0 and s.dist[y] <= d):
                continue
            s.label[y], s.dist[y], s.pred[y] = 0, d, x
            heapq.heappush(heap, (d, y))
    return joined


def span(s: Trees, root: int) -> int:
    """The lightest spanning tree of the nodes that are CHOSEN and hang on the root, without leaves that are
    no terminals; the terminals in it.
    """
    _none(s, root)
    s.label[root], heap, found = 0, [(0, root)], []
    while heap:
        _, x = heapq.heappop(heap)
        if s.label[x] == 1:
            continue
        s.label[x] = 1
        if x != root:
            enter(s, x)
            hang(s, x, int(s.pred[x]), int(s.dist[x]))
        found.append(x)
        for y, weight in _row(s, x):
            s.work += 1
            known = s.label[y] == 1 or (s.label[y] == 0 and s.dist[y] <= weight)
            if known or not s.state[y] & CHOSEN:
                continue
            s.label[y], s.dist[y], s.pred[y] = 0, weight, x
            heapq.heappush(heap, (weight, y))
    for x in reversed(found):
        while s.parent[x] >= 0 and s.degree[x] == 1 and not s.terminal[x] and s.child[x] < 0:
            x_, x = x, int(s.parent[x])
            drop(s, x_)
            s.work += 1
    return int(s.terminal[found].sum())


# ---- local search ------------------------------------------------------------------------------------------


class _Room:
    """What moves have in common: a heap, and links (cost, x, y) between parts."""

    def __init__(self) -> None:
        self.heap: list[tuple[int, int]] = []
        self.found: list[tuple[int, int, int]] = []
        self.rest: list[int] = []  # nodes that are known to be in no part


def _take_part(s: Trees, x: int, part: int, nodes: list[int]) -> None:
    """The nodes that hang on x, x too, become those of a part, the first s.part of them."""
    at, most = len(nodes), len(nodes) + s.part
    nodes.append(x)
    while at < len(nodes):
        y = nodes[at]
        s.label[y], s.dist[y], s.pred[y] = part, 0, -1
        s.state[y] |= SETTLED
        s.work += 1
        child = int(s.child[y])
        while child >= 0 and len(nodes) < most:
            nodes.append(child)
            child = int(s.next[child])
        at += 1


def _part_of(s: Trees, r: _Room, y: int) -> int:
    """The part that a node of the tree is in; -1: the rest, as far as some steps upwards tell."""
    x, way = y, [y]
    if s.part >= s.n:
        return -1
    while len(way) <= s.part and s.label[x] < 0 and not s.state[x] & OTHER and s.parent[x] != x:
        x = int(s.parent[x])
        way.append(x)
        s.work += 1
    if s.label[x] >= 0:
        return int(s.label[x])
    new = [z for z in way if not s.state[z] & OTHER]
    s.state[new] |= OTHER
    r.rest += new
    return -1


def _reach(s: Trees, r: _Room, x: int, most: int, nodes: list[int]) -> None:
    """x is final: its entries reach free nodes, other regions, or the rest of the tree."""
    for y, weight in _row(s, x):
        d = int(s.dist[x]) + weight
        s.work += 1
        if d >= most:
            continue
        if s.label[y] < 0 and s.parent[y] >= 0 and not s.state[y] & GONE:
            if (part := _part_of(s, r, y)) < 0:
                r.found.append((d, x, y))
                continue
            nodes.append(y)
            s.label[y], s.dist[y] = part, 0
            heapq.heappush(r.heap, (0, y))
        elif s.label[y] >= 0 and s.state[y] & SETTLED:
            both = d + int(s.dist[y])
            if s.label[y] != s.label[x] and both < most:
                r.found.append((both, x, y))
        elif s.label[y] < 0 or d < s.dist[y]:
            if s.label[y] < 0:
                nodes.append(y)
            s.label[y], s.dist[y], s.pred[y] = s.label[x], d, x
            heapq.heappush(r.heap, (d, y))


def _build(s: Trees, x: int) -> None:
    """The way back from x to the tree enters it."""
    last = -1
    while s.parent[x] < 0:
        enter(s, x)
        if last >= 0:
            hang(s, last, x, weight_of(s, last, x))
        last, x = x, int(s.pred[x])
    if last >= 0:
        hang(s, last, x, weight_of(s, last, x))


def _exchange(s: Trees, v: int, whole: bool) -> None:
    """Take out the path above v, or v and the paths at it, and join the parts in the cheapest way that
    shortest paths between them give; the tree changes only where it gets lighter.
    """
    r, nodes, roots, removed = _Room(), [], [], []
    lengths = []
    if whole:
        child = int(s.child[v])
        while child >= 0:
            x, path = child, int(s.up[child])
            while not crucial(s, x):
                s.state[x] |= GONE
                removed.append(x)
                x = int(s.child[x])
                path += int(s.up[x])
                s.work += 1
            lengths.append(path)
            _take_part(s, x, len(roots), nodes)
            roots.append(x)
            child = int(s.next[child])
        s.state[v] |= GONE
        removed.append(v)
    else:
        _take_part(s, v, 0, nodes)
        roots.append(v)
    x, path = int(s.parent[v]), int(s.up[v])
    while not crucial(s, x):
        s.state[x] |= GONE
        removed.append(x)
        path += int(s.up[x])
        x = int(s.parent[x])
        s.work += 1
    lengths.append(path)
    weight = sum(lengths)
    most = min(sum(sorted(lengths)[-2:]) + 1, weight) if whole else weight
    chosen = _links(s, r, nodes, len(roots), most, weight)
    for y in nodes:
        s.label[y] = -1
        s.state[y] &= ~SETTLED & 255
    s.state[removed] &= ~GONE & 255
    s.state[r.rest] &= ~OTHER & 255
    if chosen is not None:
        _rebuild(s, roots, removed, chosen)


def _links(
    s: Trees, r: _Room, nodes: list[int], parts: int, most: int, weight: int
) -> list[tuple[int, int, int]] | None:
    """Links that join the parts and the rest, lighter than `weight` together; None: there are none."""
    for x in nodes[:]:
        _reach(s, r, x, most, nodes)
    best = min([most, *(cost for cost, _, _ in r.found)]) if parts == 1 else most
    seen = len(r.found)
    while r.heap:
        cost, x = heapq.heappop(r.heap)
        if cost > s.dist[x] or s.state[x] & SETTLED:
            continue
        if cost >= best:
            break
        s.state[x] |= SETTLED
        _reach(s, r, x, most, nodes)
        if parts == 1:
            best = min([best, *(cost for cost, _, _ in r.found[seen:])])
            seen = len(r.found)
    of, total, chosen = list(range(parts + 1)), 0, []
    for cost, x, y in sorted(r.found):
        if len(chosen) == parts or total >= weight:
            break
        a = root_of(of, int(s.label[x]))
        b = root_of(of, int(s.label[y]) if s.label[y] >= 0 else parts)
        s.work += 1
        if a != b:
            of[a] = b
            total += cost
            chosen.append((cost, x, y))
    if len(chosen) < parts or total >= weight:
        return None
    sure = s.part >= s.n or all(_in_rest(s, y) for _, _, y in chosen if s.label[y] < 0)
    return chosen if sure else None


def _in_rest(s: Trees, y: int) -> bool:
    """Whether a node is in no part."""
    while s.label[y] < 0 and s.parent[y] != y:
        y = int(s.parent[y])
        s.work += 1
    return bool(s.label[y] < 0)


def _rebuild(s: Trees, roots: list[int], removed: list[int], chosen: list[tuple[int, int, int]]) -> None:
    """Take the tree apart and join its parts by links."""
    for x in roots:
        cut(s, x)
    for y in removed:
        while s.child[y] >= 0:
            cut(s, int(s.child[y]))
        drop(s, y)
    for _, x, y in chosen:
        _build(s, x)
        _build(s, y)
        join(s, x, y, weight_of(s, x, y))


def _heaviest(s: Trees, v: int, y: int) -> tuple[int, bool]:
    """The heaviest edge of the tree between v and y: the node below it; whether it is on the side of y."""
    ways, seen = ([v], [y]), ({v}, {y})
    while ways[1][-1] not in seen[0]:  # by turns up from both
        ways[0].append(int(s.parent[ways[0][-1]]))
        seen[0].add(ways[0][-1])
        s.work += 1
        if ways[0][-1] in seen[1]:
            break
        ways[1].append(int(s.parent[ways[1][-1]]))
        seen[1].add(ways[1][-1])
    met = ways[1][-1] if ways[1][-1] in seen[0] else ways[0][-1]
    most, found, far = -1, y, True
    for own, side in ((ways[1], True), (ways[0], False)):
        for x in own[: own.index(met)]:
            if s.up[x] > most:
                most, found, far = int(s.up[x]), x, side
    return found, far


def _prune_noted(s: Trees, notes: list[tuple[int, int, int, bool]], x: int) -> None:
    """Take away leaves that are no terminals, from x on."""
    while s.parent[x] >= 0 and s.degree[x] == 1 and not s.terminal[x]:
        p = int(s.parent[x])
        notes.append((x, p, int(s.up[x]), False))
        drop(s, x)
        s.work += 1
        x = p


def _insert(s: Trees, v: int) -> None:
    """Node v, which is outside, with its edges to the tree, each in the place of a heavier one; kept where
    the tree gets lighter.
    """
    row = list(_row(s, v))
    s.work += len(row)
    near = sorted((weight, y) for y, weight in row if s.parent[y] >= 0)
    if len(near) < 2:
        return
    total, notes = s.total, []
    enter(s, v)
    hang(s, v, near[0][1], near[0][0])
    for weight, y in near[1:]:
        x, far = _heaviest(s, v, y)
        if s.up[x] <= weight:
            continue
        notes += [(x, int(s.parent[x]), int(s.up[x]), False), (v, y, weight, True)]
        cut(s, x)
        below, above = (y, v) if far else (v, y)
        evert(s, below)
        hang(s, below, above, weight)
    for a, b, _, new in notes[:]:
        if not new:
            _prune_noted(s, notes, a)
            _prune_noted(s, notes, b)
    if s.total < total:
        return
    for a, b, weight, new in reversed(notes):
        if new:
            cut(s, a if s.parent[a] == b else b)
        else:
            if s.parent[a] < 0:
                enter(s, a)
            join(s, a, b, weight)
    drop(s, v)


def look(s: Trees, order: np.ndarray, first: int, most: int) -> int:
    """Try the nodes order[first:], until so much work is done; the place of the next one."""
    s.label[:], s.state[:] = -1, 0
    end = s.work + most
    while first < len(order) and s.work < end:
        v = int(order[first])
        first += 1
        if s.parent[v] < 0:
            _insert(s, v)
        elif v != s.root and crucial(s, v):
            _exchange(s, v, False)
            if not s.terminal[v] and s.parent[v] >= 0 and s.degree[v] >= 3:
                _exchange(s, v, True)
    return first
