"""Greedy elimination orders: what searches begin with, and what stands beside answers.

Each works on the whole graph on the host and returns `(order, label)`: [n] int64, and the name to print.
"""

import numpy as np

from app.bounds.treewidth.atoms import cardinality
from app.bounds.treewidth.orders import BY_DEGREE, BY_FILL, greedy
from app.bounds.treewidth.plain_orders import neighbours
from app.graphs.graph import Graph


def min_degree(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Always a node with the fewest neighbours left (Markowitz 1957)."""
    return greedy(graph, BY_DEGREE, None, compiled), "min degree"


def min_fill(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Always a node whose elimination makes the fewest edges."""
    return greedy(graph, BY_FILL, None, compiled), "min fill"


def max_cardinality(graph: Graph) -> tuple[np.ndarray, str]:
    """From the last node down, always one with most neighbours after it (Tarjan and Yannakakis 1984)."""
    return cardinality(neighbours(graph)), "max cardinality"


ELIMINATION_BASELINES = {"min_fill": min_fill, "min_degree": min_degree, "max_cardinality": max_cardinality}
