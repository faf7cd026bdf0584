"""An independent check of tree decompositions: from bags and edges alone, however they were made."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order

from app.graphs.graph import Graph


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Bags of nodes, and edges between bags.

    ptr     [b+1] int64, where each bag begins in nodes [k] int64
    edges   [b-1, 2] int64, bags joined in a tree; none where there is no bag
    """

    ptr: np.ndarray
    nodes: np.ndarray
    edges: np.ndarray

    @property
    def bags(self) -> int:
        """How many there are."""
        return len(self.ptr) - 1

    @property
    def bag_of(self) -> np.ndarray:
        """[k] int64, the bag of each entry of `nodes`."""
        return np.repeat(np.arange(self.bags), np.diff(self.ptr))

    def heaviest(self, weights: np.ndarray | None = None) -> int:
        """The most nodes, or weight [n] int64, of a bag."""
        if weights is None:
            return int(np.diff(self.ptr).max(initial=0))
        sums = np.concatenate([[0], np.cumsum(weights[self.nodes])])
        return int(np.diff(sums[self.ptr]).max(initial=0))


def fault_of(graph: Graph, made: Decomposition) -> str | None:
    """What keeps bags from being a tree decomposition of a whole graph, in words; None: they are one.

    Each node is in a bag, the bags of each node hang together (a forest has as many nodes as edges and
    trees), and so each edge is in a bag: of its two ends one is in the highest bag of the other.
    """
    bag_of, nodes, n, bags = made.bag_of, made.nodes, graph.n, made.bags
    if len(nodes) and not 0 <= nodes.min() <= nodes.max() < n:
        return "has a bag with a node that is not in the graph"
    entries = np.sort(bag_of * n + nodes)
    if (np.diff(entries) == 0).any():
        return "has a bag that holds a node twice"
    count = np.bincount(nodes, minlength=n)
    if (count == 0).any():
        return f"has no bag with node {graph.called(int((count == 0).argmax()))}"
    if (wrong := _no_tree(made.edges, bags)) is not None:
        return wrong
    upper, place = _rooted(made.edges, bags)
    below = upper >= 0
    shared = _holds(entries, upper[bag_of] * n + nodes) & below[bag_of]
    joined = np.bincount(nodes[shared], minlength=n)
    if (apart := np.flatnonzero(count - joined != 1)).size:
        return f"has bags with node {graph.called(int(apart[0]))} that do not hang together"
    highest = np.zeros(n, dtype=np.int64)
    highest[nodes[~shared]] = bag_of[~shared]  # where the bag above is without the node
    u, v = graph.row_of(), graph.indices.astype(np.int64)
    deeper = np.where(place[highest[u]] >= place[highest[v]], u, v)
    other = u + v - deeper
    lost = np.flatnonzero(~_holds(entries, highest[deeper] * n + other))
    return (
        f"has no bag with both ends of edge {graph.called(int(u[lost[0]]), int(v[lost[0]]))}"
        if lost.size
        else None
    )


def _holds(ascending: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """[k] bool, which of the wanted numbers [k] are among ascending ones."""
    at = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return ascending[at] == wanted if len(ascending) else np.zeros(len(wanted), dtype=bool)


def _no_tree(edges: np.ndarray, bags: int) -> str | None:
    """What keeps edges between bags from being a tree."""
    if len(edges) and not 0 <= edges.min() <= edges.max() < bags:
        return "joins a bag that is not there"
    if len(edges) != max(bags - 1, 0):
        return f"has {len(edges)} edges between {bags} bags; {max(bags - 1, 0)}, a tree, would be right"
    if bags and (_rooted(edges, bags)[1] < 0).any():
        return "has bags that no edges of its tree lead to"
    return None


def _rooted(edges: np.ndarray, bags: int) -> tuple[np.ndarray, np.ndarray]:
    """[b] int64 each: the bag above each, -1 for bag 0, and its place in breadth-first order, after that of
    the bag above; -1 where it is not reached.
    """
    upper, place = (np.full(bags, -1, dtype=np.int64) for _ in range(2))
    if not bags:
        return upper, place
    ones = np.ones(len(edges), dtype=np.int8)
    tree = sparse.csr_array((ones, (edges[:, 0], edges[:, 1])), shape=(bags, bags))
    reached, above = breadth_first_order(tree, 0, directed=False)
    place[reached] = np.arange(len(reached))
    upper[reached[1:]] = above[reached[1:]]
    return upper, place
