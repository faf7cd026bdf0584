"""The clique-cover bound: a cover leaves out at most one node of each clique."""

from dataclasses import dataclass

import numpy as np

from app.bounds.certificate import BadCertificate, Bound
from app.graphs.graph import Graph


@dataclass(frozen=True, eq=False)
class CliqueCover(Bound):
    """No vertex cover has fewer than `lower` nodes: n minus the number of cliques the nodes fall into.

    clique   [n] int64   the clique of each node; an independent set has at most one node of each
    """

    lower: int
    method: str
    clique: np.ndarray

    def check(self, graph: Graph) -> None:
        """Prove the bound: every two nodes of a clique are joined by an edge. Raises BadCertificate."""
        if self.clique.shape != (graph.n,) or (graph.n and self.clique.min() < 0):
            raise BadCertificate(f"{self.method}: not every node of {graph.name} has a clique")
        rows = graph.row_of()
        inside = self.clique[rows] == self.clique[graph.indices]
        joined = np.bincount(rows[inside], minlength=graph.n)
        size = np.bincount(self.clique, minlength=1)
        short = np.flatnonzero(joined != size[self.clique] - 1)
        if len(short):
            raise BadCertificate(f"{self.method}: node {short[0]} is not joined to all of its clique")
        proved = graph.n - np.count_nonzero(size) if graph.n else 0
        if proved != self.lower:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.lower}"
            )


def clique_cover(graph: Graph) -> CliqueCover:
    """Greedy: each node, those of low degree first, joins the largest clique that it is joined to entirely.

    graph    whole
    returns  n minus the number of cliques; strong on dense graphs, where the LP bound is n/2
    Source   greedy colouring of the complement (Welsh and Powell 1967), on the edges of the graph itself
    """
    indptr, indices = graph.indptr.tolist(), graph.indices.tolist()
    clique, size = [-1] * graph.n, []
    for node in np.argsort(graph.degrees(), kind="stable").tolist():
        met: dict[int, int] = {}
        for other in indices[indptr[node] : indptr[node + 1]]:
            c = clique[other]
            if c >= 0:
                met[c] = met.get(c, 0) + 1
        best, largest = -1, 0
        for c, count in met.items():
            if count == size[c] and count > largest:
                best, largest = c, count
        if best < 0:
            best = len(size)
            size.append(0)
        clique[node] = best
        size[best] += 1
    return CliqueCover(graph.n - len(size), "clique cover", np.array(clique, dtype=np.int64))
