"""Chung-Lu graphs with power-law expected degrees (Chung and Lu 2002; drawn edge by edge)."""

from collections.abc import Iterator

import numpy as np

from app.errors import CaseError
from app.graphs.generators.checks import MOST_NODES, check_count, check_seed
from app.graphs.stream import CHUNK_EDGES, Chunk, EdgeStream
from app.rng import stream

# Edges drawn from one substream, and the unit of a node's weight: parts of the definition of a graph.
BLOCK = 1 << 18
UNITS = 1 << 10  # of the smallest weight


def chung_lu(n: int, edges: int, exponent: float, seed: int, name: str | None = None) -> EdgeStream:
    """`edges` pairs with ends drawn in proportion to weights w_i = (i + i0)^(-1/(exponent-1)).

    i0 makes sqrt(2 edges) the largest expected degree, so that a pair is rarely drawn twice; what repeats, or
    is a loop, is dropped later: the graph has somewhat fewer edges. Node numbers are permuted. Holds three
    tables [n] and one block.
    """
    check_count("nodes", n, 1, MOST_NODES)
    check_count("edges", edges, 0, 1 << 40)
    check_seed(seed)
    if not exponent > 2:
        raise CaseError(f"graph.exponent: must be above 2, got {exponent!r}")
    blocks = -(-edges // BLOCK)

    def part(_: EdgeStream, rank: int, size: int) -> Iterator[Chunk]:
        ends = PowerLawEnds(n, edges, exponent)
        label = stream(seed, "chung_lu/labels").permutation(n)
        for block in range(rank, blocks, size):
            draws, left = stream(seed, "chung_lu", block), min(BLOCK, edges - block * BLOCK)
            u, v = ends.draw(left, draws), ends.draw(left, draws)
            for at in range(0, left, CHUNK_EDGES):
                yield label[u[at : at + CHUNK_EDGES]], label[v[at : at + CHUNK_EDGES]], None

    path = f"chung_lu(n={n}, edges={edges}, exponent={exponent}, seed={seed})"
    return EdgeStream(
        name or f"chung_lu-{n}-{edges}-{seed}", path, "generated", n, 0, False,
        lambda opened: part(opened, 0, 1), part=part, lines=edges,
    )  # fmt: skip


class PowerLawEnds:
    """Draws nodes in proportion to integer weights, through a guide table (Chen and Asau 1974).

    sums    [n+1] int64, the weights of all nodes before each
    guide   [n+1] int32, the node that holds each of n equally spaced places
    """

    def __init__(self, n: int, edges: int, exponent: float) -> None:
        # Whole weights: the last bit of a library's power function then hardly ever matters.
        self.sums = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(power_law_weights(n, edges, exponent), out=self.sums[1:])
        self.total = int(self.sums[-1])
        self.stride = -(-self.total // n)
        places = np.arange(0, self.total, self.stride)
        self.guide = (np.searchsorted(self.sums, places, side="right") - 1).astype(np.int32)

    def draw(self, count: int, draws: np.random.Generator) -> np.ndarray:
        """[count] int64 nodes."""
        places = draws.integers(0, self.total, count)
        nodes = self.guide[places // self.stride].astype(np.int64)
        # The smallest weight is a fixed share of the mean: a few steps from the guide suffice.
        late = np.flatnonzero(self.sums[nodes + 1] <= places)
        while len(late):
            nodes[late] += 1
            late = late[self.sums[nodes[late] + 1] <= places[late]]
        return nodes


def power_law_weights(n: int, edges: int, exponent: float) -> np.ndarray:
    """[n] int64, descending, the smallest UNITS."""
    mean = 2 * edges / n
    ratio = max(mean, np.sqrt(2 * edges), 1e-9) / max(mean, 1e-9)  # largest degree by mean degree
    shift = n * ((exponent - 2) / ((exponent - 1) * ratio)) ** (exponent - 1)
    weights = (np.arange(n) + max(shift, 1.0)) ** (-1 / (exponent - 1))
    return np.rint(weights / weights[-1] * UNITS).astype(np.int64)
