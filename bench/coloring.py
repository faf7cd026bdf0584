"""Graph colourings at equal time: this program beside GCol.

    python bench/coloring.py [--seconds 10] [--gcol PYTHON]

Graphs are drawn: random ones of several densities, random geometric ones, and graphs with a hidden
colouring. GCol 2.2 (pip install gcol; PYTHON has it, by default this one) is a library of heuristics for
NetworkX graphs in plain Python. It takes numbers of iterations, so that it is run with ever larger ones,
until the next would end beyond the limit: each of its two walks by itself, and in its evolutionary form; the
fewest colours count. One thread, one rank.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from app import solve  # noqa: E402

RANDOM = (
    (125, 0.1),
    (125, 0.5),
    (125, 0.9),
    (250, 0.1),
    (250, 0.5),
    (250, 0.9),
    (500, 0.1),
    (500, 0.5),
    (1000, 0.5),
)
GEOMETRIC = ((500, 0.1), (500, 0.2), (1000, 0.1))
HIDDEN = ((300, 20, 0.5), (450, 15, 0.17))  # nodes, colours, probability of an edge between them
PEER = """
import json, sys, time
import gcol, networkx as nx
edges, n, seconds = json.load(sys.stdin)
graph = nx.Graph(edges)
graph.add_nodes_from(range(n))
best = n
for algorithm in (2, 3, 4):
    begun, limit = time.perf_counter(), 1000
    while time.perf_counter() - begun < seconds / 2:  # the next takes four times as long
        colors = gcol.node_coloring(graph, strategy="rlf", opt_alg=algorithm, it_limit=limit)
        best, limit = min(best, max(colors.values()) + 1), 4 * limit
print(best)
"""


def main() -> None:
    """Colour every graph, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--gcol", default=sys.executable)
    given = parser.parse_args()
    print("| graph | nodes | edges | this program | at least | by | DSATUR | RLF | GCol |")
    print("|---" * 9 + "|")
    for name, graph in graphs():
        answer = solve(graph, "coloring", search_seconds=given.seconds)
        rules = [answer.baselines.get(rule, "-") for rule in ("DSATUR", "RLF")]
        found = [answer.objective, answer.bound, answer.bound_method, *rules]
        row = [name, graph.number_of_nodes(), graph.number_of_edges(), *found]
        print("|", " | ".join(map(str, [*row, peer(graph, given.seconds, given.gcol)])), "|", flush=True)


def graphs() -> Any:
    """(name, graph) of each."""
    for n, p in RANDOM:
        yield f"random, p = {p}", nx.gnp_random_graph(n, p, seed=1)
    for n, radius in GEOMETRIC:
        yield f"geometric, radius {radius}", nx.random_geometric_graph(n, radius, seed=1)
    for n, colors, p in HIDDEN:
        draws, part = np.random.default_rng(1), np.arange(n) % colors
        joined = np.triu((part[:, None] != part[None, :]) & (draws.random((n, n)) < p), 1)
        yield f"{colors} colours hidden, p = {p}", nx.from_numpy_array((joined | joined.T).astype(int))


def peer(graph: nx.Graph, seconds: float, python: str) -> str:
    """The least number of colours that GCol finds, "-" where it is not there."""
    told = json.dumps([[list(edge) for edge in graph.edges], graph.number_of_nodes(), seconds])
    done = subprocess.run([python, "-c", PEER], input=told, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "-"


if __name__ == "__main__":
    main()
