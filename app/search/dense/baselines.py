"""Plain dense subgraphs: orders of the nodes, of which a kind takes the part that it asks for.

Each rule returns [n] int32, the nodes of a graph from the one that would be kept longest to the first to go.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from app.bounds.dense.balance import Balance, grown
from app.graphs.dense import DenseGraph, row_sums
from app.graphs.orders import places_of
from app.rng import stream

Rule = Callable[[DenseGraph, bool], np.ndarray]


def peeled(graph: DenseGraph, compiled: bool = True) -> np.ndarray:
    """The node of least weight for its size goes, again and again (Charikar 2000)."""
    return _first_round(graph, compiled).order[::-1]


def by_core(graph: DenseGraph, compiled: bool = True) -> np.ndarray:
    """Nodes by core number, the largest first, of equal ones by number; cores of weights for their sizes."""
    first = _first_round(graph, compiled)
    number = np.empty(graph.n)
    number[first.order] = np.maximum.accumulate(first.load[first.order] / graph.size[first.order])
    return np.lexsort((np.arange(graph.n), -number)).astype(np.int32)


def adding(graph: DenseGraph, compiled: bool = True) -> np.ndarray:
    """From the heaviest node on, the one that shares most weight with those before it."""
    return grown(graph, compiled)


def at_random(graph: DenseGraph, compiled: bool = True) -> np.ndarray:
    """A drawn order."""
    return stream(0, "dense").permutation(graph.n).astype(np.int32)


BASELINES: dict[str, tuple[Rule, str]] = {
    "peeling": (peeled, "peeling (Charikar)"),
    "adding": (adding, "greedy adding"),
    "core": (by_core, "core numbers"),
    "random": (at_random, "random order"),
}


def _first_round(graph: DenseGraph, compiled: bool) -> Balance:
    found = Balance(graph, None, compiled)
    found.round()
    return found


def densest_head(graph: DenseGraph, order: np.ndarray) -> np.ndarray:
    """[n] bool, the densest set of the first nodes of an order; of equal ones the smallest."""
    weight, size = heads(graph, order)
    about = weight / size
    near = np.flatnonzero(about >= about.max() - 1e-12 * abs(about.max()))
    best = max(near.tolist(), key=lambda i: (Fraction(int(weight[i]), int(size[i])), -i))
    return head(graph, order, best + 1)


def head(graph: DenseGraph, order: np.ndarray, count: int) -> np.ndarray:
    """[n] bool, the first nodes of an order."""
    chosen = np.zeros(graph.n, dtype=bool)
    chosen[order[:count]] = True
    return chosen


def heads(graph: DenseGraph, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[n] int64 each, the weight and the size of the first 1, 2, ... nodes of an order."""
    place = places_of(order).astype(np.int32)
    before = place[graph.indices] < np.repeat(place, np.diff(graph.indptr))
    gains = row_sums(np.where(before, graph.weight, 0), graph.indptr)
    return np.cumsum(gains[order]), np.cumsum(graph.size[order])
