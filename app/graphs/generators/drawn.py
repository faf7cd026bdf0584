"""Nodes drawn in proportion to whole weights, and streams of edges that are drawn block by block."""

from collections.abc import Callable, Iterator

import numpy as np

from app.graphs.stream import CHUNK_EDGES, Chunk, EdgeStream
from app.rng import stream

# Edges drawn from one substream. Part of the definition of a graph: another number gives other graphs.
BLOCK = 1 << 18

Draw = Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]


class Weighted:
    """Draws 0..n-1 in proportion to integer weights, through a guide table (Chen and Asau 1974).

    sums    [n+1] int64, the weights of all before each
    guide   [<= n] int64, what holds each of n equally spaced places
    """

    def __init__(self, weights: np.ndarray) -> None:
        self.sums = np.zeros(len(weights) + 1, dtype=np.int64)
        np.cumsum(weights, out=self.sums[1:])
        self.total = int(self.sums[-1])
        self.stride = max(1, -(-self.total // len(weights)))
        self.guide = self._holder(np.arange(0, self.total, self.stride))

    def draw(self, count: int, draws: np.random.Generator) -> np.ndarray:
        """[count] int64."""
        places = draws.integers(0, self.total, count)
        found = self.guide[places // self.stride]
        late = np.flatnonzero(self.sums[found + 1] <= places)
        found[late] = self._holder(places[late])
        return found

    def _holder(self, places: np.ndarray) -> np.ndarray:
        """[k] int64, which of all holds each place."""
        return np.searchsorted(self.sums, places, side="right") - 1


def drawn_edges(
    name: str, path: str, n: int, purpose: str, seed: int, phases: list[tuple[str, int, Callable[[], Draw]]]
) -> EdgeStream:
    """A stream of edges drawn independently, phase after phase; every rank may draw a part.

    phases   name, edges, and a function that makes its tables and returns how to draw: (count, random stream)
             -> u, v [count], or fewer
    """
    jobs = [
        (phase, block, min(BLOCK, edges - block * BLOCK))
        for phase, (_, edges, _) in enumerate(phases)
        for block in range(-(-edges // BLOCK))
    ]

    def part(_: EdgeStream, rank: int, size: int) -> Iterator[Chunk]:
        made: dict[int, Draw] = {}
        for phase, block, count in jobs[rank::size]:
            label, _, make = phases[phase]
            if phase not in made:
                made = {phase: make()}  # the tables of the phase before go
            u, v = made[phase](count, stream(seed, f"{purpose}/{label}", block))
            for at in range(0, len(u), CHUNK_EDGES):
                yield u[at : at + CHUNK_EDGES], v[at : at + CHUNK_EDGES], None

    lines = sum(edges for _, edges, _ in phases)
    return EdgeStream(
        name, path, "generated", n, 0, False, lambda opened: part(opened, 0, 1), part=part, lines=lines
    )  # fmt: skip
