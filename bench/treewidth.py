"""Tree decompositions: this program beside NetworkX's heuristics.

    python bench/treewidth.py [--seconds 10] [--only NAME]

Graphs are drawn, or named: boards of queens, Mycielski's graphs and grids, whose treewidth is known; partial
k-trees, whose treewidth is at most k; random ones; circuits of gates between neighbours in a row; a network
that comes with NetworkX. NetworkX 3 has min degree and min fill-in in plain Python, which end when they end.
One thread, one rank.
"""

import argparse
import itertools
import sys
import time
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from networkx.algorithms import approximation

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from app import solve  # noqa: E402

LARGE, LARGEST = (
    2000,
    50_000,
)  # edges from which on NetworkX's min fill-in, and min degree, would take minutes


def main() -> None:
    """Decompose every graph, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    print("| graph | nodes | edges | known | width | at least | by | s | min degree, s | min fill-in, s |")
    print("|---" * 10 + "|")
    for name, known, graph in graphs():
        if given.only in name:
            print("|", " | ".join(map(str, row(name, known, graph, given.seconds))), "|", flush=True)


def row(name: str, known: str, graph: nx.Graph, seconds: float) -> list[Any]:
    """What is found of a graph."""
    begun = time.perf_counter()
    answer = solve(graph, "treewidth", search_seconds=seconds, settings={"search.baselines": False})
    spent = f"{time.perf_counter() - begun:.1f}"
    found = [answer.objective, answer.bound, answer.bound_method, spent]
    return [name, graph.number_of_nodes(), graph.number_of_edges(), known, *found, *plain(graph)]


def plain(graph: nx.Graph) -> list[str]:
    """The widths of NetworkX's heuristics, and the seconds they take."""
    told = []
    for rule in (approximation.treewidth_min_degree, approximation.treewidth_min_fill_in):
        most = LARGEST if rule is approximation.treewidth_min_degree else LARGE
        if graph.number_of_edges() > most:
            told.append("-")
            continue
        begun = time.perf_counter()
        width, _ = rule(graph)
        told.append(f"{width}, {time.perf_counter() - begun:.1f}")
    return told


def graphs() -> Any:
    """(name, what is known of its treewidth, graph) of each."""
    for n, width in ((5, "18"), (6, "25"), (7, "35"), (8, "45 at most")):
        yield f"queen{n}_{n}", width, queens(n)
    for n, width in ((4, "10"), (5, "19"), (6, "35")):
        yield f"myciel{n}", width, nx.mycielski_graph(n + 1)
    for n in (8, 20, 40):
        yield f"grid {n} x {n}", str(n), nx.grid_2d_graph(n, n)
    for n, k in ((1000, 10), (5000, 30)):
        yield f"partial {k}-tree", f"{k} at most", partial_tree(n, k, 0.7, 1)
    for n, degree in ((50, 6), (100, 4), (300, 4), (3000, 3)):
        yield f"random, degree {degree}", "", nx.gnp_random_graph(n, degree / n, seed=1)
    yield "random 3-regular", "", nx.random_regular_graph(3, 200, seed=1)
    yield "Barabasi-Albert, 3", "", nx.barabasi_albert_graph(500, 3, seed=1)
    yield "circuit, 20 qubits, depth 20", "", circuit(20, 20, 1)
    yield "Les Miserables", "", nx.les_miserables_graph()
    yield "Barabasi-Albert, 2, large", "", nx.barabasi_albert_graph(100_000, 2, seed=1)
    yield "grid 300 x 300", "300", nx.grid_2d_graph(300, 300)


def queens(n: int) -> nx.Graph:
    """Squares of a board, joined where a queen moves from one to the other."""
    squares, graph = [(i, j) for i in range(n) for j in range(n)], nx.Graph()
    for a, b in itertools.combinations(squares, 2):
        if a[0] == b[0] or a[1] == b[1] or abs(a[0] - b[0]) == abs(a[1] - b[1]):
            graph.add_edge(a, b)
    return graph


def partial_tree(n: int, k: int, kept: float, seed: int) -> nx.Graph:
    """A k-tree, of which each edge is kept with a probability."""
    draws = np.random.default_rng(seed)
    graph, cliques = nx.complete_graph(k + 1), [tuple(range(k + 1))]
    for v in range(k + 1, n):
        held = list(cliques[draws.integers(len(cliques))])
        held.pop(int(draws.integers(len(held))))
        graph.add_edges_from((u, v) for u in held)
        cliques.append((*held, v))
    graph.remove_edges_from([edge for edge in list(graph.edges) if draws.random() > kept])
    return graph


def circuit(qubits: int, depth: int, seed: int) -> nx.Graph:
    """Indices of a circuit's tensor network: each gate on two neighbouring qubits, drawn, joins its four."""
    draws, graph = np.random.default_rng(seed), nx.Graph()
    at = list(range(qubits))
    fresh = qubits
    for _ in range(depth):
        first = int(draws.integers(2))
        for q in range(first, qubits - 1, 2):
            if draws.random() < 0.7:
                new = fresh, fresh + 1
                fresh += 2
                graph.add_edges_from(itertools.combinations((at[q], at[q + 1], *new), 2))
                at[q], at[q + 1] = new
    return graph


if __name__ == "__main__":
    main()
