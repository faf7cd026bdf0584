"""Plain heuristics for Steiner trees: what searches have to beat, and where they begin.

Each returns `(parent, name)`: parent [n] int64 of a tree, and the name to print beside the result.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from app.graphs.keys import sorted_set
from app.graphs.steiner import SteinerCore, canonical_tree
from app.reductions.steiner.voronoi import nearest
from app.search.steiner.trees import Trees

Ways = tuple[np.ndarray, np.ndarray, np.ndarray]  # as `nearest` returns them
Rule = Callable[[SteinerCore, np.ndarray], Ways]
ROUNDS = 1
SHORT = 1 << 16  # below it whole numbers are sorted in linear time


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
        front = sorted_set(near[front])
        front = front[~chosen[front]]
    trees = Trees(core, compiled)
    trees.span(chosen, root)
    return canonical_tree(trees.parent)


def nearly_joined(core: SteinerCore, compiled: bool = True) -> np.ndarray:
    """[n] int64, the tree of `distance_network` by ways that are short, not always the shortest: in linear
    time but for a sort, and some percent longer.
    """
    return joined(core, core.terminals, compiled, nearly_nearest)


def nearly_nearest(core: SteinerCore, nodes: np.ndarray) -> Ways:
    """What `nearest` says, of ways to some nodes [k] that may be longer than others.

    They have the fewest edges at first; then ROUNDS times every node takes the way of that neighbour that has
    the shortest for it (Bellman 1958), of several the smallest. A length is that of when the way was taken,
    or more than what it is since: a way leads on to nodes of less, so to its end.
    """
    n, ptr, near, own = core.n, core.indptr, core.indices, np.arange(core.n)
    degree, some = np.diff(ptr), np.flatnonzero(np.diff(ptr))
    before = _by_breadth(core, nodes)
    step = np.zeros(n, dtype=np.int64)
    step[before != own] = core.lengths[near == np.repeat(before, degree)]
    distance, last = step, before
    while (last[last] != last).any():
        distance, last = distance + distance[last], last[last]
    for _ in range(ROUNDS if len(some) else 0):
        offered = distance[near] + core.lengths
        least = distance.copy()
        least[some] = np.minimum(least[some], np.minimum.reduceat(offered, ptr[some]))
        better = least < distance
        better[nodes] = False
        taken = np.flatnonzero(np.repeat(better, degree) & (offered == np.repeat(least, degree)))[::-1]
        before[core.row_of()[taken]] = near[taken]  # of values that go to one place the last one stays
        distance = least
    last = before
    while (last[last] != last).any():
        last = last[last]
    return distance, before, last


def _by_breadth(core: SteinerCore, nodes: np.ndarray) -> np.ndarray:
    """[n] int64, the next node on a way of fewest edges to some nodes [k]; its own where there is none."""
    n, ends = core.n, sorted_set(nodes).astype(np.int32)
    columns = np.concatenate([core.indices, ends])  # one node more leads to all of them
    ones, ptr = np.ones(len(columns), dtype=np.int8), np.append(core.indptr, len(columns))
    matrix = sp.csr_array((ones, columns, ptr), shape=(n + 1, n + 1))
    above = breadth_first_order(matrix, n, directed=True)[1][:n].astype(np.int64)
    return np.where((above < 0) | (above == n), np.arange(n), above)


def distance_network(core: SteinerCore, compiled: bool = True) -> tuple[np.ndarray, str]:
    """The shortest paths of a spanning tree of all distances between terminals, at most twice the shortest
    tree.

    Source   Kou, Markowsky and Berman 1981; Mehlhorn, A faster approximation algorithm for the Steiner
             problem in graphs, Information Processing Letters 1988
    """
    return joined(core, core.terminals, compiled), LABELS["distance_network"]


def joined(core: SteinerCore, nodes: np.ndarray, compiled: bool = True, ways: Rule = nearest) -> np.ndarray:
    """[n] int64, the tree that shortest paths between some nodes [k], terminals among them, make, without
    leaves that are no terminals.

    ways   finds the paths
    """
    trees = Trees(core, compiled)
    trees.span(on_paths(core, nodes, ways), int(core.terminals[0]))
    return canonical_tree(trees.parent)


def on_paths(core: SteinerCore, nodes: np.ndarray, ways: Rule = nearest) -> np.ndarray:
    """[n] bool, some nodes [k] and those on the paths of Mehlhorn's spanning tree of them."""
    distance, before, base = ways(core, nodes)
    rows, columns = core.row_of(), core.indices.astype(np.int64)
    across = np.flatnonzero((rows < columns) & (base[rows] != base[columns]))
    length = distance[rows[across]] + core.lengths[across] + distance[columns[across]]
    taken = across[_forest(core.n, base[rows[across]], base[columns[across]], length)]
    chosen = np.zeros(core.n, dtype=bool)
    chosen[nodes] = True
    for front in (rows[taken], columns[taken]):
        while len(front := front[~chosen[front]]):
            chosen[front] = True
            front = before[front]
    return chosen


def _forest(n: int, u: np.ndarray, v: np.ndarray, length: np.ndarray) -> np.ndarray:
    """[k] int64, the links u[i]-v[i] [m] of the lightest spanning forest, none from a node to itself; of
    links of one length the one before is the lighter.

    Source   Borůvka 1926: each part takes its lightest link, then parts that hang together are one
    """
    ends = np.zeros(n, dtype=bool)
    ends[u] = ends[v] = True
    place, parts = np.cumsum(ends) - 1, int(np.count_nonzero(ends))
    length = length.astype(np.uint16) if length.max(initial=0) < SHORT else length
    order = np.argsort(length, kind="stable")  # from here on the lighter link is the one before
    a, b, found = place[u[order]], place[v[order]], [order[:0]]
    while len(a):
        first, links = np.full(parts, len(a)), np.arange(len(a))
        np.minimum.at(first, a, links)
        np.minimum.at(first, b, links)
        taken = sorted_set(first[first < len(a)])
        found.append(order[taken])
        ones = np.ones(len(taken), dtype=np.int8)
        hang = sp.csr_array((ones, (a[taken], b[taken])), shape=(parts, parts))
        parts, label = connected_components(hang, directed=False)
        a, b = label[a], label[b]
        left = a != b
        a, b, order = a[left], b[left], order[left]
    return np.concatenate(found)


LABELS = {"shortest_paths": "shortest paths", "distance_network": "distance network"}
STEINER_BASELINES = {"shortest_paths": shortest_paths, "distance_network": distance_network}
