"""Covering a graph with and without compaction of the residual graph: paired ratio of the rollout's time.

    python bench/compaction.py [NODES] [PAIRS]

Both sides cover the same Barabasi-Albert graph (d=4) with the shipped weights in one run, by turns; printed
are the median of the ratios and whether the covers are the same.
"""

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from app import cli

cli.limit_threads()

import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

from app.comm.group import Group  # noqa: E402
from app.config import GraphCase  # noqa: E402
from app.device import HostDevice  # noqa: E402
from app.gnn.parameters import Parameters  # noqa: E402
from app.partition.load import generate_set  # noqa: E402
from app.problems.table import make_problem  # noqa: E402
from app.rl import compact  # noqa: E402
from app.rl.qnet import QNetwork  # noqa: E402
from app.rl.rollout import cover_graph  # noqa: E402
from app.rl.weights import default_weights, load_weights  # noqa: E402
from app.sparse.rowblock import RowBlock  # noqa: E402


def main(nodes: int, pairs: int) -> None:
    """Print the ratio."""
    group = Group(MPI.COMM_WORLD, HostDevice())
    saved = load_weights(default_weights("mvc"))
    net = QNetwork(saved.policy, make_problem("mvc"))
    params = Parameters(group.device, net.shapes())
    params.set(saved.arrays)
    table = GraphCase(generator="ba", nodes=nodes, d=4, generator_seed=1)
    loaded = generate_set(group, table, 0, "bench")[0]
    block = RowBlock(group, loaded.graph, loaded.rows)
    smallest, seconds, covers = compact.SMALLEST, {True: [], False: []}, {}
    for _ in range(pairs):
        for compacting in (True, False):
            compact.SMALLEST = smallest if compacting else sys.maxsize
            start = time.perf_counter()
            cover = cover_graph(group, net, params, block, "fraction", 0.01)
            seconds[compacting].append(time.perf_counter() - start)
            covers[compacting] = cover.cover_own
    ratio = statistics.median(a / b for a, b in zip(seconds[False], seconds[True]))
    if group.rank == 0:
        same = np.array_equal(covers[True], covers[False])
        print(f"BA n={nodes}: without / with {ratio:.2f}, {cover.evaluations} evaluations, same: {same}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 14_400, int(sys.argv[2]) if len(sys.argv) > 2 else 3)
