"""Tours of distances that differ by direction: best tours, bounds and plain rules within a time limit.

    python bench/directed_tours.py [--nodes 100 300 1000] [--seconds 30]

Families after Cirasella, Johnson, McGeoch and Zhang 2001: crane (moves of a stacker crane: from where one
ends to where the next begins), tilt (a drill whose way up takes twice as long as down), random (any whole
number up to 10^6), shortest (the same, closed by shortest paths). One search, one seed, one rank.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from app import solve  # noqa: E402

SIDE, LARGEST = 10**4, 10**6


def main() -> None:
    """Solve every instance, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    print("| family | cities | tour | at least | gap % | by | patched assignment | nearest neighbour | s |")
    print("|---" * 9 + "|")
    for name, family in FAMILIES.items():
        for n in options.nodes:
            found = solve(family(n, np.random.default_rng([n, 1])), "tsp", search_seconds=options.seconds)
            rules = (found.baselines[rule] for rule in ("patched assignment", "nearest neighbour"))
            over = (f"+{100 * (value / found.objective - 1):.1f} %" for value in rules)
            gap = f"{100 * found.gap:.2f}"
            cells = name, n, found.objective, found.bound, gap, found.bound_method, *over
            print("|", " | ".join(map(str, (*cells, f"{found.seconds:.1f}"))), "|", flush=True)


def crane(n: int, draws: np.random.Generator) -> np.ndarray:
    """[n, n] from the ends of moves to the beginnings of others; moves are as long as cities are apart."""
    begins, angles = draws.uniform(0, SIDE, (n, 2)), draws.uniform(0, 2 * np.pi, n)
    lengths = draws.uniform(0, 2 * SIDE / np.sqrt(n), n)[:, None]
    ends = begins + lengths * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.rint(np.linalg.norm(ends[:, None] - begins[None], axis=2)).astype(np.int64)


def tilt(n: int, draws: np.random.Generator) -> np.ndarray:
    """[n, n] steps aside, and up, which count twice, or down."""
    points = draws.uniform(0, SIDE, (n, 2))
    aside, up = np.moveaxis(points[None] - points[:, None], 2, 0)
    return np.rint(np.abs(aside) + np.where(up > 0, 2 * up, -up)).astype(np.int64)


def random(n: int, draws: np.random.Generator) -> np.ndarray:
    """[n, n] evenly drawn."""
    return draws.integers(0, LARGEST, (n, n))


def shortest(n: int, draws: np.random.Generator) -> np.ndarray:
    """[n, n] shortest ways along evenly drawn lengths (Floyd and Warshall)."""
    lengths = random(n, draws)
    np.fill_diagonal(lengths, 0)
    for k in range(n):
        np.minimum(lengths, lengths[:, k, None] + lengths[k], out=lengths)
    return lengths


FAMILIES = {"crane": crane, "tilt": tilt, "random": random, "shortest": shortest}

if __name__ == "__main__":
    main()
