"""The check of reductions on row partitions, by each rank on its own rows, not by the code that made them."""

from itertools import combinations

import numpy as np

from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import LockstepError
from app.graphs.graph import Graph, holds_entries
from app.solver.rows.covers import RowsReduced


def check_rows(group: Group, graph: Graph, reduced: RowsReduced) -> None:
    """Prove that every cover of the graph weighs at least `reduced.taken` more than one of what is left.

    The nodes of a step are a clique of the graph, of which a cover holds all but one, at most the heaviest.
    Cliques share no node with each other, nor with what is left, whose edges are edges of the graph.

    graph    own rows of the graph
    Ranks    all call. Raises LockstepError on all
    """
    with raise_together(group, "checking the reductions"):
        _require(_apart(graph.n, reduced), "two of its cliques share a node, or have one of what is left")
        cliques = [nodes for nodes in reduced.steps if len(nodes)]
        _require(all(_joined(graph, nodes) for nodes in cliques), "a clique lacks an edge")
        _require(_rest_is_part(graph, reduced), "what is left is not what the graph has there")
        paid = sum(_paid(nodes, reduced.weights) for nodes in cliques)
        _require(paid == reduced.taken, f"its cliques prove {paid}, not {reduced.taken}")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise LockstepError(f"reductions on rows: {otherwise}")


def _apart(n: int, reduced: RowsReduced) -> bool:
    """Whether no node of a step is named twice, or left."""
    named = np.concatenate([reduced.nodes, *(nodes.reshape(-1) for nodes in reduced.steps)])
    seen = np.zeros(n, dtype=bool)
    seen[named] = True
    return int(np.count_nonzero(seen)) == len(named)


def _paid(nodes: np.ndarray, weights: np.ndarray | None) -> int:
    """What covers pay for the cliques `nodes` [k, c]: all but the heaviest of each."""
    if weights is None:
        return len(nodes) * (nodes.shape[1] - 1)
    return int(weights[nodes].sum() - weights[nodes].max(axis=1).sum())


def _joined(graph: Graph, nodes: np.ndarray) -> bool:
    """Whether all pairs of a row of `nodes` [k, c] are edges; each by the owner of its first."""
    for a, b in combinations(range(nodes.shape[1]), 2):
        own = nodes[(nodes[:, a] >= graph.lo) & (nodes[:, a] < graph.hi)]
        if not holds_entries(graph.indptr, graph.indices, own[:, a] - graph.lo, own[:, b]).all():
            return False
    return True


def _rest_is_part(graph: Graph, reduced: RowsReduced) -> bool:
    """Whether this rank's rows of what is left are those of the graph without all other nodes."""
    stays = np.zeros(graph.n, dtype=bool)
    stays[reduced.nodes] = True
    own = stays[graph.lo : graph.hi]
    kept = stays[graph.indices]
    kept &= np.repeat(own, np.diff(graph.indptr))
    degrees, some = np.zeros(len(own), dtype=np.int64), np.diff(graph.indptr) > 0
    if len(kept):
        degrees[some] = np.add.reduceat(kept, graph.indptr[:-1][some], dtype=np.int64)
    return np.array_equal(degrees[own], reduced.own.degrees()) and np.array_equal(
        graph.indices[kept], reduced.own.indices
    )


def check_packed(
    group: Group, graph: Graph, reduced: RowsReduced, pairs: np.ndarray, pays: np.ndarray,
    triangles: np.ndarray,
) -> None:  # fmt: skip
    """Prove that covers of what is left pay so much for its pairs [k, 2], `pays` [k] each, and two for each
    of its triangles [t, 3]; nodes by their place among those left.

    graph    own rows of the graph
    Ranks    all call. Raises LockstepError on all
    """
    with raise_together(group, "checking the bound"):
        nodes, weights = reduced.nodes, reduced.weights
        for cliques in (pairs, triangles):
            inside = not len(cliques) or 0 <= int(cliques.min()) <= int(cliques.max()) < len(nodes)
            _require(inside, "a clique has a node that is not left")
            _require(_joined(graph, nodes[cliques]), "a clique lacks an edge")
            ascending = np.sort(cliques, axis=1)
            _require(bool((np.diff(ascending, axis=1) > 0).all()), "a clique has a node twice")
        _require(len(pays) == len(pairs) and bool((pays >= 0).all()), "a pair pays less than nothing")
        load = np.zeros(len(nodes), dtype=np.int64)
        np.add.at(load, pairs, pays[:, None])
        np.add.at(load, triangles, 1)
        most = np.ones(len(nodes), dtype=np.int64) if weights is None else weights[nodes]
        _require(bool((load <= most).all()), "a node pays more than its weight")
