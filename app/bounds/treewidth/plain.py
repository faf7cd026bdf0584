"""The exhaustive search without compiled kernels: the same results (app/native/treewidth.c)."""

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

    def __init__(self, n: int, most: int, limit: int, last: int) -> None:
        self.n, self.most, self.limit, self.last = n, most, limit, last
        self.paid: dict[int, int] = {}
        self.order: list[int] = []

    def seek(self, near: list[int], gone: int, paid: int) -> bool:
        left = ((1 << self.n) - 1) & ~gone
        if not left:
            return True
        if self.paid.get(gone, ENDLESS) <= paid:
            return False
        if gone not in self.paid and len(self.paid) == self.limit:
            raise _TooMany
        self.paid[gone] = paid
        costs = {v: _open(near, near[v]) for v in _nodes(left)}
        free = next((v for v, cost in costs.items() if not cost), None)
        if free is not None:
            return self.step(near, gone, free, paid)
        tried = [
            (cost, v) for v, cost in costs.items() if not self.last >> v & 1 and paid + cost <= self.most
        ]
        return any(self.step(near, gone, v, paid + cost) for cost, v in sorted(tried))

    def step(self, near: list[int], gone: int, v: int, paid: int) -> bool:
        left = ((1 << self.n) - 1) & ~gone
        self.order.append(v)
        if self.seek(_without(near, left, v), gone | 1 << v, paid):
            return True
        self.order.pop()
        return False


def seek(near: list[int], most: int, limit: int, last: int) -> tuple[list[int] | None, bool, int]:
    """An order that makes no more than `most` edges, or None; whether that is known; the sets looked at."""
    search = _Search(len(near), most, limit, last)
    try:
        found = search.seek(near, 0, 0)
    except _TooMany:
        return None, False, len(search.paid)
    return search.order if found else None, True, len(search.paid)
