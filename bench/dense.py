"""Dense subgraphs: this program beside NetworkX's densest subgraphs, plain rules, and HiGHS.

    python bench/dense.py [--seconds 5] [--only NAME] [--kinds average,size]

Densest subgraphs: NetworkX's `densest_subgraph` by Greedy++ (one round is Charikar's peeling) and by FISTA,
10 rounds each. Both end by themselves, so seconds stand beside what they find. Sets of 20 and of 60 nodes:
HiGHS (scipy.optimize.milp) with the linearised program, as long as this program has, on graphs of up to
20,000 edges, and the best of the plain rules. Graphs are drawn with a planted part, whose density is known to
be reached, or real ones of $LOCKSTEP_DATA where they are there. One thread, one rank; seconds with all that a
call does.
"""

import argparse
import itertools
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from networkx.algorithms.approximation import densest_subgraph
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from app import solve  # noqa: E402
from app.graphs.formats.readers import open_edges  # noqa: E402

REAL = {
    "power grid": "mvc/power.graph.gz",
    "ca-GrQc": "large/ca-GrQc.txt",
    "ca-CondMat": "large/ca-CondMat-cc1.txt.gz",
    "email-Enron": "large/email-Enron.txt.gz",
    "web-NotreDame": "large/web-NotreDame.txt.gz",
}
SIZES = (20, 60)
LARGEST = {"nx": 200_000, "highs": 20_000}  # edges of graphs that others are given
ROUNDS = 10


def main() -> None:
    """Answer every graph, print a table for each kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--kinds", default="average,size")
    given = parser.parse_args()
    rows = {"average": average, "size": sized}
    heads = {
        "average": "| graph | nodes | edges | found | at most | s | Charikar | Greedy++ | s | FISTA | s |",
        "size": "| graph | nodes | edges | k | found | at most | s | HiGHS | at most | best plain |",
    }
    for kind in given.kinds.split(","):
        print(heads[kind])
        print("|---" * (heads[kind].count("|") - 1) + "|")
        for name, graph in graphs():
            if given.only in name:
                for row in rows[kind](graph, given.seconds):
                    told = [name, graph.number_of_nodes(), graph.number_of_edges(), *row]
                    print("|", " | ".join(map(_shown, told)), "|", flush=True)


def average(graph: nx.Graph, seconds: float) -> Iterator[list[Any]]:
    """Densest subgraphs."""
    begun = time.perf_counter()
    answer = solve(graph, "dense", search_seconds=seconds)
    found = [answer.objective, answer.bound, time.perf_counter() - begun]
    found.append(answer.baselines["peeling (Charikar)"])
    for method in ("greedy++", "fista"):
        if graph.number_of_edges() > LARGEST["nx"]:
            found += ["", ""]
            continue
        begun = time.perf_counter()
        density, _ = densest_subgraph(graph, iterations=ROUNDS, method=method)
        found += [density, time.perf_counter() - begun]
    yield found


def sized(graph: nx.Graph, seconds: float) -> Iterator[list[Any]]:
    """Sets of some sizes."""
    for size in (size for size in SIZES if size < len(graph)):
        begun = time.perf_counter()
        keys = {"problem.dense": "size", "problem.size": size}
        answer = solve(graph, "dense", search_seconds=seconds, settings=keys)
        found = [size, answer.objective, answer.bound, time.perf_counter() - begun]
        fits = graph.number_of_edges() <= LARGEST["highs"]
        yield found + (highs(graph, size, seconds) if fits else ["", ""]) + [max(answer.baselines.values())]


def highs(graph: nx.Graph, size: int, seconds: float) -> list[Any]:
    """What HiGHS finds, and its bound: most x_e with x_uv <= y_u, x_uv <= y_v and sum of y = size."""
    n, m = graph.number_of_nodes(), graph.number_of_edges()
    edges = np.array(graph.edges)
    rows = np.arange(2 * m)
    ends = np.concatenate([edges[:, 0], edges[:, 1]])
    each = np.tile(np.arange(m), 2)
    table = sparse.coo_array(
        (
            np.concatenate([np.ones(2 * m), -np.ones(2 * m)]),
            (np.tile(rows, 2), np.concatenate([n + each, ends])),
        )
    )
    total = sparse.coo_array((np.ones(n), (np.zeros(n, dtype=int), np.arange(n))), shape=(1, n + m))
    found = milp(
        -np.append(np.zeros(n), np.ones(m)),
        constraints=[LinearConstraint(table.tocsr(), ub=0), LinearConstraint(total.tocsr(), size, size)],
        integrality=np.append(np.ones(n), np.zeros(m)),
        bounds=Bounds(0, 1),
        options={"time_limit": seconds},
    )
    bound = found.get("mip_dual_bound")
    return ["" if found.x is None else round(-found.fun), "" if bound is None else int(-bound + 1e-6)]


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and value > 100 else f"{value:.6g}"
    return str(value)


def graphs() -> Iterator[tuple[str, nx.Graph]]:
    """(name, graph) of each."""
    yield "karate club, unit", nx.Graph(nx.karate_club_graph().edges)
    yield "random, half of all pairs", nx.gnp_random_graph(100, 0.5, seed=1)
    yield "planted, 30 of 2,000", planted(2000, 8000, 30, 0.8)
    yield "planted, 60 of 1,000", planted(1000, 20_000, 60, 0.4)
    yield "Barabasi-Albert, 5", nx.barabasi_albert_graph(5000, 5, seed=1)
    folder = Path(os.environ.get("LOCKSTEP_DATA", "."))
    for name, place in REAL.items():
        if (folder / place).exists():
            yield name, read(folder / place)


def planted(n: int, edges: int, count: int, share: float) -> nx.Graph:
    """A random graph with a part of `count` nodes in which a share of all pairs are joined beside."""
    draws = np.random.default_rng(1)
    found = nx.gnm_random_graph(n, edges, seed=1)
    part = draws.permutation(n)[:count].tolist()
    found.add_edges_from(pair for pair in itertools.combinations(part, 2) if draws.random() < share)
    return found


def read(path: Path) -> nx.Graph:
    """A graph of a file, in a format that this program reads, its nodes numbered."""
    found = nx.Graph()
    for u, v, _ in open_edges(str(path)).chunks():
        found.add_edges_from(zip(u.tolist(), v.tolist()))
    found.remove_edges_from(list(nx.selfloop_edges(found)))
    return nx.convert_node_labels_to_integers(found)


if __name__ == "__main__":
    main()
