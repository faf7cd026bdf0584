"""Quadratic functions of 0-1 variables at equal time: this program beside tabu search and annealing.

    python bench/quadratic.py [--nodes 500 1000 2500] [--seeds 3] [--seconds 20]

Functions are drawn as Beasley's are: a tenth of all pairs, and of the variables, has a whole factor from
-100 to 100. The others are TabuSampler (multistart tabu search after Palubeckis 2004) and
SimulatedAnnealingSampler of dwave-samplers (`pip install dwave-samplers`), where that is installed: compiled,
one thread, the same wall time; annealing in runs of 2,000 sweeps. One search, one seed, one rank.
"""

import argparse
import importlib.util
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from app import solve  # noqa: E402

Terms = dict[tuple[int, int], float]
SHARE, LARGEST, SWEEPS = 0.1, 100, 2000


def main() -> None:
    """Solve every function, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 1000, 2500])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    others = importlib.util.find_spec("dwave") is not None
    print("| variables | seed | this program | bound | gap % | tabu search | annealing |")
    print("|---" * 7 + "|")
    for n in options.nodes:
        for seed in range(1, options.seeds + 1):
            terms = drawn(n, seed)
            found = ours(terms, options.seconds)
            beside = (tabu(terms, options.seconds), annealed(terms, options.seconds)) if others else ("", "")
            print("|", " | ".join(map(str, (n, seed, *found, *beside))), "|", flush=True)


def drawn(n: int, seed: int) -> Terms:
    """The terms of a function that is to be as small as possible."""
    draws = np.random.default_rng([n, seed])
    i, j = np.triu_indices(n)
    chosen = draws.random(len(i)) < SHARE
    i, j = i[chosen], j[chosen]
    factors = draws.integers(-LARGEST, LARGEST + 1, len(i)) * np.where(i == j, 1, 2)
    return dict(zip(zip(i.tolist(), j.tolist()), factors.astype(float).tolist()))


def ours(terms: Terms, seconds: float) -> tuple[float, float, str]:
    """Value, bound and gap."""
    settings = {"search.baselines": False}
    answer = solve(terms, "qubo", search_seconds=seconds, settings=settings)
    return answer.objective, answer.bound, f"{100 * answer.gap:.2f}"


def tabu(terms: Terms, seconds: float) -> int:
    """The least value that tabu search finds."""
    from dimod import BinaryQuadraticModel
    from dwave.samplers import TabuSampler

    found = TabuSampler().sample(
        BinaryQuadraticModel.from_qubo(terms), num_reads=1, timeout=int(1000 * seconds), seed=1
    )
    return round(found.first.energy)


def annealed(terms: Terms, seconds: float) -> int:
    """The least value of as many runs of annealing as fit."""
    from dimod import BinaryQuadraticModel
    from dwave.samplers import SimulatedAnnealingSampler

    model, begun, runs, best = BinaryQuadraticModel.from_qubo(terms), time.monotonic(), 0, 0.0
    while not runs or time.monotonic() - begun < seconds:
        found = SimulatedAnnealingSampler().sample(model, num_reads=1, num_sweeps=SWEEPS, seed=runs)
        best, runs = min(best, found.first.energy), runs + 1
    return round(best)


if __name__ == "__main__":
    main()
