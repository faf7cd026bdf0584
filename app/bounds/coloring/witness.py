"""What proves a bound on colours of a whole graph: a clique."""

from dataclasses import dataclass

import numpy as np

from app.bounds.certificate import BadCertificate
from app.bounds.feasible import missing_edge
from app.graphs.graph import Graph


@dataclass(frozen=True, eq=False)
class ColoringProof:
    """Of colourings: none has fewer colours than a clique has nodes.

    clique    [k] int64, its nodes
    checked   False where a finished search, or fractional colourings, have found a better bound
    """

    clique: np.ndarray
    checked: bool

    def check(self, graph: Graph) -> None:
        """Prove that every two nodes are adjacent, in a whole graph. Raises BadCertificate."""
        nodes, chosen = self.clique, np.zeros(graph.n, dtype=bool)
        if len(nodes) and not 0 <= nodes.min() <= nodes.max() < graph.n:
            raise BadCertificate(f"{graph.name}: a node of the clique is not in it")
        if len(np.unique(nodes)) < len(nodes):
            raise BadCertificate(f"{graph.name}: a node of the clique is named twice")
        chosen[nodes] = True
        if (pair := missing_edge(graph, chosen)) is not None:
            called = " and ".join(map(graph.called, pair))
            raise BadCertificate(f"{graph.name}: no edge joins nodes {called} of the clique")
