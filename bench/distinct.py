"""Distinct keys of an array: by a sort (app/graphs/keys.py), and by NumPy, which hashes since 2.3."""

from collections.abc import Iterator

import numpy as np

from app.graphs.keys import sorted_set
from bench.harness import Effort, Record, compare

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
PER_CALL = 1 << 18  # keys that a measured call goes through, in so many arrays


def about() -> dict[str, str]:
    """Versions that matter."""
    return {"numpy": np.__version__}


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """One ratio for each number of keys, which are drawn from ten times as many."""
    for size in SIZES[:3] if quick else SIZES:
        keys = np.random.default_rng(size).integers(0, 10 * size, size)
        often = max(PER_CALL // size, 1)

        def ours(_: int, keys: np.ndarray = keys, often: int = often) -> None:
            for _ in range(often):
                sorted_set(keys)

        def theirs(_: int, keys: np.ndarray = keys, often: int = often) -> None:
            for _ in range(often):
                np.unique(keys)

        found = compare(f"{size:,} keys, {often} times", "np.unique", ours, theirs, effort)
        same = np.array_equal(sorted_set(keys), np.unique(keys))
        found.note = "the same keys" if same else "OTHER keys"
        yield found
