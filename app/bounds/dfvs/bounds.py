"""Lower bounds on directed feedback vertex sets that improve in slices of time, part by part."""

from collections.abc import Callable

import numpy as np

from app.bounds.cycles.bounds import BoundsOfParts
from app.bounds.dfvs.part import DigraphPartBounds
from app.graphs.digraph import Digraph


class DirectedFeedbackBounds(BoundsOfParts):
    """Bounds of one digraph: those of its strongly connected components together. A solution is [n] bool.

    price   [n] int64, above 0
    """

    first_seconds = 3e-6

    def __init__(self, digraph: Digraph, price: np.ndarray) -> None:
        self.digraph = digraph
        label = digraph.components()
        order = np.argsort(label, kind="stable")
        cuts = np.flatnonzero(np.diff(label[order])) + 1
        groups = [nodes for nodes in np.split(order, cuts) if len(nodes) > 1]
        groups.sort(key=lambda nodes: (len(nodes), int(nodes[0])))
        parts = [DigraphPartBounds(digraph.part(nodes), nodes, price[nodes]) for nodes in groups]
        super().__init__(parts, digraph.n + digraph.arcs)

    def _within(self, solution: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda nodes: solution[nodes].astype(bool)

    def _joined(self) -> np.ndarray:
        chosen = np.zeros(self.digraph.n, dtype=bool)
        for part in self._parts:
            chosen[part.nodes] = part.solution
        return chosen
