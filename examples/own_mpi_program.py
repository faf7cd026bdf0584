"""Lockstep inside an MPI program of one's own: halves of the ranks answer two graphs at the same time.

    mpirun -np 4 python examples/own_mpi_program.py

Every call takes a communicator; its ranks call together and all get the answer. The rest of MPI_COMM_WORLD
is free to do something else, here another graph.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import networkx as nx
from mpi4py import MPI

from app import solve


def main() -> None:
    """Split the ranks, solve, and collect what the first rank of each half found."""
    world = MPI.COMM_WORLD
    half = 2 * world.rank // world.size  # on one rank: both graphs, one after the other
    comm = world.Split(half, world.rank)
    mine = [half] if world.size > 1 else [0, 1]
    found = []
    for number in mine:
        graph = nx.gnp_random_graph(80 + 40 * number, 0.06, seed=number)
        answer = solve(graph, "mis", comm=comm)
        if comm.rank == 0:
            found.append((number, comm.size, answer.objective, answer.bound))
    comm.Free()
    collected = world.gather(found)
    if world.rank == 0:
        for number, ranks, size, most in sorted(each for part in collected for each in part):
            print(f"graph {number} on {ranks} ranks: {size} nodes apart from each other, at most {most}")


if __name__ == "__main__":
    main()
