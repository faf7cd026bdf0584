"""Tours at equal CPU time: this program's search beside LKH.

    python bench/tours_lkh.py FILE... [--seeds 3] [--shares 0.1 1] [--lkh PYTHON]

A FILE is in TSPLIB's format, or uniform:N:SEED. LKH 2 (Helsgaun 2000) is what elkai 2.0 has (pip install
elkai; PYTHON has it, by default this one): one run with its own settings, told the matrix of distances. Its
process CPU time, from the matrix on, is then given to this program's search by itself, in these shares, from
the metric on, once for each seed (medians); a seed of LKH's cannot be chosen. Lengths, and how far each is
above the shortest of all.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from app.graphs.metric import Metric  # noqa: E402
from app.search.tour.search import LEAST_KICKS  # noqa: E402
from bench.equal_time_tours import follow, read  # noqa: E402

PEER = """
import json, sys, time
import elkai
matrix = json.load(sys.stdin)
begun = time.process_time()
tour = elkai.DistanceMatrix(matrix).solve_tsp(runs=1)
json.dump([time.process_time() - begun, tour], sys.stdout)
"""


def main() -> None:
    """Measure every file and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--lkh", default=sys.executable)
    options = parser.parse_args()
    shares = sorted(options.shares)
    ours = [f"this program, {share:g} of it | above" for share in shares]
    print("| cities | n | LKH, CPU s | LKH | above | " + " | ".join(ours) + " |")
    print("|---" * (5 + 2 * len(shares)) + "|")
    for name in options.files:
        metric = read(name)
        seconds, length = peer(metric, options.lkh)
        limits = [seconds * share for share in shares]
        every = [follow(metric, seed, LEAST_KICKS, limits) for seed in range(options.seeds)]
        best = min(length, *(values[-1] for values in every))
        medians = [statistics.median(values[i] for values in every) for i in range(len(shares))]
        cells = [f"{value:,.0f} | {100 * (value / best - 1):.3f} %" for value in (length, *medians)]
        print(f"| {metric.name} | {metric.n:,} | {seconds:.2f} | " + " | ".join(cells) + " |", flush=True)


def peer(metric: Metric, python: str) -> tuple[float, int]:
    """CPU seconds of LKH, and the length of its tour."""
    cities = np.arange(metric.n)
    matrix = np.asarray(metric.between(cities[:, None], cities[None])).tolist()
    asked = json.dumps(matrix).encode()
    said = subprocess.run([python, "-c", PEER], input=asked, stdout=subprocess.PIPE, check=True).stdout
    seconds, tour = json.loads(said)
    order = np.array(tour[:-1], dtype=np.int32)
    if not np.array_equal(np.sort(order), cities):
        raise SystemExit(f"{metric.name}: LKH's tour does not visit every city once")
    return seconds, metric.length(order)


if __name__ == "__main__":
    main()
