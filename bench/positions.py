"""What sums over neighbours do not see: circulant graphs, and roles in a network.

csl     Murphy et al. 2019, Dwivedi et al. 2020: circular skip links CSL(41, r), r = 2, 3, 4, 5, 6, 9, 11, 12,
        13, 16, 15 graphs of each with their nodes in drawn orders; the class is r. All nodes have four
        neighbours, so that any layer that hears equal neighbours alike gives all 150 graphs the same scores:
        10 % right. Means over five folds, which keep the shares of classes
roles   Henderson et al. 2012, Donnat et al. 2018: houses, rings of five, stars of five and cliques of five
        that hang at drawn nodes of a grid; what a node is: of the grid, one that something hangs at, or its
        place in one of them. No features; nodes by drawn sets of 60, 20, 20 %. Beside them the same network
        with other seeds: weights of one, applied to the other (unseen)

    python bench/positions.py csl|roles [--seeds 3]
"""

import argparse
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import networkx as nx
import numpy as np

from app import classify

SKIPS, COPIES, NODES = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16), 15, 41
POSITIONS = {
    "none": [], "degree": ["degree"], "walks": ["walks=16"], "laplacian": ["laplacian=8"],
    "core, triangles": ["degree", "core", "triangles"],
}  # fmt: skip
ROLES = {
    "sage": {"gnn.model": "sage"},
    "gin": {"gnn.model": "gin_norm"},
    "pna": {"gnn.model": "pna", "gnn.layer_norm": True},
    "gin, concat": {"gnn.model": "gin_norm", "gnn.jump": "concat"},
}
SHAPES = {"house": nx.house_graph, "ring": lambda: nx.cycle_graph(5), "star": lambda: nx.star_graph(5),
          "clique": lambda: nx.complete_graph(5)}  # fmt: skip
PLAIN = {
    "gnn.feature_rows": "as_given", "gnn.dropout": 0.0, "gnn.input_dropout": 0.0, "gnn.weight_decay": 0.0,
    "gnn.learning_rate": 0.01, "gnn.baselines": False,
}  # fmt: skip


def circulants() -> tuple[list[nx.Graph], list[int]]:
    """The graphs, and the place of each one's r among SKIPS."""
    graphs, kinds, draws = [], [], np.random.default_rng(0)
    for kind, skip in enumerate(SKIPS):
        for _ in range(COPIES):
            order = draws.permutation(NODES)
            ends = [(i, (i + step) % NODES) for i in range(NODES) for step in (1, skip)]
            graph = nx.empty_graph(NODES)
            graph.add_edges_from((int(order[u]), int(order[v])) for u, v in ends)
            graphs.append(graph)
            kinds.append(kind)
    return graphs, kinds


def csl(seeds: int) -> None:
    """Print a line for each layer and kind of positions."""
    graphs, kinds = circulants()
    for model in ("gin_norm", "pna"):
        for name, positions in POSITIONS.items():
            found = []
            for seed in range(seeds):
                settings = PLAIN | {
                    "seed": seed, "gnn.model": model, "gnn.depth": 3, "gnn.hidden": 32, "gnn.epochs": 100,
                    "gnn.positions": positions,
                }  # fmt: skip
                found.append(classify(graphs, labels=kinds, folds=5, settings=settings).summary["test_mean"])
            told = 100 * np.array(found)
            print(f"csl {model}, {name}: {told.mean():.1f} +- {told.std():.1f}", flush=True)


def town(seed: int) -> tuple[nx.Graph, np.ndarray]:
    """A grid with shapes that hang at it, and what each node is."""
    draws = np.random.default_rng(seed)
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(20, 20))
    roles, places = ["grid"] * len(graph), draws.permutation(len(graph))[:80]
    for number, place in enumerate(places.tolist()):
        name = list(SHAPES)[number % len(SHAPES)]
        shape = nx.convert_node_labels_to_integers(SHAPES[name](), first_label=len(graph))
        graph.add_nodes_from(sorted(shape))
        graph.add_edges_from(shape.edges)
        graph.add_edge(place, min(shape))
        roles[place] = "holds"
        far = nx.single_source_shortest_path_length(shape, min(shape))
        roles += [f"{name} {far[node]} {shape.degree[node]}" for node in sorted(shape)]
    return graph, np.array(roles)


def roles(seeds: int) -> None:
    """Print a line for each kind of layers and positions."""
    for model, layers in ROLES.items():
        for name, positions in POSITIONS.items():
            if not positions:
                continue  # a column for each node, which unseen nodes have not
            right = []
            for seed in range(seeds):
                graph, labels = town(seed)
                settings = PLAIN | layers | {
                    "seed": seed, "gnn.positions": positions, "gnn.depth": 4, "gnn.hidden": 32,
                    "gnn.epochs": 200, "graph.splits": "random",
                }  # fmt: skip
                learned = classify(graph, labels=labels, settings=settings)
                other, truth = town(100 + seed)
                unseen = classify(other, weights=learned, settings={"gnn.baselines": False})
                right.append((learned.scores["test"].accuracy, (unseen.predicted == truth).mean()))
            told = 100 * np.array(right)
            mean, spread = told.mean(axis=0), told.std(axis=0)
            said = ", ".join(f"{m:.1f} +- {s:.1f}" for m, s in zip(mean, spread))
            print(f"roles {model}, {name}: test, unseen {said}", flush=True)


def main() -> None:
    """Run what is asked for."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("what", choices=["csl", "roles"])
    options.add_argument("--seeds", type=int, default=3)
    asked = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # of networks that call all alike, which is what is told
    {"csl": csl, "roles": roles}[asked.what](asked.seeds)


if __name__ == "__main__":
    main()
