"""Maximum cuts of small dense graphs: process CPU seconds until the optimum is found and proved, on one core.

    python bench/small_cuts.py [--nodes 40 60 80 100] [--seeds 3] [--seconds 300]

Graphs are drawn as those of the Biq Mac library are: g05 half of all edges, weight 1; pm1d nearly all edges
and pm1s a tenth of them, weights -1 and 1; w05 half of all edges, whole weights from -10 to 10. Before the
search nothing is known but the best of some descents. Medians over seeds; where a limit ended a search, what
was left of the gap.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from app.bounds.cut.branch import CutBranching, descended, whole_part  # noqa: E402

KINDS = {"g05": (0.5, [1]), "pm1d": (0.99, [-1, 1]), "pm1s": (0.1, [-1, 1]), "w05": (0.5, range(-10, 11))}
STARTS = 50


def main() -> None:
    """Search every graph, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[40, 60, 80, 100])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=300.0)
    options = parser.parse_args()
    print("| kind | nodes | proved | CPU s, median (most) | parts, median | gap that was left, % |")
    print("|---" * 6 + "|")
    for kind in KINDS:
        for n in options.nodes:
            found = [searched(drawn(kind, n, seed), options.seconds) for seed in range(1, options.seeds + 1)]
            seconds, parts, gaps = zip(*found)
            open_ = [f"{gap:.2f}" for gap in gaps if gap]
            times = f"{statistics.median(seconds):.1f} ({max(seconds):.1f})"
            proved = f"{len(found) - len(open_)} of {len(found)}"
            middle = int(statistics.median(parts))
            print(f"| {kind} | {n} | {proved} | {times} | {middle} | {', '.join(open_)} |", flush=True)


def drawn(kind: str, n: int, seed: int) -> np.ndarray:
    """[n, n] weights of a random graph."""
    draws, (p, weights) = np.random.default_rng([n, seed]), KINDS[kind]
    W = np.where(draws.random((n, n)) < p, draws.choice(np.array(weights, dtype=float), (n, n)), 0.0)
    W = np.triu(W, 1)
    return W + W.T


def searched(W: np.ndarray, limit: float) -> tuple[float, int, float]:
    """CPU seconds, parts, and the gap in per cent that is left."""
    begun = time.process_time()
    x = descended(W, np.random.default_rng(0).choice([-1.0, 1.0], (len(W), STARTS)))
    search = CutBranching(W, int(W.sum() - x @ W @ x) // 4, root=whole_part(W))
    while search.left and time.process_time() - begun < limit:
        search.run(0.1)
    return time.process_time() - begun, search.parts, 100 * (search.upper - search.best) / search.upper


if __name__ == "__main__":
    main()
