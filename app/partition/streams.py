"""The streams of files, on the ranks that read them, and the rows that a stream is assembled to."""

from typing import Any

import numpy as np

from app.case.config import Case
from app.case.graph import BY_EDGE, WORDS, GraphCase
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import GraphError
from app.graphs.formats.readers import open_edges
from app.graphs.formats.source import trace
from app.graphs.graph import Graph
from app.graphs.stream import EdgeStream
from app.graphs.union import unite
from app.partition.assemble import EdgeRules, assemble
from app.partition.loaded import Loaded
from app.partition.members import share_members
from app.partition.metric import share_deliveries, share_metric
from app.partition.pairing import share_pairing
from app.partition.stands_for import (
    directions,
    graph_of_set,
    graph_to_solve,
    is_set,
    refuse_sets,
    renamed,
)
from app.partition.terminals import share_prized, share_terminals

LISTED = ("edges", "matrix_market", "dimacs", "npz", "graphsage", "ogb", "tu")  # a row of features an edge


def told_of_edges(table: GraphCase, source: EdgeStream | None) -> EdgeStream | None:
    """The stream where there are features, or labels, of its edges, else None."""
    named = table.edge_features or table.edge_labels or table.edge_splits
    told = source is not None and (named or source.edge_features or source.edge_labels)
    return source if told else None


def undirected_words(table: GraphCase, graph: Graph) -> list[str]:
    """A warning where a case tells directions apart that the graph has not."""
    if table.neighbours == "both" or graph.arcs is not None:
        return []
    said = f'graph.neighbours = "{table.neighbours}": {graph.name} is undirected'
    return [f"{said}: its edges count in both directions"]


def open_stream(
    group: Group, table: GraphCase, paths: list[str], limit: int, case: Case | None = None,
    names: tuple[str, ...] = (),
) -> tuple[EdgeStream | None, bool]:  # fmt: skip
    """The stream of a file on rank 0, and on all ranks where every rank finds the same file and it has parts.

    paths     several: the stream of their union, which has no parts
    limit     bytes of packed text
    case      what is solved of it; None: the graph itself
    names     of the graphs of a set; empty: those of the files
    returns   stream or None; True: all ranks have it
    Ranks     all call
    """
    source, path = None, paths[0]
    with raise_together(group, f"opening {path}"):
        if group.rank == 0:
            found = [open_edges(each, table.format, limit, ids=table.ids) for each in paths]
            _refuse_unlisted(table, found)
            if case is not None and is_set(case):
                found = [graph_of_set(each) for each in found]
            else:
                refuse_sets(found)
            source = unite(found, directions=table.neighbours != "both")
            source = renamed(source, names) if names else source
            source = source if case is None else graph_to_solve(source, case)
    if not group.max_integer(int(group.rank == 0 and source.part is not None)):
        return source, False
    if group.rank > 0:
        source = _open_same(path, table, limit)
    seen = group.gather_integers(np.array([0, 0, 0] if source is None else trace(path)))
    if (seen == seen[0]).all():
        return source, True
    return source if group.rank == 0 else None, False


def _refuse_unlisted(table: GraphCase, streams: list[EdgeStream]) -> None:
    """Refuse a file of rows of edges beside a format that lists no edges one by one. Raises GraphError."""
    keys = ["edge_features"] if table.edge_data_by == "ends" else list(BY_EDGE)
    asked = [key for key in keys if getattr(table, key) not in ("", WORDS.get(key))]
    for each in streams:
        if asked and each.format not in LISTED:
            right = f"{', '.join(LISTED[:-1])} or {LISTED[-1]} would be right"
            right += ', or graph.edge_data_by = "ends"' if asked[0] != "edge_features" else ""
            raise GraphError(f"graph.{asked[0]}: {each.format} lists no edges one by one; {right}")


def _open_same(path: str, table: GraphCase, limit: int) -> EdgeStream | None:
    """The stream of a file on another rank than 0; None where it cannot be opened: disks may differ."""
    try:
        return open_edges(path, table.format, limit, ids=table.ids)
    except Exception:  # rank 0 has opened it, and will read it for all
        return None


def load_stream(group: Group, source: Any, table: GraphCase, case: Case) -> Loaded:
    """The graph of a stream on rank 0 (others pass None), as a [graph] table wants it. Ranks: all call."""
    balance, neighbours = case.parallel.partition, directions(case, table.neighbours)
    rules = EdgeRules.of(table)
    graph, rows, counts = assemble(group, source, rules, balance=balance, neighbours=neighbours)
    warnings = (*(source.warnings if source is not None else ()), *undirected_words(table, graph))
    metric = share_metric(group, source.metric if source is not None else None)
    deliveries = share_deliveries(group, source.deliveries if source is not None else None)
    members, terminals = share_members(group, source), share_terminals(group, source)
    held, (prized, heaviest) = told_of_edges(table, source), share_prized(group, source)
    return Loaded(
        graph, rows, counts, warnings, table.complement, metric=metric, terminals=terminals,
        prized=prized, heaviest=heaviest, members=members, deliveries=deliveries, stream=held,
        pairing=share_pairing(group, source),
    )  # fmt: skip
