"""How large the graphs of a case are, from headers of files and parameters of generators alone."""

from dataclasses import replace
from statistics import fmean

from app.case.config import Case
from app.case.graph import GraphCase
from app.graphs.formats.readers import open_edges
from app.graphs.formats.source import Limits
from app.graphs.nodes.data import DenseFeatures
from app.graphs.nodes.files import open_edge_features
from app.graphs.stream import EdgeStream
from app.partition.families import turns_of
from app.partition.generators import ELEMENTS_BY_TURNS, SETS_EACH_BY_TURNS
from app.partition.stands_for import is_set


def expected_entries(table: GraphCase) -> int:
    """Stored directed entries that a generator makes, in expectation, repeats included."""
    n = mean_nodes(table)
    if table.generator == "sets":
        sets, elements = _sets_and_elements(table)
        each = fmean(SETS_EACH_BY_TURNS) if table.members == "mixed" else table.p * sets
        return int(2 * (each * elements + 2 * sets + elements))
    families = turns_of(table)
    return int(
        sum(fmean(_entries_of(turn.table(table, n), n) for turn in each) for each in families) / len(families)
    )


def _entries_of(table: GraphCase, n: int) -> float:
    """Those of one family."""
    if table.generator == "er":
        return n * (n - 1) * table.p
    if table.generator == "arcs":
        return 2 * n * (n - 1) * table.p
    if table.generator == "torus":
        return 4 * n * (1 - table.removed)
    if table.generator == "motifs":
        return 2.0 * (n + 1)  # a tree, and few edges more
    if table.generator == "sbm":
        return n * (table.degree_in + table.degree_out)
    if table.generator == "bipartite":
        return 2 * (n - (table.elements or n // 2)) * (table.degree_in + table.degree_out)
    if table.generator in ("ba", "small_world", "uniform_points", "customers"):
        return 2 * table.d * n
    drawn = 2 * (table.edges or table.d * n)
    return min(drawn, n * (n - 1)) if table.generator == "geometric" else drawn


def _sets_and_elements(table: GraphCase) -> tuple[int, int]:
    """Of a typical generated family."""
    sets = table.nodes if isinstance(table.nodes, int) else sum(table.nodes) // 2
    if table.members == "mixed":
        return sets, round(sets * fmean(ELEMENTS_BY_TURNS))
    return sets, table.elements or sets


def mean_nodes(table: GraphCase) -> int:
    """Nodes of a typical generated graph."""
    if table.generator == "sets":
        return sum(_sets_and_elements(table)) + 1
    return table.nodes if isinstance(table.nodes, int) else sum(table.nodes) // 2


def classified_counts(case: Case) -> tuple[int | None, int]:
    """Rows and entries of the graph of a case, or of its files side by side; None and 0 where unknown.

    Of a set of graphs a row is a node or a graph (graphs/members.py).
    """
    table = case.graph
    if case.gnn.model == "rgcn":
        return None, 0
    if table.generator:
        count, own = (table.count, 1) if is_set(case) else (1, 0)
        return count * (mean_nodes(table) + own), count * expected_entries(table)
    streams = streams_of(case)
    if is_set(case) and all(each.nodes is not None for each in streams):
        streams = [replace(each, nodes=each.nodes + count_of_set(each)) for each in streams]
    nodes, stored = [each.nodes for each in streams], [stated_entries(each) for each in streams]
    return None if None in nodes else sum(nodes), 0 if None in stored else sum(stored)


def graphs_of(case: Case) -> int:
    """How many graphs a set has."""
    if case.graph.generator:
        return case.graph.count
    return sum(map(count_of_set, streams_of(case)))


def count_of_set(stream: EdgeStream) -> int:
    """How many graphs a file has."""
    return 1 if stream.sizes is None else len(stream.sizes)


def edge_features_of(case: Case) -> DenseFeatures | None:
    """The features of the edges of a case's graph, their headers read; None without."""
    limits = Limits(int(case.memory.max_decompressed_gb * 1e9))
    if case.graph.edge_features:
        return open_edge_features(case.graph.edge_features, limits)
    streams = [] if case.graph.generator else streams_of(case)
    told = next((each.edge_features for each in streams if each.edge_features), None)
    return told and told()


def streams_of(case: Case) -> list[EdgeStream]:
    """Those of the files of a case, their headers read."""
    table = case.graph
    paths = [table.path] if isinstance(table.path, str) else table.path
    limit = int(case.memory.max_decompressed_gb * 1e9)
    return [open_edges(path, table.format, limit, ids=table.ids) for path in paths]


def stated_entries(stream: EdgeStream) -> int | None:
    """Stored entries of a matrix by the header of its file."""
    return stream.entries if stream.lines is None else 2 * stream.lines
