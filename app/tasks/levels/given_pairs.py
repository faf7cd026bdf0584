"""Pairs and nodes that a case of links names, and the two sides that pairs may be of."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.comm.group import Group
from app.comm.guard import raise_together
from app.gnn.links.sides import Sides, coloured_sides, given_sides, refuse_within
from app.partition.generators import second_side
from app.partition.ids import ids_on_first
from app.partition.loaded import Loaded
from app.partition.pairs import pairs_of_file, rows_of_pairs
from app.search.solution_text import read_nodes, read_sides
from app.tasks.context import Context
from app.text import printable

NAMES = {"val": "links.val_edges", "test": "links.test_edges", "asked": "links.pairs"}  # of given pairs


@dataclass
class GivenPairs:
    """Pairs that a case names, as rows [k, 2] u < v on all ranks, and nodes; None: none are given.

    val, test   the edges that are held out     asked   those that predictions tell of
    first       [n] bool, the rows of the first of two sides
    nodes       [k] the rows that partners are proposed for
    """

    val: np.ndarray | None = None
    test: np.ndarray | None = None
    asked: np.ndarray | None = None
    first: np.ndarray | None = None
    nodes: np.ndarray | None = None


def read_pairs(context: Context, loaded: Loaded) -> GivenPairs:
    """The pairs and nodes of the files that [links] names. Ranks: all call."""
    links, group, found = context.case.links, context.group, []
    with context.log.phase("read"):
        for path in (links.val_edges, links.test_edges, links.pairs):
            ids = pairs_of_file(group, context.case, path) if path else None
            found.append(None if ids is None else rows_of_pairs(group, loaded, ids, printable(path)))
        first = _flags_of(group, loaded, links.sides, read_sides)
        nodes = _flags_of(group, loaded, links.propose_for, read_nodes)
    first = None if first is None else ~first
    return GivenPairs(*found, first, None if nodes is None else np.flatnonzero(nodes))


def _flags_of(
    group: Group, loaded: Loaded, path: str, read: Callable[[str, np.ndarray], np.ndarray]
) -> np.ndarray | None:
    """[n] bool on all ranks, what a file says of the rows; None: there is no file. Ranks: all call."""
    if not path:
        return None
    ids, flags = ids_on_first(group, loaded.graph, loaded.rows), np.zeros(loaded.graph.n, dtype=np.uint8)
    with raise_together(group, "reading nodes"):
        if group.rank == 0:
            flags[:] = read(path, ids)
    return group.broadcast(flags).astype(bool)


def sides_of(context: Context, loaded: Loaded, given: GivenPairs) -> Sides | None:
    """The two kinds of nodes that pairs are of; None: pairs are of any two nodes. Ranks: all call.

    Raises CaseError where pairs or edges are within a side, or no two sides are there
    """
    group = context.group
    if context.case.links.between == "any":
        return None
    if given.first is not None:
        sides = given_sides(given.first, loaded, group)
    elif loaded.source == "generator" and context.case.graph.generator == "bipartite":
        old = np.arange(loaded.graph.n) if loaded.order_all is None else loaded.order_all
        sides = given_sides(old < len(old) - second_side(context.case.graph, len(old)), loaded, group)
    else:
        sides = coloured_sides(loaded, group)
    for what in ("val", "test", "asked"):
        if (pairs := getattr(given, what)) is not None:
            refuse_within(sides, pairs, NAMES[what], loaded, group)
    return sides
