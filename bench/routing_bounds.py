"""Bounds of vehicle routes at equal CPU time: capacity cuts over edges against ng-routes, cases and all.

    python bench/routing_bounds.py [--seconds 3 10 30] [--search 10] [--sizes 50 100 200] [--windows]

Instances are drawn after Uchoa et al. 2017: the depot in the middle, in a corner or anywhere, customers
evenly or around seeds, demands and lengths of routes of several kinds; with --windows such with windows of
time, the last number of a line being their width. Both know the same routes, the best of
a search of so many seconds; gaps are measured to it. Every bound is proved from its certificate; what that
takes is the last column, for the last bound.
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

from app.bounds.routing.bounds import RoutingBounds  # noqa: E402
from app.bounds.routing.cutting import Cutting  # noqa: E402
from app.graphs.deliveries import Deliveries  # noqa: E402
from app.graphs.generators.customers import drawn_times  # noqa: E402
from app.graphs.metric import Metric, from_points  # noqa: E402
from app.search.routing.baselines import savings  # noqa: E402
from app.search.routing.search import RoutingSearch  # noqa: E402

SIDE = 1000
DEMANDS = {"1": (1, 1), "1-10": (1, 10), "5-10": (5, 10), "1-100": (1, 100), "50-100": (50, 100)}
KINDS = (  # depot, customers, demands, customers of a route
    ("centre", "even", "1-100", 5),
    ("corner", "both", "1-100", 9),
    ("anywhere", "seeds", "50-100", 6),
    ("anywhere", "even", "1-10", 15),
    ("corner", "even", "1", 22),
)
IN_TIME = (  # and the width of windows
    ("centre", "even", "1-10", 8, 60),
    ("centre", "both", "1-10", 8, 200),
    ("anywhere", "seeds", "1-10", 15, 200),
    ("centre", "even", "1-10", 15, 800),
)
SERVICE = 10  # with windows


def main() -> None:
    """Measure every instance and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, nargs="+", default=[3, 10, 30])
    parser.add_argument("--search", type=float, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--windows", action="store_true")
    options = parser.parse_args()
    limits = sorted(options.seconds)
    print(
        "| customers | depot, customers, demand, length | CPU s | gap, edges | gap, all | cases | check, s |"
    )
    print("|---" * 7 + "|")
    for size in options.sizes:
        for seed, kind in enumerate(IN_TIME if options.windows else KINDS):
            metric, deliveries = draw(size, *kind, seed)
            upper, after = best_routes(metric, deliveries, options.search)
            with patch.object(Cutting, "_fits", lambda cutting, edges: False):
                edges = follow(metric, deliveries, upper, after, limits)
            every = follow(metric, deliveries, upper, after, limits)
            name = ", ".join(map(str, kind))
            for limit, one, other in zip(limits, edges, every, strict=True):
                gaps = f"{1 - one[0] / upper:.2%} | {1 - other[0] / upper:.2%}"
                print(f"| {size} | {name} | {limit:g} | {gaps} | {other[1]} | {other[2]:.1f} |", flush=True)


def draw(
    n: int, depot: str, customers: str, demand: str, length: int, *more: int
) -> tuple[Metric, Deliveries]:
    """An instance of n customers, the depot first; more: the width of windows, if any, and a seed."""
    *width, seed = more
    random = np.random.default_rng(seed)
    middle = {"centre": np.full(2, SIDE // 2), "corner": np.zeros(2)}
    first = middle.get(depot, random.integers(0, SIDE, 2, endpoint=True))
    points = clustered(random, {"even": 0, "both": n // 2, "seeds": n}[customers])
    even = random.integers(0, SIDE, (n - len(points), 2), endpoint=True)
    needs = random.integers(*DEMANDS[demand], n, endpoint=True)
    capacity = max(-(-length * int(needs.sum()) // n), int(needs.max()))
    metric = from_points(f"drawn{n}", np.vstack([first, points, even]).astype(np.float64))
    times = drawn_times(metric, length, width[0], SERVICE, seed) if width else None
    return metric, Deliveries(0, np.append(0, needs), capacity, 0, times)


def clustered(random: np.random.Generator, count: int) -> np.ndarray:
    """[count, 2] points, likelier near to 3 to 8 seeds."""
    seeds = random.integers(0, SIDE, (random.integers(3, 9), 2), endpoint=True)
    found: list[np.ndarray] = []
    while len(found) < count:
        point = random.integers(0, SIDE, 2, endpoint=True)
        if random.random() <= np.exp(-np.hypot(*(seeds - point).T) / 40).sum():
            found.append(point)
    return np.array(found).reshape(-1, 2)


def best_routes(metric: Metric, deliveries: Deliveries, seconds: float) -> tuple[int, np.ndarray]:
    """The length and the routes that a search finds in so many seconds of CPU time."""
    start = savings(metric, deliveries)[0]
    search, begun = RoutingSearch(metric, deliveries, start, 1), time.process_time()
    while time.process_time() - begun < seconds and not search.done:
        search.run(1000)
    return search.best, search.solution()


def follow(
    metric: Metric, deliveries: Deliveries, upper: int, after: np.ndarray, limits: list[float]
) -> list[tuple[int, int, float]]:
    """At each limit of process CPU time: the bound, its cases, the seconds of its check."""
    spent, out, bounds = 0.0, [], RoutingBounds(metric, deliveries)
    bounds.know(after)
    for limit in limits:
        begun = time.process_time()
        while not bounds.done and bounds.lower < upper and spent + time.process_time() - begun < limit:
            bounds.run(1, upper)
        spent += time.process_time() - begun
        begun = time.process_time()
        bounds.certificate().check(metric, deliveries)
        out.append((bounds.lower, bounds.cases, time.process_time() - begun))
    return out


if __name__ == "__main__":
    main()
