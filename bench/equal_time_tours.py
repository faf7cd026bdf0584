"""Tours at equal CPU time: crossed tours of many starts against one long chain of kicks.

    python bench/equal_time_tours.py FILE... [--seconds 1 3 10 30] [--seeds 5]

A FILE is in TSPLIB's format, or uniform:N:SEED. Both searches begin with the same greedy tour and have the
same descent, kicks and numbering of points; the chain is never given up. Setting up is counted, reading is
not. Lengths are medians over seeds; the last column says how many seeds got to the shortest length of all.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from app.graphs.formats.source import Limits  # noqa: E402
from app.graphs.formats.tsplib import read_tsplib  # noqa: E402
from app.graphs.metric import Metric, uniform_points  # noqa: E402
from app.search.tour import search as tour  # noqa: E402

STEPS = 200  # between two looks at the clock
FOR_EVER = 1 << 60
VARIANTS = {"one chain": FOR_EVER, "crossed": tour.LEAST_KICKS}  # least kicks of a tour


def main() -> None:
    """Measure every file and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seconds", type=float, nargs="+", default=[1, 3, 10, 30])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    limits = sorted(options.seconds)
    print("| cities | CPU s | " + " | ".join(VARIANTS) + " | at the best of all |")
    print("|---" * (3 + len(VARIANTS)) + "|")
    for name in options.files:
        metric, found = read(name), {variant: [] for variant in VARIANTS}
        for seed in range(options.seeds):  # by turns: the machine's speed changes
            for variant, kicks in VARIANTS.items():
                found[variant].append(follow(metric, seed, kicks, limits))
        best = min(min(values) for every in found.values() for values in every)
        for i, limit in enumerate(limits):
            cells = [f"{statistics.median(values[i] for values in found[v]):,.0f}" for v in VARIANTS]
            there = ", ".join(str(sum(values[i] == best for values in found[v])) for v in VARIANTS)
            print(f"| {metric.name} | {limit:g} | " + " | ".join(cells) + f" | {there} |", flush=True)


def read(name: str) -> Metric:
    """The distances of a file, or of uniform:N:SEED."""
    if name.startswith("uniform:"):
        n, seed = map(int, name.split(":")[1:])
        return uniform_points(n, seed)
    return read_tsplib(name, Limits())


def follow(metric: Metric, seed: int, kicks: int, limits: list[float]) -> list[int]:
    """The best length at each limit of process CPU time."""
    begun, out = time.process_time(), []
    with patch.object(tour, "LEAST_KICKS", kicks):
        search = tour.TourSearch(metric, seed)
        search.run(0)
        for limit in limits:
            while time.process_time() - begun < limit:
                search.run(STEPS)
            out.append(search.best)
    return out


if __name__ == "__main__":
    main()
