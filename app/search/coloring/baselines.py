"""Greedy colourings without learning: what a learned policy has to beat, and where searches begin.

Each works on the whole graph on the host and returns `(colors, label)`: colors [n] int64 from 0 on, and the
name to print beside the result. Ties go to the lowest node number.
"""

import ctypes
import math

import numpy as np

from app.bounds.clique.degeneracy import core_order, greedy_colours
from app.bounds.cover.kernels import Rows
from app.graphs.graph import Graph
from app.native.library import address, function
from app.search.coloring import plain as plain

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
DSATUR = function("lk_coloring_dsatur", Long, *[Pointer] * 3, returns=Long)
LARGEST_FIRST = function("lk_coloring_rlf", Long, *[Pointer] * 3, returns=Long)
MOST_SCANNED, MOST_PASSED = 1 << 28, 1 << 32  # nodes times nodes, entries times classes, of largest_first


def dsatur(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """The node whose neighbours have most colours, then most neighbours left, gets the least colour it can.

    Source   Brélaz, Communications of the ACM 1979
    """
    return _made(graph, DSATUR if compiled else None, plain.dsatur), "DSATUR"


def largest_first(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """Class by class: each further node has most neighbours among those that the class rules out.

    Source   recursive largest first: Leighton, Journal of Research of the NBS 1979
    Cost     the square of the nodes, and the stored entries for each class
    """
    return _made(graph, LARGEST_FIRST if compiled else None, plain.largest_first), "RLF"


def smallest_last(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """The least colour that each can have, nodes in the reverse of a degeneracy order.

    Source   Matula and Beck, Journal of the ACM 1983
    """
    order = core_order(graph, compiled)[0][::-1]
    return greedy_colours(graph, order, compiled).astype(np.int64), "smallest last"


def by_degree(graph: Graph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """The least colour that each can have, nodes of most neighbours first (Welsh and Powell 1967)."""
    order = np.argsort(-graph.degrees(), kind="stable")
    return greedy_colours(graph, order, compiled).astype(np.int64), "max degree"


def scans(graph: Graph) -> bool:
    """Whether `largest_first` is quick enough; a function of the graph's sizes.

    A random graph of density p has about n log(1 / (1 - p)) / log(n) classes.
    """
    n, entries = graph.n, len(graph.indices)
    if n < 2:
        return True
    classes = 1 - n * math.log1p(-entries / n**2) / math.log(n)
    return n * n <= MOST_SCANNED and entries * classes <= MOST_PASSED


def _made(graph: Graph, kernel: object, otherwise: object) -> np.ndarray:
    """[n] int64, by the kernel where there is one."""
    if kernel is None:
        return otherwise(graph).astype(np.int64)
    color = np.empty(graph.n, dtype=np.int32)
    rows = Rows(graph)
    if kernel(graph.n, address(rows.indptr), address(rows.indices), address(color)) < 0:
        raise MemoryError("colouring")
    return color.astype(np.int64)


COLORING_BASELINES = {
    "dsatur": dsatur, "largest_first": largest_first, "smallest_last": smallest_last, "max_degree": by_degree,
}  # fmt: skip
