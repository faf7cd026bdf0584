"""Random families of sets, defined by their arguments alone."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.graphs.generators.checks import MOST_NODES, check_count, check_seed
from app.graphs.generators.chung_lu import PowerLawEnds
from app.graphs.generators.random import chosen_pairs
from app.graphs.stream import CHUNK_EDGES, Chunk, EdgeStream
from app.rng import stream

LARGEST_COST = 100  # of "whole" costs
EXPONENT = 2.3  # of the power laws of "skewed" families
SIDE = 1 << 20  # of the square of "near" families, in whole units: squares of distances are exact
PAIRS_AT_ONCE = 1 << 22  # distances held at a time


@dataclass(frozen=True)
class Members:
    """What sets hold, and what they cost.

    kind   "even"    each element with the same probability
           "skewed"  sizes of sets, and how often elements occur, follow power laws
           "near"    elements are points of a square that closes upon itself, and a set holds those within one
                     distance of a point of its own
    costs  "one", or "whole": 1 to 100
    """

    kind: str = "even"
    costs: str = "one"


def random_sets(
    sets: int, elements: int, p: float, seed: int, name: str | None = None, members: Members = Members()
) -> EdgeStream:
    """A family in which an element is in a set with probability p, on the average over all pairs.

    Each element is put into one set more, drawn at random, and each set is given one element more: so there
    are set covers and hitting sets. Pairs that are drawn twice count once.
    """
    check_count("nodes", sets, 1, MOST_NODES)
    check_count("elements", elements, 1, MOST_NODES)
    check_seed(seed)
    pairs_of = {"even": _even, "skewed": _skewed, "near": _near}[members.kind]

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        for u, v in pairs_of(sets, elements, p, seed):
            yield u, sets + v, None
        draws = stream(seed, "sets")
        yield draws.integers(sets, size=elements), sets + np.arange(elements), None
        yield np.arange(sets), sets + draws.integers(elements, size=sets), None

    said = "" if members == Members() else f", {members.kind}, costs {members.costs}"
    path = f"sets(sets={sets}, elements={elements}, p={p}{said}, seed={seed})"
    return EdgeStream(
        name or f"sets-{sets}-{elements}-{seed}", path, "generated", sets + elements, 0, False, chunks,
        sets=sets, node_weights=_costs(sets, elements, seed) if members.costs == "whole" else None,
    )  # fmt: skip


def _even(sets: int, elements: int, p: float, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for pairs in chosen_pairs(sets * elements, p, seed):
        yield np.divmod(pairs, elements)


def _skewed(sets: int, elements: int, p: float, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs whose ends are drawn in proportion to power-law weights (Chung and Lu 2002)."""
    left = round(p * sets * elements)
    if not left:
        return
    draws = stream(seed, "sets/skewed")
    ends = PowerLawEnds(sets, left, EXPONENT), PowerLawEnds(elements, left, EXPONENT)
    called = draws.permutation(sets), draws.permutation(elements)
    while left:
        count = min(left, CHUNK_EDGES)
        u, v = (names[end.draw(count, draws)] for names, end in zip(called, ends))
        yield u, v
        left -= count


def _near(sets: int, elements: int, p: float, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Every pair within the distance of which a disc has the area p. Time: of all pairs."""
    draws = stream(seed, "sets/near")
    at, of = draws.integers(SIDE, size=(sets, 2)), draws.integers(SIDE, size=(elements, 2))
    within = min(p, 1.0) * SIDE * SIDE / math.pi
    rows = max(PAIRS_AT_ONCE // elements, 1)
    for first in range(0, sets, rows):
        apart = np.abs(at[first : first + rows, None] - of)
        apart = np.minimum(apart, SIDE - apart)
        u, v = np.nonzero((apart * apart).sum(axis=2) <= within)
        yield first + u, v


def _costs(sets: int, elements: int, seed: int) -> np.ndarray:
    """[sets + elements] float32, costs of the sets, ones behind them."""
    costs = np.ones(sets + elements, dtype=np.float32)
    costs[:sets] = stream(seed, "sets/costs").integers(1, LARGEST_COST + 1, size=sets)
    return costs
