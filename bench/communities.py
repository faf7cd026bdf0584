"""Communities of best modularity at equal time: this program beside the Leiden method of leidenalg.

    python bench/communities.py [--seconds 10] [--leiden PYTHON] [--data FOLDER]

Graphs are drawn (planted communities, caves, random, regular), some that NetworkX has, and real networks of a
folder. leidenalg 0.12 (pip install leidenalg; PYTHON has it, by default this one) is the C++ code of those
who found the Leiden method. It runs to its end from seeds 0, 1, ... (n_iterations = -1) while the time lasts;
the best counts, and the first, which is what a call of it returns. One thread, one rank.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from app import solve  # noqa: E402
from app.graphs.formats.readers import open_edges  # noqa: E402

PATIENCE = 20
FILES = (
    "mvc/power.graph.gz",
    "large/ca-GrQc.txt",
    "large/ca-CondMat-cc1.txt.gz",
    "mvc/as-22july06.graph.gz",
    "large/email-Enron.txt.gz",
    "large/web-NotreDame.txt.gz",
)
PEER = """
import json, sys, time
import igraph, leidenalg
edges, n, seconds = json.load(sys.stdin)
graph = igraph.Graph(n, edges)
found, begun, seed = [], time.perf_counter(), 0
while not found or time.perf_counter() - begun < seconds:
    kind = leidenalg.ModularityVertexPartition
    found.append(leidenalg.find_partition(graph, kind, seed=seed, n_iterations=-1).quality())
    seed += 1
print(found[0], max(found), len(found))
"""


def main() -> None:
    """Partition every graph, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--leiden", default=sys.executable)
    parser.add_argument("--data", default=os.environ.get("LOCKSTEP_DATA", ""))
    given = parser.parse_args()
    print(
        "| graph | nodes | edges | this program | at most | Louvain | Leiden once | best of its runs | runs |"
    )
    print("|---" * 9 + "|")
    for name, graph in graphs(given.data):
        edges = list(graph.edges)
        answer = solve(edges, "communities", search_seconds=given.seconds)
        found = [answer.objective, answer.bound, answer.baselines["Louvain"]]
        once, best, runs = peer(edges, graph.number_of_nodes(), given.seconds, given.leiden)
        figures = [f"{value:.6f}" for value in found] + [once, best, runs]
        print(
            "|", " | ".join(map(str, [name, graph.number_of_nodes(), len(edges), *figures])), "|", flush=True
        )


def graphs(data: str) -> Iterator[tuple[str, nx.Graph]]:
    """(name, graph) of each, nodes numbered from 0 on, without those that no edge holds."""
    yield "karate club", nx.Graph(nx.karate_club_graph().edges)
    yield "les misérables, unweighted", _numbered(nx.les_miserables_graph())
    yield "10 planted communities", _numbered(nx.planted_partition_graph(10, 20, 0.4, 0.03, seed=1))
    yield "60 caves, 0.35 rewired", _numbered(nx.relaxed_caveman_graph(60, 12, 0.35, seed=3))
    yield "random", _numbered(nx.gnm_random_graph(300, 1500, seed=1))
    yield "4-regular", _numbered(nx.random_regular_graph(4, 1000, seed=1))
    for file in FILES if data else ():
        yield Path(file).name.split(".")[0], read(str(Path(data) / file))


def _numbered(graph: nx.Graph) -> nx.Graph:
    """Its edges but loops, between nodes 0, 1, ..."""
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    kept = graph.subgraph([node for node in graph if graph.degree(node)])
    return nx.Graph(nx.convert_node_labels_to_integers(kept).edges)


def read(path: str) -> nx.Graph:
    """The edges of a file, numbered."""
    graph = nx.Graph()
    for u, v, _ in open_edges(path).chunks():
        graph.add_edges_from(zip(u.tolist(), v.tolist()))
    return _numbered(graph)


def peer(edges: list[Any], nodes: int, seconds: float, python: str) -> list[str]:
    """Of leidenalg: the modularity of its first run, the best, how many runs; "-" where it is not there, or
    one run takes PATIENCE times as long.
    """
    told = json.dumps([edges, nodes, seconds])
    try:
        done = subprocess.run(
            [python, "-c", PEER],
            input=told,
            capture_output=True,
            text=True,
            timeout=PATIENCE * seconds,
            check=True,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return ["-", "-", "0"]
    first, best, runs = done.stdout.split()
    return [f"{float(first):.6f}", f"{float(best):.6f}", runs]


if __name__ == "__main__":
    main()
