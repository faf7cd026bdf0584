"""Graphs whose nodes meet those near them: small worlds, and random geometric graphs."""

import math
from collections.abc import Iterator

import numpy as np

from app.errors import CaseError
from app.graphs.generators.checks import MOST_NODES, check_count, check_seed
from app.graphs.stream import CHUNK_EDGES, Chunk, EdgeStream
from app.rng import stream

# Edges drawn from one substream, and the square's side: parts of the definition of a graph.
BLOCK = 1 << 18
SIDE = 1 << 24  # in whole units: squares of distances are exact in float64
MOST_POINTS = 10_000_000


def small_world(n: int, d: int, p: float, seed: int, name: str | None = None) -> EdgeStream:
    """A ring of nodes that meet the next d, far ends moved with probability p (Watts and Strogatz 1998).

    A moved end is any node, drawn evenly. Watts and Strogatz draw again for loops and repeats; here these are
    dropped later: the graph has a few edges less than n d. Holds one block of edges.
    """
    check_count("nodes", n, 2, MOST_NODES)
    check_count("d", d, 1, n - 1)
    check_seed(seed)
    if not 0 <= p <= 1:
        raise CaseError(f"graph.p: must be 0..1, got {p!r}")
    jobs = [(hop, block) for hop in range(1, d + 1) for block in range(-(-n // BLOCK))]

    def part(_: EdgeStream, rank: int, size: int) -> Iterator[Chunk]:
        for hop, block in jobs[rank::size]:
            u = np.arange(block * BLOCK, min((block + 1) * BLOCK, n), dtype=np.int64)
            draws = stream(seed, f"small_world/{hop}", block)
            moved = draws.random(len(u)) < p
            v = np.where(moved, draws.integers(n, size=len(u)), (u + hop) % n)
            for at in range(0, len(u), CHUNK_EDGES):
                yield u[at : at + CHUNK_EDGES], v[at : at + CHUNK_EDGES], None

    return EdgeStream(
        name or f"small_world-{n}-{d}-{p}-{seed}", f"small_world(n={n}, d={d}, p={p}, seed={seed})",
        "generated", n, 0, False, lambda opened: part(opened, 0, 1), part=part, lines=n * d,
    )  # fmt: skip


def geometric(n: int, edges: int, seed: int, name: str | None = None) -> EdgeStream:
    """Points drawn evenly from a square, those within one distance of each other joined (Gilbert 1961).

    The distance is that at which `edges` are expected in a square without a border; nodes along it have fewer
    neighbours. Coordinates are whole numbers, so that no rounding decides an edge. Holds all points and edges
    while chunks() runs.
    """
    check_count("nodes", n, 1, MOST_POINTS)
    check_count("edges", edges, 0, 1 << 40)
    check_seed(seed)

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        u, v = np.ascontiguousarray(_within(n, edges, seed).T)
        yield u, v, None

    path = f"geometric(n={n}, edges={edges}, seed={seed})"
    return EdgeStream(name or f"geometric-{n}-{edges}-{seed}", path, "generated", n, 0, False, chunks)


def _within(n: int, edges: int, seed: int) -> np.ndarray:
    """[k, 2] int64, pairs u < v of points within the distance, ascending."""
    from scipy.spatial import cKDTree  # imported where it is needed: it takes a while

    points = stream(seed, "geometric").integers(0, SIDE, (n, 2)).astype(np.float64)
    reach = math.isqrt(int(SIDE * SIDE * 2 * edges / (math.pi * max(n * (n - 1), 1))))
    pairs = cKDTree(points).query_pairs(reach, output_type="ndarray").astype(np.int64)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
