"""FeedbackReducer: what is left of a feedback vertex set problem once nodes are decided that can be.

Source   degrees up to two, double edges: Bafna, Berman and Fujito, SIAM J. Discrete Mathematics 1999;
         Bodlaender and van Dijk, A cubic kernel for feedback vertex set and loop cutset, Theory of Computing
         Systems 2010; domination: the rule of vertex covers, on double edges
"""

import numpy as np

from app.graphs.multigraph import Multigraph, from_pairs
from app.reductions.fvs.log import CUT, LEAF, PATH, SHIFT, TAKE
from app.reductions.woken import Kernel, WokenReducer

WIDEST = 64  # neighbours of a node that is looked at for domination


class FeedbackReducer(WokenReducer):
    """Rules on a multigraph that changes.

    near     of each node that is left its neighbours and how many edges lead there: {node: 1 or 2}
    done     entries as (rule, node, other): what `lift` undoes, the last first
    weight   of nodes
    """

    def __init__(self, core: Multigraph) -> None:
        ptr, columns, twice = core.indptr.tolist(), core.indices.tolist(), core.twice.tolist()
        near = {v: {columns[j]: 1 + twice[j] for j in range(ptr[v], ptr[v + 1])} for v in range(core.n)}
        super().__init__(near, ("leaves", "paths", "taken", "shifted", "bridges"))
        self.n = core.n
        self.done: list[tuple[int, int, int]] = []
        self.weight: list[int] = core.weights.tolist()

    def _rules(self) -> None:
        """Nodes and bridges by turns."""
        self._nodes()
        while self._cut():
            self._nodes()

    # ---- rules of one node ---------------------------------------------------------------------------------

    def _look_at(self, v: int) -> None:
        near = self.near[v]
        degree = sum(near.values()) if len(near) < 3 else len(near)
        if degree < 2:
            self._note(LEAF, v, -1, "leaves")
            self._wake(self._leave(v))
        elif degree == 2 and len(near) == 2:
            self._path(v, *near)
        elif len(near) <= WIDEST:
            self._double(v, near)

    def _path(self, v: int, a: int, b: int) -> None:
        """A node between two."""
        weight = self.weight
        if min(weight[a], weight[b]) > weight[v]:
            return
        self._note(PATH, v, a if weight[a] <= weight[b] else b, "paths")
        self._leave(v)
        self.near[a][b] = self.near[b][a] = min(self.near[a].get(b, 0) + 1, 2)
        self._wake((a, b))
        if self.near[a][b] == 2:  # others may dominate now
            self._wake(self.near[a])
            self._wake(self.near[b])

    def _double(self, v: int, near: dict[int, int]) -> None:
        """A node with double edges."""
        pairs = [u for u, count in near.items() if count == 2]
        for u in pairs:
            lighter = self.weight[u] <= self.weight[v]
            if lighter and self._dominates(u, v, near):
                self.paid += self.weight[u]
                self.log.append(TAKE)
                self.log += [u, v]
                self.done.append((TAKE, u, v))
                self.counts["taken"] += 1
                self._wake(self._leave(u))
                return
            if not lighter and sum(near.values()) <= 3:
                self._note(SHIFT, v, u, "shifted")
                self.paid += self.weight[v]
                self.weight[u] -= self.weight[v]
                self._wake(self._leave(v))
                self._wake(self.near[u])
                return

    def _dominates(self, u: int, v: int, near: dict[int, int]) -> bool:
        """Whether all other neighbours of v have a double edge to u, but for one with a single edge to v."""
        beyond, spared = self.near[u], False
        for x, count in near.items():
            if x == u or beyond.get(x, 0) == 2:
                continue
            if spared or count == 2:
                return False
            spared = True
        return True

    def _note(self, rule: int, v: int, other: int, name: str) -> None:
        self.log += [rule, v]
        self.done.append((rule, v, other))
        self.counts[name] += 1

    def _leave(self, node: int) -> list[int]:
        """A node goes; returns its neighbours."""
        near = self.near.pop(node)
        for other in near:
            del self.near[other][node]
        return list(near)

    # ---- bridges -------------------------------------------------------------------------------------------

    def _cut(self) -> bool:
        """Edges that no cycle has; whether there are any."""
        self._step(len(self.near))
        found = bridges(self.near)
        if found:
            self.log += [CUT, len(found), *(node for edge in found for node in edge)]
            self.counts["bridges"] += len(found)
        for u, v in found:
            del self.near[u][v], self.near[v][u]
            self._wake((u, v))
        return bool(found)

    # ---- what is left --------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """What is left."""
        kept = sorted(self.near)
        place = {node: i for i, node in enumerate(kept)}
        triples = [(place[u], place[v], count) for u in kept for v, count in self.near[u].items() if u < v]
        u, v, count = np.array(triples, dtype=np.int64).reshape(-1, 3).T
        weights = np.array([self.weight[node] for node in kept], dtype=np.int64)
        return Kernel(from_pairs(u, v, count, weights), np.array(kept, dtype=np.int64), self.paid)

    def lift(self, kernel: Kernel, chosen: np.ndarray) -> np.ndarray:
        """[n] bool, the set of the graph that one of the kernel, [k] bool, stands for."""
        taken = np.zeros(self.n, dtype=bool)
        taken[kernel.nodes[chosen]] = True
        for rule, v, other in reversed(self.done):
            if rule == TAKE:
                taken[v] = True
            elif rule == SHIFT:
                taken[v] = not taken[other]
        return taken

    def moved(self, kernel: Kernel, solution: np.ndarray) -> np.ndarray:
        """[k] bool, a set of the kernel that together with what is taken weighs no more than one of the
        graph.
        """
        taken = solution.copy()
        for rule, v, other in self.done:
            if rule == PATH and taken[v]:
                taken[other] = True
            elif rule == TAKE and not taken[v]:
                taken[v], taken[other] = True, False
        return taken[kernel.nodes]


def bridges(near: dict[int, dict[int, int]]) -> list[tuple[int, int]]:
    """The single edges that no cycle has. Source: Tarjan, A note on finding the bridges of a graph, 1974."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    found = []
    for root in near:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        path = [(root, -1, iter(near[root]))]
        while path:
            v, parent, rest = path[-1]
            u = next(rest, None)
            if u is None:
                path.pop()
                if parent < 0:
                    continue
                low[parent] = min(low[parent], low[v])
                if low[v] == number[v] and near[v][parent] == 1:
                    found.append((parent, v))
            elif u not in number:
                number[u] = low[u] = len(number)
                path.append((u, v, iter(near[u])))
            elif u != parent:
                low[v] = min(low[v], number[u])
    return found
