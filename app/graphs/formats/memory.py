"""Graphs already in memory as edge streams: of NetworkX, SciPy, NumPy and DataFrames, and Graph objects."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.formats.frames import columns_of, is_frame, labels_of_matrix, number_nodes
from app.graphs.formats.source import shown
from app.graphs.given import rows_by_node, unmasked
from app.graphs.graph import Graph
from app.graphs.stream import EdgeStream
from app.graphs.weights import kept_weights

LENGTHS, ARCS, BOTH_WAYS = "edges and nodes", "arcs and nodes", "arcs both ways and nodes"
ADDED = "arcs that add up"
EDGES = ("edges", LENGTHS)
COUNTED = (*EDGES, "terms", ADDED)
OF_NODES = ("nodes", LENGTHS, ARCS, BOTH_WAYS)
LARGEST_NUMBER = (1 << 32) - 3  # of a node
MANY, SPARSEST = 10_000_000, 100  # nodes, and beyond these nodes an edge: numbers are ids, not numbers from 0


def stream_of(graph: Graph) -> EdgeStream:
    """A whole graph, each edge once."""
    rows, columns = graph.row_of(), graph.indices.astype(np.int64)
    once = rows < columns
    weights = None if graph.weights is None else graph.weights[once]
    stream = _stream(graph.name, graph.n, rows[once], columns[once], weights, graph.first_id)
    stream.undirected = True
    return stream


def stream_of_object(
    graph: Any, name: str = "graph", counts: str = ""
) -> tuple[EdgeStream, list[Any] | None]:
    """The edges of a NetworkX graph, a SciPy matrix, a NumPy array or a DataFrame, and labels.

    An array is an adjacency matrix where it is square: [n, n] weights, zero for no edge; else [m, 2] pairs of
    node numbers, or [m, 3] with a weight. So two edges without and three with weights have no form as an
    array; a DataFrame, a SciPy matrix or a list of tuples does: each is an edge (u, v) or (u, v, weight),
    however many there are.
    A DataFrame has two columns of nodes, whole numbers or texts, and perhaps one of weights: its nodes are
    those that occur, in ascending order.
    NetworkX edge attributes `weight` become edge weights where every edge has one. An entry [i, j], a pair
    and an edge of a directed graph go from i to j, which counts where graph.neighbours says so.

    counts   "edges": their weights count, so that all have one or none, and what is lost is a warning;
             "terms": so do those of loops, and nothing is merged, so that nothing is lost by it;
             "nodes": the node attributes `weight` of NetworkX become node weights; LENGTHS: as "edges", and
             as "nodes"; ARCS, BOTH_WAYS: as "nodes", with probabilities of edges, of which what is lost by
             merging is a warning, of the same direction alone or of both; ADDED: as "edges", and nothing is
             merged; "": none
    Raises GraphError for anything else.
    """
    if hasattr(graph, "adj") and hasattr(graph, "edges") and not isinstance(graph, type):
        return _networkx(graph, name, counts)
    if hasattr(graph, "tocoo") and len(graph.shape) == 2:
        return _scipy(graph, name, counts), None
    if isinstance(graph, np.ndarray):
        return _array(unmasked("graph", graph), name, counts), None
    if is_frame(graph):
        return _frame(graph, name, counts)
    if counts == "terms" and isinstance(graph, Mapping):
        return _mapping(list(graph.items()), name)
    if counts == "terms" and _is_halves(graph):
        return _mapping([*_linear(graph[0]), *_of_two(_products(graph[0], graph[1]))], name)
    if _is_edges(graph):
        return _array(_edges(graph), name, counts, edges=True), None
    needed = "a NetworkX graph, a SciPy sparse matrix, a NumPy array, a DataFrame, a list of tuples (u, v) "
    needed += "or a file name is needed"
    if counts == "terms":
        needed += "; or a mapping {(i, j): c}, or a pair (h, J) of linear terms and products"
    raise GraphError(f"graph: {needed}, got {type(graph)}")


def coordinates(points: np.ndarray) -> np.ndarray:
    """Points in the plane as float64 [n, 2]; raises GraphError for anything else."""
    points = unmasked("graph", points)
    if points.ndim != 2 or points.shape[1] != 2 or points.dtype.kind not in "iuf":
        raise GraphError(f"graph: found {_kind(points)}; coordinates [n, 2] would be right")
    if not len(points):
        raise GraphError("graph: found no points; at least one would be right")
    found = points.astype(np.float64)
    if not np.isfinite(found).all():
        raise GraphError("graph: the coordinates hold NaN or infinite numbers")
    return found


def _kind(given: Any) -> str:
    """What a value is, in short."""
    if isinstance(given, np.ndarray):
        return f"an array of {given.dtype} of shape {given.shape}"
    return str(type(given))


def _is_edges(graph: Any) -> bool:
    """Whether this is a list of tuples, each of two or each of three."""
    if not isinstance(graph, list | tuple) or not all(isinstance(each, tuple) for each in graph):
        return False
    return {len(each) for each in graph} in ({2}, {3})


def _edges(graph: list[tuple[Any, ...]] | tuple[tuple[Any, ...], ...]) -> np.ndarray:
    """[m, 2] or [m, 3] of a list of tuples. Raises GraphError."""
    for each in graph:
        if not all(isinstance(value, Real) and not isinstance(value, bool | np.bool_) for value in each):
            right = "numbers of nodes would be right (names: a DataFrame or a NetworkX graph)"
            raise GraphError(f"graph: found edge {shown(repr(each))}; {right}")
    return np.array(graph)


def _array(array: np.ndarray, name: str, counts: str, edges: bool = False) -> EdgeStream:
    """A dense adjacency matrix, or pairs of node numbers, perhaps with weights; edges: never a matrix."""
    square = array.ndim == 2 and array.shape[0] == array.shape[1] and not edges
    if square and array.dtype.kind in "iufb":
        rows, columns = np.nonzero(array)
        directed = bool(((array != array.T) & (array != 0) & (array.T != 0)).any())
        return _matrix(name, len(array), rows, columns, array[rows, columns], directed, counts)
    kinds = {2: "iu", 3: "iuf"}.get(array.shape[1], "") if array.ndim == 2 else ""
    if array.dtype.kind not in (kinds or " "):
        right = "[n, n] numbers, [m, 2] integers, or [m, 3] numbers, would be right"
        raise GraphError(f"graph: found {_kind(array)}; {right}")
    ends = array[:, :2].astype(np.float64) if array.dtype.kind == "f" else array[:, :2]
    wrong = ~((ends >= 0) & (ends <= LARGEST_NUMBER) & (ends == np.floor(ends)))
    if wrong.any():
        right = "node numbers from 0 would be right" if kinds == "iu" else "[m, 3] holds two and a weight"
        raise GraphError(f"graph: found node number {ends[wrong][0]}; {right}")
    ends = ends.astype(np.int64)
    weights, n = None if kinds == "iu" else array[:, 2], int(ends.max(initial=-1)) + 1
    if n > MANY + SPARSEST * len(ends):
        right = "a DataFrame, of which only nodes that occur count, would be right"
        raise GraphError(f"graph: found node number {n - 1} in an array of {len(ends)} edges; {right}")
    return _listed(name, n, ends, weights, lambda i: i, counts)


def _frame(frame: Any, name: str, counts: str) -> tuple[EdgeStream, list[Any]]:
    """A table of edges, and its nodes."""
    if (labels := labels_of_matrix(frame)) is not None:
        return _array(np.asarray(frame[labels]), name, counts), labels
    names, values = columns_of(frame)
    ends, nodes = number_nodes(names[:2], values[:2])
    weights = values[2] if len(values) == 3 else None
    return _listed(name, len(nodes), np.stack(ends, axis=1), weights, lambda i: nodes[i], counts), nodes


def _listed(
    name: str, n: int, ends: np.ndarray, weights: Any, node: Callable[[int], Any], counts: str
) -> EdgeStream:
    """A list of edges.

    ends   [m, 2] node numbers     weights   [m] or None     node   what a number is called
    """
    said: list[str] = []
    w = None
    if weights is not None:
        w = as_weights(weights, lambda i: f"edge {node(ends[i, 0])}-{node(ends[i, 1])}", said)
    stream = _stream(name, n, ends[:, 0], ends[:, 1], w)
    stream.warnings += said if counts in COUNTED else []
    stream.warnings += _lost_of_parallel_edges(counts, False, ends, w)
    return stream


def _is_halves(graph: Any) -> bool:
    """Whether this is a pair (h, J): linear terms, and a mapping, a matrix or a list of products."""
    if not isinstance(graph, tuple | list) or len(graph) != 2:
        return False
    second = graph[1]
    matrix = hasattr(second, "tocoo") or (isinstance(second, np.ndarray) and second.ndim == 2)
    return isinstance(second, Mapping) or matrix or (isinstance(second, list) and _is_edges(second))


def _products(h: Any, J: Any) -> Iterable[tuple[Any, Any]]:
    """The terms ((i, j), J_ij) of a mapping, a square matrix or a list of (i, j, c)."""
    if isinstance(J, Mapping):
        return J.items()
    if isinstance(J, list):
        return [((i, j), 1 if not c else c[0]) for i, j, *c in J]
    if isinstance(h, Mapping) or len(set(J.shape)) > 1 or len(_in_order(h)) != J.shape[0]:
        right = "linear terms in the order of its rows, or products as a mapping, would be right"
        raise GraphError(f"graph: found products as a matrix {J.shape}; {right}")
    entries = J.tocoo() if hasattr(J, "tocoo") else None
    rows, columns = (entries.row, entries.col) if entries is not None else np.nonzero(J)
    values = entries.data if entries is not None else J[rows, columns]
    return [((i, j), c) for i, j, c in zip(rows.tolist(), columns.tolist(), values.tolist())]


def _of_two(products: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """Products of two variables; that of one with itself is a linear term, or for spins a constant."""
    for pair, value in products:
        if isinstance(pair, tuple) and len(pair) == 2 and pair[0] == pair[1] and value != 0:
            right = "linear terms alone, and products of two, would be right"
            raise GraphError(f"graph: found a product of {shown(repr(pair[0]))} with itself; {right}")
        yield pair, value


def _linear(h: Any) -> list[tuple[Any, Any]]:
    """The terms ((i, i), h_i) of a mapping {i: h_i}, or of numbers in the order of the variables 0, 1, ..."""
    if isinstance(h, Mapping):
        return [((i, i), value) for i, value in h.items()]
    return [((i, i), value) for i, value in enumerate(_in_order(h, "graph: linear terms", "variable"))]


def _mapping(terms: list[tuple[Any, Any]], name: str) -> tuple[EdgeStream, list[Any]]:
    """The terms ((i, j), c) of a function, and its variables in the order in which they occur."""
    for pair, _ in terms:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise GraphError(
                f"graph: found the key {shown(repr(pair))}; (i, j), two variables, would be right"
            )
    labels = list(dict.fromkeys(label for pair, _ in terms for label in pair))
    number = {label: i for i, label in enumerate(labels)}
    ends = np.array([(number[i], number[j]) for (i, j), _ in terms], dtype=np.int64).reshape(-1, 2)
    values = [value for _, value in terms]
    stream = _listed(name, len(labels), ends, values, lambda i: labels[i], "terms")
    return stream, labels


def _matrix(
    name: str, n: int, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, directed: bool, counts: str
) -> EdgeStream:
    """The stored entries of a matrix; directed: two entries of a pair differ."""
    said: list[str] = []
    weights = kept_weights(values, lambda i: f"graph: the entry [{rows[i]}, {columns[i]}]", said)
    if not np.isfinite(weights).all():
        found = "weights beyond 3.4e38" if np.isfinite(values).all() else "NaN or infinite weights"
        raise GraphError(f"graph: the matrix holds {found}")
    if directed and counts in (*EDGES, BOTH_WAYS):
        said.append("graph: the matrix is not symmetric: of two entries of a pair the larger counts")
    stream = _stream(name, n, rows, columns, None if (weights == 1).all() else weights)
    stream.warnings += said if counts in (*COUNTED, BOTH_WAYS) else []
    return stream


def _networkx(graph: Any, name: str, counts: str) -> tuple[EdgeStream, list[Any]]:
    labels = list(graph.nodes)
    number = {label: i for i, label in enumerate(labels)}
    ends = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    said: list[str] = []
    w = _edge_weights(graph, counts, said)
    stream = _stream(str(graph.name or name), len(labels), ends[:, 0], ends[:, 1], w)
    stream.warnings += said if counts in COUNTED else []
    both = BOTH_WAYS if counts == ARCS and not graph.is_directed() else counts
    stream.warnings += _lost_of_parallel_edges(both, graph.is_multigraph(), ends, w)
    stream.undirected = not graph.is_directed()
    own = {label: d["weight"] for label, d in graph.nodes(data=True) if "weight" in d}
    if own and counts in OF_NODES:
        stream.node_weights = weights_of_nodes(own, labels, len(labels), stream.warnings)
    return stream, labels


def has_node_weights(graph: Any) -> bool:
    """Whether a NetworkX graph has the node attribute `weight`."""
    known = hasattr(graph, "adj") and hasattr(graph, "edges") and not isinstance(graph, type)
    return known and any("weight" in attributes for _, attributes in graph.nodes(data=True))


def _edge_weights(graph: Any, counts: str, said: list[str]) -> np.ndarray | None:
    """[m] float32 edge attributes `weight`; None where no edge has one, or not all that need not count."""
    count, dropped = counts in COUNTED, counts != "terms"  # a loop that is dropped plays no part
    weights = [1 if u == v and dropped else d.get("weight") for u, v, d in graph.edges(data=True)]
    missing = sum(weight is None for weight in weights)
    if count and missing == len(weights):
        said += _unread("edges", (d for _, _, d in graph.edges(data=True)), "every edge counts 1")
    if counts == "terms":
        said += _unread("nodes", (d for _, d in graph.nodes(data=True)), "linear terms are weights of loops")
    if missing == len(weights) or (missing and not count):
        return None
    pairs = list(graph.edges())
    if missing:
        u, v = pairs[weights.index(None)]
        raise GraphError(f"graph: edge {u}-{v} has no weight, others have; one for every edge would be right")
    return as_weights(weights, lambda i: "edge {}-{}".format(*pairs[i]), said)


def _unread(what: str, attributes: Iterable[Mapping[str, Any]], instead: str) -> list[str]:
    """A warning where nodes or edges have numbers under other names than `weight`."""
    names = sorted({str(key) for each in attributes for key, value in each.items() if _is_number(value)})
    if not names:
        return []
    return [f"graph: {what} have the attributes {shown(', '.join(names))}, which are not read: {instead}"]


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _lost_of_parallel_edges(
    counts: str, several: bool, ends: np.ndarray, weights: np.ndarray | None
) -> list[str]:
    """A warning where edges between the same two nodes are merged and weights are lost by that.

    several   the graph is meant to have several edges between two nodes
    """
    if counts not in (*EDGES, ARCS, BOTH_WAYS):
        return []
    _, pair = np.unique(ends if counts == ARCS else np.sort(ends, axis=1), axis=0, return_inverse=True)
    pair = pair.reshape(-1)
    repeated = len(pair) and int(pair.max()) + 1 < len(pair)
    if not repeated or not (several or _differ(pair, weights)):
        return []
    which = "one" if weights is None else "the one of largest weight"
    meant = {"edges": "one edge with the sum of their weights", LENGTHS: "the shortest"}.get(counts)
    meant = meant or "one with the probability 1 - (1 - p)(1 - q), or of linear_threshold the sum,"
    return [f"graph: of parallel edges {which} counts; {meant} may be meant"]


def _differ(pair: np.ndarray, weights: np.ndarray | None) -> bool:
    """True where edges [m] of one pair have unlike weights."""
    if weights is None:
        return False
    low, high = np.full(pair.max() + 1, np.inf), np.full(pair.max() + 1, -np.inf)
    np.minimum.at(low, pair, weights)
    np.maximum.at(high, pair, weights)
    return bool((low != high).any())


def weights_of_nodes(
    given: Any, labels: list[Any] | None, n: int, said: list[str], called: str = "node_weights",
    each: str = "node", what: str = "weight",
) -> np.ndarray:  # fmt: skip
    """[n] float32 weights of nodes from an array in their order or a mapping by label. Raises GraphError.

    said           gets a warning where whole numbers are not kept as they are
    called, each, what   the argument, what has a weight, and what that is, for messages
    """
    given = unmasked(called, rows_by_node(called, given, labels))
    labels = list(range(n)) if labels is None else labels
    if hasattr(given, "keys"):
        missing = next((label for label in labels if label not in given), None)
        if missing is not None:
            raise GraphError(f"graph: {each} {missing!r} has no {what}, others have")
        if len(given) > n:
            known = set(labels)
            other = next(label for label in given.keys() if label not in known)  # noqa: SIM118
            raise GraphError(f"graph: found a {what} of {other!r}, which is no {each}")
        given = [given[label] for label in labels]
    given = _in_order(given, called, each)
    if len(given) != n:
        raise GraphError(f"graph: found {len(given)} {each} {what}s for {n} {each}s")
    return as_weights(given, lambda i: f"{each} {labels[i]}", said, what)


def _in_order(given: Any, called: str = "node_weights", each: str = "node") -> Any:
    """Numbers in an order, as an array or a list. Raises GraphError."""
    ordered = isinstance(given, Iterable) and not isinstance(given, str | bytes | set | frozenset)
    if not ordered or hasattr(given, "tocoo") or getattr(given, "ndim", 1) != 1:
        right = f"a number for each {each}, or a mapping by {each}, would be right"
        raise GraphError(f"{called}: found {_kind(given)}; {right}")
    return given if hasattr(given, "__len__") else list(given)


def as_weights(values: Any, name: Callable[[int], str], said: list[str], what: str = "weight") -> np.ndarray:
    """[k] float32 from numbers; `said` gets a warning as of kept_weights. Raises GraphError."""
    called = lambda i: f"graph: the {what} of {name(i)}"  # noqa: E731
    try:
        found = np.asarray(values)
    except ValueError:  # lists among them
        found = np.asarray(values, dtype=object)
    if found.dtype.kind not in "biuf" or found.ndim != 1:
        for i, value in enumerate(values):
            if not isinstance(value, Real):
                raise GraphError(f"{called(i)} is {value!r}; a number would be right")
        found = np.array([_as_float(value) for value in values], dtype=np.float64)
    found = found.astype(np.float64)
    if not np.isfinite(found).all():
        i = int(np.flatnonzero(~np.isfinite(found))[0])
        raise GraphError(f"{called(i)} is NaN or infinite")
    kept = kept_weights(found, called, said)
    if not np.isfinite(kept).all():
        i = int(np.flatnonzero(~np.isfinite(kept))[0])
        raise GraphError(f"{called(i)} is {found[i]:g}; at most 3.4e38 would be right")
    return kept


def _as_float(value: Real) -> float:
    """Infinite where a whole number is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _scipy(matrix: Any, name: str, counts: str) -> EdgeStream:
    """A sparse matrix; entries that are stored twice are added, as SciPy does, and zeros are no edges."""
    if matrix.shape[0] != matrix.shape[1]:
        raise GraphError(
            f"graph: the matrix is {matrix.shape[0]} x {matrix.shape[1]}; a square one is needed"
        )
    if matrix.dtype.kind not in "iufb":
        raise GraphError(f"graph: the matrix holds {matrix.dtype}; real numbers would be right")
    coo = matrix.tocoo(copy=True)
    coo.sum_duplicates()
    coo.eliminate_zeros()
    rows, columns = np.asarray(coo.row, dtype=np.int64), np.asarray(coo.col, dtype=np.int64)
    directed = counts in (*EDGES, BOTH_WAYS) and _is_directed(coo.tocsr())
    return _matrix(name, matrix.shape[0], rows, columns, coo.data, directed, counts)


def _is_directed(matrix: Any) -> bool:
    """True where both entries of a pair are there and differ."""
    mirror = matrix.T.tocsr()
    both = matrix.astype(bool).multiply(mirror.astype(bool))
    return bool((matrix != mirror).multiply(both).nnz)


def _stream(
    name: str, n: int, u: np.ndarray, v: np.ndarray, w: np.ndarray | None, first_id: int = 0
) -> EdgeStream:
    return EdgeStream(name, "", "memory", n, first_id, w is not None, lambda stream: iter([(u, v, w)]))
