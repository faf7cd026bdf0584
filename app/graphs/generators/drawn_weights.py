"""Weights of the edges of generated graphs: functions of a seed and the edge, of no rank and no order."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from app.graphs.generators.random_nodes import hashed, near_normal
from app.graphs.stream import Chunk, EdgeStream
from app.rng import stream

LARGEST = 100  # of "whole" weights
NORMAL_UNIT = 64  # "normal" weights are multiples of 1/64, so that their sums are exact

Draw = Callable[[np.uint64, np.ndarray], np.ndarray]


def _signs(key: np.uint64, numbers: np.ndarray) -> np.ndarray:
    return 1 - 2 * (hashed(key, numbers) >> np.uint64(63)).astype(np.float32)


def _whole(key: np.uint64, numbers: np.ndarray) -> np.ndarray:
    half = np.uint64(32)
    return 1 + ((hashed(key, numbers) >> half) * np.uint64(LARGEST) >> half).astype(np.float32)


def _normal(key: np.uint64, numbers: np.ndarray) -> np.ndarray:
    return np.rint(near_normal(key, numbers) * NORMAL_UNIT) / np.float32(NORMAL_UNIT)


# A kind of weights takes a key and numbers of edges [k] and returns weights [k] float32.
WEIGHTS: dict[str, Draw] = {"signs": _signs, "whole": _whole, "normal": _normal}


def with_weights(opened: EdgeStream, kind: str, seed: int) -> EdgeStream:
    """The same edges with weights drawn for them; an edge that comes again has the same one.

    kind   of WEIGHTS, or "one": the stream as it is
    """
    if kind == "one":
        return opened
    draw, n = WEIGHTS[kind], np.int64(opened.nodes or 0)
    key = stream(seed, f"edge weights/{kind}").integers(0, 1 << 64, 1, dtype=np.uint64)[0]

    def weighed(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        for u, v, _ in chunks:
            yield u, v, draw(key, np.minimum(u, v) * n + np.maximum(u, v))

    make, part = opened.make, opened.part
    return replace(
        opened,
        path=f"{opened.path}, weights {kind}",
        weighted=True,
        make=lambda found: weighed(make(found)),
        part=None if part is None else lambda found, rank, size: weighed(part(found, rank, size)),
    )
