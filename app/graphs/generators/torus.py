"""Square grids that close upon themselves, of any number of nodes, whole or thinned out."""

import math
from collections.abc import Iterator

import numpy as np

from app.errors import CaseError
from app.graphs.generators.checks import MOST_NODES, check_count, check_seed
from app.graphs.stream import Chunk, EdgeStream
from app.rng import stream

# Edges drawn from one substream. Part of the definition of a graph: another number gives other graphs.
BLOCK = 1 << 18


def torus(n: int, removed: float, seed: int, name: str | None = None) -> EdgeStream:
    """A grid of rows of about sqrt(n) nodes with helical boundaries: node i meets i+1 and i+width, modulo n.

    The end of a row meets the start of the next one, as is usual for spin models (Newman and Barkema 1999,
    section 13.1), so that any n will do. Of fewer than 5 nodes repeats and loops are dropped later.

    removed   the share of the edges that are left out, each by itself (bond percolation): from 0, where the
              seed plays no part but in what others draw for the graph, to 1
    """
    check_count("n", n, 1, MOST_NODES)
    check_seed(seed)
    if not 0 <= removed <= 1:
        raise CaseError(f"graph.removed: must be 0..1, got {removed!r}")
    width = math.isqrt(n)

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        for step in (1, width):
            for block, at in enumerate(range(0, n, BLOCK)):
                u = np.arange(at, min(at + BLOCK, n), dtype=np.int64)
                if removed:
                    u = u[stream(seed, f"torus/{step == 1}", block).random(len(u)) >= removed]
                yield u, (u + step) % n, None

    label = f"torus(n={n})" if not removed else f"torus(n={n}, removed={removed}, seed={seed})"
    return EdgeStream(name or f"torus-{n}", label, "generated", n, 0, False, chunks)
