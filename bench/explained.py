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

With --kinds another table, of other networks where the edges that tell a prediction are known:

    bonds    stars; a centre's class is the sign of a feature of one of its edges, another one is noise (GINE)
    edges    centres with a leaf each whose feature is a sign, and edges between centres: an edge's class is
             whether the signs at both ends are equal; the edges to both leaves tell it (GraphSAGE)
    links    the same graph, in which most edges join centres of equal signs: scores of pairs of centres (GCN)
    triples  people, what they like, whom they know, where they live: what one likes tells the class (R-GCN)

Of the tested predictions that are right (of links: of held-out edges that are found), at most --most, told is
the area as above, of what is known to tell; and what scores lose.

    python bench/explained.py [--seeds 3] [--most 40] [--epochs 400] [--kinds]
"""

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import networkx as nx
import numpy as np

from app import classify, classify_edges, classify_relational, explain, find_links

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


# ---- other networks --------------------------------------------------------------------------------------


def bonds(seed: int, most: int) -> tuple[float, list[tuple[Any, set[Any]]], Any]:
    """Accuracy, explanations with the edges that tell each, and all explanations; so are those below."""
    draws, graph, centres, leaves = np.random.default_rng(seed), nx.Graph(), 200, 5
    n = centres * (1 + leaves)
    labels, known = np.full(n, -1), {}
    graph.add_nodes_from(range(n))
    for i in range(centres):
        own = centres + leaves * i + np.arange(leaves)
        labels[i], teller = draws.integers(2), int(own[draws.integers(leaves)])
        for leaf in own.tolist():
            bond = float(2 * labels[i] - 1) if leaf == teller else 0.0
            graph.add_edge(i, leaf, bond=bond, noise=float(draws.normal()))
        known[i] = {(i, teller)}
    test = np.arange(150, centres)
    settings = {
        "gnn.layers": ["gine 16", "dense"], "gnn.epochs": 100, "gnn.baselines": False, "seed": seed,
        "gnn.edge_feature_rows": "as_given",
    }  # fmt: skip
    given = {"labels": labels, "train": range(150), "test": test, "edge_features": ["bond", "noise"]}
    features = np.ones((n, 1), np.float32)
    found = classify(graph, features, settings=settings, **given)
    right = [int(i) for i in test if found.predicted[i] == labels[i]][:most]
    asked = settings | {"gnn.epochs": 0, "output.explain": right}
    told = classify(graph, features, settings=asked, weights=found, **given).explanations
    return found.scores["test"].accuracy, [(each, known[each.node]) for each in told], told


def centres_with_leaves(seed: int, alike: float) -> tuple[nx.Graph, np.ndarray, np.ndarray]:
    """A graph of 150 centres and a leaf each, features, and the signs of centres; alike: the share of edges
    between centres that joins equal signs."""
    draws, graph, centres = np.random.default_rng(seed), nx.Graph(), 150
    signs = draws.choice([-1, 1], centres)
    graph.add_nodes_from(range(2 * centres))
    graph.add_edges_from((i, centres + i) for i in range(centres))
    while graph.number_of_edges() < 5 * centres:
        u, v = draws.choice(centres, 2, replace=False).tolist()
        if (draws.random() < alike) == (signs[u] == signs[v]):
            graph.add_edge(u, v)
    X = np.concatenate([np.zeros(centres), signs])[:, None]
    noise = 0.3 * draws.normal(size=(2 * centres, 1))
    return graph, np.concatenate([X, noise], axis=1).astype(np.float32), signs


def edges(seed: int, most: int) -> tuple[float, list[tuple[Any, set[Any]]], Any]:
    """Classes of edges between centres."""
    graph, X, signs = centres_with_leaves(seed, 0.5)
    n, draws = len(signs), np.random.default_rng(100 + seed)
    between = [edge for edge in graph.edges if max(edge) < n]
    labels = {(u, v): int(signs[u] == signs[v]) for u, v in between}
    sets = draws.choice(3, len(between), p=(0.6, 0.1, 0.3))
    given = {
        name: [e for e, s in zip(between, sets) if s == i] for i, name in enumerate(("train", "val", "test"))
    }
    settings = {"gnn.epochs": 300, "gnn.baselines": False, "seed": seed}
    found = classify_edges(graph, labels, X, settings=settings, **given)
    said = {frozenset(e): c for e, c in zip(found.edges, found.predicted.tolist())}
    right = [list(e) for e in given["test"] if said[frozenset(e)] == labels[e]][:most]
    told = explain(graph, right, found, X, labels, settings={"seed": seed})
    return (
        found.scores["test"].accuracy, [(each, {(u, n + u) for u in each.node}) for each in told], told
    )  # fmt: skip


def links(seed: int, most: int) -> tuple[float, list[tuple[Any, set[Any]]], Any]:
    """Held-out edges between centres; the leaves tell, as other edges do."""
    graph, X, signs = centres_with_leaves(seed, 0.95)
    n = len(signs)
    draws = np.random.default_rng(100 + seed)
    between = [edge for edge in graph.edges if max(edge) < n and signs[edge[0]] == signs[edge[1]]]
    held = [between[i] for i in draws.choice(len(between), 80, replace=False)]
    val, test = held[:20], held[20:]
    settings = {"gnn.epochs": 200, "seed": seed}
    found = find_links(graph, X, val=val, test=test, settings=settings)
    tested = set(map(frozenset, test))
    likely = zip(found.pairs, found.likely)
    right = [list(pair) for pair, p in likely if p > 0.5 and frozenset(pair) in tested][:most]
    asked = {"gnn.epochs": 0, "output.explain": right, "seed": seed}
    told = find_links(graph, X, val=val, test=test, weights=found, settings=asked).explanations
    return found.scores["test"].auc, [(each, {(u, n + u) for u in each.node}) for each in told], told


def triples(seed: int, most: int) -> tuple[float, list[tuple[Any, set[Any]]], Any]:
    """Classes of people."""
    draws, rows, classes, known, count = np.random.default_rng(seed), [], {}, {}, 300
    for i in range(count):
        person, kind = f"p{i}", ("jazz", "rock")[draws.integers(2)]
        rows.append(liked := (person, "likes", f"{kind}{draws.integers(5)}"))
        rows += [(person, "knows", f"p{other}") for other in draws.choice(count, 3) if other != i]
        rows.append((person, "lives in", f"town{draws.integers(20)}"))
        classes[person], known[person] = kind, {liked}
    test = [f"p{i}" for i in range(220, count)]
    settings = {"rgcn.epochs": 50, "rgcn.learning_rate": 0.02, "seed": seed}
    given = {"labels": classes, "train": [f"p{i}" for i in range(220)], "test": test}
    found = classify_relational(rows, settings=settings, **given)
    right = [p for p, c in zip(found.nodes, found.predicted) if p in set(test) and c == classes[p]][:most]
    asked = {"output.explain": right, "seed": seed}
    told = classify_relational(rows, weights=found, settings=asked, **given).explanations
    return found.scores["test"].accuracy, [(each, known[each.node]) for each in told], told


KINDS = {"bonds": bonds, "edges": edges, "links": links, "triples": triples}


def areas_of_known(each: Any, known: set[Any], draws: np.random.Generator) -> list[float]:
    """The area of contributions, of gradients and of drawn ranks."""
    positive = np.array([edge in known for edge in each.edges])
    ranks = np.abs(each.of_edges), np.abs(each.gradients), draws.random(len(positive))
    return [area(scores, positive) for scores in ranks]


def main_of_kinds(seeds: int, most: int) -> None:
    """Print lines for each kind."""
    for name, measure_kind in KINDS.items():
        runs = [measure_kind(seed, most) for seed in range(seeds)]
        draws = np.random.default_rng(0)
        areas = [np.mean([areas_of_known(*each, draws) for each in one], axis=0) for _, one, _ in runs]
        count = np.mean([told.told()["edges"] for *_, told in runs])
        print(f"{name}: score {np.mean([score for score, *_ in runs]):.3f}; {count:.0f} edges of each")
        both = zip((WAYS[0], WAYS[1], WAYS[3]), np.mean(areas, axis=0), np.std(areas, axis=0))
        print("  area: " + ", ".join(f"{way} {mean:.3f} +- {away:.3f}" for way, mean, away in both))
        fell = {way: np.mean([told.fell[way] for *_, told in runs]) for way in runs[0][2].fell}
        print("  fell: " + ", ".join(f"{way} {lost:.3f}" for way, lost in fell.items()))
        worst = np.max([told.missing for *_, told in runs], axis=0)
        print("  missing at most " + ", ".join(f"{each:.4f}" for each in worst), flush=True)


def main() -> None:
    """Print lines for each case."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("seeds", 3), ("epochs", 400), ("most", 40)):
        options.add_argument(f"--{name}", type=int, default=default)
    options.add_argument("--kinds", action="store_true", help="other networks")
    asked = options.parse_args()
    if asked.kinds:
        main_of_kinds(asked.seeds, asked.most)
        return
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
