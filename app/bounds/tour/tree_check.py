"""The proof that a spanning tree of points in the plane is minimum, without a look at all edges.

A tree is minimum if in each of Boruvka's rounds, in which every component is joined by its lightest tree
edge, no edge at all that leaves a component is lighter than that one. Shares nothing with the search for the
tree: points in a binary tree of boxes, a level of all points against a level of boxes at a time, in NumPy.

Source   the cut property: Tarjan 1983, chapter 6
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.bounds.certificate import BadCertificate
from app.graphs.keys import sorted_set
from app.graphs.lengths import PLANE, rounded_length
from app.graphs.lists import ranges
from app.graphs.metric import Metric

BOX_POINTS = 4  # of a smallest box, about
AT_ONCE = 1 << 14  # points whose boxes are looked at together
MOST_PAIRS = 1 << 21  # of them and boxes
MIXED = -1


def minimum_tree_weight(metric: Metric, pi: np.ndarray, special: int, tree: np.ndarray, scale: int) -> int:
    """The weight of a tree of all points but one, if no other is lighter. Raises BadCertificate.

    pi, scale   the weight of the edge i-j is scale * distance + pi[i] + pi[j]
    tree        [n-2, 2] its edges
    """
    n = metric.n
    if metric.kind not in PLANE:  # boxes around the points say nothing of other distances
        raise BadCertificate(f"1-tree: a tree proves nothing of distances of kind {metric.kind}")
    wrong = tree.shape != (n - 2, 2) or tree.dtype.kind not in "iu"
    wrong = wrong or (tree < 0).any() or (tree >= n).any() or (tree == special).any()
    if wrong or len(sorted_set(_components(n, tree))) != 2:  # the tree, and the special node
        raise BadCertificate("1-tree: the witness is no spanning tree")
    i, j = tree.astype(np.int64).T
    weight = scale * metric.between(i, j) + pi[i] + pi[j]
    boxes = _Boxes(metric, np.delete(np.arange(n), special), pi, scale)
    label, joined = np.arange(n), np.zeros(len(tree), dtype=bool)
    while not joined.all():
        lightest = _lightest_leaving(label[i], label[j], weight)
        limit = np.where(lightest >= 0, weight[lightest], np.iinfo(np.int64).max)
        if boxes.any_lighter(label, limit[label]):
            raise BadCertificate("1-tree: the witness is not the lightest spanning tree")
        joined[lightest[lightest >= 0]] = True
        label = _components(n, tree[joined])
    return sum(weight.tolist())  # whole numbers of any size


def _components(n: int, edges: np.ndarray) -> np.ndarray:
    """[n] the number of each node's component."""
    ones = np.ones(len(edges), dtype=np.int8)
    return connected_components(sp.csr_array((ones, edges.T), shape=(n, n)), directed=False)[1]


def _lightest_leaving(a: np.ndarray, b: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """[components] the lightest tree edge out of each, the first of equal ones; -1: none.

    a, b   the components of an edge's ends
    """
    leaving = np.flatnonzero(a != b)
    edge = np.concatenate([leaving, leaving])
    component = np.concatenate([a[leaving], b[leaving]])
    last_is_lightest = np.lexsort((-edge, -weight[edge]))
    found = np.full(max(int(a.max()), int(b.max())) + 2, -1)
    found[component[last_is_lightest]] = edge[last_is_lightest]
    return found


class _Boxes:
    """Points sorted into boxes of about equally many: box k holds the boxes 2k and 2k+1 of the next level."""

    def __init__(self, metric: Metric, points: np.ndarray, pi: np.ndarray, scale: int) -> None:
        self.metric, self.pi, self.scale = metric, pi, scale
        self.depth = int(np.log2(max(len(points) // BOX_POINTS, 1)))
        finest = np.linspace(0, len(points), (1 << self.depth) + 1).astype(np.int64)
        self.order = points
        self.cuts = [finest[:: 1 << (self.depth - level)] for level in range(self.depth + 1)]
        for cuts in self.cuts[:-1]:
            self._sort_within(cuts)
        places = metric.points[self.order]
        self.low = [np.minimum.reduceat(places, cuts[:-1]) for cuts in self.cuts]
        self.high = [np.maximum.reduceat(places, cuts[:-1]) for cuts in self.cuts]
        self.least = [np.minimum.reduceat(pi[self.order], cuts[:-1]) for cuts in self.cuts]
        self._clear = np.full(
            metric.n, np.iinfo(np.int64).min
        )  # no edge out of a point's component is lighter

    def _sort_within(self, cuts: np.ndarray) -> None:
        """Sort the points of each box by the coordinate in which it is longer."""
        places, box = self.metric.points[self.order], np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
        sides = np.maximum.reduceat(places, cuts[:-1]) - np.minimum.reduceat(places, cuts[:-1])
        along = np.where(sides[box, 1] > sides[box, 0], places[:, 1], places[:, 0])
        self.order = self.order[np.lexsort((along, box))]

    def any_lighter(self, label: np.ndarray, limit: np.ndarray) -> bool:
        """Whether an edge from a point to another component is lighter than the point's limit.

        label   [n] components, of which later calls join some     limit   [n]
        """
        inside = [self._one_label(label[self.order], cuts[:-1]) for cuts in self.cuts]
        asked = self.order[limit[self.order] > self._clear[self.order]]
        for lo in range(0, len(asked), AT_ONCE):
            if self._any_of(asked[lo : lo + AT_ONCE], inside, label, limit):
                return True
        self._clear[asked] = limit[asked]
        return False

    def _any_of(
        self, points: np.ndarray, inside: list[np.ndarray], label: np.ndarray, limit: np.ndarray
    ) -> bool:
        """any_lighter of some points: of fewer at a time where they are near too many boxes."""
        pairs = self._near(points, inside, label, limit)
        if pairs is not None:
            return self._lighter(*pairs, label, limit)
        halves = np.array_split(points, 2)
        return any(self._any_of(half, inside, label, limit) for half in halves)

    @staticmethod
    def _one_label(labels: np.ndarray, first: np.ndarray) -> np.ndarray:
        """The component of all points of a box, or MIXED."""
        low, high = np.minimum.reduceat(labels, first), np.maximum.reduceat(labels, first)
        return np.where(low == high, low, MIXED)

    def _near(
        self, node: np.ndarray, inside: list[np.ndarray], label: np.ndarray, limit: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """The pairs of a point and a smallest box that may hold an end of a lighter edge.

        None: more than MOST_PAIRS, of several points
        """
        box, points = np.zeros(len(node), dtype=np.int64), len(node)
        for level in range(self.depth + 1):
            if len(node) > MOST_PAIRS and points > 1:
                return None
            place = self.metric.points[node]
            apart = np.maximum(np.maximum(self.low[level][box] - place, place - self.high[level][box]), 0)
            length = rounded_length(self.metric.kind, apart[:, 0], apart[:, 1])
            least = self.scale * length + self.pi[node] + self.least[level][box]
            keep = (inside[level][box] != label[node]) & (least < limit[node])
            node, box = node[keep], box[keep]
            if level < self.depth:
                node, box = np.repeat(node, 2), (2 * box[:, None] + (0, 1)).ravel()
        return node, box

    def _lighter(self, node: np.ndarray, box: np.ndarray, label: np.ndarray, limit: np.ndarray) -> bool:
        """Whether one of the edges from points to those of boxes is lighter than allowed."""
        first, sizes = self.cuts[-1][box], np.diff(self.cuts[-1])[box]
        i, j = np.repeat(node, sizes), self.order[ranges(first, sizes)]
        i, j = i[label[i] != label[j]], j[label[i] != label[j]]
        weight = self.scale * self.metric.between(i, j) + self.pi[i] + self.pi[j]
        return bool((weight < limit[i]).any())
