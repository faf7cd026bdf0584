"""Plain heuristics for Steiner trees: what searches have to beat, and where they begin.

Each returns `(parent, name)`: parent [n] int64 of a tree, and the name to print beside the result.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree

from app.graphs.steiner import SteinerCore, canonical_tree
from app.reductions.steiner.voronoi import nearest
from app.search.steiner.trees import Trees


def shortest_paths(core: SteinerCore, compiled: bool = True) -> tuple[np.ndarray, str]:
    """From the first terminal on the nearest one is joined by a shortest path, at most twice the shortest
    tree.

    Source   Takahashi and Matsuyama, An approximate solution for the Steiner problem in graphs, 1980
    """
    return grown(core, compiled), LABELS["shortest_paths"]


def grown(core: SteinerCore, compiled: bool = True) -> np.ndarray:
    """[n] int64, that tree."""
    trees = Trees(core, compiled)
    trees.grow(int(core.terminals[0]))
    return canonical_tree(trees.parent)


def fewest_edges(core: SteinerCore, compiled: bool = True) -> np.ndarray:
    """[n] int64, the lightest tree on the nodes of ways of fewest edges from the terminals to the first one:
    quick, and heavier than the others.
    """
    root = int(core.terminals[0])
    near, chosen, front = core.towards(root), np.zeros(core.n, dtype=bool), core.terminals
    while len(front):
        chosen[front] = True
        front = np.unique(near[front])
        front = front[~chosen[front]]
    trees = Trees(core, compiled)
    trees.span(chosen, root)
    return canonical_tree(trees.parent)


def distance_network(core: SteinerCore, compiled: bool = True) -> tuple[np.ndarray, str]:
    """The shortest paths of a spanning tree of all distances between terminals, at most twice the shortest
    tree.

    Source   Kou, Markowsky and Berman 1981; Mehlhorn, A faster approximation algorithm for the Steiner
             problem in graphs, Information Processing Letters 1988
    """
    return joined(core, core.terminals, compiled), LABELS["distance_network"]


def joined(core: SteinerCore, nodes: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[n] int64, the tree that shortest paths between some nodes [k], terminals among them, make, without
    leaves that are no terminals.
    """
    trees = Trees(core, compiled)
    trees.span(on_paths(core, nodes), int(core.terminals[0]))
    return canonical_tree(trees.parent)


def on_paths(core: SteinerCore, nodes: np.ndarray) -> np.ndarray:
    """[n] bool, some nodes [k] and those on the paths of Mehlhorn's spanning tree of them."""
    distance, before, base = nearest(core, nodes)
    rows, columns = core.row_of(), core.indices.astype(np.int64)
    across = np.flatnonzero((rows < columns) & (base[rows] != base[columns]))
    length = distance[rows[across]] + core.lengths[across] + distance[columns[across]]
    across = across[np.argsort(length, kind="stable")]
    taken = across[_forest(core.n, base[rows[across]], base[columns[across]])]
    chosen = np.zeros(core.n, dtype=bool)
    chosen[nodes] = True
    for front in (rows[taken], columns[taken]):
        while len(front := front[~chosen[front]]):
            chosen[front] = True
            front = before[front]
    return chosen


def _forest(n: int, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """[k] int64, the links u[i]-v[i] [m] of a spanning forest; of two the one before is the lighter."""
    pair = np.minimum(u, v) * n + np.maximum(u, v)
    first = np.sort(np.unique(pair, return_index=True)[1])  # of links of the same two
    if not len(first):
        return first
    ends, place = np.unique(np.concatenate([u[first], v[first]]), return_inverse=True)
    a, b = np.split(place.reshape(-1), 2)
    weight = np.arange(1, len(first) + 1, dtype=float)
    matrix = sp.csr_array((weight, (a, b)), shape=(len(ends), len(ends)))
    return first[minimum_spanning_tree(matrix).data.astype(np.int64) - 1]


LABELS = {"shortest_paths": "shortest paths", "distance_network": "distance network"}
STEINER_BASELINES = {"shortest_paths": shortest_paths, "distance_network": distance_network}
