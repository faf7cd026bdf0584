"""Maximum clique: the most nodes of which every two are adjacent."""

from typing import ClassVar

import numpy as np

from app.bounds.clique.degeneracy import coloured, peeled_off
from app.bounds.feasible import missing_edge
from app.graphs.graph import Graph
from app.problems.mis import MaximumIndependentSet
from app.search.clique.baselines import CLIQUE_BASELINES
from app.search.clique.tools import CliqueTools
from app.toolbox import Instance


class MaximumClique(MaximumIndependentSet):
    """State: that of the independent set that a clique is of the complement, whose rows environments hold.

    A choice takes a node into the clique, and rules out all that it is not joined to. Objective, checks,
    baselines and bounds are of the graph itself.
    """

    name = "clique"
    solution = "clique"
    complemented = True
    baselines: ClassVar = CLIQUE_BASELINES
    bounds: ClassVar = {"core_numbers": peeled_off, "colouring": coloured}
    known = False

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """Two nodes of the set without an edge."""
        pair = missing_edge(graph_rows, solution_all)
        if pair is None:
            return None
        return f"holds nodes {' and '.join(map(graph_rows.called, pair))}, which no edge joins"

    def toolbox(self, instance: Instance) -> CliqueTools:
        """Reductions, search and bounds of cliques."""
        return CliqueTools(instance, self)
