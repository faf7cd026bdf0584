"""Linear arrangements: this program beside SciPy's reverse Cuthill-McKee and other plain orders.

    python bench/arrangement.py [--seconds 10] [--only NAME] [--kinds length,bandwidth,...]

Graphs are drawn, or named: grids, hypercubes and complete binary trees, of which least values are known;
meshes of points, random, small-world and scale-free ones; real ones of $LOCKSTEP_DATA where they are there.
Nodes are numbered at random first. SciPy has the reverse Cuthill-McKee order alone, which knows none of the
five measures; it ends within milliseconds, so the time is this program's. One thread, one rank.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from app import solve  # noqa: E402
from app.graphs.arrangement import KINDS, Arrangement  # noqa: E402
from app.graphs.formats.readers import open_edges  # noqa: E402

REAL = {"power grid": "mvc/power.graph.gz", "ca-GrQc": "large/ca-GrQc.txt"}


def main() -> None:
    """Arrange every graph by every measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--kinds", default=",".join(KINDS))
    given = parser.parse_args()
    print(
        "| graph | nodes | edges | measure | known | found | at least | by | s | SciPy's RCM | best plain |"
    )
    print("|---" * 11 + "|")
    for name, known, graph in graphs():
        if given.only not in name:
            continue
        shuffled = renumbered(graph)
        for kind in given.kinds.split(","):
            print("|", " | ".join(map(str, row(name, known, shuffled, kind, given.seconds))), "|", flush=True)


def row(name: str, known: dict[str, int], graph: nx.Graph, kind: str, seconds: float) -> list[Any]:
    """What is found of a graph."""
    begun = time.perf_counter()
    answer = solve(graph, "arrangement", search_seconds=seconds, settings={"problem.arrange": kind})
    spent = f"{time.perf_counter() - begun:.1f}"
    best = min(answer.baselines.items(), key=lambda each: each[1])
    found = [
        answer.objective,
        "" if answer.bound is None else answer.bound,
        answer.bound_method or "",
        spent,
        scipys(graph, kind),
        f"{best[1]}, {best[0]}",
    ]
    return [name, graph.number_of_nodes(), graph.number_of_edges(), kind, known.get(kind, ""), *found]


def scipys(graph: nx.Graph, kind: str) -> int:
    """What SciPy's order, or its reverse, is worth."""
    matrix = sparse.csr_array(nx.to_scipy_sparse_array(graph, format="csr", dtype=np.int8))
    matrix.sort_indices()
    order = reverse_cuthill_mckee(sparse.csr_matrix(matrix), symmetric_mode=True).astype(np.int64)
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    asked = Arrangement(kind, indptr, indices, np.ones(len(indices), dtype=np.int64))
    return min(asked.value(order), asked.value(order[::-1]))


def renumbered(graph: nx.Graph) -> nx.Graph:
    """The same graph, its nodes in a drawn order."""
    graph = nx.convert_node_labels_to_integers(graph)
    names = np.random.default_rng(1).permutation(len(graph)).tolist()
    found = nx.Graph()
    found.add_nodes_from(range(len(names)))
    found.add_edges_from((names[u], names[v]) for u, v in graph.edges if u != v)
    return found


def graphs() -> Iterator[tuple[str, dict[str, int], nx.Graph]]:
    """(name, known least values, graph) of each."""
    for n in (15, 33):
        yield f"grid {n} x {n}", {"bandwidth": n, "cutwidth": n + 1, "separation": n}, nx.grid_2d_graph(n, n)
    # Harper 1964 and 1966; Nakano 1994; Chandran and Kavitha 2006.
    known = {"length": 8128, "bandwidth": 43, "cutwidth": 85, "separation": 43}
    yield "hypercube 7", known, nx.hypercube_graph(7)
    tree = nx.balanced_tree(2, 9)
    yield "binary tree of depth 9", {"length": 3696, "bandwidth": 57, "separation": 5}, tree
    yield "points in the plane", {}, nx.random_geometric_graph(1000, 0.06, seed=1)
    yield "random, degree 9", {}, nx.gnp_random_graph(300, 0.03, seed=1)
    yield "random, degree 4", {}, nx.gnp_random_graph(20, 0.2, seed=1)
    yield "small world", {}, nx.watts_strogatz_graph(1000, 6, 0.05, seed=1)
    yield "Barabasi-Albert, 2", {}, nx.barabasi_albert_graph(1000, 2, seed=1)
    yield "points, large", {}, nx.random_geometric_graph(100_000, 0.005, seed=1)
    folder = Path(os.environ.get("LOCKSTEP_DATA", "."))
    for name, place in REAL.items():
        if (folder / place).exists():
            yield name, {}, read(folder / place)


def read(path: Path) -> nx.Graph:
    """A graph of a file, in a format that this program reads."""
    found = nx.Graph()
    for u, v, _ in open_edges(str(path)).chunks():
        found.add_edges_from(zip(u.tolist(), v.tolist()))
    return found


if __name__ == "__main__":
    main()
