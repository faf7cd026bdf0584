"""Bounds of cuts at equal CPU time: the semidefinite relaxation, odd cycles, odd cycles after reductions.

    python bench/cut_bounds.py FILE... [--seconds 1 3 10 30]

A FILE is in any format that Lockstep reads. Setting up is counted, reading and reductions are not. Every
bound is proved from its certificate; what that takes, reductions included, is in the last column, for the
last bound. "Cut" is the best one that prices of odd cycles and 50 sweeps of annealing led to.
"""

import argparse
import math
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from app.bounds.cut.bounds import CutBounds  # noqa: E402
from app.bounds.cut.packing import CutPacking  # noqa: E402
from app.bounds.cut.verify import can_factor  # noqa: E402
from app.graphs.fixed_point import integer_weights  # noqa: E402
from app.graphs.formats.readers import open_edges  # noqa: E402
from app.graphs.graph import Graph  # noqa: E402
from app.graphs.whole import whole_graph  # noqa: E402
from app.reductions.cut.reducer import CutReducer  # noqa: E402
from app.reductions.cut.verify import verify_log  # noqa: E402
from app.search.cut.search import CutSearch  # noqa: E402

SLICE = 0.05  # s of the relaxation between two looks at the clock
SWEEPS = 50


def main() -> None:
    """Measure every file and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seconds", type=float, nargs="+", default=[1, 3, 10, 30])
    options = parser.parse_args()
    limits = sorted(options.seconds)
    print("| graph | nodes, left | CPU s | semidefinite | odd cycles | with reductions | cut | check, s |")
    print("|---" * 8 + "|")
    for name in options.files:
        graph, _ = whole_graph(open_edges(name))
        weights, _ = integer_weights(graph)
        reducer = CutReducer(graph, weights)
        reducer.reduce()
        kernel = reducer.kernel()
        relaxed, whole, reduced = (
            relaxation(graph, limits),
            cycles(graph, limits),
            cycles(kernel.graph, limits),
        )
        begun = time.process_time()
        verify_log(graph, weights, reducer.log, reducer.places, reducer.fixed)
        check = reduced[-1][2] + time.process_time() - begun
        for k, limit in enumerate(limits):
            upper, cut = (kernel.value_of(value) for value in reduced[k][:2])
            sizes = f"{graph.name} | {graph.n:,}, {kernel.graph.n:,}"
            bounds = f"{relaxed[k]} | {whole[k][0]:,} | {upper:,}"
            print(f"| {sizes} | {limit:g} | {bounds} | {cut:,} | {check:.2f} |", flush=True)


def relaxation(graph: Graph, limits: list[float]) -> list[str]:
    """At each limit of process CPU time the bound of the semidefinite relaxation alone."""
    if not can_factor(graph):
        return ["too large"] * len(limits)
    spent, out, more, bounds = 0.0, [], True, CutBounds(graph, cycles=False)
    for limit in limits:
        begun = time.process_time()
        while more and spent + time.process_time() - begun < limit:
            more = bounds.improve(SLICE)
        spent += time.process_time() - begun
        out.append(f"{bounds.upper:,}")
    return out


def cycles(graph: Graph, limits: list[float]) -> list[tuple[int, int, float]]:
    """At each limit of process CPU time: the bound of odd cycles, a cut, the seconds of the bound's check."""
    weights, _ = integer_weights(graph)
    trivial = int(weights[weights > 0].sum()) // 2
    packing, spent, cut, seen, out = CutPacking(graph, weights), 0.0, 0, None, []
    slices = packing.slices()
    for limit in limits:
        begun, ended = time.process_time(), False
        while not ended and spent + time.process_time() - begun < limit:
            ended = next(slices, math.inf) is math.inf
        spent += time.process_time() - begun
        if packing.sides is not None and packing.sides is not seen:
            seen, search = packing.sides, CutSearch(graph, 0, packing.sides)
            search.run(SWEEPS * graph.n)
            cut = max(cut, search.best)
        begun = time.process_time()
        if packing.best is not None:
            packing.best.check(graph)
        upper = trivial if packing.best is None else packing.best.upper
        out.append((upper, cut, time.process_time() - begun))
    return out


if __name__ == "__main__":
    main()
