"""Minimum 1-trees over all edges between points in the plane, in about n log n steps.

The weight of the edge i-j is SCALE * distance + pi[i] + pi[j]. Edges are ordered by weight, then by their
lower and their higher end, so that the spanning tree is unique: the compiled kernel (near.c: Boruvka's
rounds with a k-d tree) and the plain form below (Prim's algorithm) find the same one.

Sources  Boruvka 1926; Prim 1957; k-d trees: Bentley 1975
"""

import numpy as np

from app.bounds.tour.one_tree import SCALE, two_spokes
from app.graphs.lengths import PLANE
from app.graphs.metric import Metric
from app.native import tour as native


def applies(metric: Metric) -> bool:
    """Whether the distances are those of points in the plane, rounded in a way that keeps their order."""
    return metric.kind in PLANE


class NearTrees:
    """Minimum 1-trees of one metric of points in the plane, compiled or not; as OneTrees (one_tree.py).

    degree   [n] int32 of the last 1-tree     tree   [n-2, 2] its edges that are not at the special node
    """

    def __init__(self, metric: Metric, special: int, compiled: bool = True) -> None:
        self.metric, self.special = metric, special
        self._native = native.NearTree(metric, special) if compiled and native.available() else None
        self.degree = np.zeros(metric.n, dtype=np.int32)
        self.tree = np.zeros((0, 2), dtype=np.int32)

    def find(self, pi: np.ndarray) -> int:
        """The weight of a minimum 1-tree less 2 sum(pi): a bound times SCALE."""
        if self._native is None:
            weight, tree = plain_near_tree(self.metric, pi, self.special)
        else:
            weight, tree = self._native.find(pi, SCALE), self._native.edges
        self.tree = tree[np.lexsort((tree[:, 1], tree[:, 0]))]
        self.degree = np.bincount(tree.ravel(), minlength=self.metric.n).astype(np.int32)
        spokes, ends = two_spokes(self.metric, pi, self.special)
        self.degree[ends] += 1
        self.degree[self.special] = 2
        return weight + spokes - 2 * int(pi.sum())

    def edges(self, pi: np.ndarray) -> np.ndarray:
        """[n, 2] edges i < j of the last 1-tree, which `find` made with the same pi."""
        ends = two_spokes(self.metric, pi, self.special)[1]
        return np.concatenate([self.tree, np.sort(np.column_stack([np.full(2, self.special), ends]), axis=1)])


def plain_near_tree(metric: Metric, pi: np.ndarray, special: int) -> tuple[int, np.ndarray]:
    """The weight of what lk_near_tree finds, and its edges [n-2, 2] in the order in which they join."""
    rest = np.delete(np.arange(metric.n), special)
    last, rest = rest[0], rest[1:]
    key = np.full(len(rest), np.iinfo(np.int64).max)
    to = np.full(len(rest), metric.n)  # the end in the tree
    total, edges = 0, np.empty((metric.n - 2, 2), dtype=np.int32)
    for made in range(len(edges)):
        weight = SCALE * metric.between(last, rest) + pi[last] + pi[rest]
        low, high = np.minimum(last, rest), np.maximum(last, rest)
        known_low, known_high = np.minimum(to, rest), np.maximum(to, rest)
        equal = (low < known_low) | ((low == known_low) & (high < known_high))
        closer = (weight < key) | ((weight == key) & equal)
        key, to = np.where(closer, weight, key), np.where(closer, last, to)
        ties = np.flatnonzero(key == key.min())
        ends = np.sort(np.column_stack([to[ties], rest[ties]]), axis=1)
        at = ties[np.lexsort((ends[:, 1], ends[:, 0]))[0]]
        total, last = total + int(key[at]), rest[at]
        edges[made] = min(to[at], last), max(to[at], last)
        rest, key, to = (np.delete(each, at) for each in (rest, key, to))
    return total, edges
