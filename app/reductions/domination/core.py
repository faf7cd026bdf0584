"""What reductions leave of a dominating set, as a graph whose nodes may be dominated or barred already."""

from dataclasses import dataclass

import numpy as np

from app.graphs.graph import Graph, index_type
from app.graphs.lists import row_counts, rows_with


@dataclass(frozen=True, eq=False)
class DominationCore:
    """The question which of some nodes dominate some others.

    graph     [k] nodes; its edges join one that is needed with one that is allowed
    names     [k] their numbers in the whole graph, ascending
    needed    [k] bool, whether a node has to be dominated (by itself or a neighbour)
    allowed   [k] bool, whether it may be chosen; each node is needed or allowed
    """

    graph: Graph
    names: np.ndarray
    needed: np.ndarray
    allowed: np.ndarray


def core_of(graph: Graph, needed: np.ndarray, allowed: np.ndarray) -> DominationCore:
    """The core of a whole graph whose nodes `needed` [n] bool have to be dominated by nodes `allowed` [n]."""
    if needed.all() and allowed.all():
        return DominationCore(graph, np.arange(graph.n), needed, allowed)
    names = np.flatnonzero(needed | allowed)
    number = np.cumsum(needed | allowed).astype(index_type(len(names))) - 1
    v = graph.indices
    here, there = needed | (allowed << np.uint8(1)), allowed | (needed << np.uint8(1))
    stored = (np.repeat(here, np.diff(graph.indptr)) & there[v]) > 0  # one needed, the other allowed
    indptr = np.append(0, np.cumsum(row_counts(stored, graph.indptr)[names]))
    indices = number[v[stored]]
    name = f"{graph.name} (kernel)" if len(names) < graph.n else graph.name
    core = Graph(name, len(names), 0, len(names), indptr, indices, edges=len(indices) // 2)
    return DominationCore(core, names, needed[names], allowed[names])


def undominated(core: DominationCore, chosen: np.ndarray) -> np.ndarray:
    """[k] bool, nodes that are needed and neither in `chosen` [k] bool nor next to one that is."""
    graph = core.graph
    near = rows_with(chosen[graph.indices], graph.indptr)
    return core.needed & ~(chosen | near)
