"""Pairs of nodes that a file or a caller names, as rows of a graph."""

import numpy as np
from msgspec import structs

from app.case.config import Case
from app.comm.group import Group
from app.errors import GraphError
from app.graphs.ids import one_id
from app.partition.ids import ids_everywhere
from app.partition.load import read_paths
from app.partition.loaded import Loaded


def pairs_of_file(group: Group, case: Case, path: str) -> np.ndarray:
    """[k, 2] the ids of the pairs of a file of edges, each once; loops are dropped. Ranks: all call."""
    table = structs.replace(case.graph, format="auto", complement=False)
    found = read_paths(group, table, [path], case)
    graph, ids = found.graph, ids_everywhere(group, found.graph, found.rows)
    u, v = graph.row_of(), graph.indices.astype(np.int64)
    own = np.ascontiguousarray(np.stack([u, v], axis=1)[u < v])
    sizes = group.gather_integers(np.array([len(own)]))[:, 0].tolist()
    return ids[group.gather_host(own, sizes)]


def rows_of_pairs(group: Group, loaded: Loaded, ids: np.ndarray, what: str) -> np.ndarray:
    """[k, 2] int64 the rows u < v of pairs of ids [k, 2], in their order.

    what    the file or the argument they are of, for messages
    Ranks   all call. Raises GraphError on all for an id that the graph does not have, and for a loop
    """
    known = ids_everywhere(group, loaded.graph, loaded.rows)
    if len(ids) and known.dtype.kind != ids.dtype.kind:
        kinds = ("numbers", "names") if known.dtype.kind == "S" else ("names", "numbers")
        raise GraphError(
            f"{what}: has nodes by {kinds[0]}, the graph has {kinds[1]}; the same would be right"
        )
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known[order], ids), max(len(known) - 1, 0))
    rows = order[at] if len(known) else np.zeros(ids.shape, dtype=np.int64)
    wrong = ids[known[rows] != ids] if len(known) else ids.reshape(-1)
    if len(wrong):
        missing = one_id(wrong, 0)
        raise GraphError(f"{what}: found node {missing}; a node of {loaded.graph.name} would be right")
    if (loops := rows[:, 0] == rows[:, 1]).any():
        node = one_id(ids[loops][0], 0)
        raise GraphError(f"{what}: found node {node} with itself; two nodes would be right")
    return np.sort(rows, axis=1)
