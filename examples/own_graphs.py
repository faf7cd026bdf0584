"""Numbers of whole graphs: how many triangles each of the 1,252 smallest graphs has, told by a network.

python examples/own_graphs.py [PLOT.png]
mpirun -np 2 python examples/own_graphs.py
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import networkx as nx
import numpy as np
from mpi4py import MPI

from app import classify


def main(plot: str = "") -> None:
    """Learn from 60 % of the graphs, whose nodes are known by their degrees alone."""
    graphs = nx.graph_atlas_g()[1:]
    triangles = [sum(nx.triangles(graph).values()) / 3 for graph in graphs]
    settings = {"gnn.model": "sage", "gnn.goal": "values", "gnn.epochs": 100, "graph.splits": "random"}
    found = classify(graphs, labels=triangles, settings=settings)
    more = classify([nx.complete_graph(5), nx.cycle_graph(6)], weights=found)
    if MPI.COMM_WORLD.rank > 0:
        return
    print(found)
    print(f"the same number for all: off by {np.std(triangles):.2f}, here {found.scores['test'].rmse:.2f}")
    print(f"a complete graph of 5 nodes: {more.predicted[0]:.1f}, a ring of 6: {more.predicted[1]:.1f}")
    if plot:
        found.plot().savefig(plot)


if __name__ == "__main__":
    main(*sys.argv[1:2])
