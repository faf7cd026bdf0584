"""Which neighbour counts is said by an edge: layers that read features of edges beside those that read none.

Every node of a random regular graph has one neighbour, and is that neighbour's one, whose class it takes
over; their edge's first number is near 1, that of all other edges near 0, and the other numbers say nothing.
A third of the nodes is to test. One layer and a dense one follow; a network that cannot read edges can but
guess among a node's neighbours.

    python bench/edge_attention.py [--nodes 3000] [--degree 8] [--classes 10] [--epochs 200] [--seeds 3]
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import networkx as nx
import numpy as np

from app import classify

MODELS = ("gin", "gat", "gatv2", "gine", "edge_gat", "edge_gatv2")
READING = ("gine", "edge_gat", "edge_gatv2")
NUMBERS = 4  # of an edge
NOISE = 0.2


def pointed(n: int, degree: int, classes: int, seed: int) -> tuple[nx.Graph, np.ndarray, np.ndarray]:
    """A graph with the attribute "numbers" of edges, features of nodes, and classes to find."""
    draws, graph = np.random.default_rng(seed), nx.random_regular_graph(degree - 1, n, seed=seed)
    order = draws.permutation(n)
    pairs = {frozenset(map(int, pair)) for pair in order.reshape(-1, 2)}
    graph.add_edges_from(tuple(pair) for pair in pairs)
    for u, v, found in graph.edges(data=True):
        found["numbers"] = draws.normal(0, NOISE, NUMBERS)
        found["numbers"][0] += frozenset((u, v)) in pairs
    own, other = draws.integers(0, classes, n), np.empty(n, dtype=np.int64)
    other[order[::2]], other[order[1::2]] = order[1::2], order[::2]
    return graph, np.eye(classes, dtype=np.float32)[own], own[other]


def main() -> None:
    """A line for each layer: test accuracy of each seed, and that of training."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, usual in (("nodes", 3000), ("degree", 8), ("classes", 10), ("epochs", 200), ("seeds", 3)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    asked = parser.parse_args()
    graph, X, labels = pointed(asked.nodes, asked.degree, asked.classes, seed=1)
    known = np.random.default_rng(2).permutation(asked.nodes)
    train, test = np.split(known, [2 * asked.nodes // 3])
    print("layer        test accuracy, % (training)")
    for model in MODELS:
        settings = {
            "gnn.layers": [f"{model} 32", "dense"], "gnn.epochs": asked.epochs, "gnn.dropout": 0.0,
            "gnn.evaluate_every": asked.epochs, "gnn.input_dropout": 0.0, "gnn.weight_decay": 0.0,
            "gnn.feature_rows": "as_given", "gnn.baselines": False,
        }  # fmt: skip
        edges = {"edge_features": "numbers"} if model in READING else {}
        words = []
        for seed in range(1, asked.seeds + 1):
            found = classify(
                graph, X, labels=labels, train=train, test=test, settings={**settings, "seed": seed}, **edges
            )
            right = {split: 100 * found.scores[split].accuracy for split in ("test", "train")}
            words.append(f"{right['test']:.1f} ({right['train']:.1f})")
        print(f"{model:12} {', '.join(words)}", flush=True)


if __name__ == "__main__":
    main()
