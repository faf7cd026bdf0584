"""Balanced partition: blocks of nodes, none too heavy, such that edges between them weigh as little as may
be.
"""

from functools import partial
from typing import ClassVar

import numpy as np

from app.graphs.contracted import numbered
from app.graphs.graph import Graph
from app.search.partition.baselines import PARTITION_BASELINES
from app.search.partition.tools import PartitionTools
from app.search.solution_text import colors_text, read_colors
from app.toolbox import Instance


class Partition:
    """A solution is [n] int64, the block of each node, from 0 on. What is asked: app/graphs/balance.py.

    No policy answers it, so that it has no states.
    """

    name = "partition"
    sense = "minimise"
    solution = "blocks"
    dynamics = ""
    redundancy = ""
    baselines: ClassVar = PARTITION_BASELINES
    bounds: ClassVar = {}
    complemented = False
    known = False
    text, read = staticmethod(colors_text), staticmethod(partial(read_colors, what="block"))

    @staticmethod
    def canonical(solution: np.ndarray) -> np.ndarray:
        """[n] int64, blocks in the order of nodes."""
        return numbered(np.unique(solution, return_inverse=True)[1].reshape(-1)).astype(np.int64)

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """What is not a number for each node; what blocks weigh is the toolbox's to see."""
        fits = solution_all.shape == (graph_rows.n,) and solution_all.dtype.kind in "iu"
        return None if fits else f"is {solution_all.dtype} {solution_all.shape}, not one number for each node"

    def toolbox(self, instance: Instance) -> PartitionTools:
        """A multilevel start, a search and bounds."""
        return PartitionTools(instance, self)
