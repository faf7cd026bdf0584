"""Two graphs whose nodes are put on each other, and pairs of nodes, as a caller of the Python interface hands
them in.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from msgspec import structs

from app.api.given import check_given, digest_of_arrays
from app.api.results import Solution
from app.comm.guard import raise_together
from app.errors import CaseError, GraphError
from app.graphs.formats.source import shown
from app.graphs.ids import ids_of_names, named
from app.graphs.nodes.memory import numbers_of
from app.graphs.pairing import Given
from app.partition.loaded import Loaded
from app.partition.stands_for import is_paired
from app.tasks.context import Context
from app.tasks.names import written_ids
from app.text import is_whole

RIGHT = "a pair of NetworkX graphs, SciPy matrices or square arrays, or of paths, would be right"


def two_graphs(context: Context, graph: Any) -> tuple[Context, Any, Given | None, list[Any] | None]:
    """What is loaded of a pair of graphs, where the problem is of two.

    returns   the context, in whose case graph.onto names the second of two files; the first graph, as any
              other is loaded; of two graphs in memory their matrices, and the labels of the first one's nodes
    Ranks     all call
    """
    if not is_paired(context.case):
        return context, graph, None, None
    with raise_together(context.group, "reading the graphs"):
        both = list(graph) if isinstance(graph, tuple | list) and len(graph) == 2 else [graph]
        paths = [os.fspath(each) if isinstance(each, os.PathLike) else each for each in both]
        if len(paths) == 1 and isinstance(paths[0], str):
            return context, graph, None, None
        if len(paths) != 2:
            raise GraphError(f"graph: {context.case.problem.name} is of two graphs; {RIGHT}")
        if all(isinstance(each, str) for each in paths):
            if context.case.graph.onto:
                raise CaseError(
                    "graph: two files are given beside graph.onto; one second graph would be right"
                )
            table = structs.replace(context.case.graph, onto=paths[1])
            return replace(context, case=structs.replace(context.case, graph=table)), paths[0], None, None
        if context.case.problem.directed:
            told = (
                "problem.directed: is of files; a DiGraph, or a matrix that is not symmetric, says it itself"
            )
            raise CaseError(told)
        (a, first), (b, second) = (_matrix(each, which) for each, which in zip(both, ("first", "second")))
        others = np.arange(b.shape[0])
        if second is not None:
            others = written_ids(_Labelled(second), others)
        given = Given(a, b, others=others, labels=second)
        pattern = abs(a) + abs(a.T)
        pattern = sp.csr_array((np.ones(pattern.nnz), pattern.indices, pattern.indptr), shape=pattern.shape)
    parts = {"first graph": digest_of_arrays(a.data, a.indices, a.indptr)}
    parts["second graph"] = digest_of_arrays(b.data, b.indices, b.indptr)
    parts["second nodes"] = "" if second is None else repr(second)
    check_given(context.group, parts)
    return context, pattern, given, first


class _Labelled:
    """Labels, as `written_ids` asks a graph for them."""

    def __init__(self, labels: list[Any]) -> None:
        self.labels = labels


def _matrix(graph: Any, which: str) -> tuple[sp.csr_array, list[Any] | None]:
    """A graph as a matrix, and the labels of its nodes; None: by number. Raises GraphError."""
    labels = None
    if hasattr(graph, "adj") and hasattr(graph, "edges") and not isinstance(graph, type):
        labels = list(graph.nodes)
        if not labels:
            raise GraphError(f"graph: the {which} graph has no nodes; one or more would be right")
        found = _of_networkx(graph, labels, which)
    elif hasattr(graph, "tocoo") or isinstance(graph, np.ndarray):
        found = graph
    else:
        raise GraphError(f"graph: found {shown(repr(type(graph)))} as the {which} graph; {RIGHT}")
    if len(found.shape) != 2 or found.shape[0] != found.shape[1] or found.dtype.kind not in "iufb":
        told = f"{found.dtype} of shape {found.shape} as the {which} graph"
        raise GraphError(f"graph: found {told}; a square matrix of numbers would be right")
    made = _rows_of_matrix(found)
    if made.dtype.kind == "f" and not np.isfinite(made.data).all():
        raise GraphError(f"graph: the {which} graph has an entry that is no finite number")
    return made, labels


def _rows_of_matrix(matrix: Any) -> sp.csr_array:
    """An array or a SciPy matrix of numbers, repeated entries added: of int64 or uint64 what are whole ones,
    so that small types have room for sums.
    """
    kind, size = matrix.dtype.kind, matrix.dtype.itemsize
    if kind in "iu" and size < 8:
        matrix = matrix.astype(np.int64)
    elif kind == "f" and size < 4:  # which SciPy has not
        matrix = matrix.astype(np.float32)
    made = sp.csr_array(matrix)
    made.sum_duplicates()
    return made.astype(np.int64) if kind == "b" else made


def _of_networkx(graph: Any, labels: list[Any], which: str) -> sp.csr_array:
    """[n, n], the weights of a NetworkX graph's edges, 1 without, those of parallel ones added. Raises
    GraphError.
    """
    row_of, edges = {label: i for i, label in enumerate(labels)}, list(graph.edges(data="weight"))
    missing = sum(weight is None for _, _, weight in edges)
    for u, v, weight in edges:
        told = f"graph: edge {shown(f'{u}-{v}')} of the {which} graph has"
        if weight is None and missing < len(edges):
            raise GraphError(f"{told} no weight, others have; one for every edge would be right")
        if weight is not None and not isinstance(weight, Real):
            raise GraphError(f"{told} the weight {shown(repr(weight))}; a number would be right")
    data = _numbers([1 if weight is None else weight for _, _, weight in edges])
    u, v = (np.array([row_of[edge[end]] for edge in edges], dtype=np.int64) for end in (0, 1))
    if not graph.is_directed():
        mirrored = u != v
        u, v = np.append(u, v[mirrored]), np.append(v, u[mirrored])
        data = np.append(data, data[mirrored])
    return sp.csr_array((data, (u, v)), shape=(len(labels), len(labels)))


def _numbers(values: list[Any]) -> np.ndarray:
    """[k] int64 where all are whole numbers that fit, else float64, infinite where one is too large."""
    if all(is_whole(each) and -(1 << 63) <= each < 1 << 63 for each in values):
        return np.array([int(each) for each in values], dtype=np.int64)
    found = np.empty(len(values))
    for i, each in enumerate(values):
        try:
            found[i] = float(each)
        except OverflowError:  # a whole number of many digits
            found[i] = np.inf
    return found


def with_pairs(
    context: Context,
    loaded: Loaded,
    labels: list[Any] | None,
    given: Given | None,
    seeds: Any,
    similarity: Any,
) -> Loaded:
    """The graph with the second one, known pairs, and what pairs are worth. Ranks: all call."""
    case, said = context.case, {"seeds": seeds, "similarity": similarity}
    with raise_together(context.group, "reading the pairs"):
        for name, value in said.items():
            if value is not None and not is_paired(case):
                right = "alignment or qap would be right"
                raise CaseError(f"{name}: {case.problem.name} has none; {right}")
            if value is not None and given is None:
                right = f"graph.{name} of the settings would be right"
                raise GraphError(f"{name}: only of graphs in memory; of files {right}")
        if given is None:
            return loaded
        found = {
            "seeds": None if seeds is None else _seeds(seeds, given, labels),
            "gain": None if similarity is None else _gain(similarity, given, labels),
        }
    gain = found["gain"]
    parts = {"seeds": digest_of_arrays(found["seeds"])}
    parts["similarity"] = "" if gain is None else digest_of_arrays(gain.data, gain.indices, gain.indptr)
    check_given(context.group, parts)
    return replace(loaded, pairing=replace(given, **found), labels=labels)


def pairs_given(given: Any, called: str) -> tuple[list[Any], list[Any]]:
    """Nodes of the first graph, and of the second: of a mapping, a list of pairs, or a Solution. Raises
    CaseError, GraphError.
    """
    right = "a mapping of nodes of the first graph to nodes of the second would be right"
    if isinstance(given, Solution):
        if given.problem not in ("alignment", "qap"):
            raise CaseError(f"{called}: an answer of {given.problem}; one of alignment or qap would be right")
        given = given.mapping
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise GraphError(f"{called}: found {shown(repr(given))}; {right}")
    pairs = list(given.items() if isinstance(given, Mapping) else given)
    for each in pairs:
        if isinstance(each, str) or not hasattr(each, "__len__") or len(each) != 2:
            raise GraphError(f"{called}: found {shown(repr(each))}; {right}, or pairs of these")
    return [each[0] for each in pairs], [each[1] for each in pairs]


def places_of(nodes: list[Any], given: Given | None, texts: bool, called: str) -> np.ndarray:
    """[k] what stands for nodes of the second graph: rows where it is in memory, else their ids. Raises
    GraphError.
    """
    if given is not None and given.labels is not None:
        return np.array(numbers_of(nodes, given.labels, called), dtype=np.int64)
    if texts:
        return ids_of_names(nodes, called)
    if not all(is_whole(each) and 0 <= each < 1 << 63 for each in nodes):
        raise GraphError(f"{called}: found {shown(repr(nodes))}; nodes of the second graph would be right")
    return np.array([int(each) for each in nodes], dtype=np.int64)


def _rows(nodes: list[Any], labels: list[Any] | None, count: int, called: str, which: str) -> np.ndarray:
    """[k] int64 rows of nodes of one graph. Raises GraphError."""
    if labels is not None:
        return np.array(numbers_of(nodes, labels, called), dtype=np.int64)
    for each in nodes:
        if not (is_whole(each) and 0 <= each < count):
            right = f"a number 0..{count - 1} would be right"
            raise GraphError(f"{called}: found {shown(repr(each))} as a node of the {which} graph; {right}")
    return np.array([int(each) for each in nodes], dtype=np.int64)


def _both_rows(
    pairs: Any, given: Given, labels: list[Any] | None, called: str
) -> tuple[np.ndarray, np.ndarray]:
    first, second = pairs_given(pairs, called)
    return (
        _rows(first, labels, given.a.shape[0], called, "first"),
        _rows(second, given.labels, given.b.shape[0], called, "second"),
    )


def _seeds(seeds: Any, given: Given, labels: list[Any] | None) -> np.ndarray:
    """[n] int64, where a node has to be; -1: anywhere. Raises GraphError."""
    rows, places = _both_rows(seeds, given, labels, "seeds")
    for which, found in (("first", rows), ("second", places)):
        if len(np.unique(found)) < len(found):
            raise GraphError(f"seeds: a node of the {which} graph is in two pairs; one would be right")
    made = np.full(given.a.shape[0], -1, dtype=np.int64)
    made[rows] = places
    return made


def _gain(similarity: Any, given: Given, labels: list[Any] | None) -> sp.csr_array:
    """[n, m], what pairs are worth by themselves: of a matrix, or a mapping of pairs. Raises GraphError."""
    shape = given.a.shape[0], given.b.shape[0]
    if isinstance(similarity, Mapping):
        rows, places = _both_rows(list(similarity), given, labels, "similarity")
        values = list(similarity.values())
        for each in values:
            if isinstance(each, bool | np.bool_) or not isinstance(each, Real):
                raise GraphError(f"similarity: found {shown(repr(each))}; a number would be right")
        return sp.csr_array((_numbers(values), (rows, places)), shape=shape)
    fits = hasattr(similarity, "tocoo") or isinstance(similarity, np.ndarray)
    if not fits or similarity.shape != shape or similarity.dtype.kind not in "iufb":
        found = getattr(similarity, "shape", type(similarity))
        right = f"a matrix {list(shape)}, or a mapping of pairs to numbers, would be right"
        raise GraphError(f"similarity: found {shown(repr(found))}; {right}")
    return _rows_of_matrix(similarity)


def mapping_named(solved: Any, loaded: Loaded, ids: np.ndarray, labels: list[Any] | None) -> dict[Any, Any]:
    """The node of the second graph that each of the first is put on, as their owner calls them."""
    rows = np.flatnonzero(solved.solution >= 0)
    first = [labels[i] if labels is not None else _plain(i) for i in ids[rows].tolist()]
    given = loaded.pairing
    if given is not None and given.labels is not None:
        return dict(zip(first, (given.labels[x] for x in solved.solution[rows].tolist())))
    second = [line.split("\t")[1] for line in solved.text.splitlines()]
    texts = named(ids)
    return dict(zip(first, second if texts else map(int, second)))


def _plain(id: Any) -> Any:
    return id.decode() if isinstance(id, bytes) else id
