"""Nodes of a graph that a caller of the Python interface names: fixed ones, terminals, a solution."""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from app.api.given import (
    check_given,
    digest_of_arrays,
)
from app.api.pairs import pairs_given, places_of
from app.api.results import Solution
from app.api.routes import routes_given
from app.case.config import Case
from app.case.search import STARTS
from app.comm.guard import raise_together
from app.errors import CaseError, GraphError
from app.graphs.covering import count_candidates
from app.graphs.formats.source import shown
from app.graphs.ids import ids_of_names, named
from app.graphs.nodes.memory import numbers_of
from app.graphs.quadratic import SPINS
from app.partition.loaded import Loaded
from app.partition.stands_for import is_covering, is_quadratic
from app.problems.table import (
    CLASSES,
    MAPPING,
    NODE_ORDERS,
    ORDERS,
    ROUTES,
    TREE,
    make_problem,
)
from app.tasks.context import Context
from app.tasks.terminals import STEINER
from app.text import is_whole


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
