"""Elimination orders by nested dissection: separators go last.

A graph is cut in two blocks of about equal size by few edges, and a smallest set of nodes that meets all
edges that are cut separates what is left of the blocks; these are cut in turn. All pieces are cut once more
before another level begins. After each level nodes that are in no separator are eliminated first, by least
degree, then the separators, the deepest ones first: pieces cannot grow together across a separator. Few
levels are often best for widths, as bags of small pieces hold parts of many separators; orders of all levels
are made, and the best one is kept.

A smallest set of nodes that meets all edges between two sides: with a largest matching of these edges, from
the nodes of one side that it leaves out along edges to the other side and back by edges of the matching; of
the first side those count that are not reached, of the other side those that are (Koenig 1931). What is
reached is the same with any largest matching (Dulmage and Mendelsohn 1958).

Source   George, Nested dissection of a regular finite element mesh, SIAM J. Numer. Anal. 1973; separators by
         covers: Pothen, Simon and Liou 1990; degrees within: Ashcraft and Liu, Robust ordering of sparse
         matrices using multisection 1998
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_bipartite_matching

from app.blocks.whole import by_levels
from app.bounds.treewidth.quotients import least_degree
from app.graphs.balance import balance_of
from app.graphs.derived import induced
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set

LEAST = 200  # nodes of a piece that is cut
IMBALANCE = 0.2
PATIENCE = 3  # levels without a better order end it


def dissected(
    graph: Graph,
    worth: Callable[[np.ndarray], int],
    look: Callable[[], Any],
    compiled: bool = True,
    least: int = LEAST,
    most: int | None = None,
) -> np.ndarray | None:
    """[n] int64, the best order of all levels by `worth`; None: there is no separator, or no time.

    look   called every now and then, after the same work on all ranks; where it is true no more levels begin
    most   nodes of the first separator; where it has more nothing good is to come
    """
    pieces = [(graph, np.arange(graph.n))]
    depth = np.full(graph.n, -1, dtype=np.int32)  # of separators
    best, order, failed, level = 0, None, 0, 0
    while failed < PATIENCE:
        following = []
        for part, nodes in pieces:
            if part.n < least or look():
                continue
            sides = _sides(part, compiled, look)
            depth[nodes[sides == 2]] = level
            following += [(induced(part, own), nodes[own]) for own in _both(sides)]
        if not following or look() or (level == 0 and most is not None and (depth == 0).sum() > most):
            break
        pieces, level = following, level + 1
        made, whole = least_degree(graph, look, compiled, np.where(depth < 0, 0, level - depth))
        value = worth(made)
        failed = failed + 1 if order is not None and value >= best else 0
        if order is None or value < best:
            best, order = value, made
        if not whole:
            break
    return order


def _both(sides: np.ndarray) -> list[np.ndarray]:
    return [np.flatnonzero(sides == side) for side in (0, 1)]


def _sides(part: Graph, compiled: bool, look: Callable[[], Any]) -> np.ndarray:
    """[n] the block of each node, 0 or 1, and 2 for those that separate the blocks."""
    sides = by_levels(balance_of(part, 2, IMBALANCE), compiled, both=False, look=look)
    row = part.row_of()
    cut = (sides[row] == 0) & (sides[part.indices] == 1)
    sides[separator(row[cut], part.indices[cut])] = 2
    return sides


def separator(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The fewest nodes that meet all edges between two sides that have no nodes in common.

    u, v     [m] the ends of each edge, on one side and the other
    returns  [k] ascending
    """
    left, row = np.unique(u, return_inverse=True)
    right, column = np.unique(v, return_inverse=True)
    shape = len(left), len(right)
    ends = sp.csr_array((np.ones(len(row), dtype=np.int8), (row, column)), shape=shape)
    partner = np.full(len(right), -1, dtype=np.int64)
    if len(row):
        matched = maximum_bipartite_matching(ends, perm_type="column")
        partner[matched[matched >= 0]] = np.flatnonzero(matched >= 0)
        fresh = np.flatnonzero(matched < 0)
    reached, crossed = np.zeros(len(left), dtype=bool), np.zeros(len(right), dtype=bool)
    while len(row) and len(fresh):
        reached[fresh] = True
        over = sorted_set(column[reached[row]])
        over = over[~crossed[over]]
        crossed[over] = True
        fresh = partner[over]  # a largest matching leaves none of these out
    return np.sort(np.concatenate([left[~reached], right[crossed]]))
