"""Dense subgraphs: nodes with much weight of edges among them."""

from typing import Any, ClassVar

import numpy as np

from app.graphs.dense import AVERAGE, SIZE
from app.graphs.graph import Graph
from app.problems.sets import SetProblem
from app.problems.unlearned import Unlearned
from app.search.dense.baselines import BASELINES
from app.search.dense.size_tools import SizeTools
from app.search.dense.tools import AverageTools, DenseTools
from app.toolbox import Instance

KINDS: dict[str, type[DenseTools]] = {AVERAGE: AverageTools, SIZE: SizeTools}


class DenseSubgraph(Unlearned, SetProblem):
    """A set of nodes with much weight inside (problem.dense).

    average: for each node as much as may be; size: of so many nodes as much as may be.
    A solution is [n] bool, the nodes.
    """

    name = "dense"
    sense = "maximise"
    solution = "dense subgraph"
    baselines: ClassVar = BASELINES

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """What is no mask; the rest is the toolbox's to see."""
        fits = solution_all.shape == (graph_rows.n,) and solution_all.dtype == bool
        return None if fits else f"is {solution_all.dtype} {solution_all.shape}, not a mask of the nodes"

    def toolbox(self, instance: Instance) -> Any:
        """Plain sets, a search, bounds."""
        return KINDS[instance.asked.dense](instance, self)
