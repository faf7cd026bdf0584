"""Vertex cover at equal CPU time: the pipeline and its parts against NuMVC alone, on graphs of the user's.

    python bench/equal_time.py GRAPH... [--seconds 0.1 1 10] [--seeds 5] [--variants pipeline]
    python bench/equal_time.py GRAPH --target 1100 --seconds 60 --seeds 10     how often numvc gets there

A GRAPH is a file (`.clq`: its complement), ba:N:D:SEED or er:N:DEGREE:SEED (a mean degree). Reading is not
counted; everything after it is. Values are medians over seeds.

numvc          a faithful NuMVC without learning, reductions or learned start
search         our searches by turns from the same greedy start
+ reductions   the same on the reduced graph
+ learned      from reduce and peel by the policy
pipeline       what run.py does, bounds included
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from mpi4py import MPI  # noqa: E402

from app.case.file import build  # noqa: E402
from app.graphs.formats.readers import open_edges  # noqa: E402
from app.graphs.generators.random import barabasi_albert, erdos_renyi  # noqa: E402
from app.graphs.graph import Graph  # noqa: E402
from app.log import Log  # noqa: E402
from app.partition.streams import load_stream  # noqa: E402
from app.problems.table import make_problem  # noqa: E402
from app.search.cover.search import CoverSearch  # noqa: E402
from app.solver.pipeline import Pipeline  # noqa: E402
from app.tasks.context import Context, open_group  # noqa: E402
from app.tasks.policy import find_policy  # noqa: E402
from app.toolbox import Instance, Toolbox  # noqa: E402

time.perf_counter = time.process_time  # the pipeline's clock: what others do on the machine does not count
FIRST, LARGEST_SLICE = 16, 0.05  # steps, s


def main() -> None:
    """Measure every graph and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--target", type=int)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS), metavar="VARIANT")
    options = parser.parse_args()
    bench = Bench(options.seconds)
    if options.target is not None:
        for name in options.graphs:
            reach(bench, bench.read(name), options.target, options.seeds)
        return
    variants = {name: VARIANTS[name] for name in options.variants}
    print("| graph | CPU s | " + " | ".join(variants) + " | numvc steps/s |")
    print("|---" * (3 + len(variants)) + "|")
    for name in options.graphs:
        graph = bench.read(name)
        found: dict[str, list[list[int]]] = {variant: [] for variant in variants}
        for seed in range(options.seeds):  # by turns: the machine's speed changes
            for variant, run in variants.items():
                found[variant].append(run(bench, graph, seed))
        for i, seconds in enumerate(options.seconds):
            cells = [f"{statistics.median(values[i] for values in found[v]):g}" for v in variants]
            pace = f"{bench.speed:.0f}" if bench.speed else "-"
            print(f"| {graph.name} | {seconds:g} | " + " | ".join([*cells, pace]) + " |", flush=True)


class Bench:
    """What all variants share: a context, the shipped policy, the time limits."""

    def __init__(self, seconds: list[float]) -> None:
        self.limits = sorted(seconds)
        self.context = self._context({})
        self.policy = find_policy(self.context)
        self.speed = 0.0

    def _context(self, settings: dict[str, object]) -> Context:
        case = build({"search.baselines": False, **settings})
        return Context(case, open_group(MPI.COMM_SELF, case), Log(False), None)

    def read(self, name: str) -> Graph:
        """A whole graph from a file, ba:N:D:SEED or er:N:DEGREE:SEED."""
        if name.startswith(("ba:", "er:")):
            n, d, seed = map(int, name.split(":")[1:])
            made = barabasi_albert(n, d, seed) if name.startswith("ba:") else erdos_renyi(n, d / n, seed)
            stream, complement = made, False
        else:
            stream, complement = open_edges(name), ".clq" in name
        context = self._context({"graph.path": [], "graph.complement": complement})
        return load_stream(context.group, stream, context.case.graph, context.case).graph

    def pipeline(self, seed: int, **settings: object) -> Pipeline:
        """The pipeline of a case with this seed and some keys of [search] set."""
        context = self._context({"seed": seed} | {f"search.{key}": value for key, value in settings.items()})
        return Pipeline(context.group, context.log, context.case, self.policy.net, self.policy.params)


def toolbox(graph: Graph) -> Toolbox:
    """The tools of vertex cover."""
    return make_problem("mvc").toolbox(Instance(graph))


def follow(bench: Bench, start: Callable[[], tuple[CoverSearch, Callable[[int], int]]]) -> list[int]:
    """The best value at each limit of process CPU time, from the start of the set-up on."""
    begun = time.process_time()
    search, value = start()
    steps, out = FIRST, []
    for limit in bench.limits:
        while not search.done and (left := limit - (time.process_time() - begun)) > 0:
            at = time.process_time()
            search.run(steps)
            each = (time.process_time() - at) / steps + 1e-9
            steps = max(1, min(int(min(left, LARGEST_SLICE) / each), 4 * steps))
        out.append(value(search.best))
    bench.speed = search.steps / (time.process_time() - begun)
    return out


def reach(bench: Bench, graph: Graph, target: int, seeds: int) -> None:
    """NuMVC from several seeds until the target or the longest limit: CPU seconds and steps of each."""
    for seed in range(seeds):
        begun = time.process_time()
        search = CoverSearch(graph, seed, method="numvc")
        while search.best > target and time.process_time() - begun < bench.limits[-1]:
            search.run(20_000)
        spent = time.process_time() - begun
        said = f"seed {seed}: {search.best} after {search.steps} steps, {spent:.1f} s"
        print(f"{graph.name}: {said}, {search.steps / spent:.0f} steps/s", flush=True)


def numvc(bench: Bench, graph: Graph, seed: int) -> list[int]:
    """NuMVC on the whole graph."""
    return follow(bench, lambda: (CoverSearch(graph, seed, method="numvc"), int))


def search(bench: Bench, graph: Graph, seed: int) -> list[int]:
    """Our searches by turns on the whole graph."""
    speed = bench.speed
    found = follow(bench, lambda: (CoverSearch(graph, seed), int))
    bench.speed = speed
    return found


def reduced(bench: Bench, graph: Graph, seed: int) -> list[int]:
    """The same after reductions."""

    def start() -> tuple[CoverSearch, Callable[[int], int]]:
        tools = toolbox(graph)
        tools.reduce(lambda: False)
        return CoverSearch(tools.core, seed), tools.value_of_core

    speed = bench.speed
    found = follow(bench, start)
    bench.speed = speed
    return found


def _piped(bench: Bench, graph: Graph, seed: int, bounds: bool) -> Iterator[int]:
    for limit in bench.limits:
        pipeline = bench.pipeline(seed, seconds=limit, bounds=bounds)
        yield pipeline.answer(toolbox(graph), graph.name).value


def learned(bench: Bench, graph: Graph, seed: int) -> list[int]:
    """With the learned start, without bounds."""
    return list(_piped(bench, graph, seed, False))


def pipeline(bench: Bench, graph: Graph, seed: int) -> list[int]:
    """All of it."""
    return list(_piped(bench, graph, seed, True))


VARIANTS = {
    "numvc": numvc, "search": search, "+ reductions": reduced, "+ learned": learned, "pipeline": pipeline,
}  # fmt: skip

if __name__ == "__main__":
    main()
