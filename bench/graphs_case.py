"""What every program of bench/graphs.py is given: a set of graphs, features, labels and first weights.

Nothing of `app` is imported here, so an interpreter that holds another program's libraries alone can read it.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.gnn_case import first_weights


@dataclass(eq=False)
class GraphsCase:
    """Full-batch training on whole graphs: graph convolutions, the mean over each graph, a linear layer.

    starts      [graphs+1] int64, the first node of each graph
    u, v        [m] int64, the edges, each once     X   [n, f] float32
    labels      [graphs] int64                      train   [k] int64, graphs with a known label, ascending
    widths      of the features, of every convolution's output, of the classes
    """

    name: str
    starts: np.ndarray
    u: np.ndarray
    v: np.ndarray
    X: np.ndarray
    labels: np.ndarray
    train: np.ndarray
    widths: list[int]
    seed: int = 1

    def weights(self) -> dict[str, np.ndarray]:
        """First weights W1, b1, W2, .., the last of them those of the linear layer."""
        return first_weights(self.widths, self.seed)

    def save(self, path: Path) -> None:
        """Write all of it to an .npz file."""
        np.savez(path, **vars(self))


def load_case(path: Path) -> GraphsCase:
    """Read what `GraphsCase.save` wrote."""
    with np.load(path, allow_pickle=False) as f:
        held = {key: f[key] for key in f.files}
    held |= {"name": str(held["name"]), "widths": held["widths"].tolist(), "seed": int(held["seed"])}
    return GraphsCase(**held)


def like_molecules(name: str, graphs: int, nodes: int, edges: int, features: int, hidden: int) -> GraphsCase:
    """Random trees with further edges, in all about so many nodes and edges; a kind of atom for each node."""
    draws = np.random.default_rng(1)
    sizes = np.maximum(draws.poisson(nodes / graphs, graphs), 3)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    more, u, v = max(edges - nodes + graphs, 0) / graphs, [], []
    for first, size in zip(starts, sizes):
        tree = np.arange(1, size)
        u.append(first + np.concatenate([tree, extra := draws.integers(0, size, draws.poisson(more))]))
        v.append(first + np.concatenate([draws.integers(0, tree), draws.integers(0, size, len(extra))]))
    u, v = np.concatenate(u), np.concatenate(v)
    pairs = np.unique(np.sort(np.stack([u, v]), axis=0)[:, u != v], axis=1)
    X = np.eye(features, dtype=np.float32)[draws.integers(0, features, starts[-1])]
    labels = draws.integers(0, 2, graphs)
    train = np.flatnonzero(draws.random(graphs) < 0.8)
    return GraphsCase(name, starts, *pairs, X, labels, train, [features, hidden, hidden, hidden, 2])
