"""Whether explanations find the motif that made a prediction, where it was planted.

"houses" are those of GNNExplainer (Ying et al. 2019, section 5.1, "BA-Shapes"), drawn anew: a
Barabasi-Albert graph of 300 nodes with 5 edges each, 80 houses of 5 nodes that an edge each joins to it, and
a tenth as many edges as nodes between any two. A node is of the base, or the top, the middle or the bottom
of a house. "trees" are whole graphs: random trees of 15 to 25 nodes to each of which an edge joins a ring of
five nodes or a house, its class. All nodes have a 1 as their feature, so that edges alone can tell classes.

Of each node of a house (of each graph) that is tested and predicted rightly, at most --most of them, the
edges of what the prediction depends on are ranked by

    integrated gradients, gradient times input   by size: what they add or take away
    few neighbours                               of the ends
    drawn

and told is the area under the ROC curve of the motif's edges among them, its mean over explanations and the
deviation over seeds; then how much scores fall without a tenth of the edges (the runs' own figure of
faithfulness): of the largest contributions, of the largest gradients, of the highest degrees, or drawn ones.

    python bench/explained.py [--seeds 3] [--most 40] [--epochs 400]
"""

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import networkx as nx
import numpy as np

from app import classify

BASE, ATTACHED, HOUSES, EXTRA = 300, 5, 80, 0.1
TREES, SIZES = 300, (15, 26)
HOUSE = (
    (0, 1),
    (0, 2),
    (1, 2),
    (1, 3),
    (2, 4),
    (3, 4),
)  # the top is 0, the middle 1 and 2, the bottom 3 and 4
RING = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0))
ROLES = (1, 2, 2, 3, 3)
WAYS = ("integrated gradients", "gradient times input", "few neighbours", "drawn")
CASES = (("houses", "gin_norm"), ("houses", "gcn"), ("trees", "gin_norm"))
SETTINGS = {
    "gnn.depth": 3, "gnn.hidden": 20, "gnn.dropout": 0.0, "gnn.input_dropout": 0.0, "gnn.learning_rate": 0.01,
    "gnn.weight_decay": 0.0, "gnn.feature_rows": "as_given", "gnn.baselines": False,
}  # fmt: skip


def houses(seed: int) -> tuple[nx.Graph, dict[str, Any], np.ndarray]:
    """The graph, what is known of its nodes, and of each node its house, -1 in the base."""
    draws = np.random.default_rng(seed)
    graph, n = nx.barabasi_albert_graph(BASE, ATTACHED, seed=seed), BASE + 5 * HOUSES
    classes, house = np.zeros(n, int), np.full(n, -1)
    for i in range(HOUSES):
        first = BASE + 5 * i
        graph.add_edges_from((first + u, first + v) for u, v in HOUSE)
        graph.add_edge(first + int(draws.integers(5)), int(draws.integers(BASE)))
        classes[first : first + 5], house[first : first + 5] = ROLES, i
    for _ in range(int(EXTRA * n)):
        graph.add_edge(*draws.choice(n, 2, replace=False).tolist())
    return graph, {"features": np.ones((n, 1), np.float32), "labels": classes}, house


def trees(seed: int) -> tuple[list[nx.Graph], dict[str, Any], np.ndarray]:
    """The graphs, what is known of them, and of each the first node of its motif."""
    draws = np.random.default_rng(seed)
    graphs, classes, firsts = [], np.arange(TREES) % 2, []
    for kind in classes:
        n = int(draws.integers(*SIZES))
        graph = nx.random_labeled_tree(n, seed=int(draws.integers(1 << 31)))
        graph.add_edges_from((n + u, n + v) for u, v in (RING, HOUSE)[kind])
        graph.add_edge(n + int(draws.integers(5)), int(draws.integers(n)))
        graphs.append(graph)
        firsts.append(n)
    features = [np.ones((len(graph), 1), np.float32) for graph in graphs]
    return graphs, {"features": features, "labels": classes}, np.array(firsts)


def area(scores: np.ndarray, positive: np.ndarray) -> float:
    """Under the ROC curve; equal scores count half."""
    apart = scores[positive][:, None] - scores[~positive]
    return float(((apart > 0) + 0.5 * (apart == 0)).mean())


def areas_of(each: Any, graph: nx.Graph, own: np.ndarray, draws: np.random.Generator) -> list[float]:
    """By WAYS the area of one explanation; own: [n] bool, the nodes of its motif."""
    edges = np.array(each.edges)
    degrees = np.array([graph.degree[u] + graph.degree[v] for u, v in each.edges])
    ranks = np.abs(each.of_edges), np.abs(each.gradients), -degrees, draws.random(len(edges))
    return [area(scores, own[edges].all(axis=1)) for scores in ranks]


def measure(data: str, model: str, seed: int, epochs: int, most: int) -> tuple[float, list[list[float]], Any]:
    """Test accuracy, areas of each explanation, and all explanations."""
    graph, given, motif = (houses if data == "houses" else trees)(seed)
    draws, classes = np.random.default_rng(100 + seed), given["labels"]
    sets = draws.choice(3, len(classes), p=(0.6, 0.1, 0.3))
    given |= {name: sets == i for i, name in enumerate(("train", "val", "test"))}
    settings = SETTINGS | {"gnn.model": model, "gnn.epochs": epochs, "seed": seed}
    settings |= {"gnn.class_weights": "balanced"} if data == "houses" else {"gnn.readout": "mean"}
    found = classify(graph, settings=settings, **given)
    right = (sets == 2) & (found.predicted == classes)
    right = np.flatnonzero(right & (motif >= 0))[:most].tolist()
    asked = settings | {"gnn.epochs": 0, "output.explain": right}
    told = classify(graph, settings=asked, weights=found, **given).explanations
    areas = []
    for each in told:
        one = graph if data == "houses" else graph[each.node]
        own = motif == motif[each.node] if data == "houses" else np.arange(len(one)) >= motif[each.node]
        areas.append(areas_of(each, one, own, draws))
    return found.scores["test"].accuracy, areas, told


def main() -> None:
    """Print lines for each case."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("seeds", 3), ("epochs", 400), ("most", 40)):
        options.add_argument(f"--{name}", type=int, default=default)
    asked = options.parse_args()
    for data, model in CASES:
        runs = [measure(data, model, seed, asked.epochs, asked.most) for seed in range(asked.seeds)]
        means = np.array([np.mean(areas, axis=0) for _, areas, _ in runs])
        edges = np.mean([told.told()["edges"] for *_, told in runs])
        accuracy = np.mean([accuracy for accuracy, *_ in runs])
        print(f"{data}, {model}: accuracy {accuracy:.3f}; {edges:.0f} edges of each prediction")
        both = zip(WAYS, means.mean(axis=0), means.std(axis=0))
        print("  area: " + ", ".join(f"{way} {mean:.3f} +- {spread:.3f}" for way, mean, spread in both))
        fell = {way: np.mean([told.fell[way] for *_, told in runs]) for way in runs[0][2].fell}
        worst = np.max([told.missing for *_, told in runs], axis=0)
        print("  fell: " + ", ".join(f"{way} {lost:.3f}" for way, lost in fell.items()))
        print(f"  missing at most {worst[0]:.4f} of edges, {worst[1]:.4f} of features", flush=True)


if __name__ == "__main__":
    main()
