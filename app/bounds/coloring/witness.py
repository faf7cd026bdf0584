"""What proves a bound on colours of a whole graph: a clique, a closed walk of odd length, values of nodes."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from app.bounds.certificate import BadCertificate
from app.bounds.coloring.heaviest import TooLong, exceeds
from app.bounds.feasible import missing_edge
from app.graphs.derived import induced
from app.graphs.graph import Graph, holds_entries
from app.graphs.keys import sorted_set

MOST_VALUES, LARGEST = 2_000, 1 << 40  # nodes that have values, and each of these
ODD = 3  # colours of a graph with a closed walk of odd length


@dataclass(frozen=True, eq=False)
class ColoringProof:
    """Of colourings: none has fewer colours than a clique has nodes, and none has two where a closed walk has
    an odd number of edges. Where no independent set holds nodes whose values add up to more than `most`, it
    has sum(values) / most colours at least: a fractional colouring.

    clique    [k] int64, its nodes
    walk      [m] int64, the nodes of the walk in order, the last next to the first; none: no walk is known
    nodes     [q] int64, ascending, those that have values [q] int64, above 0; none: no values are known
    most      what no independent set of them is worth more than, which a search proves again
    checked   False where a finished search has found a better bound
    """

    clique: np.ndarray
    walk: np.ndarray
    nodes: np.ndarray
    values: np.ndarray
    most: int
    checked: bool

    @property
    def lower(self) -> int:
        """No colouring has fewer colours."""
        fractional = -(-int(self.values.sum()) // self.most) if len(self.values) else 0
        return max(len(self.clique), ODD if len(self.walk) else 0, fractional)

    def check(self, graph: Graph) -> None:
        """Prove that all edges of clique and walk are there, in a whole graph, and no set of nodes is worth
        more than it says. Raises BadCertificate.
        """
        for nodes, what in ((self.clique, "clique"), (self.walk, "walk"), (self.nodes, "values")):
            if len(nodes) and not 0 <= nodes.min() <= nodes.max() < graph.n:
                raise BadCertificate(f"{graph.name}: a node of the {what} is not in it")
        if len(sorted_set(self.clique)) < len(self.clique):
            raise BadCertificate(f"{graph.name}: a node of the clique is named twice")
        self._check_values(graph)
        chosen = np.zeros(graph.n, dtype=bool)
        chosen[self.clique] = True
        if (pair := missing_edge(graph, chosen)) is not None:
            called = " and ".join(map(graph.called, pair))
            raise BadCertificate(f"{graph.name}: no edge joins nodes {called} of the clique")
        if not holds_entries(graph.indptr, graph.indices, self.walk, np.roll(self.walk, -1)).all():
            raise BadCertificate(f"{graph.name}: the walk takes an edge that is not there")
        if len(self.walk) and len(self.walk) % 2 == 0:
            raise BadCertificate(f"{graph.name}: the walk has an even number of edges")

    def _check_values(self, graph: Graph) -> None:
        """Prove that no independent set is worth more than `most`. Raises BadCertificate."""
        if len(self.nodes) != len(self.values) or (np.diff(self.nodes) <= 0).any():
            raise BadCertificate(f"{graph.name}: values are not one for each node, in order")
        if not len(self.values):
            return
        if len(self.values) > MOST_VALUES or not 0 < self.values.min() <= self.values.max() <= LARGEST:
            raise BadCertificate(
                f"{graph.name}: values are not of up to {MOST_VALUES:,} nodes, 1 to {LARGEST:,}"
            )
        if self.most < 1:
            raise BadCertificate(f"{graph.name}: no set is worth less than 1")
        try:
            most = min(self.most, int(self.values.sum()))  # which fits into 63 bits
            heavier = exceeds(induced(graph, self.nodes), self.values, most)
        except TooLong:
            raise BadCertificate(f"{graph.name}: its values take too long to check") from None
        if heavier:
            raise BadCertificate(f"{graph.name}: an independent set is worth more than {self.most:,}")


def odd_walk(graph: Graph) -> np.ndarray:
    """[m] int64, the nodes of a closed walk with an odd number of edges; none in a bipartite graph.

    In the double cover, where an edge leads from one copy of the nodes to the other, it is a path from a node
    to its copy.
    """
    ones = np.ones(len(graph.indices), dtype=np.int8)
    near = sparse.csr_array((ones, graph.indices, graph.indptr), shape=(graph.n, graph.n))
    double = sparse.block_array([[None, near], [near, None]], format="csr") if graph.n else near
    piece = connected_components(double, directed=False)[1]
    odd = np.flatnonzero(piece[: graph.n] == piece[graph.n :])
    if not len(odd):
        return np.empty(0, dtype=np.int64)
    start = int(odd[0])
    before = breadth_first_order(double, start, return_predecessors=True)[1]
    walk, node = [], start + graph.n
    while node != start:
        walk.append(node % graph.n)
        node = int(before[node])
    return np.array(walk, dtype=np.int64)
