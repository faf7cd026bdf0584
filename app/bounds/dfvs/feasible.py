"""The independent check of directed feedback vertex sets: it reads the graph and the answer, no more."""

from collections import deque

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.graphs.graph import IN_A, Graph

SHOWN = 8  # nodes of a cycle, for a message


def cycle_left(graph: Graph, chosen: np.ndarray) -> list[int] | None:
    """A directed cycle without a node of a set [n] bool; None: the other nodes have a topological order.

    graph   whole, its rows the heads of arcs (graph.arcs, graph.loops)
    Source  Kahn, Topological sorting of large networks, Communications of the ACM 1962
    """
    if chosen.shape != (graph.n,) or chosen.dtype != bool:
        raise ValueError(f"chosen: needs [{graph.n}] bool, got {chosen.shape} {chosen.dtype}")
    if graph.loops is not None and (bare := graph.loops.astype(bool) & ~chosen).any():
        return [int(bare.argmax())]
    rows, heads = graph.row_of(), graph.indices
    kept = ~chosen[rows] & ~chosen[heads]
    if graph.arcs is not None:
        kept &= graph.arcs & IN_A > 0
    rows, heads = rows[kept], heads[kept]
    if _all_apart(graph.n, rows, heads):
        return None
    degree = np.bincount(heads, minlength=graph.n)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=graph.n))]).tolist()
    ready = deque(np.flatnonzero(~chosen & (degree == 0)).tolist())
    heads, degree, ordered = heads.tolist(), degree.tolist(), 0
    while ready:
        v = ready.popleft()
        ordered += 1
        for u in heads[starts[v] : starts[v + 1]]:
            degree[u] -= 1
            if not degree[u]:
                ready.append(u)
    if ordered == graph.n - int(np.count_nonzero(chosen)):
        return None
    return _cycle(rows, heads, degree)


def _all_apart(n: int, rows: np.ndarray, heads: np.ndarray) -> bool:
    """Whether every strongly connected component of some arcs [m], none a loop, is one node."""
    matrix = sp.csr_array((np.ones(len(rows), dtype=np.int8), (rows, heads)), shape=(n, n))
    return connected_components(matrix, directed=True, connection="strong", return_labels=False) == n


def _cycle(rows: np.ndarray, heads: list[int], degree: list[int]) -> list[int]:
    """A cycle among nodes that are never ready: each has an arc from another of them."""
    before = {u: v for v, u in zip(rows.tolist(), heads) if degree[v] and degree[u]}
    walk, seen = [next(iter(before))], {}
    while walk[-1] not in seen:
        seen[walk[-1]] = len(walk) - 1
        walk.append(before[walk[-1]])
    return walk[seen[walk[-1]] : -1][::-1]
