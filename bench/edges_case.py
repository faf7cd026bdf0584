"""What every program of bench/edges.py is given: graphs, features of nodes and edges, labels, first weights.

Nothing of `app` is imported here, so an interpreter that holds another program's libraries alone can read it.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from bench.gnn_case import first_weights
from bench.graphs_case import GraphsCase, like_molecules

KINDS = (5, 6, 2)  # of bonds, their configurations and whether they are conjugated, as OGB has them


@dataclass(eq=False)
class EdgesCase(GraphsCase):
    """Full-batch training of networks whose messages (GINE, Hu et al. 2020), or scores of attention with one
    head, read features of edges.

    of one graph   the labels are its nodes', and the last convolution has a column for each class
    of several     as GraphsCase: means over graphs and a linear layer follow the convolutions
    E      [m, k] float32, or of categories [m, c] int64, column j of which is below kinds[j]
    kinds  [c] or empty
    model  gine, edge_gat or edge_gatv2
    """

    E: np.ndarray = None
    kinds: tuple[int, ...] = ()
    model: str = "gine"

    @property
    def whole(self) -> bool:
        """Whether graphs are told apart, and not nodes."""
        return len(self.starts) > 2

    @property
    def layers(self) -> list[tuple[int, int]]:
        """Columns of the input and of the output of every convolution."""
        return list(pairwise(self.widths[:-1] if self.whole else self.widths))

    @property
    def columns(self) -> int:
        """Columns of edges, of categories one for each."""
        return sum(self.kinds) or self.E.shape[1]

    @property
    def firsts(self) -> np.ndarray:
        """The first of the columns that those of E become."""
        return np.cumsum([0, *self.kinds[:-1]])

    def dense_edges(self) -> np.ndarray:
        """[m, columns] float32."""
        if not self.kinds:
            return self.E
        out = np.zeros((len(self.E), self.columns), dtype=np.float32)
        out[np.arange(len(self.E))[:, None], self.E + self.firsts] = 1
        return out

    def layer_weights(self) -> list[dict[str, np.ndarray]]:
        """Of each convolution; of GINE W_in (of features), W_edge, W1 and W2; all biases and eps are zero."""
        found = []
        for i, (f_in, f_out) in enumerate(self.layers):
            sizes = self._sizes(i, f_in, f_out)
            drawn = {name: first_weights(each, self.seed + i)["W1"] for name, each in sizes.items()}
            if self.model == "gine":
                drawn["W1"] /= np.float32(1 + 2 * len(self.u) / len(self.X))  # of sums over neighbours
            found.append(drawn)
        return found

    def _sizes(self, i: int, f_in: int, f_out: int) -> dict[str, tuple[int, int]]:
        """Shapes of the weights of a convolution."""
        edge, whole, one = {"W_edge": (self.columns, f_out)}, (f_in, f_out), (f_out, 1)
        if self.model == "edge_gat":
            return edge | {"W": whole, "a1": one, "a2": one, "a3": one}
        if self.model == "edge_gatv2":
            return edge | {"W_source": whole, "W_target": whole, "a": one}
        width = f_in if i else f_out
        sizes = {"W_edge": (self.columns, width), "W1": (width, f_out), "W2": (f_out, f_out)}
        return sizes | ({} if i else {"W_in": whole})

    def last_weights(self) -> np.ndarray:
        """Of the linear layer after means over graphs."""
        return first_weights(self.widths[-2:], self.seed + len(self.layers))["W1"]


def load_case(path: Path) -> EdgesCase:
    """Read what `EdgesCase.save` wrote."""
    with np.load(path, allow_pickle=False) as f:
        held = {key: f[key] for key in f.files}
    held |= {
        "name": str(held["name"]),
        "model": str(held["model"]),
        "widths": held["widths"].tolist(),
        "seed": int(held["seed"]),
    }
    return EdgesCase(**{**held, "kinds": tuple(held["kinds"].tolist())})


def molecules(name: str, graphs: int, nodes: int, edges: int, hidden: int) -> EdgesCase:
    """A set of graphs as in bench/graphs.py, 9 numbers of each node, and categories of bonds."""
    plain = like_molecules(name, graphs, nodes, edges, 1, hidden)
    draws = np.random.default_rng(2)
    E = np.stack([draws.integers(0, kinds, len(plain.u)) for kinds in KINDS], axis=1)
    X = draws.standard_normal((len(plain.X), 9)).astype(np.float32)
    return EdgesCase(**{**vars(plain), "X": X, "widths": [9, *plain.widths[1:]]}, E=E, kinds=KINDS)


def graph(name: str, n: int, edges: int, hidden: int, columns: int = 8) -> EdgesCase:
    """A graph with power-law degrees, 16 numbers of each node, of 8 classes, and `columns` of each edge."""
    draws = np.random.default_rng(3)
    odds = (np.arange(n) + 10.0) ** -0.6
    ends = draws.permutation(n)[draws.choice(n, (2, 2 * edges), p=odds / odds.sum())]
    pairs = np.unique(np.sort(ends, axis=0)[:, ends[0] != ends[1]], axis=1)
    pairs = pairs[:, np.sort(draws.permutation(pairs.shape[1])[:edges])]
    E = draws.random((pairs.shape[1], columns), dtype=np.float32)
    X, labels = draws.standard_normal((n, 16)).astype(np.float32) / 8, draws.integers(0, 8, n)
    train = np.flatnonzero(draws.random(n) < 0.6)
    return EdgesCase(name, np.array([0, n]), *pairs, X, labels, train, [16, hidden, hidden, 8], E=E)
