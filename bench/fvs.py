"""Feedback vertex sets at equal time: this program beside HiGHS, CoreHD and the local ratio of Bafna, Berman
and Fujito.

    python bench/fvs.py [--seconds 10] [--only NAME...]

Graphs are drawn: sparse random and regular ones, power laws, small worlds, grids, with and without node
weights; of random regular graphs of degree d the least set has (n (d - 2) / 2 + 1) / (d - 1) nodes almost
surely, for d = 3 (Bau, Wormald and Zhou 2002). HiGHS (by SciPy) solves the program of cycles: one node of
each cycle that an optimum has left, again and again, as many as have no node in common, with what is left of
the time; where none is left in time its last set is made one by CoreHD. One thread, one rank.
"""

import argparse
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

MOST = 200  # cycles of a round
Question = tuple[str, nx.Graph, np.ndarray | None]


def main() -> None:
    """Solve every graph, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    print("| graph | nodes | edges | this program | at least | s | HiGHS | at least | s | CoreHD |", end="")
    print(" local ratio |\n" + "|---" * 11 + "|")
    for name, graph, weights in drawn():
        if given.only and name not in given.only:
            continue
        begun = time.perf_counter()
        answer = solve(graph, "fvs", node_weights=weights, search_seconds=given.seconds)
        spent = time.perf_counter() - begun
        left = graph.subgraph(set(graph) - set(answer.nodes))
        assert not len(left) or nx.is_forest(left)
        row = [name, len(graph), graph.number_of_edges(), answer.objective, answer.bound, f"{spent:.1f}"]
        row += highs(graph, np.ones(len(graph)) if weights is None else weights, given.seconds)
        row += [answer.baselines["CoreHD"], answer.baselines["local ratio"]]
        print("|", " | ".join(map(str, row)), "|", flush=True)


def drawn() -> Iterator[Question]:
    """Graphs and node weights."""
    draws = np.random.default_rng(1)
    yield "karate", nx.karate_club_graph(), None
    yield "random 100, m = 2 n", nx.gnm_random_graph(100, 200, seed=1), None
    yield "random 200, m = 1.5 n", nx.gnm_random_graph(200, 300, seed=1), None
    yield "random 200, m = 2 n", nx.gnm_random_graph(200, 400, seed=1), None
    yield "cubic 200", nx.random_regular_graph(3, 200, seed=1), None
    yield "power law 300", nx.barabasi_albert_graph(300, 2, seed=1), None
    yield "small world 200", nx.watts_strogatz_graph(200, 4, 0.1, seed=1), None
    yield "grid 12", nx.convert_node_labels_to_integers(nx.grid_2d_graph(12, 12)), None
    yield "random 100, weights", nx.gnm_random_graph(100, 200, seed=2), draws.integers(1, 100, 100)
    yield "power law 300, weights", nx.barabasi_albert_graph(300, 2, seed=2), draws.integers(1, 100, 300)
    yield "cubic 2000", nx.random_regular_graph(3, 2000, seed=1), None
    yield "random 2000, m = 5 n", nx.gnm_random_graph(2000, 10000, seed=1), None
    yield "power law 20000", nx.barabasi_albert_graph(20000, 3, seed=1), None


def highs(graph: nx.Graph, weights: np.ndarray, seconds: float) -> list[str]:
    """The weight of a set, HiGHS's bound, and how long it took."""
    n, begun = len(graph), time.perf_counter()
    rows = disjoint(graph, np.zeros(n, dtype=bool))
    chosen, lower, whole = np.zeros(n, dtype=bool), 0.0, False
    while (left := seconds - (time.perf_counter() - begun)) > 0 and not whole:
        entries = np.concatenate(rows), np.append(0, np.cumsum([len(row) for row in rows]))
        matrix = sp.csr_array((np.ones(len(entries[0])), *entries), shape=(len(rows), n))
        found = milp(
            weights, integrality=np.ones(n), bounds=Bounds(0, 1),
            constraints=[LinearConstraint(matrix, 1, np.inf)], options={"time_limit": left},
        )  # fmt: skip
        lower = max(lower, found.mip_dual_bound or 0.0)
        if found.x is None:
            break
        chosen = np.round(found.x).astype(bool)
        more = disjoint(graph, chosen)
        rows += more
        whole = not more
    if not whole:
        rest = graph.subgraph(np.flatnonzero(~chosen).tolist())
        own = nx.convert_node_labels_to_integers(rest, label_attribute="name")
        keys = {"search.steps": 0, "search.bounds": False, "search.start": "greedy"}
        named = {own.nodes[v]["name"] for v in solve(own, "fvs", settings=keys).nodes} if len(own) else set()
        chosen[list(named)] = True
    return [f"{weights[chosen].sum():g}", f"{lower:.1f}", f"{time.perf_counter() - begun:.1f}"]


def disjoint(graph: nx.Graph, chosen: np.ndarray) -> list[np.ndarray]:
    """Cycles of the nodes that are not chosen, without a node in common, at most MOST."""
    left, found = nx.Graph(graph.subgraph(np.flatnonzero(~chosen).tolist())), []
    while len(found) < MOST:
        try:
            cycle = [u for u, _ in nx.find_cycle(left)]
        except nx.NetworkXNoCycle:
            break
        found.append(np.array(sorted(cycle)))
        left.remove_nodes_from(cycle)
    return found


if __name__ == "__main__":
    main()
