"""Trees with a motif, for telling whole graphs apart (after BA-2motifs of Luo et al. 2020)."""

from collections.abc import Iterator

import numpy as np

from app.graphs.generators.checks import MOST_NODES, check_count, check_seed
from app.graphs.generators.random import barabasi_albert
from app.graphs.generators.random_nodes import hashed
from app.graphs.stream import Chunk, EdgeStream
from app.rng import stream

SIZE = 5  # nodes of a motif
RING = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0))
MOTIFS = {
    "ring": RING,
    "house": (*RING, (1, 4)),
    "bow tie": ((0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)),
    "fan": ((0, 1), (1, 2), (2, 3), (4, 0), (4, 1), (4, 2), (4, 3)),
    "clique": tuple((i, j) for i in range(SIZE) for j in range(i)),
}


def motif_of(seeds: np.ndarray, count: int) -> np.ndarray:
    """[k] int64, which of the first `count` motifs the graphs of these seeds have."""
    draws = hashed(np.uint64(0), np.asarray(seeds)) >> np.uint64(32)
    return (draws % np.uint64(count)).astype(np.int64)


def with_motif(n: int, count: int, seed: int, name: str | None = None) -> EdgeStream:
    """A tree of n - SIZE nodes (Barabási and Albert 1999, d = 1), an edge from a node of it to a motif.

    The seed says which of the first `count` motifs (`motif_of`), and which node. Luo et al. have 20 nodes
    beside rings and houses.
    """
    check_count("nodes", n, SIZE + 2, MOST_NODES)
    check_count("random_classes", count, 2, len(MOTIFS))
    check_seed(seed)
    tree, edges = n - SIZE, np.array(list(MOTIFS.values())[int(motif_of(np.array([seed]), count)[0])])
    at = int(stream(seed, "motifs/joined").integers(tree))

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        yield from barabasi_albert(tree, 1, seed).chunks()
        u, v = np.concatenate([edges + tree, [[at, tree]]]).T
        yield np.ascontiguousarray(u), np.ascontiguousarray(v), None

    path = f"motifs(n={n}, count={count}, seed={seed})"
    return EdgeStream(name or f"motifs-{n}-{count}-{seed}", path, "generated", n, 0, False, chunks)
