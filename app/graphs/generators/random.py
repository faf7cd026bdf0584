"""Random graphs as edge streams, defined by their arguments alone: Erdős–Rényi, Barabási–Albert."""

import math
from array import array
from collections.abc import Callable, Iterator
from random import Random

import numpy as np

from app.errors import CaseError
from app.graphs.generators.checks import MOST_NODES, check_count, check_seed
from app.graphs.stream import CHUNK_EDGES, Chunk, EdgeStream
from app.rng import stream

# Most gaps drawn from one substream. Part of the definition of a graph: another number gives other graphs.
BLOCK = 1 << 18


def erdos_renyi(n: int, p: float, seed: int, name: str | None = None) -> EdgeStream:
    """G(n, p): each pair of nodes is an edge with probability p, independently (Gilbert 1959).

    Walks the pairs u < v in row order with geometric gaps (Batagelj and Brandes 2005, algorithm 1), whole
    blocks of gaps at a time; holds [n] row starts and one block.
    """
    check_count("n", n, 1, MOST_NODES)
    _check_probability(p)
    check_seed(seed)

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        u = np.arange(n, dtype=np.int64)
        row_start = u * (n - 1) - u * (u - 1) // 2
        for pairs in chosen_pairs(n * (n - 1) // 2, p, seed):
            u = np.searchsorted(row_start[:-1], pairs, side="right") - 1
            yield u, pairs - row_start[u] + u + 1, None

    path = f"er(n={n}, p={p}, seed={seed})"
    return EdgeStream(name or f"er-{n}-{p}-{seed}", path, "generated", n, 0, False, chunks)


def random_arcs(n: int, p: float, seed: int, name: str | None = None) -> EdgeStream:
    """D(n, p): each ordered pair of different nodes is an arc with probability p, independently.

    Walks the pairs in row order as `erdos_renyi` does.
    """
    check_count("n", n, 1, MOST_NODES)
    _check_probability(p)
    check_seed(seed)

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        for pairs in chosen_pairs(n * (n - 1), p, seed):
            u, v = np.divmod(pairs, n - 1)
            yield u, v + (v >= u), None

    path = f"arcs(n={n}, p={p}, seed={seed})"
    return EdgeStream(name or f"arcs-{n}-{p}-{seed}", path, "generated", n, 0, False, chunks)


def chosen_pairs(pairs: int, p: float, seed: int) -> Iterator[np.ndarray]:
    """The numbers [k] int64 of the chosen ones of `pairs` pairs, ascending, a block at a time."""
    if p == 0 or pairs == 0:
        return
    # floor(E / -log(1-p)), E exponential, is the geometric number of pairs skipped before the next one.
    scale = 0.0 if p == 1 else -1 / math.log1p(-p)
    last, block, size = -1, 0, min(BLOCK, pairs)
    while last < pairs - 1:
        # Leave out what lies far beyond the end, be it infinite, before it can overflow an integer.
        with np.errstate(over="ignore"):
            gaps = np.floor(stream(seed, "er", block).standard_exponential(size) * scale)
            within = int(np.searchsorted(np.cumsum(gaps), 2.0 * pairs))
        chosen = last + np.cumsum(gaps[:within].astype(np.int64) + 1)
        yield chosen[: np.searchsorted(chosen, pairs)]
        last = int(chosen[-1]) if within == size else pairs
        block += 1


def barabasi_albert(n: int, d: int, seed: int, name: str | None = None) -> EdgeStream:
    """Preferential attachment of d edges by each new node (Barabási and Albert 1999).

    The graph networkx.barabasi_albert_graph(n, d, seed=seed), by the same draws, in 8 bytes an edge.
    """
    check_count("n", n, 2, MOST_NODES)
    check_count("d", d, 1, n - 1)
    check_seed(seed)

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        draw = Random(seed).getrandbits
        yield np.zeros(d, dtype=np.int64), np.arange(1, d + 1), None  # a star, to begin with
        ends = array("i", [0] * d + list(range(1, d + 1)))  # of all edges: a node as often as its degree
        first, nodes_at_once = d + 1, max(CHUNK_EDGES // d, 1)
        while first < n:
            begun, first = first, min(first + nodes_at_once, n)
            _attach(ends, range(begun, first), d, draw)
            new = np.array(ends[2 * d * (begun - d) :], dtype=np.int64).reshape(-1, 2 * d)
            yield new[:, d:].ravel(), new[:, :d].ravel(), None

    path = f"ba(n={n}, d={d}, seed={seed})"
    return EdgeStream(name or f"ba-{n}-{d}-{seed}", path, "generated", n, 0, False, chunks)


def _attach(ends: array, nodes: range, d: int, draw: Callable[[int], int]) -> None:
    """Join each node to d others, drawn from the ends of all edges so far, and add the new edges' ends."""
    for node in nodes:
        targets: set[int] = set()
        size = len(ends)
        bits = size.bit_length()
        while len(targets) < d:
            while (chosen := draw(bits)) >= size:
                pass
            targets.add(ends[chosen])
        ends.extend(targets)
        ends.extend([node] * d)


def _check_probability(p: float) -> None:
    """Refuse what is no number 0..1, NaN included."""
    number = isinstance(p, int | float | np.integer | np.floating) and not isinstance(p, bool)
    if not number or not 0 <= p <= 1:
        raise CaseError(f"graph.p: must be 0..1, got {p!r}")
