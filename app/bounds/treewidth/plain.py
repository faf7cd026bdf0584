"""The exhaustive search without compiled kernels: the same results (app/native/treewidth.c)."""

import numpy as np

ENDLESS = (1 << 63) - 1


class _TooMany(Exception):
    """More sets than the limit."""


def _nodes(bits: int) -> list[int]:
    found = []
    while bits:
        found.append((bits & -bits).bit_length() - 1)
        bits &= bits - 1
    return found


def _open(near: list[int], own: int) -> int:
    return sum((own & ~near[u]).bit_count() - 1 for u in _nodes(own)) // 2


def _without(near: list[int], left: int, v: int) -> list[int]:
    after, own = list(near), near[v]
    for u in _nodes(left & ~(1 << v)):
        if own >> u & 1:
            after[u] = (near[u] | own) & ~(1 << u | 1 << v)
    return after


class _Search:
    """One search; see seek."""

    def __init__(
        self, n: int, most: int, limit: int, weights: np.ndarray | None, fill: bool, last: int
    ) -> None:
        self.n, self.most, self.limit, self.fill, self.last = n, most, limit, fill, last
        self.weight = [1] * n if weights is None else weights.tolist()
        self.paid: dict[int, int] = {}
        self.order: list[int] = []

    def weigh(self, bits: int) -> int:
        return sum(self.weight[v] for v in _nodes(bits))

    def minor_exceeds(self, near: list[int], left: int) -> bool:
        own, weight = list(near), list(self.weight)
        while left:
            load = {v: weight[v] + sum(weight[u] for u in _nodes(own[v])) for v in _nodes(left)}
            v = min(load, key=lambda v: (load[v], v))
            if load[v] > self.most:
                return True
            left &= ~(1 << v)
            both = {u: (own[v] & own[u]).bit_count() for u in _nodes(own[v])}
            for u in both:
                own[u] &= ~(1 << v)
            if not both:
                continue
            u = min(both, key=lambda u: (both[u], u))
            more = own[v] & ~(1 << u)
            own[u] |= more
            for x in _nodes(more):
                own[x] |= 1 << u
            weight[u] = min(weight[u], weight[v])
        return False

    def free_node(self, near: list[int], left: int) -> int:
        for v in _nodes(left):
            fits = self.fill or self.weigh(near[v] | 1 << v) <= self.most
            missing = _open(near, near[v])
            if not missing:
                return v if fits else -2
            if self.fill or not fits:
                continue
            for u in _nodes(near[v]):
                lacks = (near[v] & ~near[u]).bit_count() - 1
                if lacks == missing and self.weight[u] <= self.weight[v]:
                    return v
        return -1

    def seek(self, near: list[int], gone: int, paid: int) -> bool:
        left = ((1 << self.n) - 1) & ~gone
        if not left or (not self.fill and self.weigh(left) <= self.most):
            self.order += _nodes(left)
            return True
        if self.paid.get(gone, ENDLESS) <= paid:
            return False
        if gone not in self.paid and len(self.paid) == self.limit:
            raise _TooMany
        self.paid[gone] = paid
        v = self.free_node(near, left)
        if v == -2:
            return False
        if v >= 0:
            return self.step(near, gone, v, paid)
        if not self.fill and self.minor_exceeds(near, left):
            return False
        tried = []
        for v in _nodes(left & ~self.last):
            cost = _open(near, near[v])
            if (paid + cost if self.fill else self.weigh(near[v] | 1 << v)) <= self.most:
                tried.append((cost, v))
        return any(self.step(near, gone, v, paid + self.fill * cost) for cost, v in sorted(tried))

    def step(self, near: list[int], gone: int, v: int, paid: int) -> bool:
        left = ((1 << self.n) - 1) & ~gone
        self.order.append(v)
        if self.seek(_without(near, left, v), gone | 1 << v, paid):
            return True
        self.order.pop()
        return False


def seek(
    near: list[int], most: int, limit: int, weights: np.ndarray | None, fill: bool, last: int
) -> tuple[list[int] | None, bool, int]:
    """An order worth no more than `most`, or None; whether that is known; the sets that were looked at."""
    search = _Search(len(near), most, limit, weights, fill, last)
    try:
        found = search.seek(near, 0, 0)
    except _TooMany:
        return None, False, len(search.paid)
    return search.order if found else None, True, len(search.paid)
