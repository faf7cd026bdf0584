"""The linear-programming relaxation of weighted vertex cover without compiled kernels.

Step for step app/native/half.c, where the mathematics is stated.
"""

from collections import deque
from dataclasses import dataclass

UNDECIDED, OUT, COVER = range(3)


@dataclass
class HalfIntegral:
    """Nodes that some optimal cover leaves out or holds, by maximum flow in the bipartite double cover.

    Node L_v of the double cover has number v, R_v has k + v. Arc e of row v leads from L_v to R_col, and from
    R_v to L_col where the opposite arc back[e] carries flow.

    indptr   [k+1], indices [arcs]: ascending rows; weight [k]
    after solve(): side [k] UNDECIDED, OUT or COVER; flow [arcs] of the arcs L_row -> R_col
    """

    indptr: list[int]
    indices: list[int]
    weight: list[int]

    def solve(self, most_phases: int | None = None) -> None:
        """Fill side and flow; nothing is decided where `most_phases` of the flow were not enough."""
        self.k = k = len(self.weight)
        self.side, self.flow = [UNDECIDED] * k, [0] * len(self.indices)
        self.sent, self.got = [0] * k, [0] * k
        self._find_opposites()
        if all(w == 1 for w in self.weight):
            self._match_greedily()
        else:
            self._send_greedily()
        phases = 0
        while self._set_levels():
            self._send_along_levels()
            phases += 1
            if phases == most_phases:
                return
        self._decide_reached()
        self._decide_components()

    def _row(self, node: int) -> int:
        return node if node < self.k else node - self.k

    def _target(self, node: int, e: int) -> int:
        return self.indices[e] + self.k if node < self.k else self.indices[e]

    def _open(self, node: int, e: int) -> bool:
        return node < self.k or self.flow[self.back[e]] > 0

    def _drains(self, node: int) -> bool:
        return node >= self.k and self.got[node - self.k] < self.weight[node - self.k]

    def _arcs(self, node: int) -> range:
        row = self._row(node)
        return range(self.indptr[row], self.indptr[row + 1])

    def _find_opposites(self) -> None:
        place = self.indptr[:-1]
        self.back = [0] * len(self.indices)
        for e, column in enumerate(self.indices):
            self.back[e] = place[column]
            place[column] += 1

    def _send_greedily(self) -> None:
        for v in range(self.k):
            for e in self._arcs(v):
                u = self.indices[e]
                amount = min(self.weight[u] - self.got[u], self.weight[v] - self.sent[v])
                self.flow[e] += amount
                self.sent[v] += amount
                self.got[u] += amount

    def _match_greedily(self) -> None:
        """Where all weights are one: nodes with one free neighbour first, then the left by degree.

        Each takes the free neighbour that has the fewest others (Karp and Sipser 1981).
        """
        k, arcs = self.k, self._arcs
        degree = [len(arcs(node)) for node in range(2 * k)]
        order = iter(sorted(range(k), key=degree.__getitem__))
        waiting = deque(node for node in range(2 * k) if degree[node] == 1)
        free = [True] * (2 * k)
        while (node := waiting.popleft() if waiting else next(order, None)) is not None:
            near = [e for e in arcs(node) if free[self._target(node, e)]] if free[node] else []
            if not near:
                continue
            e = min(near, key=lambda e: degree[self._target(node, e)])
            left, right = (node, self.indices[e]) if node < k else (self.indices[e], node - k)
            self.flow[e if node < k else self.back[e]] = self.sent[left] = self.got[right] = 1
            free[left] = free[k + right] = False
            for end in (left, k + right):
                for arc in arcs(end):
                    to = self._target(end, arc)
                    degree[to] -= 1
                    if degree[to] == 1:
                        waiting.append(to)

    def _set_levels(self) -> bool:
        """Breadth-first levels from the nodes the source still feeds; whether the sink is reached."""
        self.level = level = [-1] * (2 * self.k)
        queue = [v for v in range(self.k) if self.sent[v] < self.weight[v]]
        for v in queue:
            level[v] = 0
        last = None
        for node in queue:
            if last is not None and level[node] >= last:
                break
            if self._drains(node):
                last = level[node]
                continue
            for e in self._arcs(node):
                to = self._target(node, e)
                if level[to] < 0 and self._open(node, e):
                    level[to] = level[node] + 1
                    queue.append(to)
        return last is not None

    def _send_along_levels(self) -> None:
        """One phase of Dinic's algorithm."""
        self.next = self.indptr[:-1] * 2
        for v in range(self.k):
            while self.sent[v] < self.weight[v] and self.level[v] == 0 and self._find_path(v):
                pass

    def _find_path(self, root: int) -> bool:
        """Send along one path from `root`, rising levels, depth first; a dead end loses its level."""
        node, path = root, []
        while not self._drains(node):
            e = self._step(node)
            if e is not None:
                path.append((node, e))
                node = self._target(node, e)
                continue
            self.level[node] = -1
            if not path:
                return False
            node, _ = path.pop()
            self.next[node] += 1
        self._augment(root, node, path)
        return True

    def _step(self, node: int) -> int | None:
        """The first arc from here on that leads one level up."""
        end = self.indptr[self._row(node) + 1]
        while self.next[node] < end:
            e = self.next[node]
            if self.level[self._target(node, e)] == self.level[node] + 1 and self._open(node, e):
                return e
            self.next[node] += 1
        return None

    def _augment(self, root: int, end: int, path: list[tuple[int, int]]) -> None:
        carried = [self.flow[self.back[e]] for node, e in path if node >= self.k]
        room = self.weight[end - self.k] - self.got[end - self.k]
        amount = min([self.weight[root] - self.sent[root], room, *carried])
        for node, e in path:
            if node < self.k:
                self.flow[e] += amount
            else:
                self.flow[self.back[e]] -= amount
        self.sent[root] += amount
        self.got[end - self.k] += amount

    def _decide_reached(self) -> None:
        for v in range(self.k):
            left, right = self.level[v] >= 0, self.level[self.k + v] >= 0
            if left != right:
                self.side[v] = OUT if left else COVER

    def _decide_component(self, nodes: list[int]) -> None:
        """Decide a component that holds no node twice and whose arcs stay inside or lead to decided nodes."""
        number = self.component[nodes[0]]
        for node in nodes:
            row = self._row(node)
            mirror = node + self.k if node < self.k else row
            if self.side[row] or self.component[mirror] == number:
                return
            for e in self._arcs(node):
                inside = self.side[self.indices[e]] or self.component[self._target(node, e)] == number
                if self._open(node, e) and not inside:
                    return
        for node in nodes:
            self.side[self._row(node)] = OUT if node < self.k else COVER

    def _decide_components(self) -> None:
        """Tarjan's algorithm; components come out sinks first."""
        nodes = 2 * self.k
        self.next = self.indptr[:-1] * 2
        self.order, self.low, self.component = [-1] * nodes, [-1] * nodes, [-1] * nodes
        self.found = self.numbered = 0
        for root in range(nodes):
            if self.order[root] < 0:
                self._components_from(root)

    def _visit(self, node: int, stack: list[int]) -> None:
        self.order[node] = self.low[node] = self.found
        self.found += 1
        stack.append(node)

    def _components_from(self, root: int) -> None:
        stack, path = [], [root]
        self._visit(root, stack)
        while path:
            node = path[-1]
            to = self._unseen(node)
            if to is not None:
                path.append(to)
                self._visit(to, stack)
                continue
            if self.low[node] == self.order[node]:
                self._close(node, stack)
            path.pop()
            if path:
                self.low[path[-1]] = min(self.low[path[-1]], self.low[node])

    def _unseen(self, node: int) -> int | None:
        """The next node not yet seen behind an open arc; on the way, low follows the others."""
        end = self.indptr[self._row(node) + 1]
        while self.next[node] < end:
            e = self.next[node]
            self.next[node] += 1
            if not self._open(node, e):
                continue
            to = self._target(node, e)
            if self.order[to] < 0:
                return to
            if self.component[to] < 0:
                self.low[node] = min(self.low[node], self.order[to])
        return None

    def _close(self, node: int, stack: list[int]) -> None:
        """Take the component of its first node off the stack."""
        first = len(stack) - 1
        while stack[first] != node:
            first -= 1
        nodes = stack[first:]
        del stack[first:]
        for member in nodes:
            self.component[member] = self.numbered
        self.numbered += 1
        self._decide_component(nodes)
