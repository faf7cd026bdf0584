"""The search for balanced partitions alone, without bounds, on graphs that nothing was tuned on.

    python bench/partition_alone.py [--seconds 6] [--data FOLDER] GRAPH:BLOCKS:SEED ...

GRAPH is a name of GRAPHS: random triangulations and geometric graphs, a power-law and a small-world graph,
real networks of a folder, and parts of a road network (the first nodes of a breadth-first search). Of each
the largest connected part is cut, into blocks at most 3 % heavier than an even share. Seconds are of the
processor, and hold the start; what is cut after a quarter, a half and all of them is printed. Run by turns in
two versions of the program it compares them.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import networkx as nx
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

import scipy.sparse as sp  # noqa: E402
from partition import IMBALANCE, matrix_of, ones, read, triangulated  # noqa: E402
from partition import geometric as geometric_graph  # noqa: E402
from scipy.sparse.csgraph import breadth_first_order, connected_components  # noqa: E402

from app.blocks.whole import by_levels  # noqa: E402
from app.graphs.balance import Balance, balance_of  # noqa: E402
from app.graphs.formats.readers import open_edges  # noqa: E402
from app.graphs.graph import from_edges  # noqa: E402
from app.search.partition.search import PartitionSearch  # noqa: E402

STEPS = 20_000  # between two looks at the clock
ROADS = "large/road-NY.gr.bz2"
GRAPHS = {
    "tri3k": lambda data: triangulated(3000, 21),
    "tri8k": lambda data: triangulated(8000, 22),
    "tri20k": lambda data: triangulated(20000, 23),
    "geo2k": lambda data: geometric_graph(2000, 8.0, 31),
    "geo8k": lambda data: geometric_graph(8000, 6.0, 32),
    "geo20k": lambda data: geometric_graph(20000, 8.0, 33),
    "ba10k": lambda data: matrix_of(nx.barabasi_albert_graph(10000, 4, seed=5)),
    "ws10k": lambda data: matrix_of(nx.watts_strogatz_graph(10000, 8, 0.1, seed=6)),
    "grqc": lambda data: read(str(data / "large/ca-GrQc.txt")),
    "enron": lambda data: read(str(data / "large/email-Enron.txt.gz")),
    "road10k": lambda data: around(roads(data), 1000, 10000),
    "road20k": lambda data: around(roads(data), 150000, 20000),
}


def main() -> None:
    """Cut each graph, print what is cut."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", nargs="+", metavar="GRAPH:BLOCKS:SEED")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--data", default=os.environ.get("LOCKSTEP_DATA", ""))
    given = parser.parse_args()
    for cell in given.cells:
        name, parts, seed = cell.split(":")
        balance = question(GRAPHS[name](Path(given.data)), int(parts))
        print(name, parts, seed, "|", *searched(balance, int(seed), given.seconds), flush=True)


def question(matrix: sp.csr_array, parts: int) -> Balance:
    """The largest connected part of a graph, in so many blocks."""
    label = connected_components(matrix, directed=False)[1]
    kept = np.flatnonzero(label == np.bincount(label).argmax())
    rest = sp.triu(sp.csr_matrix(matrix)[kept][:, kept], k=1)
    graph = from_edges(len(kept), rest.row.astype(np.int64), rest.col.astype(np.int64), None)
    return balance_of(graph, parts, IMBALANCE)


def searched(balance: Balance, seed: int, seconds: float) -> list[int]:
    """What is cut after a quarter, a half and all of the processor seconds, with the start."""
    begun, marks, found = time.process_time(), [seconds / 4, seconds / 2, seconds], []
    search = PartitionSearch(balance, by_levels(balance), seed)
    while len(found) < len(marks):
        if search.done or time.process_time() - begun >= marks[len(found)]:
            found.append(search.best)
        else:
            search.run(STEPS)
    return found


def roads(data: Path) -> sp.csr_array:
    """A road network, without lengths."""
    pairs = [(u, v) for u, v, _ in open_edges(str(data / ROADS)).chunks()]
    ends = np.array([np.concatenate(each) for each in zip(*pairs, strict=True)])
    n = int(ends.max()) + 1
    return ones(sp.csr_array((np.ones(ends.shape[1]), ends), shape=(n, n)))


def around(matrix: sp.csr_array, root: int, count: int) -> sp.csr_array:
    """The first nodes that a breadth-first search from a root comes to."""
    near = breadth_first_order(matrix, root, directed=False, return_predecessors=False)[:count]
    return sp.csr_array(sp.csr_matrix(matrix)[near][:, near])


if __name__ == "__main__":
    main()
