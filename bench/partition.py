"""Balanced partitions at equal time: this program beside KaHIP and METIS.

    python bench/partition.py [--seconds 10] [--peers PYTHON] [--parts 2 16] [--data FOLDER] [--processor]

Graphs are drawn (a grid, random triangulations and geometric graphs, a random graph, a power-law graph), and
real networks of a folder. Blocks may be 3 % heavier than an even share. kahip 3.25 (its "strong" and "eco"
presets by turns; on social networks their social forms) and pymetis 2025.2 (k-way, ufactor 30) run from seeds
0, 1, ... while the time lasts; the best balanced partition counts. One thread, one rank; PYTHON has both, by
default this one, or is "none". With --processor all seconds are those of the processes, so that other work on
the machine counts for nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np

if "--processor" in sys.argv:
    time.perf_counter = time.monotonic = time.process_time  # before anything else asks for one

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

import scipy.sparse as sp  # noqa: E402
from scipy.spatial import Delaunay, cKDTree  # noqa: E402

from app import solve  # noqa: E402
from app.graphs.formats.readers import open_edges  # noqa: E402

IMBALANCE = 0.03
PATIENCE = 10
FILES = (
    ("mvc/power.graph.gz", False),
    ("large/ca-CondMat-cc1.txt.gz", True),
    ("mvc/as-22july06.graph.gz", True),
)
PEER = """
import json, sys, time
import numpy as np
which, parts, social, seconds, clock, indptr, indices = json.load(sys.stdin)
clock = getattr(time, clock)
n, best, runs = len(indptr) - 1, None, 0
limit = int(1.03 * -(-n // parts))
row, column = np.repeat(np.arange(n), np.diff(indptr)), np.array(indices)
begun = clock()
while not runs or clock() - begun < seconds:
    if which == "kahip":
        import kahip
        mode = (2, 1)[runs % 2] + 3 * social
        block = kahip.kaffpa([1] * n, indptr, [1] * len(indices), indices, parts, 0.03, True, runs, mode)[1]
    else:
        import pymetis
        adjacency = pymetis.CSRAdjacency(np.array(indptr, np.int32), np.array(indices, np.int32))
        options = pymetis.Options(seed=runs, ufactor=30)
        block = pymetis.part_graph(parts, adjacency, recursive=False, options=options)[1]
    block = np.array(block)
    runs += 1
    if np.bincount(block).max() <= limit:
        cut = int((block[row] != block[column]).sum()) // 2
        best = cut if best is None else min(best, cut)
print(best, runs)
"""


def main() -> None:
    """Partition every graph, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--parts", type=int, nargs="+", default=[2, 16])
    parser.add_argument("--data", default=os.environ.get("LOCKSTEP_DATA", ""))
    parser.add_argument("--processor", action="store_true")
    given = parser.parse_args()
    print("| graph | nodes | edges | blocks | this program | at least | KaHIP | runs | METIS | runs |")
    print("|---" * 10 + "|")
    for name, graph, social in graphs(given.data):
        for parts in given.parts:
            settings = {"problem.parts": parts, "problem.imbalance": IMBALANCE}
            answer = solve(graph, "partition", search_seconds=given.seconds, settings=settings)
            found = [answer.objective, answer.bound]
            for which in ("kahip", "metis"):
                found += peer(which, graph, parts, social, given.seconds, given.peers, given.processor)
            sizes = [name, graph.shape[0], graph.nnz // 2, parts]
            print("|", " | ".join(map(str, sizes + found)), "|", flush=True)


def graphs(data: str) -> Iterator[tuple[str, sp.csr_array, bool]]:
    """(name, adjacency matrix, whether it is a social network) of each."""
    yield "grid 10 x 10", matrix_of(nx.grid_2d_graph(10, 10)), False
    yield "grid 100 x 100", matrix_of(nx.grid_2d_graph(100, 100)), False
    yield "triangulation", triangulated(4096), False
    yield "triangulation", triangulated(32768), False
    yield "geometric", geometric(32768), False
    yield "random", matrix_of(nx.gnm_random_graph(1000, 5000, seed=1)), True
    yield "power law", matrix_of(nx.barabasi_albert_graph(5000, 4, seed=1)), True
    for file, social in FILES if data else ():
        yield Path(file).name.split(".")[0], read(str(Path(data) / file)), social


def matrix_of(graph: nx.Graph) -> sp.csr_array:
    """The adjacency matrix of a graph without loops."""
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return ones(nx.to_scipy_sparse_array(graph))


def ones(matrix: sp.csr_array) -> sp.csr_array:
    """A matrix that is symmetric, of ones."""
    matrix = sp.csr_array(matrix + matrix.T)
    matrix.data = np.ones(matrix.nnz)
    return matrix


def triangulated(n: int, seed: int = 1) -> sp.csr_array:
    """The Delaunay triangulation of n uniform points."""
    corners = Delaunay(np.random.default_rng(seed).random((n, 2))).simplices
    ends = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]]).T
    return ones(sp.csr_array((np.ones(ends.shape[1]), ends), shape=(n, n)))


def geometric(n: int, degree: float = 6.0, seed: int = 1) -> sp.csr_array:
    """Uniform points, those near each other joined, of a mean degree."""
    points = np.random.default_rng(seed).random((n, 2))
    ends = cKDTree(points).query_pairs(np.sqrt(degree / np.pi / n), output_type="ndarray").T
    return ones(sp.csr_array((np.ones(ends.shape[1]), ends), shape=(n, n)))


def read(path: str) -> sp.csr_array:
    """The graph of a file."""
    graph = nx.Graph()
    for u, v, _ in open_edges(path).chunks():
        graph.add_edges_from(zip(u.tolist(), v.tolist()))
    return matrix_of(graph)


def peer(
    which: str, graph: sp.csr_array, parts: int, social: bool, seconds: float, python: str, processor: bool
) -> list[str]:
    """What the best run of a peer cuts, and how many runs; "-" where it is not there, or takes far too
    long.
    """
    if python == "none":
        return ["-", "0"]
    clock = "process_time" if processor else "perf_counter"
    told = json.dumps([which, parts, social, seconds, clock, graph.indptr.tolist(), graph.indices.tolist()])
    try:
        done = subprocess.run(
            [python, "-W", "ignore", "-c", PEER], input=told, capture_output=True, text=True,
            timeout=PATIENCE * seconds + 60, check=True,
        )  # fmt: skip
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return ["-", "0"]
    return done.stdout.split()[-2:]


if __name__ == "__main__":
    main()
