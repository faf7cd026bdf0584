"""A graph that a caller of the Python interface hands in, on row partitions."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from app.api.given import (
    check_given,
    digest_of_arrays,
    digest_of_features,
    digests_of_stream,
    refuse_beside_file,
    refuse_file_of_edges,
)
from app.case.config import Case
from app.comm.guard import raise_together
from app.errors import CaseError, GraphError
from app.graphs.covering import COVERAGE, count_candidates
from app.graphs.diffusion import WEIGHTS
from app.graphs.formats.frames import is_frame
from app.graphs.formats.memory import (
    ADDED,
    ARCS,
    BOTH_WAYS,
    LENGTHS,
    stream_of_object,
    weights_of_nodes,
)
from app.graphs.formats.memory_edges import (
    edge_rows,
    features_of_rows,
    labels_of_edges,
    listed_labels,
    lists_edges,
    without_edge_features,
)
from app.graphs.formats.memory_sets import stream_of_family, with_demands
from app.graphs.formats.source import shown
from app.graphs.ordering import ORDERING
from app.graphs.stream import EdgeStream
from app.graphs.tour_tables import stream_of_tour
from app.log import warn_caller
from app.partition.load import ordered, read_paths, weighted
from app.partition.loaded import Loaded
from app.partition.stands_for import graph_to_solve, is_covering, is_quadratic, of_neighbourhoods
from app.partition.streams import load_stream
from app.problems.table import (
    NODE_WEIGHTS_RIGHT,
    WEIGHED,
    counted_by,
    reads_node_weights,
)
from app.tasks.context import Context
from app.tasks.deliveries import FACILITY, has_routes
from app.tasks.terminals import STEINER


def loaded_graph(
    context: Context, graph: Any, node_weights: Any = None, counts: str = "", edge_features: Any = None,
    edge_labels: Any = None, listed: bool = False, prizes: Any = None,
) -> tuple[Loaded, list[Any] | None]:  # fmt: skip
    """A graph in memory or of a file on row partitions, its rows as graph.order says, and the labels of its
    nodes by their own numbers; what is lost of it is a Python warning.

    counts   the weights that count: see stream_of_object
    edge_features, edge_labels   of a graph in memory: see formats/memory_edges.py
    prizes   of nodes, for Steiner trees, in memory; None: those that a NetworkX graph has
    listed   its edges will be gone through once more, in the order in which the caller lists them
    Ranks    all call
    """
    group, case = context.group, context.case
    source, labels, demands, found = None, None, None, {}
    counts = WEIGHED[case.problem.name] if is_quadratic(case) else _counted_of(case, counts)
    graph = os.fspath(graph) if isinstance(graph, os.PathLike) else graph
    graph = np.asarray(graph) if isinstance(graph, np.matrix) else graph
    with raise_together(group, "reading the graph"):
        if isinstance(graph, str):
            found = {"graph": "a file"}  # where it lies may differ; rank 0 reads it
            refuse_beside_file(edge_features)
            refuse_beside_file(edge_labels, "labels")
        elif case.problem.name == "tsp" or has_routes(case) or _of_points(case, graph):
            source, labels = stream_of_tour(graph)
        elif is_covering(case) and not of_neighbourhoods(case):
            source, labels, demands = stream_of_family(graph, case.problem.name)
        else:
            source, labels = _stream_with_edge_data(graph, counts, edge_features, edge_labels, listed)
        if node_weights is not None:
            _add_node_weights(case, source, graph, labels, node_weights, prizes, demands)
        if node_weights is None or case.problem.name != STEINER:
            _add_prizes(case, source, graph, labels, prizes)
        if not isinstance(graph, str):
            _refuse_files_beside(case)
        if group.size > 1 and not isinstance(graph, str):
            found = {
                "graph": "in memory",
                **digests_of_stream(source, labels and [*labels, *(demands or [])]),
                "edge_features": digest_of_features(source),
            }
        source = None if source is None else graph_to_solve(source, case)
    check_given(group, found)
    if isinstance(graph, str):
        item = read_paths(group, case.graph, [graph], case)
    else:
        demands = labels if of_neighbourhoods(case) else demands
        item = replace(load_stream(group, source, case.graph, case), demands=demands)
    item = weighted(group, item, case.graph, case)
    for text in item.warnings:
        warn_caller(text)
    return ordered(group, item, case.graph.order, case), labels


def _stream_with_edge_data(
    graph: Any, counts: str, edge_features: Any, edge_labels: Any, listed: bool
) -> tuple[EdgeStream, list[Any] | None]:
    """A graph in memory with what a caller says of its edges; see loaded_graph."""
    bare = without_edge_features(graph, edge_features, edge_labels)
    source, labels = stream_of_object(bare, counts=counts)
    rows = None if edge_features is None else edge_rows(graph, edge_features, source)
    if rows is not None:
        source.edge_features = partial(features_of_rows, rows, edge_features)
    if edge_labels is not None or (listed and lists_edges(graph)):
        told = None if edge_labels is None else listed_labels(graph, edge_labels, source)
        source.edge_labels = partial(labels_of_edges, told)
    return source, labels


def _add_node_weights(
    case: Case, source: Any, graph: Any, labels: list[Any] | None, node_weights: Any, prizes: Any,
    demands: list[Any] | None,
) -> None:  # fmt: skip
    """Weights of nodes, or of sets, to a graph in memory; of Steiner trees they are prizes of any sign."""
    if case.problem.name == STEINER and prizes is not None:
        raise CaseError("node_weights, prizes: one of the two would be right")
    if source is None or source.nodes is None or isinstance(graph, str):
        right = "of a file graph.node_weights of the settings would be right"
        raise GraphError(f"node_weights: only of graphs in memory; {right}")
    count = source.nodes if demands is None else len(labels)
    kept = weights_of_nodes(node_weights, labels, count, source.warnings)
    source.node_weights = kept if demands is None else with_demands(source, case.problem.name, kept)
    if case.problem.name == STEINER:
        source.prized = source.heaviest = True


def _refuse_files_beside(case: Case) -> None:
    """Refuse files of [graph] that say of a file's graph what calls say of one in memory."""
    for key in ("prizes", "node_weights", "element_weights", "terminals", "demands"):
        if getattr(case.graph, key):
            what = "sets" if key == "element_weights" else "a graph"
            raise CaseError(f"graph.{key}: of {what} in memory {key}= would be right")
    refuse_file_of_edges(case)


def _counted_of(case: Case, counts: str) -> str:
    """The weights that count: of facilities those of nodes beside lengths, of news probabilities, of orders
    sums.
    """
    if case.problem.name == FACILITY:
        return LENGTHS
    if case.problem.name == ORDERING:
        return ADDED
    if case.problem.name == "influence" and case.influence.probabilities == WEIGHTS:
        return ARCS if case.influence.directed else BOTH_WAYS
    return counts


def _add_prizes(case: Case, source: Any, graph: Any, labels: list[Any] | None, prizes: Any) -> None:
    """Prizes of nodes to a graph in memory, where a caller or a NetworkX graph names some."""
    if prizes is not None and case.problem.name != STEINER:
        raise CaseError(f"prizes: {case.problem.name} has none; steiner would be right")
    if prizes is not None and isinstance(graph, str):
        raise GraphError(
            "prizes: only of graphs in memory; of a file graph.prizes of the settings would be right"
        )
    if case.problem.name != STEINER or source is None or isinstance(graph, str):
        return
    if prizes is None and hasattr(graph, "nodes") and hasattr(graph, "edges"):
        prizes = {label: d["prize"] for label, d in graph.nodes(data=True) if "prize" in d} or None
    if prizes is None:
        return
    if isinstance(prizes, Mapping):
        known = range(source.nodes) if labels is None else labels
        rest = prizes.keys() - set(known)
        if rest:
            other = min(map(repr, rest))
            raise GraphError(f"prizes: found a prize of {shown(other)}, which is no node of the graph")
        prizes = {label: prizes.get(label, 0) for label in known}
    source.node_weights = weights_of_nodes(
        prizes, labels, source.nodes, source.warnings, "prizes", what="prize"
    )
    source.prized = True


def _of_points(case: Case, graph: Any) -> bool:
    """Whether what facilities are sought for are points, or distances between all: of arrays but those of
    edges with lengths, and of DataFrames.
    """
    array = isinstance(graph, np.ndarray) and graph.ndim == 2 and graph.shape[1] != 3
    square = isinstance(graph, np.ndarray) and graph.shape == (3, 3)
    return case.problem.name == FACILITY and (array or square or is_frame(graph))


def loses_directions(context: Context, graph: Any) -> bool:
    """Whether the problem takes the directions of a NetworkX graph away, which may have been meant."""
    near = context.case.problem.name in ("mds", "maxcut", FACILITY) or of_neighbourhoods(context.case)
    return near and getattr(graph, "is_directed", bool)()


def refuse_node_weights(name: str, node_weights: Any) -> None:
    """Refuse weights of nodes where the problem of that name counts others. Raises CaseError."""
    if node_weights is not None and name != STEINER and not reads_node_weights(name):
        raise CaseError(f"node_weights: {name} counts {counted_by(name)}; {NODE_WEIGHTS_RIGHT}")


def with_element_weights(context: Context, loaded: Loaded, given: Any) -> Loaded:
    """The family with the weights of elements that a caller gives. Ranks: all call."""
    if given is None:
        return loaded
    case, graph = context.case, loaded.graph
    with raise_together(context.group, "reading the weights of elements"):
        if case.problem.name != COVERAGE:
            raise CaseError(f"element_weights: {case.problem.name} has none; coverage would be right")
        if loaded.source != "memory":
            right = "of a file graph.element_weights of the settings would be right"
            raise GraphError(f"element_weights: only of sets in memory; {right}")
    count = context.group.max_integer(count_candidates(graph))
    with raise_together(context.group, "reading the weights of elements"):
        said: list[str] = []
        kind = "element_weights", "element"
        weights = weights_of_nodes(given, loaded.demands, graph.n - 1 - count, said, *kind)
        if (weights < 0).any():
            at = int((weights < 0).argmax())
            of = repr(at if loaded.demands is None else loaded.demands[at])
            raise GraphError(
                f"element_weights: found the weight {weights[at]:g} of {of}; 0 or more would be right"
            )
    check_given(context.group, {"element_weights": digest_of_arrays(weights)})
    for text in said:
        warn_caller(text)
    all_weights = np.concatenate([np.ones(count, np.float32), weights, np.zeros(1, np.float32)])
    own, place = all_weights[graph.lo : graph.hi], np.arange(graph.lo, graph.hi)
    if graph.node_weights is not None:
        own = np.where(place < count, graph.node_weights, own)
    return replace(loaded, graph=replace(graph, node_weights=own))
