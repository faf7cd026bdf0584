"""Node weights of a file of their own, to the owners of the rows."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import GraphError
from app.graphs.covering import demand_ids
from app.graphs.formats.source import Limits
from app.graphs.graph import Graph
from app.graphs.nodes.weights import read_node_weights
from app.partition.ids import ids_on_first
from app.partition.rows import RowPartition

Read = tuple[np.ndarray, list[str]]  # weights, and what is lost of them


def weigh(
    group: Group, graph: Graph, rows: RowPartition, path: str, limits: Limits, count: int, rest: float = 0.0,
    missing: float | None = None,
) -> tuple[Graph, tuple[str, ...]]:  # fmt: skip
    """The graph with the weights of a file, which rank 0 reads, and on rank 0 what is lost of them.

    graph     rows in the file's order, without node weights
    count     of the first nodes, which have weights; those of the others are `rest`
    missing   the weight of those of them that the file does not name; None: it has to name all
    Ranks     all call; a rank holds ids and weights of its own rows, rank 0 of all
    """
    if group.max_integer(int(graph.node_weights is not None)):
        raise GraphError(f"graph.node_weights: {graph.name} has node weights of its own; leave the key out")
    own_weights, warnings = _dealt(
        group, graph, rows, "reading the node weights",
        lambda ids: _followed_by(
            read_node_weights(path, limits, ids[:count], graph.name, missing), graph.n, rest
        ),
    )  # fmt: skip
    return replace(graph, node_weights=own_weights), warnings


def weigh_elements(
    group: Group, graph: Graph, rows: RowPartition, path: str, limits: Limits, count: int
) -> tuple[Graph, tuple[str, ...]]:
    """The graph of a family with the weights of its elements of a file, which rank 0 reads, and on rank 0
    what is lost of them.

    count     of the sets, which come first; the last node is the reference (graphs/covering.py)
    Ranks     all call; a rank holds ids and weights of its own rows, rank 0 of all
    """
    own = np.ones(graph.hi - graph.lo, dtype=np.float32) if graph.node_weights is None else graph.node_weights
    place = np.arange(graph.lo, graph.hi)
    elements = (place >= count) & (place < graph.n - 1)
    if group.max_integer(int((own[elements] != 1).any())):
        found = f"{graph.name} has weights of elements of its own"
        raise GraphError(f"graph.element_weights: {found}; leave the key out")

    def read(ids: np.ndarray) -> Read:
        named = demand_ids(ids, count, graph.first_id)
        found, warnings = read_node_weights(path, limits, named, graph.name)
        return _followed_by((np.append(np.zeros(count, np.float32), found), warnings), graph.n, 0.0)

    found, warnings = _dealt(group, graph, rows, "reading the weights of elements", read)
    weights = np.where(elements, found, own).astype(np.float32)
    return replace(graph, node_weights=weights), warnings


def _followed_by(read: Read, n: int, rest: float) -> Read:
    """Weights of the first nodes, and `rest` for those after them, n in all."""
    values, warnings = read
    return np.append(values, np.full(n - len(values), rest, dtype=np.float32)), warnings


def _dealt(
    group: Group, graph: Graph, rows: RowPartition, doing: str, read: Callable[[np.ndarray], Read]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """[hi-lo] float32, what rank 0 reads for the own rows; on rank 0 what is lost of it.

    doing   for an error's place     read   the ids [n] of all nodes -> weights [n] float32, and what is lost
    Ranks   all call; rank 0 alone reads
    """
    counts = rows.row_counts()
    first, none = group.rank == 0, [0] * group.size
    ids = ids_on_first(group, graph, rows)
    values, warnings = np.empty(0, np.float32), []
    with raise_together(group, doing):
        if first:
            values, warnings = read(ids)
    own = group.exchange_host(values, counts if first else none, [graph.hi - graph.lo, *none[1:]])
    return own, tuple(warnings)
