"""Steiner trees at equal time: this program beside HiGHS, and NetworkX's heuristics.

    python bench/steiner.py [--seconds 10] [FILE...]

Graphs are drawn: hypercubes with every second node a terminal and lengths 1 (SteinLib's class HC, hc6u to
hc8u), random graphs like its classes C, D and E, a grid with lengths, a power-law graph; FILEs are in
SteinLib's format. HiGHS (by SciPy) solves the flow formulation, a commodity for each terminal where that
makes at most MOST variables, else one for all. NetworkX's steiner_tree is run to its end by both of its
methods. One thread, one rank.
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
from networkx.algorithms.approximation import steiner_tree  # noqa: E402
from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: E402

from app import solve  # noqa: E402
from app.graphs.formats.readers import open_edges  # noqa: E402

MOST = 400_000  # variables of a program with a commodity for each terminal
Question = tuple[str, nx.Graph, list[int]]


def main() -> None:
    """Solve every graph, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    print(
        "| graph | nodes | edges | terminals | this program | at least | s | HiGHS | at least | s |", end=""
    )
    print(" Mehlhorn | s | Kou | s |\n" + "|---" * 14 + "|")
    for name, graph, terminals in map(read, given.files) if given.files else drawn():
        row = [name, graph.number_of_nodes(), graph.number_of_edges(), len(terminals)]
        begun = time.perf_counter()
        answer = solve(graph, "steiner", terminals=terminals, search_seconds=given.seconds)
        row += [answer.objective, answer.bound, f"{time.perf_counter() - begun:.1f}"]
        row += highs(graph, terminals, given.seconds)
        for method in ("mehlhorn", "kou"):
            begun = time.perf_counter()
            tree = steiner_tree(graph, terminals, method=method)
            row += [f"{tree.size(weight='weight'):g}", f"{time.perf_counter() - begun:.1f}"]
        print("|", " | ".join(map(str, row)), "|", flush=True)


def drawn() -> Iterator[Question]:
    """Graphs, lengths and terminals."""
    for dimension in (6, 7, 8):
        cube = nx.convert_node_labels_to_integers(nx.hypercube_graph(dimension))
        nx.set_edge_attributes(cube, 1, "weight")
        yield f"hc{dimension}u", cube, [node for node in cube if node.bit_count() % 2 == 0]
    yield with_lengths("random, m = 5 n", nx.gnm_random_graph(500, 2500, seed=1), 83, 10)
    yield with_lengths("random, m = 2 n", nx.gnm_random_graph(1000, 2000, seed=2), 200, 10)
    yield with_lengths("random, m = 25 n", nx.gnm_random_graph(1000, 25000, seed=3), 167, 10)
    yield with_lengths("grid", nx.grid_2d_graph(40, 40), 100, 100)
    yield with_lengths("power law", nx.barabasi_albert_graph(2000, 3, seed=4), 200, 100)


def with_lengths(name: str, graph: nx.Graph, count: int, longest: int) -> Question:
    """Lengths from 1 on, and terminals of the largest component, drawn."""
    graph, draws = nx.convert_node_labels_to_integers(graph), np.random.default_rng(1)
    for edge in graph.edges.values():
        edge["weight"] = int(draws.integers(1, longest + 1))
    part = sorted(max(nx.connected_components(graph), key=len))
    graph = nx.convert_node_labels_to_integers(graph.subgraph(part).copy())
    return name, graph, sorted(draws.permutation(len(part))[:count].tolist())


def read(path: str) -> Question:
    """A file of SteinLib."""
    stream, graph = open_edges(path, "stp"), nx.Graph()
    graph.add_nodes_from(range(stream.nodes))
    for u, v, w in stream.chunks():
        lengths = np.ones(len(u)) if w is None else w
        graph.add_weighted_edges_from(zip(u.tolist(), v.tolist(), lengths.tolist()))
    return Path(path).stem, graph, stream.terminals.tolist()


def highs(graph: nx.Graph, terminals: list[int], seconds: float) -> list[str]:
    """The length of HiGHS's tree, its bound, and how long it took."""
    edges, n, root = list(graph.edges), graph.number_of_nodes(), terminals[0]
    m, sinks = len(edges), terminals[1:]
    cost = np.array([graph.edges[edge]["weight"] for edge in edges], dtype=float)
    ends = np.array(edges)
    tail, head = np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]])
    arcs = np.arange(2 * m)
    flow = sp.csr_array((np.ones(2 * m), (head, arcs)), shape=(n, 2 * m))
    flow = flow - sp.csr_array((np.ones(2 * m), (tail, arcs)), shape=(n, 2 * m))
    many = len(sinks) * 2 * m <= MOST
    commodities = [[sink] for sink in sinks] if many else [sinks]
    demand = np.zeros((len(commodities), n))
    for row, wanted in zip(demand, commodities):
        row[wanted], row[root] = 1, -len(wanted)
    chosen = sp.vstack([sp.eye_array(m)] * 2)
    count = len(commodities)
    room = 1.0 if many else float(len(sinks))
    balance = sp.hstack([sp.csr_array((count * n, m)), sp.kron(sp.eye_array(count), flow)])
    within = sp.hstack([sp.vstack([-room * chosen] * count), sp.eye_array(count * 2 * m)])
    begun = time.perf_counter()
    found = milp(
        np.concatenate([cost, np.zeros(count * 2 * m)]),
        integrality=np.concatenate([np.ones(m), np.zeros(count * 2 * m)]),
        bounds=Bounds(0, np.concatenate([np.ones(m), np.full(count * 2 * m, room)])),
        constraints=[
            LinearConstraint(sp.csr_array(balance), demand.ravel(), demand.ravel()),
            LinearConstraint(sp.csr_array(within), -np.inf, 0),
        ],
        options={"time_limit": seconds},
    )
    spent = f"{time.perf_counter() - begun:.1f}"
    bound = "-" if found.mip_dual_bound is None else f"{found.mip_dual_bound:.1f}"
    return ["none" if found.x is None else f"{found.fun:g}", bound, spent]


if __name__ == "__main__":
    main()
