"""Graphs made of others: what some nodes span, and rows of the complement."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from app.graphs.graph import Graph, index_type
from app.graphs.lists import ranges, starts

PIECE = 1 << 24  # pairs of nodes looked at together


def induced(graph: Graph, nodes: np.ndarray) -> Graph:
    """What nodes [k], ascending, span of a whole graph, renumbered in order; without weights."""
    k = len(nodes)
    if k == graph.n:
        return replace(graph, weights=None, ids=None, first_id=0, node_weights=None)
    number = np.full(graph.n, -1, dtype=np.int64)
    number[nodes] = np.arange(k)
    rows, columns = number[graph.row_of()], number[graph.indices]
    inside = (rows >= 0) & (columns >= 0)
    indptr = starts(rows[inside], k)
    indices = columns[inside].astype(index_type(k))
    return Graph(graph.name, k, 0, k, indptr, indices, edges=len(indices) // 2)


def closed_parts(graph: Graph, groups: list[np.ndarray]) -> Iterator[Graph]:
    """The graphs on groups of nodes [k], each ascending, which no edge leaves."""
    number, degree = np.zeros(graph.n, dtype=np.int64), np.diff(graph.indptr)
    for nodes in groups:
        number[nodes] = np.arange(len(nodes))
    for nodes in groups:
        if len(nodes) == graph.n:
            yield graph
            continue
        counts = degree[nodes]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        stored = ranges(graph.indptr[nodes], counts)
        indices = number[graph.indices[stored]].astype(index_type(len(nodes)))
        yield Graph(graph.name, len(nodes), 0, len(nodes), indptr, indices, edges=len(indices) // 2)


def complement_rows(
    n: int, lo: int, indptr: np.ndarray, indices: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """CSR rows of the missing edges: from rows lo.. of a graph of n nodes, columns ascending.

    returns  indptr [rows+1] int64, indices [nnz]
    """
    rows = len(indptr) - 1
    counts = n - 1 - np.diff(indptr)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    columns = np.empty(int(offsets[-1]), dtype=index_type(n))
    step = max(PIECE // max(n, 1), 1)
    for first in range(0, rows, step):
        last = min(first + step, rows)
        absent = np.ones((last - first, n), dtype=bool)
        own = np.repeat(np.arange(last - first), np.diff(indptr[first : last + 1]))
        absent[own, indices[indptr[first] : indptr[last]]] = False
        absent[np.arange(last - first), lo + np.arange(first, last)] = False
        columns[offsets[first] : offsets[last]] = np.nonzero(absent)[1]
    return offsets, columns


def complement(graph: Graph) -> Graph:
    """The graph of the missing edges of a whole graph, without weights of edges."""
    indptr, indices = complement_rows(graph.n, 0, graph.indptr, graph.indices)
    edges = graph.n * (graph.n - 1) // 2 - graph.edges
    return replace(graph, indptr=indptr, indices=indices, edges=edges, weights=None)
