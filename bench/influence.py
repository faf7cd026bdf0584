"""Influence maximisation: this program beside greedy choices by the same sets, degrees and Monte-Carlo.

    python bench/influence.py [--seconds 20] [--budget 50] [--only NAME...] [--part NAME...]

Parts:

answers    spreads of the seeds, by cascades that none has seen, and bounds, on graphs of LOCKSTEP_DATA
bounds     of the largest spread by one collection, greedy seeds judged by as many sets: what OPIM-C tells
           (Tang et al. 2018, all steps of the greedy), and prices of sets after so many seconds
sampling   seconds of sets by coins for each arc over those by tables, and by plain Python over the kernel:
           medians of pairs in one run
celf       lazy greedy by Monte-Carlo (Leskovec et al. 2007) on a small graph, 1,000 cascades for each look

One thread, one rank, one after the other; the weighted cascade, edges lead both ways.
"""

import argparse
import heapq
import os
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

import networkx as nx  # noqa: E402

from app import solve  # noqa: E402
from app.bounds.coverage.prices import priced, unit_of  # noqa: E402
from app.bounds.influence.concentration import at_least, at_most  # noqa: E402
from app.graphs.diffusion import Diffusion, Spreading, diffusion_of  # noqa: E402
from app.graphs.formats.readers import open_edges  # noqa: E402
from app.graphs.graph import from_edges  # noqa: E402
from app.graphs.whole import whole_graph  # noqa: E402
from app.problems.table import make_problem  # noqa: E402
from app.search.coverage.baselines import order_by_gain  # noqa: E402
from app.search.influence.collection import CollectionTools  # noqa: E402
from app.search.influence.sampling import Sampler  # noqa: E402
from app.toolbox import Asked, Beside, Instance  # noqa: E402

GRAPHS = {
    "ca-GrQc": "ca-GrQc.txt",
    "ca-CondMat": "ca-CondMat-cc1.txt.gz",
    "ca-AstroPh": "ca-AstroPh-cc1.txt.gz",
    "email-Enron": "email-Enron.txt.gz",
    "web-NotreDame": "web-NotreDame.txt.gz",
}
SETS, DELTA, PAIRS, PLAIN_SETS, LOOKS = 1 << 17, 0.01, 5, 2000, 1000


def main() -> None:
    """The parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--budget", type=float, default=50.0)
    parser.add_argument("--only", nargs="*", default=list(GRAPHS))
    parser.add_argument("--part", nargs="*", default=["answers", "bounds", "sampling", "celf"])
    given = parser.parse_args()
    for part in given.part:
        print(f"\n{part}", flush=True)
        if part == "celf":
            celf(given.seconds)
            continue
        for name in given.only:
            path = f"{os.environ['LOCKSTEP_DATA']}/large/{GRAPHS[name]}"
            row = {"answers": answers, "bounds": bounds, "sampling": sampling}[part](path, given)
            print("|", " | ".join(map(str, (name, *row))), "|", flush=True)


def answers(path: str, given: argparse.Namespace) -> list[object]:
    """Nodes, edges, spread, what it is at least, bound, gap, sets, plain choices, seconds in all."""
    begun = time.perf_counter()
    keys = {"problem.budget": given.budget, "influence.directed": False}
    found = solve(path, "influence", search_seconds=given.seconds, settings=keys)
    plain = [f"{label} {value:.0f}" for label, value in found.baselines.items()]
    spent = round(time.perf_counter() - begun, 1)
    told = round(found.spread["at_least"]), round(found.bound), f"{100 * found.gap:.1f} %"
    return [round(found.objective), *told, found.spread["sets"], *plain, spent]


def bounds(path: str, given: argparse.Namespace) -> list[object]:
    """Gaps of greedy seeds: by the best of all steps of the greedy, and by prices."""
    graph = whole_graph(replace(open_edges(path), undirected=True))[0]
    asked, beside = Asked(budget=given.budget), Beside(spreading=Spreading(sets=SETS, delta=DELTA))
    tools = make_problem("influence").toolbox(Instance(graph, asked=asked, beside=beside))
    collection = CollectionTools(tools, 0, *tools.sampler.sets(tools.key(0), 0, SETS))
    seeds = tools.filled(collection.lift(collection.start()))
    hits = tools.sampler.hits(tools.judges(0), 0, SETS, seeds)
    lower = at_least(hits, SETS, graph.n, DELTA / 2)
    family, one, chosen = collection.inner, unit_of(collection.inner), []
    greedy = collection.offset + family.value(collection.start())
    steps = [*order_by_gain(family, False).tolist(), -1]
    least = greedy * 10
    for step in steps:
        mask = np.zeros(family.m, dtype=bool)
        mask[chosen] = True
        prices = np.where(family.covered(mask), 0, family.weight * one)
        least = min(least, collection.offset + priced(family, prices, one, "").upper)
        chosen.append(step)
    found, end = collection.bounds(), time.perf_counter() + given.seconds
    while time.perf_counter() < end and found.improve(1.0, collection.core_value(greedy)):
        pass
    uppers = [at_most(each, SETS, graph.n, DELTA / 2) for each in (least, found.value, greedy)]
    gaps = [f"{100 * (1 - lower / each):.1f} %" for each in uppers]
    return [graph.n, graph.edges, round(lower), round(uppers[0]), gaps[0], round(uppers[1]), *gaps[1:]]


def sampling(path: str, given: argparse.Namespace) -> list[str]:
    """Ratios of seconds, medians of pairs: coins over tables, plain Python over the kernel."""
    graph = whole_graph(replace(open_edges(path), undirected=True))[0]
    tables = diffusion_of(graph, False, "in_degree", 0.1, 0)
    coins = replace(tables, table=np.full_like(tables.table, -1))
    by_table, plain = Sampler(tables), Sampler(tables, compiled=False)
    first = statistics.median(_ratio(Sampler(coins), by_table, i, SETS, SETS) for i in range(PAIRS))
    last = statistics.median(_ratio(plain, by_table, i, PLAIN_SETS, SETS) for i in range(3))
    return [f"{first:.2f}", f"{last:.0f}"]


def _ratio(one: Sampler, other: Sampler, number: int, of_one: int, of_other: int) -> float:
    """Seconds for a set of one over those of the other."""
    took = []
    for sampler, count in ((one, of_one), (other, of_other)):
        begun = time.perf_counter()
        sampler.sets(number, 0, count)
        took.append((time.perf_counter() - begun) / count)
    return took[0] / took[1]


def celf(seconds: float) -> None:
    """Lazy greedy by cascades, beside this program, on 1,000 nodes; spreads by cascades neither has seen."""
    graph = nx.barabasi_albert_graph(1000, 3, seed=1)
    ends = np.array(graph.edges)
    d = diffusion_of(from_edges(1000, ends[:, 0], ends[:, 1]), False, "in_degree", 0.1, 0)
    budget, begun = 10, time.perf_counter()
    found = solve(graph, "influence", search_seconds=seconds, settings={"problem.budget": float(budget)})
    ours = time.perf_counter() - begun
    begun = time.perf_counter()
    lazy = lazy_greedy(d, budget)
    spent = time.perf_counter() - begun
    judge = [Sampler(d).worlds(99, 0, 20_000, np.array(each)).mean() for each in (found.nodes, lazy)]
    print(f"spread {judge[0]:.2f} in {ours:.1f} s, by CELF {judge[1]:.2f} in {spent:.1f} s")
    print(f"bound {found.bound:.2f}, gap {100 * found.gap:.1f} %")


def lazy_greedy(d: Diffusion, budget: int) -> list[int]:
    """The node of the largest mean gain over LOOKS cascades, again and again."""
    sampler, chosen, worth = Sampler(d), [], 0.0
    heap = [(-float(sampler.worlds(1, 0, LOOKS, np.array([v])).mean()), v, 0) for v in range(d.n)]
    heapq.heapify(heap)
    while len(chosen) < budget:
        gain, v, at = heapq.heappop(heap)
        if at == len(chosen):
            chosen.append(v)
            worth -= gain
            continue
        spread = float(sampler.worlds(1, 0, LOOKS, np.array([*chosen, v])).mean())
        heapq.heappush(heap, (worth - spread, v, len(chosen)))
    return chosen


if __name__ == "__main__":
    main()
