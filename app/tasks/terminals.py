"""The terminals of a Steiner tree, and prizes of nodes: of a file, of a caller, or drawn."""

from collections.abc import Callable, Iterator

import numpy as np

from app.case.config import Case
from app.errors import CaseError, GraphError
from app.graphs.graph import Graph
from app.graphs.ids import NodeIndex, one_id
from app.graphs.joined import components
from app.partition.loaded import Loaded
from app.rng import stream
from app.search.solution_text import read_nodes
from app.toolbox import Instance

STEINER = "steiner"  # the problem that has some
RIGHT = "a SteinLib file (.stp), graph.terminals=FILE or problem.terminals=K would be right"


def terminals_of(case: Case, loaded: Loaded, whole: Graph, written: np.ndarray) -> np.ndarray:
    """[k] int64, ascending: the rows of the terminals; none where the problem has none. Raises CaseError,
    GraphError.

    written   [n] what files call the nodes
    """
    if case.problem.name != STEINER:
        return np.empty(0, dtype=np.int64)
    path = case.graph.terminals
    if loaded.terminals is not None and path and loaded.source != "generator":
        raise CaseError(f"graph.terminals: {whole.name} has terminals of its own; leave the key out")
    if loaded.terminals is not None:
        return _rows_of(loaded.terminals, whole.held_ids())
    if path and loaded.source != "generator":
        return np.flatnonzero(read_nodes(path, written))
    if case.problem.prizes or loaded.prized:
        return np.empty(0, dtype=np.int64)
    if not case.problem.terminals:
        raise GraphError(f"{whole.name}: found no terminals; {RIGHT}")
    return _drawn(case, loaded, whole)


def prizes_of(case: Case, loaded: Loaded, whole: Graph) -> np.ndarray | None:
    """[n] float32, what a tree pays for nodes that it leaves out; None: it has terminals alone. Raises
    CaseError.
    """
    if case.problem.name != STEINER:
        return None
    most = case.problem.prizes
    if most and (loaded.prized or loaded.terminals is not None):
        raise CaseError(f"problem.prizes: {whole.name} has nodes named for it; leave the key out")
    if not most:
        return whole.node_weights if loaded.prized else None
    nodes, prizes = _drawn(case, loaded, whole), np.zeros(whole.n)
    prizes[nodes] = stream(case.seed + loaded.seed, "prizes").integers(1, most + 1, len(nodes))
    return prizes.astype(np.float32)


def without_effect(instance: Instance, called: Callable[[int], str]) -> Iterator[str]:
    """What a caller says of prizes, or of lengths beside weights of nodes, that changes no answer.

    called   a node, as the caller calls it
    """
    beside, weights = instance.beside, instance.graph.weights
    prizes = beside.prizes
    if prizes is None:
        return
    if beside.heaviest:
        if weights is not None and (weights != 1).any():
            yield "edges of a connected subgraph cost nothing: their weights are not read"
        return
    if not prizes.any():
        yield "no node has a prize above 0: a tree of the terminals, or of one node, is the answer"
    both = beside.terminals[prizes[beside.terminals] > 0]
    if len(both):
        more = f", like those of {len(both) - 1} more," if len(both) > 1 else ""
        told = f"the prize of the terminal {called(int(both[0]))}{more}"
        yield f"{told} counts for nothing: trees hold it anyway"


def _rows_of(named: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """[k] int64, ascending: the rows of nodes by their ids. Raises GraphError."""
    rows = NodeIndex(ids).find(named)
    if (rows < 0).any():
        raise GraphError(f"terminals: node {one_id(named, int((rows < 0).argmax()))} is not in the graph")
    return np.sort(rows)


def _drawn(case: Case, loaded: Loaded, whole: Graph) -> np.ndarray:
    """[k] int64, ascending: as many nodes of the largest component, of equal ones the first, as a case asks
    for; all where it has fewer.
    """
    count, seed, compiled = case.problem.terminals, case.seed + loaded.seed, case.run.kernels == "auto"
    part = components(whole.indptr, whole.indices, compiled=compiled)
    nodes = np.flatnonzero(part == np.bincount(part, minlength=1).argmax())
    return np.sort(stream(seed, "terminals").permutation(nodes)[:count]).astype(np.int64)
