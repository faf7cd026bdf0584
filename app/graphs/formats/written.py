"""Graphs as the text of a file format, piece by piece; what is written reads back as the same bits.

A writer takes a whole graph and yields bytes. Each edge is written once, from its lower to its higher node
(METIS wants both directions). A format refuses what it cannot hold; `losses` says what is left out.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from app.errors import GraphError
from app.graphs.graph import Graph
from app.graphs.ids import named, plain_ids
from app.graphs.keys import sorted_set
from app.graphs.weights import LARGEST_WHOLE

QUOTE = '"'
ROWS = 1 << 14  # whose edges are turned to text at a time
METIS_NUMBERS = 1 << 14  # neighbours and lines of a piece, about: what fits caches is fastest


def text_of(weights: np.ndarray) -> list[str]:
    """The shortest text that reads back as each float32 [k]; whole numbers without a point."""
    whole = (weights == np.trunc(weights)) & (np.abs(weights) <= LARGEST_WHOLE) & ~_negative_zero(weights)
    if whole.all():
        return [str(number) for number in weights.astype(np.int64).tolist()]
    return [str(int(w)) if plain else str(w) for w, plain in zip(weights, whole.tolist())]


def _negative_zero(weights: np.ndarray) -> np.ndarray:
    return (weights == 0) & np.signbit(weights)


def edges_once(graph: Graph) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """u, v [k] node numbers with u < v, w [k] float32 or None, some rows at a time, in order."""
    for lo in range(0, graph.n, ROWS):
        hi = min(lo + ROWS, graph.n)
        cut = slice(int(graph.indptr[lo]), int(graph.indptr[hi]))
        u = np.repeat(np.arange(lo, hi, dtype=np.int64), np.diff(graph.indptr[lo : hi + 1]))
        v = graph.indices[cut].astype(np.int64)
        once = u < v
        yield u[once], v[once], None if graph.weights is None else graph.weights[cut][once]


def _lines(
    graph: Graph,
    ends: Callable,
    before: str = "",
    between: str = " ",
    unit: bool = False,
    quote: bool = False,
) -> Iterator[bytes]:
    """A line for each edge.

    ends   node numbers [k] to what is written of them      unit   True: a weight of 1 where there are none
    quote  True: as CSV does
    """
    for u, v, w in edges_once(graph):
        columns = [map(_quoted if quote else str, plain_ids(ends(each))) for each in (u, v)]
        if w is not None:
            columns.append(text_of(w))
        elif unit:
            columns.append(["1"] * len(u))
        text = "\n".join(before + between.join(row) for row in zip(*columns))
        yield f"{text}\n".encode() if text else b""


def _quoted(name: str) -> str:
    """A field of CSV."""
    return f'"{name.replace(QUOTE, 2 * QUOTE)}"' if QUOTE in name or "," in name else name


def _from_one(numbers: np.ndarray) -> np.ndarray:
    return numbers + 1


def write_edges(graph: Graph) -> Iterator[bytes]:
    """An edge list: "u v" or "u v weight" with the ids that the graph came with."""
    _need_edges(graph)
    yield f"# {graph.n} nodes, {graph.edges} edges\n".encode("ascii")
    names = graph.ids.tobytes() if named(graph.ids) else b""
    yield from _lines(graph, graph.node_ids, between="\t" if b" " in names or b"," in names else " ")


def write_csv(graph: Graph) -> Iterator[bytes]:
    """A table "source,target" or "source,target,weight" with the ids that the graph came with."""
    _need_edges(graph)
    yield b"source,target\n" if graph.weights is None else b"source,target,weight\n"
    yield from _lines(graph, graph.node_ids, between=",", quote=named(graph.ids))


def _need_edges(graph: Graph) -> None:
    if not graph.edges:
        raise GraphError(
            f"{graph.name}: has no edges, which a list of edges cannot hold; mtx or npz would be right"
        )


def write_matrix_market(graph: Graph) -> Iterator[bytes]:
    """A symmetric coordinate matrix: pattern, integer or real."""
    kind = "pattern" if graph.weights is None else "integer" if _whole(graph.weights) else "real"
    yield f"%%MatrixMarket matrix coordinate {kind} symmetric\n{graph.n} {graph.n} {graph.edges}\n".encode(
        "ascii"
    )
    # The lower triangle, as the format asks for: the higher node first.
    for u, v, w in edges_once(graph):
        columns = [map(str, (v + 1).tolist()), map(str, (u + 1).tolist())]
        columns += [] if w is None else [text_of(w)]
        text = "\n".join(map(" ".join, zip(*columns)))
        yield f"{text}\n".encode("ascii") if text else b""


def _whole(weights: np.ndarray) -> bool:
    """Whether all weights are whole numbers that text without a point can hold."""
    large = np.abs(weights) > LARGEST_WHOLE
    return (
        not large.any() and bool((weights == np.trunc(weights)).all()) and not _negative_zero(weights).any()
    )


def write_dimacs(graph: Graph) -> Iterator[bytes]:
    """DIMACS: "p edge n m", "n NODE WEIGHT" lines where nodes have weights, "e u v" or "e u v w"."""
    yield f"p edge {graph.n} {graph.edges}\n".encode("ascii")
    if graph.node_weights is not None:
        weights = text_of(graph.node_weights)
        if any(set(text) & set("ef") for text in weights):
            raise GraphError(
                f"{graph.name}: has node weights that need an exponent; DIMACS holds plain numbers"
            )
        yield "".join(f"n {i} {text}\n" for i, text in enumerate(weights, 1)).encode("ascii")
    yield from _lines(graph, _from_one, before="e ")


def write_gset(graph: Graph) -> Iterator[bytes]:
    """Gset (rudy): "n m", then "u v weight"."""
    yield f"{graph.n} {graph.edges}\n".encode("ascii")
    yield from _lines(graph, _from_one, unit=True)


def write_metis(graph: Graph) -> Iterator[bytes]:
    """METIS: a line of neighbours for each node; weights must be whole numbers, those of edges positive."""
    weights, own = graph.weights, graph.node_weights
    for name, found, least in (("edge", weights, 1), ("node", own, 0)):
        if found is not None and not (_whole(found) and (found >= least).all()):
            right = f"whole numbers from {least} to {LARGEST_WHOLE} would be right"
            raise GraphError(f"{graph.name}: has {name} weights that METIS cannot hold; {right}")
    code = (
        f" {int(own is not None)}{int(weights is not None)}" if weights is not None or own is not None else ""
    )
    yield f"{graph.n} {graph.edges}{code.replace(' 01', ' 1')}\n".encode("ascii")
    work = graph.indptr + np.arange(graph.n + 1)
    cuts = np.searchsorted(work, np.arange(0, work[-1] + METIS_NUMBERS, METIS_NUMBERS)).clip(max=graph.n)
    for lo, hi in pairwise(sorted_set(cuts).tolist()):
        yield _metis_lines(graph, lo, hi)


def _metis_lines(graph: Graph, lo: int, hi: int) -> bytes:
    """The lines of rows lo..hi-1."""
    cut = slice(int(graph.indptr[lo]), int(graph.indptr[hi]))
    columns = [graph.indices[cut].astype(np.int64) + 1]
    columns += [] if graph.weights is None else [graph.weights[cut].astype(np.int64)]
    numbers, counts = np.stack(columns, axis=1).reshape(-1), len(columns) * np.diff(graph.indptr[lo : hi + 1])
    if graph.node_weights is not None:
        first = graph.node_weights[lo:hi].astype(np.int64)
        numbers, counts = np.insert(numbers, np.cumsum(counts) - counts, first), counts + 1
    empty = counts == 0
    numbers = np.insert(numbers, np.cumsum(counts)[empty], -1)
    between = np.full(len(numbers), ord(" "), dtype=np.uint8)
    between[np.cumsum(counts + empty) - 1] = ord("\n")
    return _decimal(numbers, between)


def _decimal(numbers: np.ndarray, after: np.ndarray) -> bytes:
    """The digits of whole numbers [k], and after each a byte of `after` [k] uint8; that alone of -1."""
    width = len(str(int(numbers.max(initial=0))))
    text = np.empty((len(numbers), width + 1), dtype=np.uint8)
    shown = np.ones(text.shape, dtype=bool)
    text[:, width], rest = after, numbers
    for at in reversed(range(width)):
        shown[:, at] = rest > 0
        tens = rest // 10
        text[:, at] = rest - 10 * tens + ord("0")
        rest = tens
    shown[:, width - 1] |= numbers == 0
    return text[shown].tobytes()
