"""Network dismantling: this program beside the baselines of the literature, and HiGHS, at equal time.

    python bench/dismantle.py [--seconds 10] [--only NAME...] [--data FOLDER]

Drawn graphs, and real networks of FOLDER (the environment variable LOCKSTEP_DATA), each for components of at
most 3 nodes and of 1 % of all. The baselines are those of this program: CoreHD with broken trees and
reinsertion, the adaptive highest degree, collective influence with reinsertion. HiGHS (by SciPy) solves the
program of connected sets of K + 1 nodes: those that an optimum has left, as many as have no node in common,
again and again, with what is left of the time; where some are left in time its last set is made one by this
program's greedy; on graphs of at most MOST nodes. Every set is checked by NetworkX. One thread, one rank.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

import networkx as nx  # noqa: E402
import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: E402

from app import solve  # noqa: E402
from app.graphs.formats.readers import open_edges  # noqa: E402

FILES = ("large/ca-GrQc.txt", "large/ca-CondMat-cc1.txt.gz", "large/email-Enron.txt.gz")
MOST = 2000  # nodes of the graphs that HiGHS is asked about
Question = tuple[str, nx.Graph, np.ndarray | None]


def main() -> None:
    """Dismantle every graph, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--data", default=os.environ.get("LOCKSTEP_DATA", ""))
    given = parser.parse_args()
    print(
        "| graph | nodes | edges | K | this program | at least | s | CoreHD | collective influence |", end=""
    )
    print(" high degree | HiGHS | at least |\n" + "|---" * 12 + "|")
    for name, graph, weights in graphs(given.data):
        if given.only and name not in given.only:
            continue
        for most in sorted({3, max(len(graph) // 100, 1) if len(graph) > 1000 else len(graph) // 20}):
            print("|", " | ".join(map(str, row(name, graph, weights, most, given.seconds))), "|", flush=True)


def row(name: str, graph: nx.Graph, weights: np.ndarray | None, most: int, seconds: float) -> list:
    """A line of the table."""
    begun = time.perf_counter()
    keys = {"problem.component": most}
    answer = solve(graph, "dismantle", node_weights=weights, search_seconds=seconds, settings=keys)
    spent = time.perf_counter() - begun
    require(graph, set(answer.nodes), most)
    told = [answer.baselines.get(each, "-") for each in ("CoreHD", "collective influence", "high degree")]
    beside = ["-", "-"]
    if len(graph) <= MOST:
        beside = highs(graph, np.ones(len(graph)) if weights is None else weights, most, seconds)
    size = [len(graph), graph.number_of_edges(), most]
    return [name, *size, answer.objective, answer.bound, f"{spent:.1f}", *told, *beside]


def require(graph: nx.Graph, chosen: set[int], most: int) -> None:
    """A set that leaves a component that is too large ends the run."""
    left = graph.subgraph(set(graph) - chosen)
    if max(map(len, nx.connected_components(left)), default=0) > most:
        raise SystemExit(f"a component of more than {most} nodes is left")


def graphs(data: str) -> Iterator[Question]:
    """Graphs and node weights."""
    draws = np.random.default_rng(1)
    yield "karate", nx.karate_club_graph(), None
    yield "random 200, m = 1.5 n", nx.gnm_random_graph(200, 300, seed=1), None
    yield "power law 300", nx.barabasi_albert_graph(300, 2, seed=1), None
    yield "power law 300, weights", nx.barabasi_albert_graph(300, 2, seed=2), draws.integers(1, 100, 300)
    yield "grid 20", nx.convert_node_labels_to_integers(nx.grid_2d_graph(20, 20)), None
    yield "random 5000, m = 1.75 n", nx.gnm_random_graph(5000, 8750, seed=1), None
    yield "cubic 5000", nx.random_regular_graph(3, 5000, seed=1), None
    yield "power law 5000", nx.barabasi_albert_graph(5000, 3, seed=1), None
    for file in FILES if data else ():
        yield Path(file).name.split(".")[0], read(str(Path(data) / file)), None


def read(path: str) -> nx.Graph:
    """The edges of a file but loops, nodes numbered."""
    graph = nx.Graph()
    for u, v, _ in open_edges(path).chunks():
        graph.add_edges_from(zip(u.tolist(), v.tolist()))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return nx.convert_node_labels_to_integers(graph)


def highs(graph: nx.Graph, weights: np.ndarray, most: int, seconds: float) -> list[str]:
    """The weight of a set, and HiGHS's bound."""
    n, begun = len(graph), time.perf_counter()
    rows = connected(graph, np.zeros(n, dtype=bool), most)
    chosen, lower, whole = np.zeros(n, dtype=bool), 0.0, not rows
    while (left := seconds - (time.perf_counter() - begun)) > 0 and not whole:
        entries = np.concatenate(rows), np.append(0, np.cumsum([len(each) for each in rows]))
        matrix = sp.csr_array((np.ones(len(entries[0])), *entries), shape=(len(rows), n))
        found = milp(
            weights, integrality=np.ones(n), bounds=Bounds(0, 1),
            constraints=[LinearConstraint(matrix, 1, np.inf)], options={"time_limit": left},
        )  # fmt: skip
        lower = max(lower, found.mip_dual_bound or 0.0)
        if found.x is None:
            break
        chosen = np.round(found.x).astype(bool)
        more = connected(graph, chosen, most)
        rows += more
        whole = not more
    if not whole:
        rest = graph.subgraph(np.flatnonzero(~chosen).tolist())
        own = nx.convert_node_labels_to_integers(rest, label_attribute="name")
        keys = {"search.steps": 0, "search.bounds": False, "problem.component": most}
        named = (
            {own.nodes[v]["name"] for v in solve(own, "dismantle", settings=keys).nodes} if len(own) else ()
        )
        chosen[list(named)] = True
    require(graph, set(np.flatnonzero(chosen).tolist()), most)
    return [f"{weights[chosen].sum():g}", f"{lower:.1f}"]


def connected(graph: nx.Graph, chosen: np.ndarray, most: int) -> list[np.ndarray]:
    """Connected sets of most + 1 nodes that are not chosen, without a node in common."""
    left, found = nx.Graph(graph.subgraph(np.flatnonzero(~chosen).tolist())), []
    for root in list(left):
        if root not in left:
            continue
        nodes = [root]
        for v in nodes:
            nodes += [u for u in left[v] if u not in nodes][: most + 1 - len(nodes)]
            if len(nodes) > most:
                found.append(np.array(sorted(nodes)))
                break
        left.remove_nodes_from(nodes if len(nodes) > most else [root])
    return found


if __name__ == "__main__":
    main()
