"""A step of the environment by RL4GO's scan of the edges (section 4.4) and by counters of degrees.

    mpirun -np 2 python bench/environment.py [--graph er:3360:0.15] [--steps 8]

Milliseconds of the processor outside of MPI calls, of the slowest rank, medians over steps: on one rank, and
on all. The paper's model (section 6) has N^2 rho (1/P^2 + 1/P) for the scan: a rank looks at its edges for
each of its neighbours of the chosen node.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

from app.case.file import build  # noqa: E402
from app.comm.group import Group  # noqa: E402
from app.device import HostDevice  # noqa: E402
from app.model.plan import graph_case  # noqa: E402
from app.partition.load import load_graphs  # noqa: E402
from app.problems.mvc import MinimumVertexCover  # noqa: E402
from app.rl.env import GraphEnv, step_together  # noqa: E402
from app.sparse.rowblock import RowBlock  # noqa: E402


def main() -> None:
    """Measure both environments on one rank and on all; print a table. Ranks: all call."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", default="er:3360:0.15", help="NAME:NODES:PARAMETER")
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    everybody, device = Group(MPI.COMM_WORLD, HostDevice()), HostDevice()
    alone = Group(MPI.COMM_SELF, device)
    lines = ["| environment | ranks | ms a step | times one rank |", "|---|---|---|---|"]
    for name, scan in (("scan", True), ("degree", False)):
        one = 0.0
        for group in (alone, everybody):
            if group is alone:  # the others wait, so that their work is no disturbance
                own = measure(group, options.graph, options.steps, scan) if everybody.rank == 0 else 0.0
                everybody.barrier()
            else:
                own = measure(group, options.graph, options.steps, scan)
            slowest = 1e-6 * everybody.max_integer(round(1e6 * own))
            one = slowest if group is alone else one
            lines.append(f"| {name} | {group.size} | {slowest:.3f} | {one / slowest:.2f} |")
    if everybody.rank == 0:
        print("\n".join(lines))


def measure(group: Group, graph: str, steps: int, scan: bool) -> float:
    """Median milliseconds of this rank's processor in a step. Ranks of the group: all call."""
    (loaded,) = load_graphs(group, graph_case(graph), "instances", build({}))
    block = RowBlock(group, loaded.graph, loaded.rows, "auto", 16)
    env = GraphEnv(group, block, MinimumVertexCover(), scan=scan)
    nodes = np.linspace(0, loaded.graph.n - 1, steps + 1).astype(np.int64)
    group.processor_s = 0.0
    clock: Callable[[], float] = lambda: time.process_time() - group.processor_s  # noqa: E731
    taken = []
    for node in nodes:
        start = clock()
        step_together(group, [env], [np.array([node])])
        taken.append(clock() - start)
    return 1e3 * median(taken[1:])


if __name__ == "__main__":
    main()
