"""A whole graph of an edge stream in one process, without MPI: for tools that turn files into files."""

from dataclasses import dataclass

import numpy as np

from app.errors import GraphError
from app.graphs.graph import Graph
from app.graphs.ids import name_numbers
from app.graphs.kernels import count_ids, renumber
from app.graphs.pairs import STEP, Pairs
from app.graphs.rows import row_builder
from app.graphs.stream import EdgeStream

MOST_NODES = (1 << 32) - 2
SMALL_TABLE = 1 << 16  # ids: up to here a table of all of them is always worth its memory
EMPTY_NODES = 1 << 28  # without edges: more than these are only believed of files with as many edges


@dataclass(frozen=True)
class Merged:
    """What was merged: edge lines, of which self loops, and lines that repeat an edge in either direction."""

    lines: int
    loops: int
    repeats: int


def whole_graph(stream: EdgeStream) -> tuple[Graph, Merged]:
    """All rows of a stream's graph, and what was merged: loops dropped, of repeats the largest weight kept.

    Nodes are numbered as the file says, or in ascending order of the ids, or names, that occur.
    """
    pairs = Pairs(stream.weighted)
    for u, v, w in stream.chunks():
        pairs.append(u, v, w)
    lines, loops = pairs.count, pairs.loops
    nodes, ids = _number(stream, pairs)
    ends = np.zeros(nodes, dtype=np.uint32)
    for piece in pairs.pieces():
        count_ids(piece, ends)
    built = row_builder(nodes, 0, ends.astype(np.int64), stream.weighted)
    while pairs.count:
        built.add_pairs(*pairs.take(STEP))
    indptr, indices, weights, *_ = built.finish()
    edges = len(indices) // 2
    graph = Graph(
        stream.name, nodes, 0, nodes, indptr, indices, edges, weights, ids, stream.first_id,
        stream.node_weights,
    )  # fmt: skip
    return graph, Merged(lines, loops, lines - loops - edges)


def _number(stream: EdgeStream, pairs: Pairs) -> tuple[int, np.ndarray | None]:
    """The number of nodes, and their ids where the file states none; the pairs are then renumbered."""
    if stream.named:
        order, numbers = name_numbers(stream.ids)
        renumber(numbers, pairs.ends)
        return len(order), stream.ids[order]
    if stream.nodes is None:
        ids = (
            _ids_by_table(pairs) if pairs.largest < max(pairs.count, SMALL_TABLE) else _ids_by_sorting(pairs)
        )
        _check(stream, len(ids), pairs)
        return len(ids), ids
    _check(stream, stream.nodes, pairs)
    if pairs.largest >= stream.nodes:
        raise GraphError(f"{stream.name}: found node {pairs.largest}; 0..{stream.nodes - 1} would be right")
    return stream.nodes, None


def _ids_by_table(pairs: Pairs) -> np.ndarray:
    """[n] int64 the ids that occur, by a table of all up to the largest; the pairs are renumbered."""
    table = np.zeros(pairs.largest + 1, dtype=np.uint32)
    for piece in pairs.pieces():
        count_ids(piece, table)
    ids = np.flatnonzero(table)
    table[ids] = np.arange(len(ids), dtype=np.uint32)
    for piece in pairs.pieces():
        renumber(table, piece)
    return ids


def _ids_by_sorting(pairs: Pairs) -> np.ndarray:
    """The same of ids with larger gaps."""
    ids, places = pairs.number()
    pairs.become(ids, places, np.arange(len(ids), dtype=np.uint32))
    return ids


def _check(stream: EdgeStream, nodes: int, pairs: Pairs) -> None:
    """Refuse more nodes than a graph may have, or than the edges of the file make believable."""
    most = min(MOST_NODES, EMPTY_NODES + 2 * pairs.count)
    if nodes > most:
        found = f"found {nodes} nodes and {pairs.count} edge lines"
        raise GraphError(f"{stream.name}: {found}; at most {most} nodes would be right")
