"""What a time limit asks for and what an answer takes, in seconds of the processor.

    python bench/time_limits.py [SECONDS] [PROBLEM ...]

Clocks of the program are replaced by that of its own process, so that other work on the machine counts for
nothing: on one rank that is what a machine without other work would show. Graphs are drawn: sparse ones of
50,000 and 300,000 nodes with eight neighbours each on average, nodes and edges with whole weights from 1 to
99.
"""

import sys
import time
from collections.abc import Sequence

time.perf_counter = time.monotonic = time.process_time  # before anything else asks for one

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402

from app import solve  # noqa: E402

SIZES = 50_000, 300_000
NODE_WEIGHTED = ("mvc", "mis", "mds", "fvs", "dfvs", "dismantle", "clique")
EDGE_WEIGHTED = ("maxcut", "communities", "steiner", "coloring")
KEYS = {"dismantle": {"problem.component": 500}, "steiner": {"problem.terminals": 2000}}


def drawn(problem: str, n: int) -> tuple[sp.csr_matrix, dict[str, np.ndarray]]:
    """(graph, named arguments) as `solve` takes them."""
    draws = np.random.default_rng(7)
    u, v = draws.integers(0, n, size=(2, 4 * n))
    one = u != v
    edges = np.unique(np.sort(np.stack([u[one], v[one]], axis=1), axis=1), axis=0)
    if problem == "dfvs":
        turned = draws.random(len(edges)) < 0.5
        edges[turned] = edges[turned][:, ::-1]
    length = draws.integers(1, 100, len(edges)) if problem in EDGE_WEIGHTED else np.ones(len(edges))
    graph = sp.csr_matrix((length.astype(float), edges.T), shape=(n, n))
    weights = {"node_weights": draws.integers(1, 100, n)} if problem in NODE_WEIGHTED else {}
    return graph if problem == "dfvs" else graph + graph.T, weights


def main(seconds: float, problems: Sequence[str]) -> None:
    """A line for each problem and size."""
    print("problem       nodes  asked s  taken s  (reading included)")
    for n in SIZES:
        for problem in problems:
            graph, weights = drawn(problem, n)
            begun = time.perf_counter()
            settings = KEYS.get(problem, {})
            solve(graph, problem, search_seconds=seconds, settings=settings, **weights)
            print(f"{problem:12s} {n:6d} {seconds:8g} {time.perf_counter() - begun:8.2f}", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] else 3.0, sys.argv[2:] or (*NODE_WEIGHTED, *EDGE_WEIGHTED))
