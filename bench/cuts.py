"""Maximum cuts by the search alone, at some processor times, from several seeds.

    python bench/cuts.py GRAPH... [--seconds 5 20] [--seeds 1 2 3]

A GRAPH is a file, or one drawn from a SEED: torus:N:SEED (a square grid, closed, of weights 1 and -1),
er:N:DEGREE:SEED (a mean degree), ba:N:D:SEED (scale-free), planar:N:SEED (two Delaunay triangulations of
random points, one above the other: the kind of G14, G35 and G51). An ending `/signs` draws weights 1 and -1.
quadratic:N:SEED is a function of bench/quadratic.py: the largest cut is its least value, times -1.
Reductions come first, and are counted. A cell is the mean over seeds, and all values in brackets.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from scipy.spatial import Delaunay

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from mpi4py import MPI  # noqa: E402

from app.case.file import build  # noqa: E402
from app.graphs.formats.readers import open_edges  # noqa: E402
from app.graphs.graph import Graph, from_edges  # noqa: E402
from app.log import Log  # noqa: E402
from app.partition.streams import load_stream  # noqa: E402
from app.problems.table import make_problem  # noqa: E402
from app.tasks.context import Context, open_group  # noqa: E402
from app.toolbox import Instance  # noqa: E402
from bench.quadratic import Terms, drawn  # noqa: E402

FIRST, LARGEST_SLICE = 1 << 14, 0.05  # trials, s


def main() -> None:
    """Measure every graph, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--seconds", type=float, nargs="+", default=[5.0, 20.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options = parser.parse_args()
    limits = sorted(options.seconds)
    print("| graph | nodes | edges | " + " | ".join(f"{limit:g} s" for limit in limits) + " |")
    print("|---" * (3 + len(limits)) + "|")
    for name in options.graphs:
        graph = made(name)
        found = [follow(graph, seed, limits) for seed in options.seeds]
        cells = [f"{statistics.mean(values):.1f} ({' '.join(map(str, values))})" for values in zip(*found)]
        shown = name if ":" in name else Path(name).name
        print(f"| {shown} | {graph.n} | {graph.edges} | " + " | ".join(cells) + " |", flush=True)


def made(name: str) -> Graph:
    """The graph of a name or file."""
    if ":" not in name:
        case = build({"search.baselines": False, "graph.path": []})
        context = Context(case, open_group(MPI.COMM_SELF, case), Log(False), None)
        return load_stream(context.group, open_edges(name), case.graph, case).graph
    kind, signs = name.removesuffix("/signs"), name.endswith("/signs")
    kind, *numbers = kind.split(":")
    n, *rest = map(int, numbers)
    if kind == "quadratic":
        return cut_of(n, drawn(n, *rest))
    draws = np.random.default_rng([n, *rest])
    pairs = DRAWN[kind](n, draws, *rest[:-1])
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    signed = signs or kind == "torus"
    weights = draws.choice([-1.0, 1.0], len(pairs)) if signed else None
    return from_edges(n, pairs[:, 0], pairs[:, 1], weights)


def torus(n: int, draws: np.random.Generator) -> np.ndarray:
    """[edges, 2] of a grid of side sqrt(n)."""
    side = round(n**0.5)
    nodes = np.arange(side * side).reshape(side, side)
    ends = [np.stack([nodes, np.roll(nodes, 1, axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)]
    return np.concatenate(ends)


def er(n: int, draws: np.random.Generator, degree: int) -> np.ndarray:
    """[edges, 2], about n * degree / 2 of all pairs."""
    return draws.integers(0, n, (n * degree // 2, 2))


def ba(n: int, draws: np.random.Generator, d: int) -> np.ndarray:
    """[edges, 2]: each node ties itself to d earlier ones, by their degrees (Barabasi and Albert 1999)."""
    ends = list(range(d)) * 2
    for v in range(d, n):
        chosen = {ends[k] for k in draws.integers(0, len(ends), d)}
        ends.extend([end for u in sorted(chosen) for end in (v, u)])
    return np.array(ends[2 * d :]).reshape(-1, 2)


def planar(n: int, draws: np.random.Generator) -> np.ndarray:
    """[edges, 2] of two triangulations whose nodes are matched at random."""
    corners = [Delaunay(draws.random((n, 2))).simplices for _ in range(2)]
    return np.concatenate([part[:, ends] for part in corners for ends in ([0, 1], [1, 2], [0, 2])])


def cut_of(n: int, terms: Terms) -> Graph:
    """Node 0 is where x = 0: x_i x_j is half of x_i + x_j less whether an edge (i, j) is cut."""
    alone, pairs = np.zeros(n), {key: factor / 2 for key, factor in terms.items() if key[0] != key[1]}
    for (i, j), half in pairs.items():
        alone[[i, j]] += half
    for i in range(n):
        alone[i] += terms.get((i, i), 0.0)
    ends = np.array(list(pairs) + [(-1, i) for i in range(n)]) + 1
    return from_edges(n + 1, ends[:, 0], ends[:, 1], np.append(list(pairs.values()), -alone))


DRAWN = {"torus": torus, "er": er, "ba": ba, "planar": planar}


def follow(graph: Graph, seed: int, limits: list[float]) -> list[int]:
    """The best cut at each limit of processor time, reductions included."""
    begun = time.process_time()
    tools = make_problem("maxcut").toolbox(Instance(graph))
    tools.reduce(lambda: False)
    search, steps, found = tools.search(seed, None), FIRST, []
    for limit in limits:
        while search is not None and not search.done:
            at, before = time.process_time(), search.steps
            if at - begun >= limit:
                break
            search.run(steps)
            spent = (time.process_time() - at) / max(search.steps - before, 1) + 1e-12
            left = max(limit - (time.process_time() - begun), 0.0)
            steps = max(1, min(int(min(left, LARGEST_SLICE) / spent), 4 * steps))
        found.append(round(tools.cut_of_core(search.best if search is not None else 0) * tools.unit))
    return found


if __name__ == "__main__":
    main()
