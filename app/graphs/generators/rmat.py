"""R-MAT graphs (Chakrabarti, Zhan and Faloutsos 2004), with the parameters of Graph500 by default."""

from collections.abc import Iterator

import numpy as np

from app.errors import CaseError
from app.graphs.generators.checks import MOST_NODES, check_count, check_seed
from app.graphs.stream import CHUNK_EDGES, Chunk, EdgeStream
from app.rng import stream

# Edges drawn from one substream. Part of the definition of a graph: another number gives other graphs.
BLOCK = 1 << 18


def rmat(
    n: int, edges: int, quadrants: tuple[float, float, float], seed: int, name: str | None = None,
    permuted: bool = True,
) -> EdgeStream:  # fmt: skip
    """`edges` edges drawn independently, so that some repeat or are loops; node numbers are then permuted.

    permuted   False: node numbers stay those of the descent, so the nodes of large degree come first

    Each edge descends into the quarters of the adjacency matrix of 2^ceil(log2 n) nodes with probabilities a,
    b, c, 1-a-b-c; where it ends outside n x n it is drawn anew. Holds the permutation [n] and one block.
    """
    check_count("nodes", n, 1, MOST_NODES)
    check_count("edges", edges, 0, 1 << 40)
    check_seed(seed)
    a, b, c = quadrants
    if min(a, b, c) < 0 or a + b + c > 1:
        raise CaseError(f"graph.rmat: a, b, c must be at least 0 with a sum of at most 1, got {a}, {b}, {c}")
    if n & (n - 1) and 1 - a - b - c == 1:
        raise CaseError("graph.rmat: with a = b = c = 0 all edges end at the last of 2^k nodes")
    blocks = -(-edges // BLOCK)

    def part(_: EdgeStream, rank: int, size: int) -> Iterator[Chunk]:
        label = stream(seed, "rmat/labels").permutation(n) if permuted else np.arange(n)
        for block in range(rank, blocks, size):
            u, v = _draw(n, min(BLOCK, edges - block * BLOCK), quadrants, stream(seed, "rmat", block))
            for at in range(0, len(u), CHUNK_EDGES):
                yield label[u[at : at + CHUNK_EDGES]], label[v[at : at + CHUNK_EDGES]], None

    kind = "rmat" if permuted else "rmat_natural"
    path = f"{kind}(n={n}, edges={edges}, a={a}, b={b}, c={c}, seed={seed})"
    return EdgeStream(
        name or f"{kind}-{n}-{edges}-{seed}", path, "generated", n, 0, False,
        lambda opened: part(opened, 0, 1), part=part, lines=edges,
    )  # fmt: skip


def _draw(
    n: int, count: int, quadrants: tuple[float, float, float], draws: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """u, v [count] int64, both below n."""
    u, v = np.empty(count, np.int64), np.empty(count, np.int64)
    missing = np.arange(count)
    while len(missing):
        u[missing], v[missing] = _descend((n - 1).bit_length(), len(missing), quadrants, draws)
        missing = missing[(u[missing] >= n) | (v[missing] >= n)]
    return u, v


def _descend(
    bits: int, count: int, quadrants: tuple[float, float, float], draws: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """u, v [count] int64 of `bits` bits, the highest first: one uniform number decides a bit of each."""
    a, b, c = (np.float32(share) for share in quadrants)
    u, v = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for _ in range(bits):
        x = draws.random(count, dtype=np.float32)
        lower = x >= a + b
        u += u + lower
        v += v + ((x >= a) & ~lower | (x >= a + b + c))
    return u, v
