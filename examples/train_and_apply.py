"""A policy of one's own: learn on small graphs of a kind, save the weights, answer a larger graph with them.

python examples/train_and_apply.py
mpirun -np 2 python examples/train_and_apply.py
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import networkx as nx
from mpi4py import MPI

from app import solve, train


def main() -> None:
    """Half a minute of learning does better; these 240 steps show the way."""
    policy = train(
        {
            "train.graphs.generator": "ba",
            "train.graphs.nodes": (20, 40),
            "train.graphs.count": 10,
            "train.steps": 240,
            "train.evaluate_every": 60,
            "train.evaluate_graphs": 5,
            "seed": 1,
        }
    )
    graph = nx.barabasi_albert_graph(300, 4, seed=7)
    alone = {"search.solver": "policy"}  # the policy by itself; without it the whole pipeline answers
    learned = solve(graph, weights=policy, settings=alone)
    if MPI.COMM_WORLD.rank > 0:
        return
    with tempfile.TemporaryDirectory() as folder:
        policy.save(f"{folder}/weights.npz")  # for policy.weights=FILE, or solve(weights=FILE)
        again = solve(graph, weights=f"{folder}/weights.npz", settings=alone, comm=MPI.COMM_SELF)
    assert again.nodes == learned.nodes
    print(policy)
    print(f"held-back totals: {[row['held_back_nodes'] for row in policy.records]}")
    print(f"a graph of 300 nodes: {learned.objective} chosen; {learned.baselines}")


if __name__ == "__main__":
    main()
