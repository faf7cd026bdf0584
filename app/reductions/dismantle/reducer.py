"""Exact reductions of dismantling problems: components that are small, parts that hang on one node, nodes
that are too large, and nodes that dominate a neighbour beside which they are too large.

What each rule does, and why some lightest set survives it, says log.py. A forest of nodes of one weight is
reduced to nothing: pendant parts grow into their nodes until these have to be taken.
"""

import numpy as np

from app.graphs.sized import SizedGraph, from_ends
from app.reductions.dismantle.log import DROP, MERGE, PAIR, TAKE
from app.reductions.woken import Kernel, WokenReducer

WIDEST = 64  # neighbours of a node that another may dominate


class DismantleReducer(WokenReducer):
    """Rules on a graph that changes.

    done     entries as (rule, node, others): what `moved` follows
    size, weight   of nodes                  taken    nodes that every set has
    """

    def __init__(self, core: SizedGraph) -> None:
        ptr, columns = core.indptr.tolist(), core.indices.tolist()
        near = {v: set(columns[ptr[v] : ptr[v + 1]]) for v in range(core.n)}
        super().__init__(near, ("small", "merged", "taken", "pairs"))
        self.n, self.most = core.n, core.most
        self.done: list[tuple[int, int, list[int]]] = []
        self.taken: list[int] = []
        self.size: list[int] = core.size.tolist()
        self.weight: list[int] = core.weights.tolist()

    def _rules(self) -> None:
        """Nodes and parts that hang on one by turns."""
        self._nodes()
        while self._hanging():
            self._nodes()

    # ---- rules of one node ---------------------------------------------------------------------------------

    def _look_at(self, v: int) -> None:
        near = self.near[v]
        if self.size[v] > self.most:
            self._take(TAKE, v, [], "taken")
        elif not near:
            self._drop([v])
        elif len(near) == 1 and self.weight[u := next(iter(near))] <= self.weight[v]:
            self._merge(u, [v])
        elif len(near) <= WIDEST and (u := self._dominates(v, near)) >= 0:
            self._take(PAIR, u, [v], "pairs")

    def _dominates(self, u: int, near: set[int]) -> int:
        """The first neighbour v of u that may be taken for it; -1: there is none."""
        size, weight = self.size, self.weight
        for v in sorted(near):
            fits = size[u] <= size[v] and size[u] + size[v] > self.most and weight[v] <= weight[u]
            if fits and len(self.near[v]) >= len(near) and all(x == v or x in self.near[v] for x in near):
                return v
        return -1

    def _take(self, rule: int, v: int, others: list[int], name: str) -> None:
        self.log += [rule, v, *others]
        self.done.append((rule, v, others))
        self.counts[name] += 1
        self.paid += self.weight[v]
        self.taken.append(v)
        near = self._leave(v)
        self._wake(near)
        for u in near:  # others may dominate now
            if len(self.near[u]) <= WIDEST:
                self._wake(sorted(self.near[u]))

    def _drop(self, nodes: list[int]) -> None:
        self.log += [DROP, len(nodes), *nodes]
        self.done.append((DROP, -1, nodes))
        self.counts["small"] += len(nodes)
        for node in nodes:
            self._leave(node)

    def _merge(self, v: int, nodes: list[int]) -> None:
        self.log += [MERGE, v, len(nodes), *nodes]
        self.done.append((MERGE, v, nodes))
        self.counts["merged"] += len(nodes)
        self.size[v] += sum(self.size[node] for node in nodes)
        for node in nodes:
            self._leave(node)
        self._wake([v])
        self._wake(sorted(self.near[v]))

    def _leave(self, node: int) -> list[int]:
        """A node goes; returns its neighbours."""
        near = self.near.pop(node)
        for other in near:
            self.near[other].discard(node)
        return sorted(near)

    # ---- parts that hang on one node -----------------------------------------------------------------------

    def _hanging(self) -> bool:
        """Components that are small, and parts that a node cuts off and that may be merged with it; whether
        there are any.
        """
        self._step(len(self.near))
        seen: set[int] = set()
        parts = []
        for root in sorted(self.near, key=lambda v: (-len(self.near[v]), v)):
            if root not in seen:
                parts.append(_Walk(self.near, root))
                seen.update(parts[-1].order)
        found = False
        for part in parts:
            if sum(self.size[v] for v in part.order) <= self.most:
                self._drop(part.order)
                found = True
            else:
                found |= self._merge_parts(part)
        return found

    def _merge_parts(self, part: "_Walk") -> bool:
        """The largest parts that may be merged with the node that cuts them off; from the root down."""
        order, found = part.order, False
        total = {v: self.size[v] for v in order}
        least = {v: self.weight[v] for v in order}
        for v in reversed(order[1:]):
            above = part.parent[v]
            total[above] += total[v]
            least[above] = min(least[above], least[v])
        children: dict[int, list[int]] = {}
        for v in order[1:]:
            children.setdefault(part.parent[v], []).append(v)
        waiting = [order[0]]
        while waiting:
            v = waiting.pop()
            for child in children.get(v, []):
                apart = part.low[child] >= part.number[v]
                if apart and total[child] <= self.most and least[child] >= self.weight[v]:
                    first = part.number[child]
                    self._merge(v, order[first : first + part.below[child]])
                    found = True
                else:
                    waiting.append(child)
        return found

    # ---- what is left --------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """What is left."""
        kept = sorted(self.near)
        place = {node: i for i, node in enumerate(kept)}
        pairs = [(place[u], place[v]) for u in kept for v in self.near[u] if u < v]
        u, v = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        size, weights = (
            np.array([of[node] for node in kept], dtype=np.int64) for of in (self.size, self.weight)
        )
        return Kernel(from_ends(u, v, size, weights, self.most), np.array(kept, dtype=np.int64), self.paid)

    def lift(self, kernel: Kernel, chosen: np.ndarray) -> np.ndarray:
        """[n] bool, the set of the graph that one of the kernel, [k] bool, stands for."""
        taken = np.zeros(self.n, dtype=bool)
        taken[kernel.nodes[chosen]] = taken[self.taken] = True
        return taken

    def moved(self, kernel: Kernel, solution: np.ndarray) -> np.ndarray:
        """[k] bool, a set of the kernel that together with what is taken weighs no more than one of the
        graph.
        """
        taken = solution.copy()
        for rule, v, others in self.done:
            if rule == MERGE and taken[others].any():
                taken[v] = True
            elif rule == PAIR and not taken[v]:
                taken[others] = False
            taken[others] &= rule == PAIR
        return taken[kernel.nodes]


class _Walk:
    """A depth-first walk of a component.

    order    its nodes as they are met: those below a node follow it    number   of each its place there
    parent   from where it is met        low     the least number that those below reach by one edge
    below    how many nodes are below it, itself included

    Source   Hopcroft and Tarjan, Efficient algorithms for graph manipulation, 1973
    """

    def __init__(self, near: dict[int, set[int]], root: int) -> None:
        self.order, self.parent = [root], {root: -1}
        self.number, self.low, self.below = {root: 0}, {root: 0}, {root: 1}
        path = [(root, iter(sorted(near[root])))]
        while path:
            v, rest = path[-1]
            u = next(rest, None)
            if u is None:
                path.pop()
                above = self.parent[v]
                if above >= 0:
                    self.low[above] = min(self.low[above], self.low[v])
                    self.below[above] += self.below[v]
            elif u not in self.number:
                self.number[u] = self.low[u] = len(self.order)
                self.order.append(u)
                self.parent[u], self.below[u] = v, 1
                path.append((u, iter(sorted(near[u]))))
            elif u != self.parent[v]:
                self.low[v] = min(self.low[v], self.number[u])
