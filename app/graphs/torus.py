"""Square grids that close upon themselves, of any number of nodes."""

import math
from collections.abc import Iterator

import numpy as np

from app.graphs.checks import MOST_NODES, check_count, check_seed
from app.graphs.stream import CHUNK_EDGES, Chunk, EdgeStream


def torus(n: int, seed: int, name: str | None = None) -> EdgeStream:
    """A grid of rows of about sqrt(n) nodes with helical boundaries: node i meets i+1 and i+width, modulo n.

    The end of a row meets the start of the next one, as is usual for spin models (Newman and Barkema 1999,
    section 13.1), so that any n will do. Of fewer than 5 nodes repeats and loops are dropped later. The seed
    plays no part but in what others draw for the graph.
    """
    check_count("n", n, 1, MOST_NODES)
    check_seed(seed)
    width = math.isqrt(n)

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        for step in (1, width):
            for at in range(0, n, CHUNK_EDGES):
                u = np.arange(at, min(at + CHUNK_EDGES, n), dtype=np.int64)
                yield u, (u + step) % n, None

    return EdgeStream(name or f"torus-{n}", f"torus(n={n})", "generated", n, 0, False, chunks)
