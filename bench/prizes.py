"""Steiner trees with prizes beside growth by Goemans and Williamson, at equal time.

    python bench/prizes.py [--seconds 10] [--peers PYTHON] [FILE...]

Graphs are drawn: grids, points of a square joined to those near them, random graphs, power-law graphs, edges
of lengths from 1 to 100, every fifth node, about, with a prize from 1 to 50 or to 200; FILEs are in the
format of the 11th DIMACS challenge. Costs, what every tree costs at least, the gap, the gap of the tree of
Goemans and Williamson and that of the pruned spanning tree. One thread, one rank. With --peers that Python's
pcst_fast (growth likewise, strong pruning) on the drawn graphs, its gap and the seconds of its call.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from math import pi
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

import networkx as nx  # noqa: E402
import numpy as np  # noqa: E402

from app import solve  # noqa: E402

LARGEST = (50, 200)  # prizes
Question = tuple[str, nx.Graph, dict[int, int]]
HEAD = (
    "graph", "nodes", "edges", "prizes", "this program", "edges of it", "prizes left out", "at least",
    "gap %", "s",
    "Goemans-Williamson, gap %", "pruned spanning tree, gap %",
)  # fmt: skip
PEER = """
import json, sys, time
import numpy as np, pcst_fast
edges, lengths, prizes = json.load(sys.stdin)
edges, lengths, prizes = np.array(edges), np.array(lengths, dtype=float), np.array(prizes, dtype=float)
begun = time.process_time()
nodes, chosen = pcst_fast.pcst_fast(edges, prizes, lengths, -1, 1, "strong", 0)
took = time.process_time() - begun
kept = set(nodes.tolist())
assert len(kept) == len(nodes) == len(chosen) + 1, "no tree: built with pybind11 3 it tells other numbers"
print(lengths[chosen].sum() + sum(p for node, p in enumerate(prizes.tolist()) if node not in kept), took)
"""


def main() -> None:
    """Solve every graph, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--peers", default="")
    given = parser.parse_args()
    head = HEAD + (("pcst_fast, gap %", "s") if given.peers else ())
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for path in given.files:
        say(Path(path).stem, "-", "-", "-", solve(path, "steiner", search_seconds=given.seconds))
    for name, graph, prizes in () if given.files else drawn():
        answer = solve(graph, "steiner", prizes=prizes, search_seconds=given.seconds)
        told = peer(given.peers, graph, prizes) if given.peers else ()
        say(name, len(graph), graph.number_of_edges(), len(prizes), answer, told)


def peer(python: str, graph: nx.Graph, prizes: dict[int, int]) -> tuple[float, float]:
    """What the tree of pcst_fast costs, and the seconds of the processor that it took."""
    edges = [[u, v] for u, v in graph.edges]
    lengths = [length for _, _, length in graph.edges(data="weight")]
    asked = json.dumps([edges, lengths, [prizes.get(node, 0) for node in graph]])
    done = subprocess.run([python, "-c", PEER], input=asked, text=True, capture_output=True, check=True)
    cost, took = map(float, done.stdout.split())
    return cost, took


def say(
    name: str, nodes: object, edges: object, prizes: object, answer: object, told: tuple[float, ...] = ()
) -> None:
    """A line of the table; told: cost and seconds of another program."""
    bound = answer.bound
    gaps = [100 * (each - bound) / bound for each in (answer.objective, *answer.baselines.values())]
    row = [name, nodes, edges, prizes, answer.objective, answer.length, answer.prizes_lost, bound]
    row += [f"{gaps[0]:.2f}", f"{answer.seconds:.1f}", *(f"{gap:.2f}" for gap in gaps[1:])]
    row += [f"{100 * (told[0] - bound) / bound:.2f}", f"{told[1]:.3f}"] if told else []
    print(
        "|",
        " | ".join(f"{each:g}" if isinstance(each, float) else str(each) for each in row),
        "|",
        flush=True,
    )


def drawn() -> Iterator[Question]:
    """Graphs with lengths, and prizes."""
    for name, graph in (
        ("grid", nx.grid_2d_graph(50, 50)),
        ("points", nx.random_geometric_graph(2500, (8 / (pi * 2500)) ** 0.5, seed=1)),
        ("random, m = 3 n", nx.gnm_random_graph(2500, 7500, seed=1)),
        ("power law", nx.barabasi_albert_graph(2500, 3, seed=1)),
        ("grid", nx.grid_2d_graph(200, 200)),
    ):
        part = graph.subgraph(max(nx.connected_components(graph), key=len))
        graph = nx.convert_node_labels_to_integers(part)
        for largest in LARGEST:
            draws = np.random.default_rng(1)
            for edge in graph.edges.values():
                edge["weight"] = int(draws.integers(1, 101))
            prizes = {node: int(draws.integers(1, largest + 1)) for node in graph if draws.random() < 0.2}
            yield f"{name}, to {largest}", graph, prizes


if __name__ == "__main__":
    main()
