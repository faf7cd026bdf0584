"""Greedy elimination orders: what searches begin with, and what stands beside answers.

Each works on the whole graph on the host and returns `(order, label)`: [n] int64, and the name to print.
"""

import itertools

import numpy as np

from app.bounds.treewidth.atoms import cardinality
from app.bounds.treewidth.orders import BY_DEGREE, BY_FILL, greedy
from app.bounds.treewidth.quotients import SLICE, least_degree
from app.graphs.graph import Graph

MOST_DIRECT = 200_000  # nodes and entries of graphs whose new edges are made
MOST_SLICES = (1 << 30) // SLICE  # of work by degree, some minutes; the rest follows by what degrees are then


def is_large(graph: Graph) -> bool:
    """Whether a graph is too large to make the edges of its eliminations."""
    return graph.n + len(graph.indices) > MOST_DIRECT


def min_degree(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Always a node with the fewest neighbours left (Markowitz 1957); of large graphs by bounds of them."""
    if is_large(graph):
        looks = itertools.count(1)
        return least_degree(graph, lambda: next(looks) > MOST_SLICES, compiled)[0], "min degree by bounds"
    return greedy(graph, BY_DEGREE, None, compiled), "min degree"


def min_fill(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Always a node whose elimination makes the fewest edges."""
    return greedy(graph, BY_FILL, None, compiled), "min fill"


def max_cardinality(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """From the last node down, always one with most neighbours after it (Tarjan and Yannakakis 1984)."""
    return cardinality(graph, compiled), "max cardinality"


ELIMINATION_BASELINES = {"min_fill": min_fill, "min_degree": min_degree, "max_cardinality": max_cardinality}
