"""Inequalities that a point x violates: of cycles, of dense subgraphs, of cliques (witness.py).

A cycle is violated if its nodes have less than 1 together. With edges that weigh the mean of their ends all
cycles through a root are found by its tree of shortest paths; a spanning tree of the lightest edges finds
many at once. Of a subgraph, edges are worth 1 - x_u - x_v and nodes cost 1 - x_v: it is violated if it is
worth more than -1. Nodes that cost more than their edges are worth are left out, those that cost most first.
"""

import heapq

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from app.graphs.joined import root_of
from app.graphs.multigraph import Multigraph
from app.graphs.orders import places_of

LEAST = 1e-4  # violation of a cut
Cut = tuple[tuple[int, int], ...]  # edges u < v, ascending


class Separation:
    """Of one multigraph.

    edges   (u, v), each double edge once        near   of each node its neighbours with their edges
    """

    def __init__(self, core: Multigraph) -> None:
        self.core, self.n = core, core.n
        u, v, count = core.edges()
        self.u, self.v, self.double = u, v, count == 2
        self.near: list[list[tuple[int, int]]] = [[] for _ in range(core.n)]
        for edge, (a, b) in enumerate(zip(u.tolist(), v.tolist())):
            self.near[a].append((b, edge))
            self.near[b].append((a, edge))
        self._adjacent = [{b for b, _ in each} for each in self.near]

    def doubles(self) -> list[Cut]:
        """Cycles of two nodes."""
        both = zip(self.u[self.double].tolist(), self.v[self.double].tolist())
        return [((a, b), (a, b)) for a, b in both]

    def whole(self) -> Cut:
        """All edges."""
        count = 1 + self.double
        return tuple(zip(np.repeat(self.u, count).tolist(), np.repeat(self.v, count).tolist()))

    # ---- cycles --------------------------------------------------------------------------------------------

    def by_tree(self, x: np.ndarray, most: int) -> list[Cut]:
        """Cycles that edges close with a spanning tree of the lightest ones."""
        weight = x[self.u] + x[self.v]
        part, parent, up, depth = list(range(self.n)), [-1] * self.n, x.tolist(), [0] * self.n
        tree: list[list[int]] = [[] for _ in range(self.n)]
        closing = []
        ends = list(zip(self.u.tolist(), self.v.tolist()))
        for edge in np.argsort(weight, kind="stable").tolist():
            a, b = ends[edge]
            first, second = root_of(part, a), root_of(part, b)
            if first == second:
                closing.append(edge)
                continue
            part[first] = second
            tree[a].append(b)
            tree[b].append(a)
        met = [False] * self.n
        for root in range(self.n):
            if met[root]:
                continue
            met[root], waiting = True, [root]
            while waiting:
                a = waiting.pop()
                for b in tree[a]:
                    if not met[b]:
                        met[b], parent[b], depth[b] = True, a, depth[a] + 1
                        waiting.append(b)
        found = []
        for edge in closing:
            nodes = _path(*ends[edge], parent, depth, up)
            if nodes is not None:
                found.append((sum(up[node] for node in nodes), nodes))
        return _spread(found, most, self.n)

    def by_roots(self, x: np.ndarray, most: int, roots: np.ndarray) -> list[Cut]:
        """Cycles that are light with respect to the shortest paths from each of some roots [r]."""
        length = (x[self.u] + x[self.v]) / 2 + 1e-9
        twice = np.concatenate([length, length])
        rows, columns = np.concatenate([self.u, self.v]), np.concatenate([self.v, self.u])
        matrix = sp.csr_array((twice, (rows, columns)), shape=(self.n, self.n))
        away, before = dijkstra(matrix, indices=roots, limit=1.0, return_predecessors=True)
        found, met = [], set()
        for i, root in enumerate(roots.tolist()):
            far, back = away[i], before[i]
            total = far[self.u] + far[self.v] + length
            outside = (back[self.u] != self.v) & (back[self.v] != self.u)
            good = np.flatnonzero(outside & (total < 1 - LEAST))
            for edge in good[np.argsort(total[good], kind="stable")[:3]].tolist():
                first = _back(back, int(self.u[edge]), root)
                second = _back(back, int(self.v[edge]), root)
                while len(first) > 1 and len(second) > 1 and first[-2] == second[-2]:
                    first.pop()
                    second.pop()
                nodes = first + second[-2::-1]
                key = frozenset(nodes)
                if len(nodes) > 2 and len(key) == len(nodes) and key not in met:
                    met.add(key)
                    found.append((float(x[nodes].sum()), nodes))
        return _spread(found, most, self.n)

    # ---- dense subgraphs -----------------------------------------------------------------------------------

    def dense(self, x: np.ndarray, start: np.ndarray) -> list[Cut]:
        """Subgraphs of the nodes `start` [n] bool that are worth more than they may."""
        worth = 1 - x[self.u] - x[self.v]
        used = (worth > 1e-9) & start[self.u] & start[self.v]
        value, cost = worth.tolist(), (1 - x).tolist()
        near: list[list[tuple[int, int]]] = [[] for _ in range(self.n)]
        for edge in np.flatnonzero(used).tolist():
            times = 1 + int(self.double[edge])
            value[edge] *= times
            a, b = int(self.u[edge]), int(self.v[edge])
            near[a].append((b, edge))
            near[b].append((a, edge))
        gain = [sum(value[edge] for _, edge in near[v]) - cost[v] for v in range(self.n)]
        alive = [bool(near[v]) for v in range(self.n)]
        heap = [(gain[v], v) for v in range(self.n) if alive[v]]
        heapq.heapify(heap)
        total = sum(value[edge] for edge in np.flatnonzero(used).tolist())
        total -= sum(cost[v] for v in range(self.n) if alive[v])
        best, gone, best_at = total, [], 0
        while heap:
            at, v = heapq.heappop(heap)
            if not alive[v] or at != gain[v]:
                continue
            alive[v] = False
            gone.append(v)
            total -= at
            for u, edge in near[v]:
                if alive[u]:
                    gain[u] -= value[edge]
                    heapq.heappush(heap, (gain[u], u))
            if total > best + 1e-9:
                best, best_at = total, len(gone)
        kept = [bool(near[v]) for v in range(self.n)]
        for v in gone[:best_at]:
            kept[v] = False
        return self._components(kept, near, value, cost)

    def _components(
        self, kept: list[bool], near: list[list[tuple[int, int]]], value: list[float], cost: list[float]
    ) -> list[Cut]:
        found = []
        for root in range(self.n):
            if not kept[root]:
                continue
            kept[root], nodes, edges = False, [root], set()
            for v in nodes:
                for u, edge in near[v]:
                    if kept[u]:
                        kept[u] = False
                        nodes.append(u)
                    edges.add(edge)
            inside = set(nodes)
            edges = [edge for edge in edges if int(self.u[edge]) in inside and int(self.v[edge]) in inside]
            if sum(value[edge] for edge in edges) - sum(cost[v] for v in nodes) + 1 > LEAST:
                found.append(self.cut_of(edges))
        return found

    def cut_of(self, edges: list[int]) -> Cut:
        """The subgraph of some edges, double ones twice."""
        own = np.array(sorted(edges), dtype=np.int64)
        count = 1 + self.double[own]
        return tuple(zip(np.repeat(self.u[own], count).tolist(), np.repeat(self.v[own], count).tolist()))

    # ---- cliques -------------------------------------------------------------------------------------------

    def cliques(self, x: np.ndarray, most: int) -> list[tuple[int, ...]]:
        """Nodes that are all joined, four or more, of which more than two would be left."""
        room, found, met = 1 - x, [], set()
        order = np.argsort(x, kind="stable").tolist()
        place = places_of(order)
        for v in order:
            if len(self._adjacent[v]) < 3 or room[v] < LEAST:
                continue
            clique, common = [v], self._adjacent[v]
            while common:
                u = min(common, key=lambda node: place[node])
                clique.append(u)
                common = common & self._adjacent[u]
            key = tuple(sorted(clique))
            if len(key) > 3 and key not in met and room[clique].sum() > 2 + LEAST:
                met.add(key)
                found.append((-float(room[clique].sum()), key))
        return [key for _, key in sorted(found)[:most]]


def _path(a: int, b: int, parent: list[int], depth: list[int], x: list[float]) -> list[int] | None:
    """The nodes between a and b in a tree, these included; None where x of them reaches 1."""
    first, second, total = [a], [b], x[a] + x[b]
    while a != b:
        if total >= 1 - LEAST:
            return None
        if depth[a] < depth[b]:
            b = parent[b]
            second.append(b)
            total += x[b]
        else:
            a = parent[a]
            first.append(a)
            total += x[a]
    total -= x[a]  # counted from both sides
    nodes = first + second[-2::-1]
    return nodes if total < 1 - LEAST and len(nodes) > 2 else None


def _back(before: np.ndarray, node: int, root: int) -> list[int]:
    found = [node]
    while found[-1] != root:
        found.append(int(before[found[-1]]))
    return found


def _spread(found: list[tuple[float, list[int]]], most: int, n: int) -> list[Cut]:
    """The lightest cycles, such that no node is in many."""
    times, chosen = [0] * n, []
    for _, nodes in sorted(found, key=lambda each: (each[0], len(each[1]), each[1])):
        if min(times[node] for node in nodes) > 3:
            continue
        for node in nodes:
            times[node] += 1
        ring = zip(nodes, [*nodes[1:], nodes[0]])
        chosen.append(tuple(sorted((min(a, b), max(a, b)) for a, b in ring)))
        if len(chosen) == most:
            break
    return chosen
