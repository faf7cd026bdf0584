"""BTER graphs: given degrees, and triangles (Kolda, Pinar, Plantenga and Seshadhri 2014).

Two phases. Nodes in order of their degrees form affinity blocks of d + 1 nodes, d the smallest degree in the
block; inside a block every pair is an edge with probability rho, whose cube is the clustering coefficient
that nodes of degree d shall have. What a node's degree exceeds its expected edges in the block is its weight
in a Chung-Lu graph over all nodes.

In phase 1 pairs are drawn with repetition, pairs * -ln(1 - rho) of them: then a pair occurs at least once
with probability rho, as the paper does it. Nodes of degree below 2 take part in phase 2 alone; the paper's
correction of their number is left out, so that some of them stay isolated, as in a Chung-Lu graph.
"""

import numpy as np

from app.errors import CaseError
from app.graphs.generators.checks import MOST_NODES, check_count, check_seed
from app.graphs.generators.chung_lu import UNITS, power_law_weights
from app.graphs.generators.drawn import Draw, Weighted, drawn_edges
from app.graphs.stream import EdgeStream
from app.rng import stream

MOST_RHO = 0.999  # beyond it pairs would have to be drawn too often
MOST_EDGES = 1 << 40
Profile = tuple[float, float]  # clustering coefficient at degree 2, fall of its logarithm with the degree


def bter(n: int, degrees: np.ndarray, profile: Profile, seed: int, name: str | None = None) -> EdgeStream:
    """A graph of expected degrees; node numbers are a random permutation.

    degrees   [n] expected degrees, in any order (`spread_degrees` makes them from those of another graph)
    profile   the clustering coefficient wanted at degree d is profile[0] * exp(-profile[1] * (d - 2))
    Repeats and loops are dropped later, so that the mean degree is somewhat below that of `degrees`.
    Holds some tables [n] and one block of edges.
    """
    check_count("nodes", n, 1, MOST_NODES)
    check_seed(seed)
    top, decay = profile
    if not (0 <= top < 1 and decay >= 0):
        raise CaseError(f"graph.clustering: must be 0..1 and its decay at least 0, got {top!r} and {decay!r}")
    blocks = _Blocks(np.sort(np.minimum(degrees, n - 1)), top, decay)
    inside, across = int(np.rint(blocks.draws.sum())), int(np.rint(blocks.excess.sum() / 2))
    check_count("edges", inside + across, 0, MOST_EDGES)

    def label() -> np.ndarray:
        return stream(seed, "bter/labels").permutation(n)

    phases = [
        ("blocks", inside, lambda: _draw_inside(blocks, label())),
        ("excess", across, lambda: _draw_across(blocks.excess, label())),
    ]
    path = f"bter(n={n}, edges={inside + across}, clustering={top}, decay={decay}, seed={seed})"
    return drawn_edges(name or f"bter-{n}-{seed}", path, n, "bter", seed, phases)


class _Blocks:
    """Affinity blocks over nodes of ascending degree.

    starts   [blocks] the first node of each     sizes   [blocks] its nodes
    draws    [blocks] pairs to draw in phase 1   excess  [n] expected degree left for phase 2
    """

    def __init__(self, degrees: np.ndarray, top: float, decay: float) -> None:
        n = len(degrees)
        starts, sizes = _cut(degrees)
        smallest = degrees[starts] if len(starts) else np.empty(0)
        rho = np.minimum(np.cbrt(top * np.exp(-decay * (smallest - 2))), MOST_RHO)
        self.starts, self.sizes = starts, sizes
        self.draws = sizes * (sizes - 1) / 2 * -np.log1p(-rho)
        self.excess = degrees.astype(np.float64)
        block = np.repeat(np.arange(len(starts)), sizes)
        # The last block may have fewer nodes than its degrees ask for; nobody has less than nothing left.
        held = slice(n - len(block), n)
        self.excess[held] = np.maximum(self.excess[held] - (rho * (sizes - 1))[block], 0)


def _cut(degrees: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts and sizes [blocks] int64 of the blocks of nodes of degree 2 or more; degrees ascend."""
    starts, at, n = [], int(np.searchsorted(degrees, 2)), len(degrees)
    while at < n:
        # As many blocks of one size as fit before the whole part of the smallest degree changes.
        size = int(degrees[at]) + 1
        until = int(np.searchsorted(degrees, size))
        count = max(1, -(-(until - at) // size))
        starts.append(at + size * np.arange(count))
        at += size * count
    found = np.concatenate([*starts, np.empty(0, np.int64)]).astype(np.int64)
    found = found[found < n]
    return found, np.diff(np.append(found, n))


def _whole(weights: np.ndarray) -> np.ndarray:
    """Weights in whole units: the last bit of a library's functions then hardly ever matters."""
    return np.rint(weights * UNITS).astype(np.int64)


def _draw_inside(blocks: _Blocks, label: np.ndarray) -> Draw:
    """Pairs of two nodes of a block, which is drawn by the pairs it shall get."""
    table = Weighted(_whole(blocks.draws))

    def draw(count: int, draws: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        block = table.draw(count, draws)
        size, start = blocks.sizes[block], blocks.starts[block]
        first = draws.integers(0, size)
        second = draws.integers(0, size - 1)
        second += second >= first
        return label[start + first], label[start + second]

    return draw


def _draw_across(excess: np.ndarray, label: np.ndarray) -> Draw:
    """Pairs with both ends drawn by their weights."""
    table = Weighted(_whole(excess))

    def draw(count: int, draws: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return label[table.draw(count, draws)], label[table.draw(count, draws)]

    return draw


def power_law_degrees(n: int, edges: int, exponent: float) -> np.ndarray:
    """[n] expected degrees of a power law, as Chung-Lu graphs have them, with a mean of 2 edges / n."""
    weights = power_law_weights(n, edges, exponent)
    return weights * (2 * edges / weights.sum())


def spread_degrees(found: np.ndarray, n: int, scale: float) -> np.ndarray:
    """[n] expected degrees distributed like those `found` [m] in a graph, times `scale`."""
    if not len(found):
        raise CaseError("graph.degrees_of: the graph has no nodes; one with nodes would be right")
    places = (2 * np.arange(n, dtype=np.int64) + 1) * len(found) // (2 * n)
    return np.sort(found)[places] * float(scale)
