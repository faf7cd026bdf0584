"""Trees that the work on bounds comes upon, and the best of them."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree

from app.bounds.steiner.net import Net
from app.graphs.steiner import SteinerCore, tree_of_edges


class Best:
    """The best tree of a core that is known.

    upper    its length; trees of interest are shorter
    parent   [n] int64, the tree, where it was found here; else None
    """

    def __init__(self, core: SteinerCore, upper: int) -> None:
        self.core, self.upper = core, upper
        self.parent: np.ndarray | None = None
        self._row = core.row_of()
        self._wanted = np.zeros(core.n, dtype=bool)
        self._wanted[core.terminals] = True

    def know(self, upper: int) -> None:
        """A tree of this length is known elsewhere."""
        if upper < self.upper:
            self.upper, self.parent = upper, None

    def offer(self, net: Net, length: np.ndarray) -> bool:
        """A tree along the arcs of a net by these lengths [nnz], see Net.tree; whether it is better."""
        parent = net.tree(length)
        if parent is None:
            return False
        return self.offer_nodes(net.node[np.flatnonzero(parent >= 0)])

    def offer_nodes(self, nodes: np.ndarray) -> bool:
        """The least tree of the core on some nodes [k], which hang together; whether it is better."""
        core = self.core
        inside = np.zeros(core.n, dtype=bool)
        inside[nodes] = True
        kept = np.flatnonzero(inside[self._row] & inside[core.indices] & (self._row < core.indices))
        place = np.cumsum(inside) - 1
        u, v, length = self._row[kept], core.indices[kept].astype(np.int64), core.lengths[kept]
        k = len(nodes)
        rows = sp.csr_array((length.astype(np.float64), (place[u], place[v])), shape=(k, k))
        spanning = minimum_spanning_tree(rows).tocoo()
        nodes = np.flatnonzero(inside)
        u, v = without_loose_ends(core.n, nodes[spanning.row], nodes[spanning.col], self._wanted)
        total = int(core.lengths_of(u, v).sum())
        if total >= self.upper:
            return False
        parent = tree_of_edges(core.n, u, v, int(core.terminals[0]))
        if (parent[core.terminals] < 0).any():
            return False
        self.upper, self.parent = total, parent
        return True


def without_loose_ends(
    n: int, u: np.ndarray, v: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The edges u[i]-v[i] [m] of a tree that are left when leaves that are not wanted are gone."""
    while True:
        degree = np.bincount(np.concatenate([u, v]), minlength=n)
        loose = (degree == 1) & ~wanted
        kept = ~(loose[u] | loose[v])
        if kept.all():
            return u, v
        u, v = u[kept], v[kept]
