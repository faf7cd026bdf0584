"""The linear program of the inequalities of witness.py, solved by HiGHS, and what its points violate.

With x as lengths of nodes the shortest paths from a root tell how far all nodes are; those nearer than 1 have
a violated inequality if what their sizes lack of 1, times sizes, is more than K. Trees of few nodes are those
of the nodes of the least x, one after the other.
"""

import heapq

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from app.bounds.dismantle.trees import Cliques, clique_right
from app.bounds.dismantle.witness import sparse_row
from app.bounds.fvs.program import FeedbackProgram, Pool
from app.graphs.sized import SizedGraph

LEAST = 1e-4  # violation of an inequality, beside a right side of 1
ROOTS = 300  # roots of a round
MOST_CELLS = 4_000_000  # of a table of distances
Tree = tuple[tuple[int, ...], tuple[int, ...]]  # nodes, the places of those above


class TreePool(Pool):
    """Inequalities of one graph: of trees where those of feedback vertex sets are of subgraphs."""

    def __init__(self, core: SizedGraph) -> None:
        super().__init__(core.n)
        self.size, self.most = core.size.tolist(), core.most

    def add(self, cut: Tree) -> int | None:
        """The number of a new tree, or of the subgraph of edges that two lists name; None: it is known."""
        if (0, cut) in self.keys:
            return None
        if cut[1][0] >= 0:
            ends = (np.array(each, dtype=np.int64) for each in cut)
            return self._add((0, cut), *sparse_row(*ends, np.array(self.size), self.most))
        nodes, above = cut
        below = [self.size[v] for v in nodes]
        for i in range(len(nodes) - 1, 0, -1):
            below[above[i]] += below[i]
        right = below[0] - self.most
        coefficients = np.array([min(each, right) for each in below], dtype=np.int64)
        return self._add((0, cut), np.array(nodes, dtype=np.int64), coefficients, right)


class TreeSeparation:
    """Inequalities that points of one graph violate.

    u, v   edges
    """

    def __init__(self, core: SizedGraph) -> None:
        self.core, self.n = core, core.n
        self.u, self.v = core.edges()
        ptr, columns = core.indptr.tolist(), core.indices.tolist()
        self.near = [columns[ptr[v] : ptr[v + 1]] for v in range(core.n)]
        self.size = core.size.tolist()
        self._cliques = Cliques(core) if core.degrees().max(initial=0) >= core.most else None

    def small(self, x: np.ndarray, roots: list[int]) -> list[tuple[float, Tree]]:
        """Trees just too large, of nodes of little x."""
        cost, found, met = x.tolist(), [], set()
        for root in roots:
            nodes, above, total, length = [], [], 0, 0.0
            heap, known = [(cost[root], root, -1)], {root}
            while heap and total <= self.core.most and length < 1 - LEAST:
                far, v, up = heapq.heappop(heap)
                nodes.append(v)
                above.append(up)
                total += self.size[v]
                length += far
                for u in self.near[v]:
                    if u not in known:
                        known.add(u)
                        heapq.heappush(heap, (cost[u], u, len(nodes) - 1))
            key = frozenset(nodes)
            if total > self.core.most and length < 1 - LEAST and key not in met:
                met.add(key)
                found.append((length - 1, (tuple(nodes), tuple(above))))
        return found

    def wide(self, x: np.ndarray, roots: list[int]) -> list[tuple[float, Tree]]:
        """Trees of shortest paths of all nodes that are nearer than 1."""
        rows, columns = np.concatenate([self.u, self.v]), np.concatenate([self.v, self.u])
        matrix = sp.csr_array((x[columns] + 1e-9, (rows, columns)), shape=(self.n, self.n))
        roots = roots[: max(MOST_CELLS // max(self.n, 1), 1)]
        if not roots:
            return []
        away, before = dijkstra(matrix, indices=roots, limit=1.0, return_predecessors=True)
        found, most, size = [], self.core.most, self.core.size
        for i, root in enumerate(roots):
            far = away[i] + x[root]
            near = np.flatnonzero(far < 1)
            lack = float(((1 - far[near]) * size[near]).sum()) - most
            if lack <= LEAST * most:
                continue
            order = near[np.argsort(far[near], kind="stable")]
            place = np.full(self.n, -1)
            place[order] = np.arange(len(order))
            up = np.where(order == root, -1, place[np.maximum(before[i][order], 0)])
            if order[0] != root or (up[1:] >= np.arange(1, len(order))).any() or (up[1:] < 0).any():
                continue  # ties that rounding has put in another order
            right = int(size[order].sum()) - most
            found.append((-lack / right, (tuple(order.tolist()), tuple(up.tolist()))))
        return found

    def cliques(self, x: np.ndarray, most: int) -> list[tuple[int, ...]]:
        """Nodes that are all joined, of which too many would be left."""
        if self._cliques is None:
            return []
        length, found, met = x.tolist(), [], set()
        for root in np.argsort(x, kind="stable").tolist():
            clique = tuple(self._cliques.around(root, length))
            right = self._cliques.right(list(clique))
            if right and clique not in met and (lack := right - float(x[list(clique)].sum())) > LEAST:
                met.add(clique)
                found.append((-lack / right, clique))
        return [clique for _, clique in sorted(found)[:most]]


class TreeProgram(FeedbackProgram):
    """The program of one connected graph; nodes may be kept or taken."""

    def parts_of(self, core: SizedGraph) -> tuple[TreePool, TreeSeparation]:
        """Where inequalities are kept, and what finds them."""
        return TreePool(core), TreeSeparation(core)

    def _clique_right(self, clique: tuple[int, ...]) -> int:
        return clique_right([int(self.core.size[v]) for v in clique], self.core.most)
