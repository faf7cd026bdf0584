"""Exact reductions of orders, which end where none of the rules of log.py applies."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.graphs.ordering import NetArcs, least_order
from app.graphs.orders import order_within, places_of
from app.reductions.ordering.log import BEFORE, BEHIND, COMPONENTS, NAMES

LOOK = 1024  # nodes between two looks at the clock


def topological_components(net: NetArcs) -> np.ndarray:
    """[n] int64, the strongly connected component of each node, numbered such that arcs lead upward."""
    n = net.n
    matrix = sp.csr_array((np.ones(net.arcs, dtype=np.int8), (net.tails, net.heads)), shape=(n, n))
    count, label = connected_components(matrix, directed=True, connection="strong")
    tails, heads = label[net.tails], label[net.heads]
    across = tails != heads
    order = least_order(count, tails[across], heads[across])
    number = places_of(order)
    return number[label]


class OrderingReducer:
    """What is left of net arcs, and the log of how.

    out, into   [n] mappings of nodes to weights, the net arcs of what is left
    gone        [n] bool, nodes that stand right behind, or before, another
    paid        what every order pays beside
    log         words of log.py
    steps       looks at the clock
    counts      by rule, how often it has been applied
    """

    def __init__(self, net: NetArcs) -> None:
        self.n, self.net = net.n, net
        self.gone = [False] * net.n
        self.paid, self.steps, self.over = 0, 0, False
        self.log: list[int] = []
        self.counts = [0] * len(NAMES)
        self._done: list[tuple[int, Any]] = []  # each application, to be undone from the last on
        self._names: np.ndarray | None = None

    # ---- rules ---------------------------------------------------------------------------------------------

    def reduce(self, look: Callable[[], Any], most: int = 0) -> None:
        """Apply the rules until none does, or the time is up."""
        self._look, self._most = look, most
        self._begin(self._between(self.net))
        while not self.over and self._contract():
            if self.over:
                break
            net = self._left()
            rest = self._between(net)
            if rest.arcs == net.arcs:
                break
            self._begin(rest)

    def _begin(self, net: NetArcs) -> None:
        """Mappings of net arcs, and nodes that a rule may apply to."""
        self.out: list[dict[int, int]] = _mappings(self.n, net.tails, net.heads, net.weights)
        order = np.argsort(net.heads, kind="stable")
        self.into = _mappings(self.n, net.heads[order], net.tails[order], net.weights[order])
        once = [v for v in range(self.n) if len(self.out[v]) == 1 or len(self.into[v]) == 1]
        self._queue, self._queued = once, set(once)

    def _tick(self) -> bool:
        self.steps += 1
        self.over = bool(self._look()) or self.steps == self._most
        return self.over

    def _between(self, net: NetArcs) -> NetArcs:
        """COMPONENTS: the net arcs without those that lead from one to another."""
        label = topological_components(net)
        inside = label[net.tails] == label[net.heads]
        if inside.all():
            return net
        self.log.append(COMPONENTS)
        self.counts[COMPONENTS] += 1
        self._done.append((COMPONENTS, label))
        return NetArcs(net.n, net.tails[inside], net.heads[inside], net.weights[inside])

    def _contract(self) -> bool:
        """BEHIND and BEFORE, as far as they lead: whether one applied."""
        before, looked = len(self.log), 0
        while self._queue:
            v = self._queue.pop()
            self._queued.discard(v)
            looked += 1
            if not self.gone[v]:
                self._at(v)
            if looked % LOOK == 0 and self._tick():
                break
        return len(self.log) > before

    def _at(self, v: int) -> None:
        for rule, side, other in ((BEHIND, self.into, self.out), (BEFORE, self.out, self.into)):
            if len(side[v]) != 1:
                continue
            u, weight = next(iter(side[v].items()))
            if weight >= sum(other[v].values()):
                self.log += (rule, v, u)
                self.counts[rule] += 1
                self._done.append((rule, (v, u)))
                self._join(v, u, side, other)
                return

    def _join(self, v: int, u: int, side: list[dict[int, int]], other: list[dict[int, int]]) -> None:
        """v goes: its arcs of one side are those of u from now on."""
        self.gone[v] = True
        del other[u][v]
        for x, weight in other[v].items():
            del side[x][v]
            self._add(u, x, weight, side, other)
            self._touch(x)
        self._touch(u)
        side[v], other[v] = {}, {}

    def _add(
        self, u: int, x: int, weight: int, side: list[dict[int, int]], other: list[dict[int, int]]
    ) -> None:
        """One more arc between u and x, on that side of u, where there may be some, either way."""
        back = side[u].get(x, 0)  # an arc the other way
        self.paid += min(weight, back)
        if back > weight:
            side[u][x] = other[x][u] = back - weight
            return
        if back:
            del side[u][x], other[x][u]
        if weight > back:
            other[u][x] = side[x][u] = other[u].get(x, 0) + weight - back

    def _touch(self, v: int) -> None:
        if v not in self._queued and (len(self.out[v]) == 1 or len(self.into[v]) == 1):
            self._queued.add(v)
            self._queue.append(v)

    # ---- what is left --------------------------------------------------------------------------------------

    def _left(self) -> NetArcs:
        """The net arcs that are left, of all nodes."""
        sizes = [len(each) for each in self.out]
        heads = np.array([u for each in self.out for u in each], dtype=np.int64)
        weights = np.array([w for each in self.out for w in each.values()], dtype=np.int64)
        tails = np.repeat(np.arange(self.n), sizes)
        order = np.lexsort((heads, tails))
        return NetArcs(self.n, tails[order], heads[order], weights[order])

    def kernel(self) -> tuple[NetArcs, np.ndarray]:
        """The net arcs that are left of the nodes that have some, and [k] int64, these nodes."""
        net = self._left()
        self._names = names = net.ends
        return net.part(names), names

    def lift(self, order: np.ndarray) -> np.ndarray:
        """[n] int64, an order of all nodes that pays what one [k] of the kernel pays, and `paid`."""
        apart = ~np.array(self.gone, dtype=bool)
        apart[self._names] = False
        behind = _Row(self.n, np.concatenate([self._names[order], np.flatnonzero(apart)]))
        for rule, what in reversed(self._done):
            if rule == COMPONENTS:
                row = behind.order()
                behind = _Row(self.n, row[np.argsort(what[row], kind="stable")])
            else:
                behind.insert(*what, rule == BEHIND)
        return behind.order()

    def restrict(self, order: np.ndarray) -> np.ndarray:
        """[k] int64, the order of the kernel's nodes in one [n] of all."""
        return order_within(order, self._names)


class _Row:
    """An order as a ring, with n for both ends."""

    def __init__(self, n: int, order: np.ndarray) -> None:
        ring = [n, *order.tolist(), n]
        self.n, self.next, self.before = n, [n] * (n + 1), [n] * (n + 1)
        for p, q in pairwise(ring):
            self.next[p], self.before[q] = q, p

    def insert(self, v: int, u: int, behind: bool) -> None:
        p, q = (u, self.next[u]) if behind else (self.before[u], u)
        self.next[p] = self.before[q] = v
        self.next[v], self.before[v] = q, p

    def order(self) -> np.ndarray:
        found, v = [], self.next[self.n]
        while v != self.n:
            found.append(v)
            v = self.next[v]
        return np.array(found, dtype=np.int64)


def _mappings(n: int, rows: np.ndarray, ends: np.ndarray, weights: np.ndarray) -> list[dict[int, int]]:
    """[n] ends and weights of arcs, rows ascending."""
    cuts = np.searchsorted(rows, np.arange(n + 1)).tolist()
    ends, weights = ends.tolist(), weights.tolist()
    return [dict(zip(ends[a:b], weights[a:b])) for a, b in pairwise(cuts)]
