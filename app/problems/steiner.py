"""Steiner trees: the shortest tree of a graph that holds given nodes, the terminals; or, with prizes, the one
whose edges and prizes left out are least.
"""

from typing import ClassVar

import numpy as np

from app.graphs.graph import Graph
from app.graphs.steiner import canonical_tree
from app.problems.unlearned import Unlearned, not_numbers
from app.search.steiner.baselines import STEINER_BASELINES
from app.search.steiner.heaviest import HeaviestTools
from app.search.steiner.prized import PRIZED_BASELINES, PrizedTools
from app.search.steiner.text import read_tree, tree_text
from app.search.steiner.tools import SteinerTools
from app.toolbox import Instance


class SteinerTree(Unlearned):
    """A solution is [n] int64, the parent of each node of a tree (app/graphs/steiner.py), -1 of the
    others.
    """

    name = "steiner"
    sense = "minimise"
    solution = "tree"
    baselines: ClassVar = STEINER_BASELINES | PRIZED_BASELINES
    text, read = staticmethod(tree_text), staticmethod(read_tree)
    canonical = staticmethod(canonical_tree)

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """What is not a parent for each node; whether these make a tree is the toolbox's to see."""
        return not_numbers(graph_rows, solution_all, "parent")

    def toolbox(self, instance: Instance) -> SteinerTools:
        """A quick start, a search and bounds."""
        if instance.beside.heaviest:
            return HeaviestTools(instance, self)
        return SteinerTools(instance, self) if instance.beside.prizes is None else PrizedTools(instance, self)
