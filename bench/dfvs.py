"""Directed feedback vertex sets at equal time: this program beside HiGHS, and a greedy.

    python bench/dfvs.py [--seconds 10] [FILE...]

Digraphs are drawn: random ones of several sizes and degrees, some with many arcs both ways, one with weights
of nodes, one with power-law degrees; FILEs are as PACE 2022 has them. HiGHS (by SciPy) solves an integer
program with a row for each cycle known: of two nodes, then shortest ones of what its point leaves, until that
has none. Its bound is that of the last program, its set the best of its points and a node of each cycle
that such a point leaves. Where it ends in time, its bound proves the optimum by other means. One thread, one
rank.
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

from app import check, solve  # noqa: E402
from app.graphs.formats.readers import open_edges  # noqa: E402

LEAST = 0.2  # s that a program of HiGHS gets
Question = tuple[str, nx.DiGraph, list[int]]


def main() -> None:
    """Solve every graph, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    print("| digraph | nodes | arcs | this program | at least | s | proved again |", end="")
    print(" HiGHS | at least | s | greedy |\n" + "|---" * 11 + "|")
    for name, graph, weights in map(read, given.files) if given.files else drawn():
        row = [name, graph.number_of_nodes(), graph.number_of_edges()]
        begun = time.perf_counter()
        keys = {"output.certificates": True}
        answer = solve(graph, "dfvs", node_weights=weights, search_seconds=given.seconds, settings=keys)
        row += [answer.objective, answer.bound, f"{time.perf_counter() - begun:.1f}"]
        proved = check(graph, answer, node_weights=weights).bound
        row += ["yes" if proved == answer.bound else proved]
        row += highs(graph, weights, given.seconds)
        row.append(answer.baselines["most ways through"])
        print("|", " | ".join(map(str, row)), "|", flush=True)


def drawn() -> Iterator[Question]:
    """Digraphs, and weights of their nodes."""
    for n, degree in ((100, 3), (200, 3), (300, 3), (100, 6), (1000, 2), (1000, 3), (1000, 8), (4000, 2.5)):
        graph = nx.fast_gnp_random_graph(n, degree / (n - 1), seed=1, directed=True)
        yield f"random, degree {degree}", graph, [1] * n
    for n, degree, both in ((200, 3, 0.5), (400, 2, 0.8)):
        graph = nx.fast_gnp_random_graph(n, degree / (n - 1), seed=2, directed=True)
        draws = np.random.default_rng(1)
        graph.add_edges_from([(v, u) for u, v in list(graph.edges) if draws.random() < both])
        yield f"random, degree {degree}, {both:.0%} of arcs both ways", graph, [1] * n
    graph = nx.fast_gnp_random_graph(200, 3 / 199, seed=3, directed=True)
    yield "random, degree 3, weights", graph, np.random.default_rng(3).integers(1, 101, 200).tolist()
    graph = nx.DiGraph(nx.scale_free_graph(2000, seed=4))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    yield "power law", graph, [1] * 2000


def read(path: str) -> Question:
    """A file of PACE 2022."""
    stream, graph = open_edges(path, "pace2022"), nx.DiGraph()
    graph.add_nodes_from(range(stream.nodes))
    for u, v, _ in stream.chunks():
        graph.add_edges_from(zip(u.tolist(), v.tolist()))
    return Path(path).stem, graph, [1] * stream.nodes


def highs(graph: nx.DiGraph, weights: list[int], seconds: float) -> list[str]:
    """The weight of HiGHS's set, its bound, and how long it took."""
    begun, n = time.perf_counter(), graph.number_of_nodes()
    cycles = [[u, v] for u, v in graph.edges if u < v and graph.has_edge(v, u)]
    cycles += [[v] for v in nx.nodes_with_selfloops(graph)]
    bound, best, point = 0.0, float("inf"), np.zeros(n, dtype=bool)
    while True:
        found, chosen = _broken(graph, point, begun + seconds)
        cycles += found
        best = min(best, sum(weights[v] for v in np.flatnonzero(chosen)))
        left = seconds - (time.perf_counter() - begun)
        if (not found and bound > 0) or not cycles or left <= 0:
            break
        rows = np.repeat(np.arange(len(cycles)), [len(cycle) for cycle in cycles])
        nodes = np.concatenate(cycles)
        matrix = sp.csr_array((np.ones(len(nodes)), (rows, nodes)), shape=(len(cycles), n))
        solved = milp(
            np.array(weights, dtype=float), integrality=np.ones(n), bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, 1), options={"time_limit": max(left, LEAST)},
        )  # fmt: skip
        bound = max(bound, solved.mip_dual_bound or 0.0)
        if solved.x is None:
            break
        point = solved.x > 0.5
    return [f"{best:g}", f"{max(int(np.ceil(bound - 1e-6)), 0)}", f"{time.perf_counter() - begun:.1f}"]


def _broken(graph: nx.DiGraph, point: np.ndarray, end: float) -> tuple[list[list[int]], np.ndarray]:
    """Cycles without common nodes that a set leaves, and the set with a node of each further one; with all
    nodes on cycles once the time is up.
    """
    left, chosen, found = graph.subgraph(np.flatnonzero(~point).tolist()).copy(), point.copy(), []
    while True:
        parts = [part for part in nx.strongly_connected_components(left) if len(part) > 1]
        loops = list(nx.nodes_with_selfloops(left))
        if not parts and not loops:
            return found, chosen
        chosen[loops] = True
        if time.perf_counter() > end:
            chosen[[v for part in parts for v in part]] = True
            return found, chosen
        left.remove_nodes_from(loops)
        for part in parts:
            if not part <= set(left):
                continue
            start = max(part, key=lambda v: (left.in_degree(v) * left.out_degree(v), v))
            own = left.subgraph(part)
            ways = nx.single_source_shortest_path(own, start)
            last = min((v for v in own.predecessors(start)), key=lambda v: len(ways[v]))
            found.append(ways[last])
            chosen[start] = True
            left.remove_node(start)


if __name__ == "__main__":
    main()
