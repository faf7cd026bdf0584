"""Bounds of one connected multigraph of any size: what the degrees tell, and cycles that have no node in
common.
"""

from collections import deque

import numpy as np

from app.bounds.case_proof import FREE, bound_of
from app.bounds.fvs.witness import PartBound, edge_rows
from app.graphs.multigraph import Multigraph

BITS = 44  # of the heaviest weight in units of multipliers
DEPTH = 12  # half the length of the cycles that are looked for
MOST_LOOKED = 2000  # nodes that one search for a cycle looks at


def degree_bound(core: Multigraph, nodes: np.ndarray) -> tuple[int, PartBound]:
    """The inequality of all edges alone, with the multiplier at which the nodes whose weight it exhausts
    would do.
    """
    u, v, count = core.edges()
    u, v = (np.repeat(end, count).astype(np.int64) for end in (u, v))
    if not len(u):
        return 0, _told(nodes, [], np.zeros(0, dtype=np.int64), 0)
    places = max(0, BITS - int(core.weights.max()).bit_length())
    degree, need = core.degrees() - 1, len(u) - core.n + 1
    useful = np.flatnonzero(degree > 0)
    ratio = core.weights[useful] / degree[useful]
    order = useful[np.argsort(ratio, kind="stable")]
    last = (
        order[min(int(np.searchsorted(np.cumsum(degree[order]), need)), len(order) - 1)] if len(order) else 0
    )
    y = (int(core.weights[last]) << places) // max(int(degree[last]), 1) if len(order) else 0
    return _proved(core, nodes, [(u, v)], np.array([y], dtype=np.int64), places)


def packing_bound(core: Multigraph, nodes: np.ndarray) -> tuple[int, PartBound]:
    """Cycles, each with as much of its nodes' weights as they all have left, short ones first."""
    left = core.weights.tolist()
    ptr, columns, twice = core.indptr.tolist(), core.indices.tolist(), core.twice.tolist()
    near = [list(zip(columns[ptr[v] : ptr[v + 1]], twice[ptr[v] : ptr[v + 1]])) for v in range(core.n)]
    cuts, y = [], []
    for depth in (1, 2, 3, DEPTH):
        for root in np.argsort(core.degrees(), kind="stable").tolist():
            while left[root] and (cycle := _short(near, left, root, depth)):
                least = min(left[node] for node in cycle)
                for node in cycle:
                    left[node] -= least
                ends = np.array([cycle, [*cycle[1:], cycle[0]]], dtype=np.int64)
                cuts.append((ends.min(axis=0), ends.max(axis=0)))
                y.append(least)
    return _proved(core, nodes, cuts, np.array(y, dtype=np.int64), 0)


def _short(near: list[list[tuple[int, int]]], left: list[int], root: int, depth: int) -> list[int]:
    """A cycle through a node of at most 2 depth + 1 nodes that all have weight left; empty: none was
    found.
    """
    before, level, arm, waiting = {root: -1}, {root: 0}, {root: root}, deque([root])
    while waiting and len(before) < MOST_LOOKED:
        v = waiting.popleft()
        for u, double in near[v]:
            if not left[u]:
                continue
            if double and v == root:
                return [root, u]
            if u not in before:
                if level[v] < depth:
                    before[u], level[u], arm[u] = v, level[v] + 1, u if v == root else arm[v]
                    waiting.append(u)
            elif u != before[v] and u != root and v != root and arm[u] != arm[v]:
                return [*_up(before, v), *_up(before, u)[-2::-1]]
    return []


def _up(before: dict[int, int], node: int) -> list[int]:
    found = [node]
    while before[found[-1]] >= 0:
        found.append(before[found[-1]])
    return found


def _proved(
    core: Multigraph, nodes: np.ndarray, cuts: list[tuple[np.ndarray, np.ndarray]], y: np.ndarray, places: int
) -> tuple[int, PartBound]:
    """What multipliers y / 2^places of subgraphs, edges (u, v) each, prove."""
    proof = _told(nodes, cuts, y, places)
    u, v = proof.edge_u.astype(np.int64), proof.edge_v.astype(np.int64)
    rows, state = edge_rows(core.n, proof.edge_ptr, u, v), np.full(core.n, FREE, dtype=np.uint8)
    found = bound_of(rows, core.weights << places, state, np.arange(len(y)), y)
    return (0 if found is None else max(-(-found[0] >> places), 0)), proof


def _told(
    nodes: np.ndarray, cuts: list[tuple[np.ndarray, np.ndarray]], y: np.ndarray, places: int
) -> PartBound:
    none, count = np.zeros(0, dtype=np.int64), len(cuts)
    ptr = np.append(0, np.cumsum([len(u) for u, _ in cuts])).astype(np.int64)
    ends = (np.concatenate([none, *(cut[i] for cut in cuts)]).astype(np.int32) for i in (0, 1))
    rows = np.arange(count, dtype=np.int32)
    case, ends_of_y = np.array([-1], dtype=np.int64), np.array([0, count], dtype=np.int64)
    cliques = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    return PartBound(nodes.astype(np.int64), ptr, *ends, *cliques, *cliques, case, ends_of_y, rows, y, places)
