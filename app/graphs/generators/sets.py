"""Random families of sets, defined by their arguments alone."""

from collections.abc import Iterator

import numpy as np

from app.graphs.generators.checks import MOST_NODES, check_count, check_seed
from app.graphs.generators.random import chosen_pairs
from app.graphs.stream import Chunk, EdgeStream
from app.rng import stream


def random_sets(sets: int, elements: int, p: float, seed: int, name: str | None = None) -> EdgeStream:
    """A family in which each element is in each set with probability p, independently.

    Each element is put into one set more, drawn at random, and each set is given one element more: so there
    are set covers and hitting sets.
    """
    check_count("nodes", sets, 1, MOST_NODES)
    check_count("elements", elements, 1, MOST_NODES)
    check_seed(seed)

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        for pairs in chosen_pairs(sets * elements, p, seed):
            yield pairs // elements, sets + pairs % elements, None
        draws = stream(seed, "sets")
        yield draws.integers(sets, size=elements), sets + np.arange(elements), None
        yield np.arange(sets), sets + draws.integers(elements, size=sets), None

    path = f"sets(sets={sets}, elements={elements}, p={p}, seed={seed})"
    return EdgeStream(
        name or f"sets-{sets}-{elements}-{seed}", path, "generated", sets + elements, 0, False, chunks,
        sets=sets,
    )  # fmt: skip
