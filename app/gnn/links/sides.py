"""Graphs of two kinds of nodes, as users and items: only a node of each is ever joined, drawn or proposed."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from app.comm.group import Group
from app.errors import CaseError
from app.graphs.graph import Graph, narrow
from app.graphs.ids import one_id
from app.partition.ids import ids_everywhere
from app.partition.loaded import Loaded

RIGHT = "links.sides = FILE would be right, or links.between = any"


@dataclass(frozen=True, eq=False)
class Sides:
    """first [n] bool, the same on all ranks: rows of the first side, whose nodes get recommendations."""

    first: np.ndarray

    @cached_property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Ascending rows of the first side, and of the second."""
        return np.flatnonzero(self.first), np.flatnonzero(~self.first)

    @cached_property
    def places(self) -> np.ndarray:
        """[n] int64, how many rows of its side come before each."""
        before = np.cumsum(self.first) - self.first
        return np.where(self.first, before, np.arange(len(self.first)) - before)

    def across(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """[k] bool, which pairs of rows are of two sides."""
        return self.first[u] != self.first[v]


def given_sides(first: np.ndarray, loaded: Loaded, group: Group) -> Sides:
    """The sides that somebody names, first [n] bool by rows. Ranks: all call.

    Raises   CaseError where edges lie within a side, or a side has no node
    """
    if first.all() or not first.any():
        which = "second" if first.all() else "first"
        raise CaseError(f"links.between: the {which} side has no node; nodes of two kinds would be right")
    sides = Sides(first)
    if (pair := _edge_within(sides, loaded.graph, group)) is not None:
        edge = called(loaded, group, *pair)
        raise CaseError(f"links.between: edge {edge} lies within a side; links.between = any would be right")
    return sides


def coloured_sides(loaded: Loaded, group: Group) -> Sides:
    """The two sides of a connected bipartite graph; that of its first node is the first.

    Each rank sends a forest of its edges. In the graph of all these every node stands twice, once for either
    side, and an edge joins its ends on different sides: what is connected to the first node there is of one.
    Ranks     all call
    Raises    CaseError where the graph has no two sides, or parts whose sides may belong together either way
    """
    graph, n = loaded.graph, loaded.graph.n
    u, v = _own_forest(graph)
    sizes = group.gather_integers(np.array([len(u)]))[:, 0].tolist()
    u, v = (group.gather_host(each, sizes) for each in (u, v))
    parts, _ = connected_components(_pattern(u, v, n), directed=False)
    if parts > 1:
        said = f"{graph.name} is in {parts} parts, of which nobody knows what sides belong together"
        raise CaseError(f"links.between: {said}; {RIGHT}")
    part = connected_components(
        _pattern(np.concatenate([u, u + n]), np.concatenate([v + n, v]), 2 * n), directed=False
    )[1]
    first_node = 0 if loaded.order_all is None else int(np.argmin(loaded.order_all))
    sides = Sides(part[:n] == part[first_node])
    if _edge_within(sides, graph, group) is not None:
        said = f"{graph.name} has a cycle of odd length, and so no two sides"
        raise CaseError(f"links.between: {said}; links.between = any would be right")
    return given_sides(sides.first, loaded, group)


def refuse_within(sides: Sides, pairs: np.ndarray, what: str, loaded: Loaded, group: Group) -> None:
    """Refuse pairs of rows [k, 2] that are of one side. Raises CaseError. Ranks: all call.

    what   whose they are
    """
    wrong = pairs[~sides.across(*pairs.T)]
    if len(wrong):
        edge = called(loaded, group, *wrong[0].tolist())
        raise CaseError(f"{what}: pair {edge} is of one side; a node of each would be right")


def called(loaded: Loaded, group: Group, *rows: int) -> str:
    """Nodes as a message names them, "5-7". Ranks: all call."""
    ids = ids_everywhere(group, loaded.graph, loaded.rows)
    return "-".join(one_id(ids, row) for row in rows)


def _pattern(u: np.ndarray, v: np.ndarray, n: int) -> sp.csr_array:
    """[n, n] with an entry for each pair."""
    return narrow(sp.csr_array((np.ones(len(u), dtype=np.int8), (u, v)), shape=(n, n)))


def _own_forest(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """[k], [k] int64: edges of own rows that connect what all of them do, without a cycle."""
    pattern = _pattern(graph.row_of(), graph.indices.astype(np.int64), graph.n)
    forest = minimum_spanning_tree(pattern).tocoo()
    return forest.row.astype(np.int64), forest.col.astype(np.int64)


def _edge_within(sides: Sides, graph: Graph, group: Group) -> tuple[int, int] | None:
    """The first edge within a side; None: there is none. Ranks: all call."""
    u, v = graph.row_of(), graph.indices.astype(np.int64)
    wrong = ~sides.across(u, v) & (u < v)
    nobody = graph.n * graph.n
    least = -group.max_integer(-int((u[wrong] * graph.n + v[wrong]).min(initial=nobody)))
    return None if least == nobody else divmod(least, graph.n)
