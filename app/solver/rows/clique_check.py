"""The check of what was peeled off a graph's rows, by each rank on its own, not by the code that did it."""

from collections.abc import Sequence

import numpy as np

from app.bounds.feasible import missing_edge
from app.comm.group import Group
from app.comm.guard import raise_together
from app.graphs.graph import Graph
from app.solver.rows.cliques import CliquesReduced, CoreBound
from app.solver.rows.kinds import require

PIECE = 1 << 22  # entries looked at together


def check_cliques(group: Group, graph: Graph, reduced: CliquesReduced) -> None:
    """Prove that every clique heavier than `reduced.best` lies in what is left, whose rows are the graph's.

    graph    own rows of the graph
    Ranks    all call. Raises LockstepError on all
    """
    weights = reduced.weights
    with raise_together(group, "checking the reductions"):
        stays = _mask(graph.n, reduced.nodes)
        inside = _mask(graph.n, reduced.clique)
        weight = len(reduced.clique) if weights is None else int(weights[reduced.clique].sum())
        require(weight == reduced.best, f"a clique weighs {weight}, not {reduced.best}")
        require(bool(stays[reduced.clique].all()), "a node of the clique is gone")
        require(missing_edge(graph, inside) is None, "what is known is no clique")
        _check_order(graph, weights, reduced.best, reduced.peeled, reduced.nodes)
        require(_rest_is_part(graph, reduced, stays), "what is left is not what the graph has there")


def check_core_bound(group: Group, graph: Graph, weights: np.ndarray | None, bound: CoreBound) -> None:
    """Prove that no clique of a graph is heavier than a bound by peeling.

    graph    own rows of the graph
    Ranks    all call. Raises LockstepError on all
    """
    with raise_together(group, "checking the bound"):
        _check_order(graph, weights, bound.upper, [bound.peeled], np.empty(0, dtype=np.int64))


def _mask(n: int, nodes: np.ndarray) -> np.ndarray:
    """[n] bool, the nodes [k]."""
    found = np.zeros(n, dtype=bool)
    found[nodes] = True
    return found


def _check_order(
    graph: Graph, weights: np.ndarray | None, least: int, peeled: Sequence[np.ndarray], rest: np.ndarray
) -> None:
    """Prove that the own nodes of those `peeled` weigh at most `least` with the neighbours that come later or
    stay, and that all nodes but those of weight 0 are peeled or stay, once.
    """
    order = np.concatenate([np.empty(0, dtype=np.int64), *peeled])
    heavy = np.ones(graph.n, dtype=bool) if weights is None else weights > 0
    named = np.bincount(order, minlength=graph.n) + np.bincount(rest, minlength=graph.n)
    require(np.array_equal(named, heavy), "a node is named twice, or not at all")
    place = np.full(graph.n, len(order), dtype=np.int64)  # those of weight 0 add nothing
    place[order] = np.arange(len(order))
    own = np.arange(graph.lo, graph.hi)
    pieces = np.searchsorted(graph.indptr, np.arange(PIECE, graph.indptr[-1], PIECE))
    for rows in np.split(own, pieces):
        if not len(rows):
            continue
        first, last = graph.indptr[[rows[0] - graph.lo, rows[-1] + 1 - graph.lo]]
        columns = graph.indices[first:last]
        row = np.repeat(rows, np.diff(graph.indptr[rows[0] - graph.lo : rows[-1] + 2 - graph.lo]))
        later = place[columns] > place[row]
        added = later.astype(np.float64) if weights is None else later * weights[columns].astype(np.float64)
        total = np.bincount(row - rows[0], weights=added, minlength=len(rows)).astype(np.int64)
        total += 1 if weights is None else weights[rows]
        light = (total <= least) | (place[rows] == len(order))
        require(bool(light.all()), f"a node weighs more than {least} with its later neighbours")


def _rest_is_part(graph: Graph, reduced: CliquesReduced, stays: np.ndarray) -> bool:
    """Whether this rank's rows of what is left are those of the graph without all other nodes."""
    rows = graph.row_of()
    kept = stays[rows] & stays[graph.indices]
    own = np.flatnonzero(stays[graph.lo : graph.hi]) + graph.lo
    degrees = np.bincount(rows[kept] - graph.lo, minlength=graph.hi - graph.lo)[own - graph.lo]
    mine = reduced.own
    return (
        np.array_equal(mine.nodes, own)
        and np.array_equal(np.diff(mine.indptr), degrees)
        and np.array_equal(mine.indices, graph.indices[kept])
    )
