"""The Held-Karp bound of a travelling salesman problem: minimum 1-trees under node weights, in whole numbers.

A 1-tree is a spanning tree of all nodes but one, the special node, and two edges at that node. Every tour
is a 1-tree in which all nodes have degree 2. With pi[i] + pi[j] added to the length of each edge i-j every
tour gets longer by 2 sum(pi), so a minimum 1-tree less 2 sum(pi) is a lower bound, whatever pi is.

Sources  Held and Karp 1970, 1971; steps of the ascent: Volgenant and Jonker 1982
"""

import time
from dataclasses import dataclass

import numpy as np

from app.bounds.certificate import BadCertificate, Bound
from app.graphs.metric import Metric
from app.native import tour as native

SCALE = 1024  # node weights are multiples of 1/SCALE
LARGEST_PI = 1 << 44  # so that no sum leaves 63 bits
METHOD = "Held-Karp 1-trees"
FIRST_ROUND, MEMORY = 50, 0.4
SHORTEST = 3  # points of the smallest problem that has a 1-tree


@dataclass(frozen=True, eq=False)
class OneTree(Bound):
    """No tour is shorter than `lower`.

    pi        [n] int64, node weights in multiples of 1/SCALE        special   the special node
    """

    lower: int
    method: str
    pi: np.ndarray
    special: int

    def check(self, metric: Metric) -> None:
        """Prove the bound: find a minimum 1-tree over all edges anew. Raises BadCertificate."""
        n = metric.n
        if self.pi.shape != (n,) or self.pi.dtype != np.int64 or not 0 <= self.special < max(n, 1):
            raise BadCertificate(f"{self.method}: not every node of {metric.name} has a weight")
        if n and int(np.abs(self.pi.astype(object)).max()) > LARGEST_PI:
            raise BadCertificate(f"{self.method}: a node weight beyond {LARGEST_PI}")
        proved = trivial_bound(metric) if n < SHORTEST else _proved(metric, self.pi, self.special)
        if proved != self.lower:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.lower}"
            )


def trivial_bound(metric: Metric) -> int:
    """The length of the one tour of fewer than three points."""
    return metric.length(np.arange(metric.n)) if metric.n else 0


def _proved(metric: Metric, pi: np.ndarray, special: int) -> int:
    """The bound that node weights give, by Prim's algorithm in NumPy; independent of `TourBounds`."""
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
    others = everyone[everyone != special]
    spokes = np.sort(SCALE * metric.between(special, others) + pi[special] + pi[others])
    return -(-(total + int(spokes[:2].sum()) - 2 * int(pi.sum())) // SCALE)


class TourBounds:
    """A lower bound on the length of every tour that gets better as node weights are improved.

    lower    the best bound so far        method   how it was found        steps   1-trees made

    The ascent is made of rounds, each twice as long as the one before, that begin at the best weights with
    half the steps. The step t falls to zero within a round; weights change by t times the excess of the
    degrees over 2, 0.6 of this 1-tree's and 0.4 of the last one's.
    """

    def __init__(self, metric: Metric, compiled: bool = True) -> None:
        self.metric, self.method, self.steps = metric, METHOD, 0
        self._native = native.NativeMetric(metric) if compiled and native.available() else None
        self._pi = np.zeros(metric.n, dtype=np.int64)
        self._best_pi, self._best = self._pi.copy(), None
        self._excess = np.zeros(metric.n, dtype=np.int64)
        self._step, self._length, self._made, self._first_step = 0.0, FIRST_ROUND, 0, None
        self.closed = metric.n < SHORTEST
        self.lower = trivial_bound(metric) if self.closed else -1
        self._special = 0

    def run(self, steps: int, upper: int | None = None) -> bool:
        """Make up to `steps` 1-trees, fewer where the bound is found to be best possible; True if it grew."""
        before = self.lower
        for _ in range(steps):
            if self.closed or (upper is not None and self.lower >= upper):
                break
            self._ascend()
        return self.lower > before

    def improve(self, seconds: float, upper: int | None = None) -> bool:
        """`run` for about so many seconds; upper: the length of a known tour, to stop at."""
        end, before = time.monotonic() + seconds, self.lower
        while not self.closed and (upper is None or self.lower < upper):
            self.run(1, upper)
            if time.monotonic() >= end:
                break
        return self.lower > before

    def certificate(self) -> OneTree:
        """The bound with the weights that prove it."""
        if self.lower < 0:
            self.run(1)
        return OneTree(self.lower, self.method, self._best_pi.copy(), self._special)

    def _ascend(self) -> None:
        """One 1-tree, and the weights of the next."""
        weight, degree = self._one_tree(self._pi)
        value = weight - 2 * int(self._pi.sum())
        self.steps += 1
        if self._best is None or value > self._best:
            self._best, self._best_pi = value, self._pi.copy()
            self.lower = max(self.lower, -(-value // SCALE))
        excess = degree.astype(np.int64) - 2
        if not excess.any():
            self.closed = True  # a tour as short as the bound
            return
        if self._first_step is None:
            self._first_step = max(value, SCALE) / (2 * self.metric.n)
            self._excess = excess
        self._made += 1
        if self._made > self._length:
            self._begin_round()
            return
        change = self._step_size() * ((1 - MEMORY) * excess + MEMORY * self._excess)
        self._pi = self._pi + np.floor(change + 0.5).astype(np.int64)
        self._excess = excess

    def _begin_round(self) -> None:
        self._pi = self._best_pi.copy()
        self._made, self._length, self._first_step = 0, 2 * self._length, self._first_step / 2

    def _step_size(self) -> float:
        """In multiples of 1/SCALE: falls from the round's first step to zero, as (1 - m/M)^2."""
        return self._first_step * (1 - (self._made - 1) / self._length) ** 2

    def _one_tree(self, pi: np.ndarray) -> tuple[int, np.ndarray]:
        """Weight of a minimum 1-tree, and its degrees [n]."""
        if self._native is None:
            return plain_one_tree(self.metric, pi, self._special)
        degree = np.empty(self.metric.n, dtype=np.int32)
        return native.one_tree(self._native, pi, SCALE, self._special, degree), degree


def plain_one_tree(metric: Metric, pi: np.ndarray, special: int) -> tuple[int, np.ndarray]:
    """What lk_one_tree of one_tree.c finds, ties included."""
    n, far = metric.n, np.iinfo(np.int64).max
    everyone = np.arange(n)
    key, parent = np.full(n, far - 1), np.full(n, -1)
    degree = np.zeros(n, dtype=np.int32)
    last = 1 if special == 0 else 0
    key[[special, last]] = far
    total = 0
    for _ in range(n - 2):
        weight = SCALE * metric.between(last, everyone) + pi[last] + pi
        closer = (key != far) & (weight < key)
        key[closer], parent[closer] = weight[closer], last
        last = int(key.argmin())
        total += int(key[last])
        degree[[last, parent[last]]] += 1
        key[last] = far
    spokes = SCALE * metric.between(special, everyone) + pi[special] + pi
    spokes[special] = far
    two = np.argsort(spokes, kind="stable")[:2]
    degree[special] = 2
    degree[two] += 1
    return total + int(spokes[two].sum()), degree
