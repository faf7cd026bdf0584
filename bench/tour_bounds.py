"""Bounds of tours at equal CPU time: 1-trees alone against branch and cut.

    python bench/tour_bounds.py FILE... [--seconds 1 3 10 30] [--search 10]

A FILE is in TSPLIB's format, or uniform:N:SEED. Both know the best tour of a search of `--search` seconds;
gaps are measured to it. Setting up is counted, reading and the search are not. Every bound is proved from its
certificate; what that takes is the last column, for the last bound.
"""

import argparse
import sys
import time
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

import numpy as np  # noqa: E402

from app.bounds import highs  # noqa: E402
from app.bounds.tour.bounds import TourBounds  # noqa: E402
from app.graphs.metric import Metric  # noqa: E402
from app.search.tour.search import TourSearch  # noqa: E402
from bench.equal_time_tours import read  # noqa: E402

STEPS = 200  # of the search between two looks at the clock


def main() -> None:
    """Measure every file and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seconds", type=float, nargs="+", default=[1, 3, 10, 30])
    parser.add_argument("--search", type=float, default=10)
    options = parser.parse_args()
    limits = sorted(options.seconds)
    print("| cities | CPU s | gap, 1-trees | gap, branch and cut | cases | check, s |")
    print("|---" * 6 + "|")
    for name in options.files:
        metric = read(name)
        upper, order = best_tour(metric, options.search)
        with patch.object(highs, "available", lambda: False):
            trees = follow(metric, upper, order, limits)
        for limit, one, other in zip(limits, trees, follow(metric, upper, order, limits)):
            gaps = f"{1 - one[0] / upper:.3%} | {1 - other[0] / upper:.3%}"
            print(f"| {metric.name} | {limit:g} | {gaps} | {other[1]} | {other[2]:.1f} |", flush=True)


def best_tour(metric: Metric, seconds: float) -> tuple[int, np.ndarray]:
    """The length and the order of the best tour after so many seconds of CPU time."""
    search, begun = TourSearch(metric, 1), time.process_time()
    while time.process_time() - begun < seconds:
        search.run(STEPS)
    return search.best, search.solution()


def follow(
    metric: Metric, upper: int, order: np.ndarray, limits: list[float]
) -> list[tuple[int, int, float]]:
    """At each limit of process CPU time: the bound, its cases, the seconds of its check."""
    spent, out, bounds = 0.0, [], TourBounds(metric)
    bounds.know(order)
    for limit in limits:
        begun = time.process_time()
        while not bounds.done and bounds.lower < upper and spent + time.process_time() - begun < limit:
            bounds.run(1, upper)
        spent += time.process_time() - begun
        begun = time.process_time()
        bounds.certificate().check(metric)
        out.append((bounds.lower, bounds.cases, time.process_time() - begun))
    return out


if __name__ == "__main__":
    main()
