"""Plain heuristics for Steiner trees: what searches have to beat, and where they begin.

Each returns `(parent, name)`: parent [n] int64 of a tree, and the name to print beside the result.
"""

import numpy as np

from app.graphs.joined import root_of
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
    chosen = np.zeros(core.n, dtype=bool)
    chosen[nodes] = True
    part = list(range(core.n))
    for entry in across[np.argsort(length, kind="stable")].tolist():
        ends = int(rows[entry]), int(columns[entry])
        first, other = (root_of(part, int(base[end])) for end in ends)
        if first == other:
            continue
        part[first] = other
        for end in ends:
            while not chosen[end]:
                chosen[end] = True
                end = int(before[end])
    return chosen


LABELS = {"shortest_paths": "shortest paths", "distance_network": "distance network"}
STEINER_BASELINES = {"shortest_paths": shortest_paths, "distance_network": distance_network}
