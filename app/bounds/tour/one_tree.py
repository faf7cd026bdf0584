"""The Held-Karp bound of a travelling salesman problem: minimum 1-trees under node weights, in whole numbers.

A 1-tree is a spanning tree of all nodes but one, the special node, and two edges at that node. Every tour
is a 1-tree in which all nodes have degree 2. With pi[i] + pi[j] added to the length of each edge i-j every
tour gets longer by 2 sum(pi), so a minimum 1-tree less 2 sum(pi) is a lower bound, whatever pi is.

Sources  Held and Karp 1970, 1971; steps of the ascent: Volgenant and Jonker 1982
"""

from dataclasses import dataclass

import numpy as np

from app.bounds.certificate import BadCertificate, Bound
from app.bounds.tour.tree_check import minimum_tree_weight
from app.graphs.metric import MOST_TABLE_POINTS, Metric
from app.native import tour as native

SCALE = 1024  # node weights are multiples of 1/SCALE
LARGEST_PI = 1 << 44  # so that no edge's weight leaves 63 bits; sums over nodes may
METHOD = "Held-Karp 1-trees"
FIRST_ROUND, MEMORY = 50, 0.4
SHORTEST = 3  # points of the smallest problem that has a 1-tree


@dataclass(frozen=True, eq=False)
class OneTree(Bound):
    """No tour is shorter than `lower`.

    pi        [n] int64, node weights in multiples of 1/SCALE        special   the special node
    tree      [n-2, 2] the edges of a minimum spanning tree of the other points, where these lie in a plane:
              its check is then short. Or None
    """

    lower: int
    method: str
    pi: np.ndarray
    special: int
    tree: np.ndarray | None = None

    def check(self, metric: Metric) -> None:
        """Prove the bound: find a minimum 1-tree over all edges anew. Raises BadCertificate."""
        n = metric.n
        if self.pi.shape != (n,) or self.pi.dtype != np.int64 or not 0 <= self.special < max(n, 1):
            raise BadCertificate(f"{self.method}: not every node of {metric.name} has a weight")
        if self.tree is None and n > MOST_TABLE_POINTS:
            raise BadCertificate(f"{self.method}: {n} points have too many edges to be proved without a tree")
        if n and int(np.abs(self.pi.astype(object)).max()) > LARGEST_PI:
            raise BadCertificate(f"{self.method}: a node weight beyond {LARGEST_PI}")
        proved = trivial_bound(metric) if n < SHORTEST else rounded_up(self._value(metric))
        if proved != self.lower:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.lower}"
            )

    def _value(self, metric: Metric) -> int:
        if self.tree is None:
            return proved_value(metric, self.pi, self.special)
        weight = minimum_tree_weight(metric, self.pi, self.special, self.tree, SCALE)
        return weight + two_spokes(metric, self.pi, self.special)[0] - 2 * sum(self.pi.tolist())


def trivial_bound(metric: Metric) -> int:
    """The length of the one tour of fewer than three points."""
    return metric.length(np.arange(metric.n)) if metric.n else 0


def rounded_up(value: int) -> int:
    """A bound in multiples of 1/SCALE as a length."""
    return -(-value // SCALE)


def proved_value(metric: Metric, pi: np.ndarray, special: int) -> int:
    """The bound times SCALE that node weights give, by Prim's algorithm; shares nothing with `OneTrees`."""
    everyone = np.arange(metric.n)
    rest = everyone[everyone != special]
    total, at = 0, rest[0]
    rest = rest[1:]
    lightest = np.full(len(rest), np.iinfo(np.int64).max)
    while len(rest):
        lightest = np.minimum(lightest, SCALE * metric.between(at, rest) + pi[at] + pi[rest])
        nearest = int(lightest.argmin())
        total, at = total + int(lightest[nearest]), rest[nearest]
        rest, lightest = np.delete(rest, nearest), np.delete(lightest, nearest)
    return total + two_spokes(metric, pi, special)[0] - 2 * sum(pi.tolist())


class OneTrees:
    """Minimum 1-trees of one metric, compiled or not; a tie goes to the lowest node.

    parent   [n] of the last 1-tree: by which node each joined the tree; -1: its first, the special node
    degree   [n] of the last 1-tree
    """

    def __init__(self, metric: Metric, special: int, compiled: bool = True) -> None:
        self.metric, self.special = metric, special
        self.degree, self.parent = np.zeros(metric.n, dtype=np.int32), np.full(metric.n, -1, dtype=np.int32)
        self._native = native.NativeMetric(metric) if compiled and native.available() else None

    def find(self, pi: np.ndarray) -> int:
        """The weight of a minimum 1-tree less 2 sum(pi): a bound times SCALE."""
        arguments = pi, SCALE, self.special, self.degree, self.parent
        if self._native is None:
            weight = plain_one_tree(self.metric, *arguments)
        else:
            weight = native.one_tree(self._native, *arguments)
        return weight - 2 * int(pi.sum())

    def edges(self, pi: np.ndarray) -> list[tuple[int, int]]:
        """The edges i < j of the last 1-tree, which `find` made with the same pi."""
        _, spokes = two_spokes(self.metric, pi, self.special)
        found = [*self.tree.tolist(), *((self.special, node) for node in spokes.tolist())]
        return [(min(edge), max(edge)) for edge in found]

    @property
    def tree(self) -> np.ndarray:
        """[n-2, 2] edges of the last 1-tree that are not at the special node: by which node, which joined."""
        joined = np.flatnonzero(self.parent >= 0)
        return np.column_stack([self.parent[joined], joined])


def two_spokes(metric: Metric, pi: np.ndarray, special: int) -> tuple[int, np.ndarray]:
    """The weight of the two lightest edges at the special node, and their ends [2], the lowest of ties."""
    others = np.delete(np.arange(metric.n), special)
    weight = SCALE * metric.between(special, others) + pi[special] + pi[others]
    two = np.argsort(weight, kind="stable")[:2]
    return int(weight[two].sum()), others[two]


def plain_one_tree(
    metric: Metric, pi: np.ndarray, scale: int, special: int, degree: np.ndarray, parent: np.ndarray
) -> int:
    """What lk_one_tree of one_tree.c finds, ties included; fills degree and parent [n] int32."""
    n, far = metric.n, np.iinfo(np.int64).max
    everyone = np.arange(n)
    key = np.full(n, far - 1)
    parent[:], degree[:] = -1, 0
    last = 1 if special == 0 else 0
    key[[special, last]] = far
    total = 0
    for _ in range(n - 2):
        weight = scale * metric.between(last, everyone) + pi[last] + pi
        closer = (key != far) & (weight < key)
        key[closer], parent[closer] = weight[closer], last
        last = int(key.argmin())
        total += int(key[last])
        degree[[last, parent[last]]] += 1
        key[last] = far
    spokes = scale * metric.between(special, everyone) + pi[special] + pi
    spokes[special] = far
    two = np.argsort(spokes, kind="stable")[:2]
    degree[special] = 2
    degree[two] += 1
    return total + int(spokes[two].sum())


class Ascent:
    """Node weights that make the bound grow.

    lower    the best bound so far, -1 before the first 1-tree        pi   the weights that prove it
    steps    1-trees made        closed   the last 1-tree is a tour, so that no bound is better

    The ascent is made of rounds, each twice as long as the one before, that begin at the best weights with
    half the steps. The step t falls to zero within a round; weights change by t times the excess of the
    degrees over 2, 0.6 of this 1-tree's and 0.4 of the last one's.
    """

    def __init__(self, metric: Metric, compiled: bool = True) -> None:
        self.special, self.steps = 0, 0
        self.pi = np.zeros(metric.n, dtype=np.int64)
        self.closed = metric.n < SHORTEST
        self.lower = trivial_bound(metric) if self.closed else -1
        self._trees = OneTrees(metric, self.special, compiled)
        self._next, self._best = self.pi, None
        self._excess: np.ndarray | None = None  # of the last 1-tree
        self._size, self._made, self._length = 0.0, 0, FIRST_ROUND

    def step(self, upper: int | None = None) -> None:
        """One 1-tree, and the weights of the next, which no known length changes."""
        value = self._trees.find(self._next)
        self.steps += 1
        if self._best is None or value > self._best:
            self._best, self.pi = value, self._next
            self.lower = max(self.lower, rounded_up(value))
        excess = self._trees.degree.astype(np.int64) - 2
        if not excess.any():
            self.closed = True
            return
        if self._excess is None:
            self._size, self._excess = max(value, SCALE) / (2 * len(excess)), excess
        self._made += 1
        if self._made > self._length:
            self._next = self.pi
            self._made, self._length, self._size = 0, 2 * self._length, self._size / 2
            return
        size = self._size * (1 - (self._made - 1) / self._length) ** 2
        change = size * ((1 - MEMORY) * excess + MEMORY * self._excess)
        self._next = self._next + np.floor(change + 0.5).astype(np.int64)
        self._excess = excess

    def certificate(self) -> OneTree:
        """The bound with the weights that prove it."""
        if self.lower < 0:
            self.step()
        return OneTree(self.lower, METHOD, self.pi, self.special)
