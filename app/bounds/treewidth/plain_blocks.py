"""Feasible blocks without compiled kernels: the same results (app/native/blocks.c).

Sets of nodes are the bits of numbers.
"""

import math
import time
from collections.abc import Iterator

import numpy as np

COMPARED = 256  # clusters that are compared cost as much as one that is kept


class _Full(Exception):
    """More rows than the limit, or time is over."""


def _nodes(bits: int) -> Iterator[int]:
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1


class _Search:
    """One search; see app/bounds/treewidth/blocks.py."""

    def __init__(
        self, near: list[int], most: int, limit: int, weights: np.ndarray | None, seconds: float
    ) -> None:
        self.near, self.most, self.limit = near, most, limit
        self.end = time.perf_counter() + seconds
        self.weight = [1] * len(near) if weights is None else weights.tolist()
        self.all = (1 << len(near)) - 1
        self.held = self.compared = 0
        self.bag_of: dict[int, int | None] = {}  # of each component the bag that makes it feasible
        self.waiting: dict[int, list[int]] = {}  # and the bags that wait for it, the latest first
        self.bags: set[int] = set()
        self.queue: list[int] = []  # feasible blocks
        self.clusters: list[tuple[int, int, int]] = []  # nodes, around, near all blocks
        self.root: int | None = None

    def hold(self) -> None:
        if self.held == self.limit:
            self.held += 1
            raise _Full
        self.held += 1

    def look(self) -> None:
        if time.perf_counter() > self.end:
            raise _Full

    def fits(self, bits: int) -> bool:
        return sum(self.weight[v] for v in _nodes(bits)) <= self.most

    def component(self, inside: int, v: int) -> tuple[int, int]:
        part = todo = 1 << v
        around = 0
        while todo:
            own = self.near[(todo & -todo).bit_length() - 1]
            todo &= todo - 1
            todo |= own & inside & ~part
            part |= own & inside
            around |= own
        return part, around & ~part

    def components(self, left: int) -> Iterator[tuple[int, int]]:
        while left:
            found = self.component(left, (left & -left).bit_length() - 1)
            left &= ~found[0]
            yield found

    def note(self, part: int) -> int | None:
        """The bag of a component, which is held from now on."""
        if part not in self.bag_of:
            self.hold()
            self.bag_of[part], self.waiting[part] = None, []
        return self.bag_of[part]

    def take(self, bag: int, first: bool) -> bool:
        self.look()
        beside, needed, whole = [], 0, True
        for part, around in self.components(self.all & ~bag):
            beside.append((part, around))
            if self.note(part) is not None:
                continue
            whole, needed = False, needed | around
            if first and not part & 1:
                self.hold()
                self.waiting[part].insert(0, bag)
        if whole:
            self.root = bag
            return True
        for outer, outlet in beside:
            own = bag & ~outlet
            if needed & ~outlet or not own:
                continue
            part, _ = self.component(self.all & ~(outer | outlet), (own & -own).bit_length() - 1)
            if own & ~part or part & 1 or self.note(part) is not None:
                continue
            self.bag_of[part] = bag
            self.queue.append(part)
        return False

    def offer(self, bag: int) -> bool:
        if not self.fits(bag) or bag in self.bags:
            return False
        self.hold()
        self.bags.add(bag)
        return self.take(bag, True)

    def keep(self, nodes: int, around: int, common: int) -> bool:
        self.hold()
        self.clusters.append((nodes, around, common))
        return any(self.offer(around | (self.near[v] & ~nodes)) for v in _nodes(common))

    def follow(self, part: int) -> bool:
        if any(self.take(bag, False) for bag in list(self.waiting[part])):
            return True
        edge = self.component(part, (part & -part).bit_length() - 1)[1]
        self.look()
        known = list(self.clusters)
        for nodes, around, common in known:
            if nodes & (part | edge) or not common & edge or not self.fits(around | edge):
                continue
            if self.keep(nodes | part, around | edge, common & edge):
                return True
        self.compared += len(known)
        if self.keep(part, edge, edge):
            return True
        if self.held + self.compared // COMPARED > self.limit:
            raise _Full
        return False

    def search(self) -> bool:
        if any(self.offer(self.near[v] | 1 << v) for v in range(len(self.near))):
            return True
        at = 0
        while at < len(self.queue):
            if self.follow(self.queue[at]):
                return True
            at += 1
        return False

    def lay(self, inside: int, bag: int) -> list[int]:
        order = []
        for part, _ in self.components(inside & ~bag):
            order += self.lay(part, self.bag_of[part])
        return order + list(_nodes(inside & bag))


def seek_blocks(
    near: list[int], most: int, limit: int, weights: np.ndarray | None, seconds: float = math.inf
) -> tuple[list[int] | None, bool, int]:
    """An order without a heavier bag, or None; whether that is known; the rows that were held."""
    search = _Search(near, most, limit, weights, seconds)
    try:
        found, known = search.search(), True
    except _Full:
        found, known = False, False
    order = search.lay(search.all, search.root) if found else None
    return order, known, search.held + search.compared // COMPARED
