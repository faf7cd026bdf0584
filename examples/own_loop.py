"""RL4GO's Alg. 1 as a loop of one's own: what an agent explores with is decided here, not by the program.

    mpirun -np 2 python examples/own_loop.py

Half of the exploring steps take a node of the largest degree instead of a random one. All ranks run the same
loop, hold their rows of every graph, and see the same nodes, rewards and losses.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import networkx as nx
import numpy as np
from mpi4py import MPI

from app import TrainingRun, solve


def main() -> None:
    """Train on small random graphs, then cover a larger one with the learned policy alone."""
    graphs = [nx.gnp_random_graph(30 + 2 * i, 0.15, seed=i) for i in range(20)]
    agent = TrainingRun(problem="mvc", graphs=graphs, seed=1, agent={"learning_rate": 2e-3}).agent()
    draws = np.random.default_rng(1)  # the same on all ranks, as every choice must be
    losses = []
    for _ in range(20):
        env = agent.environment(int(draws.integers(agent.graphs)))
        left = graphs[env.graph].copy()
        while not env.done:
            node = agent.act(env)
            if draws.random() < 0.1:
                node = max(env.candidates().tolist(), key=left.degree)
            agent.remember(env, node, env.step(node))
            left.remove_node(node)
            losses.append(agent.train())
    policy = agent.policy()
    settings = {"search.solver": "policy"}
    graph = nx.gnp_random_graph(300, 0.03, seed=1)
    answer = solve(graph, "mvc", weights=policy, settings=settings)
    if MPI.COMM_WORLD.rank == 0:
        found = [loss for loss in losses if loss is not None]
        print(f"{agent.steps} steps, {len(found)} losses, weights {policy.digest[:12]}")
        print(f"a graph of 300 nodes: {answer.objective} by the policy alone; {answer.baselines}")


if __name__ == "__main__":
    main()
