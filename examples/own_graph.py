"""A graph of one's own, as NetworkX has it: a smallest vertex cover, the proof, and a check by hand.

python examples/own_graph.py
mpirun -np 3 python examples/own_graph.py      the same answer, on three ranks
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import networkx as nx
from mpi4py import MPI

from app import solve


def main() -> None:
    """Who must be watched so that no two people meet unseen?"""
    graph = nx.les_miserables_graph()  # nodes are names
    answer = solve(graph, "mvc")
    watched = set(answer.nodes)
    assert all(u in watched or v in watched for u, v in graph.edges)
    if MPI.COMM_WORLD.rank > 0:
        return
    print(answer)
    print(f"beside it, max-degree greedy: {answer.baselines['max degree']}")
    print(f"watched: {', '.join(sorted(watched)[:5])} and {len(watched) - 5} more")


if __name__ == "__main__":
    main()
