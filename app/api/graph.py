"""A graph that a caller of the Python interface hands in, on row partitions, and nodes of it by their ids."""

import os
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import replace
from functools import partial
from numbers import Real
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
from app.api.pairs import pairs_given, places_of
from app.api.results import Solution
from app.api.routes import routes_given
from app.case.config import Case
from app.case.search import STARTS
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
from app.graphs.ids import ids_of_names, named
from app.graphs.nodes.memory import numbers_of
from app.graphs.ordering import ORDERING
from app.graphs.quadratic import SPINS
from app.graphs.stream import EdgeStream
from app.graphs.tour_tables import stream_of_tour
from app.log import warn_caller
from app.partition.load import ordered, read_paths, weighted
from app.partition.loaded import Loaded
from app.partition.stands_for import graph_to_solve, is_covering, is_quadratic, of_neighbourhoods
from app.partition.streams import load_stream
from app.problems.table import (
    CLASSES,
    MAPPING,
    NODE_ORDERS,
    NODE_WEIGHTS_RIGHT,
    ORDERS,
    ROUTES,
    TREE,
    WEIGHED,
    counted_by,
    make_problem,
    reads_node_weights,
)
from app.tasks.context import Context
from app.tasks.deliveries import FACILITY, has_routes
from app.tasks.terminals import STEINER
from app.text import is_whole


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


def _refuse_repeats(nodes: list[Any], name: str) -> None:
    """Refuse a node that is named twice, as where values of all nodes are given. Raises GraphError."""
    try:
        counts = Counter(nodes)
    except TypeError:  # no node can be that, which is said in better words
        return
    for node, times in counts.items():
        if times > 1:
            vector = name != "terminals" and all(
                isinstance(each, Real) and each in (-1, 0, 1) for each in counts
            )
            right = "a mapping of nodes to their values" if vector else "each node once"
            raise GraphError(f"{name}: found {shown(repr(node))} {times} times; {right} would be right")


def with_fixed(
    context: Context, loaded: Loaded, labels: list[Any] | None, inside: Any, outside: Any
) -> Loaded:
    """The graph with the nodes that a caller fixes. Ranks: all call."""
    search, found = context.case.search, []
    with raise_together(context.group, "reading the fixed nodes"):
        for name, nodes in (("inside", inside), ("outside", outside)):
            if nodes is not None and getattr(search, name):
                raise CaseError(f"{name}: given here and in search.{name}; one of them would be right")
            texts = named(loaded.graph.ids)
            if isinstance(nodes, Mapping):
                raise GraphError(f"{name}: found a mapping; a list of nodes would be right")
            found.append(None if nodes is None else _ids_of(nodes, labels, name, texts))
        both = [] if inside is None or outside is None else np.intersect1d(*found).tolist()
        for node in both[:1]:
            shown_node = labels[node] if labels is not None else node.decode() if texts else node
            raise GraphError(
                f"inside, outside: node {shown_node!r} is in both; in one of them would be right"
            )
    sets = [None if each is None else np.unique(each) for each in found]  # in any order
    check_given(context.group, dict(zip(("inside", "outside"), map(digest_of_arrays, sets))))
    return replace(loaded, inside=found[0], outside=found[1], labels=labels)


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


def with_terminals(context: Context, loaded: Loaded, labels: list[Any] | None, terminals: Any) -> Loaded:
    """The graph with the terminals that a caller names. Ranks: all call."""
    case, found = context.case, None
    with raise_together(context.group, "reading the terminals"):
        if terminals is not None and case.problem.name != STEINER:
            raise CaseError(f"terminals: {case.problem.name} has none; steiner would be right")
        if terminals is not None and (case.graph.terminals or loaded.terminals is not None):
            whose = "in graph.terminals" if case.graph.terminals else "by the file"
            raise CaseError(f"terminals: given here and {whose}; one of them would be right")
        if terminals is not None:
            if isinstance(terminals, Mapping):
                raise GraphError("terminals: found a mapping; a list of nodes would be right")
            found = np.sort(_ids_of(terminals, labels, "terminals", named(loaded.graph.ids)))
    check_given(context.group, {"terminals": digest_of_arrays(found)})
    return loaded if found is None else replace(loaded, terminals=found, labels=labels)


def with_start(
    context: Context, loaded: Loaded, labels: list[Any] | None, start: Any, called: str = "start"
) -> Loaded:
    """The graph with a solution that a caller begins with, or wants checked. Ranks: all call."""
    found, colors, routes, solution = None, None, None, make_problem(context.case.problem.name).solution
    count = _count_named(context, loaded)
    with raise_together(context.group, "reading the solution to start from"):
        if start is not None and context.case.search.start not in STARTS:
            raise CaseError(f"{called}: given here and in search.start; one of them would be right")
        if start is not None and solution == TREE:
            found = _ids_of_tree(start, labels, called, named(loaded.graph.ids))
        elif start is not None and solution == ROUTES:
            stops, routes = routes_given(start, called)
            found = _ids_of(stops, labels, called, named(loaded.graph.ids))
        elif start is not None and solution == MAPPING:
            nodes, places = pairs_given(start, called)
            texts = named(loaded.graph.ids)
            found, colors = (
                _ids_of(nodes, labels, called, texts),
                places_of(places, loaded.pairing, texts, called),
            )
        elif start is not None:
            nodes = _nodes_of(context.case, count, start, called)
            if solution in CLASSES:
                nodes, colors = _numbered(nodes, called, CLASSES[solution])
            found = _ids_of(nodes, labels, called, named(loaded.graph.ids))
    same = found
    if colors is not None:  # in any order: sets have another one on each rank
        order = np.argsort(found, kind="stable")
        same = found = found[order]
        colors = colors[order]
    elif found is not None and solution not in (*ORDERS, TREE, ROUTES):
        same = np.unique(found)
    check_given(context.group, {called: digest_of_arrays(same, routes if colors is None else colors)})
    return replace(loaded, start=found, start_colors=colors, routes=routes)


def _ids_of_tree(given: Any, labels: list[Any] | None, called: str, texts: bool) -> np.ndarray:
    """[2 m] the ids of the ends of a tree's edges, edge by edge, in an order of their own; [1] of a tree of
    one node. Raises CaseError, GraphError.
    """
    nodes: list[Any] = []
    if isinstance(given, Solution):
        if given.problem != STEINER:
            raise CaseError(f"{called}: an answer of {given.problem}; one of {STEINER} would be right")
        given, nodes = given.edges, given.nodes
    elif hasattr(given, "edges") and hasattr(given, "nodes"):
        given, nodes = list(given.edges()), list(given.nodes())
    right = "a list of edges, pairs of nodes, would be right"
    mapping = isinstance(given, Mapping) and not isinstance(given, Set)  # edges of NetworkX are both
    if isinstance(given, str) or mapping or not _has_several(given):
        raise GraphError(f"{called}: found {shown(repr(given))}; {right}")
    edges = list(given)
    for each in edges:
        if isinstance(each, str) or not hasattr(each, "__len__") or len(each) != 2:
            raise GraphError(f"{called}: found {shown(repr(each))}; {right}")
    ends = [node for each in edges for node in each] or (nodes if len(nodes) == 1 else [])
    if not ends:
        raise GraphError(f"{called}: found no edges; {right}")
    try:
        apart = list(dict.fromkeys(ends))
    except TypeError:  # no node can be that
        raise GraphError(f"{called}: found {shown(repr(edges))}; {right}") from None
    ids = dict(zip(apart, _ids_of(apart, labels, called, texts).tolist()))
    found = np.array([ids[node] for node in ends])
    if len(found) == 1:
        return found
    pairs = np.sort(found.reshape(-1, 2), axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].reshape(-1)


def _count_named(context: Context, loaded: Loaded) -> int:
    """How many nodes a caller knows: without a reference, and without demands. Ranks: all call."""
    if is_covering(context.case):
        return context.group.max_integer(count_candidates(loaded.graph))
    return loaded.graph.n - is_quadratic(context.case)


def _nodes_of(case: Case, count: int, given: Any, called: str) -> Any:
    """The nodes of an answer to the problem of a case, in any form. Raises CaseError, GraphError.

    count   nodes that a caller knows
    """
    problem = make_problem(case.problem.name)
    if isinstance(given, Solution):
        if given.problem and make_problem(given.problem).solution != problem.solution:
            raise CaseError(f"{called}: an answer of {given.problem}; one of {problem.name} would be right")
        return given.nodes
    if problem.solution in ORDERS and isinstance(given, set | frozenset | Mapping):
        kind = "a mapping" if isinstance(given, Mapping) else "a set"
        what = "all nodes" if problem.solution in NODE_ORDERS else ORDERS[problem.solution]
        raise GraphError(f"{called}: found {kind}, which has no order; a list of {what} would be right")
    if isinstance(given, Mapping) and problem.solution not in CLASSES:
        return _nodes_of_values(given, count, problem.name == SPINS, called)
    return given


def _numbered(given: Any, called: str, what: str) -> tuple[list[Any], np.ndarray]:
    """Nodes, and the number of each [k] int64: of a mapping of nodes to colours (communities), or of a list
    of classes.

    Raises GraphError
    """
    right = "a mapping of nodes to whole numbers, or a list of lists of nodes, would be right"
    if isinstance(given, Mapping):
        for node, color in given.items():
            if not (is_whole(color) and 0 <= color < 1 << 63):
                found = f"the {what} {shown(repr(color))} of {shown(repr(node))}"
                raise GraphError(f"{called}: found {found}; {right}")
        return list(given), np.array([int(color) for color in given.values()], dtype=np.int64)
    plain = isinstance(given, str) or not hasattr(given, "__iter__")
    classes = [] if plain else list(given)
    if plain or any(isinstance(each, str | tuple) or not hasattr(each, "__iter__") for each in classes):
        raise GraphError(f"{called}: found {shown(repr(given))}; {right}")
    nodes = [list(each) for each in classes]
    colors = np.repeat(np.arange(len(nodes)), [len(each) for each in nodes])
    return [node for each in nodes for node in each], colors.astype(np.int64)


def _nodes_of_values(values: Mapping[Any, Any], count: int, spins: bool, called: str) -> list[Any]:
    """The nodes whose value is 1, of a mapping of all of them to 0 or 1, or to -1 or 1. Raises GraphError."""
    low = -1 if spins else 0
    right = f"a list of nodes, or a mapping of all {count} to {low} or 1, would be right"
    for node, value in values.items():
        if not isinstance(value, Real) or value not in (low, 1):
            raise GraphError(
                f"{called}: found the value {shown(repr(value))} of {shown(repr(node))}; {right}"
            )
    if len(values) != count:
        raise GraphError(f"{called}: found a mapping of {len(values)}; {right}")
    return [node for node, value in values.items() if value == 1]


def _has_several(given: Any) -> bool:
    """Whether there is something to go through; an array without axes only looks like it."""
    return hasattr(given, "__iter__") and not (isinstance(given, np.ndarray) and not given.ndim)


def _ids_of(nodes: Any, labels: list[Any] | None, name: str, texts: bool) -> np.ndarray:
    """[k] the ids of nodes that a caller names: int64, or those of names. Raises GraphError."""
    right = "a list of nodes would be right"
    if isinstance(nodes, str) or not _has_several(nodes):
        raise GraphError(f"{name}: found {nodes!r}; {right}")
    nodes = nodes.tolist() if isinstance(nodes, np.ndarray) else list(nodes)
    if labels is not None:
        flags = [node for node in nodes if isinstance(node, bool | np.bool_)]
        if flags and not any(isinstance(label, bool) for label in labels):  # else True is node 1
            raise GraphError(f"{name}: found {flags[0]}; {right}")
        _refuse_repeats(nodes, name)
        return np.array(numbers_of(nodes, labels, name), dtype=np.int64)
    if texts:
        _refuse_repeats(nodes, name)
        return ids_of_names(nodes, name)
    if not all(is_whole(node) and 0 <= node < 1 << 63 for node in nodes):
        raise GraphError(f"{name}: found {shown(repr(nodes))}; {right}")
    _refuse_repeats(nodes, name)
    return np.array(nodes, dtype=np.int64)
